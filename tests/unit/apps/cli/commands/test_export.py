"""Models leave by the shell, and say the same where they arrive."""

import sqlite3
from contextlib import closing

import pytest


def test_sql_says_what_predict_says(done, files, frame):
    done("fit penguins.csv --target species --model naive-bayes -o m.tally")
    told = done("predict m.tally test.csv").splitlines()[1:]
    query = done("export m.tally --sql sqlite --table rows")
    with closing(sqlite3.connect(":memory:")) as database:
        frame[200:].to_sql("rows", database, index=False)
        assert [row[0] for row in database.execute(query)] == [line.split(",")[0].strip('"') for line in told]
    done("export m.tally --sql duckdb --table rows -o q.sql")
    assert (files / "q.sql").read_text().startswith("WITH")


def test_onnx_and_bif(done, files):
    pytest.importorskip("onnx")
    done("fit penguins.csv --target species --model naive-bayes -o m.tally")
    done("export m.tally --onnx m.onnx")
    assert (files / "m.onnx").stat().st_size > 100
    done("fit penguins.csv --model network --structure species->island -o n.tally")
    done("export n.tally --bif n.bif")
    assert "probability" in (files / "n.bif").read_text()


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("export m.tally", 2, "one of --sql, --onnx and --bif"),
        ("export m.tally --sql duckdb", 2, "missing option --table NAME"),
        ("export m.tally --bif n.bif", 1, "which has no export as BIF"),
        ("export m.tally --sql duckdb --table rows -o penguins.csv", 1, "exists; nothing was written"),
    ],
)
def test_what_cannot_be_exported(tally, done, files, words, code, said):
    done("fit penguins.csv --target species --model naive-bayes -o m.tally")
    found = tally(words)
    assert found.code == code
    assert said in found.err

"""DATA is a file, a pattern, standard input or a database; the rows are the same."""

import gzip
import json
import sqlite3

import pandas as pd
import pyarrow as pa
import pytest

import tallybayes as tb
from tests.unit.data import postgresql as server


@pytest.fixture
def expected(files):
    return tb.NaiveBayes().fit(files / "penguins.csv", "species").tally_


def learned(done, words, stdin=b""):
    done(f"fit {words} -t species -m naive-bayes -o m.tally --force", stdin=stdin)
    return tb.load("m.tally").tally_


@pytest.mark.slow
def test_standard_input_is_csv_json_lines_or_packed(files, frame, done, tally, expected):
    text = (files / "penguins.csv").read_bytes()
    lines = frame[:200].to_json(orient="records", lines=True).encode()
    frame[:200].to_parquet("p.parquet")
    for stdin in (text, b"\xef\xbb\xbf" + text, gzip.compress(text), lines, (files / "p.parquet").read_bytes()):
        assert learned(done, "-", stdin).isclose(expected, 1e-9)
    told = done("predict m.tally -", stdin=text)
    assert told == done("predict m.tally penguins.csv")
    empty = tally("predict m.tally -", stdin=b" \n")
    assert empty.code == 1
    assert "standard input is empty; expected CSV" in empty.err
    ragged = tally("predict m.tally -", stdin=b"x,y\n1,a\n2,b,c\n")
    assert ragged.code == 1
    assert ragged.err.startswith("error: standard input, line 3: ")
    array = tally("predict m.tally -", stdin=b' [{"x": 1}]')
    assert array.code == 1
    assert "one JSON array; expected JSON lines" in array.err
    same = tally("predict m.tally - -o -", stdin=text)
    assert (same.out, same.err) == (told, "")
    done("fit - -t species -m naive-bayes", stdin=text)
    assert (files / "standard-input-naive-bayes.tally").is_file()


def test_patterns_and_what_files_do_not_say(files, frame, done, expected):
    for place in range(2):
        part = frame[100 * place : 100 * (place + 1)].copy()
        part["bill_mm"] = part["bill_mm"].astype(object).where(part["bill_mm"].notna(), "?")
        part.to_csv(f"2026-{place}.txt", index=False, sep=";", header=False)
    names = " ".join(frame.columns)
    words = f"2026-*.txt --null-values ? NA --delimiter ; --types bill_mm=float64 --names {names}"
    assert learned(done, f"{words} --format csv").isclose(expected, 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_databases_count_and_are_written_to(kind, files, frame, done, tally, expected):
    if kind == "sqlite":
        connection = sqlite3.connect("p.db")
        frame[:200].to_sql("penguins", connection, index=False)
    else:
        connection = pytest.importorskip("duckdb").connect("p.db")
        rows = pa.Table.from_pandas(frame[:200])
        connection.register("rows", rows)
        connection.execute("CREATE TABLE penguins AS SELECT * FROM rows")
    connection.close()
    assert learned(done, f"{kind}:p.db --table penguins").isclose(expected, 1e-9)
    done(f"fit {kind}:p.db -t species -m naive-bayes -o q.tally --query", "SELECT * FROM penguins WHERE sex = 'male'")
    assert tb.load("q.tally").n_rows_ == (frame[:200]["sex"] == "male").sum()
    done(f"fit {kind}:p.db --table penguins -t species -m naive-bayes")
    assert (files / "penguins-naive-bayes.tally").is_file()
    said = tally(f"predict m.tally {kind}:p.db --table penguins --keep sex -o {kind}:p.db --to-table told")
    assert said.code == 0, said.err
    told = json.loads(done(f"predict m.tally {kind}:p.db --json --query", "SELECT * FROM penguins LIMIT 1"))
    assert set(told) == {"prediction"}
    unsaid = tally(f"predict m.tally {kind}:p.db")
    assert unsaid.code == 2
    assert "expected --table NAME or --query SQL. Tables: penguins, told." in unsaid.err
    twice = tally(f"predict m.tally {kind}:p.db --table penguins -o {kind}:p.db --to-table told")
    assert twice.code == 1
    assert "told" in twice.err
    wrong = tally(f"predict m.tally {kind}:p.db --query", "SELECT nonsense FROM nowhere")
    assert wrong.code == 1
    assert tally(f"predict m.tally {kind}:none.db --table penguins").code == 1
    assert not (files / "none.db").exists()


def test_predictions_go_to_files_by_their_ending(files, done, tally):
    done("fit penguins.csv -t species -m naive-bayes -o m.tally")
    said = tally("predict m.tally test.csv --proba -o told.parquet")
    assert (said.out, said.err) == ("", "wrote 100 rows to told.parquet\n")
    assert len(pd.read_parquet("told.parquet")) == 100
    done("predict m.tally test.csv -o told.jsonl")
    assert len((files / "told.jsonl").read_text().splitlines()) == 100
    assert tally("predict m.tally test.csv -o told.jsonl --json").code == 2
    assert tally("predict m.tally test.csv -o told.xlsx").code == 1


@pytest.fixture(scope="module")
def address():
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    with server.running() as said:
        parts = dict(part.split("=") for part in said.split())
        yield f"postgresql://{parts['user']}@/{parts['dbname']}?host={parts['host']}"


@pytest.mark.slow
def test_postgresql_counts_and_is_written_to(address, files, frame, done, tally, expected):
    import psycopg

    with psycopg.connect(address) as connection:
        tb.write_rows(frame[:200], (connection, "penguins"))
    assert learned(done, f"{address} --table penguins").isclose(expected, 1e-9)
    done(f"predict m.tally {address} --table penguins --keep sex -o {address} --to-table told")
    with psycopg.connect(address) as connection:
        assert connection.execute("SELECT count(*), count(prediction) FROM told").fetchone() == (200, 200)
    unsaid = tally(f"predict m.tally {address}")
    assert unsaid.code == 2
    assert "Tables: penguins, told." in unsaid.err
    assert "tests@" not in unsaid.err
    assert tally(f"predict m.tally {address} --table nowhere").code == 1
    assert tally("predict m.tally postgresql://nobody:secret@127.0.0.1:1/x --table y").code == 1

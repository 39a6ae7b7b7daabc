"""Rows go out to files, tables and open files, whole or not at all."""

import io
import json
import sqlite3

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import tallybayes as tb

ROWS = {"sky": ["sun", None, "søn"], "degrees": [21.5, 12.0, float("nan")], "n": [1, 2, 3]}


@pytest.mark.slow_after(7)
@pytest.mark.parametrize("ending", ["parquet", "csv", "tsv", "jsonl", "arrow", "csv.gz"])
@pytest.mark.parametrize("kind", ["mapping", "frame", "file"])
def test_rows_come_back(ending, kind, tmp_path):
    data = ROWS if kind == "mapping" else pd.DataFrame(ROWS)
    if kind == "file":
        data.astype({"sky": "category"}).to_parquet(tmp_path / "from.parquet")
        data = tmp_path / "from.parquet"
    assert tb.write_rows(data, tmp_path / f"to.{ending}") == 3
    found = pa.concat_tables(tb.table(tmp_path / f"to.{ending}").batches()).to_pydict()
    assert found["sky"] == ["sun", None, "søn"]
    assert found["degrees"][:2] == [21.5, 12.0]
    assert found["n"] == [1, 2, 3]


def test_rows_to_a_database_and_to_an_open_file():
    connection = sqlite3.connect(":memory:")
    assert tb.write_rows(ROWS, (connection, "days")) == 3
    assert connection.execute("SELECT sky, n FROM days").fetchall() == [("sun", 1), (None, 2), ("søn", 3)]
    connection.close()
    out = io.BytesIO()
    tb.write_rows(ROWS, out, format="json")
    tb.write_rows({"n": np.arange(2)}, out, format="csv")
    first, *_, last = out.getvalue().decode().splitlines()
    assert json.loads(first) == {"sky": "sun", "degrees": 21.5, "n": 1}
    assert last == "1"
    assert not out.closed


def test_predictions_to_an_open_file():
    model = tb.NaiveBayes().fit({"x": ["a", "b", "b"], "y": ["no", "yes", "yes"]}, "y")
    out = io.BytesIO()
    assert tb.write_predictions(model, {"x": ["a", "b"]}, out, format="csv") == 2
    assert out.getvalue() == b'"prediction"\n"no"\n"yes"\n'


def test_what_is_refused(tmp_path):
    with pytest.raises(tb.DataError, match="format is None and `to` is an open file; expected one of"):
        tb.write_rows(ROWS, io.BytesIO())
    with pytest.raises(tb.DataError, match="format='csv' is an option of open files"):
        tb.write_rows(ROWS, tmp_path / "x.csv", format="csv")
    with pytest.raises(tb.DataError, match="to is 3; expected a path"):
        tb.write_rows(ROWS, 3)
    with pytest.raises(tb.DataError, match=r"cannot be written to"):
        tb.write_rows(pa.table({"x": [[1]]}), tmp_path / "x.csv")
    assert not list(tmp_path.iterdir())

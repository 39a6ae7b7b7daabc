"""Batches of every kind: lists of frames, dictionaries of arrays as Ray gives them, readers of Arrow."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.dataset as ds
import pytest

import tallybayes as tb

FRAME = pd.DataFrame({"x": [1.0, np.nan, 3.0, 4.0], "z": ["u", None, "v", "u"], "y": ["a", "b", "a", "b"]})


class Loader:
    """An iterable without a length, such as Ray's `iter_batches` returns."""

    def __init__(self, parts):
        self.parts = parts

    def __iter__(self):
        return iter(self.parts)


def _expected():
    return tb.NaiveBayes().fit(pd.concat([FRAME, FRAME]), "y").tally_


def test_a_function_of_batches():
    parts = lambda: iter([FRAME, FRAME])  # noqa: E731
    model = tb.NaiveBayes().fit(parts, "y")
    assert model.tally_ == _expected()
    assert model.predict(parts).tolist() == 2 * model.predict(FRAME).tolist()


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas, pa.RecordBatch.from_pandas])
@pytest.mark.parametrize("container", [list, tuple])
def test_a_list_of_frames(kind, container):
    parts = container([kind(FRAME), kind(FRAME)])
    model = tb.NaiveBayes().fit(parts, "y")
    assert model.tally_ == _expected()
    assert model.predict(parts).tolist() == 2 * model.predict(FRAME).tolist()
    assert model.forget(parts, "y").tally_["y"].table.sum() == 0


def test_frames_of_other_columns():
    with pytest.raises(tb.DataError, match=r"batch 1 of the list of frames .* column 'z'"):
        tb.NaiveBayes().fit([FRAME, FRAME[["x", "y"]]], "y")


def test_dictionaries_of_arrays():
    parts = [{name: FRAME[name].to_numpy() for name in FRAME}] * 2
    for data in (iter(parts), Loader(parts), tb.table(lambda: parts)):
        assert tb.NaiveBayes().fit(data, "y").tally_ == _expected()
    loader, model = Loader(parts), tb.NaiveBayes()
    for _ in range(2):  # it can be read again
        assert model.fit(loader, "y").predict(loader).shape == (8,)


@pytest.mark.parametrize(
    ("part", "match"),
    [
        ({"x": 1.0, "y": "a"}, "batch 0 is {'x': 1.0, 'y': 'a'}; expected .* dictionary of columns.\n.*list(rows)"),
        ({"x": [1, 2], "y": ["a"]}, "batch 0 cannot be read: .*length"),
        ({"x": [1, "b"], "y": [1, 2]}, "batch 0 cannot be read"),
        (pd.DataFrame({0: [1], 1: [2]}), "batch 0 is a frame with columns named 0, 1; expected strings.*\n.*map(str)"),
        (pd.DataFrame({"x": [1, "b"], "y": [1, 2]}), "batch 0 cannot be read"),
    ],
)
def test_batches_that_are_none(part, match):
    with pytest.raises(tb.DataError, match=match.replace("(", r"\(").replace(")", r"\)")):
        tb.NaiveBayes().fit(iter([part]), "y")


def test_errors_of_arrow_are_translated_and_others_are_not(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("x,y\n1,a\n" + "2,b\n" * 100_000 + "three,c\n")
    dataset = ds.dataset(path, format=ds.CsvFileFormat(read_options=csv.ReadOptions(block_size=1000)))
    with pytest.raises(tb.DataError, match=r"the dataset cannot be read: .*invalid value 'three'"):
        tb.NaiveBayes().fit(dataset, "y")
    with pytest.raises(
        tb.DataError, match=re.escape("the list of frames cannot be read: No match for FieldRef.Name(no)")
    ):
        tb.table([FRAME, FRAME], where=pc.field("no") > 1).read("this")

    def broken():
        yield FRAME
        raise OSError("the disk of the user")

    with pytest.raises(OSError, match="the disk of the user"):
        tb.NaiveBayes().fit(broken(), "y")


@pytest.mark.parametrize("name", ["rows.arrows", "rows.arrow"])
def test_files_in_the_streaming_format_of_arrow(name, tmp_path):
    table = pa.Table.from_pandas(FRAME).append_column("k", pa.array(["p", "q", "p", None]).dictionary_encode())
    with pa.ipc.new_stream(tmp_path / name, table.schema) as stream:
        stream.write_table(table, max_chunksize=3)
    source = tb.table(tmp_path / name)
    assert source.n_rows is None
    assert source.read("this").select(["k", "x"]).to_pydict() == table.select(["k", "x"]).to_pydict()
    assert tb.NaiveBayes().fit(tmp_path / name, "y").tally_ == tb.NaiveBayes().fit(table, "y").tally_
    raw = (tmp_path / name).read_bytes()
    for broken in (b"", raw[:100], raw[: len(raw) // 2], b"no stream at all"):
        (tmp_path / name).write_bytes(broken)
        with pytest.raises(tb.DataError, match=r"rows.arrows? cannot be read as ipc"):
            tb.NaiveBayes().fit(tmp_path / name, "y")

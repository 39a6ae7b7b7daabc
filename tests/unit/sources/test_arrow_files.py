"""Files of Arrow's own whose bytes were changed: an error names the file, whatever is wrong."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tallybayes as tb

ROWS = pa.table({"x": ["søn", "rain"] * 20, "y": ["a", "b"] * 20})


def _parquet(path):
    pq.write_table(ROWS, path, compression="none")


def _ipc(path):
    with pa.ipc.new_file(path, ROWS.schema) as file:
        file.write_table(ROWS)


@pytest.mark.parametrize(("kind", "write"), [("parquet", _parquet), ("arrow", _ipc)])
def test_strings_that_are_not_utf_8(kind, write, tmp_path):
    path = tmp_path / f"rows.{kind}"
    write(path)
    path.write_bytes(path.read_bytes().replace("søn".encode(), b"s\xff\xffn"))
    for read in (lambda: tb.NaiveBayes().fit(path, "y"), lambda: tb.table(path).read("this")):
        with pytest.raises(tb.DataError, match=rf"rows.{kind} cannot be read as .*: Invalid UTF8"):
            read()

"""Names of columns: each occurs once."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

import tallybayes as tb


@pytest.mark.parametrize(
    "data",
    [
        pd.DataFrame([[1.0, 2.0, 3.0]], columns=["a", "b", "a"]),
        pa.table([[1.0], [2.0], [3.0]], names=["a", "b", "a"]),
    ],
    ids=["pandas", "Arrow"],
)
def test_a_repeated_name_of_a_frame_is_said(data):
    with pytest.raises(tb.DataError, match="the frame has two columns 'a'; expected unique names"):
        tb.NaiveBayes().fit(data, [0])


@pytest.mark.parametrize("ending", ["parquet", "arrow", "csv"])
def test_a_repeated_name_of_a_file_is_said(ending, tmp_path):
    path, table = tmp_path / f"rows.{ending}", pa.table([[1.0, 2.0], [2.0, 3.0], [0, 1]], names=["a", "a", "y"])
    if ending == "parquet":
        pa.parquet.write_table(table, path)
    elif ending == "arrow":
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
    else:
        path.write_text("a,a,y\n1,2,0\n2,3,1\n")
    with pytest.raises(tb.DataError, match=r"has two columns 'a'; expected unique names"):
        tb.NaiveBayes().fit(path, "y")


def test_a_repeated_name_of_a_matrix_is_said():
    with pytest.raises(tb.DataError, match="the matrix has two columns 'a'"):
        tb.NamedMatrix(np.zeros((2, 2)), ["a", "a"])

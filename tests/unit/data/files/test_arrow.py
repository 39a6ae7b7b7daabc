"""Files of Arrow's own: Parquet of every kind, the memory that reading takes, and files whose bytes were changed."""

from __future__ import annotations

import json
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tallybayes as tb


def counts(path: Path, name: str, **columns: Any) -> dict[Any, float]:
    """The weight of every level of one column."""
    tally = tb.count(path, [tb.Factor(name, (), tb.Categorical())], **columns)
    return dict(zip(tally.domains[name].levels, tally.statistics[0].table.tolist(), strict=True))


def test_a_column_with_the_dotted_name_of_a_field(tmp_path: Path) -> None:
    struct = pa.array([{"b": "struct"}] * 4)
    for names in (["a", "a.b"], ["a.b", "a"]):
        columns = {"a": struct, "a.b": pa.array(["x", "y", "x", "x"])}
        pq.write_table(pa.table({name: columns[name] for name in names}), tmp_path / "rows.parquet")
        assert counts(tmp_path / "rows.parquet", "a.b") == {"x": 3.0, "y": 1.0}


@pytest.mark.parametrize("encoding", ["DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"])
def test_strings_that_are_encoded_by_differences(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    table = pa.table({"s": ["aa", None, "ab", "aa"], "t": ["u", "v", "v", "v"]})
    pq.write_table(table, path, use_dictionary=["t"], column_encoding={"s": encoding})
    assert counts(path, "s") == {"aa": 2.0, "ab": 1.0}
    assert counts(path, "t") == {"u": 1.0, "v": 3.0}


def test_a_file_of_duckdb_in_version_2(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "rows.parquet"
    query = "SELECT 'label ' || (i % 1000) AS s, i % 2 AS y FROM range(5000) rows(i)"
    duckdb.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet, PARQUET_VERSION V2, DICTIONARY_SIZE_LIMIT 1)")
    found = counts(path, "s")
    assert len(found) == 1000
    assert set(found.values()) == {5.0}
    model = tb.NaiveBayes(tb.Categorical()).fit(path, "y")
    assert model.predict({"s": ["label 7", "label 8"]}).tolist() == [1, 0]


def test_types_of_columns(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    columns = {
        "gaps": pa.array(["a", None, "b", "a"]).dictionary_encode(),
        "decimal": pa.array([Decimal("1.5"), Decimal("2.5"), None, Decimal("1.5")]),
        "large": pa.array(["p", "q", "q", "p"], pa.large_string()),
        "small": pa.array([1, 2, None, 1], pa.uint8()),
        "list": pa.array([[1], [2, 3], None, []]),
        "map": pa.array([[("k", 1)], None, [], [("l", 2)]], pa.map_(pa.string(), pa.int64())),
        "struct": pa.array([{"x": 1, "y": ["z"]}, None, {"x": 2, "y": []}, {"x": 3, "y": None}]),
        "last": pa.array([True, False, True, True]),
    }
    pq.write_table(pa.table(columns), path, row_group_size=3)
    assert counts(path, "gaps") == {"a": 2.0, "b": 1.0}
    assert counts(path, "large") == {"p": 2.0, "q": 2.0}
    assert counts(path, "small") == {1: 2.0, 2: 1.0}
    assert counts(path, "last") == {False: 1.0, True: 3.0}  # behind nested columns, which have several places
    tally = tb.count(path, [tb.Factor("decimal", (), tb.Gaussian())])
    assert tally.statistics[0].weight.tolist() == [3.0]
    assert tally.statistics[0].mean.tolist() == pytest.approx([5.5 / 3])


def test_row_groups_without_rows(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    part = pa.table({"s": pa.array(["a", "b", "a"])})
    with pq.ParquetWriter(path, part.schema) as writer:
        for table in (part.slice(0, 0), part, part.slice(0, 0), part.slice(0, 1), part.slice(0, 0)):
            writer.write_table(table)
    assert pq.read_metadata(path).num_row_groups == 5
    assert counts(path, "s") == {"a": 3.0, "b": 1.0}
    pq.write_table(part.slice(0, 0), path)
    assert tb.table(path).first_batch().num_rows == 0


FIT = """
import json, sys
import pyarrow as pa, pyarrow.dataset, pyarrow.parquet
import tallybayes as tb
model = {model}
def peak(): # in MiB; not ru_maxrss, which begins with the peak of the parent process
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) / 1024
model.fit(iter([pa.table({"y": [0, 1], "x": [0, 1]})]), "y")
before = peak()
model.fit(sys.argv[1], "y")
if sys.argv[2] == "predict":
    tb.write_predictions(model, sys.argv[1], sys.argv[1] + ".told.parquet")
print(json.dumps([before, peak(), model.tally_["y"].table.sum()]))
"""


def memory_of_fit(
    path: Path, last: str = "predict", model: str = "tb.NaiveBayes(tb.Categorical())"
) -> tuple[float, float, float]:
    command = [sys.executable, "-c", FIT.replace("{model}", model), str(path), last]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    before, peak, n_rows = json.loads(done.stdout)
    return before, peak, n_rows


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
def test_memory_of_one_large_row_group_of_constants(tmp_path: Path) -> None:
    # 0.7 MB in the file; as whole columns they took 675 MB.
    path, n = tmp_path / "rows.parquet", 60_000_000
    constant = pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, np.int8)), ["a"])
    columns = {"y": np.zeros(n, np.int8), "a": constant, "b": constant, "c": np.ones(n, np.int32)}
    pq.write_table(pa.table(columns), path, row_group_size=n)
    before, peak, n_rows = memory_of_fit(path)
    assert n_rows == n
    assert peak - before < 130


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
def test_memory_of_one_large_row_group_of_labels(tmp_path: Path) -> None:
    # 100 MB in the file, which Arrow would keep until the row group has been read.
    path, n, rng = tmp_path / "rows.parquet", 20_000_000, np.random.default_rng(0)
    columns: dict[str, Any] = {"y": rng.integers(0, 5, n).astype(np.uint8)}
    for k in range(9):
        codes = rng.integers(0, 10, n).astype(np.int8)
        labels = pa.DictionaryArray.from_arrays(pa.array(codes), [f"level {i}" for i in range(10)])
        columns[f"c{k}"] = labels if k % 2 else codes
    pq.write_table(pa.table(columns), path, row_group_size=n)
    before, peak, n_rows = memory_of_fit(path)
    assert n_rows == n
    assert peak - before < 100


@pytest.mark.slow
@pytest.mark.skipif("jemalloc" not in pa.supported_memory_backends(), reason="this build of Arrow has no jemalloc")
@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
def test_memory_of_strings_in_row_groups_of_usual_size(tmp_path: Path) -> None:
    # 40 MB are allocated at a time; Arrow's default allocator took 110 MB from the system for them.
    path, n, rng = tmp_path / "rows.parquet", 4_000_000, np.random.default_rng(0)
    levels = [f"level {i}" for i in range(10)]
    labels = pa.DictionaryArray.from_arrays(pa.array(rng.integers(0, 10, n).astype(np.int8)), levels).cast(pa.string())
    pq.write_table(pa.table(dict.fromkeys(["y", *(f"c{k}" for k in range(10))], labels)), path)
    before, peak, n_rows = memory_of_fit(path, "fit")
    assert n_rows == n
    assert peak - before < 100


@pytest.mark.slow
@pytest.mark.skipif("jemalloc" not in pa.supported_memory_backends(), reason="this build of Arrow has no jemalloc")
@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
def test_memory_of_many_numbers_in_one_large_row_group(tmp_path: Path) -> None:
    # 200 MB in the file; Arrow holds a page and a dictionary of 1 MB for every column, 90 MB in all.
    path, n, rng = tmp_path / "rows.parquet", 600_000, np.random.default_rng(0)
    columns = {"y": rng.integers(0, 3, n).astype(np.uint8), **{f"c{k}": rng.normal(size=n) for k in range(41)}}
    pq.write_table(pa.table(columns), path, row_group_size=n)
    before, peak, n_rows = memory_of_fit(path, "fit", "tb.NaiveBayes()")
    assert n_rows == n
    assert peak - before < 170


@pytest.mark.parametrize("largest", [0, 1 << 25], ids=["buffered", "whole chunks"])
@pytest.mark.parametrize("cells", [0, 10**8], ids=["copied", "in place"])
def test_a_file_that_is_truncated_while_it_is_read(largest: int, cells: int, tmp_path: Path, monkeypatch: Any) -> None:
    # The file itself is never mapped: reading a mapped page beyond the end of its file ends the process.
    path, rng = tmp_path / "rows.parquet", np.random.default_rng(0)
    x = rng.integers(0, 200, 300_000).astype(np.int8)
    pq.write_table(pa.table({"x": x}), path, row_group_size=100_000)
    sizes = {"_LARGEST": largest, "_MOST_CELLS": cells, "_MOST_ROWS": cells, "_BATCH_BYTES": 1, "_BATCH_ROWS": 1000}
    for name, value in sizes.items():
        monkeypatch.setattr(f"tallybayes.data.files.arrow.{name}", value)
    maps = Path("/proc/self/maps")
    batches = tb.table(path).batches()
    first = next(batches)
    assert not maps.exists() or str(path) not in maps.read_text()
    with open(path, "r+b") as file:
        file.truncate(5000)
    try:
        n_rows = len(first) + sum(map(len, batches))
    except tb.DataError as error:
        assert "rows.parquet cannot be read" in str(error)  # noqa: PT017
        assert cells
    else:
        assert n_rows == 300_000
        assert not cells


@pytest.mark.parametrize("stream", [False, True], ids=["file", "stream"])
def test_an_arrow_file_that_is_truncated_while_it_is_read(stream: bool, tmp_path: Path) -> None:
    path, rows = tmp_path / "rows.arrow", pa.table({"x": np.arange(3_000_000.0)})
    with (pa.ipc.new_stream if stream else pa.ipc.new_file)(path, rows.schema) as writer:
        writer.write_table(rows, max_chunksize=100_000)
    maps = Path("/proc/self/maps")
    batches = tb.table(path).batches()
    next(batches)
    assert not maps.exists() or str(path) not in maps.read_text()
    with open(path, "r+b") as file:
        file.truncate(5000)
    with pytest.raises(tb.DataError, match=r"rows.arrow cannot be read as ipc"):
        list(batches)


def test_files_are_closed_after_they_are_read(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    _parquet(path)
    before = len(list(Path("/proc/self/fd").iterdir())) if sys.platform == "linux" else 0
    for _ in range(5):
        assert counts(path, "y") == {"a": 20.0, "b": 20.0}
    if sys.platform == "linux":
        assert len(list(Path("/proc/self/fd").iterdir())) <= before
    path.unlink()  # which Windows refuses where a file is open


ROWS = pa.table({"x": ["søn", "rain"] * 20, "y": ["a", "b"] * 20})


def _parquet(path: Path) -> None:
    pq.write_table(ROWS, path, compression="none")


def _ipc(path: Path) -> None:
    with pa.ipc.new_file(path, ROWS.schema) as file:
        file.write_table(ROWS)


@pytest.mark.parametrize(("kind", "write"), [("parquet", _parquet), ("arrow", _ipc)])
def test_strings_that_are_not_utf_8(kind: str, write: Any, tmp_path: Path) -> None:
    path = tmp_path / f"rows.{kind}"
    write(path)
    path.write_bytes(path.read_bytes().replace("søn".encode(), b"s\xff\xffn"))
    for read in (lambda: tb.NaiveBayes().fit(path, "y"), lambda: tb.table(path).read("this")):
        with pytest.raises(tb.DataError, match=rf"rows.{kind} cannot be read as .*: Invalid UTF8"):
            read()


@pytest.mark.parametrize("kind", ["parquet", "arrow", "stream.arrow"])
def test_names_of_columns_that_are_not_utf_8(kind: str, tmp_path: Path) -> None:
    path, rows = tmp_path / f"rows.{kind}", pa.table({"navn": ["a", "b"], "y": ["a", "b"]})
    if kind == "parquet":
        pq.write_table(rows, path, store_schema=False)
    else:
        with (pa.ipc.new_file if kind == "arrow" else pa.ipc.new_stream)(path, rows.schema) as file:
            file.write_table(rows)
    path.write_bytes(path.read_bytes().replace(b"navn", b"n\xebvn"))
    with pytest.raises(tb.DataError, match=rf"rows\.{kind} cannot be read as .*: 'utf-8' codec can't decode byte 0xeb"):
        tb.NaiveBayes().fit(path, "y")


def test_damaged_metadata_of_a_column(tmp_path: Path) -> None:
    # A column that becomes required no longer fits its statistics: RowGroupMetaData.column() would end the process.
    path = tmp_path / "rows.parquet"
    _parquet(path)
    for name in (b"x", b"y"):
        raw = path.read_bytes()
        damaged = raw.replace(b"\x25\x02\x18\x01" + name, b"\x25\x00\x18\x01" + name)
        assert damaged != raw
        (tmp_path / "damaged.parquet").write_bytes(damaged)
        with pytest.raises(tb.DataError, match=r"damaged\.parquet cannot be read as parquet: "):
            tb.NaiveBayes().fit(tmp_path / "damaged.parquet", "y")


@pytest.mark.parametrize("n_labels", [0, 5000])
def test_strings_whose_encoding_changes_from_group_to_group(n_labels: int, tmp_path: Path) -> None:
    # Codes are read until they cannot be; then every row that is left is read without them, once.
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "rows.parquet"
    query = f"SELECT if(i < {n_labels}, 'label', 'label ' || i) AS s, 'w' || (i % 3) AS t FROM range(10000) rows(i)"
    options = "FORMAT parquet, PARQUET_VERSION V2, DICTIONARY_SIZE_LIMIT 100, ROW_GROUP_SIZE 2048"
    duckdb.execute(f"COPY ({query}) TO '{path}' ({options})")
    groups = pq.read_metadata(path)
    how = {groups.row_group(k).column(0).encodings for k in range(groups.num_row_groups)}
    assert len(how) == 1 + (n_labels > 0), how
    assert groups.row_group(0).column(1).encodings == ("RLE_DICTIONARY",)
    found = tb.table(path).read("this")
    assert found["s"].to_pylist() == ["label"] * n_labels + [f"label {k}" for k in range(n_labels, 10000)]
    assert found["t"].to_pylist() == [f"w{k % 3}" for k in range(10000)]

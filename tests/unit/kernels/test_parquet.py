"""Columns of Parquet that the kernels read: what Arrow reads; the rest is left to it."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tallybayes as tb
from tallybayes.kernels.parquet import page_labels, page_numbers, reads_pages
from tallybayes.sources import parquet_pages
from tests.unit.kernels.parquet_cases import FILES, TYPES, cells, pages_read, write

pytestmark = pytest.mark.skipif(not reads_pages(), reason="tallybayes was installed without compiled kernels")


def _read(path):
    return pa.concat_tables([batch.replace_schema_metadata(None) for batch in tb.table(path).batches()])


def _same(path):
    found, expected = _read(path), pq.read_table(path)
    assert found.schema.names == expected.schema.names
    for name in expected.schema.names:
        assert found[name].to_pylist() == expected[name].to_pylist(), name


@pytest.mark.slow_after(3)
@pytest.mark.parametrize("name", FILES)
def test_the_kernels_read_what_arrow_reads(name, tmp_path):
    path = FILES[name](tmp_path / "rows.parquet")
    overflows = name == "a dictionary that overflows"  # strings are then written as they are
    assert set(pages_read(path)) == {str(kind) for kind in TYPES} | (set() if overflows else {"string"})
    _same(path)


@pytest.mark.slow_after(3)
@pytest.mark.parametrize("n", [1, 7, 8, 9, 63, 1000])
@pytest.mark.parametrize("n_levels", [1, 2, 3, 5, 17, 33, 65, 129, 255, 256, 257, 700])
def test_every_width_of_codes(n, n_levels, tmp_path):
    how = {"compression": ["none", "snappy"][n % 2], "row_group_size": 10**6}
    path = write(tmp_path / "rows.parquet", n, n_levels, **how)
    assert len(pages_read(path)) == len(TYPES) + 1
    _same(path)


@pytest.mark.slow
def test_many_levels_and_long_labels(tmp_path):
    rng = np.random.default_rng(0)
    many = rng.integers(-(2**40), 2**40, 30_000)[rng.integers(0, 30_000, 100_000)]
    labels = pa.array([f"{'x' * (k % 300)}{k}" for k in range(2000)]).take(pa.array(rng.integers(0, 2000, 100_000)))
    constant = pa.array(np.full(100_000, 7))
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"many": many, "string": labels, "constant": constant}), path)
    assert set(pages_read(path)) == {"many", "string", "constant"}
    _same(path)


@pytest.mark.parametrize("how", [
    {"compression": "zstd"}, {"compression": "gzip"}, {"use_dictionary": False}, {"write_statistics": False},
    {"column_encoding": {"int64": "DELTA_BINARY_PACKED"}, "use_dictionary": False},
])  # fmt: skip
def test_what_is_not_understood_is_left_to_arrow(how, tmp_path):
    path = write(tmp_path / "rows.parquet", **how)
    assert pages_read(path) == {}
    _same(path)


def test_missing_cells_are_left_to_arrow(tmp_path):
    path = tmp_path / "rows.parquet"
    table = {"gaps": pa.array([1, None, 3] * 100), "whole": pa.array([1, 2, 3] * 100), "no": pa.array([0.5] * 300)}
    table |= {"yes": pa.array([True, False, None] * 100), "listed": pa.array([[1], [2, 3], None] * 100)}
    pq.write_table(pa.table(table), path)
    assert set(pages_read(path)) == {"whole"}
    _same(path)


def test_missing_cells_that_a_file_denies(tmp_path):
    """The pages count, not what stands at the end of the file."""
    for version in ("1.0", "2.0"):
        path = tmp_path / f"rows-{version}.parquet"
        pq.write_table(pa.table({"x": pa.array([1, None, 3] * 5)}), path, data_page_version=version)
        chunk = pq.read_metadata(path).row_group(0).column(0)
        raw = np.fromfile(path, np.uint8)[chunk.dictionary_page_offset :][: chunk.total_compressed_size]
        assert not page_numbers(raw, True, True, 8, np.empty(15, np.int64))


def test_columns_in_any_order_and_files_of_other_types(tmp_path):
    first, second = tmp_path / "1.parquet", tmp_path / "2.parquet"
    pq.write_table(pa.table({"a": pa.array([1, 2], pa.int8()), "b": ["x", "y"], "c": [0.5, 1.5]}), first)
    pq.write_table(pa.table({"c": [2.5], "b": ["z"], "a": pa.array([300], pa.int32())}), second)
    rows = tb.table(tmp_path / "*.parquet", columns=["c", "a", "b"])
    found = pa.concat_tables([batch.replace_schema_metadata(None) for batch in rows.batches()])
    assert found.to_pydict() == {"c": [0.5, 1.5, 2.5], "a": [1, 2, 300], "b": ["x", "y", "z"]}


def test_large_groups_are_read_in_parts(tmp_path, monkeypatch):
    path = write(tmp_path / "rows.parquet")
    monkeypatch.setattr(parquet_pages, "LARGEST", 100)
    monkeypatch.setattr(parquet_pages, "_column", None)  # would not do
    _same(path)


@pytest.mark.parametrize("writer", ["duckdb", "polars"])
def test_files_of_others(writer, tmp_path):
    path = tmp_path / "rows.parquet"
    kinds = {"n": (pa.int64(), 12), "k": (pa.uint8(), 5), "s": (pa.string(), 30)}
    table = pa.table({name: cells(kind, 5000, n_levels) for name, (kind, n_levels) in kinds.items()})
    if writer == "duckdb":
        connection = pytest.importorskip("duckdb").connect()
        connection.register("rows", table)
        connection.execute(f"COPY rows TO '{path}' (FORMAT parquet)")
    else:
        pytest.importorskip("polars").from_arrow(table).write_parquet(path, compression="snappy")
    _same(path)
    assert tb.NaiveBayes(tb.Categorical()).fit(path, "k").tally_["k"].table.sum() == 5000


def test_broken_pages_are_left_to_arrow_and_named(tmp_path):
    path = write(tmp_path / "rows.parquet")
    raw = bytearray(path.read_bytes())
    raw[10:60] = bytes(50)
    path.write_bytes(raw)
    with pytest.raises(Exception, match=r"page|Thrift|Couldn't|Corrupt|parquet"):
        _read(path)


@pytest.mark.parametrize("size", [0, 1, 10, 10**6])
def test_nonsense_is_refused(size):
    nonsense = np.random.default_rng(size).integers(0, 256, size).astype(np.uint8)
    for compressed in (True, False):
        assert not page_numbers(nonsense, compressed, True, 4, np.empty(10, np.int8))
        assert page_labels(nonsense, compressed, False, np.empty(10, np.int32)) is None


def test_nothing_asked_for_is_nothing_read():
    assert page_numbers(np.empty(0, np.uint8), True, True, 4, np.empty(0, np.int8))
    with pytest.raises(ValueError, match="4 or 8"):
        page_numbers(np.empty(0, np.uint8), True, True, 3, np.empty(0, np.int8))

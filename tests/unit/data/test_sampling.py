"""Samples are random over all rows of every source, with a fixed seed, and say of how many rows they are."""

import sqlite3

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tallybayes as tb
from tallybayes.data.sampling import Reservoir, sampled_rows
from tallybayes.data.sql.databases import dialect_of

N = 60_000


@pytest.fixture(scope="module")
def frame():
    """Rows sorted by a column, whose families and bins depend on all of it, with a period of 100 rows."""
    rng = np.random.default_rng(0)
    country = np.sort(rng.choice(["at", "de", "fr", "uk"], N))
    early = np.isin(country, ["at", "de"])
    device = np.arange(N) % 100
    size = np.where(early, rng.normal(0, 1, N), np.exp(rng.normal(2, 1, N)))
    calls = np.where(early, 3, rng.poisson(3, N)).astype(float)
    y = np.where((device < 30) ^ (rng.random(N) < 0.1), "yes", "no")
    return pd.DataFrame(
        {"country": country, "device": [f"d{number}" for number in device], "size": size, "calls": calls, "y": y}
    )


def _database(frame, request, kind):
    if kind == "sqlite":
        connection = sqlite3.connect(":memory:")
    elif kind == "duckdb":
        connection = pytest.importorskip("duckdb", reason="DuckDB is not installed").connect()
    else:
        import psycopg

        connection = psycopg.connect(request.getfixturevalue("postgresql_server"), autocommit=True)
    request.addfinalizer(connection.close)
    rows = pa.Table.from_pandas(frame, preserve_index=False)
    with dialect_of(connection).writing(["sorted"], rows.schema) as write:
        write(rows)
    return tb.table(connection, "sorted")


def _parts(frame):
    return (frame.iloc[k : k + 999] for k in range(0, len(frame), 999))


SOURCES = {
    "iterator": lambda frame, path: tb.table(_parts(frame)),
    "categories": lambda frame, path: tb.table(part.astype({"device": "category"}) for part in _parts(frame)),
    "view": lambda frame, path: tb.table(_parts(frame), columns=["country", "device", "size", "calls", "y"]),
    "function": lambda frame, path: tb.table(lambda: _parts(frame)),
    "lazy": lambda frame, path: tb.table(pl.from_pandas(frame).lazy()),
    "csv": lambda frame, path: frame.to_csv(path / "rows.csv", index=False) or tb.table(path / "rows.csv"),
    "json": lambda frame, path: (
        frame.to_json(path / "r.jsonl", orient="records", lines=True) or tb.table(path / "r.jsonl")
    ),
    "parquet": lambda frame, path: frame.to_parquet(path / "rows.parquet") or tb.table(path / "rows.parquet"),
}
KINDS = [*SOURCES, "duckdb", "sqlite", pytest.param("postgresql", marks=pytest.mark.slow)]


@pytest.fixture(params=KINDS)
def source(request, frame, tmp_path):
    make = SOURCES.get(request.param)
    return make(frame, tmp_path) if make else _database(frame, request, request.param)


def test_samples_are_of_all_rows(source, frame, request):
    rows, n_rows = source.sample(5000)
    assert n_rows == N
    assert abs(len(rows) - 5000) < 300
    found = rows.to_pandas()
    for name in ("country", "device"):  # χ² with 3 and 99 degrees of freedom
        expected = frame[name].value_counts(normalize=True) * len(found)
        seen = found[name].astype(str).value_counts().reindex(expected.index).fillna(0)
        assert ((seen - expected) ** 2 / expected).sum() < len(expected) + 5 * np.sqrt(2 * len(expected))
    assert source.sample(5000)[0].equals(rows)  # the seed is fixed
    assert found["country"].astype(str).is_monotonic_increasing  # in their order
    assert sum(map(len, source.batches())) == N  # all rows are still there
    everything, n_rows = source.sample(N)
    assert (len(everything), n_rows) == (N, N)


def test_no_rows():
    source = tb.table(lambda: iter([pd.DataFrame({"x": [1.0], "y": ["a"]})[:0]]))
    rows, n_rows = source.sample()
    assert (rows.column_names, len(rows), n_rows) == (["x", "y"], 0, 0)


@pytest.mark.parametrize("sizes", [[1000], [1, 999], [10] * 100, [500, 0, 500]])
def test_a_reservoir_does_not_depend_on_batches(sizes):
    table, reservoir, start = pa.table({"x": range(1000)}), Reservoir(30), 0
    for size in sizes:
        reservoir.add(table.slice(start, size))
        start += size
    expected = np.sort(np.argsort(np.random.default_rng(0).random(1000))[:30])
    assert reservoir.table()["x"].to_pylist() == expected.tolist()


def test_every_row_is_as_likely():
    rng = np.random.default_rng(1)
    times = np.zeros(50)
    for seed in rng.integers(0, 2**31, 2000):
        times[sampled_rows(50, 5, int(seed))] += 1
    assert ((times - 200) ** 2 / 180).sum() < 49 + 5 * np.sqrt(98)


# ---- What is chosen by a sample -----------------------------------------------------------------------------------


def _families(model):
    return {name: type(family).__name__ for name, family in model.columns_.items()}


@pytest.mark.slow_after(4)
def test_sorted_rows_lead_to_the_families_of_shuffled_ones(source, frame, monkeypatch):
    monkeypatch.setattr("tallybayes.data.sql.query_source.FIRST", 2000)
    shuffled = frame.sample(frac=1, random_state=0)
    expected = tb.NaiveBayes("suggest").fit(shuffled, "y")
    found = tb.NaiveBayes("suggest").fit(source, "y")
    assert _families(found) == _families(expected)
    assert set(found.columns_) >= {"country", "device"}
    assert found.tally_["y"].table.sum() == N
    suggestion = tb.suggest_families(SOURCES["function"](frame, None), "y")
    assert f"from 20,000 rows sampled at random of {N:,}" in repr(suggestion)


@pytest.mark.slow
def test_bins_are_chosen_by_all_rows(frame, tmp_path, monkeypatch):
    monkeypatch.setattr("tallybayes.data.files.csv_source._BLOCK", 100_000)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    found = tb.AveragedOneDependence(bins=4).fit(tmp_path / "rows.csv", "y").columns_["size"]
    expected = tb.AveragedOneDependence(bins=4).fit(frame, "y").columns_["size"]
    np.testing.assert_allclose(found.edges[1:-1], expected.edges[1:-1], rtol=0.2, atol=0.05)


def test_identifiers_are_recognized_in_a_sample(tmp_path):
    frame = pd.DataFrame({"id": np.arange(120_000), "x": np.random.default_rng(0).normal(size=120_000)})
    frame["y"] = np.where(frame["x"] > 0, "a", "b")
    frame.to_parquet(tmp_path / "rows.parquet")
    model = tb.NaiveBayes("suggest").fit(tmp_path / "rows.parquet", "y")
    assert list(model.columns_) == ["x"]
    assert model.dropped_columns_["id"].startswith("an identifier")

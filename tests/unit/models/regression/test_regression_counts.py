"""Regression from files, batches and databases: the same as from arrays."""

import sqlite3

import numpy as np
import pandas as pd
import pytest

import tallybayes as tb
from tallybayes.data.sql.query_source import Query
from tallybayes.warnings import DataSourceWarning

RNG = np.random.default_rng(0)
N = 500
FRAME = pd.DataFrame(
    {
        "a": RNG.normal(size=N) + 3,
        "b": RNG.normal(size=N),
        "c": RNG.choice(["red", "it's", "blue"], N),
        "w": RNG.integers(0, 3, N).astype(float),
        "y": RNG.normal(size=N),
        "z": RNG.normal(size=N),
    }
)
FRAME["y"] += 2 * FRAME["a"] - FRAME["b"] ** 2
HOLES = FRAME.assign(z=FRAME["z"].where(np.arange(N) % 4 > 0))


def database(kind, rows):
    if kind == "sqlite":
        connection = sqlite3.connect(":memory:")
        rows.to_sql("rows", connection, index=False)
        return tb.table(connection, "rows")
    import duckdb

    connection = duckdb.connect()
    connection.register("rows", rows)
    connection.execute("CREATE TABLE kept AS SELECT * FROM rows")
    return tb.table(connection, "kept")


SETTINGS = {
    "line": (tb.LinearRegression(), "y"),
    "polynomial": (tb.LinearRegression(3, estimate="mle"), "y"),
    "groups": (tb.LinearRegression(2, by="c", estimate="map", prior=1.0), "y"),
    "targets": (tb.LinearRegression(2), ["y", "z"]),
}


@pytest.mark.slow_after(5)
@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("weight", [None, "w"])
def test_a_database_counts_as_arrays_are_counted(kind, name, weight, monkeypatch):
    model, target = SETTINGS[name]
    rows = HOLES if name == "targets" else FRAME
    rows = rows if weight else rows.drop(columns="w")
    monkeypatch.setattr(Query, "batches", None)  # no row leaves it
    source = database(kind, rows)
    there, here = (
        tb.LinearRegression(**model.get_params()).fit(data, target, sample_weight=weight) for data in (source, rows)
    )
    assert there.terms_ == here.terms_
    np.testing.assert_allclose(there.coef_, here.coef_, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(there.noise_std_, here.noise_std_, rtol=1e-9)
    np.testing.assert_allclose(there.predict(rows), here.predict(rows), rtol=1e-9)
    assert there.tally_.isclose(here.tally_, 1e-9)


def test_a_database_adds_to_and_is_taken_from_what_was_counted():
    rows = FRAME.drop(columns="w")
    model = tb.LinearRegression(2).fit(rows[:300], "y")
    more = database("duckdb", rows[300:])
    assert model.partial_fit(more, "y").tally_.isclose(tb.LinearRegression(2).fit(rows, "y").tally_, 1e-9)
    assert model.forget(more, "y").tally_.isclose(tb.LinearRegression(2).fit(rows[:300], "y").tally_, 1e-9)


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
@pytest.mark.parametrize("column", ["a", "c"])
def test_rows_that_lack_an_input_are_not_counted_in_a_database_either(kind, column):
    rows = FRAME.drop(columns="w")
    rows.loc[7, column] = None
    with pytest.warns(DataSourceWarning, match=f"1 of .* rows are not counted: .*column '{column}'"):
        model = tb.LinearRegression().fit(database(kind, rows), "y")
    assert model.tally_.isclose(tb.LinearRegression().fit(rows.drop(index=7), "y").tally_, 1e-9)


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_files_are_read_batch_by_batch(ending, tmp_path, monkeypatch):
    rows, path = HOLES.drop(columns="w"), tmp_path / f"rows.{ending}"
    rows.to_parquet(path) if ending == "parquet" else rows.to_csv(path, index=False)
    expected = tb.LinearRegression(2).fit(rows, ["y", "z"])
    model = tb.LinearRegression(2).fit(path, ["y", "z"])
    assert model.tally_.isclose(expected.tally_, 1e-12)
    np.testing.assert_allclose(model.predict(path), expected.predict(rows), rtol=1e-9)
    told = model.predict(path, return_std=True)
    assert [part.shape for part in told] == [(N, 2)] * 2
    assert model.score(path, ["y", "z"]) == pytest.approx(expected.score(rows, ["y", "z"]), rel=1e-9)
    batches = tb.table(iter([rows[:100], rows[100:]]))
    assert tb.LinearRegression(2).fit(batches, ["y", "z"]).tally_.isclose(expected.tally_, 1e-12)
    with pytest.raises(tb.DataError, match="'q'"):
        tb.LinearRegression().fit(path, "q")


def test_values_beside_a_source_are_refused(tmp_path):
    FRAME.to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(tb.DataError, match="name of a column"):
        tb.LinearRegression().fit(tmp_path / "rows.parquet", FRAME["y"].to_numpy())

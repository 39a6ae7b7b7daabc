"""What SQL lacks, log1p and log Γ, made of LN and arithmetic: to the digits that probabilities need."""

import sqlite3

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tallybayes as tb
from tallybayes.data.sql.databases import SQLite
from tallybayes.data.sql.sql_arrays import SqlArrays, balanced
from tallybayes.distributions.log_gamma import log_choose
from tallybayes.export.column_log_probs import log_rising
from tests.examples import examples

X = SqlArrays(SQLite(None)).array(["x"])
DATABASE = sqlite3.connect(":memory:")
STARTS = np.array([1e-3, 0.5, 1.0, 3.25, 49.9, 50.1, 1e3, 1e7])


def asked(expressions, x):
    query = f"SELECT {', '.join(expressions)} FROM (SELECT {x!r} AS x)"
    return np.array(DATABASE.execute(query).fetchone(), dtype=float)


@pytest.mark.parametrize("starts", [STARTS, STARTS[STARTS > 50]], ids=["mixed", "large"])
@pytest.mark.parametrize("x", [0.0, 1.0, 2.0, 7.5, 100.0, 1e4, 1e6])
def test_log_gamma_between_classes(starts, x):
    found, expected = asked(log_rising(X, starts).value, x), log_choose(starts, x)
    gaps = (found - found[0]) - (expected - expected[0])
    np.testing.assert_allclose(gaps, 0.0, atol=1e-10 + 1e-15 * x * np.log1p(x))  # such sums have no more digits


@pytest.mark.parametrize("u", [0.0, 1e-20, 1e-12, 1e-6, 0.3, 1e10, 1e200])
def test_log1p_keeps_what_is_small(u):
    (found,) = asked(X.log1p(1e9).value, u)
    assert found == pytest.approx(np.log1p(u), rel=1e-15, abs=0)


def test_sums_are_as_deep_as_their_logarithm():
    total = balanced(["1"] * 5000)
    assert DATABASE.execute(f"SELECT {total}").fetchone() == (5000,)


def test_densities_of_a_million_rows_keep_their_digits():
    rng = np.random.default_rng(0)
    rows = {"x": rng.normal(size=50), "n": rng.poisson(3, 50), "y": rng.integers(0, 2, 50)}
    columns = {"x": tb.Gaussian(), "n": tb.Poisson()}
    model = tb.NaiveBayes(columns).fit_tally(tb.NaiveBayes(columns).fit(rows, "y").tally_.scale(2e7))
    at = np.linspace(-4, 4, 17)
    DATABASE.execute("CREATE TABLE many (x REAL, n REAL)")
    DATABASE.executemany("INSERT INTO many VALUES (?, ?)", [(value, 3) for value in at.tolist()])
    found = np.array(DATABASE.execute(model.to_sql("sqlite", "many")).fetchall(), dtype=float)[:, 1:]
    np.testing.assert_allclose(found, model.predict_proba({"x": at, "n": np.full(17, 3)}), rtol=0, atol=1e-9)


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)


@pytest.mark.slow
@examples(30)
@given(st.lists(TEXT, min_size=1, max_size=6, unique=True), TEXT.filter(bool), st.lists(TEXT, min_size=2, max_size=2))
def test_whatever_names_and_labels_hold(levels, name, asked_for):
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")
    y = np.arange(2 * len(levels)) % 2
    model = tb.NaiveBayes({name: tb.Categorical()}).fit({name: levels * 2, "the class": y}, "the class")
    cells = [*levels, *asked_for, None]
    expected = model.predict_proba({name: cells})
    quoted = '"' + name.replace('"', '""') + '"'
    for dialect, connect in (("sqlite", sqlite3.connect), ("duckdb", duckdb.connect)):
        connection = connect(":memory:")
        connection.execute(f"CREATE TABLE t ({quoted} TEXT, place INTEGER)")
        connection.executemany("INSERT INTO t VALUES (?, ?)", [(cell, k) for k, cell in enumerate(cells)])
        query = model.to_sql(dialect, f"SELECT {quoted}, place AS tally_place FROM t", keep="tally_place")
        found = sorted(connection.execute(query).fetchall())
        np.testing.assert_allclose(np.array([row[2:] for row in found]), expected, rtol=0, atol=1e-12)
        connection.close()

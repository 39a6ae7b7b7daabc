"""Answers about rows that lack inputs, and inputs that are dates."""

import numpy as np
import pandas as pd
import pytest

import tallybayes as tb
from tallybayes.warnings import DataSourceWarning

N = 300
RNG = np.random.default_rng(0)
FULL = pd.DataFrame({"a": RNG.normal(5, 2, N), "c": RNG.choice(list("uvw"), N)})
FULL["b"] = 0.8 * FULL["a"] + RNG.normal(size=N)
FULL["when"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(RNG.integers(0, 90_000_000, N), unit="s")
FULL["y"] = 2 * FULL["a"] - FULL["b"] + 3 * (FULL["c"] == "v") + 0.2 * FULL["when"].dt.hour + RNG.normal(size=N)
ROWS = FULL.copy()
ROWS.loc[::7, "a"], ROWS.loc[::11, "c"], ROWS.loc[::13, "when"] = np.nan, None, pd.NaT
WHOLE = ROWS.dropna()
ESTIMATES = ["bayes", "map", "mle", "unbiased"]
pytestmark = pytest.mark.filterwarnings("ignore:.*rows are not counted:tallybayes.warnings.DataSourceWarning")


@pytest.mark.parametrize("estimate", ESTIMATES)
def test_rows_that_lack_an_input_are_not_counted(estimate):
    model, expected = (tb.LinearRegression(estimate=estimate).fit(rows, "y") for rows in (ROWS, WHOLE))
    assert model.n_rows_ == len(WHOLE)
    assert model.tally_ == expected.tally_
    np.testing.assert_array_equal(model.coef_, expected.coef_)


@pytest.mark.parametrize("estimate", ESTIMATES)
def test_a_row_that_lacks_inputs_is_predicted_by_the_others(estimate):
    """The joint moments of all columns hold the regression on some of them."""
    model = tb.LinearRegression(estimate=estimate).fit(ROWS, "y")
    for lost in (["a"], ["c"], ["when"], ["a", "c"]):
        rows, others = FULL.copy(), tb.LinearRegression(estimate=estimate).fit(WHOLE.drop(columns=lost), "y")
        rows[lost] = pd.NaT if lost == ["when"] else None
        for found, expected in zip(model.predictive(rows), others.predictive(FULL), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-12)
        np.testing.assert_allclose(model.predict(rows), others.predict(FULL), rtol=1e-12)
    nothing = model.predict([{}])
    assert nothing == pytest.approx([WHOLE["y"].mean()])


def test_patterns_of_missing_cells_are_predicted_together_as_alone():
    model = tb.LinearRegression(range(1, 3), by="g").fit(ROWS[["a", "b", "y"]].assign(g=FULL["c"]), "y")
    rows = ROWS[["a", "b"]].assign(g=FULL["c"])
    rows.loc[::5, "b"] = np.nan
    alone = np.concatenate([model.predict(rows[place : place + 1]) for place in range(N)])
    np.testing.assert_allclose(model.predict(rows), alone, rtol=1e-9)
    assert np.isfinite(model.score(rows.assign(y=ROWS["y"]), "y"))


def test_counts_are_exact_whatever_is_missing(tmp_path):
    whole, first = (tb.LinearRegression().fit(rows, "y") for rows in (ROWS, ROWS[:100]))
    grown = tb.LinearRegression().fit(ROWS[:100], "y").partial_fit(ROWS[100:], "y")
    merged = first + tb.LinearRegression().fit(ROWS[100:], "y")
    for one in (grown, merged):
        np.testing.assert_allclose(one.predict(ROWS), whole.predict(ROWS), rtol=1e-9)
        np.testing.assert_allclose(
            one.forget(ROWS[100:], "y").predict(ROWS[:100]), first.predict(ROWS[:100]), rtol=1e-9
        )
    whole.save(tmp_path / "model.tally")
    np.testing.assert_array_equal(tb.load(tmp_path / "model.tally").predict(ROWS), whole.predict(ROWS))


def test_dates_are_what_their_parts_are():
    by_hand = FULL.drop(columns="when")
    for part in ("year", "month", "day_of_week", "hour"):
        cells = getattr(FULL["when"].dt, part)
        by_hand[f"when.{part}"] = cells if part == "year" else cells.astype("category")
    model, expected = tb.LinearRegression().fit(FULL, "y"), tb.LinearRegression().fit(by_hand, "y")
    np.testing.assert_allclose(model.predict(FULL), expected.predict(by_hand), rtol=1e-9)
    assert {"when.year", "when.month=2", "when.hour=23"} <= set(model.terms_)
    apart = tb.LinearRegression().fit(FULL.drop(columns="y"), FULL["y"])
    assert apart.feature_names_in_.tolist() == ["a", "c", "b", "when"]
    np.testing.assert_array_equal(apart.predict(FULL.drop(columns="y")), model.predict(FULL))
    as_text = FULL[:3].assign(when=FULL["when"][:3].astype(str))
    np.testing.assert_array_equal(model.predict(as_text), model.predict(FULL[:3]))


def test_an_hour_that_was_never_seen_is_missing():
    rows = FULL[FULL["when"].dt.hour != 3]
    model, unseen = tb.LinearRegression().fit(rows, "y"), FULL[FULL["when"].dt.hour == 3]
    without = tb.LinearRegression().fit(rows, "y")
    assert np.isfinite(model.predict(unseen)).all()
    with pytest.raises(tb.LabelError, match="'q'"):
        without.predict(FULL[:1].assign(c="q"))


def test_a_database_counts_dates():
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")
    with duckdb.connect() as database:
        database.register("t", FULL)
        database.register("holes", ROWS)
        for name, rows in (("t", FULL), ("holes", ROWS)):
            there, here = (tb.LinearRegression().fit(one, "y") for one in (tb.table(database, name), rows))
            np.testing.assert_allclose(there.predict(rows), here.predict(rows), rtol=1e-8)


def test_held_out_rows_may_lack_inputs():
    found = tb.leave_one_out(tb.LinearRegression(estimate="mle"), ROWS, "y")
    expected = tb.leave_one_out(tb.LinearRegression(estimate="mle"), WHOLE, "y")
    assert found.mean_squared_error.value > expected.mean_squared_error.value  # of rows that say less
    assert tb.cross_validate(tb.LinearRegression(), ROWS, "y").mean_squared_error.value > 0


def test_what_is_not_counted_is_said():
    with pytest.warns(DataSourceWarning, match=r"of 300 rows are not counted: .* most often column 'a'\."):
        tb.LinearRegression().fit(ROWS, "y")
    with (
        pytest.raises(tb.DataError, match=r"target 'y' has 0 complete rows .target, all inputs"),
        pytest.warns(DataSourceWarning),
    ):
        tb.LinearRegression().fit(ROWS.assign(z=np.nan), "y")
    prior = tb.LinearNormalInverseGamma(np.zeros(2), np.eye(2), 1.0, 1.0)
    model = tb.LinearRegression(prior=prior).fit(FULL[["a", "b", "y"]], "y")
    with pytest.raises(tb.DataError, match="prior= has a parameter for every term"):
        model.predict([{"a": 1.0}])

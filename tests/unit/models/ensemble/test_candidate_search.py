"""Candidates are tried on a random sample of many rows, whatever their order."""

import numpy as np
import pandas as pd
import pytest

import tallybayes as tb
from tallybayes.data.sampling import sampled_rows


def test_a_period_in_the_rows_is_not_taken_for_a_constant():
    n = 40_000
    rng = np.random.default_rng(0)
    device = np.arange(n) % 2  # of two rows the sample has one
    y = np.where((device == 1) ^ (rng.random(n) < 0.05), "bad", "good")
    rows = {"device": np.array(["a", "b"])[device], "x": rng.normal(size=n)}
    model = tb.AutoClassifier().fit(rows, y)
    assert "device" not in model.leaderboard_.dropped_columns
    assert abs(model.leaderboard_.accuracy - 0.95) < 0.01
    assert abs(model.score(rows, y) - 0.95) < 0.01
    assert (model.leaderboard_.n_rows, model.leaderboard_.n_total) == (20_000, n)
    assert "by 5-fold cross-validation on 20,000 rows sampled at random of 40,000" in repr(model.leaderboard_)
    assert "rows sampled" not in repr(
        tb.AutoClassifier().fit({"x": rng.normal(size=50)}, rng.choice(["a", "b"], 50)).leaderboard_
    )


def test_columns_without_a_known_cell_are_left_out():
    rng = np.random.default_rng(0)
    x = rng.normal(size=60)
    rows = pd.DataFrame({"x": x, "numbers": np.nan, "labels": None, "date": pd.NaT, "constant": 1.0})
    found = tb.AutoClassifier().fit(rows, np.where(x > 0, "a", "b"))
    parts = ["date.year", "date.month", "date.day_of_week", "date.hour"]
    assert found.leaderboard_.dropped_columns == dict.fromkeys(["numbers", "labels", *parts], "no known cell") | {
        "constant": "constant"
    }
    assert all(name in repr(found.leaderboard_) for name in ("numbers", "labels"))


@pytest.mark.parametrize(("column", "value"), [("count", -1.0), ("count", 1.5), ("price", 0.0), ("flag", 2.0)])
def test_a_value_that_no_row_of_the_sample_has_decides_families_too(column, value):
    rng, n = np.random.default_rng(0), 30_000
    y = rng.integers(0, 2, n)
    rows = {
        "count": rng.poisson(2 + 2 * y).astype(float),
        "price": np.exp(rng.normal(y)),
        "flag": (rng.random(n) < 0.2 + 0.5 * y).astype(float),
    }
    place = next(k for k in range(n) if k not in set(sampled_rows(n, 20_000).tolist()))
    rows[column][place] = value
    model = tb.AutoClassifier().fit(rows, y)
    assert model.n_rows_ == n
    assert model.score(rows, y) > 0.8

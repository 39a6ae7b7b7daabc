"""What fades counts half as much after every half-life, whatever batches it came in, in whatever order."""

from datetime import datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tallybayes as tb
from tests.unit.models.streaming.every_kind import KINDS, given_to, learned, rows, same, tallies

N = 40
COLUMNS = {"size": tb.Gaussian(), "eggs": tb.Poisson(), "sky": tb.Categorical()}


@pytest.mark.slow_after(4)
@pytest.mark.parametrize("name", KINDS)
@given(st.lists(st.integers(1, 20), min_size=1, max_size=4), st.floats(0.5, 100))
def test_by_rows_it_is_a_weighted_model(name, sizes, half_life):
    make, _, y = KINDS[name]
    n = sum(sizes)
    frame, end = given_to(name, rows(1, n)), 0
    fading = tb.Decayed(make(), half_life=half_life)
    for size in sizes:
        learned(fading, frame.iloc[end : end + size], y)
        end += size
    weight = 2.0 ** (-np.arange(n)[::-1] / half_life)
    expected = learned(make(), frame, y, sample_weight=weight)
    assert same(fading.model_, expected)
    assert fading.now_ == n


@pytest.mark.slow_after(4)
@pytest.mark.parametrize("name", KINDS)
@given(st.randoms(use_true_random=False))
def test_by_time_in_whatever_order(name, random):
    make, _, y = KINDS[name]
    frame, times = given_to(name, rows(2, N)), np.random.default_rng(3).random(N) * 10
    order = list(range(N))
    random.shuffle(order)
    own = np.random.default_rng(4).random(N)
    fading, start = tb.Decayed(make(), half_life=1.5), 0
    while start < N:
        some = order[start : start + random.randint(10, 25)]
        learned(fading, frame.iloc[some], y, time=times[some], sample_weight=own[some])
        start += len(some)
    expected = learned(make(), frame, y, sample_weight=own * 2.0 ** ((times - times.max()) / 1.5))
    assert same(fading.model_, expected)
    later = tallies(fading.advance(times.max() + 3).model_)
    assert all(one.isclose(all_.scale(0.25), 1e-9) for one, all_ in zip(later, tallies(expected), strict=True))


def test_what_is_ages_old_counts_nothing_and_breaks_nothing():
    x = {"x": [1.0, 2.0, 4.0], "y": ["a", "b", "a"]}
    fading = tb.Decayed(tb.NaiveBayes(), half_life=1).partial_fit(x, "y", time=[0.0, 1.0, 2000.0])
    assert fading.model_.classes_.tolist() == ["a"]
    assert fading.n_rows_ == 1
    fading.partial_fit({"x": [7.0], "y": ["b"]}, "y", time=-1e6)  # as late as can be
    assert fading.n_rows_ == 1
    assert fading.advance(1e7).n_rows_ == 0


def test_weights_by_the_name_of_their_column():
    x = {"x": [1, 0, 1], "w": [1.0, 2.0, 4.0], "y": ["a", "b", "a"]}
    fading = tb.Decayed(tb.NaiveBayes(), half_life=1).partial_fit(x, "y", "w")
    assert fading.model_.tally_["y"].table.tolist() == [4.25, 1.0]
    assert [factor.columns for factor in fading.model_.tally_.factors] == [("y",), ("x",)]


def test_two_add_only_at_the_same_time():
    here = tb.Decayed(tb.NaiveBayes(), half_life=10.0).partial_fit({"x": [1], "y": ["a"]}, "y", time=5)
    there = tb.Decayed(tb.NaiveBayes(), half_life=10.0).partial_fit({"x": [0], "y": ["b"]}, "y", time=15)
    with pytest.raises(tb.StatisticsError, match="advance"):
        here + there
    both = here.advance(15) + there
    assert both.model_.tally_["y"].table.tolist() == [0.5, 1.0]
    assert both.partial_fit({"x": [0], "y": ["b"]}, "y", time=15).n_rows_ == 2.5
    with pytest.raises(tb.StatisticsError, match="half-lives"):
        both + tb.Decayed(tb.NaiveBayes(), half_life=9.0).partial_fit({"x": [0], "y": ["b"]}, "y", time=15)


def test_it_is_saved_and_goes_on(tmp_path):
    start = datetime(2026, 5, 1)
    by_dates = tb.Decayed(tb.NaiveBayes(COLUMNS), half_life=timedelta(days=3))
    by_dates.partial_fit(rows()[:20], "y", time=[start + timedelta(hours=k) for k in range(20)])
    by_rows = tb.Decayed(tb.NaiveBayes(COLUMNS), half_life=5).partial_fit(rows()[:20], "y")
    for fading, times in ((by_dates, [start + timedelta(days=9)] * 20), (by_rows, None)):
        fading.save(tmp_path / "fading")
        again = tb.load(tmp_path / "fading")
        assert repr(again) == repr(fading)
        for one in (fading, again):
            one.partial_fit(rows()[20:40], "y", time=times)
        assert again.model_.tally_ == fading.model_.tally_
        assert again.now_ == fading.now_


def test_what_makes_no_sense_is_refused():
    x = {"x": [1, 0], "y": ["a", "b"]}
    fading = tb.Decayed(tb.NaiveBayes(), half_life=2).partial_fit(x, "y")
    with pytest.raises(tb.NotForgettableError, match=r"tb\.Window"):
        fading.forget(x, "y")
    with pytest.raises(tb.DataError, match="unlike earlier rows"):
        fading.partial_fit(x, "y", time=[1, 2])
    with pytest.raises(tb.DataError, match="half-life in rows"):
        tb.Decayed(tb.NaiveBayes(), half_life=timedelta(1)).partial_fit(x, "y")
    with pytest.raises(tb.DataError, match="positive number"):
        tb.Decayed(tb.NaiveBayes(), half_life=0).partial_fit(x, "y")
    with pytest.raises(tb.DataError, match="0 rows"):
        tb.Decayed(tb.NaiveBayes(), half_life=1).partial_fit({"x": np.zeros(0), "y": np.zeros(0)}, "y")
    with pytest.raises(tb.DataError, match="partial_fit, forget"):
        tb.Decayed(tb.Mixture(2), half_life=1).partial_fit(x, "y")

"""A window is at every moment a model of its rows alone; what it keeps is what it learned."""

from datetime import datetime, timedelta, timezone

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import tallybayes as tb

N = 60


def rows(seed: int = 0, n: int = N) -> pd.DataFrame:
    """Numbers, labels, a class and a number to be told."""
    rng = np.random.default_rng(seed)
    y = rng.choice(["no", "yes", "perhaps"], n)
    return pd.DataFrame(
        {
            "size": rng.normal(size=n) + 1e6,
            "eggs": rng.poisson(3, n),
            "sky": rng.choice(["sun", "rain", "fog", None], n),
            "flag": rng.random(n) < 0.5,
            "y": y,
        }
    )


def naive_bayes():
    return tb.NaiveBayes({"size": tb.Gaussian(), "eggs": tb.Poisson(), "sky": tb.Categorical(), "flag": tb.Bernoulli()})


def network():
    return tb.BayesianNetwork({"flag": ("sky", "y"), "sky": ("y",)})


MODELS = {
    "naive": (naive_bayes, "y"),
    "covariances": (lambda: tb.GaussianDiscriminant(), "y"),
    "nearest": (lambda: tb.NearestClassMean(), "y"),
    "network": (network, None),
    "regression": (lambda: tb.Regression(), "size"),
}


def given_to(name: str, frame: pd.DataFrame) -> pd.DataFrame:
    wanted = {"covariances": ["size", "eggs", "y"], "nearest": ["size", "eggs", "y"], "network": ["sky", "flag", "y"]}
    frame = frame.fillna({"sky": "fog"}) if name == "network" else frame
    return frame[wanted.get(name, list(frame) if name == "naive" else ["size", "eggs", "flag"])]


def learned(model, frame, y, **more):
    return model.partial_fit(frame, **({} if y is None else {"y": y}), **more)


def assert_same(found, expected):
    assert found.tally_.isclose(expected.tally_, 1e-9)


@pytest.mark.parametrize("name", MODELS)
@given(st.lists(st.integers(1, 25), min_size=1, max_size=4), st.integers(1, 40))
def test_a_window_of_rows_is_a_model_of_the_last_ones(name, sizes, length):
    make, y = MODELS[name]
    frame = given_to(name, rows(1, sum(sizes)))
    window, end = tb.Window(make(), rows=length), 0
    for size in sizes:
        learned(window, frame.iloc[end : end + size], y)
        end += size
    last = frame.iloc[max(0, end - length) : end]
    assert_same(window.model_, learned(make(), last, y))
    assert window.n_rows_ == len(last)


@pytest.mark.parametrize("name", MODELS)
@given(st.randoms(use_true_random=False), st.floats(0.05, 1.5))
def test_a_window_of_time_is_a_model_of_what_is_not_too_old_in_whatever_order_it_came(name, random, duration):
    make, y = MODELS[name]
    frame = given_to(name, rows(2))
    times = np.sort(np.random.default_rng(3).random(N)).round(2)
    order = list(range(N))
    random.shuffle(order)
    window, start = tb.Window(make(), duration=duration), 0
    while start < N:
        stop = min(N, start + random.randint(10, 25))
        some = order[start:stop]
        learned(window, frame.iloc[some], y, time=times[some])
        start = stop
    inside = times > times.max() - duration
    assert_same(window.model_, learned(make(), frame[inside], y))
    assert window.now_ == times.max()
    assert window.n_late_ <= (~inside).sum()


def test_weights_and_models_that_have_chosen():
    frame = rows(4, 200)
    weight = np.random.default_rng(5).random(200)
    chosen = tb.AveragedOneDependence().fit(rows(6, 300), "y").without_rows()
    window = tb.Window(chosen, rows=50)
    for start in range(0, 200, 30):
        window.partial_fit(frame[start : start + 30], "y", weight[start : start + 30])
    expected = chosen.without_rows().partial_fit(frame[150:], "y", weight[150:])
    assert window.model_.tally_.isclose(expected.tally_, 1e-9)
    np.testing.assert_allclose(window.predict_proba(frame), expected.predict_proba(frame), rtol=1e-9)


def test_a_mixture_that_chose_itself():
    frame = rows(7, 120).drop(columns="flag")
    window = tb.Window(tb.Chosen(), rows=40).partial_fit(frame[:40], "y")
    window.partial_fit(frame[40:90], "y")
    expected = tb.Chosen(choice=window.model_.choice_).fit(frame[50:90], "y")
    np.testing.assert_allclose(window.predict_proba(frame), expected.predict_proba(frame), rtol=1e-6)


def test_text_sparse_rows_and_arrays():
    texts = ["win win", "click to win", "the minutes of the meeting", "lunch at noon", "win a prize", "noon"]
    y = np.array([1, 1, 0, 0, 1, 0])
    window = tb.Window(tb.NaiveBayes(tb.Text()), rows=3).partial_fit(texts[:4], y[:4]).partial_fit(texts[4:], y[4:])
    assert_same(window.model_, tb.NaiveBayes(tb.Text()).fit(texts[3:], y[3:]))
    counts = sp.random_array((30, 8), density=0.3, rng=np.random.default_rng(0), format="csr")
    counts.data = np.ceil(counts.data * 5)
    labels = np.arange(30) % 2
    window = tb.Window(tb.NaiveBayes(tb.Multinomial()), rows=10)
    for start in range(0, 30, 7):
        window.partial_fit(counts[start : start + 7], labels[start : start + 7])
    assert_same(window.model_, tb.NaiveBayes(tb.Multinomial()).fit(counts[20:], labels[20:]))
    x = np.arange(60).reshape(30, 2) % 7
    window = tb.Window(tb.NaiveBayes(), rows=10).partial_fit(x[:12], labels[:12])
    x_again = x[12:].copy()
    window.partial_fit(x_again, labels[12:])
    x_again[:] = 0  # whoever gave the rows may use their memory again
    window.partial_fit(x[:3], labels[:3])
    assert_same(window.model_, tb.NaiveBayes().fit(np.r_[x[23:], x[:3]], np.r_[labels[23:], labels[:3]]))


DATES = [datetime(2026, 3, 1, 8, tzinfo=timezone(timedelta(hours=2))) + timedelta(hours=6 * k) for k in range(8)]
NAIVE = [(date - timedelta(hours=2)).replace(tzinfo=None) for date in DATES]


@pytest.mark.parametrize(
    "times",
    [
        DATES,
        NAIVE,
        np.array(NAIVE, "M8[s]"),
        pd.Series(DATES),
        pd.Series(NAIVE),
        pl.Series(NAIVE),
        pd.to_datetime(NAIVE),
    ],
    ids=["zone", "list", "numpy", "pandas zone", "pandas", "polars", "index"],
)
def test_dates_as_people_have_them(times):
    x, y = np.arange(8.0)[:, None], np.arange(8) % 2
    window = tb.Window(tb.NaiveBayes(), duration=timedelta(days=1)).partial_fit(x, y, time=times)
    assert window.n_rows_ == 4
    assert window.now_ == np.datetime64(NAIVE[-1])
    assert "1 day, 0:00:00 until 2026-03-03T00:00:00" in repr(window)
    assert window.advance(NAIVE[-1] + timedelta(hours=12)).n_rows_ == 2
    assert window.advance(NAIVE[0]).n_rows_ == 2


@pytest.mark.parametrize("kind", ["pandas", "polars", "mapping", "rows"])
def test_the_time_may_be_a_column_which_is_not_learned_from(kind):
    table = {"x": [1.0, 2.0, 3.0, 4.0], "t": [10, 20, 30, 40], "y": ["a", "b", "a", "b"]}
    data = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "mapping": dict}.get(
        kind, lambda t: pd.DataFrame(t).to_dict("records")
    )
    window = tb.Window(tb.NaiveBayes(), duration=15).partial_fit(data(table), "y", time="t")
    assert window.n_rows_ == 2
    assert [factor.columns for factor in window.model_.tally_.factors] == [("y",), ("x",)]


@pytest.mark.parametrize("name", MODELS)
def test_it_is_saved_and_goes_on(name, tmp_path):
    make, y = MODELS[name]
    frame, times = given_to(name, rows(8)), np.arange(N) * 1.5
    for kind, options in (("rows", {"rows": 17}), ("time", {"duration": 20.0})):
        when = (lambda part: {}) if kind == "rows" else (lambda part: {"time": times[part]})
        window = tb.Window(make(), **options)
        for start in (0, 7, 20):
            part = slice(start, {0: 7, 7: 20, 20: 40}[start])
            learned(window, frame.iloc[part], y, **when(part))
        window.save(tmp_path / "window")
        again = tb.load(tmp_path / "window")
        assert repr(again) == repr(window)
        assert again.now_ == window.now_
        assert again.model_.tally_ == window.model_.tally_
        for one in (window, again):
            learned(one, frame.iloc[40:50], y, **when(slice(40, 50)))
        assert_same(again.model_, window.model_)
        again.save(tmp_path / "again")
        assert repr(tb.load(tmp_path / "again")) == repr(again)


def test_saved_text_sparse_dates_weights_and_nothing(tmp_path):
    window = tb.Window(tb.NaiveBayes(tb.Text()), rows=2).partial_fit(["a b", "c", "b"], [0, 1, 0], [1.0, 2.0, 0.5])
    counts = tb.Window(tb.NaiveBayes(tb.Multinomial()), rows=3).partial_fit(sp.csr_array(np.eye(4)), [0, 1, 0, 1])
    dated = tb.Window(tb.NaiveBayes(), duration=timedelta(days=2))
    dated.partial_fit(np.eye(2), [True, False], time=np.array(["2026-01-01", "2026-01-02"], "M8[D]"))
    for number, one in enumerate((window, counts, dated)):
        one.save(tmp_path / str(number))
        again = tb.load(tmp_path / str(number))
        assert repr(again) == repr(one)
        assert again.model_.tally_ == one.model_.tally_
    more = tb.load(tmp_path / "0").partial_fit(["d", "e"], [0, 1])
    assert_same(more.model_, tb.NaiveBayes(tb.Text()).fit(["d", "e"], [0, 1]))
    more = tb.load(tmp_path / "1").partial_fit(sp.csr_array(np.ones((3, 4))), [0, 1, 1])
    assert_same(more.model_, tb.NaiveBayes(tb.Multinomial()).fit(sp.csr_array(np.ones((3, 4))), [0, 1, 1]))
    empty = tb.load(tmp_path / "2").advance(np.datetime64("2026-02-01"))
    assert empty.n_rows_ == 0
    empty.save(tmp_path / "empty")
    assert tb.load(tmp_path / "empty").n_rows_ == 0


@pytest.mark.parametrize(
    ("make", "arguments", "said"),
    [
        (lambda: tb.Window(tb.NaiveBayes()), {}, "expected one of them"),
        (lambda: tb.Window(tb.NaiveBayes(), rows=2, duration=3), {}, "expected one of them"),
        (lambda: tb.Window(tb.NaiveBayes(), rows=0), {}, "whole number of at least 1"),
        (lambda: tb.Window(tb.NaiveBayes(), rows=2.5), {}, "whole number"),
        (lambda: tb.Window(tb.NaiveBayes(), duration=-1), {"time": 1}, "positive number"),
        (lambda: tb.Window(tb.NaiveBayes(), duration="week"), {"time": 1}, "positive number"),
        (lambda: tb.Window(tb.NaiveBayes(), duration=1), {}, "Pass time="),
        (lambda: tb.Window(tb.NaiveBayes(), rows=1), {"time": 1}, "leave time= out"),
        (lambda: tb.Window(tb.NaiveBayes(), duration=1), {"time": [1.0]}, r"\(2,\), one for every row"),
        (lambda: tb.Window(tb.NaiveBayes(), duration=1), {"time": [1.0, np.nan]}, "row 1 has no time"),
        (lambda: tb.Window(tb.NaiveBayes(), duration=1), {"time": "when"}, "when"),
        (lambda: tb.Window(tb.NaiveBayes(), duration=1), {"time": NAIVE[:2]}, "dates; expected numbers"),
        (lambda: tb.Window(tb.NaiveBayes(), duration=timedelta(1)), {"time": [1, 2]}, "numbers; expected dates"),
        (lambda: tb.Window(tb.NaiveBayes().fit([[1.0], [2.0]], [0, 1]), rows=3), {}, "without_rows"),
        (lambda: tb.Window(tb.HiddenMarkovModel(), rows=3), {}, "learns and forgets"),
        (lambda: tb.Window("naive", rows=3), {}, "learns and forgets"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(make, arguments, said):
    with pytest.raises(tb.TallybayesError, match=said):
        make().partial_fit(np.array([[1.0], [2.0]]), np.array([0, 1]), **arguments)


def test_an_error_changes_nothing():
    window = tb.Window(tb.NaiveBayes({"x": tb.Poisson()}), rows=2).partial_fit({"x": [1, 2], "y": [0, 1]}, "y")
    before = window.model_.tally_
    with pytest.raises(tb.TallybayesError):
        window.partial_fit({"x": [-1], "y": [0]}, "y")
    assert window.model_.tally_ == before
    assert window.now_ == 2
    assert_same(window.partial_fit({"x": [5, 6], "y": [0, 1]}, "y").model_,
                tb.NaiveBayes({"x": tb.Poisson()}).fit({"x": [5, 6], "y": [0, 1]}, "y"))  # fmt: skip


def test_files_are_gone_through_batch_by_batch(tmp_path):
    pl.DataFrame({"x": [1.0, 2.0], "y": [0, 1]}).write_csv(tmp_path / "rows.csv")
    with pytest.raises(tb.DataError, match="batches"):
        tb.Window(tb.NaiveBayes(), rows=2).partial_fit(str(tmp_path / "rows.csv"), "y")

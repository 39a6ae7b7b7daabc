"""A window is at every moment a model of its rows alone; what it keeps is what it learned."""

import random
from datetime import datetime, timedelta, timezone

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import tallybayes as tb
from tests.unit.models.streaming.every_kind import KINDS, given_to, learned, rows, same

N = 60


def assert_same(found, expected):
    assert same(found, expected)


@pytest.mark.slow_after(4)
@pytest.mark.parametrize("name", KINDS)
@given(st.lists(st.integers(1, 25), min_size=1, max_size=4), st.integers(1, 40), st.booleans())
def test_a_window_of_rows_is_a_model_of_the_last_ones(name, sizes, length, weighted):
    make, _, y = KINDS[name]
    frame = given_to(name, rows(1, sum(sizes)))
    weight = np.random.default_rng(5).choice([0.0, 0.25, 1.0, 3.0], len(frame)) + (np.arange(len(frame)) % 5 == 0)
    told = (lambda part: {"sample_weight": weight[part]}) if weighted else lambda part: {}
    window, end = tb.Window(make(), rows=length), 0
    for size in sizes:
        learned(window, frame.iloc[end : end + size], y, **told(slice(end, end + size)))
        end += size
    last = slice(max(0, end - length), end)
    if weighted and not weight[last].any():  # of which no model is made, but a window may hold them
        assert window.n_rows_ == 0
        return
    assert_same(window.model_, learned(make(), frame.iloc[last], y, **told(last)))
    assert window.n_rows_ == (weight[last].sum() if weighted else len(frame.iloc[last]))


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("name", KINDS)
@given(st.randoms(use_true_random=False), st.floats(0.05, 1.5))
def test_a_window_of_time_is_a_model_of_what_is_not_too_old_in_whatever_order_it_came(name, random, duration):
    make, _, y = KINDS[name]
    frame, weight = given_to(name, rows(2)), np.random.default_rng(4).random(N) + 0.5
    times = np.sort(np.random.default_rng(3).random(N)).round(1)  # many came at the same time
    order = list(range(N))
    random.shuffle(order)
    window, start = tb.Window(make(), duration=duration), 0
    while start < N:
        stop = min(N, start + random.randint(10, 25))
        some = order[start:stop]
        learned(window, frame.iloc[some], y, time=times[some], sample_weight=weight[some])
        start = stop
    inside = times > times.max() - duration
    assert_same(window.model_, learned(make(), frame[inside], y, sample_weight=weight[inside]))
    assert window.now_ == times.max()
    latest = np.maximum.accumulate(times[order])
    assert window.n_late_ == (times[order] <= latest - duration).sum()
    gone = window.advance(times.max() + 2)  # all rows expired, and the window goes on
    assert gone.n_rows_ == 0
    assert_same(learned(gone, frame.iloc[:30], y, time=5.0).model_, learned(make(), frame.iloc[:30], y))


@pytest.mark.parametrize("name", KINDS)
def test_rows_are_taken_out_before_their_time(name):
    make, _, y = KINDS[name]
    frame, times = given_to(name, rows(9)), np.arange(60)
    given = {} if y is None else {"y": y}
    window = tb.Window(make(), duration=40)
    for start in (0, 25, 50):
        learned(window, frame.iloc[start : start + 25], y, time=times[start : start + 25])
    out = [30, 59, 41]
    receipt = window.forget(frame.iloc[out], **given, time=times[out], receipt=True)
    kept = [k for k in range(20, 60) if k not in out]
    never = learned(make(), frame.iloc[kept], y)
    assert_same(window.model_, never)
    assert receipt.rows == 3
    assert tb.verify_receipt(receipt, window, never).ok
    before = window.model_
    with pytest.raises(tb.StatisticsError, match=r"row 1 of 2 is not among the 37 (.|\n)*forgotten already"):
        window.forget(frame.iloc[[40, 10]], **given, time=times[[40, 10]])
    assert window.model_ is before
    learned(window, frame.iloc[:25], y, time=85)  # what is left leaves in its own time, what was taken out not twice
    assert_same(window.model_, learned(make(), frame.iloc[[k for k in kept if k > 45] + list(range(25))], y))


@pytest.mark.parametrize("seed", [9, 24, 39])  # of forty, those in which a model alone refuses to forget the rest
def test_what_rounding_leaves_of_fractions_of_rows_does_not_stop_a_window(seed):
    draw, frame = random.Random(seed), given_to("regression", rows(2))
    weight, times = np.random.default_rng(4).random(N) + 0.5, np.sort(np.random.default_rng(3).random(N)).round(1)
    duration = float(np.random.default_rng(seed).choice([0.05, 0.1, 0.2, 0.3, 0.7, 1.0, 1.5]))
    order, start = list(range(N)), 0
    draw.shuffle(order)
    window = tb.Window(tb.LinearRegression(), duration=duration)
    while start < N:
        some = order[start : start + draw.randint(10, 25)]
        window.partial_fit(frame.iloc[some], "size", weight[some], time=times[some])
        start += len(some)
    inside = times > times.max() - duration
    assert_same(window.model_, tb.LinearRegression().fit(frame[inside], "size", weight[inside]))
    assert window.advance(9.0).n_rows_ == 0


def test_what_is_asked_of_a_window_is_asked_of_its_model():
    frame = rows(11)
    window = tb.Window(tb.NaiveBayes(), rows=40).partial_fit(frame, "y")
    assert tb.evaluate(window, frame, "y").log_loss == tb.evaluate(window.model_, frame, "y").log_loss
    assert repr(tb.audit(window, frame, "y")) == repr(tb.audit(window.model_, frame, "y"))


def test_rows_are_taken_out_by_their_times_only_where_these_are_there():
    table = {"x": [1, 1, 1], "y": ["a", "a", "a"], "t": [1, 2, 3]}
    window = tb.Window(tb.NaiveBayes(), duration=5).partial_fit(table, "y", time="t")
    with pytest.raises(tb.StatisticsError, match="row 0 of 1"):
        window.forget({"x": [1], "y": ["a"], "t": [4]}, "y")
    window.forget({"x": [1], "y": ["a"], "t": [3]}, "y").forget({"x": [1], "y": ["a"]}, "y")
    assert window.advance(6).n_kept_ == 1  # that of time 2


def test_of_equal_rows_the_oldest_is_taken_out_unless_it_is_said_which():
    equal = {"x": [1, 1, 1, 2], "y": ["a", "a", "a", "b"]}
    window = tb.Window(tb.NaiveBayes(), duration=10).partial_fit(equal, "y", [1.0, 2.0, 4.0, 1.0], time=[1, 2, 3, 4])
    one = {"x": [1], "y": ["a"]}
    assert window.forget(one, "y", [2.0]).n_rows_ == 6
    assert window.forget(one, "y", time=3).n_rows_ == 2
    assert window.forget(one, "y").n_rows_ == 1
    with pytest.raises(tb.StatisticsError, match="row 0 of 1 is not among the 1 "):
        window.forget(one, "y")
    assert window.forget({"x": [2], "y": ["b"]}, "y").n_rows_ == 0
    assert window.partial_fit(equal, "y", time=5).n_rows_ == 4


def test_rows_of_every_form_are_found_again(tmp_path):
    texts, labels = ["a b", "c", "b", None], np.array(["p", "q", "p", "q"])
    words = tb.Window(tb.NaiveBayes(tb.Text()), rows=9).partial_fit(texts, labels)
    words.save(tmp_path / "words")
    assert_same(tb.load(tmp_path / "words").forget(["b"], ["p"]).model_, words.forget(["b"], ["p"]).model_)
    counts, flags = sp.csr_array(np.eye(4)), [0, 1, 0, 1]
    window = tb.Window(tb.NaiveBayes(tb.Multinomial()), rows=9).partial_fit(counts, flags)
    assert_same(window.forget(counts[1:3], flags[1:3]).model_,
                tb.NaiveBayes(tb.Multinomial()).fit(counts[[0, 3]], [0, 1]))  # fmt: skip
    x = np.array([[1.0, np.nan], [-0.0, 2.0], [3.0, 4.0]])
    window = tb.Window(tb.NaiveBayes(), rows=9).partial_fit(x, [1, 2, 3]).forget([[0.0, 2.0]], [2])
    assert_same(window.model_, tb.NaiveBayes().fit(x[[0, 2]], [1, 3]))
    assert window.forget(x[:1], [1]).n_rows_ == 1
    frame = pd.DataFrame({"x": [1, 2, 3], "s": ["u", None, "v"], "y": [True, False, True]})
    window = tb.Window(tb.NaiveBayes(), rows=9).partial_fit(frame, "y")
    window.forget(pl.DataFrame({"y": [False], "s": [None], "x": [2.0]}), "y")  # in another order, and of other types
    assert_same(window.model_, tb.NaiveBayes().fit(frame.iloc[[0, 2]], "y"))
    with pytest.raises(tb.DataError, match="no column 's'"):
        window.forget({"x": [1], "y": [True]}, "y")


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
    window = tb.Window(tb.AutoClassifier(), rows=40).partial_fit(frame[:40], "y")
    window.partial_fit(frame[40:90], "y")
    expected = tb.AutoClassifier(spec=window.model_.spec_).fit(frame[50:90], "y")
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


@pytest.mark.slow_after(4)
@pytest.mark.parametrize("name", KINDS)
def test_it_is_saved_and_goes_on(name, tmp_path):
    make, _, y = KINDS[name]
    frame, times = given_to(name, rows(8)), np.arange(N) * 1.5
    for kind, options in (("rows", {"rows": 17}), ("time", {"duration": 20.0})):
        when = (lambda part: {}) if kind == "rows" else (lambda part: {"time": times[part]})
        window = tb.Window(make(), **options)
        for start in (0, 7, 20):
            part = slice(start, {0: 7, 7: 20, 20: 40}[start])
            learned(window, frame.iloc[part], y, **when(part))
        window.save(tmp_path / "window")
        again = tb.load(tmp_path / "window")
        assert repr(again).splitlines()[0] == repr(window).splitlines()[0]
        assert again.now_ == window.now_
        assert_same(again.model_, window.model_)
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


def test_columns_that_are_not_counted_do_no_harm(tmp_path):
    frame = rows(5, 30).assign(at=pd.Timestamp("2026-01-01"), tags=[["a"]] * 30, note="x")
    wanted = {"size": tb.Gaussian(), "sky": tb.Categorical()}
    window = tb.Window(tb.NaiveBayes(wanted), rows=20).partial_fit(frame, "y")
    window.save(tmp_path / "window")
    again = tb.load(tmp_path / "window").partial_fit(frame[:10], "y")
    assert_same(
        again.forget(frame[25:], "y").model_, tb.NaiveBayes(wanted).fit(frame.iloc[[*range(20, 25), *range(10)]], "y")
    )


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
        (lambda: tb.Window(tb.NaiveBayes(), rows=1), {"time": 1}, "omit time="),
        (lambda: tb.Window(tb.NaiveBayes(), duration=1), {"time": [1.0]}, r"\(2,\), one for every row"),
        (lambda: tb.Window(tb.NaiveBayes(), duration=1), {"time": [1.0, np.nan]}, "row 1 has no time"),
        (lambda: tb.Window(tb.NaiveBayes(), duration=1), {"time": "when"}, "when"),
        (lambda: tb.Window(tb.NaiveBayes(), duration=1), {"time": NAIVE[:2]}, "dates; expected numbers"),
        (lambda: tb.Window(tb.NaiveBayes(), duration=timedelta(1)), {"time": [1, 2]}, "numbers; expected dates"),
        (lambda: tb.Window(tb.NaiveBayes().fit([[1.0], [2.0]], [0, 1]), rows=3), {}, "without_rows"),
        (lambda: tb.Window("naive", rows=3), {}, "partial_fit, forget"),
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
    frame = rows(3, 50).assign(t=np.arange(50))
    frame.to_csv(tmp_path / "rows.csv", index=False)
    path = str(tmp_path / "rows.csv")
    window = tb.Window(tb.NaiveBayes(), rows=20).partial_fit(path, "y")
    assert_same(window.model_, tb.NaiveBayes().fit(frame[30:], "y"))
    timed = (
        tb.Window(tb.NaiveBayes(), duration=5).partial_fit(path, "y", time="t").partial_fit(frame[:3].assign(t=52), "y")
    )
    assert timed.time_ == "t"
    assert_same(timed.model_, tb.NaiveBayes().fit(frame.drop(columns="t").iloc[[48, 49, 0, 1, 2]], "y"))
    parts = iter([frame[:10], frame[10:30]])
    assert tb.Window(tb.NaiveBayes(), rows=25).partial_fit(parts, "y").n_rows_ == 25
    with pytest.raises(tb.DataError, match="name of a column"):
        tb.Window(tb.NaiveBayes(), rows=2).partial_fit(path, frame["y"])
    before = window.model_
    with pytest.raises(tb.TallybayesError):
        window.partial_fit(iter([frame[:10], frame[10:20].assign(eggs="many")]), "y")
    assert window.model_ is before
    (tmp_path / "none.csv").write_text("x,y\n")
    with pytest.raises(tb.DataError, match="0 rows"):
        tb.Window(tb.NaiveBayes(), rows=2).partial_fit(str(tmp_path / "none.csv"), "y")


def test_older_rows_of_one_batch_are_not_late():
    rows = {"x": list("abcd"), "y": [0, 1, 0, 1]}
    window = tb.Window(tb.NaiveBayes(), duration=2).partial_fit(rows, "y", time=[0, 1, 5, 6])
    assert (window.n_kept_, window.n_late_) == (2, 0)
    assert "late" not in repr(window)
    window.partial_fit(rows, "y", time=[4.5, 7, 4.75, 5.5])  # 4.75 and 5.5 - 2 < 5: one of them arrives after 7
    assert (window.n_kept_, window.n_late_) == (3, 1)
    assert ", 1 arrived too late, " in repr(window)
    apart = tb.Window(tb.NaiveBayes(), duration=2)
    for batch, times in ((rows, [0, 1, 5, 6]), (rows, [4.5, 7, 4.75, 5.5])):
        for k, time in enumerate(times):
            apart.partial_fit({name: cells[k : k + 1] for name, cells in batch.items()}, "y", time=[time])
    assert (apart.n_kept_, apart.n_late_) == (window.n_kept_, window.n_late_)

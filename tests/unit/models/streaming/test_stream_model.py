"""Windows and fading models of sequences: what comes and goes is a sequence, however long."""

from datetime import datetime, timedelta

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tallybayes as tb

N = 20
START = datetime(2026, 3, 1)


def sequences(seed=0, n=N):
    """Sequences of different lengths, some without a step, with their states."""
    rng = np.random.default_rng(seed)
    lengths = np.where(np.arange(n) % 7 == 3, 0, rng.integers(1, 6, n))
    return [rng.choice(list("abc"), k) for k in lengths], [rng.choice(["hot", "cold"], k) for k in lengths]


@given(st.lists(st.integers(1, 9), min_size=1, max_size=4), st.integers(1, 12), st.booleans(), st.booleans())
def test_a_window_is_a_model_of_the_last_sequences(sizes, length, weighted, end_state):
    X, y = sequences(1, sum(sizes))
    weight, end = np.random.default_rng(2).random(len(X)) + 0.5, 0
    told = (lambda a, b: {"sample_weight": weight[a:b]}) if weighted else lambda a, b: {}
    window = tb.Window(tb.HiddenMarkovModel(end_state=end_state), rows=length)
    for size in sizes:
        window.partial_fit(X[end : end + size], y[end : end + size], **told(end, end + size))
        end += size
    first = max(0, end - length)
    if not sum(map(len, X[first:])):
        return  # a model of no steps does not know its states
    expected = tb.HiddenMarkovModel(end_state=end_state).fit(X[first:], y[first:], **told(first, end))
    assert window.model_.tally_.isclose(expected.tally_, 1e-9)
    assert window.n_kept_ == end - first


@given(st.randoms(use_true_random=False), st.floats(0.5, 30))
def test_by_time_in_whatever_order(random, span):
    X, y = sequences(3)
    times = np.sort(np.random.default_rng(4).random(N) * 10).round()
    order = list(range(N))
    random.shuffle(order)
    window = tb.Window(tb.HiddenMarkovModel(), duration=span)
    fading = tb.Decayed(tb.HiddenMarkovModel(), half_life=span)
    for some in (order[:8], order[8:]):
        for one in (window, fading):
            one.partial_fit([X[k] for k in some], [y[k] for k in some], time=times[some])
    inside = np.flatnonzero(times > times.max() - span)
    expected = tb.HiddenMarkovModel().fit([X[k] for k in inside], [y[k] for k in inside])
    assert window.model_.tally_.isclose(expected.tally_, 1e-9)
    weighted = tb.HiddenMarkovModel().fit(X, y, sample_weight=2.0 ** ((times - times.max()) / span))
    assert fading.model_.tally_.isclose(weighted.tally_, 1e-9)


def test_saved_in_the_middle_and_taken_out_again(tmp_path):
    X, y = sequences()
    window = tb.Window(tb.HiddenMarkovModel(), rows=9).partial_fit(X[:12], y[:12], np.arange(12) + 1.0)
    window.save(tmp_path / "window")
    again = tb.load(tmp_path / "window")
    assert repr(again) == repr(window) == "Window of the last 9 sequences: 9 sequences, HiddenMarkovModel()"
    for one in (window, again):
        one.partial_fit(X[12:], y[12:], np.ones(8))
    assert again.model_.tally_ == window.model_.tally_
    receipt = again.forget(X[12:14], y[12:14], receipt=True)
    never = tb.HiddenMarkovModel().fit(X[11:12] + X[14:], y[11:12] + y[14:], sample_weight=[12.0] + [1.0] * 6)
    assert tb.verify_receipt(receipt, again, never).ok
    with pytest.raises(tb.StatisticsError, match="sequence 0 of 1 is not among the 7"):
        again.forget(X[12:13], y[12:13])
    assert [len(part) for part in window.predict(X[:3])] == [len(part) for part in X[:3]]
    assert window.predict_proba(X[:2])[0].shape == (len(X[0]), 2)


def test_a_frame_of_steps_whose_sequences_came_when_their_last_step_did():
    X, y = sequences()
    steps = [
        {"s": k, "place": i, "word": word, "tag": tag, "at": START + timedelta(hours=k, minutes=i)}
        for k, (words, tags) in enumerate(zip(X, y, strict=True))
        for i, (word, tag) in enumerate(zip(words, tags, strict=True))
    ]
    frame = pd.DataFrame(steps[::-1])
    window = tb.Window(tb.HiddenMarkovModel(), duration=timedelta(hours=3))
    window.partial_fit(frame, "tag", time="at", sequence="s", order="place")
    assert window.now_ == np.datetime64(frame["at"].max())
    last = frame.groupby("s")["at"].transform("max") > frame["at"].max() - timedelta(hours=3)
    expected = tb.HiddenMarkovModel().fit(frame[last].drop(columns="at"), "tag", sequence="s", order="place")
    assert window.model_.tally_.isclose(expected.tally_)
    later = frame[frame["s"] == 1].assign(at=START + timedelta(days=9))
    assert window.partial_fit(later, "tag", sequence="s", order="place").n_kept_ == 1


@pytest.mark.parametrize(
    ("model", "arguments", "said"),
    [
        (tb.HiddenMarkovModel(components=2), {}, "components= needs EM"),
        (tb.HiddenMarkovModel(gaps="gap"), {}, "gaps= needs EM"),
        (tb.HiddenMarkovModel(2), {"y": None}, "Pass y, the states"),
        (tb.HiddenMarkovModel(), {"y": [["p", None], ["q"]]}, "step 1 of all has no state"),
        (tb.HiddenMarkovModel(), {"y": [["p"], ["q"]]}, "sequence 0 has 2 steps"),
        (tb.HiddenMarkovModel(), {"sample_weight": [1.0]}, "one for every sequence"),
        (
            tb.NaiveBayes(),
            {"X": [[1.0], [2.0]], "y": [0, 1], "lengths": [1, 1]},
            "lengths= is a parameter of hidden Markov models",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(model, arguments, said):
    told = {"X": [["a", "b"], ["b"]], "y": [["p", "q"], ["q"]], **arguments}
    for stream in (tb.Window(model, rows=3), tb.Decayed(model, half_life=3)):
        with pytest.raises(tb.TallybayesError, match=said):
            stream.partial_fit(**told)
        assert not hasattr(stream, "model_")


def test_a_sequence_without_steps_has_no_time_of_its_own():
    window = tb.Window(tb.HiddenMarkovModel(), duration=3)
    with pytest.raises(tb.DataError, match="sequence 1 has no step"):
        window.partial_fit({"v": list("ab"), "t": [1, 2]}, ["p", "q"], time="t", lengths=[2, 0])
    assert window.partial_fit({"v": list("ab")}, ["p", "q"], time=[1, 2], lengths=[2, 0]).n_kept_ == 2

"""The number of states: found again where it is known, on what was held out, and the same every time."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import tallybayes as tb

mpl.use("Agg")

CRITERIA = ["held_out", "evidence_bound", "bic", "icl"]


def calls(n_sequences, n_steps, seed=0):
    rng = np.random.default_rng(seed)
    busy = np.cumsum(rng.random((n_sequences, n_steps)) < 0.05, axis=1) % 2
    return list(rng.poisson(np.where(busy, 14, 3)))


def choose(data, *given, columns=None, **options):
    model = tb.HiddenMarkovModel(columns=tb.Poisson() if columns is None else columns, max_iter=300)
    return tb.select_n_states(model, data, *given, **{"folds": 3, "n_init": 2, **options})


@pytest.mark.slow
@pytest.mark.parametrize("by", CRITERIA)
@pytest.mark.parametrize("n_sequences", [1, 6])
def test_the_number_that_made_them_is_found_again(by, n_sequences):
    found = choose(calls(n_sequences, 240 // n_sequences), [1, 2, 3], by)
    assert found.n_states == 2
    assert found.model.n_states == 2
    assert len(found.model.states_) == 2
    assert found.by == by
    assert found.candidates == [1, 2, 3]


@pytest.mark.slow
def test_whole_sequences_are_held_out():
    data = calls(4, 30)
    found = choose(data, [2], folds=4, random_state=3)
    assert "4 sequences held out in 4 folds" in repr(found)
    model = tb.HiddenMarkovModel(2, tb.Poisson(), max_iter=300, n_init=2)
    rng = np.random.default_rng(3)
    model.random_state = int(rng.integers(2**31))
    total = sum(
        model.fit([each for k, each in enumerate(data) if k != out]).log_likelihood([data[out]]) for out in range(4)
    )
    assert found.scores[0].value == pytest.approx(-total / np.log(2) / 120)
    assert found.scores[0].low < found.scores[0].value < found.scores[0].high


@pytest.mark.slow
def test_of_one_sequence_stretches_are_judged_given_the_rest():
    (data,) = calls(1, 60)
    found = choose([data], [2], folds=3, random_state=3)
    assert "1 sequence: 3 segments held out in turn" in repr(found)
    model = tb.HiddenMarkovModel(2, tb.Poisson(), max_iter=300, n_init=2)
    model.random_state = int(np.random.default_rng(3).integers(2**31))
    total = 0.0
    for first in (0, 20, 40):
        rest = data.astype(float)
        rest[first : first + 20] = np.nan
        model.fit([rest])
        total += model.log_likelihood([data]) - model.log_likelihood([rest])
    assert found.scores[0].value == pytest.approx(-total / np.log(2) / 60)


@pytest.mark.slow
def test_the_same_again_gives_the_same():
    data = calls(5, 40)
    first, second = (choose(data, [1, 2]) for _ in range(2))
    pd.testing.assert_frame_equal(first.to_frame(), second.to_frame())
    assert first.model.tally_ == second.model.tally_


def test_the_icl_takes_the_entropy_and_the_bound_is_that_of_the_model():
    found = choose(calls(3, 40), [1, 2], "icl")
    frame = found.to_frame()
    for model, line in zip(found.models, frame.itertuples(), strict=True):
        assert line.icl == pytest.approx(model.bic_ + 2 * model._em_result.entropy)
        assert line.evidence_bound == model.evidence_lower_bound_
        assert line.bic == model.bic_
    assert frame.icl[0] == pytest.approx(frame.bic[0])  # one state is known


@pytest.mark.slow
def test_every_way_sequences_come_with_weights_and_empty_ones():
    data = calls(4, 30)
    by_list = choose([*data, []], [1, 2], sample_weight=[1, 1, 1, 1, 5])
    flat = choose(np.concatenate(data), [1, 2], "held_out", [30] * 4)
    frame = pd.DataFrame({"who": np.repeat(list("abcd"), 30), "calls": np.concatenate(data)})
    by_frame = choose(frame, [1, 2], columns={"calls": tb.Poisson()}, sequence="who")
    for other in (flat, by_frame):
        assert [score.value for score in other.scores] == pytest.approx([score.value for score in by_list.scores])
    without = choose([*data, data[0]], [1, 2], sample_weight=[1, 1, 1, 1, 0])
    assert [score.value for score in without.scores] == pytest.approx([score.value for score in by_list.scores])


@pytest.mark.slow
@pytest.mark.parametrize("n_sequences", [1, 3])
def test_labels_and_several_columns(n_sequences):
    rng = np.random.default_rng(0)
    steps = [
        {"n": each, "kind": np.where(each + rng.normal(size=len(each)) > 8, "many", "few")}
        for each in calls(n_sequences, 120 // n_sequences)
    ]
    found = choose(steps, [1, 2], columns={"n": tb.Poisson(), "kind": tb.Categorical()})
    assert found.n_states == 2


@pytest.mark.slow
def test_silent_steps_stay_where_steps_are_held_out():
    (data,) = calls(1, 60)
    heard = np.flatnonzero(np.arange(60) % 5 > 0)
    steps = {"calls": data[heard], "silent": np.diff(heard, prepend=-1) - 1}
    model = tb.HiddenMarkovModel(columns={"calls": tb.Poisson()}, gaps="silent", max_iter=300)
    found = tb.select_n_states(model, [steps], [1, 2], folds=2, n_init=1)
    assert np.isfinite([score.value for score in found.scores]).all()
    assert found.n_states == 2


def test_a_column_whose_absence_is_a_value_is_not_blanked():
    heat = [{"heat": [1.0, None, 2.0, 5.0, None, 6.0] * 5}]
    with pytest.raises(tb.DataError, match="missing values of 'heat' are informative"):
        choose(heat, [1, 2], columns={"heat": tb.WithMissing(tb.Gaussian())})
    found = choose(heat, [1, 2], "evidence_bound", columns={"heat": tb.WithMissing(tb.Gaussian())})
    assert found.n_states in (1, 2)


def test_tables_and_what_is_behind():
    found = choose(calls(12, 20), [1, 2], folds=2, n_init=1)
    lines = repr(found).splitlines()
    assert lines[0] == "2 states, by bits per step held out (lower is better)"
    assert [line[0] for line in lines[2:4]] == [" ", "*"]
    assert found.excess_loss(1).low > 0
    assert found.excess_loss(2).value == 0
    assert "bits per step" in found._repr_html_()
    with pytest.raises(tb.DataError, match=r"n_states is 9; expected one of \[1, 2\]"):
        found.excess_loss(9)
    other = choose(calls(4, 30), [2], "bic")
    with pytest.raises(tb.DataError, match="no steps were held out"):
        other.excess_loss(2)


def test_what_did_not_converge_is_said():
    model = tb.HiddenMarkovModel(columns=tb.Poisson(), max_iter=2)
    found = tb.select_n_states(model, calls(2, 30), [2], "bic", n_init=1)
    assert "EM did not converge with 2 states" in repr(found)
    assert not found.to_frame().converged.any()


def test_what_could_not_be_learned_is_said():
    # Two states fall in on one value each: maximum likelihood has no bound there. One state does not.
    model = tb.HiddenMarkovModel(columns=tb.Gaussian(), estimate="mle")
    found = tb.select_n_states(model, [0.0, 0.0, 0.0, 9.0, 9.0, 9.0] * 3, [1, 2], folds=2, n_init=1)
    assert found.n_states == 1
    assert found.models[1] is None
    assert "The fit with 2 states failed: " in repr(found)
    assert np.isnan(found.scores[1].value)
    assert np.isnan(found.excess_loss(2).value)
    with pytest.raises(tb.EstimateError):
        tb.select_n_states(model, [0.0, 0.0, 0.0, 9.0, 9.0, 9.0] * 3, [2], n_init=1)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"candidates": [0, 1]}, "candidates is"),
        ({"candidates": []}, "candidates is"),
        ({"candidates": [2, 2]}, "candidates is"),
        ({"by": "aicc"}, "by is 'aicc'"),
        ({"folds": 1}, "folds is 1"),
        ({"X": [[3]]}, "there is 1 step in all"),
        ({"X": [[]]}, "no sequence has steps"),
    ],
    ids=["zero", "none", "twice", "word", "fold", "step", "empty"],
)
def test_what_makes_no_sense(options, words):
    asked = {"X": [[1, 2, 3, 4]], "candidates": [1], **options}
    with pytest.raises(tb.DataError, match=words):
        choose(asked.pop("X"), **asked)


def test_of_chains_only():
    with pytest.raises(tb.DataError, match="expected a HiddenMarkovModel"):
        tb.select_n_states(tb.Mixture(), [[1.0], [2.0]])


@pytest.mark.slow
@pytest.mark.parametrize("by", ["held_out", "bic"])
def test_the_picture(by):
    found = choose(calls(4, 30), [1, 3, 2], by)
    picture = found.plot()
    frame = picture.to_frame()
    assert frame.n_states.tolist() == [1, 2, 3]
    assert frame.best.tolist() == [False, True, False]
    assert picture.axes[0].get_ylabel() == found.criterion
    plt.close("all")

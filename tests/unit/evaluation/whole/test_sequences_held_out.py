"""Sequences held out by subtraction are told by the model refitted on the others, its priors held."""

import numpy as np
import pytest

import tallybayes as tb


def sequences(kind, seed=0):
    rng = np.random.default_rng(seed)
    X, y = [], []
    for length in (6, 1, 9, 4, 0, 7, 5, 8):
        state = np.cumsum(rng.random(length) < 0.3) % 2
        y.append(state.tolist())
        X.append(rng.normal(2.0 * state) if kind == "numbers" else (state + rng.integers(0, 2, length)).tolist())
    return X, y


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("end_state", [False, True])
@pytest.mark.parametrize("estimate", ["bayes", "map", "mle"])
@pytest.mark.parametrize("kind", ["numbers", "labels"])
def test_leaving_one_out_is_refitting(kind, estimate, end_state):
    X, y = sequences(kind)
    family = tb.Gaussian() if kind == "numbers" else tb.Categorical(levels=(0, 1, 2))
    model = tb.HiddenMarkovModel(columns=family, estimate=estimate, end_state=end_state)
    found = tb.leave_one_out(model, X, y)
    prior = {part: belief for part, belief in found.model.prior_.items() if isinstance(part, str)}
    prior["emission"] = next(belief for part, belief in found.model.prior_.items() if not isinstance(part, str))
    steps = np.cumsum([0, *map(len, X)])
    for place in range(len(X)):
        if not len(X[place]):
            continue
        rest = [k for k in range(len(X)) if k != place]
        other = tb.HiddenMarkovModel(columns=family, estimate=estimate, end_state=end_state)
        if estimate != "mle":
            other.set_params(prior=prior)
        other.fit([X[k] for k in rest], [y[k] for k in rest])
        assert found.log_likelihood[place] == pytest.approx(other.score_samples([X[place]])[0], abs=1e-9)
        shown = np.exp(found.log_proba[steps[place] : steps[place + 1]])
        np.testing.assert_allclose(shown, other.predict_proba([X[place]])[0], atol=1e-9)


def test_folds_of_sequences_and_groups():
    X, y = sequences("numbers")
    model = tb.HiddenMarkovModel()
    found = tb.cross_validate(model, X, y, folds=3)
    assert sorted(set(found.fold.tolist())) == [0, 1, 2]
    assert len(found.codes) == sum(map(len, X))
    grouped = tb.cross_validate(model, X, y, folds=2, groups=[0, 0, 1, 1, 2, 2, 3, 3])
    assert all(grouped.fold[k] == grouped.fold[k + 1] for k in (0, 2, 4, 6))
    assert found.model.tally_ == tb.HiddenMarkovModel().fit(X, y).tally_
    assert 0 <= found.accuracy.value <= 1


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("states", [["a", "a", "a"], [None, "a", "hot"], [None] * 3], ids=str)
def test_sequences_without_weight_are_absent(states):
    X, y = [[3, 3, 2], [1, 1, 2], [1, 2, 3]], [["hot", "hot", "cold"], ["cold"] * 3, ["cold", "hot", "hot"]]
    model = tb.HiddenMarkovModel(columns=tb.Categorical())
    expected = tb.leave_one_out(model, X, y)
    found = tb.leave_one_out(model, [[1, 9, 2], *X], [states, *y], sample_weight=[0, 1, 1, 1])
    assert found.classes.tolist() == ["cold", "hot"]
    assert found.model.tally_ == expected.model.tally_
    np.testing.assert_array_equal(found.log_proba[3:], expected.log_proba)
    np.testing.assert_array_equal(found.log_likelihood[1:], expected.log_likelihood)
    assert (found.log_loss, found.confusion_matrix.tolist()) == (expected.log_loss, expected.confusion_matrix.tolist())

"""Steps of a hidden Markov model that nobody saw, however many: `gaps=`."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import poisson
from sklearn.base import clone

import tallybayes as tb

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def calls(n=3, seed=0):
    """Sequences of counts of which some are not seen: with the silent steps left out, and with them there, missing."""
    rng = np.random.default_rng(seed)
    short, long, seen = [], [], []
    for _ in range(n):
        states = np.cumsum(rng.random(30) < 0.2) % 2
        counts = rng.poisson(np.where(states, 9, 3)).astype(float)
        kept = rng.random(30) < 0.6
        kept[[0, -1]] = True
        places = np.flatnonzero(kept)
        short.append({"calls": counts[places], "missed": np.diff(places, prepend=-1) - 1})
        long.append({"calls": np.where(kept, counts, np.nan)})
        seen.append(places)
    return short, long, seen


def chain(estimate="bayes", **options):
    return tb.HiddenMarkovModel(2, {"calls": tb.Poisson()}, estimate=estimate, random_state=0, max_iter=20, **options)


@pytest.mark.slow
@pytest.mark.parametrize("estimate", ["mle", "map", "bayes"])
@pytest.mark.parametrize("start", [None, "stationary"])
def test_as_if_they_were_missing(estimate, start):
    short, long, seen = calls()
    known = tb.HiddenMarkovModel.from_tables(
        [0.5, 0.5], [[0.8, 0.2], [0.2, 0.8]], {"calls": {0: {"rate": 3.0}, 1: {"rate": 9.0}}}
    )
    settings = {"estimate": estimate, "start": start, "max_iter": 20, "tol": 1e-15, "columns": {"calls": tb.Poisson()}}
    prior = {"emission": {"calls": tb.Gamma(2.0, 0.5)}}
    one = tb.HiddenMarkovModel(prior=prior, **settings).fit(long, initial=known)
    other = tb.HiddenMarkovModel(prior=prior, gaps="missed", **settings).fit(short, initial=known)
    np.testing.assert_allclose(other.history_, one.history_, rtol=1e-9)
    np.testing.assert_allclose(other.transition_, one.transition_, rtol=1e-6)
    np.testing.assert_allclose(other.score_samples(short), one.score_samples(long), rtol=1e-7)
    for found, expected, places in zip(other.predict_proba(short), one.predict_proba(long), seen, strict=True):
        np.testing.assert_allclose(found, expected[places], atol=1e-6)
    np.testing.assert_allclose(other.predict_next(short, 3), one.predict_next(long, 3), atol=1e-6)
    assert (np.diff(other.history_) > -1e-8).all()


def test_labelled_steps_with_silent_ones_between_are_expected(tmp_path):
    rng = np.random.default_rng(1)
    short, long, seen = calls()
    y = [rng.integers(0, 2, len(places)) for places in seen]
    wide = []
    for labels, places in zip(y, seen, strict=True):
        full = np.full(30, None)
        full[places] = labels
        wide.append(full)
    options = {"columns": {"calls": tb.Poisson()}, "max_iter": 300, "tol": 1e-10}
    model = tb.HiddenMarkovModel(gaps="missed", **options).fit(short, y)
    other = tb.HiddenMarkovModel(**options).fit(long, wide)
    assert model.tally_.soft
    np.testing.assert_allclose(model.transition_, other.transition_, atol=1e-3)  # the two set out apart
    joint = model.log_joint(short, y)
    paths = [_sum_over_silent(model, steps, labels) for steps, labels in zip(short, y, strict=True)]
    np.testing.assert_allclose(joint, paths)
    model.save(tmp_path / "m.tally")
    loaded = tb.load(tmp_path / "m.tally")
    assert loaded.gaps == "missed"
    np.testing.assert_array_equal(loaded.score_samples(short), model.score_samples(short))
    with pytest.raises(tb.LabelError, match="silent steps have no state"):
        model.partial_fit(short, y)


def _sum_over_silent(model, steps, labels):
    value, now = 0.0, model.start_
    for count, gap, label in zip(steps["calls"], steps["missed"], labels, strict=True):
        now = now @ np.linalg.matrix_power(model.transition_, int(gap))
        value += np.log(now[label]) + poisson.logpmf(count, model.emission_["calls"][label, 0])
        now = model.transition_[label]
    return value


def test_without_silent_steps_nothing_changes():
    rng = np.random.default_rng(0)
    X = [{"calls": rng.poisson(4, 8), "missed": np.zeros(8)} for _ in range(3)]
    bare = [{"calls": part["calls"]} for part in X]
    y = [rng.integers(0, 2, 8) for _ in X]
    options = {"columns": {"calls": tb.Poisson()}}
    model = tb.HiddenMarkovModel(gaps="missed", **options).fit(X, y)
    assert model.tally_ == tb.HiddenMarkovModel(**options).fit(bare, y).tally_
    assert not model.tally_.soft
    before = model.transition_
    assert (model.partial_fit(X[:1], y[:1]).transition_ != before).any()
    np.testing.assert_array_equal(model.forget(X[:1], y[:1]).transition_, before)
    assert list(model.columns_) == ["calls"]


@pytest.mark.slow
def test_a_frame_an_array_and_cross_validation():
    short, _, _ = calls(6)
    frames = [pd.DataFrame(part) for part in short]
    model = chain(gaps="missed").fit(frames)
    together = pd.concat(frames, keys=range(6), names=["who", "step"]).reset_index()
    again = chain(gaps="missed").fit(together, sequence="who", order="step")
    np.testing.assert_allclose(again.transition_, model.transition_)
    arrays = [np.stack([part["calls"], part["missed"]], axis=1) for part in short]
    plain = tb.HiddenMarkovModel(2, tb.Poisson(), gaps=1, random_state=0, max_iter=20).fit(arrays)
    np.testing.assert_allclose(plain.transition_, model.transition_)
    held = chain(gaps="missed", prior={"emission": {"calls": tb.Gamma(2.0, 0.5)}})  # the default goes by all rows
    alone = [clone(held).fit(short[:k] + short[k + 1 :]).score_samples(short[k : k + 1])[0] for k in range(6)]
    held = tb.leave_one_out(held, short)
    np.testing.assert_allclose(held.log_density, alone)
    np.testing.assert_allclose(tb.evaluate(model, short).log_density, model.score_samples(short))


@pytest.mark.parametrize(("missed", "told"), [([0, -1], "-1"), ([0, 0.5], "0.5"), ([0, None], "None"), ([0, "x"], "x")])
def test_gaps_that_are_none(missed, told):
    with pytest.raises(tb.DataError, match=f"the silent steps before each.*{told}.*at step 1 of all"):
        chain(gaps="missed").fit([{"calls": [1, 2], "missed": np.array(missed, dtype=object)}])


def test_what_goes_from_step_to_step_is_refused():
    short, _, _ = calls()
    model = chain(gaps="missed").fit(short)
    for question in ("predict_pairs", "forward", "backward", "trellis"):
        with pytest.raises(tb.DataError, match="silent steps lie between these"):
            getattr(model, question)(short)
    with pytest.raises(tb.DataError, match="missed"):
        model.predict([{"calls": [1, 2]}])


def test_behind_silent_steps_states_may_have_come_another_way():
    X, y = [{"calls": [1, 5, 9], "missed": [0, 1, 0]}], [["x", "z", "z"]]
    allowed = [("x", "x"), ("x", "y"), ("y", "y"), ("y", "z"), ("z", "z")]
    options = {"columns": {"calls": tb.Poisson()}, "allowed": allowed, "gaps": "missed"}
    more = [{"calls": [1, 2, 3, 5], "missed": [0, 0, 0, 0]}], [["x", "y", "y", "z"]]
    model = tb.HiddenMarkovModel(**options).fit(X + more[0], y + more[1])
    assert model.transition_[0, 2] == 0
    X[0]["missed"] = [0, 0, 0]
    with pytest.raises(tb.DataError, match="step 1 of sequence 0 goes from 'x' to 'z'"):
        tb.HiddenMarkovModel(**options).fit(X + more[0], y + more[1])

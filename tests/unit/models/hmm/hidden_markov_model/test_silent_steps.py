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


def test_labeled_steps_with_silent_ones_between_are_expected(tmp_path):
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
    with pytest.raises(tb.LabelError, match="has unobserved time steps, whose states are unknown"):
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


@pytest.fixture(scope="module")
def both():
    """The same chain, told of silent steps and told of missing ones; with an end, which may come in them, too."""
    tables = ([0.4, 0.6], [[0.8, 0.2], [0.3, 0.7]], {"calls": {0: {"rate": 3.0}, 1: {"rate": 9.0}}}, [0.01, 0.02])
    return tb.HiddenMarkovModel.from_tables(*tables, gaps="missed"), tb.HiddenMarkovModel.from_tables(*tables)


def test_messages_and_surprise_are_those_of_missing_steps(both):
    model, other = both
    short, long, seen = calls()
    for question in ("forward", "backward"):
        for found, expected, places in zip(getattr(model, question)(short), getattr(other, question)(long), seen,
                                           strict=True):  # fmt: skip
            np.testing.assert_allclose(found.log, expected.log[places], atol=1e-10)
            np.testing.assert_allclose(found.log_scale, expected.log_scale[places], atol=1e-10)
    for found, expected, places, steps in zip(model.surprisal(short), other.surprisal(long), seen, short, strict=True):
        # That it went on through the silent steps is part of the one after them.
        whole = [expected[k - gap : k + 1].sum() for k, gap in zip(places, steps["missed"].astype(int), strict=True)]
        np.testing.assert_allclose(found, whole, atol=1e-10)
    for found, expected, places in zip(model.tail_proba(short), other.tail_proba(long), seen, strict=True):
        np.testing.assert_allclose(found, expected[places], atol=1e-10)


def test_pairs_are_of_steps_that_are_seen(both):
    model, other = both
    short, long, seen = calls()
    told = zip(
        model.predict_transition_proba(short),
        other.predict_transition_proba(long),
        other.predict_proba(long),
        seen,
        strict=True,
    )
    for pairs, whole, proba, places in told:
        np.testing.assert_allclose(pairs.sum(axis=2), proba[places[:-1]], atol=1e-10)
        np.testing.assert_allclose(pairs.sum(axis=1), proba[places[1:]], atol=1e-10)
        side_by_side = np.flatnonzero(np.diff(places) == 1)
        np.testing.assert_allclose(pairs[side_by_side], whole[places[side_by_side]], atol=1e-10)


def test_paths_of_steps_that_are_seen(both):
    model, _ = both
    short, _, _ = calls()
    best, viterbi = model.best_paths(short, 3), model.predict(short)
    for found, path, trellis, total in zip(
        best, viterbi, model.trellis(short), model.score_samples(short), strict=True
    ):
        np.testing.assert_array_equal(found.paths[0], path)
        np.testing.assert_array_equal(trellis.path, path)
        assert trellis.log_prob == pytest.approx(found.log_prob[0])
        assert (np.diff(found.log_prob) <= 0).all()
        assert found.probability[0] == pytest.approx(np.exp(found.log_prob[0] - total))
    steps = [{"calls": part["calls"][:6], "missed": part["missed"][:6]} for part in short]
    for found, part in zip(model.best_paths(steps, 5), steps, strict=True):
        np.testing.assert_allclose(model.log_joint([part] * 5, list(found.paths)), found.log_prob)
    drawn = model.sample_paths(short, 4000, random_state=0)
    for paths, proba in zip(drawn, model.predict_proba(short), strict=True):
        np.testing.assert_allclose(np.mean(paths == 1, axis=0), proba[:, 1], atol=0.04)


def test_a_filter_is_told_of_silent_steps(both, tmp_path):
    model, other = both
    short, long, _ = calls(1)
    now, whole = model.online_filter(), other.online_filter()
    for number, (count, gap) in enumerate(zip(short[0]["calls"], short[0]["missed"], strict=True)):
        now.update({"calls": count, "missed": gap})
        if number == 5:
            now.save(tmp_path / "now.tally")
            now = tb.load(tmp_path / "now.tally")
    for count in long[0]["calls"]:
        whole.update({"calls": count})
    np.testing.assert_allclose(now.proba, whole.proba, atol=1e-10)
    np.testing.assert_allclose(now.proba, model.filter_proba(short)[0][-1], atol=1e-10)
    assert now.log_likelihood == pytest.approx(whole.log_likelihood)
    behind = model.online_filter()
    behind.update({"calls": None, "missed": 10**6})  # in the long run
    moves = model.transition_ * (1 - model.end_)[:, None]
    first = np.abs(np.linalg.eig(moves.T)[1][:, np.linalg.eig(moves.T)[0].argmax()])
    np.testing.assert_allclose(behind.proba, first / first.sum(), atol=1e-9)


def test_what_is_about_every_step_is_refused(both):
    model, _ = both
    short, _, _ = calls()
    with pytest.raises(tb.DataError, match="has unobserved time steps, and this method needs every time step"):
        model.expected_visits(short)
    with pytest.raises(tb.DataError, match="missed"):
        model.predict([{"calls": [1, 2]}])


def test_behind_silent_steps_states_may_have_come_another_way():
    X, y = [{"calls": [1, 5, 9], "missed": [0, 1, 0]}], [["x", "z", "z"]]
    allowed = [("x", "x"), ("x", "y"), ("y", "y"), ("y", "z"), ("z", "z")]
    options = {"columns": {"calls": tb.Poisson()}, "allowed_transitions": allowed, "gaps": "missed"}
    more = [{"calls": [1, 2, 3, 5], "missed": [0, 0, 0, 0]}], [["x", "y", "y", "z"]]
    model = tb.HiddenMarkovModel(**options).fit(X + more[0], y + more[1])
    assert model.transition_[0, 2] == 0
    X[0]["missed"] = [0, 0, 0]
    with pytest.raises(tb.DataError, match="step 1 of sequence 0 goes from 'x' to 'z'"):
        tb.HiddenMarkovModel(**options).fit(X + more[0], y + more[1])

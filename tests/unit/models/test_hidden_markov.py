"""Hidden Markov models: counting, the three problems, sequences however given, and what must be exactly right."""

import itertools
import warnings

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import tallybayes as tb
from tallybayes.errors import DataError, FileError, LabelError, NotForgettableError, StatisticsError

mpl.use("Agg")

DIARY = [[3, 3, 2], [1, 1, 2], [1, 2, 3]]
WEATHER = [["hot", "hot", "cold"], ["cold", "cold", "cold"], ["cold", "hot", "hot"]]


def ice_cream(estimate="mle", **options):
    return tb.HiddenMarkovModel(emission=tb.Categorical(), estimate=estimate, **options).fit(DIARY, WEATHER)


def emissions(model):
    return model._chain.scored[0].parameters.table


# ---- Counting -------------------------------------------------------------------------------------------------------


def test_the_ice_cream_diary():
    """Transition denominators count steps with a successor, emission denominators all."""
    model = ice_cream()
    assert model.states_.tolist() == ["cold", "hot"]
    np.testing.assert_allclose(model.start_, [2 / 3, 1 / 3])
    np.testing.assert_allclose(model.transition_, [[2 / 3, 1 / 3], [1 / 3, 2 / 3]])
    np.testing.assert_allclose(emissions(model), [[3 / 5, 2 / 5, 0], [0, 1 / 4, 3 / 4]])
    assert model.n_parameters_ == 1 + 2 + 4


def test_bayes_plugs_in_posterior_means():
    model = ice_cream("bayes")
    np.testing.assert_allclose(model.start_, [3 / 5, 2 / 5])
    np.testing.assert_allclose(model.transition_, [[3 / 5, 2 / 5], [2 / 5, 3 / 5]])
    np.testing.assert_allclose(emissions(model), [[4 / 8, 3 / 8, 1 / 8], [1 / 7, 2 / 7, 4 / 7]])


def test_every_part_has_its_own_prior():
    prior = {"start": tb.Dirichlet(3), "transition": tb.Dirichlet([[1, 2], [3, 4]]), "emission": tb.Dirichlet(0.5)}
    model = ice_cream("bayes", prior=prior)
    np.testing.assert_allclose(model.start_, [5 / 9, 4 / 9])
    np.testing.assert_allclose(model.transition_, [[3 / 6, 3 / 6], [4 / 10, 6 / 10]])
    np.testing.assert_allclose(emissions(model)[0], [3.5 / 6.5, 2.5 / 6.5, 0.5 / 6.5])
    with pytest.raises(ValueError, match="'transition'"):
        ice_cream("bayes", prior={"stat": tb.Dirichlet(1)}).start_  # noqa: B018


def test_shards_add_up_and_sequences_are_forgotten():
    whole, first, second = (
        tb.HiddenMarkovModel(emission=tb.Categorical()).fit(DIARY[part], WEATHER[part])
        for part in (slice(None), slice(0, 2), slice(2, 3))
    )
    assert (first + second).tally_ == whole.tally_
    assert clone(first).fit(DIARY[:2], WEATHER[:2]).partial_fit(DIARY[2:], WEATHER[2:]).tally_ == whole.tally_
    assert whole.forget(DIARY[2:], WEATHER[2:]).tally_ == first.tally_
    with pytest.raises(StatisticsError, match="cannot forget"):
        whole.forget(DIARY, WEATHER)


def test_weights_are_repetitions():
    weighted = tb.HiddenMarkovModel(emission=tb.Categorical()).fit(DIARY, WEATHER, sample_weight=[2, 1, 0])
    repeated = tb.HiddenMarkovModel(emission=tb.Categorical()).fit(
        [DIARY[0], DIARY[0], DIARY[1]], [WEATHER[0], WEATHER[0], WEATHER[1]]
    )
    assert weighted.tally_ == repeated.tally_


def test_a_model_from_a_tally_and_re_estimated():
    model = ice_cream()
    other = tb.HiddenMarkovModel(emission=tb.Categorical(), estimate="bayes").fit_tally(model.tally_)
    np.testing.assert_allclose(other.start_, ice_cream("bayes").start_)
    np.testing.assert_allclose(model.reestimate(estimate="bayes").transition_, other.transition_)
    with pytest.raises(StatisticsError, match="not a hidden Markov model's"):
        other.fit_tally(tb.NaiveBayes().fit([[1.0], [2.0]], [0, 1]).tally_)


def test_the_evidence_is_that_of_every_table():
    """p(sequences, states) by the chain rule: each step is predicted from all before it."""
    model, total = ice_cream("bayes"), 0.0
    seen = {"start": np.ones(2), "moves": np.ones((2, 2)), "emits": np.ones((2, 3))}
    for diary, weather in zip(DIARY, WEATHER, strict=True):
        before = None
        for value, state in zip(diary, weather, strict=True):
            s = ["cold", "hot"].index(state)
            counts = seen["start"] if before is None else seen["moves"][before]
            total += np.log(counts[s] / counts.sum())
            counts[s] += 1
            total += np.log(seen["emits"][s, value - 1] / seen["emits"][s].sum())
            seen["emits"][s, value - 1] += 1
            before = s
    assert model.log_evidence() == pytest.approx(total, rel=1e-12)


# ---- Against enumeration --------------------------------------------------------------------------------------------


def enumerated(model, steps):
    """log p of every path, by multiplying out; steps as codes of levels, −1 for missing."""
    start, moves = np.log(model.start_), np.log(model.transition_)
    end = None if model.end_ is None else np.log(model.end_)
    if end is not None:
        moves = moves + np.log1p(-model.end_)[:, None]
    emits = np.log(emissions(model))
    out = {}
    for path in itertools.product(range(len(start)), repeat=len(steps)):
        value = start[path[0]]
        for t, (state, code) in enumerate(zip(path, steps, strict=True)):
            value += moves[path[t - 1], state] if t else 0.0
            value += emits[state, code] if code >= 0 else 0.0
        out[path] = value + (end[path[-1]] if end is not None else 0.0)
    return out


@st.composite
def labelled(draw):
    n_states, n_symbols = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    lengths = draw(st.lists(st.integers(0, 4), min_size=1, max_size=4).filter(lambda found: sum(found) > 0))
    X = [draw(st.lists(st.integers(0, n_symbols - 1), min_size=n, max_size=n)) for n in lengths]
    y = [draw(st.lists(st.integers(0, n_states - 1), min_size=n, max_size=n)) for n in lengths]
    return X, y, draw(st.booleans())


@given(labelled(), st.lists(st.sampled_from([0, 1, 2, None]), min_size=1, max_size=4))
def test_the_three_problems_by_enumeration(data, steps):
    X, y, end_state = data
    family = tb.Categorical(levels=(0, 1, 2))
    model = tb.HiddenMarkovModel(emission=family, end_state=end_state).fit(X, y)
    codes = [-1 if value is None else value for value in steps]
    paths = enumerated(model, codes)
    scores = np.array(list(paths.values()))
    total = np.logaddexp.reduce(scores)
    asked = [np.array(steps, dtype=object)]
    assert model.log_likelihood(asked)[0] == pytest.approx(total, abs=1e-10)
    found = model.predict(asked)[0]
    place = tuple(model.states_.tolist().index(state) for state in found)
    assert paths[place] == pytest.approx(scores.max(), abs=1e-10)
    shares = np.exp(scores - total)
    n_states = len(model.states_)
    smoothed = np.zeros((len(steps), n_states))
    pairs = np.zeros((len(steps) - 1, n_states, n_states))
    for path, share in zip(paths, shares, strict=True):
        for t, state in enumerate(path):
            smoothed[t, state] += share
            if t:
                pairs[t - 1, path[t - 1], state] += share
    np.testing.assert_allclose(model.predict_proba(asked)[0], smoothed, atol=1e-10)
    np.testing.assert_allclose(model.predict_pairs(asked)[0], pairs, atol=1e-10)
    for t in range(1, len(steps) + 1):
        so_far = enumerated(model.reestimate() if not end_state else model, codes[:t])
        if not end_state:
            weights = np.exp(np.array(list(so_far.values())) - np.logaddexp.reduce(list(so_far.values())))
            last = [sum(w for p, w in zip(so_far, weights, strict=True) if p[-1] == s) for s in range(n_states)]
            np.testing.assert_allclose(model.filter_proba(asked)[0][t - 1], last, atol=1e-10)
    labels = [model.states_[list(path)] for path in paths]
    if len(labels) <= 9:
        joint = [model.log_joint(asked, [label.tolist()])[0] for label in labels]
        np.testing.assert_allclose(joint, scores, atol=1e-10)


def test_the_next_steps():
    model = ice_cream("bayes")
    found = model.predict_next([[3, 1], []], 3)
    now = model.filter_proba([[3, 1]])[0][-1]
    for step in range(3):
        now = now @ model.transition_
        np.testing.assert_allclose(found[0, step], now)
    np.testing.assert_allclose(found[1, 0], model.start_)


def test_extremes():
    model = ice_cream("bayes")
    long = model.log_likelihood([np.tile([1, 2, 3, 2], 250_000)])
    assert np.isfinite(long).all()
    assert long[0] < -500_000
    rare = tb.HiddenMarkovModel(emission=tb.Categorical(), estimate="mle").fit(
        [["a"], ["b"]], [["s"], ["s"]], sample_weight=[1.0, 1e-20]
    )
    assert rare.log_likelihood([["b"]])[0] == pytest.approx(-46.0517, abs=1e-4)
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    near = tb.HiddenMarkovModel().fit([x], [(x > 0).astype(int)])
    far = tb.HiddenMarkovModel().fit([np.round(x * 2**20) / 2**20 + 2.0**27], [(x > 0).astype(int)])
    np.testing.assert_allclose(
        near.predict_proba([x])[0], far.predict_proba([np.round(x * 2**20) / 2**20 + 2.0**27])[0], atol=1e-3
    )


def test_an_impossible_sequence():
    broken = tb.HiddenMarkovModel(emission=tb.Categorical(), estimate="mle").fit([["a", "b"]], [[0, 1]])
    with pytest.warns(UserWarning, match="sequence 0 is impossible at step 0"):
        assert np.isneginf(broken.log_likelihood([["b", "a"]])[0])
    with pytest.warns(UserWarning, match="impossible"):
        assert not np.isnan(broken.predict_proba([["b", "a"]])[0]).any()
    with pytest.warns(UserWarning, match="impossible"):
        assert broken.predict([["b", "a"]])[0].tolist() == [None, None]


# ---- However sequences are given ------------------------------------------------------------------------------------


def test_lists_arrays_with_lengths_and_frames_are_the_same():
    whole = ice_cream()
    flat = np.concatenate([np.array(part) for part in DIARY])
    states = np.concatenate([np.array(part) for part in WEATHER])
    lengths = [3, 3, 3]
    arrays = tb.HiddenMarkovModel(emission=tb.Categorical(), estimate="mle").fit(flat, states, lengths)
    assert arrays.tally_ == whole.tally_
    frame = pd.DataFrame({"day": [0, 1, 2] * 3, "eaten": flat, "sky": states, "who": np.repeat(list("abc"), 3)})
    shuffled = frame.sample(frac=1, random_state=3)
    model = tb.HiddenMarkovModel(emission={"eaten": tb.Categorical()}, estimate="mle")
    model.fit(shuffled, "sky", sequence="who", order="day")
    np.testing.assert_allclose(model.transition_, whole.transition_)
    np.testing.assert_allclose(model.start_, whole.start_)
    found = model.log_likelihood(shuffled.drop(columns="sky"), sequence="who", order="day")
    first = [frame["who"].tolist().index(who) // 3 for who in dict.fromkeys(shuffled["who"])]
    np.testing.assert_allclose(found, whole.log_likelihood(DIARY)[first])
    several = [pd.DataFrame({"eaten": part}) for part in DIARY]
    np.testing.assert_allclose(model.log_likelihood(several), whole.log_likelihood(DIARY))
    tables = [{"eaten": part} for part in DIARY]
    np.testing.assert_allclose(model.log_likelihood(tables), whole.log_likelihood(DIARY))
    np.testing.assert_allclose(arrays.log_likelihood(flat, lengths), whole.log_likelihood(DIARY))


def test_empty_and_single_steps():
    model = tb.HiddenMarkovModel(emission=tb.Categorical()).fit([[], [1], [1, 2]], [[], ["a"], ["b", "a"]])
    assert model.log_likelihood([[], [1]])[0] == 0.0
    assert [len(path) for path in model.predict([[], [1], [2, 2]])] == [0, 1, 2]
    assert model.log_joint([[], [1]], [[], ["a"]])[0] == 0.0
    assert model.predict([]) == []
    with pytest.raises(DataError, match="0 steps"):
        tb.HiddenMarkovModel(2, tb.Gaussian()).fit([[], []])


def test_several_columns_of_several_kinds():
    rng = np.random.default_rng(0)
    state = np.repeat([0, 1, 0, 1], 50)
    steps = {"level": rng.normal(4.0 * state), "kind": np.where(rng.random(200) < 0.8, state, 1 - state).astype(str)}
    steps["level"][::7] = np.nan
    model = tb.HiddenMarkovModel().fit([steps], [state])
    assert model.score([steps], [state]) > 0.95
    by_hand = model._chain.scored
    assert {type(part.family).__name__ for part in by_hand} == {"Gaussian", "Categorical"}


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: tb.HiddenMarkovModel().fit([[1.0, 2.0]]), "Pass n_states"),
        (lambda: tb.HiddenMarkovModel(1).fit([[1.0, 2.0]], [[0, 1]]), "at least 2"),
        (lambda: tb.HiddenMarkovModel().fit([[1.0, 2.0]], [[0]]), "2 steps and 1 labels"),
        (lambda: tb.HiddenMarkovModel().fit(np.ones(4), np.ones(4), [3]), "sum to 3"),
        (lambda: tb.HiddenMarkovModel().fit(np.ones(4), np.ones(4), [5, -1]), "at least 0"),
        (lambda: tb.HiddenMarkovModel().fit([[1.0]], [[0]], sample_weight=[1, 2]), "one for every sequence"),
        (lambda: tb.HiddenMarkovModel().fit([[1.0]], [[0]], sample_weight=[-1.0]), "weight"),
        (lambda: ice_cream(unseen="guess").log_likelihood(DIARY), "'missing', 'smooth' or 'error'"),
        (lambda: ice_cream().predict_next(DIARY, 0), "at least 1"),
        (lambda: ice_cream("best"), "estimate"),
        (lambda: ice_cream().partial_fit([[1, 2]], [["hot", None]]), "every step needs its state"),
        (lambda: ice_cream().log_joint([[1, 2]], [["hot", None]]), "every step needs its state"),
    ],
    ids=range(12),
)
def test_what_cannot_be_is_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_labels_nobody_has_seen():
    model = ice_cream("bayes")
    missing = model.log_likelihood([[3, 9, 1]])[0]
    assert missing == pytest.approx(model.log_likelihood([np.array([3, None, 1], dtype=object)])[0])
    with pytest.raises(LabelError, match="was not seen"):
        model.reestimate(unseen="error").log_likelihood([[9]])
    words = [["the", "dog", "runs"], ["the", "cat", "sleeps"], ["the", "the", "bird"]]
    tags = [["D", "N", "V"], ["D", "N", "V"], ["D", "D", "N"]]
    tagger = tb.HiddenMarkovModel(emission=tb.Categorical(), unseen="smooth").fit(words, tags)
    table = emissions(tagger)
    np.testing.assert_allclose(table.sum(axis=1), 1.0)
    unseen = dict(zip(tagger.states_.tolist(), table[:, -1], strict=True))
    assert unseen["N"] == pytest.approx(3.5 / 4)  # three of three nouns occur once
    assert unseen["D"] == pytest.approx(0.5 / 5)  # no determiner does
    assert tagger.predict([["the", "yak", "snores"]])[0].tolist() == ["D", "N", "V"]


# ---- Learning without states ---------------------------------------------------------------------------------------


def climbing(seed, family, estimate, n_states=2, end_state=False, share=0.0):
    """Sequences of a kind, some cells missing, and a model fitted to them without their states."""
    rng = np.random.default_rng(seed)
    X = []
    for length in (30, 1, 12, 0, 25):
        state = (np.cumsum(rng.random(length) < 0.2)) % 2
        if isinstance(family, tb.Categorical):
            steps = np.where(rng.random(length) < 0.8, state, rng.integers(0, 3, length)).astype(object)
            steps[rng.random(length) < share] = None
        elif isinstance(family, tb.MultivariateGaussian):
            steps = rng.normal(3.0 * state[:, None], 1.0, (length, 2))
            steps[rng.random(steps.shape) < share] = np.nan
        else:
            steps = (
                rng.poisson(2 + 6 * state).astype(float) if isinstance(family, tb.Poisson) else rng.normal(3.0 * state)
            )
            steps[rng.random(length) < share] = np.nan
        X.append(steps)
    model = tb.HiddenMarkovModel(n_states, family, estimate=estimate, end_state=end_state, n_iter=30, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return X, model.fit(X)


FAMILIES = [
    tb.Categorical(levels=(0, 1, 2)),
    tb.Gaussian(),
    tb.TiedGaussian(),
    tb.Poisson(),
    tb.MultivariateGaussian(),
    tb.TiedMultivariateGaussian(),
]


@given(
    st.integers(0, 1000),
    st.sampled_from(FAMILIES),
    st.sampled_from(["bayes", "map", "mle"]),
    st.integers(1, 3),
    st.booleans(),
    st.sampled_from([0.0, 0.2]),
)
def test_the_objective_never_falls(seed, family, estimate, n_states, end_state, share):
    try:
        _, model = climbing(seed, family, estimate, n_states, end_state, share)
    except tb.errors.EstimateError:
        assert estimate == "mle"  # a state of a single step has no spread
        return
    history = np.array(model.history_)
    assert (np.diff(history) >= -1e-8 * np.abs(history[-1])).all()
    assert model.objective_ == ("log likelihood" if estimate == "mle" else "log posterior")
    assert np.isfinite(model.start_).all()
    assert np.isfinite(model.transition_).all()
    np.testing.assert_allclose(model.transition_.sum(axis=1), 1.0)


def test_the_last_objective_is_the_log_likelihood():
    X, model = climbing(3, tb.Poisson(), "mle")
    assert model.log_likelihood(X).sum() == pytest.approx(model.history_[-1], abs=1e-3)
    assert model.log_likelihood(X).sum() >= model.history_[-1] - 1e-9


def test_one_step_by_hand():
    """The statistics of one E-step are sums over all paths; those of shards add up to the whole."""
    X = [[0, 1, 1], [1, 0]]
    start = tb.HiddenMarkovModel(emission=tb.Categorical(), estimate="bayes").fit([[0, 1, 0, 0, 1]], [[0, 1, 0, 1, 1]])
    expected = np.zeros((2, 2))
    for steps in X:
        paths = enumerated(start, steps)
        total = np.logaddexp.reduce(list(paths.values()))
        for path, score in paths.items():
            for a, b in itertools.pairwise(path):
                expected[a, b] += np.exp(score - total)
    pairs = sum(part.sum(axis=0) for part in start.predict_pairs(X))
    np.testing.assert_allclose(pairs, expected, atol=1e-12)


def test_some_states_known():
    rng = np.random.default_rng(1)
    state = (np.cumsum(rng.random(300) < 0.1)) % 2
    x = rng.normal(2.0 * state)
    some = np.where(rng.random(300) < 0.1, state, -1)
    labels = [[None if s < 0 else ["low", "high"][s] for s in some]]
    model = tb.HiddenMarkovModel(estimate="map").fit([x], labels)
    assert model.states_.tolist() == ["high", "low"]
    assert model.score([x], [[["low", "high"][s] for s in state]]) > 0.85
    assert model.tally_.soft
    smoothed = model.predict_proba([x])[0]
    assert smoothed.shape == (300, 2)
    more = tb.HiddenMarkovModel(3, estimate="map", random_state=0).fit([x], labels)
    assert more.states_.tolist() == ["high", "low", "new 1"]


def test_missing_cells_under_a_full_covariance_are_expected_even_where_states_are_known():
    rng = np.random.default_rng(0)
    state = np.cumsum(rng.random(200) < 0.2) % 2
    rows = rng.normal(size=(200, 2)) @ np.array([[1.0, 0.8], [0.0, 0.6]]) + 3.0 * state[:, None]
    rows[rng.random(rows.shape) < 0.2] = np.nan
    model = tb.HiddenMarkovModel(emission=tb.MultivariateGaussian(), tol=1e-9).fit([rows], [state])
    plain = tb.GaussianDiscriminant(tol=1e-9).fit(rows, state)
    assert model.tally_.soft
    np.testing.assert_allclose(model.tally_.statistics[2].mean, plain.tally_.statistics[1].mean, atol=1e-3)
    np.testing.assert_allclose(model.tally_.statistics[1].table.sum(), 199)


def test_what_em_expected_is_not_forgotten():
    X, model = climbing(0, tb.Gaussian(), "bayes")
    assert model.tally_.soft
    with pytest.raises(NotForgettableError):
        model.forget([X[0]], [np.zeros(len(X[0]), int)])
    with pytest.raises(ValueError, match="no evidence"):
        model.log_evidence()


def test_more_states_than_labels():
    rng = np.random.default_rng(0)
    for estimate in ("mle", "bayes"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = tb.HiddenMarkovModel(6, tb.Categorical(), estimate=estimate, n_iter=5, random_state=0)
            model.fit([rng.integers(0, 2, 300)])
        assert np.isfinite(model.history_).all()
        assert np.isfinite(emissions(model)).all()


def test_convergence_is_honest():
    X, _ = climbing(0, tb.Gaussian(), "map")
    with pytest.warns(ConvergenceWarning, match="still climbing after 2 steps"):
        model = tb.HiddenMarkovModel(2, n_iter=2, random_state=0).fit(X)
    assert not model.converged_
    model = tb.HiddenMarkovModel(2, n_iter=500, random_state=0).fit(X)
    assert model.converged_
    assert len(model.history_) < 500


def test_more_states_than_there_is_to_tell_apart():
    model = tb.HiddenMarkovModel(4, tb.Gaussian(), random_state=0, n_iter=500).fit([[1.0, 1.0, 2.0, 2.0, 1.0]])
    assert np.isfinite(model.log_likelihood([[1.0, 2.0]])).all()
    assert np.isfinite(model.predict_proba([[1.0, np.nan]])[0]).all()


# ---- Drawing, filling, files, pictures -----------------------------------------------------------------------------


def test_what_is_drawn_has_the_parameters_it_came_from():
    model = ice_cream("bayes")
    X, y = model.sample([20_000, 3], random_state=0)
    assert [len(steps) for steps in X] == [20_000, 3]
    again = tb.HiddenMarkovModel(emission=tb.Categorical(), estimate="mle").fit(X, y)
    np.testing.assert_allclose(again.transition_, model.transition_, atol=0.02)
    np.testing.assert_allclose(emissions(again), emissions(model), atol=0.02)
    ended = ice_cream("bayes", end_state=True)
    lengths = [len(steps) for steps in ended.sample([50] * 300, random_state=0)[0]]
    assert np.mean(lengths) < 6


def test_filling_in():
    rng = np.random.default_rng(0)
    state = np.repeat([0, 1, 0], 40)
    x = rng.normal(5.0 * state, 0.5)
    holes = x.copy()
    holes[[10, 50, 100]] = np.nan
    model = tb.HiddenMarkovModel().fit([x], [state])
    filled = model.fill([holes])[0]
    np.testing.assert_allclose(filled[[10, 50, 100]], 5.0 * state[[10, 50, 100]], atol=0.5)
    np.testing.assert_array_equal(filled[~np.isnan(holes)], x[~np.isnan(holes)])
    words = ice_cream().fill([np.array([3, None, 1], dtype=object)])[0]
    assert words[1] in (2, 3)


def test_files(tmp_path):
    X, model = climbing(2, tb.Gaussian(), "bayes", end_state=True)
    model.save(tmp_path / "model")
    back = tb.load(tmp_path / "model")
    np.testing.assert_array_equal(back.log_likelihood(X), model.log_likelihood(X))
    assert back.history_ == model.history_
    assert back.tally_.soft
    counted = ice_cream()
    counted.save(tmp_path / "counted")
    other = tb.load(tmp_path / "counted")
    assert other.states_.tolist() == ["cold", "hot"]
    assert (other + counted).tally_ == (counted + counted).tally_
    naive = tb.NaiveBayes().fit([[1.0], [2.0]], ["a", "b"])
    naive.save(tmp_path / "naive")
    assert isinstance(tb.load(tmp_path / "naive"), tb.NaiveBayes)
    assert FileError is not None


def test_pictures():
    rng = np.random.default_rng(0)
    state = np.repeat([0, 1], 20)
    model = tb.HiddenMarkovModel().fit([rng.normal(3.0 * state)], [state])
    axes = model.plot_states(rng.normal(3.0 * state))
    assert len(axes) == 2
    assert axes[1].get_ylabel() == "p(state)"
    assert model.plot_transitions().get_title().startswith("p(next state")
    ice_cream().plot_states([3, 1, 2])
    plt.close("all")


def test_gaussian_emissions_are_those_of_the_state():
    rng = np.random.default_rng(5)
    state = rng.integers(0, 2, 400)
    x = rng.normal(3.0 * state, 1 + state)
    model = tb.HiddenMarkovModel(estimate="mle").fit([x], [state])
    mean, variance = model._chain.scored[0].parameters
    for s in (0, 1):
        assert mean[s, 0] == pytest.approx(x[state == s].mean())
        assert variance[s, 0] == pytest.approx(x[state == s].var())
    joint = model.log_joint([x[:2]], [state[:2].tolist()])[0]
    by_hand = np.log(model.start_[state[0]]) + np.log(model.transition_[state[0], state[1]])
    by_hand += sum(stats.norm.logpdf(x[t], mean[state[t], 0], np.sqrt(variance[state[t], 0])) for t in (0, 1))
    assert joint == pytest.approx(by_hand)

"""Mixtures within the states of a hidden Markov model."""

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm, poisson
from sklearn.exceptions import ConvergenceWarning

import tallybayes as tb
from tallybayes.errors import DataError, EstimateError, LabelError, NoCountsError, StatisticsError

START, MOVES = np.array([0.6, 0.4]), np.array([[0.7, 0.3], [0.2, 0.8]])
SHARES = np.array([[0.3, 0.7], [0.9, 0.1]])
MEANS, VARIANCES = np.array([[-1.0, 3.0], [0.5, 6.0]]), np.array([[0.5, 2.0], [1.0, 0.25]])
STEPS = [0.2, 2.5, -1.2, 5.8]


def bells(**options):
    emission = [
        [{"mean": m, "variance": v} for m, v in zip(*rows, strict=True)] for rows in zip(MEANS, VARIANCES, strict=True)
    ]
    return tb.HiddenMarkovModel.from_tables(START, MOVES, emission, component=SHARES, **options)


def every_path(steps, cells):
    """log p of every path of (state, component) pairs, multiplied out; cells(step) is (states, components)."""
    pairs = list(itertools.product(range(2), range(2)))
    out = {}
    for path in itertools.product(pairs, repeat=len(steps)):
        value = np.log(START[path[0][0]])
        for t, ((s, c), step) in enumerate(zip(path, steps, strict=True)):
            value += np.log(MOVES[path[t - 1][0], s]) if t else 0.0
            value += np.log(SHARES[s, c]) + (0.0 if np.isnan(step) else cells(step)[s, c])
        out[path] = value
    return out


def bell_paths(steps):
    return every_path(steps, lambda step: norm.logpdf(step, MEANS, np.sqrt(VARIANCES)))


def by_states(paths):
    """log p of every path of states, components summed out."""
    found = {}
    for path, value in paths.items():
        found.setdefault(tuple(s for s, _ in path), []).append(value)
    return {path: logsumexp(values) for path, values in found.items()}


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("steps", [STEPS, [0.2, np.nan, 5.8]], ids=["whole", "with a missing step"])
def test_answers_are_those_of_all_paths(steps):
    model, paths = bells(), bell_paths(steps)
    states, total = by_states(paths), logsumexp(list(paths.values()))
    assert model.score_samples([steps]) == pytest.approx([total], abs=1e-12)
    assert tuple(model.predict([steps])[0]) == max(states, key=states.get)
    smoothed = np.zeros((len(steps), 2))
    for path, value in states.items():
        smoothed[np.arange(len(steps)), path] += np.exp(value - total)
    np.testing.assert_allclose(model.predict_proba([steps])[0], smoothed, atol=1e-12)
    best = model.best_paths([steps], k=3)[0]
    assert list(map(tuple, best.paths.tolist())) == sorted(states, key=states.get, reverse=True)[:3]
    for path in itertools.islice(states, 3):
        assert model.log_joint([steps], [list(path)]) == pytest.approx([states[path]], abs=1e-12)
    now = model.online_filter()
    for step in steps:
        now.update(step)
    assert now.log_likelihood == pytest.approx(total, abs=1e-12)
    assert sum(model.surprisal([steps])[0]) == pytest.approx(-total, abs=1e-9)


def test_a_step_ahead_is_a_mixture_of_all_components():
    model = bells()
    (ahead,) = model.forecast([STEPS], 1)
    shares = ahead.proba[0][:, None] * SHARES
    assert ahead.mean[0] == pytest.approx([(shares * MEANS).sum()])
    mass = (shares * norm.cdf(ahead.high[0][0], MEANS, np.sqrt(VARIANCES))).sum()
    assert mass == pytest.approx(0.95, abs=1e-9)
    tail = model.tail_proba([STEPS])[0][0, 0]
    below = (START[:, None] * SHARES * norm.cdf(STEPS[0], MEANS, np.sqrt(VARIANCES))).sum()
    assert tail == pytest.approx(2 * min(below, 1 - below), abs=1e-12)


def test_a_missing_cell_is_filled_by_the_components_that_the_others_suggest():
    emission = {
        "x": [[{"mean": -5.0, "variance": 1.0}, {"mean": 5.0, "variance": 1.0}]] * 2,
        "y": [[{"mean": 1.0, "variance": 1.0}, {"mean": 2.0, "variance": 1.0}]] * 2,
    }
    model = tb.HiddenMarkovModel.from_tables(START, MOVES, emission, component=[[0.5, 0.5]] * 2)
    (filled,) = model.impute([{"x": [-5.0, 5.0], "y": [np.nan, np.nan]}])
    np.testing.assert_allclose(filled["y"], [1.0, 2.0], atol=1e-9)


def test_one_step_of_em_counts_what_all_paths_expect():
    model, paths = bells(), bell_paths(STEPS)
    total = logsumexp(list(paths.values()))
    starts, moves, shares, sums = np.zeros(2), np.zeros((2, 2)), np.zeros((2, 2)), np.zeros((2, 2))
    for path, value in paths.items():
        p = np.exp(value - total)
        starts[path[0][0]] += p
        for t, (s, c) in enumerate(path):
            shares[s, c] += p
            sums[s, c] += p * STEPS[t]
            if t:
                moves[path[t - 1][0], s] += p
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        step = tb.HiddenMarkovModel(2, tb.Gaussian(), components=2, estimate="mle", max_iter=1)
        found = step.fit([STEPS], initial=model).tally_
    names = step._factor_names
    np.testing.assert_allclose(found[names.start].table, starts, atol=1e-12)
    np.testing.assert_allclose(found[names.target].table, moves, atol=1e-12)
    np.testing.assert_allclose(found[names.component].table, shares, atol=1e-12)
    moments = found[0]
    np.testing.assert_allclose(moments.mean[..., 0] * moments.weight[..., 0], sums, atol=1e-10)
    assert found.soft
    assert step.history_ == pytest.approx([total], abs=1e-12)


def drawn(seed, n=(60, 1, 40, 0)):
    rng = np.random.default_rng(seed)
    X, y = [], []
    for length in n:
        state = np.cumsum(rng.random(length) < 0.1) % 2
        which = rng.random(length) < 0.4
        x = rng.normal(np.where(state, np.where(which, 2, 6), np.where(which, -6, 0)), 1.0)
        color = np.where(rng.random(length) < 0.8, np.where(which, "red", "blue"), "gray").astype(object)
        pair = rng.normal(np.stack([x, -x], axis=-1), 1.0)
        x[rng.random(length) < 0.1] = np.nan
        color[rng.random(length) < 0.1] = None
        columns = {"x": x, "color": color, "n": rng.poisson(3 + 4 * state), "a": pair[:, 0], "b": pair[:, 1]}
        X.append(columns)
        y.append(np.where(state, "up", "down").astype(object))
    return X, y


MIXED = {"x": tb.Gaussian(), "color": tb.Categorical(), "n": tb.Poisson(), ("a", "b"): tb.MultivariateGaussian()}


def fitted(X, y=None, columns=MIXED, **options):
    n_states = None if y is not None else 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = tb.HiddenMarkovModel(
            n_states, columns, **{"components": 2, "max_iter": 15, "random_state": 0, **options}
        )
        return model.fit(X, y)


@pytest.mark.slow
@given(
    st.integers(0, 50),
    st.sampled_from(["bayes", "map", "mle"]),
    st.sampled_from([2, {0: 3}, {0: 2, 1: 3}]),
    st.sampled_from(
        [{}, {"start": "stationary"}, {"end_state": True, "start": [1]}, {"tied": {0: "a", 1: "a"}, "components": 2}]
    ),
)
def test_the_objective_never_falls(seed, estimate, components, structure):
    X, _ = drawn(seed)
    columns = {"x": tb.Gaussian(), "n": tb.Poisson(), ("a", "b"): tb.TiedMultivariateGaussian()}
    model = fitted(X, columns=columns, estimate=estimate, **{"components": components, **structure})
    assert (np.diff(model.history_) >= -1e-8 * abs(model.history_[-1])).all()
    if model.converged_ and estimate == "mle":
        assert model.log_likelihood(X) == pytest.approx(model.history_[-1], rel=1e-4)


def test_several_columns_of_different_families_in_every_answer():
    X, _ = drawn(3)
    model = fitted(X)
    shares = model.component_
    assert shares.shape == (2, 2)
    assert shares.sum(axis=1) == pytest.approx([1, 1])
    assert model.means_.shape == (2, 2, 3)
    assert model.covariances_.shape == (2, 2, 3, 3)
    assert model.emission_["color"]["red"].shape == (2, 2)
    assert model.emission_[("a", "b")].covariance.shape == (2, 2, 2, 2)
    # log p(step | state) by hand, of steps in which nothing is missing
    row = {"x": [1.0], "color": ["red"], "n": [4], "a": [0.5], "b": [-0.5]}
    each = np.log(shares) + np.log(model.emission_["color"]["red"]) + poisson.logpmf(4, model.emission_["n"][..., 0])
    bell, pair = model.emission_["x"], model.emission_[("a", "b")]
    each += norm.logpdf(1.0, bell.mean[..., 0], np.sqrt(bell.variance[..., 0]))
    for s, c in np.ndindex(2, 2):
        each[s, c] += multivariate_normal.logpdf([0.5, -0.5], pair.mean[s, c], pair.covariance[s, c])
    by_hand = logsumexp(np.log(model.start_)[:, None] + each)
    assert model.score_samples([row]) == pytest.approx([by_hand], abs=1e-10)
    methods = (
        "predict predict_proba filter_proba predict_transition_proba predict_next surprisal tail_proba impute forecast "
        "forward backward trellis best_paths sample_paths"
    )
    for method in methods.split():
        assert len(getattr(model, method)(X)) == len(X)
    assert model.expected_visits(X).steps.sum() == pytest.approx(101)
    steps, states = model.sample([20, 3], random_state=0)
    assert set(steps[0]) == {"x", "color", "n", "a", "b"}
    assert len(states[1]) == 3
    assert "component" in repr(model.parameters_)
    assert "p(x | state, component)" in repr(model.parameter_table("x"))
    assert model.parameter_table("x")[0, 1, "mean"] == pytest.approx(bell.mean[0, 1, 0])
    assert model.parameter_table("component")[1, 0] == pytest.approx(shares[1, 0])
    low, high = model.parameter_table("component").interval()
    assert (low < shares).all()
    assert (shares < high).all()
    assert np.isfinite([model.bic_, model.aic_, model.evidence_lower_bound_]).all()


@pytest.mark.slow
def test_labeled_states_are_mixtures_by_em_within_them():
    X, y = drawn(5, (150, 100))
    model = fitted(X, y, columns={"x": tb.Gaussian()}, max_iter=100)
    assert model.tally_.soft
    assert model.states_.tolist() == ["down", "up"]
    np.testing.assert_allclose(np.sort(model.means_[..., 0], axis=1), [[-6, 0], [2, 6]], atol=0.4)
    # transitions and starts are counted, whatever the components
    plain = tb.HiddenMarkovModel(columns={"x": tb.Gaussian()}).fit(X, y)
    np.testing.assert_allclose(model.transition_, plain.transition_, atol=1e-9)
    # each state's mixture is the one that a mixture of its steps alone would find
    values = np.concatenate([part["x"][states == "up"] for part, states in zip(X, y, strict=True)])
    alone = tb.Mixture(2, tb.Gaussian(), random_state=0, tol=1e-9, estimate="mle").fit(
        values[~np.isnan(values)][:, None]
    )
    chain = fitted(X, y, columns={"x": tb.Gaussian()}, max_iter=500, tol=1e-9, estimate="mle")
    np.testing.assert_allclose(np.sort(chain.means_[1, :, 0]), np.sort(alone.means_[:, 0]), atol=1e-3)


def test_of_one_component_it_is_a_plain_chain():
    X, y = drawn(1)
    plain = fitted(X, y, components=None)
    for components in (1, {"up": 1}):
        model = fitted(X, y, components=components)
        assert model.tally_ == plain.tally_
        assert model.component_ is None


def test_states_of_different_numbers_of_components():
    X, _ = drawn(2, (200,))
    model = fitted(X, columns={"x": tb.Gaussian()}, components={1: 2}, max_iter=100)
    assert model.component_[0].tolist() == [1.0, 0.0]
    assert model.means_.shape == (3, 1)
    assert model.parameter_table("x").given == ("state, component",)
    assert model.parameter_table("x")[(1, 1), "mean"] == model.means_[2, 0]
    assert model.n_parameters_ == 1 + 2 + 1 + 6
    again = tb.HiddenMarkovModel.from_tables(
        model.start_, model.transition_,
        {"x": {s: [{"mean": m, "variance": v} for (state, _), m, v in zip(model.parameter_table("x").given_levels[0],
                   model.means_[:, 0], model.covariances_[:, 0, 0], strict=True) if state == s] for s in (0, 1)}},
        component={0: [1.0], 1: model.component_[1]},
    )  # fmt: skip
    assert again.components == {0: 1, 1: 2}
    assert again.score_samples(X) == pytest.approx(model.score_samples(X), abs=1e-9)


def test_tied_states_share_the_whole_mixture():
    X, _ = drawn(4, (120, 80))
    tied = {0: "same", 1: "same"}
    model = fitted(X, columns={"x": tb.Gaussian()}, tied=tied, allowed_transitions="banded")
    assert (model.component_[0] == model.component_[1]).all()
    assert (model.means_[0] == model.means_[1]).all()
    assert model.n_parameters_ == 1 + 2 + 1 + 4
    with pytest.raises(DataError, match="has different numbers for the tied states"):
        fitted(X, columns={"x": tb.Gaussian()}, tied=tied, components={0: 2})


def test_counts_add_travel_and_are_read_otherwise(tmp_path):
    X, y = drawn(6)
    model = fitted(X, y)
    model.save(tmp_path / "chain.tally")
    back = tb.load(tmp_path / "chain.tally")
    assert back.tally_ == model.tally_
    assert back.components == 2
    np.testing.assert_array_equal(back.score_samples(X), model.score_samples(X))
    both = model + model
    np.testing.assert_allclose(both.reestimate(estimate="mle").component_, model.reestimate(estimate="mle").component_)
    assert tb.HiddenMarkovModel(columns=MIXED, components=2).fit_tally(model.tally_).tally_ == model.tally_
    given = bells()
    given.save(tmp_path / "given.tally")
    assert tb.load(tmp_path / "given.tally").score_samples([STEPS]) == given.score_samples([STEPS])
    with pytest.raises(NoCountsError):
        given.reestimate(components=3)
    for other in (3, None):
        with pytest.raises(StatisticsError, match="the tally has 2 components"):
            model.reestimate(components=other)
    with pytest.raises(LabelError, match="the mixture component of a time step is unknown"):
        model.partial_fit(X, y)


@pytest.mark.slow
def test_where_em_starts():
    X, _ = drawn(7, (80, 60))
    few = {"x": tb.Gaussian(), "n": tb.Poisson()}
    first = fitted(X, columns=few, n_init=3, estimate="mle")
    assert len(first.objectives_) == 6  # by values and by company
    on = tb.HiddenMarkovModel(2, few, components=2, max_iter=500, estimate="mle").fit(X, initial=first)
    assert on.history_[0] >= first.history_[-1] - 1e-9 * abs(first.history_[-1])
    assert on.history_[0] == pytest.approx(first.log_likelihood(X), abs=1e-8)
    with pytest.raises(DataError, match=r"initial= has \[2, 2\] components by state, components= \[3, 3\]"):
        tb.HiddenMarkovModel(2, few, components=3).fit(X, initial=first)
    with pytest.raises(DataError, match=r"initial= has .*; expected"):
        tb.HiddenMarkovModel(2, few, components=2).fit(X, initial=fitted(X, columns=few, components=None))


def test_states_are_found_whose_components_lie_between_each_other():
    rng = np.random.default_rng(6)
    runs, fast = np.cumsum(rng.random(600) < 0.03) % 2 == 1, rng.random(600) < 0.3
    hum = np.where(runs, np.where(fast, 8.0, 4.0), np.where(fast, 6.0, 2.0)) + rng.normal(0, 0.4, 600)
    for seed in range(3):
        model = tb.HiddenMarkovModel(2, tb.Gaussian(), components=2, random_state=seed).fit([hum])
        same = model.predict([hum])[0] == runs
        assert max(same.mean(), 1 - same.mean()) > 0.99


def test_given_with_a_strength_they_are_a_prior():
    firm = bells(strength=20)
    before = firm.component_
    np.testing.assert_allclose(before, SHARES)
    firm.set_params(random_state=0).fit([STEPS * 3])
    assert not np.allclose(firm.component_, before)
    assert np.abs(firm.component_ - before).max() < 0.5


@pytest.mark.parametrize("components", [0, 2.0, "two", {0: 0}, True], ids=str)
def test_what_is_no_number_of_components_is_refused(components):
    with pytest.raises(EstimateError, match="components is"):
        tb.HiddenMarkovModel(2, tb.Gaussian(), components=components).fit([STEPS])


def test_a_state_that_is_none_is_refused_by_name():
    with pytest.raises(LabelError, match="components= has the unknown state 'z'"):
        tb.HiddenMarkovModel(2, tb.Gaussian(), components={"z": 2}).fit([STEPS])
    with pytest.raises(DataError, match="one for each of its 2"):
        tb.HiddenMarkovModel.from_tables(START, MOVES, [[{"mean": 0.0, "variance": 1.0}]] * 2, component=SHARES)


def test_it_agrees_with_hmmlearn():
    hmm = pytest.importorskip("hmmlearn.hmm")
    rng = np.random.default_rng(0)
    weights, means = rng.dirichlet(np.ones(3), 2), rng.normal(0, 3, (2, 3, 2))
    roots = rng.normal(size=(2, 3, 2, 2))
    covariances = roots @ np.swapaxes(roots, -1, -2) + np.eye(2)
    other = hmm.GMMHMM(2, 3, covariance_type="full", init_params="", n_iter=1)
    other.startprob_, other.transmat_, other.weights_, other.means_, other.covars_ = (
        START,
        MOVES,
        weights,
        means,
        covariances,
    )
    X = rng.normal(0, 3, (40, 2))
    emission = [
        [{"mean": m, "covariance": c} for m, c in zip(*rows, strict=True)]
        for rows in zip(means, covariances, strict=True)
    ]
    pair = {(0, 1): tb.MultivariateGaussian()}
    model = tb.HiddenMarkovModel.from_tables(START, MOVES, {(0, 1): emission}, component=weights, columns=pair)
    assert model.score_samples([X])[0] == pytest.approx(other.score(X), abs=1e-9)
    np.testing.assert_allclose(model.predict_proba([X])[0], other.predict_proba(X), atol=1e-9)
    assert model.predict([X])[0].tolist() == other.decode(X)[1].tolist()

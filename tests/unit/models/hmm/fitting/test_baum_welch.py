"""Baum and Welch: hidden Markov models from sequences whose states are not, or not all, known."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

import tallybayes as tb
from tallybayes.errors import DataError, EstimateError, NotForgettableError
from tests.unit.models.hmm.chains import emissions


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
    model = tb.HiddenMarkovModel(
        n_states, family, estimate=estimate, end_state=end_state, max_iter=30, random_state=seed
    )
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


@pytest.mark.slow
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
    except EstimateError:
        assert estimate == "mle"  # a state of a single step has no spread
        return
    history = np.array(model.history_)
    assert (np.diff(history) >= -1e-8 * np.abs(history[-1])).all()
    assert model.objective_ == ("log likelihood" if estimate == "mle" else "log posterior")
    assert np.isfinite(model.start_).all()
    assert np.isfinite(model.transition_).all()
    np.testing.assert_allclose(model.transition_.sum(axis=1), 1.0)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("n_states", [3, 40])
@pytest.mark.parametrize("family", [tb.Categorical(), tb.Gaussian(), tb.MultivariateGaussian()], ids=repr)
def test_the_same_bits_with_any_number_of_threads(family, n_states):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 9, (40, 100, 1)) if family == tb.Categorical() else rng.normal(size=(40, 100, 2))
    columns = {(0, 1): family} if family == tb.MultivariateGaussian() else family
    fits = []
    for n_threads in (1, 2, 5):
        tb.set_threads(n_threads)
        try:
            model = tb.HiddenMarkovModel(n_states, columns, max_iter=3, random_state=0).fit(list(X))
        finally:
            tb.set_threads(0)
        fits.append((model.tally_, model.history_))
    assert fits[0] == fits[1] == fits[2]


def test_the_last_objective_is_the_log_likelihood():
    X, model = climbing(3, tb.Poisson(), "mle")
    assert model.score_samples(X).sum() == pytest.approx(model.history_[-1], abs=1e-3)
    assert model.score_samples(X).sum() >= model.history_[-1] - 1e-9


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
    model = tb.HiddenMarkovModel(columns=tb.MultivariateGaussian(), tol=1e-9).fit([rows], [state])
    plain = tb.GaussianDiscriminant("full", tol=1e-9).fit(rows, state)
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
            model = tb.HiddenMarkovModel(6, tb.Categorical(), estimate=estimate, max_iter=5, random_state=0)
            model.fit([rng.integers(0, 2, 300)])
        assert np.isfinite(model.history_).all()
        assert np.isfinite(emissions(model)).all()


def test_convergence_is_honest():
    X, _ = climbing(0, tb.Gaussian(), "map")
    with pytest.warns(ConvergenceWarning, match="did not converge after 2 iterations"):
        model = tb.HiddenMarkovModel(2, max_iter=2, random_state=0).fit(X)
    assert not model.converged_
    model = tb.HiddenMarkovModel(2, max_iter=500, random_state=0).fit(X)
    assert model.converged_
    assert len(model.history_) < 500


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("estimate", ["map", "bayes"])
def test_states_in_which_nothing_varies_but_by_rounding(estimate):
    """Two kinds of rows and as many states: what varies within is the last bits of sums, and no spread of a prior."""
    rows = np.tile([[0.0, 1.0], [1.0, 0.0]], (10, 1))
    for n_states in (2, 3):
        model = tb.HiddenMarkovModel(n_states, tb.MultivariateGaussian(), estimate=estimate, random_state=0)
        assert np.isfinite(model.set_params(max_iter=500).fit([rows]).score_samples([rows])).all()


@pytest.mark.parametrize("family", [tb.Multinomial(), tb.DirichletMultinomial()])
@pytest.mark.parametrize("labels", [None, [["a", None, "b", None]]])
def test_rows_without_a_word_say_nothing_about_words(family, labels):
    """Without a prior nothing is known of a state's words: an error of what was counted, not of the kernels."""
    model = tb.HiddenMarkovModel(2, family, estimate="mle", random_state=0)
    with pytest.raises(
        tb.errors.DataError, match=r"the 'mle' estimate of column 0 in state .* is undefined.*\n.*'bayes'"
    ):
        model.fit([np.zeros((4, 3))], labels)
    assert np.isfinite(model.set_params(estimate="map").fit([np.zeros((4, 3))], labels).score_samples([[[0, 0, 1]]]))


def test_more_states_than_there_is_to_tell_apart():
    model = tb.HiddenMarkovModel(4, tb.Gaussian(), random_state=0, max_iter=500).fit([[1.0, 1.0, 2.0, 2.0, 1.0]])
    assert np.isfinite(model.score_samples([[1.0, 2.0]])).all()
    assert np.isfinite(model.predict_proba([[1.0, np.nan]])[0]).all()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"n_init": 0}, "n_init is 0; expected a whole number of at least 1"),
        ({"n_init": 1.5}, "n_init is 1.5; expected a whole number"),
        ({"n_init": "x"}, "n_init is 'x'; expected a whole number"),
        ({"n_init": True}, "n_init is True; expected a whole number"),
        ({"max_iter": 0}, "max_iter is 0; expected a whole number"),
        ({"tol": -1.0}, "tol is -1.0; expected a number of at least 0"),
        ({"tol": np.nan}, "tol is nan; expected a number of at least 0"),
    ],
    ids=str,
)
def test_settings_that_cannot_be_followed(settings, words):
    with pytest.raises((DataError, EstimateError), match=words):
        tb.HiddenMarkovModel(2, **settings).fit([[1.0, 2.0, 5.0]])


# ---- Where it starts ------------------------------------------------------------------------------------------------


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("family", [tb.Gaussian(), tb.MultivariateGaussian(), tb.Poisson()], ids=repr)
def test_a_column_that_nobody_has(family):
    """Of a state that some steps are known of, it has no mean to start from."""
    rng = np.random.default_rng(0)
    steps = np.c_[rng.poisson(3.0, 40), np.full(40, np.nan)]
    labels = [[0] * 10 + [None] * 30]
    model = tb.HiddenMarkovModel(2, family, random_state=0, max_iter=2000).fit([steps], labels)
    assert np.isfinite(model.history_).all()
    assert np.isfinite(model.score_samples([steps])).all()


@pytest.mark.slow
@pytest.mark.parametrize("n_labeled", [0, 1])
def test_weights_are_repeats(n_labeled):
    """Also of where it starts: there are several tops, and the same one is found."""
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(n, 2)) for n in (9, 14, 5, 20, 11)]
    y = [[0] * len(part) if number < n_labeled else [None] * len(part) for number, part in enumerate(X)]
    times = [2, 1, 3, 0, 5]
    found = []
    for seed in range(5):
        model = tb.HiddenMarkovModel(4, random_state=seed, max_iter=15, tol=1e-300)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            weighted = model.fit(X, y, sample_weight=times).history_
            many = [(steps, of) for steps, of, n in zip(X, y, times, strict=True) for _ in range(n)]
            repeated = model.fit(*zip(*many, strict=True)).history_
        np.testing.assert_allclose(weighted, repeated, rtol=1e-9)
        found.append(round(weighted[-1], 3))
    assert len(set(found)) > 1


@pytest.mark.slow
def test_a_start_that_fails_is_one_of_several():
    """Without a prior a state may fall in on a single step; from another start it does not."""
    rng = np.random.default_rng(0)
    X = [np.r_[rng.normal(0, 1, 20), 9.0, rng.normal(5, 1, 10)]]
    model = tb.HiddenMarkovModel(3, tb.Gaussian(), estimate="mle", random_state=0, max_iter=300)
    with pytest.raises(EstimateError, match="variance"):
        model.fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        assert np.isfinite(model.set_params(n_init=8).fit(X).history_).all()

"""Covariances of states: own or shared, full, diagonal or spherical, as hmmlearn has them."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import tallybayes as tb

START, MOVES = np.array([0.6, 0.4]), np.array([[0.7, 0.3], [0.2, 0.8]])
MEANS = np.array([[-1.0, 0.0], [1.0, 0.5]])
FULL = np.array([[[2.0, 0.5], [0.5, 1.0]], [[1.0, -0.4], [-0.4, 1.5]]])
TYPES = {
    "full": (tb.MultivariateGaussian(), FULL),
    "tied": (tb.TiedMultivariateGaussian(), FULL[0]),
    "diag": (tb.Gaussian(), np.array([[2.0, 1.0], [1.0, 1.5]])),
    "spherical": (tb.SphericalGaussian(), np.array([2.0, 1.5])),
}


def stated(kind, spread):
    """The same parameters for this package: of a block of both columns."""
    if kind in ("full", "tied"):
        both = spread if kind == "full" else [spread, spread]
        return [{"mean": m, "covariance": c} for m, c in zip(MEANS, both, strict=True)]
    by_column = spread if kind == "diag" else np.stack([spread, spread], axis=1)
    return [{"mean": m, "variance": v} for m, v in zip(MEANS, by_column, strict=True)]


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("kind", TYPES)
def test_a_step_of_em_is_that_of_hmmlearn(kind):
    hmm = pytest.importorskip("hmmlearn.hmm")
    family, spread = TYPES[kind]
    rng = np.random.default_rng(0)
    X = rng.normal(0, 1.5, (80, 2))
    other = hmm.GaussianHMM(
        2, kind, n_iter=1, init_params="", covars_prior=0.0, covars_weight=0.0, means_weight=0.0, min_covar=0.0
    )
    other.startprob_, other.transmat_, other.means_, other.covars_ = START, MOVES, MEANS, spread
    given = tb.HiddenMarkovModel.from_tables(START, MOVES, {(0, 1): stated(kind, spread)}, columns={(0, 1): family})
    assert given.score_samples([X])[0] == pytest.approx(other.score(X), rel=1e-12)
    np.testing.assert_allclose(given.predict_proba([X])[0], other.predict_proba(X), atol=1e-10)
    model = tb.HiddenMarkovModel(2, given.columns_, estimate="mle", max_iter=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit([X], initial=given)
    other.fit(X)
    np.testing.assert_allclose(model.transition_, other.transmat_, atol=1e-8)
    np.testing.assert_allclose(model.means_, other.means_, atol=1e-8)
    # Once it has fitted a spherical one, its covars_ repeats every state: the variances themselves are in _covars_.
    spread = other.covars_ if kind != "spherical" else other._covars_[:, :, None] * np.eye(2)
    np.testing.assert_allclose(model.covariances_, spread, atol=1e-8)

"""The strength of a prior: every point of the path is what a model with that prior says."""

import matplotlib as mpl
import numpy as np
import pytest
from sklearn.datasets import load_iris

import tallybayes as tb

mpl.use("Agg")

BELIEFS = [
    tb.Beta(2.0, 3.0),
    tb.Dirichlet([1.0, 2.0, 3.0]),
    tb.Gamma(3.0, 2.0),
    tb.NormalInverseGamma(1.0, 2.0, 3.0, 4.0),
    tb.NormalInverseWishart([0.0, 1.0], 2.0, 5.0, [[2.0, 0.5], [0.5, 1.0]]),
]


@pytest.mark.parametrize("place", range(len(BELIEFS)))
def test_scaling_a_belief_keeps_its_location_and_multiplies_its_worth(place):
    belief = BELIEFS[place]
    assert belief.scaled(1.0) == belief
    again = belief.scaled(4.0).scaled(0.5)
    for name, value in vars(belief.scaled(2.0)).items():
        if isinstance(value, np.ndarray):
            np.testing.assert_allclose(getattr(again, name), value, rtol=1e-12)
    if hasattr(belief, "location"):
        np.testing.assert_array_equal(belief.scaled(7.0).location, belief.location)
    else:
        np.testing.assert_allclose(belief.scaled(7.0).mean(), belief.mean())


def test_a_column_s_marginal_scales_alike():
    """A normal-inverse-Wishart belief scaled is, in every column, the normal-inverse-gamma one scaled."""
    belief = BELIEFS[-1]
    scaled, column = belief.scaled(3.0).column(0), belief.column(0).scaled(3.0)
    for name in ("location", "strength", "shape", "scale"):
        np.testing.assert_allclose(getattr(scaled, name), getattr(column, name))


def test_hypotheses_have_no_strength():
    with pytest.raises(ValueError, match="no strength"):
        tb.Hypotheses({"fair": 0.5, "bent": 0.9}).scaled(2.0)


def test_every_point_is_the_model_with_that_prior():
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 3, (80, 4)), rng.integers(0, 2, 80)
    path = tb.prior_path(tb.NaiveBayes(tb.Categorical(), prior=1), X, y, [0.1, 1.0, 20.0])
    for strength, bits, result in zip(path.strengths, path.log2_evidence, path.results, strict=True):
        model = tb.NaiveBayes(tb.Categorical(), prior=tb.Dirichlet(strength))
        np.testing.assert_allclose(result.log_proba, tb.leave_one_out(model, X, y).log_proba, atol=1e-12)
        assert bits == pytest.approx(model.fit(X, y).log_evidence() / np.log(2))
    assert path.by_evidence == path.strengths[np.argmax(path.log2_evidence)]
    assert path.by_log_loss == path.strengths[np.argmin([r.log_loss.value for r in path.results])]


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("covariance", ["full", "tied", "diagonal", "tied_spherical"])
def test_discriminants(covariance):
    X, y = load_iris(return_X_y=True)
    path = tb.prior_path(tb.GaussianDiscriminant(covariance), X, y, [0.5, 1.0])
    own = tb.GaussianDiscriminant(covariance).fit(X, y)
    assert path.log2_evidence[1] == pytest.approx(own.log_evidence() / np.log(2))
    (prior,) = own.prior_.values()
    weaker = tb.GaussianDiscriminant(covariance, prior=prior.scaled(0.5))
    np.testing.assert_allclose(path.results[0].log_proba, tb.leave_one_out(weaker, X, y).log_proba, atol=1e-10)


def test_columns_that_say_nothing_stay_out_at_every_strength():
    X, y = load_iris(return_X_y=True)
    wide = np.column_stack([X, np.ones(len(y))])
    paths = [tb.prior_path(tb.NaiveBayes(), data, y, [0.1, 10.0]) for data in (X, wide)]
    for plain, more in zip(*(path.results for path in paths), strict=True):
        np.testing.assert_allclose(plain.log_proba, more.log_proba, atol=1e-10)
    np.testing.assert_allclose(paths[0].log2_evidence, paths[1].log2_evidence)


@pytest.mark.slow
def test_a_shrunk_covariance_has_no_evidence_but_a_log_loss():
    X, y = load_iris(return_X_y=True)
    path = tb.prior_path(tb.GaussianDiscriminant(shrinkage=0.1), X[::5], y[::5], [1.0, 10.0])
    assert np.isnan(path.log2_evidence).all()
    assert path.by_log_loss in (1.0, 10.0)
    assert "evidence" not in repr(path)
    with pytest.raises(ValueError, match="by_log_loss"):
        _ = path.by_evidence
    path.plot()


def test_it_shows_itself():
    X, y = load_iris(return_X_y=True)
    path = tb.prior_path(tb.NaiveBayes(), X, y)
    assert len(path.to_frame()) == len(path.strengths) == 13
    assert repr(path).count("*") == 3
    assert len(path.plot().axes) == 3


@pytest.mark.parametrize(
    "grid", [[], [0.0, 1.0], [-1.0], [np.nan], [[1.0]]], ids=["none", "zero", "less", "nan", "two"]
)
def test_a_grid_that_is_none(grid):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="positive numbers"):
        tb.prior_path(tb.NaiveBayes(), X, y, grid)


def test_an_estimate_without_a_prior():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="has no prior"):
        tb.prior_path(tb.NaiveBayes(estimate="mle"), X, y)

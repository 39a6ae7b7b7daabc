"""Gaussians of independent columns: variances that groups and columns share, against NumPy and scipy."""

import numpy as np
import pytest
from scipy import stats

import tallybayes as tb
from tallybayes.beliefs.normal_inverse_gamma import Normal
from tallybayes.errors import EstimateError
from tallybayes.families.measurements import pooled_spread

RNG = np.random.default_rng(2)
GROUP = np.repeat([0, 1], [6, 9])
ROWS = RNG.normal(size=(15, 3)) * [1.0, 2.0, 5.0] + 4 * GROUP[:, None]
PARTS = [ROWS[k == GROUP] for k in (0, 1)]
WITHIN = np.stack([((part - part.mean(axis=0)) ** 2).sum(axis=0) for part in PARTS])
FREE = np.array([[6.0], [9.0]])
SHARED = {  # the sum of squares, the rows behind it, and the means it is about
    "each its own": (tb.Gaussian(), WITHIN, FREE, 1),
    "groups": (tb.TiedGaussian(), WITHIN.sum(axis=0, keepdims=True), 15.0, 2),
    "columns": (tb.SphericalGaussian(), WITHIN.sum(axis=1, keepdims=True), 3 * FREE, 3),
    "both": (tb.TiedSphericalGaussian(), WITHIN.sum(), 45.0, 6),
}


def counted(family):
    return family.collect(ROWS, GROUP, 2)


@pytest.mark.parametrize("name", SHARED)
def test_variances_of_all_that_share_one(name):
    family, squares, rows, means = SHARED[name]
    found, unbiased = family.maximum_likelihood(counted(family)), family.unbiased(counted(family))
    np.testing.assert_allclose(found.mean, [part.mean(axis=0) for part in PARTS])
    np.testing.assert_allclose(found.variance, np.broadcast_to(squares / rows, (2, 3)))
    np.testing.assert_allclose(unbiased.variance, np.broadcast_to(squares / (rows - means), (2, 3)))
    assert family.n_parameters(counted(family)) == 6 + 6 // means
    assert family.n_parameters(family.collect(np.zeros((2, 0)))) == 0


@pytest.mark.parametrize("name", SHARED)
def test_log_probabilities_are_scipys_and_add_up_to_the_likelihood(name):
    family, *_ = SHARED[name]
    point = family.maximum_likelihood(counted(family))
    found = family.log_prob(point, ROWS)
    cells = stats.norm.logpdf(ROWS[:, None, :], point.mean, np.sqrt(point.variance))
    by_row = "columns" in family.shared
    np.testing.assert_allclose(found, cells.sum(axis=-1) if by_row else cells, rtol=1e-12)
    own = cells[np.arange(15), GROUP]
    assert family.log_likelihood(point, counted(family)).sum() == pytest.approx(own.sum())


def test_a_missing_cell_adds_nothing_and_a_group_without_rows_is_unknown():
    family = tb.Gaussian()
    point = Normal(np.array([[0.0, 1.0]]), np.array([[1.0, 4.0]]))
    assert family.log_prob(point, np.array([[np.nan, 1.0]]))[0, 0].tolist() == [0.0, stats.norm.logpdf(0, 0, 2)]
    found = family.maximum_likelihood(family.collect(ROWS, GROUP, 3))
    assert np.isnan(found.mean[2]).all()
    assert np.isnan(found.variance[2]).all()


@pytest.mark.parametrize("far", [0.0, 3.0, 1e200])
def test_predictions_are_a_t_however_far(far):
    belief = tb.NormalInverseGamma([1.0, 2.0], 3.0, 2.5, [4.0, 0.5])
    found = tb.Gaussian().log_predictive(belief, np.array([[far, -far]]))[0]
    scale = np.sqrt(belief.scale * (1 + 1 / 3) / 2.5)
    if far < 1e100:
        np.testing.assert_allclose(found, stats.t.logpdf([far, -far], 5, belief.location, scale), rtol=1e-12)
    else:  # the tail alone: a power of the distance
        tail = stats.t.logpdf(1e6, 5) - 6 * np.log(far / (1e6 * scale)) - np.log(scale)
        np.testing.assert_allclose(found, tail, rtol=1e-9)


def test_no_variance_is_no_density():
    flat = Normal(np.array([0.0, 1.0]), np.array([1.0, 0.0]))
    with pytest.raises(EstimateError, match="column 1"):
        tb.Gaussian().log_prob(flat, np.zeros((1, 2)))
    gone = tb.Gaussian().without_flat(Normal(np.zeros((2, 2)), np.array([[1.0, 0.0], [1.0, 1.0]])))
    assert np.isnan(gone.mean).tolist() == [[True, True], [False, False]]


@pytest.mark.parametrize(("estimate", "share"), [("bayes", 1.5), ("map", 3.0)])
def test_the_mean_and_the_mode_of_default_priors(estimate, share):
    family = tb.Gaussian()
    prior = family.default_prior(counted(family), estimate)
    expected = pooled_spread(counted(family))
    np.testing.assert_allclose(prior.location, expected.mean)
    np.testing.assert_allclose(prior.scale, share * expected.spread)
    assert float(np.ravel(prior.shape)[0]) == 1.5


def test_distances_shares_and_draws():
    one, other = Normal(np.array([0.0]), np.array([1.0])), Normal(np.array([2.0]), np.array([4.0]))
    assert tb.Gaussian().divergence(one, other)[0] == pytest.approx(np.log(2) + (1 + 4) / 8 - 0.5)
    np.testing.assert_allclose(tb.Gaussian().cumulative(other, np.array([[0.0], [2.0]]))[:, 0], stats.norm.cdf([-1, 0]))
    drawn = tb.Gaussian().sample(other, 20_000, np.random.default_rng(0))
    assert stats.kstest(drawn[:, 0], stats.norm(2, 2).cdf).pvalue > 0.01


def test_columns_share_what_a_row_is_worth():
    rng = np.random.default_rng(0)
    family, rows = tb.SphericalGaussian(), rng.normal(size=(30, 3))
    posterior = tb.learn(rows, family).posterior()
    asked = np.array([[0.5, -1.0, 2.0], [0.5, np.nan, 2.0], [np.nan, np.nan, 1.0], [np.nan] * 3])
    asked = np.concatenate([asked, np.broadcast_to(posterior.location, (1, 3))])  # no length to be shared
    shares, whole = family.column_terms(posterior, asked, True), family.log_predictive(posterior, asked)
    np.testing.assert_allclose(shares.sum(axis=-1), whole, rtol=1e-12, atol=1e-15)
    assert (shares[np.isnan(asked)] == 0).all()
    assert shares[0].argmin() == 2  # the farthest costs most
    np.testing.assert_allclose(shares[-1], whole[-1] / 3, rtol=1e-12)

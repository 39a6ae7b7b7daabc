"""Distribution functions and quantiles, of families and of mixtures of their groups, beside SciPy's."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import tallybayes as tb
from tallybayes.distributions.normal_inverse_gamma import Normal
from tallybayes.distributions.normal_inverse_wishart import MultivariateNormal
from tallybayes.families._shared.cdf import mixture_cdf, mixture_quantile
from tallybayes.families.categorical import LevelProbabilities
from tallybayes.families.protocols.distribution_functions import cdf
from tallybayes.statistics.counts import Segments

MEAN, VARIANCE = np.array([[0.0, 5.0], [2.0, -1.0]]), np.array([[1.0, 4.0], [0.25, 9.0]])
RATE, THETA = np.array([[3.0, 0.0], [20.5, 1e-3]]), np.array([[0.2, 0.0], [0.9, 1.0]])
COVARIANCE = np.array([[[1.0, 0.5], [0.5, 4.0]], [[0.25, -0.1], [-0.1, 9.0]]])
EDGES = (0.0, 1.0, 3.0, 6.0)
SHARES = np.array([[0.2, 0.3, 0.5, 1.0, 0.0, 0.0], [0.1, 0.1, 0.8, 0.25, 0.5, 0.25]])
CASES = {
    "Gaussian": (tb.Gaussian(), Normal(MEAN, VARIANCE), stats.norm(MEAN, np.sqrt(VARIANCE))),
    "TiedGaussian": (tb.TiedGaussian(), Normal(MEAN, VARIANCE[:1]), stats.norm(MEAN, np.sqrt(VARIANCE[:1]))),
    "LogNormal": (tb.LogNormal(), Normal(MEAN, VARIANCE), stats.lognorm(np.sqrt(VARIANCE), scale=np.exp(MEAN))),
    "MultivariateGaussian": (
        tb.MultivariateGaussian(),
        MultivariateNormal(MEAN, COVARIANCE),
        stats.norm(MEAN, np.sqrt(VARIANCE)),
    ),
    "Poisson": (tb.Poisson(), RATE, stats.poisson(RATE)),
    "Bernoulli": (tb.Bernoulli(), THETA, stats.bernoulli(THETA)),
    "Binomial": (tb.Binomial(7), THETA, stats.binom(7, THETA)),
}
X = np.array([[-1.0, -2.5], [0.0, 0.0], [0.5, 1.0], [1.0, 0.3], [2.0, 6.5], [7.0, 7.0], [30.0, 8.0]])


@pytest.mark.parametrize("name", CASES)
def test_it_is_the_distribution_function(name):
    family, parameters, reference = CASES[name]
    np.testing.assert_allclose(cdf(family, parameters, X), reference.cdf(X[:, None, :]), atol=1e-14)


def test_of_bins_it_rises_within_them():
    family, parameters = tb.Binned(EDGES), LevelProbabilities(SHARES, Segments([3, 3]))
    found = cdf(family, parameters, np.array([[-1.0, -1.0], [0.5, 0.5], [2.0, 1.0], [6.0, 4.5], [9.0, 9.0]]))
    np.testing.assert_allclose(found[:, 0, 0], [0, 0.1, 0.35, 1, 1])
    np.testing.assert_allclose(found[:, 1, 1], [0, 0.125, 0.25, 0.875, 1])


@pytest.mark.parametrize("name", CASES)
@given(share=st.floats(0, 1), level=st.floats(0.001, 0.999))
def test_a_quantile_is_the_lowest_value_that_gets_there(name, share, level):
    family, parameters, reference = CASES[name]
    shares = np.array([[share, 1 - share], [1.0, 0.0]])
    found = mixture_quantile(family, parameters, shares, level)
    assert (mixture_cdf(family, parameters, shares, found) >= level).all()
    if family.is_continuous:
        lower = found - 1e-9 * np.maximum(np.abs(found), 1.0)
        np.testing.assert_allclose(found[1], reference.ppf(level)[0], rtol=1e-9, atol=1e-12)
        assert (mixture_cdf(family, parameters, shares, lower) <= level + 1e-12).all()
    else:
        assert (found == np.floor(found)).all()
        assert (mixture_cdf(family, parameters, shares, found - 1) < level).all()


@dataclass(frozen=True, eq=False, repr=False)
class Coarse(tb.Poisson):
    """Pairs of events: it draws otherwise than the class it is made from, and says no distribution function."""

    def sample(self, parameters, n, rng):
        return 2 * rng.poisson(parameters / 2, (n, *parameters.shape))


def test_a_family_that_draws_anew_is_drawn():
    family, rate = Coarse(), np.array([[4.0], [9.0]])
    found = cdf(family, rate, np.array([[3.0], [6.0]]))
    expected = stats.poisson(rate / 2).cdf(np.array([[1.0], [3.0]])[:, None, :])
    assert np.abs(found - expected).max() < 4 * np.sqrt(0.25 / 4096)
    assert cdf(family, rate, np.zeros((0, 1))).shape == (0, 2, 1)

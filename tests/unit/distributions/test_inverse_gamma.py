"""The inverse-gamma distribution of a variance, against SciPy."""

import numpy as np
import pytest
from scipy.stats import invgamma, kstest, norm

from tallybayes.distributions.inverse_gamma import InverseGamma, log_normal_density

PRIOR = InverseGamma(np.array([2.5, 0.7]), np.array([3.0, 0.2]))


def test_as_scipy_has_it():
    peer = invgamma(PRIOR.shape, scale=PRIOR.scale)
    variance = np.array([0.3, 2.0])
    np.testing.assert_allclose(PRIOR.log_prob(variance), peer.logpdf(variance), rtol=1e-13)
    np.testing.assert_allclose(PRIOR.quantile(0.3), peer.ppf(0.3), rtol=1e-12)
    np.testing.assert_allclose(PRIOR.mean(), [3.0 / 1.5, np.inf], rtol=1e-15)
    draws = PRIOR.sample((4000, 2), np.random.default_rng(0))
    assert kstest(draws[:, 0], invgamma(2.5, scale=3.0).cdf).pvalue > 1e-3


def test_evidence_is_the_ratio_of_prior_and_posterior():
    half, scatter = np.array([3.0, 0.5]), np.array([1.7, 0.1])
    after = InverseGamma(PRIOR.shape + half, PRIOR.scale + scatter)
    variance = 1.3  # p(data) = p(data | σ²) p(σ²) / p(σ² | data), whatever the variance
    likelihood = -half * np.log(2 * np.pi * variance) - scatter / variance
    expected = likelihood + PRIOR.log_prob(np.full(2, variance)) - after.log_prob(np.full(2, variance))
    np.testing.assert_allclose(PRIOR.log_evidence(half, scatter), expected, rtol=1e-12)


def test_normal_density():
    found = log_normal_density(np.array([0.4, -2.0]), np.array(3.0), np.array(1.5))
    assert found == pytest.approx(norm(0, np.sqrt(0.5)).logpdf([0.4, -2.0]), rel=1e-14)

"""Beliefs from an expert's interval: the quantiles are the ends, to the last digits, and what has none is refused."""

import numpy as np
import pytest
from scipy import stats

from tallybayes.distributions.elicitation import beta_from_interval, gamma_from_interval
from tallybayes.errors import PriorError

TAILS = [(0.025, 0.975), (0.25, 0.75), (0.01, 0.5)]


@pytest.mark.parametrize("tails", TAILS, ids=str)
@pytest.mark.parametrize("ends", [(0.1, 0.3), (0.45, 0.55), (0.001, 0.9), (0.9, 0.99)], ids=str)
def test_ends_are_quantiles_of_the_beta(ends, tails):
    a, b = beta_from_interval(*ends, tails)
    np.testing.assert_allclose(stats.beta.cdf(ends, a, b), tails, rtol=1e-7)


@pytest.mark.parametrize("tails", TAILS, ids=str)
@pytest.mark.parametrize("ends", [(0.1, 0.3), (1e-3, 5.0), (900.0, 1100.0)], ids=str)
def test_ends_are_quantiles_of_the_gamma(ends, tails):
    shape, rate = gamma_from_interval(*ends, tails)
    np.testing.assert_allclose(stats.gamma.cdf(ends, shape, scale=1 / rate), tails, rtol=1e-7)


@pytest.mark.parametrize("ends", [(0.0, 0.5), (0.5, 1.0), (0.5, 0.5), (0.6, 0.5)], ids=str)
def test_what_is_no_interval_of_probabilities(ends):
    with pytest.raises(PriorError, match="0 < low < high < 1"):
        beta_from_interval(*ends, TAILS[0])


@pytest.mark.parametrize("ends", [(0.0, 0.5), (0.5, np.inf), (2.0, 2.0), (3.0, 2.0)], ids=str)
def test_what_is_no_interval_of_rates(ends):
    with pytest.raises(PriorError, match="0 < low < high"):
        gamma_from_interval(*ends, TAILS[0])


def test_an_interval_that_no_belief_has_is_told():
    with pytest.raises(PriorError, match="Try a wider interval"):
        beta_from_interval(0.5, 0.5 + 1e-15, TAILS[0])


@pytest.mark.parametrize("ends", [(0.3, 0.30001), (0.999, 0.9999), (1e-30, 0.5), (1e-12, 0.999999)], ids=str)
def test_narrow_and_lopsided_intervals_of_probabilities_are_found(ends):
    a, b = beta_from_interval(*ends, TAILS[0])
    np.testing.assert_allclose(stats.beta.cdf(ends, a, b), TAILS[0], rtol=1e-5)


@pytest.mark.parametrize("ends", [(1.0, 1.00001), (1e-40, 5.0), (100.0, 1e6)], ids=str)
def test_narrow_and_lopsided_intervals_of_rates_are_found(ends):
    shape, rate = gamma_from_interval(*ends, TAILS[0])
    np.testing.assert_allclose(stats.gamma.cdf(ends, shape, scale=1 / rate), TAILS[0], rtol=1e-5)

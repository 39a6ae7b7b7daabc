"""Counts of events: against scipy's Poisson and negative binomial, cell by cell, and at the edges."""

import numpy as np
import pytest
from scipy import stats

import tallybayes as tb
from tallybayes.errors import DataError, EstimateError
from tallybayes.families._shared.blocks import compressed
from tallybayes.families.protocols.cell_checks import out_of_support
from tallybayes.families.protocols.display import named_parameters
from tallybayes.families.protocols.distribution_functions import cdf, kl_divergence
from tallybayes.families.protocols.em_support import distance_features

FAMILY = tb.Poisson()
RATES = np.array([[2.0, 0.5], [7.0, 0.0]])
ROWS = np.array([[0.0, 0.0], [3.0, 1.0], [np.nan, 2.0]])


def test_log_probabilities_are_scipys_and_what_is_missing_adds_nothing():
    expected = np.nan_to_num(stats.poisson.logpmf(ROWS[:, None, :], RATES), nan=0.0, neginf=-np.inf)
    np.testing.assert_allclose(FAMILY.log_prob(RATES, ROWS), expected, rtol=1e-13, atol=1e-15)
    assert FAMILY.log_prob(RATES, ROWS)[1, 1, 1] == -np.inf  # an event at rate 0


def test_predictions_are_negative_binomial():
    belief = tb.Gamma([[3.0, 1.5]], [[2.0, 0.7]])
    cells = stats.nbinom.logpmf(ROWS, belief.shape, belief.rate / (1 + belief.rate))
    np.testing.assert_allclose(FAMILY.log_predictive(belief, ROWS)[:, 0], np.nan_to_num(cells), rtol=1e-12)


@pytest.mark.parametrize("n", [1, 500])  # few values of many rows are computed once
def test_predictions_of_many_rows_are_those_of_single_rows(n):
    belief = tb.Gamma([[3.0, 1.5], [70.0, 0.01]], [[2.0, 0.7], [9.0, 3.0]])
    rows = np.random.default_rng(0).poisson(4.0, (n, 2)).astype(float)
    rows[::7, 1] = np.nan
    single = np.concatenate([FAMILY.log_predictive(belief, row[None]) for row in rows])
    np.testing.assert_allclose(FAMILY.log_predictive(belief, rows), single, rtol=1e-13)


def test_counting_and_its_likelihood():
    found = FAMILY.collect(np.array([[3.0], [5.0], [4.0]]), weight=np.array([1.0, 2.0, 0.5]))
    assert (found.weight.tolist(), found.total.tolist()) == ([[3.5]], [[15.0]])
    rate = FAMILY.maximum_likelihood(found)
    assert rate.tolist() == [[15 / 3.5]]
    logs = stats.poisson.logpmf([3, 5, 4], rate[0, 0])
    assert FAMILY.log_likelihood(rate, found)[0, 0] == pytest.approx(logs @ [1.0, 2.0, 0.5])
    sparse = FAMILY.collect(compressed(np.array([[0.0, 2.0], [1.0, 0.0]])))
    assert sparse == FAMILY.collect(np.array([[0.0, 2.0], [1.0, 0.0]]))


def test_default_priors_are_worth_a_row_at_the_mean_of_all():
    counted = FAMILY.collect(np.array([[3.0], [5.0], [4.0]]), np.array([0, 1, 1]), 2)
    mean = 12.5 / 4
    assert FAMILY.default_prior(counted, "bayes") == tb.Gamma([mean], 1)
    assert FAMILY.default_prior(counted, "map") == tb.Gamma([1 + mean], 1)


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf])
def test_rates_that_are_none(bad):
    with pytest.raises(EstimateError, match="finite rates of at least 0"):
        FAMILY.as_parameters(bad, tb.Totals([1.0], [1.0]))
    assert FAMILY.as_parameters(0.0, tb.Totals([1.0], [1.0])).tolist() == [0.0]


def test_cells_outside():
    assert out_of_support(FAMILY, np.array([0.0, 2.0, -1.0, 0.5])).tolist() == [False, False, True, True]
    with pytest.raises(DataError, match="whole number"):
        tb.fit_distribution([1.5], FAMILY)


def test_at_most_so_many_events():
    x = np.array([[-1.0, -0.5], [0.0, 2.7], [3.0, 1.0]])
    np.testing.assert_allclose(cdf(FAMILY, RATES, x)[:, 0], stats.poisson.cdf(x, RATES[0]), rtol=1e-14)


def test_divergence_seeds_and_draws():
    p = stats.poisson.pmf(np.arange(100), 2.0)
    gap = stats.poisson.logpmf(np.arange(100), 2.0) - stats.poisson.logpmf(np.arange(100), 3.0)
    assert kl_divergence(FAMILY, 2.0, 3.0) == pytest.approx(p @ gap)
    assert kl_divergence(FAMILY, 0.0, 3.0) == 3.0
    dense, _ = distance_features(FAMILY, np.array([[4.0, 9.0]]))
    assert dense.tolist() == [[2.0, 3.0]]
    assert distance_features(FAMILY, compressed(np.array([[4.0, 0.0]])))[0].data.tolist() == [2.0]
    drawn = FAMILY.sample(RATES, 40_000, np.random.default_rng(0))
    np.testing.assert_allclose(drawn.mean(axis=0), RATES, atol=5 * np.sqrt(7 / 40_000))
    np.testing.assert_allclose(drawn.var(axis=0), RATES, rtol=0.05)
    assert named_parameters(FAMILY, np.array([2.0])) == {"rate": np.array([2.0])}

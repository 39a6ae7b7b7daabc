"""Binomial: probabilities, support, and statistics of numbers of successes."""

import numpy as np
import pytest
from scipy import stats

import tallybayes as tb
from tallybayes.families.protocols.cell_checks import out_of_support
from tallybayes.families.protocols.scoring_forms import log_predictive_form, log_prob_form, transform

RATES = np.array([[0.0, 0.2, 0.7], [1.0, 0.5, 0.05]])  # of two groups and three columns


@pytest.mark.parametrize("n", [1, 7, 255, 256])
def test_probabilities_of_successes_are_scipys(n):
    family = tb.Binomial(n)
    x = np.array([[0.0, n, np.nan], [n, 0.0, n // 2], [n // 2, n // 3, 0.0]])
    missing = np.isnan(x[:, None])
    expected = np.where(missing, 0.0, stats.binom.logpmf(np.nan_to_num(x)[:, None], n, RATES))
    np.testing.assert_allclose(family.log_prob(RATES, x), expected, rtol=1e-10)
    belief = tb.Beta([[2.0, 1.0, 5.0], [3.0, 4.0, 0.2]], [1.0, 3.0, 0.5])
    drawn = stats.betabinom.logpmf(np.nan_to_num(x)[:, None], n, belief.alpha, belief.beta)
    predicted = np.where(missing, 0.0, drawn)
    np.testing.assert_allclose(family.log_predictive(belief, x), predicted, rtol=1e-9)
    codes = transform(family, x)
    assert codes.tolist() == np.where(np.isnan(x), -1, x).astype(int).tolist()
    for form, wanted in ((log_prob_form(family, RATES), expected), (log_predictive_form(family, belief), predicted)):
        assert (form is None) == (n > 255)  # only few are kept
        if form is not None:
            np.testing.assert_allclose(form.evaluate(codes), wanted, rtol=1e-9)


def test_what_is_no_number_of_successes():
    cells = np.array([0.0, 3.0, 4.0, -1.0, 1.5])
    assert out_of_support(tb.Binomial(3), cells).tolist() == [False, False, True, True, True]
    assert tb.Binomial(np.int64(2)).n == 2
    for wrong in (0, -1, 1.5, "3"):
        with pytest.raises(tb.errors.DataError, match="n of Binomial"):
            tb.Binomial(wrong)
    with pytest.raises(tb.errors.DataError, match="success of Binomial"):
        tb.Binomial(3, success=1)


def test_rows_stand_for_their_trials():
    statistics = tb.Binomial(5).collect(np.array([[2.0, 5.0], [np.nan, 0.0], [1.0, 1.0]]))
    np.testing.assert_array_equal(np.ravel(statistics.total), [3, 6])
    np.testing.assert_array_equal(np.ravel(statistics.failures), [7, 9])
    np.testing.assert_array_equal(np.ravel(tb.Binomial(5).row_weight(statistics)), [2, 3])
    coefficients = np.log([[10 * 5], [1 * 1 * 5]]).ravel()
    np.testing.assert_allclose(np.ravel(statistics.log_base_measure), coefficients, rtol=1e-13)


def test_likelihoods_are_sums_over_rows():
    rows = np.array([[2.0, 3.0, 0.0], [np.nan, 0.0, 1.0], [1.0, 1.0, 3.0]])
    rates = RATES[1:] * 0.8 + 0.1
    family = tb.Binomial(3)
    found = family.log_likelihood(rates[0], family.collect(rows))
    np.testing.assert_allclose(np.ravel(found), np.nansum(stats.binom.logpmf(rows, 3, rates[0]), axis=0), rtol=1e-12)

"""Differences of log Γ against Stirling's series in fifty-digit decimals."""

from decimal import Decimal, getcontext, localcontext
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from scipy.special import digamma, gammaln, polygamma

from tallybayes.beliefs.log_gamma import (
    digamma_rising,
    log_factorials,
    log_gamma_half_step,
    log_rising,
    stirling_rest,
    trigamma_rising,
)

DIGITS = 60


def bernoulli_numbers(n):
    numbers = []
    for m in range(n + 1):
        numbers.append(Fraction(int(m == 0)) - sum(comb(m, k) * numbers[k] / (m - k + 1) for k in range(m)))
    return numbers


BERNOULLI = bernoulli_numbers(40)
PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459")


def decimal_log_gamma(z):
    """Log Γ(z): step up to z > 60 by Γ(z + 1) = z Γ(z), then Stirling's series."""
    below = Decimal(1)
    while z < 60:
        below *= z
        z += 1
    series = (z - Decimal("0.5")) * z.ln() - z + (2 * PI).ln() / 2
    for k in range(1, 20):
        number = BERNOULLI[2 * k]
        series += Decimal(number.numerator) / Decimal(number.denominator) / (2 * k * (2 * k - 1) * z ** (2 * k - 1))
    return series - below.ln()


def difference(start, steps):
    with localcontext() as context:
        context.prec = DIGITS
        start, steps = Decimal(float(start)), Decimal(float(steps))
        return float(decimal_log_gamma(start + steps) - decimal_log_gamma(start))


def test_the_reference_knows_factorials():
    assert getcontext().prec < DIGITS
    assert difference(1, 4) == pytest.approx(np.log(24), rel=1e-15)
    assert difference(0.5, 0.5) == pytest.approx(-0.5 * np.log(np.pi), rel=1e-15)


@pytest.mark.parametrize("z", [1e-8, 0.1, 0.5, 1, 3.7, 20, 49.9, 50.0, 50.1, 51, 99.5, 1e3, 1e6, 1e9, 1e12, 1e15])
def test_half_step(z):
    # below 50 two logarithms of up to 150 are subtracted, which may cost a few units of 1e-14
    assert float(log_gamma_half_step(np.array(z))) == pytest.approx(difference(z, 0.5), rel=1e-14, abs=5e-14)


@pytest.mark.slow_after(21)
@pytest.mark.parametrize("start", [1e-8, 0.3, 1, 2, 49.9, 50.1, 1e3, 1e6, 1e9, 1e12])
@pytest.mark.parametrize("steps", [1e-6, 0.5, 1, 2.5, 7, 60, 1e4, 1e8, 1e12])
def test_rising(start, steps):
    # Where start is small and steps are large, the logarithm itself is huge: only its relative error counts.
    assert float(log_rising(np.array(start), steps)) == pytest.approx(difference(start, steps), rel=1e-13, abs=5e-14)


def test_no_steps_are_exactly_nothing():
    np.testing.assert_array_equal(log_rising(np.array([1e-300, 0.5, 1e15, 0.0]), 0.0), 0.0)


def test_arrays_equal_a_loop():
    start, steps = np.array([[0.5], [60.0]]), np.array([0.0, 1.0, 3.0])
    together = log_rising(start, steps)
    for i, j in np.ndindex(2, 3):
        assert together[i, j] == log_rising(start[i, 0], steps[j])


@pytest.mark.parametrize("dtype", ["u1", "i8", "f4", "f8"])
def test_log_factorials(dtype):
    for x in (np.arange(100), np.array([0, 1]), np.array([], dtype)):
        np.testing.assert_allclose(log_factorials(x.astype(dtype)), gammaln(x + 1.0), rtol=1e-15)
    for x in (
        np.array([0.5, 3.0]),
        np.array([2000.0, 3.0]),
        np.array([1.0, np.nan]),
        np.array([[1.0, 2.0], [3.0, 1e9]]),
    ):
        np.testing.assert_array_equal(log_factorials(x), gammaln(x + 1.0))


STARTS = np.array([1e-3, 0.4, 3.0, 19.0, 21.0, 50.0, 51.0, 80.0, 400.0])


@pytest.mark.parametrize("steps", [0.5, 3.0, 70.0, 1e6])
def test_derivatives_of_what_rises(steps):
    np.testing.assert_allclose(digamma_rising(STARTS, steps), digamma(STARTS + steps) - digamma(STARTS), rtol=1e-11)
    second = polygamma(1, STARTS + steps) - polygamma(1, STARTS)
    np.testing.assert_allclose(trigamma_rising(STARTS, steps), second, rtol=2e-5)


def test_derivatives_of_what_hardly_rises():
    large = STARTS[STARTS > 50]  # where the difference of two would have no digits
    np.testing.assert_allclose(digamma_rising(large, 1e-9), 1e-9 * polygamma(1, large), rtol=1e-8)


@pytest.mark.parametrize("z", [0.3, 2.0, 15.9, 16.0, 17.0, 30.0, 200.0])
def test_what_stirling_leaves(z):
    # log Γ(z + 1) = log Γ(z) + log z, of which Stirling's part is taken away on both sides.
    step = 1.0 - (z + 0.5) * np.log1p(1 / z)
    assert stirling_rest(np.array([z + 1.0]))[0] - stirling_rest(np.array([z]))[0] == pytest.approx(step, abs=2e-14)
    both = stirling_rest(np.array([z, 1.0]))
    assert both[0] == pytest.approx(stirling_rest(np.array([z]))[0], rel=1e-12)
    assert both[1] == pytest.approx(1.0 - 0.5 * np.log(2 * np.pi), abs=1e-14)


def test_log_factorials_at_the_end_of_what_is_looked_up():
    for highest in (1022, 1023, 1024, 1025, 255, 256, 257):
        x = np.array([0, highest])
        np.testing.assert_allclose(log_factorials(x), gammaln(x + 1.0), rtol=1e-15)

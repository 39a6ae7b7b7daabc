"""Differences of log Γ against Stirling's series in fifty-digit decimals."""

from decimal import Decimal, getcontext, localcontext
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from scipy.special import digamma, gammaln, polygamma

from tallybayes.distributions.log_gamma import (
    digamma_rising,
    log_choose,
    log_dirichlet_norm_ratio,
    log_factorials,
    log_growth,
    log_rising,
    stirling_remainder,
    trigamma_rising,
)
from tallybayes.statistics.counts import Segments

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
    assert float(log_rising(np.array(z), 0.5)) == pytest.approx(difference(z, 0.5), rel=1e-14, abs=5e-14)


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
    assert stirling_remainder(np.array([z + 1.0]))[0] - stirling_remainder(np.array([z]))[0] == pytest.approx(
        step, abs=2e-14
    )
    both = stirling_remainder(np.array([z, 1.0]))
    assert both[0] == pytest.approx(stirling_remainder(np.array([z]))[0], rel=1e-12)
    assert both[1] == pytest.approx(1.0 - 0.5 * np.log(2 * np.pi), abs=1e-14)


def test_log_factorials_at_the_end_of_what_is_looked_up():
    for highest in (1022, 1023, 1024, 1025, 255, 256, 257):
        x = np.array([0, highest])
        np.testing.assert_allclose(log_factorials(x), gammaln(x + 1.0), rtol=1e-15)


def decimal_of(function):
    """A sum of log Γ in sixty digits."""
    with localcontext() as context:
        context.prec = DIGITS
        return float(function(lambda z: decimal_log_gamma(Decimal(float(z)))))


@pytest.mark.parametrize("start", [0.25, 1.0, 3.0, 70.0, 4000.0, 1e7])
@pytest.mark.parametrize("steps", [0.0, 1.0, 1023.0, 1024.0, 3000.0, 1e6])
def test_ways_to_put_things_in_places(start, steps):
    expected = decimal_of(
        lambda log_gamma: decimal_log_gamma(Decimal(start) + Decimal(steps)) - log_gamma(start) - log_gamma(steps + 1)
    )
    assert float(log_choose(np.array(start), np.array(steps))) == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_ways_of_whole_numbers_are_counted():
    for start, steps in ((3, 2), (1, 5000), (2, 5000), (5000, 2), (1200, 1100)):
        exact = float(Decimal(comb(start + steps - 1, steps)).ln())
        found = log_choose(np.array([float(start), 1.0]), np.array([float(steps), 2000.0]))
        assert found[0] == pytest.approx(exact, rel=1e-12, abs=1e-12)
        assert found[1] == pytest.approx(0.0, abs=1e-11)  # a single place


@pytest.mark.parametrize(
    ("start", "steps"), [(2.0, 3.0), (3.0, 3.0), (3.0, 2.0), (1.0, 1e-20), (1e-300, 1e300), (5.0, 0.0)]
)
def test_growth_has_all_its_digits(start, steps):
    with localcontext() as context:
        context.prec = DIGITS
        exact = float(((Decimal(start) + Decimal(steps)) / Decimal(start)).ln())
    assert float(log_growth(np.array(start), np.array(steps))) == pytest.approx(exact, rel=1e-15)


SHARES = [
    ([1.0, 1.0, 1.0], [3.0, 0.0, 1.0]),
    ([0.5, 2.0, 1.0], [4.0, 1.0, 0.0]),
    ([1e-3, 5.0, 1e-3], [0.0, 2.0, 7.0]),
    ([1.0, 1.0, 1.0], [1e9, 3.0, 0.0]),
    ([1e8, 1.0, 2.0], [3.0, 2.0, 1.0]),
    ([20.0, 30.0, 7.0], [100.0, 150.0, 35.0]),
    ([1e6, 2e6, 3e6], [1.0, 2.0, 3.0]),
    ([0.1, 0.1, 0.1], [0.0, 0.0, 5.0]),
]


@pytest.mark.parametrize(("start", "steps"), SHARES, ids=str)
def test_rising_shares_are_a_ratio_of_norms(start, steps):
    def norm(log_gamma):
        added = sum(difference_of(a, n) for a, n in zip(start, steps, strict=True))
        return added - difference_of(sum(map(Decimal, start)), sum(map(Decimal, steps)))

    def difference_of(a, n):
        return decimal_log_gamma(Decimal(a) + Decimal(n)) - decimal_log_gamma(Decimal(a))

    found = log_dirichlet_norm_ratio(np.array(start), np.array(steps), Segments([3]))
    assert found.shape == (1,)
    assert found[0] == pytest.approx(decimal_of(norm), rel=1e-12, abs=1e-13)
    # beside other columns, one of them without levels, it is the same
    beside = log_dirichlet_norm_ratio(np.array([*start, 1.0, 1.0]), np.array([*steps, 2.0, 1.0]), Segments([3, 0, 2]))
    assert beside[0] == pytest.approx(found[0], rel=1e-14)
    assert beside[1] == 0
    assert beside[2] == pytest.approx(np.log(2 / 24), rel=1e-14)  # 2! 1! / (2 · 3 · 4)
    assert log_dirichlet_norm_ratio(np.array(start), np.zeros(3), Segments([3]))[0] == 0


@pytest.mark.parametrize("z", [0.01, 0.3, 2.0, 15.9, 16.0, 16.1, 25.0, 200.0])
def test_what_stirling_leaves_has_its_digits(z):
    def rest(log_gamma):
        at = Decimal(z)
        return log_gamma(z) - ((at - Decimal("0.5")) * at.ln() - at + (2 * PI).ln() / 2)

    expected = decimal_of(rest)
    assert float(stirling_remainder(np.array(z))) == pytest.approx(expected, rel=1e-14, abs=2e-14)
    if z >= 16:
        assert float(stirling_remainder(np.array(z))) == pytest.approx(expected, rel=3e-14)
    assert stirling_remainder(np.array([z, 0.5]))[0] == pytest.approx(expected, rel=1e-12, abs=2e-14)


def test_second_derivatives_have_six_digits():
    for steps in (0.5, 3.0, 70.0, 1e6):
        for start in STARTS:
            exact = polygamma(1, start + steps) - polygamma(1, start)
            assert float(trigamma_rising(np.array([start]), steps)[0]) == pytest.approx(exact, rel=2e-6)


def test_factorials_of_numbers_below_0_and_between_whole_ones():
    np.testing.assert_allclose(log_factorials(np.array([-0.5, 3.0])), gammaln([0.5, 4.0]), rtol=1e-15)
    np.testing.assert_allclose(log_factorials(np.array([-0.5, 2.5])), gammaln([0.5, 3.5]), rtol=1e-15)


def test_factorials_of_numbers_none_of_which_is_whole():
    np.testing.assert_allclose(log_factorials(np.array([0.5, 1.5, 7.25])), gammaln([1.5, 2.5, 8.25]), rtol=1e-15)

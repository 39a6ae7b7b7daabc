"""Double-double arithmetic against exact fractions."""

from fractions import Fraction

import numpy as np
import pytest

from tallybayes.statistics.double_double import DoubleDouble


def exact(pair: DoubleDouble) -> list[Fraction]:
    high, low = np.ravel(pair.high).tolist(), np.ravel(pair.low).tolist()
    return [Fraction(h) + Fraction(x) for h, x in zip(high, low, strict=True)]


def random_pairs(rng: np.random.Generator, n: int = 200) -> DoubleDouble:
    """Numbers of all magnitudes that use all 106 bits."""
    high = rng.standard_normal(n) * 2.0 ** rng.integers(-60, 60, n)
    low = high * 2.0**-53 * rng.uniform(-0.99, 0.99, n) / 2
    return DoubleDouble(high, low)


def assert_close(found: DoubleDouble, expected: list[Fraction], size: list[Fraction] | None = None) -> None:
    """Equal to 1e-30 of `size`, by default of the expected number itself."""
    for got, want, scale in zip(exact(found), expected, size or expected, strict=True):
        assert abs(got - want) <= Fraction(1, 10**30) * abs(scale)


def assert_normalized(pair: DoubleDouble) -> None:
    np.testing.assert_array_equal(pair.high + pair.low, pair.high)


@pytest.mark.parametrize("operation", ["add", "subtract", "multiply", "divide"])
def test_arithmetic_agrees_with_fractions(operation):
    rng = np.random.default_rng(1)
    first, second = random_pairs(rng), random_pairs(rng)
    pairs = list(zip(exact(first), exact(second), strict=True))
    if operation == "add":
        found, expected, size = first + second, [a + b for a, b in pairs], [abs(a) + abs(b) for a, b in pairs]
    elif operation == "subtract":
        found, expected, size = first - second, [a - b for a, b in pairs], [abs(a) + abs(b) for a, b in pairs]
    elif operation == "multiply":
        found, expected, size = first * second, [a * b for a, b in pairs], None
    else:
        found, expected, size = first / second, [a / b for a, b in pairs], None
    assert_close(found, expected, size)
    assert_normalized(found)


def test_multiplying_by_a_plain_number_is_as_good():
    rng = np.random.default_rng(2)
    pairs, factors = random_pairs(rng), rng.standard_normal(200)
    expected = [a * Fraction(float(f)) for a, f in zip(exact(pairs), factors, strict=True)]
    assert_close(pairs * factors, expected)


def test_cancellation_keeps_the_low_part():
    big = DoubleDouble.of(np.array([1e300, -1e20, 3.0]))
    small = DoubleDouble.of(np.array([1e280, 1.0, 2.0**-90]))
    np.testing.assert_array_equal(((big + small) - big).value, small.high)


@pytest.mark.parametrize("shape", [(1,), (2, 3), (7, 2), (16, 1), (3, 4, 5)])
@pytest.mark.parametrize("axis", [(0,), (-1,), "all"])
def test_sum_agrees_with_fractions(shape, axis):
    rng = np.random.default_rng(3)
    flat = random_pairs(rng, int(np.prod(shape)))
    array = flat.map(lambda a: a.reshape(shape))
    axes = tuple(range(len(shape))) if axis == "all" else tuple(a % len(shape) for a in axis)
    numbers = np.array(exact(flat), dtype=object).reshape(shape)
    expected, size = np.sum(numbers, axis=axes), np.sum(abs(numbers), axis=axes)
    found = array.sum(axes)
    assert found.shape == np.shape(expected)
    assert_close(found, np.ravel(expected).tolist(), np.ravel(size).tolist())


def test_sum_over_an_empty_axis_is_zero():
    total = DoubleDouble.zeros((0, 3)).sum((0,))
    np.testing.assert_array_equal(total.value, np.zeros(3))


def test_sum_of_many_groups_cancels_exactly():
    # 10001 numbers whose float64 sum loses the small ones
    numbers = np.concatenate([np.full(5000, 1e20), [1.0], np.full(5000, -1e20)])
    assert DoubleDouble.of(numbers).sum((0,)).value == 1.0


def test_frozen_parts_cannot_be_written_but_the_source_can():
    source = np.ones(3)
    pair = DoubleDouble.of(source).frozen()
    with pytest.raises(ValueError, match="read-only"):
        pair.high[0] = 2.0
    source[0] = 5.0  # the caller's own array stays the caller's


def test_negation_and_zeros():
    pair = random_pairs(np.random.default_rng(4))
    assert exact(-pair) == [-value for value in exact(pair)]
    assert DoubleDouble.zeros((2, 3)).shape == (2, 3)
    assert not DoubleDouble.zeros((2, 3)).value.any()

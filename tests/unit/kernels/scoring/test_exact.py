"""Where scoring could go wrong unnoticed: out of range, tied, impossible, or guessed from rounded weights."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tests.unit.kernels.scoring_cases import scorer


@pytest.mark.slow_after(19)
@pytest.mark.parametrize("d", [1, 3, 16, 17, 40, 300])
@pytest.mark.parametrize("size", [1e-300, 1e-30, 1e-9, 1e-3, 1.0, 1e3, 1e30, 1e100, 1e150, 1e200, 1e300])
def test_student_products_of_any_size(tier: str, d: int, size: float) -> None:
    rng = np.random.default_rng(0)
    # t = x² · inverse_spread with x = √size: t is `size`, and some as large as can be in between
    X = np.sqrt(size) * rng.uniform(0.5, 2.0, (50, d))
    X[10:20, : d // 2] = 1e-5
    X[20:30, ::3] = 1e150
    inverse_spread, power, zero = np.ones((d, 3)), np.tile([0.5, 3.0, 2e5], (d, 1)), np.zeros((d, 3))
    found = scorer(tier, np.zeros(3), [("student", zero, inverse_spread, power, zero)]).joint([X], 50)
    terms = np.where(X < 1e140, np.log1p(np.minimum(X, 1e140) ** 2), 2.0 * np.log(X))
    expected = -terms.sum(axis=1)[:, None] * power[0]
    np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_student_far_out_of_range(tier: str) -> None:
    X = np.array([[1e200, 1.0], [-1e308, 1e308], [np.nan, 1e300], [1.0, 1.0]])
    mean, spread = np.array([[0.0], [1.0]]), np.array([[4.0], [1e-10]])
    found = scorer(tier, [0.0], [("student", mean, spread, np.full((2, 1), 1.5), np.zeros((2, 1)))]).joint([X], 4)
    log = np.log
    expected = [
        2 * log(2e200),
        2 * log(2e308 / 10) + 2 * log(10) + 2 * log(1e303),
        2 * log(1e295),
        log(5.0),
    ]
    np.testing.assert_allclose(found[:, 0], -1.5 * np.array(expected), rtol=1e-13)


def test_tiny_distances_do_not_vanish_in_one(tier: str) -> None:
    # 1 + t rounds to 1 for every column, yet power · Σ t is what separates the classes
    d = 100
    X = np.full((1, d), 1e-3)
    spread = np.tile([1e-12, 2e-12], (d, 1))
    power = np.full((d, 2), 1e15)
    found = scorer(tier, np.zeros(2), [("student", np.zeros((d, 2)), spread, power, np.zeros((d, 2)))]).joint([X], 1)
    np.testing.assert_allclose(found, [[-1e15 * d * 1e-18, -2e15 * d * 1e-18]], rtol=1e-13)


def test_ties_go_to_the_first(tier: str) -> None:
    for n_classes in (2, 5, 8, 9, 20):
        table = np.zeros((3, n_classes))
        table[1, n_classes // 2 :] = 1.0
        table[2, :] = -np.inf
        made = scorer(tier, np.zeros(n_classes), [("codes", [3], table, "error")])
        codes = np.resize(np.array([[0], [1], [2], [-1]]), (37, 1))
        expected = np.resize([0, n_classes // 2, 0, 0], 37)
        np.testing.assert_array_equal(made.argmax([codes], 37), expected)
        np.testing.assert_array_equal(made.joint([codes], 37).argmax(axis=1), expected)


def test_impossible_is_minus_infinity_never_nan(tier: str) -> None:
    start = np.array([-np.inf, 0.0, -np.inf])
    table = np.array([[-np.inf, -np.inf, 0.0]])
    weight = np.array([[-np.inf, -1.0, -1.0], [-1.0, -np.inf, -1.0]])
    made = scorer(tier, start, [("codes", [1], table, "error"), ("sparse", weight, "count")])
    block = (np.array([0, 2, 4]), np.array([0, 1, 0, 1]), np.array([1.0, 0.0, 0.0, 0.0]))
    found = made.joint([np.zeros((2, 1), np.int8), block], 2)
    np.testing.assert_array_equal(found, np.full((2, 3), -np.inf))
    np.testing.assert_array_equal(made.argmax([np.zeros((2, 1), np.int8), block], 2), [0, 0])
    alone = scorer(tier, start, [("sparse", weight, "count")])
    np.testing.assert_array_equal(alone.joint([block], 2)[:, 1], [-1.0, 0.0])
    np.testing.assert_array_equal(alone.argmax([block], 2), [1, 1])


def test_no_factors_and_no_columns(tier: str) -> None:
    start = np.log([0.2, 0.7, 0.1])
    np.testing.assert_array_equal(scorer(tier, start, []).joint([], 2), np.tile(start, (2, 1)))
    empty = np.zeros((0, 3))
    factors = [
        ("codes", [], empty, "error"),
        ("linear", empty, empty, "binary"),
        ("normal", empty, empty, empty),
        ("student", empty, empty, empty, empty),
        ("sparse", empty, "count"),
    ]
    sparse = (np.zeros(3, np.int32), np.zeros(0, np.int32), np.zeros(0))
    blocks = [np.zeros((2, 0), np.uint8), [], np.zeros((2, 0)), [], sparse]
    made = scorer(tier, start, factors)
    np.testing.assert_array_equal(made.joint(blocks, 2), np.tile(start, (2, 1)))
    np.testing.assert_array_equal(made.argmax(blocks, 2), [1, 1])
    assert scorer(tier, start, [factors[0]]).joint([np.zeros((0, 0), np.uint8)], 0).shape == (0, 3)


def test_near_ties_are_decided_in_float64(tier: str) -> None:
    """Rows whose classes differ by some units in the last place of float64, far below what rounded weights can tell."""
    rng = np.random.default_rng(1)
    n, n_words, n_classes = 3000, 200, 20
    weight = np.repeat(rng.normal(-8.0, 2.0, (n_words, 1)), n_classes, axis=1)
    weight += rng.integers(-3, 4, weight.shape) * np.spacing(weight)
    weight[:100] += rng.normal(0.0, 1e-7, (100, n_classes))
    start = np.full(n_classes, -3.0) + rng.normal(0.0, 1e-15, n_classes)
    length = rng.integers(0, 400, n)
    indptr = np.concatenate(([0], np.cumsum(length)))
    indices = rng.integers(0, n_words, indptr[-1]).astype(np.int32)
    for values in (np.ones(indptr[-1]), rng.poisson(1.0, indptr[-1]).astype(np.float32), 1e6 * rng.random(indptr[-1])):
        check = "nonnegative" if values.max() > 100 else "count"
        made = scorer(tier, start, [("sparse", weight, check)])
        block = (indptr, indices, values)
        np.testing.assert_array_equal(made.argmax([block], n), made.joint([block], n).argmax(axis=1))


def test_guessing_meets_values_it_cannot_hold(tier: str) -> None:
    weight = -np.array([[1e-40, 1e-41, 0.0], [1e29, 1.0, 2.0], [3.0, 3.0, 3.0]])
    made = scorer(tier, [0.0, -1e-300, -np.inf], [("sparse", weight, "nonnegative")])
    values = np.array([1e-300, 1e300, 1e40, 1e-20, 0.0, 1e308, 1.7e308])
    block = (np.arange(0, 8), np.array([0, 1, 2, 1, 0, 0, 2]), values)
    joint = made.joint([block], 7)
    assert not np.isnan(joint).any()
    np.testing.assert_array_equal(made.argmax([block], 7), joint.argmax(axis=1))


def test_sums_are_those_of_exact_arithmetic(tier: str) -> None:
    rng = np.random.default_rng(2)
    X, weight, bias = rng.normal(size=(3, 45)), rng.normal(size=(45, 2)), rng.normal(size=(45, 2))
    found = scorer(tier, np.zeros(2), [("linear", weight, bias, "finite")]).joint([X], 3)
    for i in range(3):
        for k in range(2):
            exact = sum(
                Fraction(float(X[i, j])) * Fraction(float(weight[j, k])) + Fraction(float(bias[j, k]))
                for j in range(45)
            )
            assert abs(Fraction(float(found[i, k])) - exact) < 1e-13

"""Moments with more digits: against fractions, where columns are all but the same and far from 0."""

from fractions import Fraction

import numpy as np
import pytest

import tallybayes as tb
from tallybayes.errors import CellError, DataError
from tallybayes.families._shared.blocks import Codes
from tallybayes.families._shared.high_precision_moments import collect_high_precision


def exact_scatter(rows):
    n, cells = len(rows), [[Fraction(float(cell)) for cell in row] for row in rows]
    means = [sum(row[j] for row in cells) / n for j in range(len(cells[0]))]
    d = len(means)
    return [
        [float(sum((row[i] - means[i]) * (row[j] - means[j]) for row in cells)) for j in range(d)] for i in range(d)
    ]


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_products_of_nearly_equal_columns_keep_their_digits(offset):
    rng = np.random.default_rng(0)
    x = rng.normal(size=300) + offset
    rows = np.c_[x, x + 1e-9 * rng.normal(size=300)]
    found = collect_high_precision(rows, None, 1, None, None, "Gaussian").scatter[0]
    exact = np.array(exact_scatter(rows))
    np.testing.assert_allclose(found, exact, rtol=1e-15)
    # the difference of the columns, which products of 16 digits do not show
    gap = Fraction(found[0, 0]) - 2 * Fraction(found[0, 1]) + Fraction(found[1, 1])
    assert float(gap) == pytest.approx(float(np.var(rows[:, 0] - rows[:, 1]) * 300), abs=1e-12)


def test_as_other_moments_are_counted():
    rng = np.random.default_rng(1)
    rows, group = rng.normal(size=(20_000, 3)), rng.integers(-1, 3, 20_000)
    weight = rng.integers(0, 3, 20_000).astype(float)
    plain = tb.MultivariateGaussian().collect(rows, group, 3, weight)
    for block in (rows, list(rows.T)):
        found = collect_high_precision(block, group, 3, weight, None, "Gaussian")
        np.testing.assert_array_equal(found.weight, plain.weight)
        np.testing.assert_allclose(found.mean, plain.mean, atol=1e-15)
        np.testing.assert_allclose(found.scatter, plain.scatter, rtol=1e-12)
    shares = rng.dirichlet(np.ones(3), 20_000)
    soft = collect_high_precision(rows, None, 3, shares, None, "Gaussian")
    np.testing.assert_allclose(
        soft.scatter, tb.MultivariateGaussian().collect(rows, None, 3, shares).scatter, rtol=1e-10
    )


def test_what_does_not_count_need_not_be_a_number():
    rows = np.array([[1.0, 2.0], [np.nan, np.inf], [3.0, 1.0]])
    kept = collect_high_precision(rows[[0, 2]], None, 1, None, None, "Gaussian")
    assert collect_high_precision(rows, np.array([0, -1, 0]), 1, None, kept, "Gaussian") == kept
    assert collect_high_precision(rows, None, 1, np.array([1.0, 0.0, 1.0]), kept, "Gaussian") == kept
    assert collect_high_precision(rows, None, 1, np.array([[1.0], [0.0], [1.0]]), kept, "Gaussian") == kept
    with pytest.raises(CellError):
        collect_high_precision(rows, None, 1, None, None, "Gaussian")


def test_nothing_at_all_and_codes():
    assert collect_high_precision(np.zeros((0, 2)), None, 1, None, None, "Gaussian").weight.sum() == 0
    assert collect_high_precision(np.zeros((3, 0)), None, 1, None, None, "Gaussian").n_columns == 0
    with pytest.raises(DataError, match="codes of levels"):
        collect_high_precision(Codes([np.zeros(2, int)], np.array([1])), None, 1, None, None, "Gaussian")


def test_numbers_whose_squares_are_too_large():
    with pytest.raises(CellError):  # which the kernel names
        collect_high_precision(np.array([[1e200, 0.0], [-1e200, 1.0]]), None, 1, None, None, "Gaussian")


def digits_lost(found, rows):
    """The largest error of the sums of products about the anchor, beside these, against fractions."""
    worst = 0.0
    for i, j in ((0, 0), (0, 1), (1, 1)):
        anchors = [Fraction(float(found.anchor[k])) for k in (i, j)]
        exact = sum((Fraction(float(a)) - anchors[0]) * (Fraction(float(b)) - anchors[1]) for a, b in rows[:, [i, j]])
        sums = Fraction(float(found.second_sum.high[0, i, j])) + Fraction(float(found.second_sum.low[0, i, j]))
        worst = max(worst, abs(float((sums - exact) / exact)))
    return worst


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e9])
def test_digits_are_kept_whatever_the_unit(scale):
    rng = np.random.default_rng(2)
    for side in (1.0, -1.0):  # all on one side of the first, about which they are summed
        x = side * np.abs(rng.normal(size=200))
        rows = scale * np.c_[np.r_[0.0, x], np.r_[0.0, x + 1e-9 * rng.normal(size=200)]]
        like = tb.Moments.zeros((1,), 2, full=True)
        assert digits_lost(collect_high_precision(rows, None, 1, None, like, "Gaussian"), rows) < 1e-20
        assert digits_lost(tb.MultivariateGaussian().collect(rows, like=like), rows) > 1e-20


def test_digits_are_kept_beside_rows_that_do_not_count():
    rng = np.random.default_rng(3)
    x = rng.normal(size=200)
    rows = np.c_[x, x + 1e-9 * rng.normal(size=200)]
    rows[7], rows[9] = np.nan, [1.0, np.inf]
    kept = np.delete(rows, [7, 9], axis=0)
    group, weight = np.zeros(200, dtype=int), np.ones(200)
    group[7], weight[9] = -1, 0.0
    like = tb.Moments.zeros((1,), 2, full=True)
    for counts in (weight, weight[:, None]):
        some = group if counts.ndim == 1 else np.zeros(200, dtype=int)
        share = counts.copy()
        share[7] = share[7] if counts.ndim == 1 else 0.0
        found = collect_high_precision(rows, some if counts.ndim == 1 else None, 1, share, like, "Gaussian")
        assert found.weight[0, 0] == 198
        assert digits_lost(found, kept) < 1e-20


def test_columns_of_a_list_without_any():
    assert collect_high_precision([], None, 1, None, None, "Gaussian").n_columns == 0

"""Sums that a database makes: evaluated here row by row, they are the moments that rows have."""

import numpy as np
import pytest

import tallybayes as tb
from tallybayes.families._shared.sql_aggregates import (
    BinIndex,
    Const,
    IfPresent,
    Log,
    Minus,
    Product,
    SqlColumn,
    Weight,
    moments_of_sums,
    sums_of_powers,
    with_constants,
)


def asked(expression, row, weight):
    """An expression of one row, NaN where it is not there."""
    match expression:
        case SqlColumn(place):
            return row[place]
        case Weight():
            return weight
        case Const(value):
            return value
        case Product(first, second):
            return asked(first, row, weight) * asked(second, row, weight)
        case Minus(first, second):
            return asked(first, row, weight) - asked(second, row, weight)
        case Log(of):
            return np.log(asked(of, row, weight))
        case BinIndex(of, cuts):
            return float(sum(asked(of, row, weight) >= cut for cut in cuts))
        case IfPresent(there, then):
            return np.nan if np.isnan(asked(there, row, weight)) else asked(then, row, weight)
    raise AssertionError(expression)


@pytest.mark.parametrize("full", [False, True])
def test_moments_by_sums(full):
    rng = np.random.default_rng(0)
    rows, weight, anchor = rng.normal(5, 1, (20, 3)), rng.integers(1, 4, 20).astype(float), np.array([4.0, 5.0, 6.0])
    if not full:
        rows[3, 1] = np.nan
    wanted = sums_of_powers([SqlColumn(k) for k in range(3)], anchor, full=full)
    sums = [np.nansum([asked(one.of, row, w) for row, w in zip(rows, weight, strict=True)]) for one in wanted]
    found = moments_of_sums(anchor, np.array([sums]), full=full)
    family = tb.MultivariateGaussian() if full else tb.Gaussian()
    expected = family.collect(rows, weight=weight)
    np.testing.assert_allclose(np.broadcast_to(found.weight, (1, 3)), np.broadcast_to(expected.weight, (1, 3)))
    np.testing.assert_allclose(found.mean.ravel(), expected.mean.ravel(), rtol=1e-12)
    np.testing.assert_allclose(found.scatter.reshape(expected.scatter.shape), expected.scatter, rtol=1e-11)


@pytest.mark.parametrize("full", [False, True])
def test_columns_at_their_anchor_have_no_spread(full):
    n = 9 + (0 if not full else 3)
    found = with_constants(np.ones((1, n)), np.array([[False, True, False]]))[0]
    assert found[:6].tolist() == [1, 1, 1, 1, 0, 1]
    assert found[6:].tolist() == ([1, 0, 1] if not full else [1, 0, 1, 0, 0, 1])

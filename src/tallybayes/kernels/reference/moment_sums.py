"""Double-double sums in NumPy: moments and scatter matrices about an anchor."""

from __future__ import annotations

import numpy as np

from tallybayes._utils.error_free import two_product, two_sum
from tallybayes.kernels.arguments import AnyArray, Columns, Float64Array
from tallybayes.kernels.reference.groups import as_matrix, present_rows, raise_first, row_sets, rows_of

MAX_TERM = 1e300  # a larger term w·(x − anchor)² is an error: sums of hundreds of millions of terms do not overflow
SCATTER_BLOCK = 1024  # number of rows that are summed in float64 before they are added in double-double arithmetic

DoubleDouble = tuple[Float64Array, Float64Array]


def _add(a: DoubleDouble, b: DoubleDouble) -> DoubleDouble:
    """Return the sum of two double-double arrays."""
    high, error = two_sum(a[0], b[0])
    return two_sum(high, error + (a[1] + b[1]))


def _sum_rows(high: Float64Array, low: Float64Array) -> DoubleDouble:
    """Sum the rows of a double-double array pairwise, so that errors grow with the logarithm of their number."""
    while len(high) > 1:
        if len(high) % 2:
            zero = np.zeros_like(high[:1])
            high = np.concatenate((high, zero))
            low = np.concatenate((low, zero))
        high, low = _add((high[0::2], low[0::2]), (high[1::2], low[1::2]))
    return high[0], low[0]


def _largest_weight(weight: Float64Array | None, rows: np.ndarray) -> Float64Array:
    """Return the largest weight of each row over all groups, as a column."""
    if weight is None or len(rows) == 0:
        return np.ones((len(rows), 1))
    return weight[rows].reshape(len(rows), -1).max(axis=1, keepdims=True)


def sum_moments(
    columns: Columns,
    anchor: Float64Array,
    group: AnyArray | None,
    n_groups: int,
    weight: Float64Array | None,
    threads: int,
) -> tuple[Float64Array, Float64Array, Float64Array, Float64Array, Float64Array, Float64Array]:
    """Sum weights, deviations from the anchor and their squares in double-double arithmetic.

    This includes soft weights, for which the compiled kernel is less exact (see `tallybayes.kernels.sum_moments`).
    """
    n_rows = rows_of(columns, group, weight)
    X = as_matrix(columns, n_rows)
    d = X.shape[1]
    present = np.flatnonzero(present_rows(group, n_groups, weight, n_rows))
    values = X[present].astype(np.float64) - anchor
    missing = np.isnan(values)
    heaviest = _largest_weight(weight, present)
    with np.errstate(over="ignore", invalid="ignore"):
        raise_first(~(heaviest * (values * values) <= MAX_TERM) & ~missing, present)
    any_missing = bool(missing.any())
    values[missing] = 0.0
    position = np.zeros(n_rows, dtype=np.int64)
    position[present] = np.arange(len(present))

    weights = (np.zeros((n_groups, d if any_missing else 1)), np.zeros((n_groups, d if any_missing else 1)))
    firsts = (np.zeros((n_groups, d)), np.zeros((n_groups, d)))
    seconds = (np.zeros((n_groups, d)), np.zeros((n_groups, d)))
    for g, rows, row_weights in row_sets(group, n_groups, weight, n_rows):
        v = values[position[rows]]
        w = (np.ones(len(rows)) if row_weights is None else row_weights)[:, None]
        w = np.where(missing[position[rows]], 0.0, w) if any_missing else w
        square, square_error = two_product(v, v)
        product, product_error = two_product(w, square)
        weights[0][g], weights[1][g] = _sum_rows(w, np.zeros_like(w))
        firsts[0][g], firsts[1][g] = _sum_rows(*two_product(w, v))
        seconds[0][g], seconds[1][g] = _sum_rows(product, product_error + w * square_error)
    return *weights, *firsts, *seconds


def _grid_center(mean: Float64Array, spread: Float64Array) -> Float64Array:
    """Round the mean to a power-of-two grid no finer than about the spread, so that x − center is usually exact."""
    step = np.exp2(np.floor(np.log2(np.maximum(spread, 1e-300))))
    with np.errstate(over="ignore", invalid="ignore"):
        center = np.round(mean / step) * step
    return np.where(np.isfinite(center) & (spread > 0), center, mean)


def sum_scatter(
    columns: Columns,
    anchor: Float64Array,
    group: AnyArray | None,
    n_groups: int,
    weight: Float64Array | None,
    threads: int,
) -> tuple[Float64Array, Float64Array, Float64Array, Float64Array, Float64Array, Float64Array]:
    """Sum weights, deviations from the anchor and their outer products, in blocks of centered rows."""
    n_rows = rows_of(columns, group, weight)
    X = as_matrix(columns, n_rows)
    d = X.shape[1]
    present = np.flatnonzero(present_rows(group, n_groups, weight, n_rows))
    values = X[present].astype(np.float64)
    heaviest = _largest_weight(weight, present)
    with np.errstate(over="ignore", invalid="ignore"):
        raise_first(~(heaviest * (values - anchor) ** 2 <= MAX_TERM), present)
    position = np.zeros(n_rows, dtype=np.int64)
    position[present] = np.arange(len(present))

    weights = (np.zeros((n_groups, 1)), np.zeros((n_groups, 1)))
    firsts = (np.zeros((n_groups, d)), np.zeros((n_groups, d)))
    seconds = (np.zeros((n_groups, d, d)), np.zeros((n_groups, d, d)))
    for g, rows, row_weights in row_sets(group, n_groups, weight, n_rows):
        for start in range(0, len(rows), SCATTER_BLOCK):
            part = slice(start, start + SCATTER_BLOCK)
            x = values[position[rows[part]]]
            w = np.ones(len(x)) if row_weights is None else row_weights[part]
            mean = np.average(x, axis=0, weights=w)
            center = _grid_center(mean, np.sqrt(np.average((x - mean) ** 2, axis=0, weights=w)))
            center = np.where(np.ptp(x, axis=0) == 0, x[0], center)  # the computed mean of equal numbers is inexact
            y = x - center
            block = _shift(w, y, center, anchor)
            for sums, added in zip((weights, firsts, seconds), block, strict=True):
                sums[0][g], sums[1][g] = _add((sums[0][g], sums[1][g]), added)
    return *weights, *firsts, *seconds


def _shift(
    w: Float64Array, y: Float64Array, center: Float64Array, anchor: Float64Array
) -> tuple[DoubleDouble, DoubleDouble, DoubleDouble]:
    """Return Σw, Σw·v and Σw·v·vᵀ with v = y + center − anchor, from float64 sums over a block of centered rows y."""
    weighted = w[:, None] * y
    total = _sum_rows(w, np.zeros_like(w))
    sums = weighted.sum(axis=0)
    scatter = weighted.T @ y
    scatter = np.triu(scatter) + np.triu(scatter, 1).T
    shift, shift_error = two_sum(center, -anchor)  # δ, exact as a pair; the error is usually 0
    # Σw·v = s + W·δ, and Σw·v·vᵀ = S + s·δᵀ + δ·sᵀ + W·δ·δᵀ = S + δ·sᵀ + (s + W·δ)·δᵀ, with double-double products.
    moved, moved_error = two_product(np.full_like(shift, total[0]), shift)
    first = _add((sums, np.zeros_like(sums)), (moved, moved_error + total[0] * shift_error + total[1] * shift))
    second: DoubleDouble = (scatter, np.zeros_like(scatter))
    for left, right in (((shift, shift_error), (sums, np.zeros_like(sums))), (first, (shift, shift_error))):
        product, error = two_product(left[0][:, None], right[0][None, :])
        error = error + left[0][:, None] * right[1][None, :] + left[1][:, None] * right[0][None, :]
        second = _add(second, (product, error))
    upper = np.triu(np.ones(scatter.shape, dtype=bool))
    second = (np.where(upper, second[0], second[0].T), np.where(upper, second[1], second[1].T))
    return (np.asarray(total[0]), np.asarray(total[1])), first, second

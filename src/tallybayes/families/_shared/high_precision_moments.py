"""Moments with about 22 digits in products, for regression on nearly collinear columns."""

from __future__ import annotations

import numpy as np

from tallybayes import kernels
from tallybayes.families._shared.blocks import Block, Dense, dense, n_columns, n_rows
from tallybayes.statistics.moments import Moments, choose_anchor
from tallybayes.statistics.sufficient_statistics import Statistics

_BITS = 20  # of the leading part of a cell: sums of thousands of products are exact in float64
_ROWS = 8192  # per batch, to stay in cache


def collect_high_precision(
    block: Block,
    group: np.ndarray | None,
    n_groups: int,
    weight: np.ndarray | None,
    like: Statistics | None,
    family: str,
) -> Moments:
    """Return full moments; for integer weights, sums of products have six more digits.

    Least squares loses the digits that products of nearly collinear columns share. Every cell is split into a leading
    part of 20 bits and a small remainder (as in Dekker 1971): products of leading parts are summed without rounding.
    """
    columns = dense(block, family)
    d = n_columns(columns)
    anchor = like.anchor if isinstance(like, Moments) else choose_anchor(columns, group, weight)
    both_anchors, total = np.concatenate([anchor, np.zeros(d)]), None
    for start in range(0, max(n_rows(columns), 1), _ROWS):
        batch = slice(start, start + _ROWS)
        group_part, weight_part = (None if array is None else array[batch] for array in (group, weight))
        rows = _split(columns, batch, anchor, group_part, weight_part)
        if rows is None:  # the kernel raises the error with the cell
            return Moments.from_kernel(anchor, kernels.sum_scatter(columns, anchor, group, n_groups, weight))
        moments = Moments.from_kernel(
            both_anchors, kernels.sum_scatter(rows, both_anchors, group_part, n_groups, weight_part)
        )
        total = moments if total is None else total + moments
    assert total is not None
    return _join(total, anchor)


def _split(
    columns: Dense, batch: slice, anchor: np.ndarray, group: np.ndarray | None, weight: np.ndarray | None
) -> np.ndarray | None:
    """Return rows with every cell split into two summands: (n, 2 · columns); None if a counted cell is not finite."""
    if isinstance(columns, np.ndarray):
        rows = np.asarray(columns[batch], dtype=np.float64)
    elif not columns:
        rows = np.zeros((0, 0))
    else:
        rows = np.stack([np.asarray(column[batch], dtype=np.float64) for column in columns], axis=1)
    if not np.isfinite(rows).all():
        counts = np.ones(len(rows), dtype=bool) if group is None else np.asarray(group >= 0)
        if weight is not None:
            counts &= weight.any(axis=1) if weight.ndim == 2 else weight > 0
        rows = np.where(counts[:, None], rows, anchor)
        if not np.isfinite(rows).all():
            return None
    d = rows.shape[1]
    halves = np.empty((len(rows), 2 * d))
    with np.errstate(over="ignore", invalid="ignore"):
        difference = rows - anchor
        largest = np.maximum(difference.max(axis=0, initial=0.0), -difference.min(axis=0, initial=0.0))
        step = np.ldexp(1.0, np.frexp(largest)[1] - _BITS)
        np.add(np.round(difference / step) * step, anchor, out=halves[:, :d])
        np.subtract(rows, halves[:, :d], out=halves[:, d:])
    return halves if largest.size == 0 or largest.max() < 1e150 else None


def _join(halves: Moments, anchor: np.ndarray) -> Moments:
    """Return the moments of the sums of both halves."""
    d = len(anchor)
    first = halves.first_sum[..., :d] + halves.first_sum[..., d:]

    sums = halves.second_sum
    mixed = sums[..., :d, d:] + sums[..., d:, :d]
    second = sums[..., :d, :d] + mixed + sums[..., d:, d:]
    return Moments(anchor, halves.weight_sum, first, second)

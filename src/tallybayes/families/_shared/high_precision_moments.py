"""Moments whose products keep some 22 digits, as regression needs them where columns are nearly collinear."""

from __future__ import annotations

import numpy as np

from tallybayes import kernels
from tallybayes.families._shared.blocks import Block, Dense, dense, n_columns, n_rows
from tallybayes.statistics.double_double import DoubleDouble
from tallybayes.statistics.moments import Moments, choose_anchor

_BITS = 20  # of the larger part of a cell: sums of some thousand products of two of them are exact in float64
_ROWS = 8192  # taken apart at a time: they stay in cache


def collect_high_precision(
    block: Block, group: np.ndarray | None, n_groups: int, weight: np.ndarray | None, like: Moments | None, family: str
) -> Moments:
    """As `MultivariateGaussian.collect`; where rows count whole times, sums of products keep six more digits.

    Least squares loses the digits that products of nearly collinear columns have in common. So every cell is taken
    apart into one of 20 bits and a small rest: products of the former add up without rounding, others are small.
    """
    columns = dense(block, family)
    d = n_columns(columns)
    anchor = choose_anchor(columns, group, weight) if like is None else like.anchor
    about, total = np.concatenate([anchor, np.zeros(d)]), None
    for start in range(0, max(n_rows(columns), 1), _ROWS):
        part = slice(start, start + _ROWS)
        some, counted = (None if one is None else one[part] for one in (group, weight))
        rows = _taken_apart(columns, part, anchor, some, counted)
        if rows is None:  # the kernel names the cell
            return Moments.from_kernel(anchor, kernels.sum_scatter(columns, anchor, group, n_groups, weight))
        found = Moments.from_kernel(about, kernels.sum_scatter(rows, about, some, n_groups, counted))
        total = found if total is None else total + found
    assert total is not None
    return _put_together(total, anchor)


def _taken_apart(
    columns: Dense, part: slice, anchor: np.ndarray, group: np.ndarray | None, weight: np.ndarray | None
) -> np.ndarray | None:
    """Some rows, every cell as two that add up to it: (n, 2 · columns). None where a cell that counts is no number."""
    if isinstance(columns, np.ndarray):
        rows = np.asarray(columns[part], dtype=np.float64)
    elif not columns:
        rows = np.zeros((0, 0))
    else:
        rows = np.stack([np.asarray(column[part], dtype=np.float64) for column in columns], axis=1)
    if not np.isfinite(rows).all():
        counts = np.ones(len(rows), dtype=bool) if group is None else np.asarray(group >= 0)
        if weight is not None:
            counts &= weight.any(axis=1) if weight.ndim == 2 else weight > 0
        rows = np.where(counts[:, None], rows, anchor)
        if not np.isfinite(rows).all():
            return None
    d = rows.shape[1]
    both = np.empty((len(rows), 2 * d))
    with np.errstate(over="ignore", invalid="ignore"):
        gap = rows - anchor
        top = np.maximum(gap.max(axis=0, initial=0.0), -gap.min(axis=0, initial=0.0))
        step = np.ldexp(1.0, np.frexp(top)[1] - _BITS)
        np.add(np.round(gap / step) * step, anchor, out=both[:, :d])
        np.subtract(rows, both[:, :d], out=both[:, d:])
    return both if top.size == 0 or top.max() < 1e150 else None


def _put_together(halves: Moments, anchor: np.ndarray) -> Moments:
    """The moments of sums of two columns each."""
    d = len(anchor)
    first = halves.first_sum.map(lambda a: a[..., :d]) + halves.first_sum.map(lambda a: a[..., d:])

    def block(row: int, column: int) -> DoubleDouble:
        rows, columns = slice(row * d, row * d + d), slice(column * d, column * d + d)
        return halves.second_sum.map(lambda a: a[..., rows, columns])

    second = block(0, 0) + (block(0, 1) + block(1, 0)) + block(1, 1)
    return Moments(anchor, halves.weight_sum, first, second)

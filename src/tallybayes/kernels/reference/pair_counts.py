"""Counts of pairs of columns, and scores of averaged one-dependence estimators, in NumPy."""

from __future__ import annotations

import numpy as np

from tallybayes.kernels.arguments import AnyArray, Columns, Float64Array, Int64Array
from tallybayes.kernels.reference.groups import column_list, observed_cells, present_rows, rows_of

_MAX_EXACT = 1 << 24  # integers up to this are exact in float32


def count_pairs(
    columns: Columns, sizes: Int64Array, group: AnyArray | None, n_groups: int, weight: Float64Array | None
) -> AnyArray:
    """Count the pairs of levels of two columns at a time."""
    by_column = column_list(columns)
    n = rows_of(columns, group, weight)
    observed = observed_cells(columns, sizes, present_rows(group, n_groups, weight, n))
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if len(ends) else 0
    out = np.zeros((n_groups, total, total), dtype=np.float32 if weight is None and n < _MAX_EXACT else np.float64)
    for j in range(len(sizes)):
        for i in range(j):
            rows = np.flatnonzero(observed[i] & observed[j])
            keys = np.zeros(len(rows), np.int64) if group is None else group[rows].astype(np.int64)
            keys = (keys * sizes[i] + by_column[i][rows]) * sizes[j] + by_column[j][rows]
            shape = (n_groups, int(sizes[i]), int(sizes[j]))
            counts = np.bincount(keys, None if weight is None else weight[rows], int(np.prod(shape))).reshape(shape)
            left, right = (slice(ends[k] - sizes[k], ends[k]) for k in (i, j))
            out[:, left, right] = counts
            out[:, right, left] = counts.swapaxes(1, 2)
    return out


def score_pairs(columns: Columns, sizes: Int64Array, table: Float64Array, n_classes: int, threads: int) -> Float64Array:
    """Sum the terms with every column as the parent, in batches of rows."""
    by_column = column_list(columns)
    total = int(sizes.sum())
    panels = table.reshape(total, total + 1, -1)[..., :n_classes]
    offsets = np.concatenate([[0], np.cumsum(sizes)[:-1]]) + 1
    n = len(by_column[0])
    out = np.empty((n, n_classes))
    step = max(1, (1 << 20) // (len(by_column) * n_classes))
    for start in range(0, n, step):
        codes = np.stack([column[start : start + step].astype(np.int64) for column in by_column], axis=1)
        observed = (codes >= 0) & (codes < sizes)
        rows = np.where(observed, codes + offsets, 0)
        out[start : start + step] = _scores(panels, rows, observed, sizes, offsets)
    return out


def _scores(
    table: Float64Array, rows: Int64Array, observed: np.ndarray, sizes: Int64Array, offsets: Int64Array
) -> Float64Array:
    """Return the log of the sum over all parents, for a batch of rows of the table."""
    total = np.full((len(rows), table.shape[-1]), -np.inf)
    for j, size in enumerate(sizes.tolist()):
        batch = np.flatnonzero(observed[:, j])
        parent = rows[batch, j]
        total[batch] = np.logaddexp(total[batch], table[(parent - 1)[:, None], rows[batch]].sum(axis=1))
        batch = np.flatnonzero(~observed[:, j])
        for level in range(int(offsets[j]), int(offsets[j]) + size) if len(batch) else ():
            term = table[level - 1][rows[batch]].sum(axis=1) + table[level - 1, level]
            total[batch] = np.logaddexp(total[batch], term)
    return total

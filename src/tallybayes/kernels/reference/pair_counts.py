"""Pairs of columns in NumPy: the truth the compiled ones are tested against."""

from __future__ import annotations

import numpy as np

from tallybayes.errors import CellError
from tallybayes.kernels.arguments import AnyArray, Columns, Float64Array, Int64Array
from tallybayes.kernels.reference.groups import present_rows, rows_of, valid_codes

_EXACT = 1 << 24  # whole numbers up to here are exact in 32 bits


def count_pairs(
    columns: Columns, sizes: Int64Array, group: AnyArray | None, n_groups: int, weight: Float64Array | None
) -> AnyArray:
    """Count two columns at a time."""
    each = columns.T if isinstance(columns, np.ndarray) else columns
    n = rows_of(columns, group, weight)
    present, known, culprits = present_rows(group, n_groups, weight, n), [], []
    for j, size in enumerate(sizes.tolist()):
        valid, bad = valid_codes(each[j], size)
        bad &= present
        if bad.any():
            culprits.append((int(bad.argmax()), j))
        known.append(valid & present)
    if culprits:
        raise CellError(*min(culprits))
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if len(ends) else 0
    out = np.zeros((n_groups, total, total), dtype=np.float32 if weight is None and n < _EXACT else np.float64)
    for j in range(len(sizes)):
        for i in range(j):
            rows = np.flatnonzero(known[i] & known[j])
            keys = np.zeros(len(rows), np.int64) if group is None else group[rows].astype(np.int64)
            keys = (keys * sizes[i] + each[i][rows]) * sizes[j] + each[j][rows]
            shape = (n_groups, int(sizes[i]), int(sizes[j]))
            found = np.bincount(keys, None if weight is None else weight[rows], int(np.prod(shape))).reshape(shape)
            first, second = slice(ends[i] - sizes[i], ends[i]), slice(ends[j] - sizes[j], ends[j])
            out[:, first, second], out[:, second, first] = found, found.swapaxes(1, 2)
    return out


def score_pairs(
    columns: Columns, sizes: Int64Array, panels: Float64Array, n_classes: int, threads: int
) -> Float64Array:
    """Add up the terms of every column as the parent, some rows at a time."""
    each = list(columns.T) if isinstance(columns, np.ndarray) else list(columns)
    total = int(sizes.sum())
    table = panels.reshape(total, total + 1, -1)[..., :n_classes]
    offsets = np.concatenate([[0], np.cumsum(sizes)[:-1]]) + 1
    n = len(each[0])
    out = np.empty((n, n_classes))
    step = max(1, (1 << 20) // (len(each) * n_classes))
    for start in range(0, n, step):
        codes = np.stack([column[start : start + step].astype(np.int64) for column in each], axis=1)
        known = (codes >= 0) & (codes < sizes)
        rows = np.where(known, codes + offsets, 0)
        out[start : start + step] = _scores(table, rows, known, sizes, offsets)
    return out


def _scores(
    table: Float64Array, rows: Int64Array, known: np.ndarray, sizes: Int64Array, offsets: Int64Array
) -> Float64Array:
    total = np.full((len(rows), table.shape[-1]), -np.inf)
    for j, size in enumerate(sizes.tolist()):
        here = np.flatnonzero(known[:, j])
        parent = rows[here, j]
        total[here] = np.logaddexp(total[here], table[(parent - 1)[:, None], rows[here]].sum(axis=1))
        here = np.flatnonzero(~known[:, j])
        for level in range(int(offsets[j]), int(offsets[j]) + size) if len(here) else ():
            term = table[level - 1][rows[here]].sum(axis=1) + table[level - 1, level]
            total[here] = np.logaddexp(total[here], term)
    return total

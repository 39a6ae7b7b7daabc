"""One-dependence scores in NumPy: the truth the compiled ones are tested against."""

from __future__ import annotations

import numpy as np

from tallybayes.kernels.arguments import Columns, Float64Array, Int64Array


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

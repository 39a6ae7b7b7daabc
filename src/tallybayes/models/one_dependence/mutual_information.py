"""Conditional mutual information of pairs of columns, from pair counts."""

from __future__ import annotations

import numpy as np

from tallybayes.models.one_dependence.pair_counts import PairCounts

_CELLS_IN_CACHE = 32_768  # cells of pair counts that are processed at a time


def conditional_mutual_information(counts: PairCounts) -> np.ndarray:
    """Return I(x; x' | class) of each pair of columns, in nats, (columns, columns), from rows with both observed."""
    d = len(counts.sizes)
    if not d:
        return np.zeros((0, 0))
    starts = counts.offsets[:-1]
    totals = counts.level_column_totals
    joint = np.add.reduceat(_sum_n_log_n(counts.pair_counts, starts), starts, axis=0)
    marginal = np.add.reduceat(_n_log_n(totals).sum(axis=0), starts, axis=0)  # of the first column, the second observed
    weight = np.add.reduceat(totals, starts, axis=1)  # (classes, columns, columns)
    total = weight.sum(axis=0)
    nats = joint - marginal - marginal.T + _n_log_n(weight).sum(axis=0)
    # Rounding errors depend on the order of the levels; equal pairs must stay equal.
    return np.round(np.where(total > 0, nats / np.where(total > 0, total, 1.0), 0.0), 12)


def _sum_n_log_n(pair_counts: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Return Σ n log n over classes and over the levels of each column, for each level: (levels, columns)."""
    n_classes, n_levels, _ = pair_counts.shape
    out = np.empty((n_levels, len(starts)))
    step = max(1, _CELLS_IN_CACHE // (n_classes * n_levels))
    lookup = None  # of integer counts of few rows
    if pair_counts.dtype == np.float32:
        lookup = _n_log_n(np.arange(float(pair_counts.max(initial=0.0)) + 1))
    for first in range(0, n_levels, step):
        chunk = pair_counts[:, first : first + step]
        terms = _n_log_n(chunk) if lookup is None else lookup.take(chunk.astype(np.int32))
        np.add.reduceat(terms.sum(axis=0), starts, axis=1, out=out[first : first + step])
    return out


def _n_log_n(counts: np.ndarray) -> np.ndarray:
    """Return n log n, with 0 log 0 = 0."""
    out = np.maximum(counts, 1e-300, dtype=np.float64)
    np.log(out, out=out)
    out *= counts
    return out

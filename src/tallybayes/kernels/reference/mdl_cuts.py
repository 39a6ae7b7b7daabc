"""Supervised discretization by Fayyad and Irani (1993) in NumPy; also for fractional weights."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import xlogy

from tallybayes.kernels.arguments import AnyArray, Float64Array, Int64Array

_MAX_EDGES = 512  # number of candidate edges of the coarse search


def best_cuts(table: AnyArray, n_classes: int, n_log_n: Float64Array | None) -> Int64Array:
    """Return the indices of the values at which bins start, ascending, by recursive splitting.

    ``n_log_n`` is a lookup table of n log n for integer counts, or None for fractional ones.
    """
    return _split(table.reshape(n_classes, -1), n_log_n)


def _split(table: AnyArray, logs: Float64Array | None) -> Int64Array:
    """Return the indices of the values at which bins start."""
    # An edge between two values of the same single class is never optimal (Fayyad and Irani's theorem).
    n_classes, class_sum = np.zeros((2, table.shape[1]), dtype=np.int32)
    for group, weight in enumerate(table):
        present = (weight > 0).astype(np.int32)
        n_classes += present
        class_sum += group * present
    single = np.where(n_classes == 1, class_sum, -1)  # the only class of a value, or −1
    edges = np.flatnonzero((single[1:] < 0) | (single[1:] != single[:-1])) + 1
    totals = np.cumsum(table, axis=1)
    ends = totals[:, np.append(edges, table.shape[1]) - 1]
    totals = np.concatenate([np.zeros((len(table), 1), dtype=totals.dtype), ends], axis=1)
    accepted: list[int] = []
    intervals = [(0, len(edges) + 1)]
    while intervals:
        first, last = intervals.pop()
        cut = _best_cut(totals[:, first : last + 1], logs)
        if cut is not None:
            accepted.append(first + cut)
            intervals += [(first, first + cut), (first + cut, last)]
    return np.asarray(edges[np.sort(np.array(accepted, dtype=np.int64)) - 1])


def _best_cut(totals: AnyArray, logs: Float64Array | None) -> int | None:
    """Return the best edge of an interval from the cumulative class counts, or None if the MDL criterion rejects it.

    If there are very many edges, a coarse grid is searched first and then the edges near its best one.
    """
    n_edges = totals.shape[1] - 2
    counts = totals[:, -1] - totals[:, 0]
    n = float(counts.sum())
    if n_edges < 1 or n <= 2:
        return None
    step = max(1, n_edges // _MAX_EDGES)
    edge, cost = _cheapest(totals, np.arange(1, n_edges + 1, step), logs)
    if step > 1:
        edge, cost = _cheapest(totals, np.arange(max(1, edge - step), min(n_edges, edge + step) + 1), logs)
    left = totals[:, edge] - totals[:, 0]
    parts = (counts, left, counts - left)
    n_classes = [int((part > 0).sum()) for part in parts]
    entropy = [float(_total_entropy(part[:, None], logs)[0]) / part.sum() / math.log(2) for part in parts]
    log_codes = math.log2(3.0 ** n_classes[0] - 2) if n_classes[0] < 30 else n_classes[0] * math.log2(3)
    delta = log_codes - (n_classes[0] * entropy[0] - n_classes[1] * entropy[1] - n_classes[2] * entropy[2])
    gain = n * entropy[0] - cost / math.log(2)
    return edge if gain > math.log2(n - 1) + delta else None


def _cheapest(totals: AnyArray, edges: Int64Array, logs: Float64Array | None) -> tuple[int, float]:
    """Return the edge with the smallest total entropy of both parts, and that entropy in nats."""
    left = totals[:, edges] - totals[:, :1]
    cost = _total_entropy(left, logs) + _total_entropy(totals[:, -1:] - totals[:, :1] - left, logs)
    best = int(cost.argmin())
    return int(edges[best]), float(cost[best])


def _total_entropy(table: AnyArray, logs: Float64Array | None) -> Float64Array:
    """Return n times the class entropy of every column of counts, in nats."""
    total = table.sum(axis=0, dtype=table.dtype)
    if logs is None:
        return np.asarray(xlogy(total, total) - xlogy(table, table).sum(axis=0))
    return np.asarray(logs.take(total) - logs.take(table).sum(axis=0))

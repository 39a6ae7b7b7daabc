"""Cuts by class in NumPy: the truth the compiled ones are tested against, and those of weighted rows."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import xlogy

_BORDERS = 512  # where a column is tried to be cut, before it is looked at closely


def best_cuts(table: np.ndarray, logs: np.ndarray | None) -> np.ndarray:
    """The values before which to cut, rising: the best cut first, then within both parts."""
    # Between values of one and the same class alone no cut is best (Fayyad and Irani's theorem).
    n_seen, numbers = np.zeros((2, table.shape[1]), dtype=np.int32)
    for group, weight in enumerate(table):
        there = (weight > 0).astype(np.int32)
        n_seen += there
        numbers += group * there
    only = np.where(n_seen == 1, numbers, -1)  # the one class of a value, if it is one
    borders = np.flatnonzero((only[1:] < 0) | (only[1:] != only[:-1])) + 1
    totals = np.cumsum(table, axis=1)
    ends = totals[:, np.append(borders, table.shape[1]) - 1]
    totals = np.concatenate([np.zeros((len(table), 1), dtype=totals.dtype), ends], axis=1)
    found: list[int] = []
    todo = [(0, len(borders) + 1)]
    while todo:
        first, last = todo.pop()
        cut = _best_cut(totals[:, first : last + 1], logs)
        if cut is not None:
            found.append(first + cut)
            todo += [(first, first + cut), (first + cut, last)]
    return np.asarray(borders[np.sort(np.array(found, dtype=np.int64)) - 1])


def _best_cut(totals: np.ndarray, logs: np.ndarray | None) -> int | None:
    """Where a stretch is best cut in two, from the totals of the groups up to every border; None if no cut pays.

    Of very many borders some are tried, and then all about the best: what a cut saves hardly changes from one border to
    the next.
    """
    n_borders = totals.shape[1] - 2
    whole = totals[:, -1] - totals[:, 0]
    n = float(whole.sum())
    if n_borders < 1 or n <= 2:
        return None
    step = max(1, n_borders // _BORDERS)
    place, cost = _cheapest(totals, np.arange(1, n_borders + 1, step), logs)
    if step > 1:
        place, cost = _cheapest(totals, np.arange(max(1, place - step), min(n_borders, place + step) + 1), logs)
    inner = totals[:, place] - totals[:, 0]
    parts = (inner, whole - inner)
    n_seen = [int((part > 0).sum()) for part in (whole, *parts)]
    entropy = [float(_spread(part[:, None], logs)[0]) / part.sum() / math.log(2) for part in (whole, *parts)]
    ways = math.log2(3.0 ** n_seen[0] - 2) if n_seen[0] < 30 else n_seen[0] * math.log2(3)
    price = ways - (n_seen[0] * entropy[0] - n_seen[1] * entropy[1] - n_seen[2] * entropy[2])
    gain = n * entropy[0] - cost / math.log(2)
    return place if gain > math.log2(n - 1) + price else None


def _cheapest(totals: np.ndarray, places: np.ndarray, logs: np.ndarray | None) -> tuple[int, float]:
    """The place at which both parts together take least to describe, and how much."""
    left = totals[:, places] - totals[:, :1]
    cost = _spread(left, logs) + _spread(totals[:, -1:] - totals[:, :1] - left, logs)
    best = int(cost.argmin())
    return int(places[best]), float(cost[best])


def _spread(table: np.ndarray, logs: np.ndarray | None) -> np.ndarray:
    """What the groups take to describe, in nats, of every column of counts: n times their entropy."""
    total = table.sum(axis=0, dtype=table.dtype)
    if logs is None:
        return np.asarray(xlogy(total, total) - xlogy(table, table).sum(axis=0))
    return np.asarray(logs.take(total) - logs.take(table).sum(axis=0))

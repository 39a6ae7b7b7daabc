"""Edges of bins that are found in the data: at quantiles, or where the classes change."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from tallybayes.kernels.mdl_cuts import best_cuts
from tallybayes.statistics.sufficient_statistics import subtract_counts

_LARGEST_WHOLE = 2.0**50  # above it, halves are rounded
_SHARED = 1 / 16  # of the rows, if they have one value, say nothing of any one of them


class ValueCounts:
    """The different values of a column, rising, and the weight of each: of all rows, or (groups, values)."""

    def __init__(self, values: np.ndarray, weight: np.ndarray) -> None:
        self.values, self.weight = values, weight

    @cached_property
    def total(self) -> np.ndarray:
        """The weight of every value and all below it."""
        return np.cumsum(self.weight)

    @cached_property
    def max_weight(self) -> float:
        """The weight of the value that has most."""
        return float(self.weight.max())

    @cached_property
    def interquartile_range(self) -> float:
        """The distance between the quartiles or, where one value has half of the weight, of the outermost values."""
        values, total = self.values, self.total
        places = total.searchsorted([total[-1] / 4, total[-1] * 3 / 4])
        low, high = values[places]
        return float(high - low) or float(values[-1] - values[0])

    @cached_property
    def is_integer(self) -> bool:
        """Whether all are whole numbers, between which halves can be told."""
        values = self.values
        return len(values) > 0 and bool(
            (np.floor(values) == values).all() and np.abs(values[[0, -1]]).max() < _LARGEST_WHOLE
        )


def quantile_edges(values: np.ndarray, weight: np.ndarray | None, n_bins: int) -> tuple[float, ...]:
    """Cuts between different values, so that about as much weight lies in every bin, the outer ones open.

    A value heavier than a bin gets one of its own, and the others share the rest. Cuts are rounded, see
    `rounded_edges`.

    Parameters
    ----------
    values : array of shape (n,), finite
    weight : array of shape (n,), optional
    n_bins : int

    Returns
    -------
    tuple of float
        Rising, one less than there are bins; () where nothing can be cut. ``Binned((None, *cuts, None))`` has them.

    Examples
    --------
    >>> from tallybayes.families._shared.bin_edges import quantile_edges
    >>> quantile_edges([1, 2, 2, 3, 4, 4, 9, 30], None, 4)
    (2.5, 3.5, 6.5)
    """
    cells = _cells_of(np.asarray(values, dtype=np.float64), weight)
    return quantile_cuts(cells, n_bins)


def mdl_edges(
    values: np.ndarray, groups: np.ndarray, n_groups: int, weight: np.ndarray | None = None
) -> tuple[float, ...]:
    """Cuts where the groups change, as many as pay for themselves in a description of the groups by the bins.

    The cuts of Fayyad and Irani (1993): the best one first, then within both parts, until what a cut saves is less
    than what it takes to say. Rounded, see `rounded_edges`.

    Parameters
    ----------
    values : array of shape (n,), finite
    groups : array of int of shape (n,)
    n_groups : int
    weight : array of shape (n,), optional

    Returns
    -------
    tuple of float
        Rising, one less than there are bins; () where no cut pays.

    Examples
    --------
    >>> from tallybayes.families._shared.bin_edges import mdl_edges
    >>> mdl_edges([1.0, 1.2, 1.4, 1.1, 2.5, 2.6, 2.4, 2.2], [0, 0, 0, 0, 1, 1, 1, 1], 2)
    (1.8,)
    """
    nothing = np.zeros(len(values), dtype=np.intp)
    return mdl_edges_by_fold(np.asarray(values, dtype=np.float64), np.asarray(groups), n_groups, nothing, weight)[-1]


def mdl_edges_by_fold(
    values: np.ndarray, groups: np.ndarray, n_groups: int, fold: np.ndarray, weight: np.ndarray | None = None
) -> list[tuple[float, ...]]:
    """As `mdl_edges`, without each fold and, last, from all values: they are sorted and counted once.

    Parameters
    ----------
    values, groups, n_groups, weight
        As for `mdl_edges`.
    fold : array of int of shape (n,)
    """
    if weight is not None:
        there = np.asarray(weight) > 0
        values, groups, fold, weight = values[there], groups[there], fold[there], np.asarray(weight, float)[there]
    found, place = np.unique(values, return_inverse=True)
    n_folds = int(fold.max(initial=0)) + 1
    cell = (fold.astype(np.intp) * n_groups + groups) * len(found) + place
    parts = np.bincount(cell, weight, n_folds * n_groups * len(found)).reshape(n_folds, n_groups, len(found))
    whole, cuts = parts.sum(axis=0), []
    for part in parts if n_folds > 1 else ():
        rest = whole - part if weight is None else subtract_counts(whole, part)
        seen = np.flatnonzero(rest.any(axis=0))
        cuts.append(mdl_cuts(ValueCounts(found[seen], rest[:, seen])))
    return [*cuts, mdl_cuts(ValueCounts(found, whole))]


def quantile_cuts(cells: ValueCounts, n_bins: int) -> tuple[float, ...]:
    """As `quantile_edges`, of different values."""
    values, weight = cells.values, cells.weight
    last = len(values) - 1
    heavy, n_heavy, total = np.zeros(0, dtype=bool), 0, cells.total
    if len(values) and cells.max_weight > total[-1] / n_bins:
        heavy = weight > total[-1] / n_bins
        n_heavy, total = int(np.count_nonzero(heavy)), np.cumsum(np.where(heavy, 0.0, weight))
    n_light = n_bins - n_heavy
    # A cut at i lies between the values i − 1 and i.
    places = np.flatnonzero(heavy).tolist() if n_heavy else []
    cuts = {i for place in places for i in (place, place + 1) if 0 < i <= last}
    if len(total) and total[-1] > 0 and n_light > 1:
        wanted = total[-1] * np.arange(1, n_light) / n_light
        after = total.searchsorted(wanted)  # the value in which a quantile lies: cut at its nearer end
        before = np.where(after > 0, total[after - 1], 0.0)
        nearer = np.where(wanted - before < total[after] - wanted, after, after + 1)
        cuts |= {i for i in nearer.tolist() if 0 < i <= last}
    return rounded_edges(cells, np.array(sorted(cuts), dtype=np.intp), heavy)


def with_outer_edges(cells: ValueCounts, cuts: tuple[float, ...]) -> tuple[float | None, ...]:
    """Edges of bins: the outermost are open, None, but where they end at a value that many rows share."""
    ends: list[float | None] = []
    for place, half in ((0, -0.5), (-1, 0.5)):
        end = float(cells.values[place]) + (half if cells.is_integer else 0.0)
        beyond = end < cuts[0] if place == 0 else end > cuts[-1]
        ends.append(end if beyond and cells.weight[place] >= _SHARED * cells.total[-1] else None)
    return (ends[0], *cuts, ends[1])


def mdl_cuts(cells: ValueCounts) -> tuple[float, ...]:
    """As `mdl_edges`, of different values and the weight of every group in each."""
    values, table = cells.values, cells.weight
    if not len(values):
        return ()
    inner = best_cuts(table)
    return rounded_edges(ValueCounts(values, table.sum(axis=0)), inner, np.zeros(0, dtype=bool))


def rounded_edges(cells: ValueCounts, inner: np.ndarray, heavy: np.ndarray) -> tuple[float, ...]:
    """Cuts before the values at `inner`, such that none of them is known to the last digit.

    Between whole numbers cuts are halves, so that the width of a bin is the number of values it may hold; one that is
    `heavy` has width 1. Others lie halfway between two values, rounded to three digits of the spread of the middle half
    of the values. Cuts that fall together, or that no value lies below, are one or none.
    """
    values = cells.values
    if not len(inner):
        return ()
    low, high = values[inner - 1], values[inner]
    if cells.is_integer:
        halves = np.floor((low + high) / 2) + 0.5
        heavy = heavy if len(heavy) else np.zeros(len(values), dtype=bool)
        tight = np.concatenate([values[heavy] - 0.5, values[heavy] + 0.5])
        beside = heavy[inner - 1] | heavy[inner]
        cuts = np.unique(np.concatenate([halves[~beside], tight]))
    else:
        digits = 2 - math.floor(math.log10(cells.interquartile_range))
        cuts = np.array(sorted({round(cut, digits) + 0.0 for cut in (low + (high - low) / 2).tolist()}))
    return tuple(cuts[(cuts > values[0]) & (cuts <= values[-1])].tolist())


def _cells_of(values: np.ndarray, weight: np.ndarray | None) -> ValueCounts:
    if weight is None:
        found, times = np.unique(values, return_counts=True)
        return ValueCounts(found, times.astype(np.float64))
    there = np.asarray(weight) > 0
    found, place = np.unique(values[there], return_inverse=True)
    return ValueCounts(found, np.bincount(place, np.asarray(weight)[there], minlength=len(found)))

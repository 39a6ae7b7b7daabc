"""Bin edges estimated from data: at quantiles, or by the minimum description length principle."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from tallybayes.kernels.mdl_cuts import best_cuts
from tallybayes.statistics.sufficient_statistics import subtract_counts

_MAX_INTEGER = 2.0**50  # above it, half-integers are not representable
_MIN_PROPORTION = 1 / 16  # proportion of rows with one value at which it may be an outer edge without identifying a row


class ValueCounts:
    """The distinct values of a column in increasing order, with their weights: of all rows, or (groups, values)."""

    def __init__(self, values: np.ndarray, weight: np.ndarray) -> None:
        self.values, self.weight = values, weight

    @cached_property
    def total(self) -> np.ndarray:
        """Return the cumulative weights."""
        return np.cumsum(self.weight)

    @cached_property
    def max_weight(self) -> float:
        """Return the largest weight."""
        return float(self.weight.max())

    @cached_property
    def interquartile_range(self) -> float:
        """Return the interquartile range, or the range if the quartiles are equal."""
        values, total = self.values, self.total
        places = total.searchsorted([total[-1] / 4, total[-1] * 3 / 4])
        low, high = values[places]
        return float(high - low) or float(values[-1] - values[0])

    @cached_property
    def is_integer(self) -> bool:
        """Return whether all values are integers of a size that allows half-integer edges."""
        values = self.values
        return len(values) > 0 and bool(
            (np.floor(values) == values).all() and np.abs(values[[0, -1]]).max() < _MAX_INTEGER
        )


def quantile_edges(values: np.ndarray, weight: np.ndarray | None, n_bins: int) -> tuple[float, ...]:
    """Return inner edges of bins of about equal weight, the outer bins unbounded.

    Edges lie between distinct values. A value heavier than a bin gets a bin of its own; the others share the rest.
    Edges are rounded, see `rounded_edges`.

    Parameters
    ----------
    values : array of shape (n,), finite
    weight : array of shape (n,), optional
    n_bins : int

    Returns
    -------
    tuple of float
        Increasing, one less than the number of bins; () if there is only one. Use ``Binned((None, *edges, None))``.

    Examples
    --------
    >>> from tallybayes.families._shared.bin_edges import quantile_edges
    >>> quantile_edges([1, 2, 2, 3, 4, 4, 9, 30], None, 4)
    (2.5, 3.5, 6.5)
    """
    cells = _value_counts(np.asarray(values, dtype=np.float64), weight)
    return quantile_cuts(cells, n_bins)


def mdl_edges(
    values: np.ndarray, groups: np.ndarray, n_groups: int, weight: np.ndarray | None = None
) -> tuple[float, ...]:
    """Return inner edges by the MDL criterion of Fayyad and Irani (1993).

    The best edge is chosen first, then recursively within both parts, until an edge saves less than its description
    costs. Edges are rounded, see `rounded_edges`.

    Parameters
    ----------
    values : array of shape (n,), finite
    groups : array of int of shape (n,)
    n_groups : int
    weight : array of shape (n,), optional

    Returns
    -------
    tuple of float
        Increasing, one less than the number of bins; () if no edge reduces the description length.

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
    """Return `mdl_edges` without each fold and, last, from all values, which are sorted once.

    Parameters
    ----------
    values, groups, n_groups, weight
        As for `mdl_edges`.
    fold : array of int of shape (n,)
    """
    weight = np.ones(len(values)) if weight is None else np.asarray(weight, dtype=np.float64)
    positive = weight > 0
    values, groups, fold, weight = values[positive], groups[positive], fold[positive], weight[positive]
    distinct, index = np.unique(values, return_inverse=True)
    n_folds = int(fold.max(initial=0)) + 1
    cell = (fold.astype(np.intp) * n_groups + groups) * len(distinct) + index
    fold_tables = np.bincount(cell, weight, n_folds * n_groups * len(distinct)).reshape(
        n_folds, n_groups, len(distinct)
    )
    table, edges = fold_tables.sum(axis=0), []
    for fold_table in fold_tables if n_folds > 1 else ():
        rest = subtract_counts(table, fold_table)
        seen = np.flatnonzero(rest.any(axis=0))
        edges.append(mdl_cuts(ValueCounts(distinct[seen], rest[:, seen])))
    return [*edges, mdl_cuts(ValueCounts(distinct, table))]


def quantile_cuts(cells: ValueCounts, n_bins: int) -> tuple[float, ...]:
    """Return `quantile_edges` of distinct values."""
    values, weight = cells.values, cells.weight
    last = len(values) - 1
    heavy, n_heavy, total = np.zeros(0, dtype=bool), 0, cells.total
    if len(values) and cells.max_weight > total[-1] / n_bins:
        heavy = weight > total[-1] / n_bins
        n_heavy, total = int(np.count_nonzero(heavy)), np.cumsum(np.where(heavy, 0.0, weight))
    n_light = n_bins - n_heavy
    # Edge i lies between the values i − 1 and i.
    positions = np.flatnonzero(heavy).tolist() if n_heavy else []
    indices = {i for position in positions for i in (position, position + 1) if 0 < i <= last}
    if len(total) and total[-1] > 0 and n_light > 1:
        wanted = total[-1] * np.arange(1, n_light) / n_light
        after = total.searchsorted(wanted)  # the value that contains the quantile; the nearer side is used
        before = np.where(after > 0, total[after - 1], 0.0)
        nearer = np.where(wanted - before < total[after] - wanted, after, after + 1)
        indices |= {i for i in nearer.tolist() if 0 < i <= last}
    return rounded_edges(cells, np.array(sorted(indices), dtype=np.intp), heavy)


def with_outer_edges(cells: ValueCounts, edges: tuple[float, ...]) -> tuple[float | None, ...]:
    """Return the edges with outer edges added: None, unless many rows share the extreme value."""
    ends: list[float | None] = []
    for position, half in ((0, -0.5), (-1, 0.5)):
        end = float(cells.values[position]) + (half if cells.is_integer else 0.0)
        is_outside = end < edges[0] if position == 0 else end > edges[-1]
        ends.append(end if is_outside and cells.weight[position] >= _MIN_PROPORTION * cells.total[-1] else None)
    return (ends[0], *edges, ends[1])


def mdl_cuts(cells: ValueCounts) -> tuple[float, ...]:
    """Return `mdl_edges` of distinct values and the weight of every group in each."""
    values, table = cells.values, cells.weight
    if not len(values):
        return ()
    inner = best_cuts(table)
    return rounded_edges(ValueCounts(values, table.sum(axis=0)), inner, np.zeros(0, dtype=bool))


def rounded_edges(cells: ValueCounts, inner: np.ndarray, heavy: np.ndarray) -> tuple[float, ...]:
    """Return rounded edges before the values at `inner`, so that no edge reveals a value exactly.

    Between integers, edges are half-integers, so that the width of a bin is its number of values; a `heavy` integer has
    width 1. Other edges lie halfway between two values, rounded to three digits of the interquartile range. Equal edges
    are merged, and edges without values below them are dropped.
    """
    values = cells.values
    if not len(inner):
        return ()
    low, high = values[inner - 1], values[inner]
    if cells.is_integer:
        halves = np.floor((low + high) / 2) + 0.5
        heavy = heavy if len(heavy) else np.zeros(len(values), dtype=bool)
        around_heavy = np.concatenate([values[heavy] - 0.5, values[heavy] + 0.5])
        is_heavy = heavy[inner - 1] | heavy[inner]
        edges = np.unique(np.concatenate([halves[~is_heavy], around_heavy]))
    else:
        digits = 2 - math.floor(math.log10(cells.interquartile_range))
        edges = np.array(sorted({round(edge, digits) + 0.0 for edge in (low + (high - low) / 2).tolist()}))
    return tuple(edges[(edges > values[0]) & (edges <= values[-1])].tolist())


def _value_counts(values: np.ndarray, weight: np.ndarray | None) -> ValueCounts:
    """Return the distinct values and their weights."""
    weight = np.ones(len(values)) if weight is None else np.asarray(weight, dtype=np.float64)
    distinct, index = np.unique(values[weight > 0], return_inverse=True)
    return ValueCounts(distinct, np.bincount(index, weight[weight > 0], minlength=len(distinct)))

"""Uninformative columns: identifiers, constants, and duplicates of other columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln

from tallybayes.families._shared.bin_edges import ValueCounts
from tallybayes.tally.factor import Name

NO_KNOWN_CELL = "no known cell"
DISTINCT_LABELS = "an identifier: nearly every label is another"
_FEW = 20  # with fewer rows, no column is an identifier
_NEARLY_ALL = 0.9  # the proportion of distinct values of an identifier
_SPACING = 1.2  # integers with a smaller mean distance count the rows
_SPACED = 2.5  # and, if all are distinct, with this one: a fold of the rows has integers that count all rows
_CHANCE = 100.0  # bits: columns that agree in this many bits more than by chance are duplicates


class Ranked(NamedTuple):
    """The observed numbers of a column in increasing order, each with the group and weight of its row."""

    values: np.ndarray
    group: np.ndarray | None
    n_groups: int
    weight: np.ndarray | None

    def counts(self, cuts: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return the weight of every group by bin, (groups, bins), for several sets of bin edges."""
        if not len(cuts):
            return []
        edges = np.unique(np.concatenate(cuts))
        places = np.searchsorted(self.values, edges)
        fine = np.repeat(np.arange(len(edges) + 1), np.diff(places, prepend=0, append=len(self.values)))
        if self.group is not None:
            fine = fine + self.group * (len(edges) + 1)
        counted = np.bincount(fine, self.weight, self.n_groups * (len(edges) + 1)).astype(np.float64)
        table = counted.reshape(self.n_groups, -1)
        starts = [np.append(0, edges.searchsorted(each) + 1) for each in cuts]
        return [np.add.reduceat(table, start, axis=1) for start in starts]

    def sums(self, edge: float, *, below: bool) -> np.ndarray:
        """Return the weighted sum of the distances from an edge in every group, over the values below or above it."""
        place = int(self.values.searchsorted(edge))
        part = slice(None, place) if below else slice(place, None)
        gap = self.values[part] - edge
        gap = gap if self.weight is None else gap * self.weight[part]
        return gap.sum(keepdims=True) if self.group is None else np.bincount(self.group[part], gap, self.n_groups)


class ColumnValues(NamedTuple):
    """The values of a column: its distinct values in increasing order, and their counts."""

    name: Name
    cells: ValueCounts  # numbers, or codes of levels
    n_known: int
    column: np.ndarray  # the cells, NaN or −1 if missing
    ranked: Ranked | None = None  # of numeric columns: the observed values

    @property
    def is_number(self) -> bool:
        """Whether the column is numeric, not categorical."""
        return self.ranked is not None

    @property
    def values(self) -> np.ndarray:
        """The distinct values."""
        return self.cells.values


def has_distinct_values(n_values: int, weight: float) -> bool:
    """Return whether nearly all values of a column are different; below one row per value, weights are fractions."""
    return weight >= _FEW and _NEARLY_ALL * weight <= n_values <= weight * (1 + 1e-9)


def why_uninformative(one: ColumnValues, thinned: float) -> str | None:
    """Return why a column is uninformative, or None; each row represents `thinned` rows."""
    n_values = len(one.values)
    if n_values < 2:
        return "constant" if n_values else NO_KNOWN_CELL
    n = max(float(one.cells.weight.sum()), one.n_known)  # a weight of 2 is a row twice, but two halves are two rows
    if not has_distinct_values(n_values, n):
        return None
    if not one.is_number:
        return DISTINCT_LABELS
    spacing = _SPACED if n_values == one.n_known else _SPACING
    near = one.values[-1] - one.values[0] < spacing * n * thinned
    return "an identifier: whole numbers, one after the other" if one.cells.is_integer and near else None


def duplicate_columns(seen: Sequence[ColumnValues]) -> Iterator[tuple[ColumnValues, ColumnValues]]:
    """Return the columns that duplicate an earlier one, by value or under other names, with the earlier one."""
    alike: dict[Any, list[ColumnValues]] = {}
    for one in seen:
        times = one.cells.weight
        key: tuple[Any, ...] = (one.n_known, len(times), times.max(), times.min())
        if _is_ranked(one):
            key += (frozenset((int(np.nanargmin(one.column)), int(np.nanargmax(one.column)))),)
        alike.setdefault(key, []).append(one)
    for some in alike.values():
        first: dict[bytes, ColumnValues] = {}
        for one in some if len(some) > 1 else ():
            times = one.cells.weight
            if gammaln(times.sum() + 1) - gammaln(times + 1).sum() >= _CHANCE * np.log(2):
                other = first.setdefault(_digest(one), one)
                if other is not one:
                    yield one, other


def _is_ranked(one: ColumnValues) -> bool:
    """Return whether nearly all values are distinct, so that only their order determines duplicates."""
    return one.is_number and len(one.values) > one.n_known / 2


def _digest(one: ColumnValues) -> bytes:
    """Return a digest, equal for columns with the same partition of rows or, if ranked, the same or opposite order."""
    missing = np.isnan(one.column) if one.is_number else one.column < 0
    codes = np.where(missing, -1, np.searchsorted(one.values, one.column))
    if _is_ranked(one):
        forms = [codes, np.where(missing, -1, len(one.values) - 1 - codes)]
    else:
        _, first, groups = np.unique(codes, return_index=True, return_inverse=True)
        forms = [np.where(missing, -1, first[groups])]  # the first row with the value of every row
    return min(blake2b(form.astype(np.int64).data).digest() for form in forms)

"""Columns that say nothing: identifiers, constants, and those that repeat another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln

from tallybayes.families._shared.bin_edges import ValueCounts
from tallybayes.tally.factor import Name

NO_KNOWN_CELL = "no known cell"
_FEW = 20  # with fewer rows nothing is an identifier
_NEARLY_ALL = 0.9  # of the values of an identifier are different ones
_SPACING = 1.2  # whole numbers that are so close together count the rows
_SPACED = 2.5  # and if no two are equal, also those: a fold, or every other row, has numbers that count all rows
_CHANCE = 100.0  # bits: columns that fall alike in 2¹⁰⁰ ways fewer than they might do not by chance


class Ranked(NamedTuple):
    """The known numbers of a column, rising, each with its row's group and weight."""

    values: np.ndarray
    group: np.ndarray | None
    n_groups: int
    weight: np.ndarray | None

    def counts(self, cuts: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The weight of every group between the cuts, (groups, bins), for several sets of cuts."""
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
        """The weighted sum of the distances from an edge, in every group, over the values below it or those above."""
        place = int(self.values.searchsorted(edge))
        part = slice(None, place) if below else slice(place, None)
        gap = self.values[part] - edge
        gap = gap if self.weight is None else gap * self.weight[part]
        return gap.sum(keepdims=True) if self.group is None else np.bincount(self.group[part], gap, self.n_groups)


class ColumnValues(NamedTuple):
    """A column as it was seen: its different values, rising, and how often each occurs."""

    name: Name
    cells: ValueCounts  # of numbers, or of the codes of labels
    n_known: int
    column: np.ndarray  # the cells themselves, NaN or −1 where missing
    ranked: Ranked | None = None  # of numbers: the known ones

    @property
    def is_number(self) -> bool:
        """Whether it is a column of numbers, not of labels."""
        return self.ranked is not None

    @property
    def values(self) -> np.ndarray:
        """The different values."""
        return self.cells.values


def why_uninformative(one: ColumnValues, thinned: float) -> str | None:
    """Why a column says nothing by itself, or None; each of its rows stands for `thinned` of them."""
    n_values = len(one.values)
    if n_values < 2:
        return "constant" if n_values else NO_KNOWN_CELL
    n = max(float(one.cells.weight.sum()), one.n_known)  # a weight of 2 is a row twice, but two halves are two rows
    if n < _FEW or n_values < _NEARLY_ALL * n:
        return None
    if not one.is_number:
        return "an identifier: nearly every label is another"
    spacing = _SPACED if n_values == one.n_known else _SPACING
    near = one.values[-1] - one.values[0] < spacing * n * thinned
    return "an identifier: whole numbers, one after the other" if one.cells.is_integer and near else None


def duplicate_columns(seen: Sequence[ColumnValues]) -> Iterator[tuple[ColumnValues, ColumnValues]]:
    """Columns that repeat an earlier one, value by value or under other names, each with the earlier one."""
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
    """Whether nearly all values are different: only their order tells whether they repeat others."""
    return one.is_number and len(one.values) > one.n_known / 2


def _digest(one: ColumnValues) -> bytes:
    """Equal for columns whose rows fall into values alike; where ranked, in the same order or the opposite one."""
    missing = np.isnan(one.column) if one.is_number else one.column < 0
    codes = np.where(missing, -1, np.searchsorted(one.values, one.column))
    if _is_ranked(one):
        forms = [codes, np.where(missing, -1, len(one.values) - 1 - codes)]
    else:
        _, first, groups = np.unique(codes, return_index=True, return_inverse=True)
        forms = [np.where(missing, -1, first[groups])]  # the first row of the value of every row
    return min(blake2b(form.astype(np.int64).data).digest() for form in forms)

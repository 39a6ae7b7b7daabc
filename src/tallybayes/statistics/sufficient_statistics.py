"""Statistics: what a family keeps of its data. Values that add, subtract and scale.

Every array of a statistic leads with the axes of the groups (``given``), so growing, dropping or reordering groups is
one operation for all of them: `take`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from tallybayes.errors import DataError, StatisticsError
from tallybayes.statistics.double_double import DoubleDouble

_LARGEST_EXACT = 2.0**53

Array = np.ndarray
Part = Array | DoubleDouble


class Statistics:
    """Base of `Counts`, `Totals` and `Moments`.

    A subclass names its parts (`_parts`), knows how to add (`_add`) and which of its numbers may never be negative
    (`nonnegative`). All else follows.
    """

    # Forgetting is refused below −TOLERANCE × what was held; a non-whole number that close to 0 becomes 0.
    TOLERANCE = 1e-10
    ROUNDING = 1e-12  # of a weight: what is left of it where fractions of rows were taken apart is no row

    def _parts(self) -> dict[str, Part]:
        """The arrays that lead with the group axes, by field name."""
        raise NotImplementedError

    def _with(self, parts: dict[str, Any]) -> Self:
        """The same statistics with other parts."""
        raise NotImplementedError

    def _add(self, other: Self) -> Self:
        raise NotImplementedError

    def _subtract(self, other: Self) -> Self:
        """The difference, unchecked, with empty places set to exactly zero."""
        raise NotImplementedError

    def _check_same(self, other: Self) -> None:
        """Raise unless the two describe the same columns."""
        raise NotImplementedError

    def nonnegative(self) -> dict[str, Array]:
        """The numbers that may never become negative, by the word an error message uses; each (*given, any)."""
        raise NotImplementedError

    def columns(self, kept: Array) -> Statistics:
        """The statistics of some of the columns, by position."""
        raise NotImplementedError

    def group_weights(self) -> Array:
        """How much was counted in every group, shape (*given,): 0 where nothing was."""
        raise NotImplementedError

    @property
    def given_shape(self) -> tuple[int, ...]:
        """The numbers of groups, one for every axis of ``given``."""
        raise NotImplementedError

    def __add__(self, other: Self) -> Self:
        if type(other) is not type(self):
            return NotImplemented
        self._check_groups(other)
        return self._add(other)

    def __radd__(self, other: object) -> Self:
        return self if isinstance(other, int) and other == 0 else NotImplemented  # so that sum() works

    def __sub__(self, other: Self) -> Self:
        if type(other) is not type(self):
            return NotImplemented
        self._check_groups(other)
        short = self.first_deficit(other)
        if short is not None:
            index, what, held, removed = short
            group = index[:-1]
            where = f"group {', '.join(map(str, group))}" if group else "this tally"
            raise StatisticsError.removes_too_much(where, what, held, removed)
        return self._subtract(other)

    def first_deficit(self, other: Self) -> tuple[tuple[int, ...], str, float, float] | None:
        """The first place where `other` holds more than this: ((*group, column), what, held, to remove), or None."""
        return first_deficit_of(self.nonnegative(), other.nonnegative())

    def scale(self, factor: float) -> Self:
        """Every count times `factor`, as if each row had that weight more."""
        if not 0 <= factor < np.inf:
            raise DataError.wrong_type("factor", repr(factor), "a finite number of at least 0")
        return self._map(lambda part: part * factor)

    def take(self, axis: int, source: Array) -> Self:
        """Re-index one axis of ``given``: the new group ``i`` is the old group ``source[i]``, or empty for −1."""
        return self._move(lambda a: take_or_zero(a, axis, source))

    def reshape_groups(self, shape: tuple[int, ...]) -> Self:
        """The same groups laid out along other axes."""
        n_axes = len(self.given_shape)
        if shape == self.given_shape:
            return self
        return self._move(lambda a: a.reshape(shape + a.shape[n_axes:]))

    def transpose_groups(self, order: list[int]) -> Self:
        """The same groups with their axes in another order: the new axis ``i`` is the old axis ``order[i]``."""
        return self._move(lambda a: a.transpose(*order, *range(len(order), a.ndim)))

    def pool_groups(self) -> Self:
        """All groups together: the statistics of the same rows with no ``given``."""
        axes = tuple(range(len(self.given_shape)))
        return self._map(lambda part: part.sum(axis=axes)) if axes else self

    def merge_groups(self, into: Array, n_groups: int) -> Self:
        """Groups added up: the new group ``k`` of the first axis is all old groups ``i`` with ``into[i] == k``."""
        members = [np.flatnonzero(into == k) for k in range(n_groups)]
        widest = max(map(len, members), default=0)
        source = np.full((n_groups, widest), -1)
        for k, some in enumerate(members):
            source[k, : len(some)] = some
        laid = self.take(0, source.ravel()).reshape_groups((n_groups, widest, *self.given_shape[1:]))
        return laid._map(lambda part: part.sum(axis=(1,)))

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.isclose(other, 0.0)

    __hash__ = None  # type: ignore[assignment]

    def isclose(self, other: Self, tolerance: float = 1e-12) -> bool:
        """Whether all numbers agree to `tolerance` of the largest magnitude in play."""
        raise NotImplementedError

    def _check_groups(self, other: Self) -> None:
        if self.given_shape != other.given_shape:
            raise StatisticsError.incompatible("the numbers of groups", self.given_shape, other.given_shape)
        self._check_same(other)

    def _map(self, change: Callable[[Any], Any]) -> Self:
        """Apply a function to every part."""
        return self._with({name: change(part) for name, part in self._parts().items()})

    def _move(self, move: Callable[[Array], Array]) -> Self:
        """Apply a function that rearranges elements to every array."""
        return self._map(lambda part: part.map(move) if isinstance(part, DoubleDouble) else move(part))


def take_or_zero(array: Array, axis: int, source: Array) -> Array:
    """``np.take`` in which index −1 gives zeros."""
    source = np.asarray(source, dtype=np.intp)
    if array.shape[axis] == 0:
        shape = list(array.shape)
        shape[axis] = len(source)
        return np.zeros(shape, array.dtype)
    taken = np.take(array, np.maximum(source, 0), axis=axis)
    absent = np.flatnonzero(source < 0)
    if len(absent):
        taken[(slice(None),) * axis + (absent,)] = 0
    return taken


def are_exact(first: Array, second: Array) -> Array:
    """Where both sums are whole numbers that float64 counts one by one: nothing was rounded on the way there."""
    whole = (first == np.floor(first)) & (second == np.floor(second))
    return np.asarray(whole & (np.maximum(np.abs(first), np.abs(second)) < _LARGEST_EXACT))


def subtract_counts(held: Array, removed: Array, rounding: Array | float = 0.0) -> Array:
    """Held − removed, where a non-whole remainder within the tolerance of what was held is exactly zero.

    So is one that is no more than `rounding`, for what was rounded along with something larger.
    """
    held, removed = np.broadcast_arrays(held, removed)
    rest = held - removed
    small = np.abs(rest) <= np.maximum(Statistics.TOLERANCE * np.abs(held), rounding)
    small &= rest != 0
    if small.any():  # whole numbers are exact: none is small there, unless a count passes 1e10
        rest[small & ~are_exact(held, removed)] = 0.0
    return rest


def first_deficit_of(
    held: dict[str, Array], removed: dict[str, Array]
) -> tuple[tuple[int, ...], str, float, float] | None:
    """Where, and by how much, something would turn negative; what is called failures was rounded along with weights."""
    for what, have in held.items():
        have, take = np.broadcast_arrays(have, removed[what])
        short = take > have
        if short.any():
            slack = Statistics.TOLERANCE * np.abs(have)
            if what == "failures":
                slack = np.maximum(slack, Statistics.ROUNDING * held["weight"])
            short &= (take - have > slack) | are_exact(have, take)
        if short.any():
            index = tuple(int(i) for i in np.argwhere(short)[0])
            return index, what, float(have[index]), float(take[index])
    return None


def all_close(first: Array, second: Array, tolerance: float) -> bool:
    """Equality to `tolerance` of the largest magnitude in play; exact for 0."""
    if first.shape != second.shape:
        try:
            first, second = np.broadcast_arrays(first, second)
        except ValueError:
            return False
    if tolerance == 0.0 or first.size == 0:
        return bool(np.array_equal(first, second, equal_nan=True))
    scale = np.maximum(np.abs(first), np.abs(second)).max(initial=0.0)
    return bool(np.allclose(first, second, rtol=tolerance, atol=tolerance * scale, equal_nan=True))

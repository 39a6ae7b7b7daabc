"""Base class of sufficient statistics: values that can be added, subtracted and scaled.

The leading axes of every array are those of the groups (``given``). Adding, dropping and reordering groups are
therefore one operation for all arrays: `take`.
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
    """Base class of `Counts`, `Totals` and `Moments`.

    A subclass implements its arrays (`arrays`), addition (`_add`), subtraction (`subtract_unchecked`) and the
    quantities that must not be negative (`nonnegative`). The base class derives all other operations.
    """

    # A result below −TOLERANCE × the minuend raises an error. A non-integer result within that tolerance becomes 0.
    TOLERANCE = 1e-10
    given_shape: tuple[int, ...]  # numbers of groups along every axis of ``given``
    n_columns: int
    ROUNDING = 1e-12  # relative to a weight: smaller differences of fractional weights are rounding errors

    def arrays(self) -> dict[str, Part]:
        """Return the arrays, whose leading axes are the groups, by field name."""
        raise NotImplementedError

    def _with(self, parts: dict[str, Any]) -> Self:
        """Return statistics of the same columns with other arrays."""
        raise NotImplementedError

    def _add(self, other: Self) -> Self:
        """Return the sum of two compatible statistics."""
        raise NotImplementedError

    def subtract_unchecked(self, other: Self) -> Self:
        """Return the difference without checks; cells without remaining weight are exactly zero."""
        raise NotImplementedError

    def _check_same(self, other: Self) -> None:
        """Raise StatisticsError unless both describe the same columns."""
        raise NotImplementedError

    def nonnegative(self) -> dict[str, Array]:
        """Return the quantities that must not be negative, by their name in error messages; each (*given, any)."""
        raise NotImplementedError

    def columns(self, kept: Array) -> Statistics:
        """Return the statistics of the columns at these positions."""
        raise NotImplementedError

    def column_weights(self) -> Array:
        """Return the weight of every column, shape (*given, columns)."""
        weight: Array = self.weight  # type: ignore[attr-defined]  # an attribute or a property
        return np.broadcast_to(weight, (*self.given_shape, self.n_columns))

    def group_weights(self) -> Array:
        """Return the total weight of every group, shape (*given,)."""
        raise NotImplementedError

    def __add__(self, other: Self) -> Self:
        if type(other) is not type(self):
            return NotImplemented
        self._check_groups(other)
        return self._add(other)

    def __radd__(self, other: object) -> Self:
        return self if isinstance(other, int) and other == 0 else NotImplemented  # supports sum()

    def __sub__(self, other: Self) -> Self:
        if type(other) is not type(self):
            return NotImplemented
        self._check_groups(other)
        deficit = self.first_deficit(other)
        if deficit is not None:
            index, quantity, held, removed = deficit
            group = index[:-1]
            where = f"group {', '.join(map(str, group))}" if group else "this tally"
            raise StatisticsError.removes_too_much(where, quantity, held, removed)
        return self.subtract_unchecked(other)

    def first_deficit(self, other: Self) -> tuple[tuple[int, ...], str, float, float] | None:
        """Return the first cell where `other` exceeds this: ((*group, column), quantity, held, to remove), or None."""
        held = self.nonnegative()
        removed = other.nonnegative()
        for quantity, minuend in held.items():
            have, take = np.broadcast_arrays(minuend, removed[quantity])
            short = take > have
            if short.any():
                slack = self.TOLERANCE * np.abs(have)
                if quantity == "failures":  # differences of weights, with their rounding errors
                    slack = np.maximum(slack, self.ROUNDING * held["weight"])
                short &= (take - have > slack) | are_exact(have, take)
            if short.any():
                index = tuple(int(i) for i in np.argwhere(short)[0])
                return index, quantity, float(have[index]), float(take[index])
        return None

    def scale(self, factor: float) -> Self:
        """Multiply every count by `factor`, as if all sample weights were multiplied by it."""
        if not 0 <= factor < np.inf:
            raise DataError.wrong_type("factor", repr(factor), "a finite number of at least 0")
        return self._map(lambda part: part * factor)

    def shrink_groups(self, fraction: float) -> Self:
        """Replace a fraction of every group by as much weight of all groups together, along one axis of groups."""
        weight = self.group_weights()
        proportion = fraction * weight / max(float(weight.sum()), 1e-300)

        def shrunk(part: Any) -> Any:
            """Return one array shrunk."""
            pooled = part.sum(axis=(0,))
            return part * (1 - fraction) + proportion.reshape(-1, *[1] * pooled.ndim) * pooled

        return self._map(shrunk)

    def take(self, axis: int, source: Array) -> Self:
        """Re-index one axis of ``given``: group ``i`` of the result is group ``source[i]``, or empty for −1."""
        return self._move(lambda a: take_or_zero(a, axis, source))

    def reshape_groups(self, shape: tuple[int, ...]) -> Self:
        """Return the same groups arranged along other axes."""
        n_axes = len(self.given_shape)
        if shape == self.given_shape:
            return self
        return self._map(lambda part: part.reshape(shape + part.shape[n_axes:]))

    def transpose_groups(self, order: list[int]) -> Self:
        """Return the same groups with axes in another order: axis ``i`` of the result is axis ``order[i]``."""
        return self._move(lambda a: a.transpose(*order, *range(len(order), a.ndim)))

    def pool_first_axis(self) -> Self:
        """Return the sums over the first axis of the groups."""
        return self._map(lambda part: part.sum(axis=(0,)))

    def at(self, index: int) -> Self:
        """Return the statistics at one index of the first axis of the groups."""
        return self._map(lambda part: part[index])

    def pool_groups(self) -> Self:
        """Return the sum over all groups: the statistics without ``given``."""
        axes = tuple(range(len(self.given_shape)))
        return self._map(lambda part: part.sum(axis=axes)) if axes else self

    def merge_groups(self, into: Array, n_groups: int) -> Self:
        """Add up groups of the first axis: group ``k`` of the result sums the groups ``i`` with ``into[i] == k``."""
        members = [np.flatnonzero(into == k) for k in range(n_groups)]
        most = max(map(len, members), default=0)
        source = np.full((n_groups, most), -1)
        for k, indices in enumerate(members):
            source[k, : len(indices)] = indices
        padded = self.take(0, source.ravel()).reshape_groups((n_groups, most, *self.given_shape[1:]))
        return padded._map(lambda part: part.sum(axis=(1,)))

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.isclose(other, 0.0)

    __hash__ = None  # type: ignore[assignment]

    def isclose(self, other: Self, tolerance: float = 1e-12) -> bool:
        """Return whether all numbers are equal up to `tolerance` times the largest magnitude."""
        raise NotImplementedError

    def _check_groups(self, other: Self) -> None:
        """Raise StatisticsError unless both have the same groups and columns."""
        if self.given_shape != other.given_shape:
            raise StatisticsError.incompatible("the numbers of groups", self.given_shape, other.given_shape)
        self._check_same(other)

    def _map(self, change: Callable[[Any], Any]) -> Self:
        """Apply a function to every part, a whole array or `DoubleDouble`."""
        return self._with({name: change(part) for name, part in self.arrays().items()})

    def _move(self, move: Callable[[Array], Array]) -> Self:
        """Apply a function that only rearranges elements to every array."""
        return self._map(lambda part: part.map(move) if isinstance(part, DoubleDouble) else move(part))


def take_or_zero(array: Array, axis: int, source: Array) -> Array:
    """Return ``np.take(array, source, axis)`` where index −1 selects zeros."""
    source = np.asarray(source, dtype=np.intp)
    if array.shape[axis] == 0:
        shape = list(array.shape)
        shape[axis] = len(source)
        return np.zeros(shape, array.dtype)
    taken = np.take(array, np.maximum(source, 0), axis=axis)
    empty = np.flatnonzero(source < 0)
    if len(empty):
        taken[(slice(None),) * axis + (empty,)] = 0
    return taken


def are_exact(first: Array, second: Array) -> Array:
    """Return where both arrays hold integers below 2⁵³, so that their sums and differences are exact."""
    whole = (first == np.floor(first)) & (second == np.floor(second))
    return np.asarray(whole & (np.maximum(np.abs(first), np.abs(second)) < _LARGEST_EXACT))


def subtract_counts(held: Array, removed: Array, rounding: Array | float = 0.0) -> Array:
    """Return held − removed; non-integer differences within the tolerance of `held` or `rounding` become zero."""
    held, removed = np.broadcast_arrays(held, removed)
    difference = held - removed
    small = np.abs(difference) <= np.maximum(Statistics.TOLERANCE * np.abs(held), rounding)
    small &= difference != 0
    if small.any():  # differences of integers are exact and this small only for counts above 1e10
        difference[small & ~are_exact(held, removed)] = 0.0
    return difference


def all_close(first: Array, second: Array, tolerance: float) -> bool:
    """Return whether arrays are equal up to `tolerance` times the largest magnitude; exactly for 0."""
    if first.shape != second.shape:
        try:
            first, second = np.broadcast_arrays(first, second)
        except ValueError:
            return False
    if tolerance == 0.0 or first.size == 0:
        return bool(np.array_equal(first, second, equal_nan=True))
    scale = np.maximum(np.abs(first), np.abs(second)).max(initial=0.0)
    return bool(np.allclose(first, second, rtol=tolerance, atol=tolerance * scale, equal_nan=True))

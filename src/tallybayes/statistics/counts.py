"""Counts of the levels of every column in every group, and the segments of their flat axis."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from tallybayes.errors import DataError, StatisticsError
from tallybayes.statistics.sufficient_statistics import Part, Statistics, all_close, subtract_counts, take_or_zero


class Segments:
    """Partition of a flat axis of cells into columns.

    Parameters
    ----------
    sizes : sequence of int
        Number of levels of every column.

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes.statistics.counts import Segments
    >>> segments = Segments([2, 3])
    >>> segments.sum(np.array([1., 2., 3., 4., 5.]))
    array([ 3., 12.])
    """

    def __init__(self, sizes: object) -> None:
        self.sizes = np.asarray(sizes, dtype=np.int64).reshape(-1)
        self.offsets = np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)
        self.n_columns = len(self.sizes)
        self.n_cells = int(self.offsets[-1])  # length of the flat axis

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Segments) and np.array_equal(self.sizes, other.sizes)

    def __hash__(self) -> int:
        return hash(tuple(self.sizes.tolist()))

    def __repr__(self) -> str:
        return f"Segments({self.sizes.tolist()})"

    def sum(self, cells: np.ndarray) -> np.ndarray:
        """Sum the cells of every column: (…, cells) to (…, columns)."""
        if self.n_columns == 1:
            return cells.sum(axis=-1, keepdims=True)
        totals = np.zeros((*cells.shape[:-1], self.n_columns))
        nonempty = np.flatnonzero(self.sizes)  # np.add.reduceat does not return 0 for an empty segment
        if len(nonempty):
            totals[..., nonempty] = np.add.reduceat(cells, self.offsets[nonempty], axis=-1)
        return totals

    def max(self, cells: np.ndarray) -> np.ndarray:
        """Return the largest cell of every column, −inf for a column without levels."""
        largest = np.full((*cells.shape[:-1], self.n_columns), -np.inf)
        nonempty = np.flatnonzero(self.sizes)
        if len(nonempty):
            largest[..., nonempty] = np.maximum.reduceat(cells, self.offsets[nonempty], axis=-1)
        return largest

    def broadcast_to_cells(self, columns: np.ndarray) -> np.ndarray:
        """Repeat one number per column over its cells: (…, columns) to (…, cells). Read-only for a single column."""
        if self.n_columns == 1:
            return np.broadcast_to(columns, (*columns.shape[:-1], self.n_cells))
        return np.repeat(columns, self.sizes, axis=-1)

    def split(self, cells: np.ndarray) -> list[np.ndarray]:
        """Return views of the cells of every column."""
        return [cells[..., start:stop] for start, stop in zip(self.offsets[:-1], self.offsets[1:], strict=True)]


class Counts(Statistics):
    """Counts of levels: sufficient statistics of `Categorical`.

    Parameters
    ----------
    table : array-like of shape (*given, cells)
        Total weight of every level of every column, with the levels of all columns concatenated.
    sizes : sequence of int, optional
        Number of levels of every column; they sum to ``cells``. By default a single column.

    Examples
    --------
    >>> import tallybayes as tb
    >>> tb.Counts([3, 1]) + tb.Counts([0, 2])
    Counts([3., 3.])
    >>> tb.Counts([3, 1]) - tb.Counts([4, 0])
    Traceback (most recent call last):
    ...
    tallybayes.errors.StatisticsError: cannot forget: this tally would have count -1 (3 counted, 4 to remove).
        Pass rows that were counted: forget, calibrate and leave_one_out subtract them. Nothing was changed.
    """

    def __init__(self, table: npt.ArrayLike, sizes: Segments | Iterable[int] | None = None) -> None:
        self.table = np.array(table, dtype=np.float64)
        self.table.setflags(write=False)
        if self.table.ndim == 0:
            raise DataError.wrong_shape("table", self.table.shape, "(*given, cells), at least one axis")
        if not np.isfinite(self.table).all() or (self.table < 0).any():
            raise DataError.wrong_type("table", "partly negative or not finite", "counts of at least 0")
        if isinstance(sizes, Segments):
            self.segments = sizes
        else:
            self.segments = Segments([self.table.shape[-1]] if sizes is None else sizes)
        self.given_shape = self.table.shape[:-1]
        self.n_columns = self.segments.n_columns
        if self.segments.n_cells != self.table.shape[-1]:
            raise DataError.wrong_shape("table", self.table.shape, f"(*given, {self.segments.n_cells}) for these sizes")

    def __repr__(self) -> str:
        sizes = "" if self.segments.n_columns == 1 else f", sizes={self.segments.sizes.tolist()}"
        return f"Counts({np.array2string(self.table, separator=', ', threshold=20)}{sizes})"

    @property
    def weight(self) -> np.ndarray:
        """Total weight of the values in every column that are not missing, shape (*given, columns)."""
        return self.segments.sum(self.table)

    def nonnegative(self) -> dict[str, np.ndarray]:
        """Return the counts."""
        return {"count": self.table}

    def group_weights(self) -> np.ndarray:
        """Return the sum of all counts of every group."""
        return self.table.sum(axis=-1)

    def take_cells(self, source: np.ndarray, segments: Segments) -> Counts:
        """Re-index the cells: cell ``i`` of the result is cell ``source[i]``, or 0 for −1."""
        return Counts(take_or_zero(self.table, self.table.ndim - 1, source), segments)

    def columns(self, kept: np.ndarray) -> Counts:
        """Return the counts of the columns at these positions."""
        cells = [np.arange(self.segments.offsets[k], self.segments.offsets[k + 1]) for k in kept]
        return self.take_cells(np.concatenate(cells or [np.zeros(0, np.intp)]), Segments(self.segments.sizes[kept]))

    def with_unseen(self) -> Counts:
        """Append a level with count 0 to every column."""
        starts = self.segments.offsets[:-1]
        sizes = self.segments.sizes
        cells = [np.append(np.arange(start, start + size), -1) for start, size in zip(starts, sizes, strict=True)]
        return self.take_cells(np.concatenate(cells) if cells else np.zeros(0, np.intp), Segments(sizes + 1))

    def isclose(self, other: Self, tolerance: float = 1e-12) -> bool:
        """Return whether both hold equal counts of the same columns."""
        same = self.segments == other.segments and self.table.shape == other.table.shape
        return same and all_close(self.table, other.table, tolerance)

    def arrays(self) -> dict[str, Part]:
        """Return the arrays by name."""
        return {"table": self.table}

    def _with(self, parts: dict[str, Any]) -> Self:
        """Return counts of the same columns with other arrays."""
        return type(self)(parts["table"], self.segments)

    def _check_same(self, other: Self) -> None:
        """Raise StatisticsError unless both have the same numbers of levels."""
        if self.segments != other.segments:
            raise StatisticsError.incompatible(
                "the numbers of levels", self.segments.sizes.tolist(), other.segments.sizes.tolist()
            )

    def _add(self, other: Self) -> Self:
        """Return the sum of the counts."""
        return type(self)(self.table + other.table, self.segments)

    def subtract_unchecked(self, other: Self) -> Self:
        """Return the difference of the counts, without checks."""
        return type(self)(np.maximum(subtract_counts(self.table, other.table), 0.0), self.segments)

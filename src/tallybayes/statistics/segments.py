"""Columns with different numbers of levels, concatenated along one axis without padding."""

from __future__ import annotations

import numpy as np


class Segments:
    """Partition of a flat axis of cells into columns.

    Parameters
    ----------
    sizes : sequence of int
        Number of levels of every column.

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes.statistics.segments import Segments
    >>> segments = Segments([2, 3])
    >>> segments.sum(np.array([1., 2., 3., 4., 5.]))
    array([ 3., 12.])
    """

    def __init__(self, sizes: object) -> None:
        self.sizes = np.asarray(sizes, dtype=np.int64).reshape(-1)
        self.offsets = np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self.sizes)

    @property
    def n_cells(self) -> int:
        """Length of the flat axis."""
        return int(self.offsets[-1])

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

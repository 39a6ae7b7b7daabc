"""Segments: several columns of levels, of different numbers, in one flat axis without padding."""

from __future__ import annotations

import numpy as np


class Segments:
    """How one flat axis of cells falls into columns.

    Parameters
    ----------
    sizes : sequence of int
        The number of levels of every column.

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes.statistics.segments import Segments
    >>> two = Segments([2, 3])
    >>> two.sum(np.array([1., 2., 3., 4., 5.]))
    array([ 3., 12.])
    """

    def __init__(self, sizes: object) -> None:
        self.sizes = np.asarray(sizes, dtype=np.int64).reshape(-1)
        self.offsets = np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)

    @property
    def n_columns(self) -> int:
        """The number of columns."""
        return len(self.sizes)

    @property
    def n_cells(self) -> int:
        """The length of the flat axis."""
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
        filled = np.flatnonzero(self.sizes)  # reduceat reads past the end of an empty segment
        if len(filled):
            totals[..., filled] = np.add.reduceat(cells, self.offsets[filled], axis=-1)
        return totals

    def max(self, cells: np.ndarray) -> np.ndarray:
        """The largest cell of every column, −inf for a column without levels."""
        largest = np.full((*cells.shape[:-1], self.n_columns), -np.inf)
        filled = np.flatnonzero(self.sizes)
        if len(filled):
            largest[..., filled] = np.maximum.reduceat(cells, self.offsets[filled], axis=-1)
        return largest

    def broadcast_to_cells(self, columns: np.ndarray) -> np.ndarray:
        """Repeat a number per column over its cells: (…, columns) to (…, cells); read-only for a single column."""
        if self.n_columns == 1:
            return np.broadcast_to(columns, (*columns.shape[:-1], self.n_cells))
        return np.repeat(columns, self.sizes, axis=-1)

    def split(self, cells: np.ndarray) -> list[np.ndarray]:
        """The cells of every column, as views."""
        return [cells[..., start:stop] for start, stop in zip(self.offsets[:-1], self.offsets[1:], strict=True)]

"""Blocks: like columns of a table, in the form that kernels count."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from tallybayes._utils.memory import require_memory
from tallybayes.errors import DataError

Dense = np.ndarray | Sequence[np.ndarray]


class Codes(NamedTuple):
    """Columns of level codes, −1 where missing.

    ``columns`` is an array of shape (n, columns) or a list of arrays of shape (n,); ``sizes`` is the number of levels
    of every column.
    """

    columns: Dense
    sizes: np.ndarray


class SparseRows(NamedTuple):
    """Columns of mostly zero numbers in compressed sparse row format: in any order, without duplicates.

    ``missing_rows`` marks rows that are entirely missing; None if there are none.
    """

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray
    n_columns: int
    missing_rows: np.ndarray | None = None

    def rows(self, selection: slice | np.ndarray) -> SparseRows:
        """Return some of the rows, by a slice or by their indices."""
        missing_rows = None if self.missing_rows is None else self.missing_rows[selection]
        if isinstance(selection, slice):
            start, stop, _ = selection.indices(len(self.indptr) - 1)
            first, last = int(self.indptr[start]), int(self.indptr[stop])
            indptr = self.indptr[start : stop + 1] - self.indptr[start]
            return SparseRows(indptr, self.indices[first:last], self.data[first:last], self.n_columns, missing_rows)
        lengths = np.diff(self.indptr)[selection]
        indptr = np.concatenate([np.zeros(1, self.indptr.dtype), np.cumsum(lengths, dtype=self.indptr.dtype)])
        cells = np.repeat(self.indptr[:-1][selection] - indptr[:-1], lengths) + np.arange(indptr[-1])
        return SparseRows(indptr, self.indices[cells], self.data[cells], self.n_columns, missing_rows)

    def take_columns(self, columns: np.ndarray) -> SparseRows:
        """Return some of the columns, by their indices."""
        position = np.full(self.n_columns, -1, dtype=np.int32)
        position[columns] = np.arange(len(columns))
        new_column = position[self.indices]
        kept = new_column >= 0
        n_kept = np.concatenate([np.zeros(1, self.indptr.dtype), np.cumsum(kept, dtype=self.indptr.dtype)])
        return SparseRows(n_kept[self.indptr], new_column[kept], self.data[kept], len(columns), self.missing_rows)

    def sum_rows(self, values: np.ndarray) -> np.ndarray:
        """Return the sum per row of one value for every stored entry; 0 for empty rows."""
        sums = np.zeros(len(self.indptr) - 1)
        nonempty = np.flatnonzero(np.diff(self.indptr) > 0)
        if len(nonempty):
            kind = np.float64 if values.dtype.kind == "f" else None  # integers are summed as integers
            sums[nonempty] = np.add.reduceat(values, self.indptr[nonempty], dtype=kind)
        return sums

    def without_zeros(self) -> SparseRows:
        """Return the rows without explicitly stored zeros."""
        kept = np.asarray(self.data != 0)
        if kept.all():
            return self
        n_kept = np.concatenate([np.zeros(1, self.indptr.dtype), np.cumsum(kept, dtype=self.indptr.dtype)])
        return self._replace(indptr=n_kept[self.indptr], indices=self.indices[kept], data=self.data[kept])

    @property
    def has_missing(self) -> bool:
        """Return whether there is a missing cell: a stored NaN, or a missing row."""
        if self.missing_rows is not None and self.missing_rows.any():
            return True
        return self.data.dtype.kind == "f" and bool(np.isnan(self.data.min(initial=0.0)))

    def dense(self, rows: slice | np.ndarray = slice(None)) -> np.ndarray:
        """Return some rows as a dense array."""
        selected = self.rows(rows)
        shape = len(selected.indptr) - 1, self.n_columns
        description = f"{shape[0]} sparse rows of {shape[1]} columns, made dense,"
        require_memory(
            8 * shape[0] * shape[1], description, "Use fewer rows at a time, or a family that accepts sparse rows."
        )
        out = np.zeros(shape)
        out[np.repeat(np.arange(len(out)), np.diff(selected.indptr)), selected.indices] = selected.data
        if selected.missing_rows is not None:
            out[selected.missing_rows] = np.nan
        return out


Block = Dense | Codes | SparseRows


def compressed(block: np.ndarray) -> SparseRows:
    """Return dense rows as sparse rows."""
    row, column = np.nonzero(block)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(block)))])
    return SparseRows(indptr, column, block[row, column], block.shape[1])


def n_rows(block: Block) -> int:
    """Return the number of rows of a block."""
    if isinstance(block, SparseRows):
        return len(block.indptr) - 1
    columns = block.columns if isinstance(block, Codes) else block
    if isinstance(columns, np.ndarray):
        return len(columns)
    return len(columns[0]) if columns else 0


def n_columns(block: Block) -> int:
    """Return the number of columns of a block."""
    if isinstance(block, SparseRows):
        return block.n_columns
    columns = block.columns if isinstance(block, Codes) else block
    return columns.shape[1] if isinstance(columns, np.ndarray) else len(columns)


def cell(block: Block, row: int, column: int) -> object:
    """Return one value, for an error message."""
    if isinstance(block, SparseRows):
        span = slice(int(block.indptr[row]), int(block.indptr[row + 1]))
        stored = block.data[span][block.indices[span] == column]
        return stored[0].item() if len(stored) else 0
    columns = block.columns if isinstance(block, Codes) else block
    value = columns[row, column] if isinstance(columns, np.ndarray) else columns[column][row]
    return value.item() if isinstance(value, np.generic) else value


def per_column(function: Callable[[np.ndarray], np.ndarray], columns: Dense) -> Dense:
    """Apply an elementwise function to an array, or to every column of a list."""
    return function(columns) if isinstance(columns, np.ndarray) else [function(column) for column in columns]


def first_infinite_cell(rows: np.ndarray) -> tuple[int, int] | None:
    """Return the row and column of the first infinite cell, or None."""
    infinite = np.argwhere(np.isinf(rows))
    return (int(infinite[0][0]), int(infinite[0][1])) if len(infinite) else None


def dense(block: Block, what: str) -> Dense:
    """Return the block; raise DataError if it is sparse or holds codes."""
    if isinstance(block, SparseRows | Codes):
        kind = "sparse" if isinstance(block, SparseRows) else "codes of levels"
        raise DataError.wrong_type(f"a block of {what} columns", kind, "dense numbers", "Pass an array.")
    return block

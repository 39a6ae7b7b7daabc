"""Blocks: like columns of one table in the form the kernels count."""

from __future__ import annotations

from collections.abc import Sequence
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
    """Columns of numbers, mostly 0, in compressed rows: in any order, without duplicates.

    ``absent`` says which rows are missing as a whole; None where none is.
    """

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray
    n_columns: int
    missing_rows: np.ndarray | None = None

    def rows(self, part: slice | np.ndarray) -> SparseRows:
        """Some of the rows, a stretch of them or by their numbers."""
        absent = None if self.missing_rows is None else self.missing_rows[part]
        if isinstance(part, slice):
            start, stop, _ = part.indices(len(self.indptr) - 1)
            first, last = int(self.indptr[start]), int(self.indptr[stop])
            indptr = self.indptr[start : stop + 1] - self.indptr[start]
            return SparseRows(indptr, self.indices[first:last], self.data[first:last], self.n_columns, absent)
        lengths = np.diff(self.indptr)[part]
        indptr = np.concatenate([np.zeros(1, self.indptr.dtype), np.cumsum(lengths, dtype=self.indptr.dtype)])
        cells = np.repeat(self.indptr[:-1][part] - indptr[:-1], lengths) + np.arange(indptr[-1])
        return SparseRows(indptr, self.indices[cells], self.data[cells], self.n_columns, absent)

    def take_columns(self, places: np.ndarray) -> SparseRows:
        """Some of the columns, by their numbers."""
        where = np.full(self.n_columns, -1, dtype=np.int32)
        where[places] = np.arange(len(places))
        moved = where[self.indices]
        kept = moved >= 0
        before = np.concatenate([np.zeros(1, self.indptr.dtype), np.cumsum(kept, dtype=self.indptr.dtype)])
        return SparseRows(before[self.indptr], moved[kept], self.data[kept], len(places), self.missing_rows)

    def sum_rows(self, values: np.ndarray) -> np.ndarray:
        """Sums over the stored entries of every row, of a number for each; 0 in rows without any."""
        sums = np.zeros(len(self.indptr) - 1)
        some = np.flatnonzero(np.diff(self.indptr) > 0)
        if len(some):
            kind = np.float64 if values.dtype.kind == "f" else None  # whole numbers are added as such
            sums[some] = np.add.reduceat(values, self.indptr[some], dtype=kind)
        return sums

    def without_zeros(self) -> SparseRows:
        """The same rows without entries that are stored though they are 0."""
        kept = np.asarray(self.data != 0)
        if kept.all():
            return self
        before = np.concatenate([np.zeros(1, self.indptr.dtype), np.cumsum(kept, dtype=self.indptr.dtype)])
        return self._replace(indptr=before[self.indptr], indices=self.indices[kept], data=self.data[kept])

    @property
    def has_missing(self) -> bool:
        """Whether a cell is missing: a stored NaN, or a whole row."""
        if self.missing_rows is not None and self.missing_rows.any():
            return True
        return self.data.dtype.kind == "f" and bool(np.isnan(self.data.min(initial=0.0)))

    def dense(self, rows: slice | np.ndarray = slice(None)) -> np.ndarray:
        """Some rows as a dense array."""
        some = self.rows(rows)
        shape = len(some.indptr) - 1, self.n_columns
        what = f"{shape[0]} sparse rows of {shape[1]} columns, made dense,"
        require_memory(8 * shape[0] * shape[1], what, "Take fewer rows at a time, or a family that takes sparse rows.")
        out = np.zeros(shape)
        out[np.repeat(np.arange(len(out)), np.diff(some.indptr)), some.indices] = some.data
        if some.missing_rows is not None:
            out[some.missing_rows] = np.nan
        return out


Block = Dense | Codes | SparseRows


def compressed(block: np.ndarray) -> SparseRows:
    """Dense rows without their zeros."""
    row, column = np.nonzero(block)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(block)))])
    return SparseRows(indptr, column, block[row, column], block.shape[1])


def n_rows(block: Block) -> int:
    """The number of rows of a block."""
    if isinstance(block, SparseRows):
        return len(block.indptr) - 1
    columns = block.columns if isinstance(block, Codes) else block
    if isinstance(columns, np.ndarray):
        return len(columns)
    return len(columns[0]) if columns else 0


def n_columns(block: Block) -> int:
    """The number of columns of a block."""
    if isinstance(block, SparseRows):
        return block.n_columns
    columns = block.columns if isinstance(block, Codes) else block
    return columns.shape[1] if isinstance(columns, np.ndarray) else len(columns)


def cell(block: Block, row: int, column: int) -> object:
    """One value, for an error message."""
    if isinstance(block, SparseRows):
        span = slice(int(block.indptr[row]), int(block.indptr[row + 1]))
        found = block.data[span][block.indices[span] == column]
        return found[0].item() if len(found) else 0
    columns = block.columns if isinstance(block, Codes) else block
    value = columns[row, column] if isinstance(columns, np.ndarray) else columns[column][row]
    return value.item() if isinstance(value, np.generic) else value


def first_infinite_cell(rows: np.ndarray) -> tuple[int, int] | None:
    """The first infinite cell, as row and column."""
    infinite = np.argwhere(np.isinf(rows))
    return (int(infinite[0][0]), int(infinite[0][1])) if len(infinite) else None


def dense(block: Block, what: str) -> Dense:
    """The block if its family needs dense numbers, else a clear refusal."""
    if isinstance(block, SparseRows | Codes):
        found = "sparse" if isinstance(block, SparseRows) else "codes of levels"
        raise DataError.wrong_type(f"a block of {what} columns", found, "dense numbers", "Pass an array.")
    return block

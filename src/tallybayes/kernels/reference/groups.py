"""Rows, groups and codes for the NumPy kernels: which rows count, in which group, with which weight."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tallybayes.errors import CellError
from tallybayes.kernels.arguments import AnyArray, Columns, Float64Array, Int64Array, group_error, indptr_error


def valid_codes(codes: AnyArray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return masks of the valid codes, and of the codes that are neither valid nor missing."""
    if codes.dtype == np.bool_:
        codes = codes.view(np.uint8)
    largest = int(np.iinfo(codes.dtype).max)
    missing = -1 if codes.dtype.kind == "i" else largest
    valid = codes >= 0
    if size <= largest:
        valid &= codes < size
    return valid, ~valid & (codes != missing)


def observed_cells(columns: Columns, sizes: Int64Array, present: np.ndarray) -> list[np.ndarray]:
    """Return masks of the observed cells of every column in the rows that count; raise CellError for invalid codes."""
    observed = []
    invalid = []
    for j, (codes, size) in enumerate(zip(column_list(columns), sizes.tolist(), strict=True)):
        valid, bad = valid_codes(codes, size)
        bad &= present
        if bad.any():
            invalid.append((int(bad.argmax()), j))
        observed.append(valid & present)
    if invalid:
        raise CellError(*min(invalid))
    return observed


def row_sets(
    group: AnyArray | None, n_groups: int, weight: Float64Array | None, n_rows: int
) -> Iterator[tuple[int, np.ndarray, Float64Array | None]]:
    """Yield (group, ascending row indices, their weights or None) for every nonempty group."""
    if weight is not None and weight.ndim == 2:
        for g in range(n_groups):
            rows = np.flatnonzero(weight[:, g])
            if len(rows):
                yield g, rows, weight[rows, g]
        return
    present = np.arange(n_rows) if weight is None else np.flatnonzero(weight)
    if group is None:
        if len(present):
            yield 0, present, None if weight is None else weight[present]
        return
    check_group_codes(group, n_groups)
    valid, _ = valid_codes(group[present], n_groups)
    present = present[valid]
    codes = group[present].astype(np.int64)
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=n_groups))
    start = 0
    for g, end in enumerate(ends.tolist()):
        if end > start:
            rows = present[order[start:end]]
            yield g, rows, None if weight is None else weight[rows]
        start = end


def check_group_codes(group: AnyArray, n_groups: int) -> None:
    """Raise IndexError for a group code that is neither valid nor missing; the error names the first one."""
    _, bad = valid_codes(group, n_groups)
    if bad.any():
        row = int(bad.argmax())
        raise group_error(row, int(group[row]), n_groups)


def present_rows(group: AnyArray | None, n_groups: int, weight: Float64Array | None, n_rows: int) -> np.ndarray:
    """Return a mask of the rows with a positive weight and a group."""
    present = np.ones(n_rows, dtype=bool)
    if weight is not None:
        present &= (weight != 0).any(axis=1) if weight.ndim == 2 else weight != 0
    if group is not None:
        check_group_codes(group, n_groups)
        present &= valid_codes(group, n_groups)[0]
    return present


def raise_first(bad: np.ndarray, rows: np.ndarray | None = None) -> None:
    """Raise CellError for the first True in row-major order; `rows` are the row numbers for the error."""
    if bad.any():
        row, column = divmod(int(bad.argmax()), bad.shape[1])
        raise CellError(row if rows is None else int(rows[row]), column)


def column_list(columns: Columns) -> Sequence[AnyArray]:
    """Return the columns of an array, or the list itself."""
    return list(columns.T) if isinstance(columns, np.ndarray) else columns


def as_matrix(columns: Columns, n_rows: int) -> AnyArray:
    """Return a list of 1-D columns as one (n, d) array; columns of different types are converted to float64."""
    if isinstance(columns, np.ndarray):
        return columns
    if not columns:
        return np.empty((n_rows, 0))
    if any(column.dtype != columns[0].dtype for column in columns):
        return np.stack([column.astype(np.float64) for column in columns], axis=1)
    return np.stack(columns, axis=1)


def rows_of(columns: Columns, group: AnyArray | None, weight: Float64Array | None) -> int:
    """Return the number of rows of the columns, of group or of weight."""
    if isinstance(columns, np.ndarray):
        return len(columns)
    for array in (*columns[:1], group, weight):
        if array is not None:
            return len(array)
    return 0


def entry_positions(
    starts: Int64Array, stops: Int64Array, n_entries: int, numbers: Int64Array | None = None
) -> tuple[Int64Array, Int64Array]:
    """Return the row and the position of every entry of CSR rows, which may be anywhere among the entries.

    Raise IndexError for a row whose extent is invalid; `numbers` are the row numbers for the error.
    """
    invalid = (starts < 0) | (stops < starts) | (stops > n_entries)
    if invalid.any():
        row = int(invalid.argmax())
        number = row if numbers is None else int(numbers[row])
        raise indptr_error(number, int(starts[row]), int(stops[row]), n_entries)
    lengths = stops - starts
    row_of = np.repeat(np.arange(len(starts)), lengths)
    return row_of, np.arange(len(row_of)) + np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)

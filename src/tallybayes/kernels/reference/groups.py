"""Rows and groups for the NumPy kernels: which rows count, in which group, with which weight."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tallybayes.errors import CellError
from tallybayes.kernels.arguments import AnyArray, Columns, Float64Array, group_error


def code_limit(dtype: np.dtype[Any], size: int) -> int:
    """Return the first code that is not valid: `size`, or less where the type cannot hold it."""
    return min(size, int(np.iinfo(dtype).max) + 1)


def valid_codes(codes: AnyArray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return two masks: codes that count, and codes that are neither valid nor the missing code."""
    if codes.dtype == np.bool_:
        codes = codes.view(np.uint8)
    limit = code_limit(codes.dtype, size)
    missing = -1 if codes.dtype.kind == "i" else np.iinfo(codes.dtype).max
    valid = codes >= 0
    if limit <= np.iinfo(codes.dtype).max:
        valid &= codes < limit
    return valid, ~valid & (codes != missing)


def row_sets(
    group: AnyArray | None, n_groups: int, weight: Float64Array | None, n_rows: int
) -> Iterator[tuple[int, np.ndarray, Float64Array | None]]:
    """Yield (group, row indices in rising order, their weights or None) for every group that has a row."""
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
    """Raise IndexError at the first group code that is neither valid nor "skip"."""
    _, bad = valid_codes(group, n_groups)
    if bad.any():
        row = int(bad.argmax())
        raise group_error(row, int(group[row]), n_groups)


def present_rows(group: AnyArray | None, n_groups: int, weight: Float64Array | None, n_rows: int) -> np.ndarray:
    """Return a mask of the rows whose values are looked at at all."""
    present = np.ones(n_rows, dtype=bool)
    if weight is not None:
        present &= (weight != 0).any(axis=1) if weight.ndim == 2 else weight != 0
    if group is not None:
        check_group_codes(group, n_groups)
        present &= valid_codes(group, n_groups)[0]
    return present


def raise_first(bad: np.ndarray, rows: np.ndarray | None = None) -> None:
    """Raise CellError for the first True in row-major order; `rows` maps back to the caller's row numbers."""
    if bad.any():
        row, column = divmod(int(bad.argmax()), bad.shape[1])
        raise CellError(row if rows is None else int(rows[row]), column)


def as_matrix(columns: Columns, n_rows: int) -> AnyArray:
    """Return a list of 1-D columns as one (n, d) array; numbers of different types meet in float64."""
    if isinstance(columns, np.ndarray):
        return columns
    if not columns:
        return np.empty((n_rows, 0))
    if any(column.dtype != columns[0].dtype for column in columns):
        return np.stack([column.astype(np.float64) for column in columns], axis=1)
    return np.stack(columns, axis=1)


def rows_of(columns: Columns, group: AnyArray | None, weight: Float64Array | None) -> int:
    """Return the number of rows; without columns, group or weight tell it."""
    if isinstance(columns, np.ndarray):
        return len(columns)
    for known in (*columns[:1], group, weight):
        if known is not None:
            return len(known)
    return 0

"""The kernels in NumPy: the truth the compiled ones are tested against, and what runs where nothing was compiled.

The functions here expect arguments that `tallybayes.kernels` has checked; `threads` is accepted and ignored.
"""

from __future__ import annotations

import numpy as np

from tallybayes.errors import CellError
from tallybayes.kernels.arguments import AnyArray, Columns, Float64Array, Int64Array, index_error, indptr_error
from tallybayes.kernels.reference.groups import (
    as_matrix,
    check_group_codes,
    present_rows,
    raise_first,
    row_sets,
    rows_of,
    valid_codes,
)
from tallybayes.kernels.reference.moment_sums import sum_moments, sum_scatter

__all__ = [
    "count_codes",
    "count_groups",
    "read_bytes",
    "squared_lengths",
    "sum_csr",
    "sum_dense",
    "sum_moments",
    "sum_scatter",
]


def count_groups(
    group: AnyArray | None, n_groups: int, weight: Float64Array | None, n_rows: int
) -> tuple[Int64Array, Float64Array]:
    """Count the rows and add the weights of every group."""
    rows = np.zeros(n_groups, dtype=np.int64)
    total = np.zeros(n_groups)
    if group is not None:
        check_group_codes(group, n_groups)
    for g, members, weights in row_sets(group, n_groups, weight, n_rows):
        rows[g] = len(members)
        total[g] = len(members) if weights is None else weights.sum()
    return rows, total


def count_codes(
    columns: Columns,
    sizes: Int64Array,
    group: AnyArray | None,
    n_groups: int,
    weight: Float64Array | None,
    threads: int,
) -> Float64Array:
    """Count the codes of every column in every group."""
    n_rows = rows_of(columns, group, weight)
    present = present_rows(group, n_groups, weight, n_rows)
    table = np.zeros((n_groups, int(sizes.sum())))
    each = columns.T if isinstance(columns, np.ndarray) else columns
    first: tuple[int, int] | None = None
    offset = 0
    for j, size in enumerate(sizes.tolist()):
        codes = each[j]
        valid, bad = valid_codes(codes, size)
        bad &= present
        if bad.any():
            position = (int(bad.argmax()), j)
            first = position if first is None else min(first, position)
            continue
        counted = np.flatnonzero(valid & present)
        levels = codes[counted].astype(np.int64)
        part = table[:, offset : offset + size]
        offset += size
        if weight is not None and weight.ndim == 2:
            for g in range(n_groups):
                part[g] = np.bincount(levels, weights=weight[counted, g], minlength=size)
            continue
        if group is not None:
            levels += group[counted].astype(np.int64) * size
        weights = None if weight is None else weight[counted]
        part[...] = np.bincount(levels, weights=weights, minlength=n_groups * size).reshape(n_groups, size)
    if first is not None:
        raise CellError(*first)
    return table


def _log_factorial(values: np.ndarray) -> Float64Array:
    from scipy.special import gammaln  # here, because importing scipy takes longer than most calls

    return np.asarray(gammaln(values + 1.0), dtype=np.float64)


def _forbidden(x: Float64Array, kind: str) -> np.ndarray:
    """Return a mask of the cells that this kind of sum must refuse; NaN is missing except for multinomials."""
    with np.errstate(invalid="ignore"):
        if kind == "binary":
            return ~((x == 0) | (x == 1) | np.isnan(x))
        if kind == "poisson":
            return ~(((x >= 0) & (x == np.floor(x)) & (x < np.inf)) | np.isnan(x))
        return ~((x >= 0) & (x < np.inf))


def sum_dense(
    columns: Columns, kind: str, group: AnyArray | None, n_groups: int, weight: Float64Array | None, threads: int
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Sum the cells of every column in every group, with the weight they carry and their log base measure."""
    n_rows = rows_of(columns, group, weight)
    X = as_matrix(columns, n_rows)
    d = X.shape[1]
    looked_at = np.flatnonzero(present_rows(group, n_groups, weight, n_rows))
    values = X[looked_at].astype(np.float64)
    raise_first(_forbidden(values, kind), looked_at)
    missing = np.isnan(values)
    any_missing = bool(missing.any())
    values[missing] = 0.0
    place = np.zeros(n_rows, dtype=np.int64)
    place[looked_at] = np.arange(len(looked_at))

    row_weight = np.zeros((n_groups, 1))
    cell_weight = np.zeros((n_groups, d))
    total = np.zeros((n_groups, d))
    log_base = np.zeros((n_groups, d if kind == "poisson" else 1))
    for g, rows, given in row_sets(group, n_groups, weight, n_rows):
        x = values[place[rows]]
        w = np.ones(len(rows)) if given is None else given
        row_weight[g] = w.sum()
        total[g] = w @ x
        if any_missing:
            cell_weight[g] = w @ ~missing[place[rows]]
        if kind == "poisson":
            log_base[g] = -(w @ _log_factorial(x))
        elif kind == "multinomial":
            log_base[g] = w @ (_log_factorial(x.sum(axis=1)) - _log_factorial(x).sum(axis=1))
    return (cell_weight if any_missing else row_weight), total, log_base


def _extents(indptr: AnyArray, n_entries: int) -> tuple[Int64Array, Int64Array]:
    """Where the rows of a CSR matrix start and stop among its entries."""
    starts, stops = indptr[:-1].astype(np.int64), indptr[1:].astype(np.int64)
    broken = (starts < 0) | (stops < starts) | (stops > n_entries)
    if broken.any():
        row = int(broken.argmax())
        raise indptr_error(row, int(starts[row]), int(stops[row]), n_entries)
    return starts, stops


def _entries(indptr: AnyArray, n_entries: int) -> tuple[Int64Array, Int64Array]:
    """The row and the place of the entries of all rows in order; indptr need not start at 0, nor rows be adjacent."""
    starts, stops = _extents(indptr, n_entries)
    lengths = stops - starts
    row_of = np.repeat(np.arange(len(starts)), lengths)
    return row_of, np.arange(len(row_of)) + np.repeat(starts - np.concatenate(([0], np.cumsum(lengths)[:-1])), lengths)


def _columns_of(indices: AnyArray, row_of: Int64Array, n_columns: int) -> Int64Array:
    """The column indices of entries, every one within the matrix."""
    column = indices.astype(np.int64)
    outside = (column < 0) | (column >= n_columns)
    if outside.any():
        first = int(outside.argmax())
        raise index_error(int(row_of[first]), int(column[first]), n_columns)
    return column


def row_order(indptr: AnyArray, indices: AnyArray, n_columns: int, threads: int) -> str:
    """Compare every index with the one before it, and with all others of its row."""
    row_of, entry = _entries(indptr, len(indices))
    column = _columns_of(indices[entry], row_of, n_columns)
    if not ((row_of[1:] == row_of[:-1]) & (column[1:] <= column[:-1])).any():
        return "rising"
    order = np.lexsort((column, row_of))
    row_of, column = row_of[order], column[order]
    return "repeated" if ((row_of[1:] == row_of[:-1]) & (column[1:] == column[:-1])).any() else "distinct"


def sum_csr(
    indptr: AnyArray,
    indices: AnyArray,
    data: AnyArray,
    n_columns: int,
    kind: str,
    group: AnyArray | None,
    n_groups: int,
    weight: Float64Array | None,
    threads: int,
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Do what `sum_dense` does, on the stored entries of a CSR matrix."""
    n_rows = len(indptr) - 1
    present = present_rows(group, n_groups, weight, n_rows)
    row_of, entry = _entries(indptr, len(indices))
    looked_at = present[row_of]
    row_of, entry = row_of[looked_at], entry[looked_at]
    column = _columns_of(indices[entry], row_of, n_columns)
    values = data[entry].astype(np.float64)
    bad = np.flatnonzero(_forbidden(values, kind))
    if len(bad):
        first = int(min(bad, key=lambda position: (row_of[position], column[position])))
        raise CellError(int(row_of[first]), int(column[first]))
    missing = np.isnan(values)
    any_missing = bool(missing.any())
    values[missing] = 0.0

    row_weight = np.zeros((n_groups, 1))
    absent_weight = np.zeros((n_groups, n_columns))
    total = np.zeros((n_groups, n_columns))
    log_base = np.zeros((n_groups, n_columns if kind == "poisson" else 1))
    log_factorial = np.zeros_like(values) if kind == "binary" else _log_factorial(values)
    in_group = np.zeros(n_rows)
    for g, rows, given in row_sets(group, n_groups, weight, n_rows):
        w = np.ones(len(rows)) if given is None else given
        row_weight[g] = w.sum()
        in_group[:] = 0.0
        in_group[rows] = w
        entry_weight = in_group[row_of]
        total[g] = np.bincount(column, weights=entry_weight * values, minlength=n_columns)
        if any_missing:
            absent_weight[g] = np.bincount(column[missing], weights=entry_weight[missing], minlength=n_columns)
        if kind == "poisson":
            log_base[g] = -np.bincount(column, weights=entry_weight * log_factorial, minlength=n_columns)
        elif kind == "multinomial":
            length = np.bincount(row_of, weights=values, minlength=n_rows)
            inner = np.bincount(row_of, weights=log_factorial, minlength=n_rows)
            log_base[g] = w @ (_log_factorial(length) - inner)[rows]
    if not any_missing:
        return row_weight, total, log_base
    remaining = row_weight - absent_weight
    # What rounding leaves of a column that is missing in every row must be 0, or it would look like data.
    remaining[remaining <= 1e-12 * row_weight] = 0.0
    return remaining, total, log_base


def log_base_csr(indptr: AnyArray, data: AnyArray, kind: str, threads: int) -> Float64Array:
    """Add up the logs of the factorials in every row."""
    starts, stops = _extents(indptr, len(data))
    values = data.astype(np.float64)
    values[_forbidden(values, "multinomial")] = np.nan
    logs, out = _log_factorial(values), np.empty(len(starts))
    for row, (start, stop) in enumerate(zip(starts, stops, strict=True)):
        whole = _log_factorial(values[start:stop].sum()) if kind == "multinomial" else 0.0
        out[row] = whole - logs[start:stop].sum()
    return out


def squared_lengths(
    columns: Columns, center: Float64Array, roots: Float64Array, shifts: Float64Array, n_classes: int, threads: int
) -> Float64Array:
    """Turn the centered rows by each triangle and sum the squares."""
    block = columns if isinstance(columns, np.ndarray) else np.stack(list(columns), axis=1)
    d = block.shape[1]
    out = np.empty((len(block), n_classes))
    triangles = np.tril(roots.reshape(n_classes, d, d))
    for start in range(0, len(block), 2048):  # few enough rows to stay in cache
        centered = block[start : start + 2048] - center
        for k in range(n_classes):
            turned = centered @ triangles[k].T - shifts.reshape(n_classes, d)[k]
            out[start : start + 2048, k] = np.einsum("ij,ij->i", turned, turned)
    return out


def read_bytes(array: AnyArray, threads: int) -> int:
    """Add up the bytes of an array, eight at a time."""
    flat = array.reshape(-1, order="A").view(np.uint8)
    whole = len(flat) // 8 * 8
    total = int(flat[:whole].view(np.uint64).sum(dtype=np.uint64)) if whole else 0
    return (total + int(flat[whole:].sum(dtype=np.uint64))) % 2**64

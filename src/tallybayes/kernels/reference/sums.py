"""Counts and sums in NumPy.

The functions expect arguments that `tallybayes.kernels` has validated. They ignore `threads`.
"""

from __future__ import annotations

import numpy as np

from tallybayes.errors import CellError
from tallybayes.kernels.arguments import AnyArray, Columns, Float64Array, Int64Array, index_error
from tallybayes.kernels.reference.groups import (
    as_matrix,
    check_group_codes,
    column_list,
    entry_positions,
    observed_cells,
    present_rows,
    raise_first,
    row_sets,
    rows_of,
)
from tallybayes.kernels.reference.moment_sums import sum_moments, sum_scatter

__all__ = [
    "column_ranges",
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
    """Count the rows and sum the weights of every group."""
    rows = np.zeros(n_groups, dtype=np.int64)
    total = np.zeros(n_groups)
    if group is not None:
        check_group_codes(group, n_groups)
    for g, members, weights in row_sets(group, n_groups, weight, n_rows):
        rows[g] = len(members)
        total[g] = len(members) if weights is None else weights.sum()
    return rows, total


def column_ranges(columns: Columns, threads: int) -> tuple[Int64Array, Int64Array]:
    """Return the smallest and the largest value of every integer column."""
    by_column = column_list(columns)
    low = np.zeros(len(by_column), np.int64)
    high = np.full(len(by_column), -1, np.int64)
    for j, column in enumerate(by_column):
        if len(column):
            largest = int(np.max(column))
            if largest > np.iinfo(np.int64).max:
                raise OverflowError(f"a column holds a number above {np.iinfo(np.int64).max}, the largest int64")
            low[j] = int(np.min(column))
            high[j] = largest
    return low, high


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
    observed = observed_cells(columns, sizes, present_rows(group, n_groups, weight, n_rows))
    table = np.zeros((n_groups, int(sizes.sum())))
    offset = 0
    for codes, size, mask in zip(column_list(columns), sizes.tolist(), observed, strict=True):
        rows = np.flatnonzero(mask)
        levels = codes[rows].astype(np.int64)
        part = table[:, offset : offset + size]
        offset += size
        if weight is not None and weight.ndim == 2:
            for g in range(n_groups):
                part[g] = np.bincount(levels, weights=weight[rows, g], minlength=size)
            continue
        if group is not None:
            levels += group[rows].astype(np.int64) * size
        weights = None if weight is None else weight[rows]
        part[...] = np.bincount(levels, weights=weights, minlength=n_groups * size).reshape(n_groups, size)
    return table


def _log_factorial(values: np.ndarray) -> Float64Array:
    """Return log Γ(values + 1)."""
    from scipy.special import gammaln  # imported here because it takes longer than most calls

    return np.asarray(gammaln(values + 1.0), dtype=np.float64)


def _invalid(x: Float64Array, kind: str) -> np.ndarray:
    """Return a mask of the values that this kind of sum does not allow; NaN is missing except for multinomials."""
    with np.errstate(invalid="ignore"):
        if kind == "binary":
            return ~((x == 0) | (x == 1) | np.isnan(x))
        if kind == "poisson":
            return ~(((x >= 0) & (x == np.floor(x)) & (x < np.inf)) | np.isnan(x))
        return ~((x >= 0) & (x < np.inf))


def sum_dense(
    columns: Columns, kind: str, group: AnyArray | None, n_groups: int, weight: Float64Array | None, threads: int
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Sum the values of every column in every group, with their weights and log base measures."""
    n_rows = rows_of(columns, group, weight)
    X = as_matrix(columns, n_rows)
    d = X.shape[1]
    present = np.flatnonzero(present_rows(group, n_groups, weight, n_rows))
    values = X[present].astype(np.float64)
    raise_first(_invalid(values, kind), present)
    missing = np.isnan(values)
    any_missing = bool(missing.any())
    values[missing] = 0.0
    position = np.zeros(n_rows, dtype=np.int64)
    position[present] = np.arange(len(present))

    row_weight = np.zeros((n_groups, 1))
    cell_weight = np.zeros((n_groups, d))
    total = np.zeros((n_groups, d))
    log_base = np.zeros((n_groups, d if kind == "poisson" else 1))
    for g, rows, row_weights in row_sets(group, n_groups, weight, n_rows):
        x = values[position[rows]]
        w = np.ones(len(rows)) if row_weights is None else row_weights
        row_weight[g] = w.sum()
        total[g] = w @ x
        if any_missing:
            cell_weight[g] = w @ ~missing[position[rows]]
        if kind == "poisson":
            log_base[g] = -(w @ _log_factorial(x))
        elif kind == "multinomial":
            log_base[g] = w @ (_log_factorial(x.sum(axis=1)) - _log_factorial(x).sum(axis=1))
    return (cell_weight if any_missing else row_weight), total, log_base


def _entries(indptr: AnyArray, n_entries: int) -> tuple[Int64Array, Int64Array]:
    """Return the row and the position of every entry of a CSR matrix, in order of rows."""
    return entry_positions(indptr[:-1].astype(np.int64), indptr[1:].astype(np.int64), n_entries)


def _columns_of(indices: AnyArray, row_of: Int64Array, n_columns: int) -> Int64Array:
    """Return the column indices of entries, or raise IndexError for an index outside the matrix."""
    column = indices.astype(np.int64)
    invalid = (column < 0) | (column >= n_columns)
    if invalid.any():
        first = int(invalid.argmax())
        raise index_error(int(row_of[first]), int(column[first]), n_columns)
    return column


def row_order(indptr: AnyArray, indices: AnyArray, n_columns: int, threads: int) -> str:
    """Return the order of the column indices within rows; see `tallybayes.kernels.csr_order.row_order`."""
    row_of, entry = _entries(indptr, len(indices))
    column = _columns_of(indices[entry], row_of, n_columns)
    if not ((row_of[1:] == row_of[:-1]) & (column[1:] <= column[:-1])).any():
        return "rising"
    order = np.lexsort((column, row_of))
    row_of = row_of[order]
    column = column[order]
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
    """Sum the stored entries of a CSR matrix as `sum_dense` does."""
    n_rows = len(indptr) - 1
    present = present_rows(group, n_groups, weight, n_rows)
    row_of, entry = _entries(indptr, len(indices))
    counted = present[row_of]
    row_of = row_of[counted]
    entry = entry[counted]
    column = _columns_of(indices[entry], row_of, n_columns)
    values = data[entry].astype(np.float64)
    bad = np.flatnonzero(_invalid(values, kind))
    if len(bad):
        first = int(min(bad, key=lambda position: (row_of[position], column[position])))
        raise CellError(int(row_of[first]), int(column[first]))
    missing = np.isnan(values)
    any_missing = bool(missing.any())
    values[missing] = 0.0

    row_weight = np.zeros((n_groups, 1))
    missing_weight = np.zeros((n_groups, n_columns))
    total = np.zeros((n_groups, n_columns))
    log_base = np.zeros((n_groups, n_columns if kind == "poisson" else 1))
    log_factorial = np.zeros_like(values) if kind == "binary" else _log_factorial(values)
    weight_of = np.zeros(n_rows)
    for g, rows, row_weights in row_sets(group, n_groups, weight, n_rows):
        w = np.ones(len(rows)) if row_weights is None else row_weights
        row_weight[g] = w.sum()
        weight_of[:] = 0.0
        weight_of[rows] = w
        entry_weight = weight_of[row_of]
        total[g] = np.bincount(column, weights=entry_weight * values, minlength=n_columns)
        if any_missing:
            missing_weight[g] = np.bincount(column[missing], weights=entry_weight[missing], minlength=n_columns)
        if kind == "poisson":
            log_base[g] = -np.bincount(column, weights=entry_weight * log_factorial, minlength=n_columns)
        elif kind == "multinomial":
            length = np.bincount(row_of, weights=values, minlength=n_rows)
            inner = np.bincount(row_of, weights=log_factorial, minlength=n_rows)
            log_base[g] = w @ (_log_factorial(length) - inner)[rows]
    if not any_missing:
        return row_weight, total, log_base
    remaining = row_weight - missing_weight
    # The rounding error for a column that is missing in every row is set to 0: there are no data.
    remaining[remaining <= 1e-12 * row_weight] = 0.0
    return remaining, total, log_base


def log_base_csr(indptr: AnyArray, data: AnyArray, kind: str, threads: int) -> Float64Array:
    """Return the log base measure of every row."""
    row_of, entry = _entries(indptr, len(data))
    values = data[entry].astype(np.float64)
    values[_invalid(values, "multinomial")] = np.nan
    n_rows = len(indptr) - 1
    out: Float64Array = -np.bincount(row_of, weights=_log_factorial(values), minlength=n_rows).astype(float)
    if kind == "multinomial":
        out += _log_factorial(np.bincount(row_of, weights=values, minlength=n_rows))
    return out


def squared_lengths(
    columns: Columns, center: Float64Array, roots: Float64Array, shifts: Float64Array, n_classes: int, threads: int
) -> Float64Array:
    """Multiply the centered rows by every triangular matrix and sum the squares."""
    block = columns if isinstance(columns, np.ndarray) else np.stack(list(columns), axis=1)
    d = block.shape[1]
    out = np.empty((len(block), n_classes))
    triangles = np.tril(roots.reshape(n_classes, d, d))
    for start in range(0, len(block), 2048):  # blocks that fit into the cache
        centered = block[start : start + 2048] - center
        for k in range(n_classes):
            product = centered @ triangles[k].T - shifts.reshape(n_classes, d)[k]
            out[start : start + 2048, k] = np.einsum("ij,ij->i", product, product)
    return out


def read_bytes(array: AnyArray, threads: int) -> int:
    """Sum the bytes of an array as 64-bit integers."""
    flat = array.reshape(-1, order="A").view(np.uint8)
    n_aligned = len(flat) // 8 * 8
    total = int(flat[:n_aligned].view(np.uint64).sum(dtype=np.uint64)) if n_aligned else 0
    return (total + int(flat[n_aligned:].sum(dtype=np.uint64))) % 2**64

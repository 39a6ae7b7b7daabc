"""The kernels in NumPy: the truth the compiled ones are tested against, and what runs where nothing was compiled.

The functions here expect arguments that `tallybayes.kernels` has checked; `threads` is accepted and ignored.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tallybayes.errors import CellError
from tallybayes.kernels.arguments import (
    AnyArray,
    Columns,
    Float64Array,
    Int64Array,
    group_error,
    index_error,
    indptr_error,
)

# A term w·(x − anchor)² above this is refused: a few hundred million of them still add up without overflow.
LARGEST_TERM = 1e300
# Rows that are summed in plain float64 before they are added to a double-double sum of products.
SCATTER_BLOCK = 1024

DoubleDouble = tuple[Float64Array, Float64Array]


# ---- rows and groups ------------------------------------------------------------------------------------------------


def _code_limit(dtype: np.dtype[np.generic], size: int) -> int:
    """Return the first code that is not valid: `size`, or less where the type cannot hold it."""
    return min(size, int(np.iinfo(dtype).max) + 1)


def _valid_codes(codes: AnyArray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return two masks: codes that count, and codes that are neither valid nor the missing code."""
    if codes.dtype == np.bool_:
        codes = codes.view(np.uint8)
    limit = _code_limit(codes.dtype, size)
    missing = -1 if codes.dtype.kind == "i" else np.iinfo(codes.dtype).max
    valid = codes >= 0
    if limit <= np.iinfo(codes.dtype).max:
        valid &= codes < limit
    return valid, ~valid & (codes != missing)


def _row_sets(
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
    _check_group_codes(group, n_groups)
    valid, _ = _valid_codes(group[present], n_groups)
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


def _check_group_codes(group: AnyArray, n_groups: int) -> None:
    _, bad = _valid_codes(group, n_groups)
    if bad.any():
        row = int(bad.argmax())
        raise group_error(row, int(group[row]), n_groups)


def _present_rows(group: AnyArray | None, n_groups: int, weight: Float64Array | None, n_rows: int) -> np.ndarray:
    """Return a mask of the rows whose values are looked at at all."""
    present = np.ones(n_rows, dtype=bool)
    if weight is not None:
        present &= (weight != 0).any(axis=1) if weight.ndim == 2 else weight != 0
    if group is not None:
        _check_group_codes(group, n_groups)
        present &= _valid_codes(group, n_groups)[0]
    return present


def _raise_first(bad: np.ndarray, rows: np.ndarray | None = None) -> None:
    """Raise CellError for the first True in row-major order; `rows` maps back to the caller's row numbers."""
    if bad.any():
        row, column = divmod(int(bad.argmax()), bad.shape[1])
        raise CellError(row if rows is None else int(rows[row]), column)


def _as_matrix(columns: Columns, n_rows: int) -> AnyArray:
    """Return a list of 1-D columns as one (n, d) array; numbers of different types meet in float64."""
    if isinstance(columns, np.ndarray):
        return columns
    if not columns:
        return np.empty((n_rows, 0))
    if any(column.dtype != columns[0].dtype for column in columns):
        return np.stack([column.astype(np.float64) for column in columns], axis=1)
    return np.stack(columns, axis=1)


def _rows_of(columns: Columns, group: AnyArray | None, weight: Float64Array | None) -> int:
    """Return the number of rows; without columns, group or weight tell it."""
    if isinstance(columns, np.ndarray):
        return len(columns)
    for known in (*columns[:1], group, weight):
        if known is not None:
            return len(known)
    return 0


# ---- counts ---------------------------------------------------------------------------------------------------------


def count_groups(
    group: AnyArray | None, n_groups: int, weight: Float64Array | None, n_rows: int
) -> tuple[Int64Array, Float64Array]:
    """Count the rows and add the weights of every group."""
    rows = np.zeros(n_groups, dtype=np.int64)
    total = np.zeros(n_groups)
    if group is not None:
        _check_group_codes(group, n_groups)
    for g, members, weights in _row_sets(group, n_groups, weight, n_rows):
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
    n_rows = _rows_of(columns, group, weight)
    present = _present_rows(group, n_groups, weight, n_rows)
    table = np.zeros((n_groups, int(sizes.sum())))
    each = columns.T if isinstance(columns, np.ndarray) else columns
    first: tuple[int, int] | None = None
    offset = 0
    for j, size in enumerate(sizes.tolist()):
        codes = each[j]
        valid, bad = _valid_codes(codes, size)
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


# ---- sums of binary, Poisson and multinomial cells ------------------------------------------------------------------


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
    n_rows = _rows_of(columns, group, weight)
    X = _as_matrix(columns, n_rows)
    d = X.shape[1]
    looked_at = np.flatnonzero(_present_rows(group, n_groups, weight, n_rows))
    values = X[looked_at].astype(np.float64)
    _raise_first(_forbidden(values, kind), looked_at)
    missing = np.isnan(values)
    any_missing = bool(missing.any())
    values[missing] = 0.0
    place = np.zeros(n_rows, dtype=np.int64)
    place[looked_at] = np.arange(len(looked_at))

    row_weight = np.zeros((n_groups, 1))
    cell_weight = np.zeros((n_groups, d))
    total = np.zeros((n_groups, d))
    log_base = np.zeros((n_groups, d if kind == "poisson" else 1))
    for g, rows, given in _row_sets(group, n_groups, weight, n_rows):
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
    present = _present_rows(group, n_groups, weight, n_rows)
    starts, stops = indptr[:-1].astype(np.int64), indptr[1:].astype(np.int64)
    broken = (starts < 0) | (stops < starts) | (stops > len(indices))
    if broken.any():
        row = int(broken.argmax())
        raise indptr_error(row, int(starts[row]), int(stops[row]), len(indices))
    lengths = stops - starts
    row_of = np.repeat(np.arange(n_rows), lengths)
    # The entries of all rows in order; indptr need not start at 0, and rows need not be adjacent.
    entry = np.arange(len(row_of)) + np.repeat(starts - np.concatenate(([0], np.cumsum(lengths)[:-1])), lengths)
    looked_at = present[row_of]
    row_of, entry = row_of[looked_at], entry[looked_at]
    column = indices[entry].astype(np.int64)
    outside = (column < 0) | (column >= n_columns)
    if outside.any():
        first = int(outside.argmax())
        raise index_error(int(row_of[first]), int(column[first]), n_columns)
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
    for g, rows, given in _row_sets(group, n_groups, weight, n_rows):
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


# ---- double-double sums ---------------------------------------------------------------------------------------------


def _two_sum(a: Float64Array, b: Float64Array) -> DoubleDouble:
    """Return the rounded sum and its exact error."""
    high = a + b
    virtual = high - a
    return high, (a - (high - virtual)) + (b - virtual)


def _two_product(a: Float64Array, b: Float64Array) -> DoubleDouble:
    """Return the rounded product and its exact error, by splitting both factors in halves."""
    high = a * b
    a_wide, b_wide = a * 134217729.0, b * 134217729.0
    a_high, b_high = a_wide - (a_wide - a), b_wide - (b_wide - b)
    a_low, b_low = a - a_high, b - b_high
    return high, ((a_high * b_high - high) + a_high * b_low + a_low * b_high) + a_low * b_low


def _add(a: DoubleDouble, b: DoubleDouble) -> DoubleDouble:
    high, error = _two_sum(a[0], b[0])
    return _two_sum(high, error + (a[1] + b[1]))


def _sum_rows(high: Float64Array, low: Float64Array) -> DoubleDouble:
    """Add up the rows of a double-double array by halves, so that errors grow with the logarithm of the rows."""
    while len(high) > 1:
        if len(high) % 2:
            zero = np.zeros_like(high[:1])
            high, low = np.concatenate((high, zero)), np.concatenate((low, zero))
        high, low = _add((high[0::2], low[0::2]), (high[1::2], low[1::2]))
    return high[0], low[0]


def _largest_weight(weight: Float64Array | None, rows: np.ndarray) -> Float64Array:
    """Return, as a column, the largest weight each of these rows has in any group."""
    if weight is None or len(rows) == 0:
        return np.ones((len(rows), 1))
    return weight[rows].reshape(len(rows), -1).max(axis=1, keepdims=True)


def sum_moments(
    columns: Columns,
    anchor: Float64Array,
    group: AnyArray | None,
    n_groups: int,
    weight: Float64Array | None,
    threads: int,
) -> tuple[Float64Array, Float64Array, Float64Array, Float64Array, Float64Array, Float64Array]:
    """Add up weights, distances from the anchor and their squares in double-double arithmetic."""
    n_rows = _rows_of(columns, group, weight)
    X = _as_matrix(columns, n_rows)
    d = X.shape[1]
    looked_at = np.flatnonzero(_present_rows(group, n_groups, weight, n_rows))
    values = X[looked_at].astype(np.float64) - anchor
    missing = np.isnan(values)
    heaviest = _largest_weight(weight, looked_at)
    with np.errstate(over="ignore", invalid="ignore"):
        _raise_first(~(heaviest * (values * values) <= LARGEST_TERM) & ~missing, looked_at)
    any_missing = bool(missing.any())
    values[missing] = 0.0
    place = np.zeros(n_rows, dtype=np.int64)
    place[looked_at] = np.arange(len(looked_at))

    weights = (np.zeros((n_groups, d if any_missing else 1)), np.zeros((n_groups, d if any_missing else 1)))
    firsts = (np.zeros((n_groups, d)), np.zeros((n_groups, d)))
    seconds = (np.zeros((n_groups, d)), np.zeros((n_groups, d)))
    for g, rows, given in _row_sets(group, n_groups, weight, n_rows):
        v = values[place[rows]]
        w = (np.ones(len(rows)) if given is None else given)[:, None]
        w = np.where(missing[place[rows]], 0.0, w) if any_missing else w
        square, square_error = _two_product(v, v)
        product, product_error = _two_product(w, square)
        weights[0][g], weights[1][g] = _sum_rows(w, np.zeros_like(w))
        firsts[0][g], firsts[1][g] = _sum_rows(*_two_product(w, v))
        seconds[0][g], seconds[1][g] = _sum_rows(product, product_error + w * square_error)
    return *weights, *firsts, *seconds


def _grid_centre(mean: Float64Array, spread: Float64Array) -> Float64Array:
    """Round the mean to a power-of-two grid no finer than about the spread, so that x − centre is mostly exact."""
    step = np.exp2(np.floor(np.log2(np.maximum(spread, 1e-300))))
    with np.errstate(over="ignore", invalid="ignore"):
        centre = np.round(mean / step) * step
    return np.where(np.isfinite(centre) & (spread > 0), centre, mean)


def sum_scatter(
    columns: Columns,
    anchor: Float64Array,
    group: AnyArray | None,
    n_groups: int,
    weight: Float64Array | None,
    threads: int,
) -> tuple[Float64Array, Float64Array, Float64Array, Float64Array, Float64Array, Float64Array]:
    """Add up weights, distances from the anchor and their outer products, blocks of centred rows at a time."""
    n_rows = _rows_of(columns, group, weight)
    X = _as_matrix(columns, n_rows)
    d = X.shape[1]
    looked_at = np.flatnonzero(_present_rows(group, n_groups, weight, n_rows))
    values = X[looked_at].astype(np.float64)
    heaviest = _largest_weight(weight, looked_at)
    with np.errstate(over="ignore", invalid="ignore"):
        _raise_first(~(heaviest * (values - anchor) ** 2 <= LARGEST_TERM), looked_at)
    place = np.zeros(n_rows, dtype=np.int64)
    place[looked_at] = np.arange(len(looked_at))

    weights = (np.zeros((n_groups, 1)), np.zeros((n_groups, 1)))
    firsts = (np.zeros((n_groups, d)), np.zeros((n_groups, d)))
    seconds = (np.zeros((n_groups, d, d)), np.zeros((n_groups, d, d)))
    for g, rows, given in _row_sets(group, n_groups, weight, n_rows):
        for start in range(0, len(rows), SCATTER_BLOCK):
            part = slice(start, start + SCATTER_BLOCK)
            x = values[place[rows[part]]]
            w = np.ones(len(x)) if given is None else given[part]
            centre = _grid_centre(x.mean(axis=0), x.std(axis=0))
            y = x - centre
            block = _shift(w, y, centre, anchor)
            for sums, added in zip((weights, firsts, seconds), block, strict=True):
                sums[0][g], sums[1][g] = _add((sums[0][g], sums[1][g]), added)
    return *weights, *firsts, *seconds


def _shift(
    w: Float64Array, y: Float64Array, centre: Float64Array, anchor: Float64Array
) -> tuple[DoubleDouble, DoubleDouble, DoubleDouble]:
    """Return Σw, Σw·v and Σw·v·vᵀ with v = y + centre − anchor, from plain sums over a block of centred rows y."""
    weighted = w[:, None] * y
    total, sums, scatter = _sum_rows(w, np.zeros_like(w)), weighted.sum(axis=0), weighted.T @ y
    scatter = np.triu(scatter) + np.triu(scatter, 1).T
    shift, shift_error = _two_sum(centre, -anchor)  # exact as a pair; the error part is usually 0
    # Σw·v = s + W·δ, and Σw·v·vᵀ = S + s·δᵀ + δ·sᵀ + W·δ·δᵀ = S + δ·sᵀ + (s + W·δ)·δᵀ, every product a pair.
    moved, moved_error = _two_product(np.full_like(shift, total[0]), shift)
    first = _add((sums, np.zeros_like(sums)), (moved, moved_error + total[0] * shift_error + total[1] * shift))
    second: DoubleDouble = (scatter, np.zeros_like(scatter))
    for left, right in (((shift, shift_error), (sums, np.zeros_like(sums))), (first, (shift, shift_error))):
        product, error = _two_product(left[0][:, None], right[0][None, :])
        error = error + left[0][:, None] * right[1][None, :] + left[1][:, None] * right[0][None, :]
        second = _add(second, (product, error))
    upper = np.triu(np.ones(scatter.shape, dtype=bool))
    second = (np.where(upper, second[0], second[0].T), np.where(upper, second[1], second[1].T))
    return (np.asarray(total[0]), np.asarray(total[1])), first, second


def read_bytes(array: AnyArray, threads: int) -> int:
    """Add up the bytes of an array, eight at a time."""
    flat = array.reshape(-1, order="A").view(np.uint8)
    whole = len(flat) // 8 * 8
    total = int(flat[:whole].view(np.uint64).sum(dtype=np.uint64)) if whole else 0
    return (total + int(flat[whole:].sum(dtype=np.uint64))) % 2**64

"""Contingency tables in NumPy."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from tallybayes.kernels.arguments import Columns, Float64Array, Int64Array
from tallybayes.kernels.reference.groups import column_list, observed_cells, present_rows, rows_of


def count_joint(
    columns: Columns, sizes: Int64Array, sets: list[tuple[int, ...]], weight: Float64Array | None, threads: int
) -> Float64Array:
    """Count the combinations of codes in every set of columns; returns the tables concatenated and flattened."""
    tables = [np.zeros(0)]
    for members, (keys, weights) in zip(sets, _keys(columns, sizes, sets, weight), strict=True):
        n_cells = math.prod(int(sizes[j]) for j in members)
        tables.append(np.bincount(keys, weights=weights, minlength=n_cells).astype(np.float64))
    return np.concatenate(tables)


def sum_joint(
    columns: Columns,
    sizes: Int64Array,
    sets: list[tuple[int, ...]],
    cell_starts: list[float],
    line_starts: list[float],
    weight: Float64Array | None,
    threads: int,
) -> Float64Array:
    """Sum the terms of the nonzero cells of every table, minus those of its rows."""
    sums = np.zeros(len(sets))
    for k, (members, (keys, weights)) in enumerate(zip(sets, _keys(columns, sizes, sets, weight), strict=True)):
        cells, inverse = np.unique(keys, return_inverse=True)
        counts = np.bincount(inverse, weights=weights, minlength=len(cells))
        sums[k] = _terms(counts, cell_starts[k])
        if line_starts and len(cells):
            rows, inverse = np.unique(cells // int(sizes[members[-1]]), return_inverse=True)
            sums[k] -= _terms(np.bincount(inverse, weights=counts, minlength=len(rows)), line_starts[k])
    return sums


def _terms(counts: np.ndarray, start: float) -> float:
    """Return Σ log Γ(start + n) − log Γ(start), or Σ n log n if start is 0."""
    from scipy.special import gammaln, xlogy  # imported here because it takes longer than most calls

    counts = counts[counts > 0]
    return float((xlogy(counts, counts) if start == 0 else gammaln(start + counts) - gammaln(start)).sum())


def _keys(
    columns: Columns, sizes: Int64Array, sets: list[tuple[int, ...]], weight: Float64Array | None
) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
    """Yield, for every set, the cells of the rows without missing values in its columns, and their weights."""
    by_column = column_list(columns)
    observed = observed_cells(columns, sizes, present_rows(None, 1, weight, rows_of(columns, None, weight)))
    for members in sets:
        rows = np.flatnonzero(np.logical_and.reduce([observed[j] for j in members]))
        keys = np.zeros(len(rows), dtype=np.int64)
        for j in members:
            keys = keys * int(sizes[j]) + by_column[j][rows].astype(np.int64)
        yield keys, None if weight is None else weight[rows]

"""Joint counts in NumPy: the truth the compiled ones are tested against, and what runs where nothing was compiled."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from tallybayes.errors import CellError
from tallybayes.kernels.arguments import Columns, Float64Array, Int64Array
from tallybayes.kernels.reference.groups import present_rows, rows_of, valid_codes


def count_joint(
    columns: Columns, sizes: Int64Array, sets: list[tuple[int, ...]], weight: Float64Array | None, threads: int
) -> Float64Array:
    """Count the combinations of codes in every set of columns, one table after another in a flat array."""
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
    """Sum the terms of the cells that occur in every set, less those of its lines."""
    sums = np.zeros(len(sets))
    for k, (members, (keys, weights)) in enumerate(zip(sets, _keys(columns, sizes, sets, weight), strict=True)):
        cells, place = np.unique(keys, return_inverse=True)
        counts = np.bincount(place, weights=weights, minlength=len(cells))
        sums[k] = _terms(counts, cell_starts[k])
        if line_starts and len(cells):
            lines, place = np.unique(cells // int(sizes[members[-1]]), return_inverse=True)
            sums[k] -= _terms(np.bincount(place, weights=counts, minlength=len(lines)), line_starts[k])
    return sums


def _terms(counts: np.ndarray, start: float) -> float:
    """Σ log Γ(start + n) − log Γ(start), or Σ n log n where the start is 0."""
    from scipy.special import gammaln, xlogy  # here, because importing scipy takes longer than most calls

    counts = counts[counts > 0]
    return float((xlogy(counts, counts) if start == 0 else gammaln(start + counts) - gammaln(start)).sum())


def _keys(
    columns: Columns, sizes: Int64Array, sets: list[tuple[int, ...]], weight: Float64Array | None
) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
    """For every set the cells of the rows that know all its columns, and their weights."""
    each = columns.T if isinstance(columns, np.ndarray) else columns
    present = present_rows(None, 1, weight, rows_of(columns, None, weight))
    known = []  # for every column a mask of the rows that count
    culprits = []
    for j, size in enumerate(sizes.tolist()):
        valid, bad = valid_codes(each[j], size)
        bad &= present
        if bad.any():
            culprits.append((int(bad.argmax()), j))
        known.append(valid & present)
    if culprits:
        raise CellError(*min(culprits))
    for members in sets:
        rows = np.flatnonzero(np.logical_and.reduce([known[j] for j in members]))
        keys = np.zeros(len(rows), dtype=np.int64)
        for j in members:
            keys = keys * int(sizes[j]) + each[j][rows].astype(np.int64)
        yield keys, None if weight is None else weight[rows]

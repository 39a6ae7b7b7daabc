"""Joint counts in NumPy: the truth the compiled ones are tested against, and what runs where nothing was compiled."""

from __future__ import annotations

import math

import numpy as np

from tallybayes.errors import CellError
from tallybayes.kernels.arguments import Columns, Float64Array, Int64Array
from tallybayes.kernels.reference_rows import present_rows, rows_of, valid_codes


def count_joint(
    columns: Columns, sizes: Int64Array, sets: list[tuple[int, ...]], weight: Float64Array | None, threads: int
) -> Float64Array:
    """Count the combinations of codes in every set of columns, one table after another in a flat array."""
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
    tables = [np.zeros(0)]
    for members in sets:
        shape = tuple(int(sizes[j]) for j in members)
        rows = np.flatnonzero(np.logical_and.reduce([known[j] for j in members]))
        keys = np.zeros(len(rows), dtype=np.int64)
        for j, size in zip(members, shape, strict=True):
            keys = keys * size + each[j][rows].astype(np.int64)
        weights = None if weight is None else weight[rows]
        tables.append(np.bincount(keys, weights=weights, minlength=math.prod(shape)).astype(np.float64))
    return np.concatenate(tables)

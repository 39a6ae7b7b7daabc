"""Contingency tables of many sets of columns, counted in one pass over the rows.

These are the counts of a Bayesian network, p(node | parents) for every node.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate, pairwise
from operator import index

import numpy as np

from tallybayes.kernels import arguments as _arguments
from tallybayes.kernels.active import implementation_for
from tallybayes.kernels.arguments import Columns, Float64Array, Int64Array
from tallybayes.kernels.arguments import threads as n_threads
from tallybayes.kernels.reference import contingency_tables as _reference

__all__ = ["MOST_CELLS", "MOST_SUMMED_CELLS", "count_joint", "sum_joint"]

MOST_CELLS = 2**31 - 1  # of a table that is returned
MOST_SUMMED_CELLS = 2**63 - 1  # of a table of which only the nonzero cells are stored
MOST_AXES = 64  # of a NumPy array


def count_joint(
    columns: Columns,
    sizes: Sequence[int] | Int64Array,
    sets: Sequence[Sequence[int]],
    weight: Float64Array | None = None,
    threads: int = 0,
) -> list[Float64Array]:
    """Count all combinations of codes in each of several sets of columns.

    Parameters
    ----------
    columns : (n, d) array or list of d (n,) arrays, bool or any integer type
        Codes in ``[0, size)``. −1, or the largest value of an unsigned type if it is not a valid code, is a missing
        value: its row is skipped in the sets that contain the column.
    sizes : sequence of d int
        Number of levels of every column.
    sets : sequence of sequences of int
        Indices of the columns of every table, at least one and none twice.
    weight : float64 array of shape (n,), optional
        Sample weights, 1 by default. Rows of weight 0 are ignored without reading their codes.
    threads : int, default 0
        See the conventions of `tallybayes.kernels`.

    Returns
    -------
    list of float64 arrays
        Total weight of every combination, of shape ``(sizes[set[0]], sizes[set[1]], …)``, for every set.

    Raises
    ------
    CellError
        If a code is neither valid nor missing; the error names the first such cell, by row, then column.
    ValueError, TypeError
        If an array has a wrong shape or type, or a set is empty, repeats a column, contains an unknown column, or has
        more than 64 columns or 2³¹ or more combinations.

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes.kernels.contingency_tables import count_joint
    >>> codes = np.array([[0, 2], [1, 2], [1, 0], [1, -1]])
    >>> single, pair = count_joint(codes, [2, 3], [(0,), (0, 1)])
    >>> single
    array([1., 3.])
    >>> pair
    array([[0., 0., 1.],
           [1., 0., 1.]])
    """
    levels, members, shapes = _check_counting(columns, sizes, sets, weight, MOST_CELLS)
    tables = implementation_for(_reference).count_joint(columns, levels, members, weight, n_threads(threads))
    ends = accumulate(map(math.prod, shapes), initial=0)
    return [tables[first:last].reshape(shape) for (first, last), shape in zip(pairwise(ends), shapes, strict=True)]


def sum_joint(
    columns: Columns,
    sizes: Sequence[int] | Int64Array,
    sets: Sequence[Sequence[int]],
    cell_starts: Float64Array,
    line_starts: Float64Array | None = None,
    weight: Float64Array | None = None,
    threads: int = 0,
) -> Float64Array:
    """Count as `count_joint` does and return one sum of log gamma terms per table, the part that scores need.

    The sum is Σ log Γ(a + n) − log Γ(a) over the cells, minus Σ log Γ(b + m) − log Γ(b) over the rows of the CPT, whose
    counts m sum over the levels of the set's last column. It is the log evidence of that column given the others, under
    a Dirichlet prior of ``a`` per cell and ``b`` per row. If a or b is 0, the terms are n log n: the log likelihood.

    Parameters
    ----------
    columns, sizes, sets, weight, threads
        As in `count_joint`. Tables may have up to 2⁶³ cells: only the nonzero cells of a large table are stored.
    cell_starts : float64 array of shape (sets,)
        ``a`` of every set.
    line_starts : float64 array of shape (sets,), optional
        ``b`` of every set. By default the second sum is omitted.

    Returns
    -------
    float64 array of shape (sets,)

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes.kernels.contingency_tables import sum_joint
    >>> codes = np.array([[0, 0], [0, 1], [1, 1], [1, 1]])
    >>> sum_joint(codes, [2, 2], [(0, 1)], np.zeros(1), np.zeros(1)).round(4)      # 2 · log ½ + 2 · log 1
    array([-1.3863])
    """
    levels, members, _ = _check_counting(columns, sizes, sets, weight, MOST_SUMMED_CELLS)
    starts = [np.asarray(part, dtype=np.float64) for part in (cell_starts, line_starts) if part is not None]
    if any(part.shape != (len(members),) or not (part >= 0).all() for part in starts):
        raise ValueError(f"expected a start of 0 or more for each of the {len(members)} sets")
    rows = starts[1].tolist() if len(starts) > 1 else []
    kernels = implementation_for(_reference)
    sums = kernels.sum_joint(columns, levels, members, starts[0].tolist(), rows, weight, n_threads(threads))
    return np.asarray(sums)


def _check_counting(
    columns: Columns,
    sizes: Sequence[int] | Int64Array,
    sets: Sequence[Sequence[int]],
    weight: Float64Array | None,
    most: int,
) -> tuple[Int64Array, list[tuple[int, ...]], list[tuple[int, ...]]]:
    """Return numbers of levels, sets, and the shapes of their tables of up to `most` cells, after validation."""
    levels = _arguments.check_codes(columns, sizes, None, 1, weight, soft=False)
    return (levels, *_check_sets(sets, levels.tolist(), most))


def _check_sets(
    sets: Sequence[Sequence[int]], sizes: list[int], most: int
) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    """Return the sets as tuples of int, and the shapes of their tables."""
    if len(set(map(len, sets))) == 1 and sizes:  # sets of equal size, such as pairs, are checked as one array
        indices = np.array(sets)
        if indices.ndim == 2 and indices.shape[1] > 0 and indices.dtype.kind == "i" and indices.min() >= 0:
            axes = np.array(sizes)[np.minimum(indices, len(sizes) - 1)]
            unique = (np.diff(np.sort(indices, axis=1), axis=1) > 0).all()
            n_cells = np.maximum(axes, 1).prod(axis=1, dtype=np.float64)
            few = indices.shape[1] <= MOST_AXES and n_cells.max() <= MOST_CELLS  # larger ones are checked below
            if unique and few and indices.max() < len(sizes):
                return list(map(tuple, indices.tolist())), list(map(tuple, axes.tolist()))
    checked: list[tuple[int, ...]] = []
    shapes: list[tuple[int, ...]] = []
    for number, members in enumerate(sets):
        columns = tuple(map(index, members))
        if not 1 <= len(columns) <= MOST_AXES:
            raise ValueError(f"set {number} has {len(columns)} columns, expected 1 to {MOST_AXES}")
        if min(columns) < 0 or max(columns) >= len(sizes):
            raise ValueError(f"set {number} is {columns}, expected columns from 0 to {len(sizes) - 1}")
        if len(set(columns)) < len(columns):
            raise ValueError(f"set {number} is {columns}, expected every column at most once")
        shape = tuple(sizes[column] for column in columns)
        n_cells = math.prod(size or 1 for size in shape)  # NumPy rejects huge shapes even if another axis is empty
        if n_cells > most:
            combinations = f"{n_cells} combinations of levels ({' × '.join(map(str, shape))})"
            raise ValueError(
                f"set {number} has {combinations}, expected fewer than 2**{most.bit_length()}; take fewer columns"
            )
        checked.append(columns)
        shapes.append(shape)
    return checked, shapes

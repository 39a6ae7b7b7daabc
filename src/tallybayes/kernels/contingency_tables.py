"""Joint counts: how often every combination of the codes of some columns occurs, for many sets of columns at once.

These are the tables of a Bayesian network, p(node | parents) for every node: the columns are read once for all of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate, pairwise
from operator import index
from typing import Any

import numpy as np

from tallybayes.kernels import arguments as _arguments
from tallybayes.kernels.arguments import Columns, Float64Array, Int64Array
from tallybayes.kernels.reference import contingency_tables as _reference_joint
from tallybayes.kernels.threads import threads as n_threads

__all__ = ["MOST_CELLS", "MOST_SUMMED_CELLS", "count_joint", "sum_joint"]

MOST_CELLS = 2**31 - 1
MOST_SUMMED_CELLS = 2**63 - 1  # of a table of which only the cells that occur are kept
MOST_AXES = 64  # of a NumPy array


def count_joint(
    columns: Columns,
    sizes: Sequence[int] | Int64Array,
    sets: Sequence[Sequence[int]],
    weight: Float64Array | None = None,
    threads: int = 0,
) -> list[Float64Array]:
    """Count how often every combination of codes occurs, in each of several sets of columns.

    Parameters
    ----------
    columns : (n, d) array or list of d (n,) arrays, bool or any integer type
        Codes in ``[0, size)``. −1, or the largest value of an unsigned type where it is no valid code, is a missing
        cell: its row is left out of the sets that have the column, and of no other.
    sizes : sequence of d int
        The number of levels of every column.
    sets : sequence of sequences of int
        The positions of the columns that are counted together: one at least, and none twice.
    weight : float64 array of shape (n,), optional
        1 for every row if left out. Rows of weight 0 are absent: their codes are not looked at.
    threads : int, default 0
        0 for as many as there are cores. The result is the same to the last bit for every number of threads.

    Returns
    -------
    list of float64 arrays
        For every set the total weight of each combination, of shape ``(sizes[set[0]], sizes[set[1]], …)``.

    Raises
    ------
    CellError
        At the first cell, by row then column, whose code is neither valid nor missing.
    ValueError, TypeError
        Where an array has another shape or type, a set is empty or has more than 64 columns, repeats one or names one
        that does not exist, or has 2³¹ combinations or more.

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes.kernels.contingency_tables import count_joint
    >>> codes = np.array([[0, 2], [1, 2], [1, 0], [1, -1]])
    >>> alone, together = count_joint(codes, [2, 3], [(0,), (0, 1)])
    >>> alone
    array([1., 3.])
    >>> together
    array([[0., 0., 1.],
           [1., 0., 1.]])
    """
    n, d = _arguments.check_columns(columns, "columns", _arguments.LEVEL_TYPES, _arguments.known_rows(None, weight))
    levels = _arguments.check_sizes(sizes, d)
    if isinstance(weight, np.ndarray) and weight.ndim != 1:
        raise ValueError(f"weight has shape {weight.shape}, expected ({n},)")
    _arguments.check_groups(None, 1, weight, n)
    chosen, shapes = _check_sets(sets, levels.tolist())
    tables = _implementation().count_joint(columns, levels, chosen, weight, n_threads(threads))
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
    """Count every set as `count_joint` does, and keep of its table one number: what a score needs of it.

    That is Σ log Γ(a + n) − log Γ(a) over the cells, less Σ log Γ(b + m) − log Γ(b) over the lines, in which the levels
    of the set's last column are added up: the log evidence of that column given the others under a Dirichlet prior of
    ``a`` in every cell and ``b`` in every line. A start of 0 stands for n log n: the log-likelihood.

    Parameters
    ----------
    columns, sizes, sets, weight, threads
        As for `count_joint`. Tables may have up to 2⁶³ cells: of large ones, only those that occur are kept.
    cell_starts : float64 array of shape (sets,)
        ``a`` of every set.
    line_starts : float64 array of shape (sets,), optional
        ``b`` of every set. Without, lines are left out.

    Returns
    -------
    float64 array of shape (sets,)
        The same to the last bit for every number of threads.

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes.kernels.contingency_tables import sum_joint
    >>> codes = np.array([[0, 0], [0, 1], [1, 1], [1, 1]])
    >>> sum_joint(codes, [2, 2], [(0, 1)], np.zeros(1), np.zeros(1)).round(4)      # 2 · log ½; sure of the rest
    array([-1.3863])
    """
    n, d = _arguments.check_columns(columns, "columns", _arguments.LEVEL_TYPES, _arguments.known_rows(None, weight))
    levels = _arguments.check_sizes(sizes, d)
    if isinstance(weight, np.ndarray) and weight.ndim != 1:
        raise ValueError(f"weight has shape {weight.shape}, expected ({n},)")
    _arguments.check_groups(None, 1, weight, n)
    chosen, _ = _check_sets(sets, levels.tolist(), MOST_SUMMED_CELLS)
    starts = [np.asarray(part, dtype=np.float64) for part in (cell_starts, line_starts) if part is not None]
    if any(part.shape != (len(chosen),) or not (part >= 0).all() for part in starts):
        raise ValueError(f"expected a start of 0 or more for each of the {len(chosen)} sets")
    lines = starts[1].tolist() if len(starts) > 1 else []
    found = _implementation().sum_joint(columns, levels, chosen, starts[0].tolist(), lines, weight, n_threads(threads))
    return np.asarray(found)


def _implementation() -> Any:
    """Return the module that does the work: the compiled one, or the reference where that was chosen."""
    from tallybayes import kernels

    return _reference_joint if kernels._kernels is kernels._reference else kernels._kernels


def _check_sets(
    sets: Sequence[Sequence[int]], sizes: list[int], most: int = MOST_CELLS
) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    """Return the sets as tuples of plain numbers, and the shapes of their tables."""
    if len(set(map(len, sets))) == 1 and sizes:  # many of one size, as pairs are: looked at together
        every = np.array(sets)
        if every.ndim == 2 and every.shape[1] > 0 and every.dtype.kind == "i" and every.min() >= 0:
            axes = np.array(sizes)[np.minimum(every, len(sizes) - 1)]
            once = (np.diff(np.sort(every, axis=1), axis=1) > 0).all()
            n_cells = np.maximum(axes, 1).prod(axis=1, dtype=np.float64)
            few = every.shape[1] <= MOST_AXES and n_cells.max() <= MOST_CELLS  # more are counted exactly below
            if once and few and every.max() < len(sizes):
                return list(map(tuple, every.tolist())), list(map(tuple, axes.tolist()))
    chosen: list[tuple[int, ...]] = []
    shapes: list[tuple[int, ...]] = []
    for number, members in enumerate(sets):
        places = tuple(map(index, members))
        if not 1 <= len(places) <= MOST_AXES:
            raise ValueError(f"set {number} has {len(places)} columns, expected 1 to {MOST_AXES}")
        if min(places) < 0 or max(places) >= len(sizes):
            raise ValueError(f"set {number} is {places}, expected columns from 0 to {len(sizes) - 1}")
        if len(set(places)) < len(places):
            raise ValueError(f"set {number} is {places}, expected every column at most once")
        shape = tuple(sizes[place] for place in places)
        n_cells = math.prod(size or 1 for size in shape)  # NumPy refuses huge axes even where another one is empty
        if n_cells > most:
            found = f"{n_cells} combinations of levels ({' × '.join(map(str, shape))})"
            raise ValueError(
                f"set {number} has {found}, expected fewer than 2**{most.bit_length()}; take fewer columns"
            )
        chosen.append(places)
        shapes.append(shape)
    return chosen, shapes

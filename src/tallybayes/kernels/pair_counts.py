"""Pairs of columns: their counts, and scores by every column in turn as the parent of all others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tallybayes.kernels import arguments as _arguments
from tallybayes.kernels.arguments import AnyArray, Columns, Float64Array, Int64Array
from tallybayes.kernels.reference import pair_counts as _reference_pairs
from tallybayes.kernels.threads import threads as n_threads

__all__ = ["count_pairs", "panels_of", "score_pairs"]

_CLASSES = 8  # rows of the tables are padded to whole lines of the cache


def count_pairs(
    columns: Columns,
    sizes: Sequence[int] | Int64Array,
    group: AnyArray | None,
    n_groups: int,
    weight: Float64Array | None = None,
) -> AnyArray:
    """Count how often every group has each pair of levels of two columns.

    Parameters
    ----------
    columns : (n, d) array or list of d (n,) arrays, bool or any integer type
        Codes in ``[0, size)``. −1, or the largest value of an unsigned type where it is no valid code, is a missing
        cell, which is in no pair.
    sizes : sequence of d int
        The number of levels of every column.
    group, n_groups : as everywhere in `tallybayes.kernels`
    weight : float64 array of shape (n,), optional

    Returns
    -------
    float32 array of shape (n_groups, levels, levels), float64 under weights and of 2²⁴ rows or more
        All levels of all columns with each other, in both orders; 0 for two levels of one column.

    Raises
    ------
    CellError
        At the first cell, by row then column, whose code is neither valid nor missing.

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes.kernels.pair_counts import count_pairs
    >>> count_pairs(np.array([[0, 1], [0, 1], [1, 0], [0, -1]]), [2, 2], None, 1)[0, :2, 2:]
    array([[0., 2.],
           [1., 0.]], dtype=float32)
    """
    n, d = _arguments.check_columns(columns, "columns", _arguments.LEVEL_TYPES, _arguments.known_rows(group, weight))
    levels = _arguments.check_sizes(sizes, d)
    _arguments.check_groups(group, n_groups, weight, n)
    if weight is not None and weight.ndim != 1:
        raise ValueError(f"weight has shape {weight.shape}, expected ({n},)")
    counted: AnyArray = _implementation().count_pairs(columns, levels, group, n_groups, weight)
    return counted


def panels_of(n_levels: int, n_classes: int) -> Float64Array:
    """Room for log terms as `score_pairs` looks them up: padded, a row of zeros for missing cells before every panel.

    ``panels[a, 1 + b, k]`` is what a row that has level b adds in class k while a is the parent's. A level with itself
    has the parent's own part, log p(class, parent); the parent's other levels have 0.

    Returns
    -------
    float64 array of shape (levels, 1 + levels, padded K), all 0
    """
    return np.zeros((n_levels, n_levels + 1, -(-n_classes // _CLASSES) * _CLASSES))


def score_pairs(
    columns: Columns,
    sizes: Sequence[int] | Int64Array,
    panels: Float64Array,
    n_classes: int,
    threads: int = 0,
) -> Float64Array:
    """log Σᵢ exp(Σⱼ terms[level of column i, level of column j]) of every row and class.

    Parameters
    ----------
    columns : (n, d) array or list of d (n,) arrays, bool or any integer type
        Codes in ``[0, size)``; all others are missing cells. A missing cell adds nothing; as a parent, it is any of its
        levels: their terms are added up.
    sizes : sequence of d int
        The number of levels of every column, 1 at least.
    panels : float64 array
        As `panels_of` gives them.
    n_classes : int
    threads : int, default 0
        0 for as many as there are cores. The result is the same to the last bit for every number of threads.

    Returns
    -------
    float64 array of shape (n, n_classes)

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes.kernels.pair_counts import panels_of, score_pairs
    >>> terms = np.log(np.array([[.6, 1., .5], [1., .4, .2], [.7, .1, .5]]))[:, :, None]   # levels 0, 1 and, apart, 0
    >>> panels = panels_of(3, 1)
    >>> panels[:, 1:, :1] = terms
    >>> np.exp(score_pairs(np.array([[0, 0], [0, -1], [-1, -1]]), [2, 1], panels, 1)).round(3).ravel()
    array([0.65, 0.95, 1.5 ])
    """
    n, d = _arguments.check_columns(columns, "columns", _arguments.LEVEL_TYPES, None)
    levels = _arguments.check_sizes(sizes, d)
    total = int(levels.sum())
    expected = (total, total + 1, -(-n_classes // _CLASSES) * _CLASSES)
    if panels.shape != expected or panels.dtype != np.float64 or not panels.flags.c_contiguous:
        raise ValueError(
            f"panels has shape {panels.shape} of {panels.dtype}, expected {expected} of float64, contiguous"
        )
    if (levels < 1).any():
        raise ValueError(f"sizes is {levels.tolist()}, expected at least one level in every column")
    if n == 0 or d == 0:
        return np.full((n, n_classes), -np.inf)
    return _implementation().score_pairs(columns, levels, panels.reshape(-1), n_classes, n_threads(threads))


def _implementation() -> Any:
    """Return the module that does the work: the compiled one, or the reference where that was chosen."""
    from tallybayes import kernels

    return _reference_pairs if kernels._kernels is kernels._reference else kernels._kernels

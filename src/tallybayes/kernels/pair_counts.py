"""Counts of pairs of columns, and scores of averaged one-dependence estimators (AODE)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tallybayes.kernels import arguments as _arguments
from tallybayes.kernels.active import implementation_for
from tallybayes.kernels.arguments import AnyArray, Columns, Float64Array, Int64Array
from tallybayes.kernels.arguments import threads as n_threads
from tallybayes.kernels.reference import pair_counts as _reference

__all__ = ["count_pairs", "panels_of", "score_pairs"]

_CLASSES = 8  # rows of the tables are padded to a multiple of this, whole cache lines


def count_pairs(
    columns: Columns,
    sizes: Sequence[int] | Int64Array,
    group: AnyArray | None,
    n_groups: int,
    weight: Float64Array | None = None,
) -> AnyArray:
    """Count all pairs of levels of two columns in every group.

    Parameters
    ----------
    columns : (n, d) array or list of d (n,) arrays, bool or any integer type
        Codes in ``[0, size)``. −1, or the largest value of an unsigned type if it is not a valid code, is a missing
        value; its pairs are not counted.
    sizes : sequence of d int
        Number of levels of every column.
    group, n_groups
        See the conventions of `tallybayes.kernels`.
    weight : float64 array of shape (n,), optional

    Returns
    -------
    float32 array of shape (n_groups, levels, levels); float64 with weights or at least 2²⁴ rows
        Counts of all levels of all columns with each other, in both orders; 0 for two levels of the same column.

    Raises
    ------
    CellError
        If a code is neither valid nor missing; the error names the first such cell, by row, then column.

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes.kernels.pair_counts import count_pairs
    >>> count_pairs(np.array([[0, 1], [0, 1], [1, 0], [0, -1]]), [2, 2], None, 1)[0, :2, 2:]
    array([[0., 2.],
           [1., 0.]], dtype=float32)
    """
    levels = _arguments.check_codes(columns, sizes, group, n_groups, weight, soft=False)
    return np.asarray(implementation_for(_reference).count_pairs(columns, levels, group, n_groups, weight))


def panels_of(n_levels: int, n_classes: int) -> Float64Array:
    """Return an empty lookup table of log terms for `score_pairs`, padded, with a row of zeros for missing values.

    ``panels[a, 1 + b, k]`` is the term of level b in class k if level a is that of the parent column. The term of a
    level with itself is log p(class, parent level); the terms of the parent column's other levels are 0.

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
    """Return log Σᵢ exp(Σⱼ terms[level of column i, level of column j]) of every row and class.

    Parameters
    ----------
    columns : (n, d) array or list of d (n,) arrays, bool or any integer type
        Codes in ``[0, size)``; all other values are missing. A missing value adds no term; as the parent, the terms of
        all its levels are summed.
    sizes : sequence of d int
        Number of levels of every column, at least 1.
    panels : float64 array
        Lookup table in the layout of `panels_of`.
    n_classes : int
    threads : int, default 0
        See the conventions of `tallybayes.kernels`.

    Returns
    -------
    float64 array of shape (n, n_classes)

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes.kernels.pair_counts import panels_of, score_pairs
    >>> terms = np.log(np.array([[.6, 1., .5], [1., .4, .2], [.7, .1, .5]]))[:, :, None]   # levels 0, 1 and 0
    >>> panels = panels_of(3, 1)
    >>> panels[:, 1:, :1] = terms
    >>> np.exp(score_pairs(np.array([[0, 0], [0, -1], [-1, -1]]), [2, 1], panels, 1)).round(3).ravel()
    array([0.65, 0.95, 1.5 ])
    """
    n, d = _arguments.check_columns(columns, "columns", _arguments.LEVEL_TYPES)
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
    kernels = implementation_for(_reference)
    return np.asarray(kernels.score_pairs(columns, levels, panels.reshape(-1), n_classes, n_threads(threads)))

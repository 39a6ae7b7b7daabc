"""Variances that several means share: sums over the groups or columns that are tied."""

from __future__ import annotations

import numpy as np

from tallybayes.errors import PriorError


def tied_axes(tied_over: tuple[str, ...], n_axes: int, n_trailing: int = 1) -> tuple[int, ...]:
    """Return the axes that share a variance among `n_axes`: those of the groups, and the last one if columns do.

    `n_trailing` axes follow those of the groups.
    """
    groups = tuple(range(n_axes - n_trailing)) if "groups" in tied_over else ()
    return (*groups, n_axes - 1) if "columns" in tied_over and n_axes else groups


def pool_tied(array: np.ndarray, tied_over: tuple[str, ...], n_trailing: int = 1) -> np.ndarray:
    """Sum over the axes that share a variance, which are kept with length 1."""
    axes = tied_axes(tied_over, array.ndim, n_trailing)
    return array.sum(axis=axes, keepdims=True) if axes else array


def first_along(array: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """Return the first element along some axes, which are kept with length 1."""
    return array[tuple(slice(0, 1) if axis in axes else slice(None) for axis in range(array.ndim))]


def check_tied(array: np.ndarray, axes: tuple[int, ...], what: str) -> np.ndarray:
    """Return the values that are shared along some axes; raise PriorError, with a name for them, if they differ."""
    first = first_along(array, axes)
    if not np.array_equal(np.broadcast_to(first, array.shape), array):
        raise PriorError(f"the {what}; expected one.")
    return first

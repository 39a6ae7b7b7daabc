"""Cuts by class: where a column is cut so that its bins tell the classes, as often as a cut pays for itself."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.special import xlogy

from tallybayes.kernels.arguments import AnyArray, Float64Array, Int64Array
from tallybayes.kernels.reference import mdl_cuts as _reference_cuts

__all__ = ["best_cuts"]

_MOST_LOGARITHMS = 2**20  # whole counts up to here have n log n looked up


def best_cuts(table: AnyArray) -> Int64Array:
    """Return the values before which to cut: the cuts of Fayyad and Irani (1993).

    The best cut first, then the best within both parts, until what a cut saves in a description of the classes by the
    bins is less than what it takes to say. Of very many borders some are tried, and then all about the best: what a cut
    saves hardly changes from one border to the next.

    Parameters
    ----------
    table : integer or float64 array of shape (classes, values)
        How often every class has each of the values, in rising order of these. No value is without weight.

    Returns
    -------
    int64 array
        Places from 1 to values − 1, rising.

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes.kernels.mdl_cuts import best_cuts
    >>> best_cuts(np.array([[9, 8, 0, 0, 0], [0, 0, 7, 9, 8]])).tolist()
    [2]
    """
    from tallybayes import kernels

    if table.ndim != 2 or table.dtype.kind not in "iuf":
        raise ValueError(f"table has {table.ndim} axes of {table.dtype}, expected two, classes and values, of counts")
    if not table.size:
        return np.zeros(0, dtype=np.int64)
    if not np.isfinite(table).all() or table.min() < 0:
        raise ValueError("table has negative or infinite counts, expected finite ones of at least 0")
    n = table.sum()
    if n >= _MOST_LOGARITHMS or (table.dtype.kind == "f" and not np.array_equal(np.floor(table), table)):
        return _reference_cuts.best_cuts(table, None)
    logs, whole = _n_log_n(int(n).bit_length()), np.ascontiguousarray(table, dtype=np.int32)
    if kernels._kernels is kernels._reference:
        return _reference_cuts.best_cuts(whole, logs)
    found: Int64Array = kernels._kernels.best_cuts(whole.reshape(-1), len(whole), logs)
    return found


@lru_cache(maxsize=4)
def _n_log_n(n_bits: int) -> Float64Array:
    """n log n of all whole numbers of so many bits."""
    counts = np.arange(2**n_bits, dtype=np.float64)
    return np.asarray(xlogy(counts, counts))

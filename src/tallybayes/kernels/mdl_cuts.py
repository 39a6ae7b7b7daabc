"""Supervised discretization: bin edges by the minimum description length principle (Fayyad and Irani, 1993)."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.special import xlogy

from tallybayes.kernels.active import implementation_for
from tallybayes.kernels.arguments import AnyArray, Float64Array, Int64Array
from tallybayes.kernels.reference import mdl_cuts as _reference

__all__ = ["best_cuts"]

_MAX_LOGARITHMS = 2**20  # n log n comes from a lookup table for integer counts up to this


def best_cuts(table: AnyArray) -> Int64Array:
    """Return the bin edges of Fayyad and Irani (1993).

    The range is split recursively at the edge with the lowest class entropy, until a split no longer reduces the
    description length. If there are very many candidate edges, a coarse grid is searched first and then the edges near
    its best one: neighboring edges have similar entropies.

    Parameters
    ----------
    table : integer or float64 array of shape (classes, values)
        Counts of the sorted distinct values in every class. Every value has a positive count.

    Returns
    -------
    int64 array
        Indices of the values at which bins start, ascending, from 1 to values − 1.

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes.kernels.mdl_cuts import best_cuts
    >>> best_cuts(np.array([[9, 8, 0, 0, 0], [0, 0, 7, 9, 8]])).tolist()
    [2]
    """
    if table.ndim != 2 or table.dtype.kind not in "iuf":
        raise ValueError(f"table has {table.ndim} axes of {table.dtype}, expected two, classes and values, of counts")
    if not table.size:
        return np.zeros(0, dtype=np.int64)
    if not np.isfinite(table).all() or table.min() < 0:
        raise ValueError("table has negative or infinite counts, expected finite ones of at least 0")
    n = table.sum()
    if n >= _MAX_LOGARITHMS or (table.dtype.kind == "f" and not np.array_equal(np.floor(table), table)):
        return _reference.best_cuts(table.reshape(-1), len(table), None)
    counts = np.ascontiguousarray(table, dtype=np.int32)
    logs = _n_log_n(int(n).bit_length())
    return np.asarray(implementation_for(_reference).best_cuts(counts.reshape(-1), len(counts), logs))


@lru_cache(maxsize=4)
def _n_log_n(n_bits: int) -> Float64Array:
    """Return n log n of all integers with up to `n_bits` bits."""
    counts = np.arange(2**n_bits, dtype=np.float64)
    return np.asarray(xlogy(counts, counts))

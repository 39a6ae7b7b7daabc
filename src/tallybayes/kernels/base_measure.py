"""The part of the probability of a row of counts that no parameter touches: factorials."""

from __future__ import annotations

from tallybayes.kernels import arguments as _arguments
from tallybayes.kernels.arguments import AnyArray, Float64Array
from tallybayes.kernels.threads import threads as n_threads

__all__ = ["log_base_csr"]

_KINDS = ("poisson", "multinomial")


def log_base_csr(indptr: AnyArray, data: AnyArray, kind: str, threads: int = 0) -> Float64Array:
    """Return the log base measure of every row of a sparse matrix: what `sum_csr` adds up over the rows.

    Parameters
    ----------
    indptr : int32 or int64 array of shape (n + 1,)
    data : array of shape (nnz,), any type `sum_csr` takes
    kind : {"poisson", "multinomial"}
        −Σ log x!, or the log of the coefficient N! / Π x! with N the sum of the row.
    threads : int, default 0
        0 for as many as there are cores. The result is the same to the last bit for every number of threads.

    Returns
    -------
    float64 array of shape (n,)
        NaN in rows that hold NaN, a negative number or infinity.

    Raises
    ------
    IndexError
        Where indptr points outside the matrix.
    ValueError, TypeError
        Where an array has another shape or type, or the kind has no base measure.

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes.kernels.base_measure import log_base_csr
    >>> np.exp(log_base_csr(np.array([0, 2, 3]), np.array([2, 1, 5]), "multinomial")).round(6)
    array([3., 1.])
    """
    from tallybayes import kernels

    if kind not in _KINDS:
        raise ValueError(f"kind is {kind!r}, expected one of {', '.join(_KINDS)}")
    _arguments.check_array(indptr, "indptr", 1, _arguments.INDEX_TYPES)
    _arguments.check_array(data, "data", 1, _arguments.NUMBER_TYPES)
    if len(indptr) == 0:
        raise ValueError("indptr is empty, expected one entry more than there are rows")
    indptr, data = (_arguments.contiguous(array) for array in (indptr, data))
    return kernels._kernels.log_base_csr(indptr, data, kind, n_threads(threads))

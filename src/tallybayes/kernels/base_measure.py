"""Log base measure of rows of counts: the part of the log probability that does not depend on parameters."""

from __future__ import annotations

from tallybayes.kernels import active
from tallybayes.kernels import arguments as _arguments
from tallybayes.kernels.arguments import AnyArray, Float64Array
from tallybayes.kernels.arguments import threads as n_threads

__all__ = ["log_base_csr"]

_KINDS = ("poisson", "multinomial")


def log_base_csr(indptr: AnyArray, data: AnyArray, kind: str, threads: int = 0) -> Float64Array:
    """Return the log base measure of every row of a sparse matrix; `sum_csr` returns its sum over rows.

    Parameters
    ----------
    indptr : int32 or int64 array of shape (n + 1,)
    data : array of shape (nnz,), any type of `sum_csr`
    kind : {"poisson", "multinomial"}
        −Σ log x!, or the log of the multinomial coefficient N! / Π x!, where N is the sum of the row.
    threads : int, default 0
        See the conventions of `tallybayes.kernels`.

    Returns
    -------
    float64 array of shape (n,)
        NaN for rows with NaN, negative or infinite values.

    Raises
    ------
    IndexError
        If indptr is outside the matrix.
    ValueError, TypeError
        If an array has a wrong shape or type, or the kind has no base measure.

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes.kernels.base_measure import log_base_csr
    >>> np.exp(log_base_csr(np.array([0, 2, 3]), np.array([2, 1, 5]), "multinomial")).round(6)
    array([3., 1.])
    """
    if kind not in _KINDS:
        raise ValueError(f"kind is {kind!r}, expected one of {', '.join(_KINDS)}")
    _arguments.check_array(indptr, "indptr", 1, _arguments.INDEX_TYPES)
    _arguments.check_array(data, "data", 1, _arguments.NUMBER_TYPES)
    if len(indptr) == 0:
        raise ValueError("indptr is empty, expected one entry more than there are rows")
    indptr, data = (_arguments.contiguous(array) for array in (indptr, data))
    return active.module.log_base_csr(indptr, data, kind, n_threads(threads))

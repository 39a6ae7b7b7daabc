"""Order of the column indices within the rows of sparse matrices."""

from __future__ import annotations

from tallybayes.kernels import active
from tallybayes.kernels import arguments as _arguments
from tallybayes.kernels.arguments import AnyArray
from tallybayes.kernels.arguments import threads as n_threads

__all__ = ["row_order"]


def row_order(indptr: AnyArray, indices: AnyArray, n_columns: int, threads: int = 0) -> str:
    """Return the order of the column indices within the rows of a CSR matrix, the worst over all rows.

    Parameters
    ----------
    indptr : int32 or int64 array of shape (n + 1,)
    indices : int32 or int64 array of shape (nnz,)
    n_columns : int
    threads : int, default 0
        See the conventions of `tallybayes.kernels`.

    Returns
    -------
    {"rising", "distinct", "repeated"}
        Every row is sorted without duplicates; no row has duplicates; some row has duplicates.

    Raises
    ------
    IndexError
        If indptr or indices are outside the matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes.kernels.csr_order import row_order
    >>> row_order(np.array([0, 2, 4]), np.array([0, 2, 1, 0]), 3)
    'distinct'
    """
    _arguments.check_array(indptr, "indptr", 1, _arguments.INDEX_TYPES)
    _arguments.check_array(indices, "indices", 1, _arguments.INDEX_TYPES)
    if len(indptr) == 0:
        raise ValueError("indptr is empty, expected one entry more than there are rows")
    if n_columns < 0:
        raise ValueError(f"n_columns is {n_columns}, expected 0 or more")
    indptr, indices = (_arguments.contiguous(array) for array in (indptr, indices))
    return str(active.module.row_order(indptr, indices, n_columns, n_threads(threads)))

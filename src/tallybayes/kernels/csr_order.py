"""In which order the entries of sparse rows lie."""

from __future__ import annotations

from tallybayes.kernels import arguments as _arguments
from tallybayes.kernels.arguments import AnyArray
from tallybayes.kernels.threads import threads as n_threads

__all__ = ["row_order"]


def row_order(indptr: AnyArray, indices: AnyArray, n_columns: int, threads: int = 0) -> str:
    """Tell how the column indices within the rows of a sparse matrix lie, at worst.

    Parameters
    ----------
    indptr : int32 or int64 array of shape (n + 1,)
    indices : int32 or int64 array of shape (nnz,)
    n_columns : int
    threads : int, default 0
        0 for as many as there are cores.

    Returns
    -------
    {"rising", "distinct", "repeated"}
        Every row rises; or none has an index twice; or some row has. Sums need no order, but no index twice.

    Raises
    ------
    IndexError
        Where indptr or indices point outside the matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes.kernels.csr_order import row_order
    >>> row_order(np.array([0, 2, 4]), np.array([0, 2, 1, 0]), 3)
    'distinct'
    """
    from tallybayes import kernels

    _arguments.check_array(indptr, "indptr", 1, _arguments.INDEX_TYPES)
    _arguments.check_array(indices, "indices", 1, _arguments.INDEX_TYPES)
    if len(indptr) == 0:
        raise ValueError("indptr is empty, expected one entry more than there are rows")
    if n_columns < 0:
        raise ValueError(f"n_columns is {n_columns}, expected 0 or more")
    indptr, indices = (_arguments.contiguous(array) for array in (indptr, indices))
    return str(kernels._kernels.row_order(indptr, indices, n_columns, n_threads(threads)))

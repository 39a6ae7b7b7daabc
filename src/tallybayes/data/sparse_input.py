"""Sparse matrices as rows of entries: read as they lie where they are sound, put in order where they are not."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallybayes.data.numeric_columns import numeric
from tallybayes.errors import DataError
from tallybayes.families._shared.blocks import SparseRows
from tallybayes.kernels.csr_order import row_order


def read_sparse(matrix: Any) -> SparseRows:
    """A matrix of any of SciPy's formats; sorted and added up only where entries of a row repeat."""
    if len(matrix.shape) != 2:
        raise DataError.wrong_shape("the sparse matrix", matrix.shape, "(rows, columns)")
    if getattr(matrix, "format", "") == "csc":  # before SciPy believes it
        _check_compressed(matrix.indptr, matrix.indices, len(matrix.data), *matrix.shape[::-1])
    rows = matrix.tocsr()
    if _row_order(rows) == "repeated":
        rows = rows.copy()
        rows.has_sorted_indices = rows.has_canonical_format = False  # whatever was true before
        rows.sum_duplicates()
    return SparseRows(rows.indptr, rows.indices, numeric(rows.data, "x"), int(rows.shape[1]))


def _row_order(rows: Any) -> str:
    """How the entries of compressed rows lie; rows that point outside of what they hold are refused."""
    n_entries = min(len(rows.indices), len(rows.data))
    good = len(rows.indptr) == rows.shape[0] + 1 and rows.indptr[0] == 0 and rows.indptr[-1] <= n_entries
    try:
        if good:
            return row_order(rows.indptr, rows.indices, int(rows.shape[1]))
    except IndexError:
        pass
    _check_compressed(rows.indptr, rows.indices, len(rows.data), *rows.shape)  # says what is wrong
    raise AssertionError("the kernels refused a sparse matrix that looks good")


def _check_compressed(indptr: np.ndarray, indices: np.ndarray, n_entries: int, n_lines: int, width: int) -> None:
    """Refuse compressed rows or columns that point outside of what they hold."""
    if len(indptr) != n_lines + 1 or indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any():
        found = "an indptr that does not fit it"
        expected = f"{n_lines + 1} numbers that start at 0 and never fall"
    elif indptr[-1] > min(n_entries, len(indices)):
        found = f"{len(indices)} indices and {n_entries} values"
        expected = f"{indptr[-1]} of each, as indptr says"
    elif len(indices) and not 0 <= indices.min() <= indices.max() < width:
        found, expected = f"indices from {indices.min()} to {indices.max()}", f"0 to {width - 1}"
    else:
        return
    raise DataError(
        f"the sparse matrix has {found}; expected {expected}.\n    Make it anew, as with scipy.sparse.csr_array(...)."
    )

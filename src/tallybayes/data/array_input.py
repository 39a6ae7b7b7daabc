"""Arrays and sparse matrices as the kernels read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tallybayes.data.encoding import numeric, plain_array
from tallybayes.errors import DataError, short_repr
from tallybayes.families._shared.blocks import SparseRows
from tallybayes.kernels.csr_order import row_order
from tallybayes.tally.factor import Name

if TYPE_CHECKING:
    import scipy.sparse as sp


def as_array(data: object, name: Name = 0) -> np.ndarray:
    """Convert values, or rows of values, to an array without merging different values.

    The array has dtype object where NumPy would convert values to one type, for example 1 and "a" to strings.
    """
    if isinstance(data, np.ndarray):
        return plain_array(data, name)
    if isinstance(data, list | tuple) and set(map(type, data)) == {str}:
        return np.fromiter(data, dtype=object, count=len(data))  # without a copy of every string
    try:
        listed = hasattr(data, "__iter__") or hasattr(data, "__array__")
        array = np.asarray(data) if listed and not isinstance(data, str | bytes) else None
    except ValueError:
        raise DataError.wrong_type("the data", "ragged", "rows of one length") from None
    if array is None or array.ndim == 0:  # a number, a string; a set, a generator; a query of a frame
        hint = "Pass a list, an array, a frame or a mapping of columns."
        hint = "Ask for its rows: data.collect()." if hasattr(data, "collect") else hint
        raise DataError.wrong_type("the data", short_repr(data), "rows of values", hint)
    # Strings are always merged: [1, "a"] becomes two strings, and a trailing NUL is dropped.
    if array.dtype.kind in "US" or (array.dtype.kind == "O" and array.ndim == 1) or _merges(array, data):
        objects = np.empty(array.shape, dtype=object)
        data = data if hasattr(data, "__iter__") else array
        objects[...] = data if array.ndim == 1 else [list(row) for row in data]
        return objects
    return array


def _merges(array: np.ndarray, data: object) -> bool:
    """Return whether NumPy's conversion of a list to numbers made different values equal.

    Examples are True and 1, or 2⁶³ and 2⁶³ + 1 as floats.
    """
    if array.dtype.kind not in "iuf" or array.ndim > 2 or not hasattr(data, "__iter__"):
        return False
    rows = [data] if array.ndim == 1 else [row for row in data if isinstance(row, list | tuple)]
    kinds = {kind for row in rows for kind in set(map(type, row))}
    if not kinds.isdisjoint((bool, np.bool_)):
        return True
    has_integers = any(issubclass(kind, int | np.integer) for kind in kinds)
    return has_integers and array.dtype.kind == "f" and bool((np.abs(array) >= 2.0**53).any())


def unmerged(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return arrays for concatenation: as objects where a common type would merge different values."""
    kinds = {array.dtype.kind for array in arrays}
    merging = len(kinds) > 1 and not kinds.isdisjoint("USb")
    if not merging and len(kinds) > 1 and np.result_type(*arrays).kind == "f":
        wide = [array for array in arrays if array.dtype.kind in "iu" and array.size]
        merging = any(array.max() > 2**53 or array.min() < -(2**53) for array in wide)
    return [array.astype(object) for array in arrays] if merging else list(arrays)


def read_sparse(matrix: sp.sparray) -> SparseRows:
    """Convert a SciPy sparse matrix of any format to `SparseRows`.

    Entries are copied, sorted and summed only if a row has repeated entries.
    """
    if len(matrix.shape) != 2:
        raise DataError.wrong_shape("the sparse matrix", matrix.shape, "(rows, columns)")
    if getattr(matrix, "format", "") == "csc":  # SciPy does not check it
        _check_compressed(matrix.indptr, matrix.indices, len(matrix.data), *matrix.shape[::-1])
    rows = matrix.tocsr()
    if _row_order(rows) == "repeated":
        rows = rows.copy()
        rows.has_sorted_indices = rows.has_canonical_format = False  # the flags may be wrong
        rows.sum_duplicates()
    return SparseRows(rows.indptr, rows.indices, numeric(rows.data, "x"), int(rows.shape[1]))


def _row_order(rows: sp.csr_array) -> str:
    """Return the order of the entries of compressed rows; raise DataError if an index is out of bounds."""
    n_entries = min(len(rows.indices), len(rows.data))
    is_consistent = len(rows.indptr) == rows.shape[0] + 1 and rows.indptr[0] == 0 and rows.indptr[-1] <= n_entries
    try:
        if is_consistent:
            return row_order(rows.indptr, rows.indices, int(rows.shape[1]))
    except IndexError:
        pass
    _check_compressed(rows.indptr, rows.indices, len(rows.data), *rows.shape)
    raise AssertionError("the kernels rejected a valid sparse matrix")


def _check_compressed(indptr: np.ndarray, indices: np.ndarray, n_entries: int, n_lines: int, width: int) -> None:
    """Raise DataError if `indptr` or `indices` of compressed rows (or columns) are out of bounds."""
    if len(indptr) != n_lines + 1 or indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any():
        problem = f"an invalid indptr; expected {n_lines + 1} non-decreasing numbers that start at 0"
    elif indptr[-1] > min(n_entries, len(indices)):
        problem = f"{len(indices)} indices and {n_entries} values; expected {indptr[-1]} of each, the last of indptr"
    elif len(indices) and not 0 <= indices.min() <= indices.max() < width:
        problem = f"indices from {indices.min()} to {indices.max()}; expected 0 to {width - 1}"
    else:
        return
    raise DataError(f"the sparse matrix has {problem}.\n    Create it again, for example with scipy.sparse.csr_array.")

"""Validation of the arguments of kernels, shared by both implementations so that they raise the same errors.

Only shapes and types are checked here, and the number of threads. The kernels check values (codes, cells) when they
read them.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tallybayes.errors import DataError

AnyArray = npt.NDArray[Any]
Types = frozenset[np.dtype[Any]]
Columns = AnyArray | Sequence[AnyArray]
Float64Array = npt.NDArray[np.float64]
Int64Array = npt.NDArray[np.int64]

CODE_TYPES: Types = frozenset(np.dtype(name) for name in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"))
NUMBER_TYPES: Types = CODE_TYPES | {np.dtype(name) for name in ("?", "f4", "f8")}
MOMENT_TYPES: Types = CODE_TYPES | {np.dtype(name) for name in ("f4", "f8")}
LEVEL_TYPES: Types = CODE_TYPES | {np.dtype("?")}
INDEX_TYPES: Types = frozenset({np.dtype("i4"), np.dtype("i8")})
KINDS = ("binary", "poisson", "multinomial")
FLOAT64 = np.dtype(np.float64)
MAX_GROUPS = 2**31 - 2
_most: int | None = None  # None: read from the environment at first use; 0: one thread per core
_FEW = 64  # arrays of up to this length are checked in Python, which is faster than a NumPy reduction


def check_array(array: object, name: str, dimensions: int, types: Types) -> None:
    """Raise TypeError or ValueError unless `array` is a NumPy array of these dimensions and one of these types."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{name} must be a NumPy array, found {type(array).__name__}; convert it with numpy.asarray")
    if array.dtype not in types:
        expected = ", ".join(sorted(dtype.name for dtype in types))
        raise TypeError(f"{name} has dtype {array.dtype}, expected one of {expected}; convert it with .astype")
    if array.ndim != dimensions:
        raise ValueError(f"{name} has {array.ndim} dimensions (shape {array.shape}), expected {dimensions}")


def check_columns(columns: Columns, name: str, types: Types, n_rows: int = 0) -> tuple[int, int]:
    """Return (rows, columns) of a 2-D array or of a list of 1-D arrays; an empty list has `n_rows` rows."""
    if isinstance(columns, np.ndarray):
        check_array(columns, name, 2, types)
        return columns.shape[0], columns.shape[1]
    if not isinstance(columns, list | tuple):
        raise TypeError(f"{name} must be a 2-D NumPy array or a list of 1-D arrays, found {type(columns).__name__}")
    for position, column in enumerate(columns):
        check_array(column, f"{name}[{position}]", 1, types)
        if len(column) != len(columns[0]):
            sizes = f"{len(column)} rows, {name}[0] has {len(columns[0])}"
            raise ValueError(f"{name}[{position}] has {sizes}; they must agree")
    return len(columns[0]) if columns else n_rows, len(columns)


def known_rows(group: AnyArray | None, weight: Float64Array | None) -> int | None:
    """Return the number of rows of group or weight, or None."""
    if isinstance(group, np.ndarray) and group.ndim == 1:
        return len(group)
    if isinstance(weight, np.ndarray) and weight.ndim >= 1:
        return len(weight)
    return None


def check_groups(group: AnyArray | None, n_groups: int, weight: Float64Array | None, n_rows: int) -> None:
    """Raise TypeError or ValueError unless group codes, weights and number of groups fit each other and the rows."""
    if not 0 <= n_groups <= MAX_GROUPS:
        raise ValueError(f"n_groups is {n_groups}, expected 0 to {MAX_GROUPS}")
    soft = False
    if weight is not None:
        if not isinstance(weight, np.ndarray):
            raise TypeError(f"weight must be None or a NumPy array, found {type(weight).__name__}")
        if weight.dtype != FLOAT64 or not weight.dtype.isnative:
            raise TypeError(f"weight has dtype {weight.dtype}, expected float64; convert it with .astype")
        soft = weight.ndim == 2
        expected = (n_rows, n_groups) if soft else (n_rows,)
        if weight.shape != expected:
            raise ValueError(f"weight has shape {weight.shape}, expected ({n_rows},) or ({n_rows}, {n_groups})")
    if group is None:
        if n_groups != 1 and not soft:
            raise ValueError(f"n_groups is {n_groups} without group codes, expected 1; pass group or a 2-D weight")
        return
    check_array(group, "group", 1, CODE_TYPES)
    if soft:
        raise ValueError("group and a 2-D weight both assign rows to groups; pass only one of them")
    if len(group) != n_rows:
        raise ValueError(f"group has {len(group)} rows, the columns have {n_rows}; they must agree")


def check_rows(
    columns: Columns,
    name: str,
    types: Types,
    group: AnyArray | None,
    n_groups: int,
    weight: Float64Array | None,
) -> tuple[int, int]:
    """Return (rows, columns) after checking columns, group codes and weights."""
    n, d = check_columns(columns, name, types)
    if d == 0 and not isinstance(columns, np.ndarray):  # an empty list has any number of rows
        n = known_rows(group, weight) or 0
    check_groups(group, n_groups, weight, n)
    return n, d


def check_codes(
    columns: Columns,
    sizes: Sequence[int] | Int64Array,
    group: AnyArray | None,
    n_groups: int,
    weight: Float64Array | None,
    *,
    soft: bool = True,
) -> Int64Array:
    """Return the numbers of levels of columns of codes after checking all arguments; `soft` allows a 2-D weight."""
    n, d = check_rows(columns, "columns", LEVEL_TYPES, group, n_groups, weight)
    if not soft and weight is not None and weight.ndim != 1:
        raise ValueError(f"weight has shape {weight.shape}, expected ({n},)")
    return check_sizes(sizes, d)


def check_kind(kind: str) -> None:
    """Raise ValueError unless this kind of sum exists."""
    if kind not in KINDS:
        raise ValueError(f"kind is {kind!r}, expected one of {', '.join(KINDS)}")


def check_sizes(sizes: Sequence[int] | Int64Array, n_columns: int) -> Int64Array:
    """Return the numbers of levels of all columns as int64."""
    levels = np.ascontiguousarray(sizes)
    if levels.size == 0:
        levels = levels.astype(np.int64)
    if levels.dtype.kind not in "iu":
        raise TypeError(f"sizes has dtype {levels.dtype}, expected whole numbers")
    if levels.shape != (n_columns,):
        raise ValueError(f"sizes has shape {levels.shape}, expected ({n_columns},): one size for each column")
    levels = levels.astype(np.int64, copy=False)
    few = levels[:_FEW].tolist()
    smallest = min(few, default=0) if n_columns <= _FEW else int(levels.min())
    largest = max(few, default=0) if n_columns <= _FEW else int(levels.max())
    if not 0 <= smallest <= largest <= MAX_GROUPS:
        raise ValueError(f"sizes run from {smallest} to {largest}, expected 0 to {MAX_GROUPS}")
    return levels


def check_anchor(anchor: Sequence[float] | Float64Array, n_columns: int) -> Float64Array:
    """Return the anchors of all columns as contiguous float64."""
    values = np.ascontiguousarray(anchor, dtype=np.float64)
    if values.shape != (n_columns,):
        raise ValueError(f"anchor has shape {values.shape}, expected ({n_columns},): one anchor for each column")
    finite = all(map(math.isfinite, values.tolist())) if n_columns <= _FEW else bool(np.isfinite(values).all())
    if not finite:
        raise ValueError("anchor has a value that is not finite; pass finite anchors, 0 if in doubt")
    return values


def check_floats(values: object, name: str, shape: tuple[int | None, ...], *, logs: bool = False) -> Float64Array:
    """Return contiguous float64 of this shape, where None is any length; raise ValueError for NaN and infinity.

    Logarithms may be −inf.
    """
    array = np.ascontiguousarray(values, dtype=np.float64)
    if array.ndim != len(shape) or any(n not in (None, m) for n, m in zip(shape, array.shape, strict=True)):
        raise ValueError(f"{name} has shape {array.shape}, expected {str(shape).replace('None', 'any')}")
    if logs and array.size and not array.max() < np.inf:
        raise ValueError(f"{name} holds NaN or inf, expected logarithms: numbers or -inf")
    if not logs and not np.isfinite(array).all():
        raise ValueError(f"{name} holds a number that is not finite")
    return array


def check_sparse(indptr: AnyArray, indices: AnyArray, data: AnyArray, n_columns: int) -> int:
    """Return the number of rows of a CSR matrix after checking shapes and types of its three arrays."""
    check_array(indptr, "indptr", 1, INDEX_TYPES)
    check_array(indices, "indices", 1, INDEX_TYPES)
    check_array(data, "data", 1, NUMBER_TYPES)
    if len(indptr) == 0:
        raise ValueError("indptr is empty, expected one entry more than there are rows")
    if len(indices) != len(data):
        raise ValueError(f"indices has {len(indices)} entries and data {len(data)}; they must agree")
    if n_columns < 0:
        raise ValueError(f"n_columns is {n_columns}, expected 0 or more")
    return len(indptr) - 1


def contiguous(array: AnyArray) -> AnyArray:
    """Return the array if it is contiguous and aligned, otherwise a contiguous copy."""
    return array if array.flags.c_contiguous and array.flags.aligned else array.copy()


def group_error(row: int, code: int, n_groups: int) -> IndexError:
    """Return the error for an invalid group code."""
    return IndexError(f"row {row} has group code {code}, expected 0 to {n_groups - 1}, or -1 to skip the row")


def indptr_error(row: int, start: int, stop: int, n_entries: int) -> IndexError:
    """Return the error for a CSR row whose extent is invalid."""
    return IndexError(
        f"indptr gives row {row} the entries {start} to {stop}, expected a rising range within 0 to {n_entries}"
    )


def index_error(row: int, index: int, n_columns: int) -> IndexError:
    """Return the error for an invalid CSR column index."""
    return IndexError(f"row {row} has column index {index}, expected 0 to {n_columns - 1}")


def set_threads(n: int) -> None:
    """Set the maximum number of threads of this package. Results do not depend on it.

    The environment variable ``TALLYBAYES_THREADS`` sets it when Python starts. Neither affects the threads of NumPy's
    linear algebra libraries, which have their own variables (``OPENBLAS_NUM_THREADS``).

    Parameters
    ----------
    n : int
        Maximum number of threads; 0 for one per core.

    Examples
    --------
    >>> import tallybayes as tb
    >>> tb.set_threads(1)
    >>> tb.set_threads(0)                                             # one per core
    """
    global _most
    _most = _checked(n, "the number of threads")


def threads(n: int = 0) -> int:
    """Return the number of threads to start if `n` are requested: `n`, or the maximum for 0; 0 means one per core."""
    global _most
    if n < 0:
        raise ValueError(f"threads is {n}, expected 0 (one per core) or more")
    if _most is None:
        _most = _checked(os.environ.get("TALLYBAYES_THREADS") or 0, "the environment variable TALLYBAYES_THREADS")
    return n or _most


def _checked(n: int | str, name: str) -> int:
    """Return a number of threads as int, or raise DataError."""
    try:
        number = int(n) if isinstance(n, str) else n
    except ValueError:
        number = -1
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < 2**31:
        raise DataError(f"{name} is {n!r}; expected a whole number: 0 for one thread per core, or the maximum.")
    return number

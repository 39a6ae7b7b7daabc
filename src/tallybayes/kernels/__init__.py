"""Kernels: functions that loop over the rows of the data, compiled from C++ or in NumPy.

Every function has two implementations with the same signature and the same results: the compiled module, and the
reference in NumPy (`tallybayes.kernels.reference`). The environment variable ``TALLYBAYES_KERNELS`` selects one
(``reference``; ``baseline``; ``v3`` or ``v4``, the x86-64 levels). `implementation` returns the active one.

Conventions shared by all functions:

group
    ``None`` (every row belongs to group 0) or n integer codes of any width, read without copying. −1, or the largest
    value of an unsigned type if it is not a valid code, skips the row. Other codes outside ``[0, n_groups)`` raise
    IndexError.
weight
    ``None`` (1 for every row), float64 of shape (n,), or float64 of shape (n, n_groups): one weight per row and group,
    with ``group=None``. Rows of weight 0 are ignored without reading their values. Weights must be finite and
    nonnegative; the kernels do not check this.
columns
    A 2-D array (n, d) of any memory layout, or a list of d 1-D arrays. Read without copying; may be read-only.
threads
    Maximum number of threads; 0 for the maximum of `set_threads`. The result is bitwise the same for every number.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tallybayes.kernels import active
from tallybayes.kernels import arguments as _arguments
from tallybayes.kernels.arguments import AnyArray, Columns, Float64Array, Int64Array
from tallybayes.kernels.arguments import threads as n_threads
from tallybayes.kernels.scoring import Scorer, posterior_by_part

__all__ = [
    "Scorer",
    "column_ranges",
    "count_codes",
    "count_groups",
    "implementation",
    "posterior_by_part",
    "read_bytes",
    "squared_lengths",
    "sum_csr",
    "sum_dense",
    "sum_moments",
    "sum_scatter",
]

Sums = tuple[Float64Array, Float64Array, Float64Array]
Moments = tuple[Float64Array, Float64Array, Float64Array, Float64Array, Float64Array, Float64Array]


def implementation() -> str:
    """Return the name of the active kernels: ``"reference"``, or ``"compiled"`` and the instruction set.

    Examples
    --------
    >>> from tallybayes import kernels
    >>> kernels.implementation().split()[0] in ("compiled", "reference")
    True
    """
    return active.name


def count_groups(
    group: AnyArray | None, n_groups: int, weight: Float64Array | None = None, n_rows: int | None = None
) -> tuple[Int64Array, Float64Array]:
    """Count the rows of every group and sum their weights.

    Parameters
    ----------
    group, n_groups, weight
        See the module's conventions.
    n_rows : int, optional
        Number of rows; required if neither group nor weight is given.

    Returns
    -------
    rows : int64 array of shape (n_groups,)
        Number of rows with a weight above 0.
    weight : float64 array of shape (n_groups,)
        Total weight.

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes import kernels
    >>> kernels.count_groups(np.array([0, 1, 1, -1]), 2, weight=np.array([1.0, 0.5, 0.0, 1.0]))
    (array([1, 1]), array([1. , 0.5]))
    """
    given = _arguments.known_rows(group, weight)
    if given is None and n_rows is None:
        raise ValueError("the number of rows is unknown; pass group, weight or n_rows")
    n = int(n_rows) if given is None and n_rows is not None else given or 0
    if n < 0 or (n_rows is not None and n_rows != n):
        raise ValueError(f"n_rows is {n_rows}, but group or weight has {n} rows; they must agree")
    _arguments.check_groups(group, n_groups, weight, n)
    rows, total = active.module.count_groups(group, n_groups, weight, n)
    return rows.view(np.int64), total  # C has two 64-bit integer types; NumPy displays one of them as dtype=int64


def column_ranges(columns: Columns, threads: int = 0) -> tuple[Int64Array, Int64Array]:
    """Return the smallest and the largest value of every integer column.

    Parameters
    ----------
    columns : (n, d) array or list of d (n,) arrays, any integer type or bool
    threads : int
        See the module's conventions.

    Returns
    -------
    low, high : int64 arrays of shape (d,)
        0 and −1 if there are no rows.

    Raises
    ------
    OverflowError
        If an unsigned number exceeds 2⁶³ − 1.

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes import kernels
    >>> low, high = kernels.column_ranges(np.array([[3, -1], [0, 7]]))
    >>> low.tolist(), high.tolist()
    ([0, -1], [3, 7])
    """
    _arguments.check_columns(columns, "columns", _arguments.LEVEL_TYPES)
    low, high = active.module.column_ranges(columns, n_threads(threads))
    return low, high


def count_codes(
    columns: Columns,
    sizes: Sequence[int] | Int64Array,
    group: AnyArray | None,
    n_groups: int,
    weight: Float64Array | None = None,
    threads: int = 0,
) -> Float64Array:
    """Count the codes of every column in every group.

    Parameters
    ----------
    columns : (n, d) array or list of d (n,) arrays, bool or any integer type
        Codes in ``[0, size)``. −1, or the largest value of an unsigned type if it is not a valid code, is a missing
        value and skipped.
    sizes : sequence of d int
        Number of levels of every column.
    group, n_groups, weight, threads
        See the module's conventions.

    Returns
    -------
    float64 array of shape (n_groups, sum(sizes))
        Total weight of every level, with the levels of all columns concatenated.

    Raises
    ------
    CellError
        If a code is neither valid nor missing; the error names the first such cell, by row, then column.

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes import kernels
    >>> codes = np.array([[0, 2], [1, 2], [1, -1]])
    >>> kernels.count_codes(codes, [2, 3], group=np.array([0, 0, 1]), n_groups=2)
    array([[1., 1., 0., 0., 2.],
           [0., 1., 0., 0., 0.]])
    """
    levels = _arguments.check_codes(columns, sizes, group, n_groups, weight)
    return active.module.count_codes(columns, levels, group, n_groups, weight, n_threads(threads))


def sum_dense(
    X: Columns,
    kind: str,
    group: AnyArray | None,
    n_groups: int,
    weight: Float64Array | None = None,
    threads: int = 0,
) -> Sums:
    """Sum the values of every column in every group.

    Parameters
    ----------
    X : (n, d) array or list of d (n,) arrays, bool, any integer type, float32 or float64
        Values. NaN is a missing value and skipped; for multinomials it is an error.
    kind : {"binary", "poisson", "multinomial"}
        Allowed values: 0 or 1; nonnegative integers; finite nonnegative numbers.
    group, n_groups, weight, threads
        See the module's conventions.

    Returns
    -------
    weight : float64 array of shape (n_groups, d), or (n_groups, 1) if no cell was missing
        Σw over the values that are not missing. Always (n_groups, 1) for multinomials.
    total : float64 array of shape (n_groups, d)
        Σw·x.
    log_base : float64 array
        Σw·log h(x): zeros of shape (n_groups, 1) for "binary"; −Σw·log x! of shape (n_groups, d) for "poisson";
        Σw·(log Γ(N + 1) − Σⱼ log Γ(xⱼ + 1)) of shape (n_groups, 1) for "multinomial", where N is the sum of the row.

    Raises
    ------
    CellError
        If `kind` does not allow a value; the error names the first such cell, by row, then column.

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes import kernels
    >>> X = np.array([[1, 0, 1], [1, 1, 0]], dtype=np.uint8)
    >>> weight, total, log_base = kernels.sum_dense(X, "binary", None, 1)
    >>> weight, total
    (array([[2.]]), array([[2., 1., 1.]]))
    """
    _arguments.check_kind(kind)
    _arguments.check_rows(X, "X", _arguments.NUMBER_TYPES, group, n_groups, weight)
    return active.module.sum_dense(X, kind, group, n_groups, weight, n_threads(threads))


def sum_csr(
    indptr: AnyArray,
    indices: AnyArray,
    data: AnyArray,
    n_columns: int,
    kind: str,
    group: AnyArray | None,
    n_groups: int,
    weight: Float64Array | None = None,
    threads: int = 0,
) -> Sums:
    """Sum the values of every column in every group, as `sum_dense`, for a sparse matrix in CSR format.

    Parameters
    ----------
    indptr : int32 or int64 array of shape (n + 1,)
    indices : int32 or int64 array of shape (nnz,)
        No row may contain an index twice (see ``sum_duplicates`` of SciPy); the kernel does not check this.
    data : array of shape (nnz,), any type of `sum_dense`
    n_columns : int
    kind, group, n_groups, weight, threads
        As in `sum_dense`.

    Returns
    -------
    weight, total, log_base
        Same values as `sum_dense` for the dense matrix.

    Raises
    ------
    CellError
        If `kind` does not allow a stored value; the error names the first such cell, by row, then column.
    IndexError
        If indptr or indices are outside the matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes import kernels
    >>> indptr, indices, data = np.array([0, 2, 3]), np.array([0, 3, 3]), np.array([1.0, 2.0, 5.0])
    >>> kernels.sum_csr(indptr, indices, data, 4, "multinomial", None, 1)[1]
    array([[1., 0., 0., 7.]])
    """
    _arguments.check_kind(kind)
    n = _arguments.check_sparse(indptr, indices, data, n_columns)
    _arguments.check_groups(group, n_groups, weight, n)
    threads = n_threads(threads)
    indptr, indices, data = (_arguments.contiguous(array) for array in (indptr, indices, data))
    return active.module.sum_csr(indptr, indices, data, n_columns, kind, group, n_groups, weight, threads)


def sum_moments(
    X: Columns,
    anchor: Sequence[float] | Float64Array,
    group: AnyArray | None,
    n_groups: int,
    weight: Float64Array | None = None,
    threads: int = 0,
) -> Moments:
    """Sum weights, deviations from an anchor and their squares in double-double arithmetic.

    With v = x − anchor, rounded once to float64, the pairs high + low are Σw, Σw·v and Σw·v² with an error of about
    1e-30 times the sum of the terms' magnitudes. Rows can therefore be subtracted later.

    With one weight per row and group, the result is never subtracted from: blocks of rows are summed in float64 about
    the group's mean and then moved to the anchor. Weight, mean and scatter have relative errors of about 1e-13.

    Parameters
    ----------
    X : (n, d) array or list of d (n,) arrays, any integer type, float32 or float64
        NaN is a missing value and skipped. Integers beyond 2⁵³ are first rounded to float64.
    anchor : sequence of d float
        Reference point of every column.
    group, n_groups, weight, threads
        See the module's conventions.

    Returns
    -------
    weight_high, weight_low : float64 arrays of shape (n_groups, d), or (n_groups, 1) if no cell was missing
    first_high, first_low : float64 arrays of shape (n_groups, d)
    second_high, second_low : float64 arrays of shape (n_groups, d)

    Raises
    ------
    CellError
        If a value is infinite or its w·v² exceeds 1e300, so that the sum could overflow; the error names the first such
        cell, by row, then column.

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes import kernels
    >>> moments = kernels.sum_moments(np.array([[1.0], [2.0], [4.0]]), [0.0], None, 1)
    >>> [float(sums[0, 0]) for sums in moments]
    [3.0, 0.0, 7.0, 0.0, 21.0, 0.0]
    """
    _, d = _arguments.check_rows(X, "X", _arguments.MOMENT_TYPES, group, n_groups, weight)
    anchors = _arguments.check_anchor(anchor, d)
    return active.module.sum_moments(X, anchors, group, n_groups, weight, n_threads(threads))


def sum_scatter(
    X: Columns,
    anchor: Sequence[float] | Float64Array,
    group: AnyArray | None,
    n_groups: int,
    weight: Float64Array | None = None,
    threads: int = 0,
) -> Moments:
    """Sum weights, deviations from an anchor and their outer products in double-double arithmetic.

    Blocks of rows are centered near their mean, multiplied in float64, then moved to the anchor and added in
    double-double arithmetic. The relative error of the scatter is about 1e-15 (1e-13 with one weight per row and group)
    for any anchor.

    Parameters
    ----------
    X : (n, d) array or list of d (n,) arrays, any integer type, float32 or float64
    anchor : sequence of d float
        Reference point of every column.
    group, n_groups, weight, threads
        See the module's conventions.

    Returns
    -------
    weight_high, weight_low : float64 arrays of shape (n_groups, 1)
    first_high, first_low : float64 arrays of shape (n_groups, d)
    second_high, second_low : float64 arrays of shape (n_groups, d, d), symmetric

    Raises
    ------
    CellError
        If a value is NaN or infinite, or its w·(x − anchor)² exceeds 1e300; the error names the first such cell.

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes import kernels
    >>> X = np.array([[1.0, 2.0], [3.0, 5.0]])
    >>> kernels.sum_scatter(X, [0.0, 0.0], None, 1)[4]
    array([[[10., 17.],
            [17., 29.]]])
    """
    _, d = _arguments.check_rows(X, "X", _arguments.MOMENT_TYPES, group, n_groups, weight)
    anchors = _arguments.check_anchor(anchor, d)
    return active.module.sum_scatter(X, anchors, group, n_groups, weight, n_threads(threads))


def squared_lengths(
    X: Columns, center: Float64Array, roots: Float64Array, shifts: Float64Array, threads: int = 0
) -> Float64Array:
    """Return squared Mahalanobis distances ‖A(x − center) − shift‖² of every row, for several lower triangular A.

    Parameters
    ----------
    X : (n, d) array or list of d (n,) arrays, any integer type, float32 or float64
    center : float64 array of shape (d,)
        Subtracted from every row first, so that the products keep their digits.
    roots : float64 array of shape (K, d, d)
        Lower triangular matrices A; elements above the diagonal are ignored.
    shifts : float64 array of shape (K, d)
    threads : int
        See the module's conventions.

    Returns
    -------
    float64 array of shape (n, K)
        NaN for rows that contain NaN.

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes import kernels
    >>> kernels.squared_lengths(np.array([[3.0, 4.0]]), np.zeros(2), np.eye(2)[None], np.zeros((1, 2)))
    array([[25.]])
    """
    n, d = _arguments.check_columns(X, "X", _arguments.MOMENT_TYPES)
    roots = np.ascontiguousarray(roots, dtype=np.float64)
    shifts = np.ascontiguousarray(shifts, dtype=np.float64)
    if roots.ndim != 3 or roots.shape[1:] != (d, d) or shifts.shape != (len(roots), d):
        raise ValueError(
            f"roots and shifts have shapes {roots.shape} and {shifts.shape}, expected (K, {d}, {d}), (K, {d})"
        )
    centers = _arguments.check_anchor(center, d)
    if n == 0 or d == 0:
        return np.zeros((n, len(roots)))
    workers = n_threads(threads)
    return active.module.squared_lengths(X, centers, roots.reshape(-1), shifts.reshape(-1), len(roots), workers)


def read_bytes(array: AnyArray, threads: int = 0) -> int:
    """Read every byte of a contiguous array as fast as possible: the lower bound in benchmarks of other kernels.

    Parameters
    ----------
    array : contiguous array
    threads : int
        See the module's conventions.

    Returns
    -------
    int
        Sum of the array's bytes, read as unsigned 64-bit integers, modulo 2⁶⁴.

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes import kernels
    >>> kernels.read_bytes(np.array([1, 2, 3], dtype=np.uint64))
    6
    """
    if not (array.flags.c_contiguous or array.flags.f_contiguous):
        raise ValueError(f"the array of shape {array.shape} and strides {array.strides} is not contiguous")
    return int(active.module.read_bytes(array, n_threads(threads)))

"""The loops over rows: everything the library learns from data passes through one of these functions, once.

Each function exists twice with the same signature and the same results: compiled from C++ for the machine at hand, and
in NumPy (`tallybayes.kernels.reference.sums`). The environment variable ``TALLYBAYES_KERNELS`` forces a choice
(``reference``; ``baseline``; ``v3`` or ``v4``, the x86-64 levels). `implementation` returns the active one.

Conventions shared by all functions:

group
    ``None`` (every row in group 0) or n integer codes of any width, read in place. −1, or the largest value of an
    unsigned type where it is no valid code, skips the row. Other codes outside ``[0, n_groups)`` are an `IndexError`.
weight
    ``None`` (1 for every row), float64 of shape (n,), or float64 of shape (n, n_groups): one weight for every row and
    group, with ``group=None``. What has weight 0 is absent: its values are not looked at. Weights must be finite and
    not negative; this is the caller's promise.
columns
    A 2-D array (n, d) of any layout, or a list of d 1-D arrays. Read in place, read-only arrays included.
threads
    0 for as many as `set_threads` allows. The result is the same to the last bit for every number of threads.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from tallybayes.kernels import arguments as _arguments
from tallybayes.kernels.arguments import AnyArray, Columns, Float64Array, Int64Array
from tallybayes.kernels.choice import choose
from tallybayes.kernels.reference import sums as _reference  # noqa: F401 - of the facades
from tallybayes.kernels.scoring import Scorer, column_ranges, posterior_by_part
from tallybayes.kernels.threads import threads as n_threads

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


_kernels, _name = choose(os.environ.get("TALLYBAYES_KERNELS"))


def implementation() -> str:
    """Tell which kernels run: ``"reference"``, or ``"compiled"`` and the instruction set.

    Examples
    --------
    >>> from tallybayes import kernels
    >>> kernels.implementation().split()[0] in ("compiled", "reference")
    True
    """
    return _name


def count_groups(
    group: AnyArray | None, n_groups: int, weight: Float64Array | None = None, n_rows: int | None = None
) -> tuple[Int64Array, Float64Array]:
    """Count the rows of every group and add up their weights.

    Parameters
    ----------
    group, n_groups, weight
        See the module's conventions.
    n_rows : int, optional
        Needed where neither group nor weight tells the number of rows.

    Returns
    -------
    rows : int64 array of shape (n_groups,)
        The number of rows with a weight above 0.
    weight : float64 array of shape (n_groups,)
        Their total weight.

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes import kernels
    >>> kernels.count_groups(np.array([0, 1, 1, -1]), 2, weight=np.array([1.0, 0.5, 0.0, 1.0]))
    (array([1, 1]), array([1. , 0.5]))
    """
    known = _arguments.known_rows(group, weight)
    if known is None and n_rows is None:
        raise ValueError("the number of rows is unknown; pass group, weight or n_rows")
    n = int(n_rows) if known is None and n_rows is not None else known or 0
    if n < 0 or (n_rows is not None and n_rows != n):
        raise ValueError(f"n_rows is {n_rows}, but group or weight has {n} rows; they must agree")
    _arguments.check_groups(group, n_groups, weight, n)
    rows, total = _kernels.count_groups(group, n_groups, weight, n)
    return rows.view(np.int64), total  # one of C's two 64-bit types; NumPy shows the other as dtype=int64


def count_codes(
    columns: Columns,
    sizes: Sequence[int] | Int64Array,
    group: AnyArray | None,
    n_groups: int,
    weight: Float64Array | None = None,
    threads: int = 0,
) -> Float64Array:
    """Count how often every code occurs in every column and group.

    Parameters
    ----------
    columns : (n, d) array or list of d (n,) arrays, bool or any integer type
        Codes in ``[0, size)``. −1, or the largest value of an unsigned type where it is no valid code, is a missing
        cell and skipped.
    sizes : sequence of d int
        The number of levels of every column.
    group, n_groups, weight, threads
        See the module's conventions.

    Returns
    -------
    float64 array of shape (n_groups, sum(sizes))
        The total weight of every level, the columns one after another.

    Raises
    ------
    CellError
        At the first cell, by row then column, whose code is neither valid nor missing.

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes import kernels
    >>> codes = np.array([[0, 2], [1, 2], [1, -1]])
    >>> kernels.count_codes(codes, [2, 3], group=np.array([0, 0, 1]), n_groups=2)
    array([[1., 1., 0., 0., 2.],
           [0., 1., 0., 0., 0.]])
    """
    n, d = _arguments.check_columns(columns, "columns", _arguments.LEVEL_TYPES, _arguments.known_rows(group, weight))
    levels = _arguments.check_sizes(sizes, d)
    _arguments.check_groups(group, n_groups, weight, n)
    return _kernels.count_codes(columns, levels, group, n_groups, weight, n_threads(threads))


def sum_dense(
    X: Columns,
    kind: str,
    group: AnyArray | None,
    n_groups: int,
    weight: Float64Array | None = None,
    threads: int = 0,
) -> Sums:
    """Sum the cells of every column in every group.

    Parameters
    ----------
    X : (n, d) array or list of d (n,) arrays, bool, any integer type, float32 or float64
        The cells. A float NaN is a missing cell and skipped, except for multinomials.
    kind : {"binary", "poisson", "multinomial"}
        What a cell may be: 0 or 1; a whole number ≥ 0; any finite number ≥ 0.
    group, n_groups, weight, threads
        See the module's conventions.

    Returns
    -------
    weight : float64 array of shape (n_groups, d), or (n_groups, 1) if no cell was missing
        Σw over the cells that are there. Always (n_groups, 1) for multinomials.
    total : float64 array of shape (n_groups, d)
        Σw·x.
    log_base : float64 array
        Σw·log h(x): zeros of shape (n_groups, 1) for "binary"; −Σw·log x! of shape (n_groups, d) for "poisson";
        Σw·(log Γ(N + 1) − Σⱼ log Γ(xⱼ + 1)) of shape (n_groups, 1) for "multinomial", N the sum of the row.

    Raises
    ------
    CellError
        At the first cell, by row then column, that the kind forbids.

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
    n, _ = _arguments.check_columns(X, "X", _arguments.NUMBER_TYPES, _arguments.known_rows(group, weight))
    _arguments.check_groups(group, n_groups, weight, n)
    return _kernels.sum_dense(X, kind, group, n_groups, weight, n_threads(threads))


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
    """Do what `sum_dense` does on a sparse matrix in compressed rows.

    Parameters
    ----------
    indptr : int32 or int64 array of shape (n + 1,)
    indices : int32 or int64 array of shape (nnz,)
        Within one row no index may occur twice; this is the caller's promise (``sum_duplicates`` makes it so).
    data : array of shape (nnz,), any type `sum_dense` takes
    n_columns : int
    kind, group, n_groups, weight, threads
        As in `sum_dense`.

    Returns
    -------
    weight, total, log_base
        As `sum_dense` gives for the dense matrix.

    Raises
    ------
    CellError
        At the first stored cell, by row then column, that the kind forbids.
    IndexError
        Where indptr or indices point outside the matrix.

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
    return _kernels.sum_csr(indptr, indices, data, n_columns, kind, group, n_groups, weight, threads)


def sum_moments(
    X: Columns,
    anchor: Sequence[float] | Float64Array,
    group: AnyArray | None,
    n_groups: int,
    weight: Float64Array | None = None,
    threads: int = 0,
) -> Moments:
    """Sum weights, distances from an anchor and their squares, each as a double-double pair.

    With v = x − anchor, rounded once to float64, the pairs high + low hold Σw, Σw·v and Σw·v² to about 1e-30 of the
    sum of the terms' magnitudes, so that rows can be subtracted again later.

    Sums with soft weights, one for every row and group, are never subtracted: blocks of rows are added up in float64
    near the group's mean, then moved to the anchor. Weight, mean and scatter are good to about 1e-13.

    Parameters
    ----------
    X : (n, d) array or list of d (n,) arrays, any integer type, float32 or float64
        NaN is a missing cell and skipped. Integers beyond 2⁵³ are rounded to float64 first.
    anchor : sequence of d float
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
        At the first cell, by row then column, that is infinite or whose w·v² exceeds 1e300 (further than 1e150 from the
        anchor): the sum of its like would overflow.

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes import kernels
    >>> moments = kernels.sum_moments(np.array([[1.0], [2.0], [4.0]]), [0.0], None, 1)
    >>> [float(sums[0, 0]) for sums in moments]
    [3.0, 0.0, 7.0, 0.0, 21.0, 0.0]
    """
    n, d = _arguments.check_columns(X, "X", _arguments.MOMENT_TYPES, _arguments.known_rows(group, weight))
    anchors = _arguments.check_anchor(anchor, d)
    _arguments.check_groups(group, n_groups, weight, n)
    return _kernels.sum_moments(X, anchors, group, n_groups, weight, n_threads(threads))


def sum_scatter(
    X: Columns,
    anchor: Sequence[float] | Float64Array,
    group: AnyArray | None,
    n_groups: int,
    weight: Float64Array | None = None,
    threads: int = 0,
) -> Moments:
    """Sum weights, distances from an anchor and their outer products, each as a double-double pair.

    Blocks of rows are centered near their mean, multiplied in float64, then moved to the anchor and added in
    double-double arithmetic: good to about 1e-15 of the scatter (1e-13 with soft weights) however far the anchor is.

    Parameters
    ----------
    X : (n, d) array or list of d (n,) arrays, any integer type, float32 or float64
    anchor : sequence of d float
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
        At the first cell, by row then column, that is NaN or infinite, or whose w·(x − anchor)² exceeds 1e300.

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes import kernels
    >>> X = np.array([[1.0, 2.0], [3.0, 5.0]])
    >>> kernels.sum_scatter(X, [0.0, 0.0], None, 1)[4]
    array([[[10., 17.],
            [17., 29.]]])
    """
    n, d = _arguments.check_columns(X, "X", _arguments.MOMENT_TYPES, _arguments.known_rows(group, weight))
    anchors = _arguments.check_anchor(anchor, d)
    _arguments.check_groups(group, n_groups, weight, n)
    return _kernels.sum_scatter(X, anchors, group, n_groups, weight, n_threads(threads))


def squared_lengths(
    X: Columns, center: Float64Array, roots: Float64Array, shifts: Float64Array, threads: int = 0
) -> Float64Array:
    """Squared Mahalanobis lengths: ‖A(x − center) − shift‖² of every row, for several lower triangular A.

    Parameters
    ----------
    X : (n, d) array or list of d (n,) arrays, any integer type, float32 or float64
    center : float64 array of shape (d,)
        Taken from every row first, so that the products keep their digits.
    roots : float64 array of shape (K, d, d)
        Lower triangular matrices; what is above the diagonal is not read.
    shifts : float64 array of shape (K, d)
    threads : int
        0 for as many as there are cores.

    Returns
    -------
    float64 array of shape (n, K)
        NaN where a cell of the row is NaN.

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes import kernels
    >>> kernels.squared_lengths(np.array([[3.0, 4.0]]), np.zeros(2), np.eye(2)[None], np.zeros((1, 2)))
    array([[25.]])
    """
    n, d = _arguments.check_columns(X, "X", _arguments.MOMENT_TYPES, None)
    roots, shifts = np.ascontiguousarray(roots, dtype=np.float64), np.ascontiguousarray(shifts, dtype=np.float64)
    if roots.ndim != 3 or roots.shape[1:] != (d, d) or shifts.shape != (len(roots), d):
        raise ValueError(
            f"roots and shifts have shapes {roots.shape} and {shifts.shape}, expected (K, {d}, {d}), (K, {d})"
        )
    middle = _arguments.check_anchor(center, d)
    if n == 0 or d == 0:
        return np.zeros((n, len(roots)))
    workers = n_threads(threads)
    return _kernels.squared_lengths(X, middle, roots.reshape(-1), shifts.reshape(-1), len(roots), workers)


def read_bytes(array: AnyArray, threads: int = 0) -> int:
    """Read every byte of a contiguous array as fast as the machine can: the floor that benchmarks compare with.

    Parameters
    ----------
    array : contiguous array
    threads : int
        See the module's conventions.

    Returns
    -------
    int
        The bytes, taken eight at a time as unsigned numbers, added up modulo 2⁶⁴.

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes import kernels
    >>> kernels.read_bytes(np.array([1, 2, 3], dtype=np.uint64))
    6
    """
    if not (array.flags.c_contiguous or array.flags.f_contiguous):
        raise ValueError(f"the array of shape {array.shape} and strides {array.strides} is not contiguous")
    return int(_kernels.read_bytes(array, n_threads(threads)))

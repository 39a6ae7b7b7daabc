"""LDLᵀ decomposition: symmetric equations in double-double arithmetic, with detection of collinear columns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tallybayes.statistics.double_double import DoubleDouble

# A pivot below this multiple of the column's squared norm means that the column depends linearly on earlier ones.
_DEPENDENT = 1e-14
_MAX_DOUBLE_DOUBLE = 64  # more columns are solved in float64 with iterative refinement, which is faster


class LDLSolution(NamedTuple):
    """Solution of A x = b for a symmetric positive semidefinite matrix A."""

    root: np.ndarray  # (…, p, p), lower triangular: A = root · rootᵀ; columns of dependent columns are 0
    dependent: np.ndarray  # (…, p): whether a column is a linear combination of earlier columns
    solution: DoubleDouble  # (…, p, k); 0 for dependent columns


def solve_ldl(matrix: DoubleDouble, right: DoubleDouble) -> LDLSolution:
    """Solve A x = b by the LDLᵀ decomposition, in the order of the columns.

    A column is dependent if less than 1e-7 of its norm is orthogonal to earlier columns, as in R's ``lm``. Its
    coefficient is 0.

    Parameters
    ----------
    matrix : DoubleDouble of shape (…, p, p)
    right : DoubleDouble of shape (…, p, k)

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes.statistics.double_double import DoubleDouble
    >>> from tallybayes.statistics.ldl_solver import solve_ldl
    >>> solved = solve_ldl(*map(DoubleDouble.of, (np.array([[4.0, 2.0], [2.0, 3.0]]), np.array([[2.0], [5.0]]))))
    >>> solved.solution.value.ravel(), solved.dependent
    (array([-0.5,  2. ]), array([False, False]))
    """
    p = matrix.shape[-1]
    size = np.diagonal(matrix.high, axis1=-2, axis2=-1)
    usual = np.asarray((size > 0) & np.isfinite(size))
    # Scale by powers of two, which rounds nothing, so that every diagonal element is about 1.
    scale = np.where(usual, np.ldexp(1.0, -np.round(np.log2(np.where(usual, size, 1.0)) / 2).astype(int)), 0.0)
    matrix = matrix.scaled(scale[..., :, None]).scaled(scale[..., None, :])
    right = right.scaled(scale[..., :, None])
    solve = _in_double_double if p <= _MAX_DOUBLE_DOUBLE else _in_float64
    root, dependent, solution = solve(matrix, right)
    inverse = np.where(usual, 1.0 / np.where(usual, scale, 1.0), 0.0)
    return LDLSolution(root * inverse[..., :, None], dependent, solution.scaled(scale[..., :, None]))


def _in_double_double(matrix: DoubleDouble, right: DoubleDouble) -> tuple[np.ndarray, np.ndarray, DoubleDouble]:
    """Return root, dependent columns and solution by elimination in double-double arithmetic."""
    p = matrix.shape[-1]
    size = np.diagonal(matrix.high, axis1=-2, axis2=-1)
    rest = DoubleDouble(*(np.concatenate([a, b], axis=-1) for a, b in zip(_parts(matrix), _parts(right), strict=True)))
    rows: list[DoubleDouble] = []  # of every column: the eliminated row divided by its pivot
    dependent = np.zeros(size.shape, dtype=bool)
    root = np.zeros(matrix.shape)
    for j in range(p):
        pivot = rest[..., :1, :1]
        skip = ~(pivot.high[..., 0, 0] > _DEPENDENT * size[..., j])
        dependent[..., j] = skip
        skip = skip[..., None, None]
        pivot = DoubleDouble(np.where(skip, 1.0, pivot.high), np.where(skip, 0.0, pivot.low))
        row = rest[..., :1, :].where(~skip)
        divided = row / pivot
        rows.append(divided)
        root[..., j:, j] = (row.value[..., 0, : p - j]) / np.sqrt(pivot.value[..., 0])
        column = row[..., :, 1 : p - j].transposed()
        rest = rest[..., 1:, 1:] - column * divided[..., :, 1:]
    solution = DoubleDouble.zeros(right.shape)
    for j in reversed(range(p)):
        value = rows[j][..., :, p - j :]
        coefficients = rows[j][..., :, 1 : p - j].transposed()
        if j < p - 1:
            later = solution[..., j + 1 :, :]
            value = value - (coefficients * later).sum((-2,))[..., None, :]
        for part, target in zip(_parts(value), _parts(solution), strict=True):
            target[..., j, :] = np.where(dependent[..., j][..., None], 0.0, part[..., 0, :])
    return root, dependent, solution


def _in_float64(matrix: DoubleDouble, right: DoubleDouble) -> tuple[np.ndarray, np.ndarray, DoubleDouble]:
    """Return root, dependent columns and solution by Cholesky decomposition with iterative refinement.

    Residuals are computed in double-double arithmetic. Dependent columns are found by elimination column by column.
    """
    values = matrix.value
    try:
        root = np.linalg.cholesky(values)
        pivots = np.diagonal(root, axis1=-2, axis2=-1) ** 2
        dependent = pivots <= _DEPENDENT * np.diagonal(values, axis1=-2, axis2=-1)
    except np.linalg.LinAlgError:
        dependent = np.ones(values.shape[:-1], dtype=bool)
    if dependent.any():
        root, dependent = _by_column(values)
    kept = ~dependent
    both = kept[..., :, None] & kept[..., None, :]
    square = np.where(both, root, np.eye(values.shape[-1]))
    matrix = matrix.where(both)
    right = right.where(kept[..., None])
    solution = DoubleDouble.zeros(right.shape)
    for _ in range(3):
        residual = (right - _product(matrix, solution)).value
        half = np.linalg.solve(square, residual)
        step = np.linalg.solve(np.swapaxes(square, -1, -2), half)
        solution = solution + DoubleDouble.of(np.where(kept[..., None], step, 0.0))
    return root, dependent, solution


def _by_column(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return Cholesky roots of matrices without the columns that depend on earlier ones, and these columns."""
    p = values.shape[-1]
    root = np.zeros(values.shape)
    dependent = np.zeros(values.shape[:-1], dtype=bool)
    for j in range(p):
        rest = values[..., j:, j] - (root[..., j:, :j] @ root[..., j, :j, None])[..., 0]
        skip = ~(rest[..., 0] > 16 * _DEPENDENT * values[..., j, j])
        dependent[..., j] = skip
        pivot = np.sqrt(np.where(skip, 1.0, rest[..., 0]))
        root[..., j:, j] = np.where(skip[..., None], 0.0, rest / pivot[..., None])
    return root, dependent


def _product(matrix: DoubleDouble, right: DoubleDouble) -> DoubleDouble:
    """Return the product of matrices (…, p, p) and (…, p, k), one column of the latter at a time."""
    columns = []
    for k in range(right.shape[-1]):
        vector = right[..., None, :, k]
        columns.append((matrix * vector).sum((-1,)))
    parts = zip(*map(_parts, columns), strict=True) if columns else ((np.zeros(right.shape),),) * 2
    return DoubleDouble(*(np.stack(part, axis=-1) if columns else part[0] for part in parts))


def _parts(array: DoubleDouble) -> tuple[np.ndarray, np.ndarray]:
    """Return high and low parts."""
    return array.high, array.low


def minimum_norm_solution(matrix: DoubleDouble, solved: LDLSolution) -> DoubleDouble:
    """Return the solution of A x = b with the smallest Euclidean norm, which differs if A is singular."""
    combined = solve_ldl(matrix, matrix).solution.value  # every column as a combination of independent columns
    out = [np.array(part) for part in _parts(solved.solution)]
    for group in np.ndindex(solved.dependent.shape[:-1]):
        dependent = solved.dependent[group]
        if dependent.any():
            null_space = np.eye(matrix.shape[-1])[:, dependent] - combined[group][:, dependent]
            basis = np.linalg.qr(null_space)[0]
            for k in range(out[0].shape[-1]):
                x = out[0][group][:, k]
                out[0][group][:, k] = x - basis @ (basis.T @ x)
                out[1][group][:, k] = 0.0
    return DoubleDouble(*out)

"""Elimination: symmetric equations solved in double-double arithmetic, columns that depend on others found."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tallybayes.statistics.double_double import DoubleDouble

_DEPENDENT = (
    1e-14  # of a column's square: what is left of it beyond the columns before it, below which it depends on them
)
_MOST = 64  # columns that are eliminated in double-double; more would take long, and are solved in float64


class LDLSolution(NamedTuple):
    """What elimination gives of A x = b, for symmetric A of no negative eigenvalue."""

    root: np.ndarray  # (…, p, p), lower: A = root · rootᵀ; the columns of what depends are 0
    dependent: np.ndarray  # (…, p): which columns are combinations of those before them
    solution: DoubleDouble  # (…, p, k); 0 for what depends


def solve_ldl(matrix: DoubleDouble, right: DoubleDouble) -> LDLSolution:
    """Solve A x = b by the LDLᵀ decomposition, in the order of the columns.

    A column is taken to depend on those before it where less than 1e-7 of its length is left beyond them, the rule of
    R's ``lm``; its x is 0.

    Parameters
    ----------
    matrix : DoubleDouble of shape (…, p, p)
    right : DoubleDouble of shape (…, p, k)

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes.statistics.double_double import DoubleDouble
    >>> from tallybayes.statistics.ldl_solver import solve_ldl
    >>> found = solve_ldl(*map(DoubleDouble.of, (np.array([[4.0, 2.0], [2.0, 3.0]]), np.array([[2.0], [5.0]]))))
    >>> found.solution.value.ravel(), found.dependent
    (array([-0.5,  2. ]), array([False, False]))
    """
    p = matrix.shape[-1]
    size = np.diagonal(matrix.high, axis1=-2, axis2=-1)
    usual = np.asarray((size > 0) & np.isfinite(size))
    # powers of two, so that nothing is rounded: every diagonal becomes about 1
    scale = np.where(usual, np.ldexp(1.0, -np.round(np.log2(np.where(usual, size, 1.0)) / 2).astype(int)), 0.0)
    matrix = matrix.map(lambda a: a * scale[..., :, None] * scale[..., None, :])
    right = right.map(lambda a: a * scale[..., :, None])
    solve = _in_double_double if p <= _MOST else _in_float64
    root, dependent, solution = solve(matrix, right)
    inverse = np.where(usual, 1.0 / np.where(usual, scale, 1.0), 0.0)
    return LDLSolution(root * inverse[..., :, None], dependent, solution.map(lambda a: a * scale[..., :, None]))


def _in_double_double(matrix: DoubleDouble, right: DoubleDouble) -> tuple[np.ndarray, np.ndarray, DoubleDouble]:
    p = matrix.shape[-1]
    size = np.diagonal(matrix.high, axis1=-2, axis2=-1)
    rest = DoubleDouble(*(np.concatenate([a, b], axis=-1) for a, b in zip(_parts(matrix), _parts(right), strict=True)))
    steps: list[tuple[DoubleDouble, DoubleDouble]] = []  # by column: the pivot, and its row over it
    dependent, root = np.zeros(size.shape, dtype=bool), np.zeros(matrix.shape)
    for j in range(p):
        pivot = rest.map(lambda a: a[..., :1, :1])
        gone = ~(pivot.high[..., 0, 0] > _DEPENDENT * size[..., j])
        dependent[..., j] = gone
        pivot = DoubleDouble(
            np.where(gone[..., None, None], 1.0, pivot.high), np.where(gone[..., None, None], 0.0, pivot.low)
        )
        row = rest.map(lambda a: np.where(gone[..., None, None], 0.0, a[..., :1, :]))  # noqa: B023
        over = row / pivot
        steps.append((pivot, over))
        root[..., j:, j] = (row.value[..., 0, : p - j]) / np.sqrt(pivot.value[..., 0])
        column = row.map(lambda a: np.swapaxes(a[..., :, 1 : p - j], -1, -2))  # noqa: B023
        rest = rest.map(lambda a: a[..., 1:, 1:]) - column * over.map(lambda a: a[..., :, 1:])
    found = DoubleDouble.zeros(right.shape)
    for j in reversed(range(p)):
        _, over = steps[j]
        value = over.map(lambda a: a[..., :, p - j :])  # noqa: B023
        after = over.map(lambda a: np.swapaxes(a[..., :, 1 : p - j], -1, -2))  # noqa: B023
        if j < p - 1:
            value = value - (after * found.map(lambda a: a[..., j + 1 :, :])).sum((len(right.shape) - 2,)).map(  # noqa: B023
                lambda a: a[..., None, :]
            )
        for part, whole in zip(_parts(value), _parts(found), strict=True):
            whole[..., j, :] = np.where(dependent[..., j][..., None], 0.0, part[..., 0, :])
    return root, dependent, found


def _in_float64(matrix: DoubleDouble, right: DoubleDouble) -> tuple[np.ndarray, np.ndarray, DoubleDouble]:
    """By Cholesky's roots, and residuals in double-double; column by column where one depends on others."""
    values = matrix.value
    try:
        root = np.linalg.cholesky(values)
        left = np.diagonal(root, axis1=-2, axis2=-1) ** 2
        dependent = left <= _DEPENDENT * np.diagonal(values, axis1=-2, axis2=-1)
    except np.linalg.LinAlgError:
        dependent = np.ones(values.shape[:-1], dtype=bool)
    if dependent.any():
        root, dependent = _by_column(values)
    kept = ~dependent
    both = kept[..., :, None] & kept[..., None, :]
    square = np.where(both, root, np.eye(values.shape[-1]))
    matrix = matrix.map(lambda a: np.where(both, a, 0.0))
    right = right.map(lambda a: np.where(kept[..., None], a, 0.0))
    found = DoubleDouble.zeros(right.shape)
    for _ in range(3):
        gap = (right - _product(matrix, found)).value
        half = np.linalg.solve(square, gap)
        step = np.linalg.solve(np.swapaxes(square, -1, -2), half)
        found = found + DoubleDouble.of(np.where(kept[..., None], step, 0.0))
    return root, dependent, found


def _by_column(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Roots of matrices, leaving out columns that depend on those before them."""
    p = values.shape[-1]
    root, dependent = np.zeros(values.shape), np.zeros(values.shape[:-1], dtype=bool)
    for j in range(p):
        rest = values[..., j:, j] - (root[..., j:, :j] @ root[..., j, :j, None])[..., 0]
        gone = ~(rest[..., 0] > 16 * _DEPENDENT * values[..., j, j])
        dependent[..., j] = gone
        pivot = np.sqrt(np.where(gone, 1.0, rest[..., 0]))
        root[..., j:, j] = np.where(gone[..., None], 0.0, rest / pivot[..., None])
    return root, dependent


def _product(matrix: DoubleDouble, right: DoubleDouble) -> DoubleDouble:
    """The product of matrices (…, p, p) and (…, p, k), column by column of the latter."""
    columns = []
    for k in range(right.shape[-1]):
        one = right.map(lambda a: a[..., None, :, k])  # noqa: B023
        columns.append((matrix * one).sum((len(matrix.shape) - 1,)))
    parts = zip(*map(_parts, columns), strict=True) if columns else ((np.zeros(right.shape),),) * 2
    return DoubleDouble(*(np.stack(part, axis=-1) if columns else part[0] for part in parts))


def _parts(array: DoubleDouble) -> tuple[np.ndarray, np.ndarray]:
    return array.high, array.low


def minimum_norm_solution(matrix: DoubleDouble, found: LDLSolution) -> DoubleDouble:
    """Of all solutions of A x = b, the shortest: where columns depend on others, x has them share what they explain."""
    combined = solve_ldl(matrix, matrix).solution.value  # every column as it follows from those that do not depend
    out = [np.array(part) for part in _parts(found.solution)]
    for group in np.ndindex(found.dependent.shape[:-1]):
        lost = found.dependent[group]
        if lost.any():
            silent = np.eye(matrix.shape[-1])[:, lost] - combined[group][:, lost]  # what changes no prediction
            basis = np.linalg.qr(silent)[0]
            for k in range(out[0].shape[-1]):
                x = out[0][group][:, k]
                out[0][group][:, k], out[1][group][:, k] = x - basis @ (basis.T @ x), 0.0
    return DoubleDouble(*out)

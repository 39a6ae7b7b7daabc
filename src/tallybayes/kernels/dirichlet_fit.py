"""The Dirichlet under which the counts of several groups are most probable, climbed to column by column."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallybayes.kernels.arguments import Float64Array, Int64Array
from tallybayes.kernels.reference import dirichlet_fit as _reference_dirichlet

__all__ = ["fit_dirichlet_newton"]


def fit_dirichlet_newton(
    counts: Float64Array, rows: Float64Array, many: Float64Array, sizes: Int64Array, n_levels: Int64Array
) -> Float64Array:
    """Concentrations that maximize Σ_groups [log Γ(A)/Γ(A + N) + Σ_k log Γ(α_k + n_k)/Γ(α_k)], per column; A = Σα.

    Of no more bits than add up exactly with whole counts, and 1 in a column without any.

    Parameters
    ----------
    counts : float64 array of shape (cells, groups)
        How often every group has a level, rising: which group has which count does not matter.
    rows : float64 array of shape (columns, groups)
        The sums over the levels of every column, rising.
    many : float64 array of shape (cells,)
        How many levels of its column a cell stands for, which were counted alike.
    sizes : int64 array of shape (columns,)
        The number of cells of every column.
    n_levels : int64 array of shape (columns,)
        The number of its levels.

    Returns
    -------
    float64 array of shape (cells,)

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes.kernels.dirichlet_fit import fit_dirichlet_newton
    >>> counts = np.array([[1.0, 4.0, 6.0], [3.0, 5.0, 9.0]])                        # a coin in three groups
    >>> rows, one = np.array([[9.0, 9.0, 10.0]]), np.array([2])
    >>> fit_dirichlet_newton(counts, rows, np.ones(2), one, one).round(2)
    array([2.48, 3.78])
    """
    n_cells, n_groups = counts.shape
    if sizes.sum() != n_cells or many.shape != (n_cells,) or rows.shape != (*sizes.shape, n_groups):
        raise ValueError(
            f"counts has shape {counts.shape}, rows {rows.shape}, many {many.shape} and sizes {sizes.shape}, expected "
            "(cells, groups), (columns, groups), (cells,) and (columns,)"
        )
    parts = (np.ascontiguousarray(part).reshape(-1) for part in (counts, rows, many, sizes, n_levels))
    found: Float64Array = _implementation().climb_dirichlet(*parts, n_groups)
    return found


def _implementation() -> Any:
    """Return the module that does the work: the compiled one, or the reference where that was chosen."""
    from tallybayes import kernels

    return _reference_dirichlet if kernels._kernels is kernels._reference else kernels._kernels

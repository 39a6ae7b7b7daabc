"""Maximum likelihood fit of Dirichlet distributions to the counts of several groups (empirical Bayes)."""

from __future__ import annotations

import numpy as np

from tallybayes.kernels.active import implementation_for
from tallybayes.kernels.arguments import Float64Array, Int64Array
from tallybayes.kernels.reference import dirichlet_fit as _reference

__all__ = ["fit_dirichlet_newton"]


def fit_dirichlet_newton(
    counts: Float64Array, rows: Float64Array, many: Float64Array, sizes: Int64Array, n_levels: Int64Array
) -> Float64Array:
    """Return the concentrations α of every column that maximize the Dirichlet–multinomial likelihood.

    The objective is Σ_groups [log Γ(A) − log Γ(A + N) + Σ_k log Γ(α_k + n_k) − log Γ(α_k)] with A = Σα. The results
    are rounded to so few bits that sums with integer counts are exact. Columns without counts have α = 1.

    Parameters
    ----------
    counts : float64 array of shape (cells, groups)
        Counts of every level, sorted in ascending order over the groups: the fit does not depend on their order.
    rows : float64 array of shape (columns, groups)
        Sums over the levels of every column, sorted in ascending order.
    many : float64 array of shape (cells,)
        Number of levels with these counts that a cell represents.
    sizes : int64 array of shape (columns,)
        Number of cells of every column.
    n_levels : int64 array of shape (columns,)
        Number of levels of every column.

    Returns
    -------
    float64 array of shape (cells,)

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes.kernels.dirichlet_fit import fit_dirichlet_newton
    >>> counts = np.array([[1.0, 4.0, 6.0], [3.0, 5.0, 9.0]])                        # a binary column in three groups
    >>> rows, two = np.array([[9.0, 9.0, 10.0]]), np.array([2])
    >>> fit_dirichlet_newton(counts, rows, np.ones(2), two, two).round(2)
    array([2.48, 3.78])
    """
    n_cells, n_groups = counts.shape
    if sizes.sum() != n_cells or many.shape != (n_cells,) or rows.shape != (*sizes.shape, n_groups):
        raise ValueError(
            f"counts has shape {counts.shape}, rows {rows.shape}, many {many.shape} and sizes {sizes.shape}, expected "
            "(cells, groups), (columns, groups), (cells,) and (columns,)"
        )
    parts = (np.ascontiguousarray(part).reshape(-1) for part in (counts, rows, many, sizes, n_levels))
    return np.asarray(implementation_for(_reference).climb_dirichlet(*parts, n_groups))

"""Protocol of cell validation: cells that a family rejects."""

from __future__ import annotations

import numpy as np

from tallybayes.errors import CellError
from tallybayes.families._shared.blocks import (
    SparseRows,
    first_infinite_cell,
)
from tallybayes.families._shared.joint_gaussian import (
    JointGaussian,
)
from tallybayes.families.bernoulli import Bernoulli
from tallybayes.families.binned import Binned
from tallybayes.families.binomial import Binomial
from tallybayes.families.continuous import (
    ContinuousFamily,
)
from tallybayes.families.family import (
    Family,
)
from tallybayes.families.log_normal import LogNormal
from tallybayes.families.poisson import Poisson
from tallybayes.families.protocols.closed_form import ClosedForm


def first_invalid_cell(family: Family, rows: np.ndarray | SparseRows) -> tuple[int, int] | None:
    """Return the row and column of the first cell that `collect` rejects, or None.

    Real columns accept NaN: full covariances predict from incomplete rows.
    """
    is_real = isinstance(family, Binned) or (isinstance(family, ContinuousFamily) and not family.transforms)
    if is_real and not isinstance(rows, SparseRows):
        return first_infinite_cell(rows)
    try:
        if family.cell_type != "codes":  # every code is valid
            family.collect(rows)
    except CellError as error:
        return error.row, error.column
    return None


@ClosedForm
def out_of_support(family: Family, x: np.ndarray) -> np.ndarray | None:
    """Return which finite cells have probability 0, as a bool array of the same shape, or None if unknown.

    If None, `out_of_support_cells` passes the distinct values to `first_invalid_cell`.
    """
    return None


@out_of_support.register(JointGaussian)
def _(family: JointGaussian, x: np.ndarray) -> np.ndarray:
    """Return False for every finite cell."""
    return np.zeros(np.shape(x), dtype=bool)


@out_of_support.register(Bernoulli)
def _(family: Bernoulli, x: np.ndarray) -> np.ndarray:
    """Return which cells are neither 0 nor 1."""
    return (x != 0) & (x != 1)


@out_of_support.register(Binomial)
def _(family: Binomial, x: np.ndarray) -> np.ndarray:
    """Return which cells are not integers from 0 to n."""
    return (x < 0) | (x > family.n) | (x != np.floor(x))


@out_of_support.register(LogNormal)
def _(family: LogNormal, x: np.ndarray) -> np.ndarray:
    """Return which cells are not positive."""
    return x <= 0


@out_of_support.register(Poisson)
def _(family: Poisson, x: np.ndarray) -> np.ndarray:
    """Return which cells are negative or not integers."""
    return (x < 0) | (x != np.floor(x))


def out_of_support_cells(family: Family, x: np.ndarray) -> np.ndarray:
    """Return which finite cells of an array a family rejects; by bisection over distinct values if it has no rule."""
    mask = out_of_support(family, x)
    if mask is not None:
        return mask & np.isfinite(x)
    values, inverse = np.unique(x, return_inverse=True)
    invalid = np.zeros(len(values), dtype=bool)
    pending = [np.flatnonzero(np.isfinite(values))]
    while pending:
        positions = pending.pop()
        if not len(positions) or first_invalid_cell(family, values[positions][:, None]) is None:
            continue
        if len(positions) == 1:
            invalid[positions] = True
        else:
            pending += np.array_split(positions, 2)
    return invalid[inverse].reshape(x.shape)

"""Weighted sums of the columns of a block, by group: the sufficient statistics of many families."""

from __future__ import annotations

import numpy as np

from tallybayes import kernels
from tallybayes.families._shared.blocks import Block, SparseRows, dense, n_columns
from tallybayes.statistics.moments import Moments


def sum_block(
    block: Block, kind: str, group: np.ndarray | None, n_groups: int, weight: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return weights, totals and log base measures of a dense or sparse block, as read-only arrays."""
    if isinstance(block, SparseRows):
        if block.missing_rows is not None and weight is not None and weight.ndim == 2:
            weight = np.where(block.missing_rows[:, None], 0.0, weight)
        elif block.missing_rows is not None:
            group = np.where(block.missing_rows, -1, np.int64(0) if group is None else group)
        sums = kernels.sum_csr(*block[:4], kind, group, n_groups, weight)
    else:
        sums = kernels.sum_dense(dense(block, kind), kind, group, n_groups, weight)
    for array in sums:
        array.setflags(write=False)
    return sums


def sum_columns(
    block: Block, group: np.ndarray | None = None, n_groups: int = 1, weight: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights and the weighted sums of columns of finite numbers, (groups, columns) each.

    Missing cells (NaN) are skipped; infinite ones raise an error.
    """
    columns = dense(block, "summed")
    zero = np.zeros(n_columns(columns))
    moments = Moments.from_kernel(zero, kernels.sum_moments(columns, zero, group, n_groups, weight))
    return moments.column_weights(), moments.first_sum.value

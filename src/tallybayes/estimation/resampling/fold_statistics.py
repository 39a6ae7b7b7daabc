"""Leave-fold-out statistics by subtraction: statistics of all rows minus those of each fold, in one array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tallybayes.statistics.moments import Moments
from tallybayes.statistics.sufficient_statistics import Statistics, subtract_counts


def leave_fold_out(counted: np.ndarray) -> np.ndarray:
    """Return counts (folds, …) without each fold, and those of all rows last: (folds + 1, …).

    One fold stays as it is.
    """
    if len(counted) == 1:
        return counted
    whole = counted.sum(axis=0)
    rest = subtract_counts(np.broadcast_to(whole, counted.shape), counted)
    return np.concatenate([rest, whole[None]])


def folds_as_columns(statistics: Statistics, n_folds: int) -> Any:
    """Return statistics of (folds · classes) groups as statistics of the classes, with one column per held-out fold.

    Columns are estimated independently, so all folds are estimated at once: first the columns without the first fold,
    then those without the second, …, and last those of all rows. With one fold, the statistics themselves.

    Parameters
    ----------
    statistics : Moments or Totals of shape (folds · classes,), without products of columns
    n_folds : int
    """
    if n_folds == 1:
        return statistics
    n_columns = statistics.n_columns
    n_classes = statistics.given_shape[0] // n_folds
    width = (n_folds + 1) * n_columns
    parted = statistics.reshape_groups((n_folds, n_classes))
    whole = parted.pool_first_axis()

    def repeated(array: np.ndarray) -> np.ndarray:
        return np.tile(np.broadcast_to(array, (n_classes, n_columns)), (1, n_folds + 1))

    def apart(array: np.ndarray) -> np.ndarray:
        out = np.zeros((n_classes, n_folds + 1, n_columns))  # nothing is subtracted from the last
        out[:, :n_folds] = np.broadcast_to(array, (n_folds, n_classes, n_columns)).swapaxes(0, 1)
        return out.reshape(n_classes, width)

    return _moved(whole, repeated, n_folds + 1).subtract_unchecked(_moved(parted, apart, n_folds + 1))


def _moved(statistics: Statistics, move: Callable[[np.ndarray], np.ndarray], times: int) -> Any:
    if not isinstance(statistics, Moments):
        return statistics._move(move)
    sums = (part.map(move) for part in (statistics.weight_sum, statistics.first_sum, statistics.second_sum))
    return Moments(np.tile(statistics.anchor, times), *sums)

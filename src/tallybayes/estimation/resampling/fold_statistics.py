"""What was counted by fold and class, without each fold: whole − fold, for all folds in one array."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallybayes.statistics.moments import Moments
from tallybayes.statistics.sufficient_statistics import subtract_counts


def leave_fold_out(counted: np.ndarray) -> np.ndarray:
    """Counts (folds, …) less those of each fold, and at the end all of them: (folds + 1, …). Of one fold, itself."""
    if len(counted) == 1:
        return counted
    whole = counted.sum(axis=0)
    rest = subtract_counts(np.broadcast_to(whole, counted.shape), counted)
    return np.concatenate([rest, whole[None]])


def folds_as_columns(statistics: Any, n_folds: int) -> Any:
    """Statistics of (folds · classes) groups as those of the classes, a column for each without every fold.

    Columns are estimated each by itself, so that all folds are estimated at once: first the columns without the first
    fold, then those without the second, …, and at the end those of all rows. Of one fold, the statistics themselves.

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
    whole = parted._map(lambda part: part.sum(axis=(0,)))

    def repeated(array: np.ndarray) -> np.ndarray:
        return np.tile(np.broadcast_to(array, (n_classes, n_columns)), (1, n_folds + 1))

    def apart(array: np.ndarray) -> np.ndarray:
        out = np.zeros((n_classes, n_folds + 1, n_columns))  # nothing is taken from the last
        out[:, :n_folds] = np.broadcast_to(array, (n_folds, n_classes, n_columns)).swapaxes(0, 1)
        return out.reshape(n_classes, width)

    return _moved(whole, repeated, n_folds + 1)._subtract(_moved(parted, apart, n_folds + 1))


def _moved(statistics: Any, move: Any, times: int) -> Any:
    if not isinstance(statistics, Moments):
        return statistics._move(move)
    sums = (part.map(move) for part in (statistics.weight_sum, statistics.first_sum, statistics.second_sum))
    return Moments(np.tile(statistics.anchor, times), *sums)

"""Cross-validation folds of the candidates, and counts without each fold."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from tallybayes.estimation.resampling.folds import rows_by_code
from tallybayes.models.classification.class_prior import log_class_prior
from tallybayes.statistics.counts import Counts
from tallybayes.statistics.sufficient_statistics import subtract_counts


class CountedFolds:
    """Rows with classes and folds. Statistics are counted once by fold and class; each fold is removed by subtraction.

    Parameters
    ----------
    codes : ndarray of int of shape (n,)
        The class codes; every class occurs.
    fold : ndarray of int of shape (n,)
    weight : ndarray of shape (n,), optional
    """

    def __init__(self, codes: np.ndarray, fold: np.ndarray, weight: np.ndarray | None) -> None:
        self.codes = codes
        self.fold = fold
        self.weight = weight
        self.n_classes = int(codes.max()) + 1
        self.n_folds = int(fold.max()) + 1

    @cached_property
    def group(self) -> np.ndarray:
        """The fold and class of each row as one code."""
        return self.fold.astype(np.intp) * self.n_classes + self.codes

    @cached_property
    def tests(self) -> list[np.ndarray]:
        """The row indices of each fold."""
        return rows_by_code(self.fold, self.n_folds)

    def by_fold_and_class(self) -> list[np.ndarray]:
        """Return the row indices of each class of each fold."""
        return rows_by_code(self.group, self.n_folds * self.n_classes)

    @cached_property
    def table(self) -> np.ndarray:
        """The total weight of each class in each fold, (folds, classes)."""
        size = self.n_folds * self.n_classes
        return np.bincount(self.group, self.weight, size).reshape(self.n_folds, -1).astype(np.float64)

    def without(self, counted: np.ndarray) -> np.ndarray:
        """Return sums over all folds minus those of each fold: (folds, …)."""
        total = np.broadcast_to(counted.sum(axis=0), counted.shape)
        return total - counted if self.weight is None else subtract_counts(total, counted)

    @cached_property
    def log_prior(self) -> np.ndarray:
        """log p(class) without each fold, (folds, classes)."""
        remaining = Counts(self.without(self.table), (self.n_classes,))
        return log_class_prior(None, tuple(range(self.n_classes)), remaining, "bayes")

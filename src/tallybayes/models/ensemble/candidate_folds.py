"""Folds: the rows that candidates are tried on, and what is counted of them without each fold."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from tallybayes.estimation.resampling.folds import rows_by_code
from tallybayes.models.classification.class_prior import log_class_prior
from tallybayes.statistics.counts import Counts
from tallybayes.statistics.sufficient_statistics import subtract_counts


class Folds:
    """Rows with their classes, in folds. Whatever is counted is counted once, by fold and class.

    Parameters
    ----------
    codes : ndarray of int of shape (n,)
        The classes, all of which occur.
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
        """The fold and class of every row as one number."""
        return self.fold.astype(np.intp) * self.n_classes + self.codes

    @cached_property
    def tests(self) -> list[np.ndarray]:
        """The rows of every fold."""
        return rows_by_code(self.fold, self.n_folds)

    def by_fold_and_class(self) -> list[np.ndarray]:
        """The rows of every class of every fold."""
        return rows_by_code(self.group, self.n_folds * self.n_classes)

    @cached_property
    def table(self) -> np.ndarray:
        """The weight of every class in every fold, (folds, classes)."""
        size = self.n_folds * self.n_classes
        return np.bincount(self.group, self.weight, size).reshape(self.n_folds, -1).astype(np.float64)

    def without(self, counted: np.ndarray) -> np.ndarray:
        """What is left of sums over all folds without each of them: (folds, …)."""
        whole = np.broadcast_to(counted.sum(axis=0), counted.shape)
        return whole - counted if self.weight is None else subtract_counts(whole, counted)

    @cached_property
    def log_prior(self) -> np.ndarray:
        """log p(class) without every fold, (folds, classes)."""
        rest = Counts(self.without(self.table), (self.n_classes,))
        return log_class_prior(None, tuple(range(self.n_classes)), rest, "bayes")

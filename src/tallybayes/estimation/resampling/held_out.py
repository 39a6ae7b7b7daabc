"""HoldOut: rows or sequences held out of a fitted model of any kind, and the model of the rest.

The statistics of the held-out rows are subtracted from those of all rows. After EM, the model is refitted instead.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from tallybayes._utils.progress import progress
from tallybayes.data.table import Table
from tallybayes.errors import PriorError
from tallybayes.estimation.resampling.folds import Folds
from tallybayes.estimation.scoring.bayes_rule import ClassPosterior
from tallybayes.families.estimates import read_estimate
from tallybayes.statistics.sufficient_statistics import Statistics
from tallybayes.tally.tally import Tally


class HoldOut(ABC):
    """Rows or sequences that can be held out of a model, by number.

    Attributes
    ----------
    full_model : fitted model
        The model of all rows; its priors and levels are fixed.
    codes : ndarray of int of shape (n,)
        The class codes, for stratified folds; −1 for rows without a label, which are training rows only.
    weight : ndarray of shape (n,), or None
    """

    full_model: Any
    codes: np.ndarray
    weight: np.ndarray | None

    @property
    def requires_refit(self) -> bool:
        """Return whether the statistics cannot be subtracted, so that every model is refitted."""
        return bool(self.full_model.tally_.soft)

    @abstractmethod
    def fit(self, model: Any, chosen: np.ndarray) -> Any:
        """Return the model fitted to some rows."""

    @abstractmethod
    def count(self, chosen: np.ndarray) -> Tally:
        """Return the tally of some rows."""

    @abstractmethod
    def score(self, folds: Folds) -> Any:
        """Return the predictions of every row by the model without its fold; NaN for rows that are not predicted."""

    def with_model(self, model: Any) -> Self:
        """Return the same rows with another model of their counts."""
        other = copy.copy(self)
        other.full_model = model
        return other

    def models(self, folds: Folds) -> Iterator[tuple[np.ndarray, Any]]:
        """Yield the rows to predict of every fold that has any, and the model without the fold."""
        tests = [(number, test) for number, test in enumerate(folds.tests()) if len(test)]
        for number, test in progress(tests, "fitting without each fold" if self.requires_refit else "holding out"):
            yield test, self.model_without(folds.held_out(number))

    def model_without(self, out: np.ndarray) -> Any:
        """Return the model of all other rows, with the priors and levels of the full model."""
        if not self.requires_refit:
            return self.full_model._with_tally(self.tally_without(out))
        whole = self.full_model
        other = self._fit_again(np.delete(np.arange(len(self.codes)), out))
        return whole._with_tally(other.tally_.reindex_like(whole.tally_)) if hasattr(whole, "_with_tally") else other

    def tally_without(self, out: np.ndarray) -> Tally:
        """Return the tally of all other rows, over the levels of all rows."""
        whole: Tally = self.full_model.tally_
        if 2 * len(out) > len(self.codes):
            return self.count(np.delete(np.arange(len(self.codes)), out)).reindex_like(whole)
        return subtract_tally(whole, self.count(out).reindex_like(whole).statistics)

    def _fit_again(self, chosen: np.ndarray) -> Any:
        """Return the model refitted to some rows, with the priors of the full model."""
        model = clone(self.full_model)
        if not hasattr(model, "prior") or not read_estimate(model.estimate).has_prior:
            return self.fit(model, chosen)
        try:
            return self.fit(clone(model).set_params(prior=self.full_model.prior_), chosen)
        except PriorError:  # a prior array by levels, if some levels are absent in these rows
            return self.fit(model, chosen)

    def some_weight(self, chosen: slice | np.ndarray) -> np.ndarray | None:
        """Return the weights of some rows."""
        return None if self.weight is None else self.weight[chosen]


class HoldOutRows(HoldOut):
    """Rows of a table, predicted one by one."""

    table: Table
    n_classes: int  # 0 if only the density of rows is evaluated

    @abstractmethod
    def predict_rows(self, model: Any, chosen: np.ndarray) -> ClassPosterior:
        """Return log p(class | row) and log p(row) of some rows under a model."""

    def empty_scores(self) -> ClassPosterior:
        """Return arrays for the predictions of all rows, filled with NaN."""
        n_rows = len(self.codes)
        return ClassPosterior(np.full((n_rows, self.n_classes), np.nan), np.full(n_rows, np.nan))

    def score(self, folds: Folds) -> ClassPosterior:
        """Return the predictions of every row by the model without its fold; NaN for rows that are not predicted."""
        out = self.empty_scores()
        for test, model in self.models(folds):
            out.log_proba[test], out.log_density[test] = self.predict_rows(model, test)
        return out


def subtract_tally(whole: Tally, part: Sequence[Statistics]) -> Tally:
    """Return a tally minus the statistics of a part of its rows, over the same levels."""
    return with_statistics(whole, [a.subtract_unchecked(b) for a, b in zip(whole.statistics, part, strict=True)])


def with_statistics(like: Tally, statistics: Sequence[Statistics]) -> Tally:
    """Return a tally with other statistics over the same levels."""
    return Tally(like.factors, statistics, like.domains, like.schema)

"""HoldOut: rows or sequences held out of a fitted model of any kind, and the model of the rest.

The statistics of the held-out rows are subtracted from those of all rows. After EM, the model is refitted instead.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from tallybayes._utils.progress import progress
from tallybayes.data.table import Table
from tallybayes.errors import PriorError
from tallybayes.estimation.resampling.folds import rows_by_code
from tallybayes.estimation.scoring.bayes_rule import ClassPosterior
from tallybayes.families.estimates import read_estimate
from tallybayes.statistics.sufficient_statistics import Statistics
from tallybayes.tally.tally import Tally


class Split(NamedTuple):
    """The row numbers to predict, and those to leave out of the training rows; all others are training rows."""

    test: np.ndarray
    out: np.ndarray


def kfold_splits(fold: np.ndarray, held: np.ndarray) -> list[Split]:
    """Yield every fold against all others. Only rows of `held` are predicted.

    Rows of fold −1 are training rows always.
    """
    return [Split(part[held[part]], part) for part in rows_by_code(fold, int(fold.max(initial=-1)) + 1)]


def forward_splits(stretch: np.ndarray, held: np.ndarray) -> list[Split]:
    """Yield every time interval but the first, against all earlier ones."""
    parts = rows_by_code(stretch, int(stretch.max(initial=-1)) + 1)
    return [Split(part[held[part]], np.flatnonzero(stretch >= k)) for k, part in enumerate(parts) if k]


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

    def models(self, splits: list[Split]) -> Iterator[tuple[np.ndarray, Any]]:
        """Yield the rows to predict, and the model without them."""
        asked = [split for split in splits if len(split.test)]
        for test, out in progress(asked, "fitting without each fold" if self.requires_refit else "holding out"):
            yield test, self.model_without(out)

    def model_without(self, out: np.ndarray) -> Any:
        """Return the model of all other rows, with the priors and levels of the full model."""
        whole = self.full_model
        every = np.arange(len(self.codes))
        if self.requires_refit:
            other = self._fit_again(np.delete(every, out))
            if not hasattr(whole, "_with_tally"):
                return other
            tally = other.tally_.reindex_like(whole.tally_)
        elif 2 * len(out) > len(every):
            tally = self.count(np.delete(every, out)).reindex_like(whole.tally_)
        else:
            tally = subtract_tally(whole.tally_, self.count(out))
        return whole._with_tally(tally)

    def _fit_again(self, chosen: np.ndarray) -> Any:
        """Return the model refitted to some rows, with the priors of the full model."""
        model = clone(self.full_model)
        if not hasattr(model, "prior") or not read_estimate(model.estimate).has_prior:
            return self.fit(model, chosen)
        try:
            return self.fit(clone(model).set_params(prior=self.full_model.prior_), chosen)
        except PriorError:  # a prior array by levels, if some levels are absent in these rows
            return self.fit(model, chosen)

    def some_weight(self, chosen: np.ndarray) -> np.ndarray | None:
        """Return the weights of some rows."""
        return None if self.weight is None else self.weight[chosen]


class HoldOutRows(HoldOut):
    """Rows of a table, predicted one by one."""

    table: Table
    n_classes: int  # 0 if only the density of rows is evaluated

    @abstractmethod
    def predict_rows(self, model: Any, chosen: np.ndarray) -> ClassPosterior:
        """Return log p(class | row) and log p(row) of some rows under a model."""

    def score(self, splits: list[Split]) -> ClassPosterior:
        """Return the predictions of every row by the model without it; NaN for rows that were not held out."""
        n_rows = len(self.codes)
        out = ClassPosterior(np.full((n_rows, self.n_classes), np.nan), np.full(n_rows, np.nan))
        for test, model in self.models(splits):
            out.log_proba[test], out.log_density[test] = self.predict_rows(model, test)
        return out


def subtract_tally(whole: Tally, gone: Tally) -> Tally:
    """Return a tally minus a part of it, over the same levels."""
    return with_statistics(whole, subtract_all(whole.statistics, gone.reindex_like(whole).statistics))


def subtract_all(whole: Sequence[Statistics], gone: Sequence[Statistics]) -> list[Statistics]:
    """Return the statistics of every factor minus those of a part of the rows."""
    return [a.subtract_unchecked(b) for a, b in zip(whole, gone, strict=True)]


def with_statistics(like: Tally, statistics: Sequence[Statistics]) -> Tally:
    """Return a tally with other statistics over the same levels."""
    return Tally(like.factors, statistics, like.domains, like.schema)

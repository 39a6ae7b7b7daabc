"""Held: rows or sequences held out of a model of any kind, and the model of the rest.

Where the counts are of rows, that is the whole less what is held out; where EM expected some, it is fitted again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from tallybayes._utils.progress import progress
from tallybayes.data.table import Table
from tallybayes.errors import PriorError
from tallybayes.estimation.resampling.folds import rows_by_code
from tallybayes.estimation.scoring.bayes_rule import ClassPosterior
from tallybayes.families.estimates import read_estimate
from tallybayes.tally.tally import Tally


class Split(NamedTuple):
    """What is asked about, and what is not learned from: by number. All else is learned from."""

    test: np.ndarray
    out: np.ndarray


def kfold_splits(fold: np.ndarray, held: np.ndarray) -> list[Split]:
    """Every fold against all others. Of a fold, only what is `held` is asked about; fold −1 is always learned from."""
    return [Split(part[held[part]], part) for part in rows_by_code(fold, int(fold.max(initial=-1)) + 1)]


def forward_splits(stretch: np.ndarray, held: np.ndarray) -> list[Split]:
    """Every stretch of time but the first against all before it."""
    parts = rows_by_code(stretch, int(stretch.max(initial=-1)) + 1)
    return [Split(part[held[part]], np.flatnonzero(stretch >= k)) for k, part in enumerate(parts) if k]


class HoldOut(ABC):
    """What can be held out of a model: rows or sequences, by number.

    Attributes
    ----------
    whole : fitted model
        Of all of them: its priors and levels are held.
    codes : ndarray of int of shape (n,)
        Their classes, by which folds are made alike; −1 for what is only learned from, since nothing tells how well it
        was answered.
    weight : ndarray of shape (n,), or None
    """

    full_model: Any
    codes: np.ndarray
    weight: np.ndarray | None

    @property
    def requires_refit(self) -> bool:
        """Whether nothing can be subtracted, so that every model is fitted again."""
        return bool(self.full_model.tally_.soft)

    @abstractmethod
    def fit(self, model: Any, chosen: np.ndarray) -> Any:
        """The model fitted on some of them."""

    @abstractmethod
    def count(self, chosen: np.ndarray) -> Tally:
        """The tally of some of them."""

    def models(self, splits: list[Split]) -> Iterator[tuple[np.ndarray, Any]]:
        """What is asked about, and the model that has not seen it."""
        asked = [split for split in splits if len(split.test)]
        for test, out in progress(asked, "fitting without each fold" if self.requires_refit else "holding out"):
            yield test, self.model_without(out)

    def model_without(self, out: np.ndarray) -> Any:
        """The model of all others, its priors and levels those of all."""
        whole = self.full_model
        every = np.arange(len(self.codes))
        if self.requires_refit:
            other = self._fit_again(np.delete(every, out))
            return (
                whole._with_tally(other.tally_.reindex_like(whole.tally_)) if hasattr(whole, "_with_tally") else other
            )
        if 2 * len(out) > len(every):
            return whole._with_tally(self.count(np.delete(every, out)).reindex_like(whole.tally_))
        return whole._with_tally(subtract_tally(whole.tally_, self.count(out)))

    def _fit_again(self, chosen: np.ndarray) -> Any:
        """The model fitted on some of them; EM climbs under the priors of all."""
        model = clone(self.full_model)
        if not hasattr(model, "prior") or not read_estimate(model.estimate).has_prior:
            return self.fit(model, chosen)
        try:
            return self.fit(clone(model).set_params(prior=self.full_model.prior_), chosen)
        except PriorError:  # an array by levels, some of which are not there now; what EM expects hardly depends on it
            return self.fit(model, chosen)

    def some_weight(self, chosen: np.ndarray) -> np.ndarray | None:
        """The weights of some of them."""
        return None if self.weight is None else self.weight[chosen]


class HoldOutRows(HoldOut):
    """Rows of a table, answered one by one."""

    table: Table
    n_classes: int  # 0 where only the density of rows is told

    @abstractmethod
    def predict_rows(self, model: Any, chosen: np.ndarray) -> ClassPosterior:
        """What a model says of some rows: log p(class | row) and log p(row)."""

    def score(self, splits: list[Split]) -> ClassPosterior:
        """The answers about every row by the model that has not seen it; NaN for those that were not held out."""
        n_rows = len(self.codes)
        out = ClassPosterior(np.full((n_rows, self.n_classes), np.nan), np.full(n_rows, np.nan))
        for test, model in self.models(splits):
            out.log_proba[test], out.log_density[test] = self.predict_rows(model, test)
        return out


def subtract_tally(whole: Tally, gone: Tally) -> Tally:
    """A tally without what is known to be part of it, over the same levels."""
    pairs = zip(whole.statistics, gone.reindex_like(whole).statistics, strict=True)
    return Tally(whole.factors, [a._subtract(b) for a, b in pairs], whole.domains, whole.schema)

"""Stream: what a window and a fading model have in common: a model inside, a clock, and answers by the model."""

from __future__ import annotations

import copy
from typing import Any, Self

from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from tallybayes.errors import DataError
from tallybayes.models.estimator import Estimator
from tallybayes.models.streams.clock import Span, Times, read_times, shown, without_times


class Stream(Estimator):
    """The base of `Window` and `Decayed`: rows are learned as they come, and answers are those of ``model_``."""

    model: Any
    _now: Span | None = None
    _dated = False

    @property
    def now_(self) -> Any:
        """The latest time so far: a date or a number; the number of rows that came, where rows have no times."""
        check_is_fitted(self)
        assert self._now is not None
        return shown(self._now, dated=self._dated)

    @property
    def classes_(self) -> Any:
        """The classes that the model knows now."""
        return self.model_.classes_

    @property
    def n_rows_(self) -> float:
        """What the rows count that the model has."""
        check_is_fitted(self)
        return float(self.model_.n_rows_)

    def predict(self, X: Any) -> Any:
        """The model's answers about some rows.

        Parameters
        ----------
        X : as the model takes it
        """
        check_is_fitted(self)
        return self.model_.predict(X)

    def predict_proba(self, X: Any) -> Any:
        """The model's probabilities of some rows.

        Parameters
        ----------
        X : as the model takes it
        """
        check_is_fitted(self)
        return self.model_.predict_proba(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The model's score on some rows: of a classifier, the share whose class is predicted.

        Parameters
        ----------
        X, y, sample_weight : as the model takes them
        """
        check_is_fitted(self)
        return float(self.model_.score(X, y, sample_weight))

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, time: Any = None) -> Self:
        """As `partial_fit`, of a stream that begins here.

        Parameters
        ----------
        X, y, sample_weight, time
            As for `partial_fit`.

        Returns
        -------
        self
        """
        other = clone(self).partial_fit(X, y, sample_weight, time)
        self.__dict__.update(other.__dict__)
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None, time: Any = None) -> Self:
        """Each kind has its own."""
        raise NotImplementedError

    def _begun(self) -> Any:
        """The model to go on with: a copy, so that an error changes nothing."""
        if hasattr(self, "model_"):
            return copy.copy(self.model_)
        methods = [name for name in ("partial_fit", "forget", "without_rows") if not hasattr(self.model, name)]
        if methods or hasattr(self.model, "predict_pairs"):
            found = type(self.model).__name__ if hasattr(self.model, "get_params") else repr(self.model)[:60]
            raise DataError.wrong_type(
                "model", found, "a model of rows that learns and forgets", "Such as tb.NaiveBayes()."
            )
        if not self.model.__sklearn_is_fitted__():
            return clone(self.model)
        if self.model.n_rows_ > 0:
            raise DataError(
                f"the model has counted {self.model.n_rows_:.12g} rows already; expected one that is not fitted.\n"
                "    Keep its choices alone: model.without_rows()."
            )
        return copy.copy(self.model)

    def _timed(self, X: Any, n_rows: int, time: Any, *, dates: bool | None) -> tuple[Any, Times]:
        """The rows, and when they came: by their times, or one after the other where they have none."""
        if isinstance(time, str):
            X, time = without_times(X, time)
        times = read_times(time, n_rows)
        known = self._dated if self._now is not None else dates
        if known is not None and times.dated is not known:
            words = ("numbers", "dates")
            raise DataError.wrong_type("time", words[times.dated], f"{words[known]}, as it was said before")
        return X, times

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

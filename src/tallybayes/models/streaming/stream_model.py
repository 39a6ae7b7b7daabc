"""Stream: what a window and a fading model have in common: a model inside, a clock, and answers by the model."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from tallybayes._utils.progress import progress_of
from tallybayes.data.source import Source
from tallybayes.errors import DataError, NotForgettableError
from tallybayes.models.estimator import Estimator
from tallybayes.models.streaming.row_buffer import BufferedRows
from tallybayes.models.streaming.timestamps import Times, TimeSpan, When, read_times, shown, without_times
from tallybayes.typing import Labels, Rows, SampleWeights


class NewRows(NamedTuple):
    """What came at once."""

    X: Any  # as it was given, without its times; None of sequences
    kept: BufferedRows
    times: Times | None


class StreamModel(Estimator):
    """The base of `Window` and `Decayed`: rows are learned as they come, and answers are those of ``model_``."""

    model: Estimator
    _now: TimeSpan | None = None
    _uses_datetimes = False
    _time_column: str | None = None

    @property
    def now_(self) -> float | np.datetime64:
        """The latest time so far: a date or a number; the number of rows that came, where rows have no times."""
        check_is_fitted(self)
        assert self._now is not None
        return shown(self._now, dated=self._uses_datetimes)

    @property
    def classes_(self) -> np.ndarray:
        """The classes that the model knows now."""
        return self.model_.classes_

    @property
    def n_rows_(self) -> float:
        """What the rows count that the model has."""
        check_is_fitted(self)
        return float(self.model_.n_rows_)

    @property
    def time_(self) -> str | None:
        """The column that tells when rows came, where it was said by name: that of the rows to come, too."""
        check_is_fitted(self)
        return self._time_column

    def predict(self, X: Rows, **asked: Any) -> Any:
        """The model's answers about some rows.

        Parameters
        ----------
        X, **asked : as the model takes them
        """
        check_is_fitted(self)
        return self.model_.predict(X, **asked)

    def predict_proba(self, X: Rows, **asked: Any) -> Any:
        """The model's probabilities of some rows.

        Parameters
        ----------
        X, **asked : as the model takes them
        """
        check_is_fitted(self)
        return self.model_.predict_proba(X, **asked)

    def score(self, X: Rows, y: Labels, sample_weight: SampleWeights = None) -> float:
        """The model's score on some rows: of a classifier, the share whose class is predicted.

        Parameters
        ----------
        X, y, sample_weight : as the model takes them
        """
        check_is_fitted(self)
        weight = {} if sample_weight is None else {"sample_weight": sample_weight}
        return float(self.model_.score(X, y, **weight))

    def fit(
        self,
        X: Rows,
        y: Labels | None = None,
        sample_weight: SampleWeights = None,
        time: When | None = None,
        *,
        lengths: npt.ArrayLike | None = None,
        sequence: str | None = None,
        order: str | None = None,
    ) -> Self:
        """As `partial_fit`, of a stream that begins here.

        Parameters
        ----------
        X, y, sample_weight, time, lengths, sequence, order
            As for `partial_fit`.

        Returns
        -------
        self
        """
        how: dict[str, Any] = {"lengths": lengths, "sequence": sequence, "order": order}
        other = clone(self).partial_fit(X, y, sample_weight, time, **how)
        for name in [name for name in vars(self) if name not in vars(other)]:
            delattr(self, name)
        self.__dict__.update(other.__dict__)
        return self

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        time: When | None = None,
        *,
        lengths: Any = None,
        sequence: str | None = None,
        order: str | None = None,
    ) -> Self:
        """Each kind has its own."""
        raise NotImplementedError

    @property
    def _of_sequences(self) -> bool:
        """Whether what comes and goes is not a row, but a sequence of them."""
        return hasattr(self.model, "predict_transition_proba")

    def _model_to_update(self) -> Any:
        """The model to go on with: a copy, so that an error changes nothing."""
        if hasattr(self, "model_"):
            return copy.copy(self.model_)
        methods = [name for name in ("partial_fit", "forget", "without_rows") if not hasattr(self.model, name)]
        if methods or isinstance(self.model, type):
            found = type(self.model).__name__ if hasattr(self.model, "get_params") else repr(self.model)[:60]
            hint = "Write brackets after it." if isinstance(self.model, type) else "Such as tb.NaiveBayes()."
            raise DataError.wrong_type("model", found, "a model that learns and forgets", hint)
        if getattr(self.model, "components", None) is not None or getattr(self.model, "gaps", None) is not None:
            setting = "components" if self.model.components is not None else "gaps"
            raise NotForgettableError(
                f"the model has {setting}=, which EM learns from all sequences at once, and a stream counts them one "
                f"by one.\n    Leave {setting}= out."
            )
        if not self.model.__sklearn_is_fitted__():
            return clone(self.model)
        if self.model.n_rows_ > 0:
            raise DataError(
                f"the model has counted {self.model.n_rows_:.12g} rows already; expected one that is not fitted.\n"
                "    Keep its choices alone: model.without_rows()."
            )
        return copy.copy(self.model)

    def _read(self, X: Any, y: Any, sample_weight: Any, time: Any, sequences: dict[str, Any]) -> NewRows:
        """What came, and when, if that is said."""
        told = {name: value for name, value in sequences.items() if value is not None}
        if not self._of_sequences:
            if told:
                raise DataError(f"{next(iter(told))}= is of sequences; a {type(self.model).__name__} is of rows.")
            if isinstance(time, str):
                X, time = without_times(X, time)
            kept = BufferedRows.read(X, y, sample_weight)
            return NewRows(X, kept, None if time is None else read_times(time, kept.n))
        kept = BufferedRows.read_sequences(X, y, sample_weight, told)
        if not isinstance(time, str):
            return NewRows(None, kept, None if time is None else read_times(time, kept.n))
        assert kept.offsets is not None
        table, column = without_times(kept.table, time)
        return NewRows(None, kept._replace(table=table), _last_of(read_times(column, table.n_rows), kept.offsets))

    def _fit_batches(self, source: Source, y: Any, sample_weight: Any, time: Any, how: dict[str, Any]) -> Self:
        """Learn the rows of a file or another source, batch by batch; an error on the way changes nothing."""
        other = copy.copy(self)
        what = type(self).__name__
        told = {"y": y, "sample_weight": sample_weight, "time": time}
        arrays = [name for name, value in told.items() if not isinstance(value, str | None)]
        if arrays:
            raise DataError.wrong_type(
                arrays[0], repr(told[arrays[0]])[:60], f"the name of a column, since {source.name} is read in batches"
            )
        parts = [source.read(what)] if self._of_sequences else source.read_ahead(None)
        for part in progress_of(parts, what, len, source.n_rows):
            other.partial_fit(part, **told, **how)
        if not hasattr(other, "model_"):
            raise DataError(f"{source.name} has 0 rows to learn from; expected at least 1.")
        self.__dict__.update(other.__dict__)
        return self

    def _check_times(self, times: Times, dates: bool | None) -> None:
        """Refuse numbers where dates came before, and dates where numbers did."""
        known = self._uses_datetimes if self._now is not None else dates
        if known is not None and times.dated is not known:
            words = ("numbers", "dates")
            hint = "A span of dates has a unit: timedelta(days=30), or 30d on the command line." if times.dated else ""
            raise DataError.wrong_type("time", words[times.dated], f"{words[known]}, as it was said before", hint)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")


def inner_model(model: Any) -> Any:
    """The model that answers: of a stream that has begun, the one in it."""
    return model.model_ if isinstance(model, StreamModel) and hasattr(model, "model_") else model


def scaled(model: Any, factor: float) -> Any:
    """A model whose rows count so many times as much; of one that is made of others, each of them."""
    other = copy.copy(model)
    if hasattr(model, "members_"):
        other.members_ = [one._replace(model=scaled(one.model, factor)) for one in model.members_]
        return other
    return other._update_tally(model.tally_.scale(factor))


def _last_of(times: Times, offsets: np.ndarray) -> Times:
    """When each sequence was whole: the latest time of its steps."""
    empty = np.flatnonzero(np.diff(offsets) == 0)
    if len(empty):
        raise DataError(
            f"sequence {empty[0]} has no step, and so no time; expected one for every sequence.\n"
            "    Pass time= as a list, one for every sequence, or leave such sequences out."
        )
    latest = np.maximum.reduceat(times.values, offsets[:-1]) if len(offsets) > 1 else times.values[:0]
    return Times(latest, times.dated)

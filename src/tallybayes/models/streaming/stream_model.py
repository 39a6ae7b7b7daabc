"""StreamModel: the base class of sliding windows and decayed models."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from tallybayes._utils.fitted import check_is_fitted
from tallybayes._utils.progress import progress_of
from tallybayes.data.source import Source
from tallybayes.errors import DataError, NotForgettableError, short_repr
from tallybayes.models.estimator import Estimator
from tallybayes.models.streaming.row_buffer import BufferedRows
from tallybayes.models.streaming.timestamps import Times, TimeSpan, When, read_times, shown, without_times
from tallybayes.typing import Labels, Rows, SampleWeights


class NewRows(NamedTuple):
    """The rows of one call, and their times."""

    X: Any  # the rows as passed, without the time column; None for sequences
    buffered: BufferedRows
    times: Times | None


class StreamModel(Estimator):
    """Base class of `Window` and `Decayed`: it counts rows as they arrive; ``model_`` makes the predictions."""

    model: Estimator
    _now: TimeSpan | None = None
    _uses_datetimes = False
    _time_column: str | None = None

    @property
    def now_(self) -> float | np.datetime64:
        """The latest time so far, a date or a number; without times, the number of rows that have arrived."""
        check_is_fitted(self)
        assert self._now is not None
        return shown(self._now, dated=self._uses_datetimes)

    @property
    def classes_(self) -> np.ndarray:
        """The current classes of ``model_``."""
        return self.model_.classes_

    @property
    def n_rows_(self) -> float:
        """The total weight of the rows in ``model_``."""
        check_is_fitted(self)
        return float(self.model_.n_rows_)

    @property
    def time_(self) -> str | None:
        """The name of the time column, if it was passed by name; later rows use it, too."""
        check_is_fitted(self)
        return self._time_column

    def predict(self, X: Rows, **options: Any) -> Any:
        """Return the predictions of ``model_``.

        Parameters
        ----------
        X, **options : as for `predict` of the model
        """
        check_is_fitted(self)
        return self.model_.predict(X, **options)

    def predict_proba(self, X: Rows, **options: Any) -> Any:
        """Return the predicted probabilities of ``model_``.

        Parameters
        ----------
        X, **options : as for `predict_proba` of the model
        """
        check_is_fitted(self)
        return self.model_.predict_proba(X, **options)

    def score(self, X: Rows, y: Labels, sample_weight: SampleWeights = None) -> float:
        """Return the score of ``model_``; for a classifier, the accuracy.

        Parameters
        ----------
        X, y, sample_weight : as for `score` of the model
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
        """Start a new stream with these rows, replacing any earlier state.

        Parameters
        ----------
        X, y, sample_weight, time, lengths, sequence, order
            As for `partial_fit`.

        Returns
        -------
        self
        """
        sequence_arguments: dict[str, Any] = {"lengths": lengths, "sequence": sequence, "order": order}
        other = clone(self).partial_fit(X, y, sample_weight, time, **sequence_arguments)
        for name in [name for name in vars(self) if name not in vars(other)]:
            delattr(self, name)
        self.__dict__.update(other.__dict__)
        return self

    def partial_fit(
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
        """Count new rows; subclasses implement it."""
        raise NotImplementedError

    @property
    def _of_sequences(self) -> bool:
        """Whether the units of the stream are sequences, not rows."""
        return hasattr(self.model, "predict_transition_proba")

    def _model_to_update(self) -> Any:
        """Return a copy of the model to update, so that an exception leaves the stream unchanged."""
        if hasattr(self, "model_"):
            return copy.copy(self.model_)
        methods = [name for name in ("partial_fit", "forget", "without_rows") if not hasattr(self.model, name)]
        if methods or isinstance(self.model, type):
            model = type(self.model).__name__ if hasattr(self.model, "get_params") else repr(self.model)[:60]
            hint = "Pass an instance." if isinstance(self.model, type) else "Such as tb.NaiveBayes()."
            raise DataError.wrong_type("model", model, "a model with partial_fit, forget and without_rows", hint)
        if getattr(self.model, "components", None) is not None or getattr(self.model, "gaps", None) is not None:
            setting = "components" if self.model.components is not None else "gaps"
            raise NotForgettableError(
                f"{setting}= needs EM over all sequences at once, but a stream counts them one "
                f"by one.\n    Remove {setting}=."
            )
        if not self.model.__sklearn_is_fitted__():
            return clone(self.model)
        if self.model.n_rows_ > 0:
            raise DataError(
                f"the model has counted {self.model.n_rows_:.12g} rows already; expected an unfitted model.\n"
                "    To keep its choices only, pass model.without_rows()."
            )
        return copy.copy(self.model)

    def _read(
        self,
        X: Rows,
        y: Labels | None,
        sample_weight: SampleWeights,
        time: When | None,
        sequences: dict[str, Any],
    ) -> NewRows:
        """Return the new rows as a buffer, and their times if given."""
        given = {name: value for name, value in sequences.items() if value is not None}
        if not self._of_sequences:
            if given:
                name = next(iter(given))
                raise DataError(
                    f"{name}= is a parameter of hidden Markov models; the model is {short_repr(self.model)}.\n"
                    f"    Omit {name}=, or pass a HiddenMarkovModel."
                )
            if isinstance(time, str):
                X, time = without_times(X, time)
            buffered = BufferedRows.read(X, y, sample_weight)
            return NewRows(X, buffered, None if time is None else read_times(time, buffered.n))
        buffered = BufferedRows.read_sequences(X, y, sample_weight, given)
        if not isinstance(time, str):
            return NewRows(None, buffered, None if time is None else read_times(time, buffered.n))
        assert buffered.offsets is not None
        table, column = without_times(buffered.table, time)
        return NewRows(
            None, replace(buffered, table=table), _last_of(read_times(column, table.n_rows), buffered.offsets)
        )

    def _fit_batches(
        self,
        source: Source,
        y: Labels | None,
        sample_weight: SampleWeights,
        time: When | None,
        sequence_arguments: dict[str, Any],
    ) -> Self:
        """Count the rows of a data source batch by batch; an exception leaves the stream unchanged."""
        other = copy.copy(self)
        what = type(self).__name__
        arguments: dict[str, Any] = {"y": y, "sample_weight": sample_weight, "time": time}
        arrays = [name for name, value in arguments.items() if not isinstance(value, str | None)]
        if arrays:
            raise DataError.wrong_type(
                arrays[0],
                repr(arguments[arrays[0]])[:60],
                f"the name of a column, since {source.name} is read in batches",
            )
        parts = [source.read(what)] if self._of_sequences else source.read_ahead(None)
        for part in progress_of(parts, what, len, source.n_rows):
            other.partial_fit(part, **arguments, **sequence_arguments)
        if not hasattr(other, "model_"):
            raise DataError(f"{source.name} has 0 rows to learn from; expected at least 1.")
        self.__dict__.update(other.__dict__)
        return self

    def _check_times(self, times: Times, dates: bool | None) -> None:
        """Raise DataError if numbers follow dates, or dates follow numbers."""
        known = self._uses_datetimes if self._now is not None else dates
        if known is not None and times.dated is not known:
            words = ("numbers", "dates")
            hint = "A span of dates has a unit: timedelta(days=30), or 30d on the command line." if times.dated else ""
            raise DataError.wrong_type("time", words[times.dated], f"{words[known]}, as in earlier calls", hint)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")


def inner_model(model: object) -> Any:
    """Return the model inside a fitted stream; any other model unchanged."""
    return model.model_ if isinstance(model, StreamModel) and hasattr(model, "model_") else model


def scaled(model: Any, factor: float) -> Any:
    """Return a copy of a model with its counts multiplied by a factor; of an ensemble, every member."""
    other = copy.copy(model)
    if hasattr(model, "members_"):
        other.members_ = [member._replace(model=scaled(member.model, factor)) for member in model.members_]
        return other
    if hasattr(model, "counts_"):
        return other._set(model.structure_, model.counts_.scale(factor))
    return other._update_tally(model.tally_.scale(factor))


def _last_of(times: Times, offsets: np.ndarray) -> Times:
    """Return the time of each sequence: the latest time of its steps."""
    empty = np.flatnonzero(np.diff(offsets) == 0)
    if len(empty):
        raise DataError(
            f"sequence {empty[0]} has no step, and so no time; expected at least 1 step per sequence.\n"
            "    Pass time= as a list with one time per sequence, or drop such sequences."
        )
    latest = np.maximum.reduceat(times.values, offsets[:-1]) if len(offsets) > 1 else times.values[:0]
    return Times(latest, times.dated)

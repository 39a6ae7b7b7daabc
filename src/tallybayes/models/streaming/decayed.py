"""Decayed: a model with exponential decay of the weights of old rows."""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from tallybayes._utils import sealed_file
from tallybayes._utils.fitted import check_is_fitted
from tallybayes.data.counting import LEAST_WEIGHT
from tallybayes.data.open_source import open_source
from tallybayes.errors import DataError, FileError, NotForgettableError, StatisticsError
from tallybayes.models.io import model_from_parts, model_to_parts
from tallybayes.models.streaming.stream_model import StreamModel, scaled
from tallybayes.models.streaming.timestamps import (
    Duration,
    Moment,
    Times,
    TimeSpan,
    When,
    format_span,
    read_span,
    read_times,
)
from tallybayes.typing import Labels, Rows, SampleWeights

if TYPE_CHECKING:
    from tallybayes.models.estimator import Estimator


class Decayed(StreamModel):
    """A model with exponential decay: the weight of a row halves after every half-life.

    A row of age a has weight 2^(−a / `half_life`) times its sample weight, whatever the batches and their order.
    ``model_`` equals a model fitted with those weights. Only the tally is scaled: no rows are stored, and none can be
    forgotten.

    Parameters
    ----------
    model : a model with `partial_fit` and `forget`
        For example `NaiveBayes`, `LinearRegression`, or a `HiddenMarkovModel` of labeled sequences. To reuse the
        choices of a fitted model, pass ``model.without_rows()``.
    half_life : number or timedelta
        In rows (or sequences), by arrival, if rows have no times; otherwise in the unit of their times.

    Attributes
    ----------
    model_ : the fitted model
    now_ : the latest time so far

    Examples
    --------
    >>> import tallybayes as tb
    >>> fading = tb.Decayed(tb.NaiveBayes(), half_life=2)
    >>> fading.partial_fit({"sky": ["sun", "rain", "fog"], "picnic": ["yes", "no", "no"]}, "picnic")
    Decayed with a half-life of 2: 2.20711 rows, NaiveBayes()
    >>> fading.model_.tally_["picnic"].table.round(3).tolist()  # no: 1 + 2**-0.5; yes: 2**-1
    [1.707, 0.5]
    """

    def __init__(self, model: Estimator, *, half_life: Duration) -> None:
        self.model = model
        self.half_life = half_life

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
        """Decay the counts by the time that has passed, then count new rows.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit` of the model.
        time : array-like of shape (n,), one number or date, or column name of X, optional
            The times of the rows, in any order: the weight of a late row does not depend on its arrival. The time
            column is not a feature. A column name holds for later calls, too. The time of a sequence is that of its
            last step. Without times, every row or sequence advances the clock by 1.
        lengths, sequence, order
            For sequences, as for `HiddenMarkovModel`.

        Returns
        -------
        self
        """
        half_life, uses_datetimes = read_span(self.half_life, "half_life")
        time = self._time_column if time is None else time
        if self._now is not None and (time is None) is not self._by_rows:
            what = "no time" if time is None else "a time"
            raise DataError(f"these rows have {what}, unlike earlier rows; expected the same for all rows of a stream.")
        if time is None and uses_datetimes:
            raise DataError(
                f"half_life is a duration, {self.half_life!r}, but the rows have no times.\n"
                "    Pass time=, or a half-life in rows."
            )
        model = self._model_to_update()
        source = open_source(X)
        sequence_arguments = {"lengths": lengths, "sequence": sequence, "order": order}
        if source is not None:
            return self._fit_batches(source, y, sample_weight, time, sequence_arguments)
        X, buffered, times = self._read(X, y, sample_weight, time, sequence_arguments)
        if times is None:
            ticks = np.arange(buffered.n, dtype=np.float64)
            times = Times(ticks + (0.0 if self._now is None else self._now) + 1, False)
        else:
            self._check_times(times, uses_datetimes or None)
        if buffered.n == 0:
            raise DataError("there are 0 rows to learn from; expected at least 1.")
        latest = times.values.max().item()
        now = latest if self._now is None else max(latest, self._now)
        weight = 2.0 ** ((times.values - now) / half_life)
        weight = weight if buffered.weight is None else weight * buffered.weight
        weight[weight < LEAST_WEIGHT] = 0.0  # below the least valid sample weight
        model = self._decayed_to(model, now)
        if X is None or isinstance(sample_weight, str):
            model = model.partial_fit(**replace(buffered, weight=weight).arguments())
        else:
            model = model.partial_fit(X, **({} if y is None else {"y": y}), sample_weight=weight)
        self._now = now
        self._uses_datetimes = times.dated
        self._by_rows = time is None
        self.model_ = model
        self._time_column = time if isinstance(time, str) else self._time_column
        return self

    def advance(self, time: Moment) -> Self:
        """Move the current time forward and decay the counts.

        Parameters
        ----------
        time : number or date
            The current time. A time before the latest so far has no effect.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        times = read_times(time, 1)
        self._check_times(times, None)
        assert self._now is not None
        now = max(self._now, times.values[0].item())
        self.model_ = self._decayed_to(self._model_to_update(), now)
        self._now = now
        return self

    def forget(self, *rows: object, **named: object) -> NoReturn:
        """Raise NotForgettableError: the current weight of a row depends on its time, which is not stored."""
        raise NotForgettableError(
            "rows of a decayed model cannot be forgotten: their current weights are not stored.\n"
            "    Their weights decay; tb.Window forgets rows exactly."
        )

    def __add__(self, other: Self) -> Self:
        if type(other) is not type(self):
            return NotImplemented
        for model in (self, other):
            check_is_fitted(model)
        if read_span(self.half_life, "half_life") != read_span(other.half_life, "half_life"):
            raise StatisticsError.incompatible("the half-lives", self.half_life, other.half_life)
        if (self._now, self._uses_datetimes) != (other._now, other._uses_datetimes):
            raise StatisticsError(
                f"the times of the models are {self.now_} and {other.now_}; expected the same.\n"
                "    Advance the earlier one first: advance(time)."
            )
        both = clone(self)
        both._now = self._now
        both._uses_datetimes = self._uses_datetimes
        both._by_rows = self._by_rows
        both._time_column = self._time_column
        both.model_ = self.model_ + other.model_
        return both

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model and its clock to a sealed file that `tb.load` reads.

        Parameters
        ----------
        path : str or path-like
        """
        check_is_fitted(self)
        content, arrays = model_to_parts(self.model_)
        half_life, uses_datetimes = read_span(self.half_life, "half_life")
        clock: dict[str, Any] = {
            "half_life": half_life,
            "spans_dates": uses_datetimes,
            "now": self._now,
            "dated": self._uses_datetimes,
        }
        clock |= {"by_rows": self._by_rows} | ({} if self._time_column is None else {"time": self._time_column})
        sealed_file.write(path, "Decayed", {"model": content, "clock": clock}, arrays)

    @classmethod
    def _from_manifest(cls, manifest: dict[str, Any], arrays: dict[str, np.ndarray]) -> Self:
        clock = manifest.pop("clock")
        model = model_from_parts(manifest.pop("model"), arrays)
        sealed_file.check_no_unknown_entries("the fading model", manifest)
        half_life = clock.pop("half_life")
        now = clock.pop("now")
        time = clock.pop("time", None)
        flags = [clock.pop(name) for name in ("spans_dates", "dated", "by_rows")]
        sealed_file.check_no_unknown_entries("the clock", clock)
        fits = (
            all(isinstance(value, int | float) and np.isfinite(value) for value in (half_life, now)) and half_life > 0
        )
        fits = fits and all(type(flag) is bool for flag in flags) and flags[0] is flags[1]
        fits = fits and (time is None or (isinstance(time, str) and not flags[2]))
        if not fits or (flags[2] and flags[1]):
            raise FileError("the clock of the decayed model is invalid; expected what Decayed.save wrote.")
        unfitted = type(model)(**model.get_params(deep=False))
        decayed = cls(unfitted, half_life=np.timedelta64(int(half_life), "ns") if flags[0] else half_life)
        decayed._now = int(now) if flags[1] else float(now)
        decayed._uses_datetimes = flags[1]
        decayed._by_rows = flags[2]
        decayed.model_ = model
        decayed._time_column = time
        return decayed

    _by_rows = True

    def _decayed_to(self, model: Estimator, now: TimeSpan) -> Any:
        """Return the model with its counts decayed to a later time."""
        if self._now is None or now == self._now:
            return model
        half_life, _ = read_span(self.half_life, "half_life")
        return scaled(model, float(2.0 ** ((self._now - now) / half_life)))

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        if not hasattr(self, "model_"):
            return super().__repr__(N_CHAR_MAX)
        half_life, uses_datetimes = read_span(self.half_life, "half_life")
        long = str(format_span(half_life)) if uses_datetimes else f"{half_life:.12g}"
        what = "steps" if self._of_sequences else "rows"
        return f"Decayed with a half-life of {long}: {self.n_rows_:.6g} {what}, {self.model!r}"

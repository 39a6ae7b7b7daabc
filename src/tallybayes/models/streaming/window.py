"""Window: a model of the most recent rows or sequences, a sliding window."""

from __future__ import annotations

import heapq
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from tallybayes._utils import sealed_file
from tallybayes._utils.fitted import check_is_fitted
from tallybayes._utils.parameter_checks import check_count
from tallybayes.data.open_source import open_source
from tallybayes.errors import DataError, FileError, StatisticsError
from tallybayes.models.io import model_from_parts, model_to_parts
from tallybayes.models.receipt import with_receipt
from tallybayes.models.streaming.row_buffer import (
    BufferedRows,
    concatenate_rows,
    find_rows,
    rows_from_parts,
    rows_to_parts,
)
from tallybayes.models.streaming.stream_model import StreamModel, scaled
from tallybayes.models.streaming.timestamps import (
    Duration,
    Moment,
    Times,
    TimeSpan,
    When,
    format_span,
    has_column,
    read_span,
    read_times,
)
from tallybayes.typing import Labels, Rows, SampleWeights

if TYPE_CHECKING:
    from tallybayes.models.estimator import Estimator


class Window(StreamModel):
    """A model of a sliding window: new rows are counted, and rows that leave the window are forgotten exactly.

    ``model_`` equals a model fitted to the rows of the window only, with the initial columns and calibration. The
    window stores a copy of its rows until they leave it, which determines its memory use.

    Parameters
    ----------
    model : a model with `partial_fit` and `forget`
        For example `NaiveBayes`, `LinearRegression`, or a `HiddenMarkovModel` of labeled sequences. To reuse the
        choices of a fitted model, pass ``model.without_rows()``.
    rows : int, optional
        The number of rows in the window, in order of arrival; for a `HiddenMarkovModel`, the number of sequences.
    duration : number or timedelta, optional
        The length of the window: it holds rows with times in (now − duration, now]. Pass either this or `rows`.

    Attributes
    ----------
    model_ : the fitted model
    now_ : the latest time so far
    n_kept_ : int
        The number of rows in the window.
    n_late_ : int
        The number of rows that arrived after rows newer by the whole window; they were not counted. Rows that arrive
        out of order within the window are counted. Rows at the beginning of a long batch, which leave the window within
        the same batch, are not late.

    Examples
    --------
    >>> import tallybayes as tb
    >>> window = tb.Window(tb.NaiveBayes(), rows=3)
    >>> window.partial_fit({"sky": ["sun", "sun", "rain"], "picnic": ["yes", "yes", "no"]}, "picnic").n_rows_
    3.0
    >>> window.partial_fit({"sky": ["fog", "fog"], "picnic": ["no", "no"]}, "picnic")
    Window of the last 3 rows: 3 rows, NaiveBayes()
    >>> window.model_.tally_["sky"].table.sum(axis=0).tolist()  # rain, fog twice; the sun is forgotten
    [1.0, 2.0]
    """

    def __init__(self, model: Estimator, *, rows: int | None = None, duration: Duration | None = None) -> None:
        self.model = model
        self.rows = rows
        self.duration = duration

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
        """Count new rows, and forget rows that leave the window.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit` of the model.
        time : array-like of shape (n,), one number or date, or column name of X, optional
            The times of the rows, in any order, for a window with a duration. The time column is not a feature. A
            column name holds for later calls, too. The time of a sequence is that of its last step.
        lengths, sequence, order
            For sequences, as for `HiddenMarkovModel`.

        Returns
        -------
        self
        """
        span, uses_datetimes = self._span()
        time = self._resolve_time(time)
        sequence_arguments = {"lengths": lengths, "sequence": sequence, "order": order}
        model = self._model_to_update()
        source = open_source(X)
        if source is not None:
            return self._fit_batches(source, y, sample_weight, time, sequence_arguments)
        new_rows = self._read(X, y, sample_weight, time, sequence_arguments)
        n = new_rows.buffered.n
        times = new_rows.times
        if times is None:
            times = Times(np.arange(n, dtype=np.float64) + (0 if self._now is None else self._now) + 1, False)
        else:
            self._check_times(times, uses_datetimes)
        now = times.values.max().item() if n else self._now
        now = now if self._now is None or now is None else max(now, self._now)
        if now is None:
            raise DataError("there are 0 rows to learn from; expected at least 1.")
        buffered = new_rows.buffered.at(times.values)
        n_old = 0
        n_late = 0
        if n and times.values.min() <= now - span:
            n_old = int(np.searchsorted(buffered.times, now - span, side="right"))
            buffered = buffered.take(slice(n_old, None))
            latest = np.maximum.accumulate(np.append(times.values[0] if self._now is None else self._now, times.values))
            n_late = int((times.values <= latest[:-1] - span).sum())
        if buffered.n and (n_old or self._of_sequences):
            model = model.partial_fit(**buffered.arguments())
        elif buffered.n:
            model = model.partial_fit(new_rows.X, **({} if y is None else {"y": y}), sample_weight=sample_weight)
        batches = list(getattr(self, "_batches", []))
        if buffered.n:
            heapq.heappush(batches, _Batch(buffered.counted_by(model)))
        model = _forget_old(model, batches, now - span)
        self._now = now
        self._uses_datetimes = times.dated
        self._batches = batches
        if self.rows is None:
            self.n_late_ = getattr(self, "n_late_", 0) + n_late
            self._time_column = time if isinstance(time, str) else self._time_column
        self.model_ = model
        return self

    @with_receipt
    def forget(
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
        """Remove rows from the model and from the window before they leave it.

        Raises StatisticsError, without changes, for rows that are not in the window.

        Parameters
        ----------
        X, y
            Rows as they were counted.
        sample_weight, time : optional
            If given, only rows with these weights and times match. Otherwise the oldest of equal rows match.
        lengths, sequence, order
            For sequences, as for `HiddenMarkovModel`.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        sequence_arguments = {"lengths": lengths, "sequence": sequence, "order": order}
        source = open_source(X)
        X = X if source is None else source.read("forget")
        if time is not None or (self._time_column is not None and has_column(X, self._time_column)):
            time = self._resolve_time(time)
        _, requested, times = self._read(X, y, sample_weight, time, sequence_arguments)
        if times is not None:
            self._check_times(times, None)
            requested = replace(requested, times=times.values)
        left = [batch.remaining() for batch in sorted(self._batches)]
        buffered = concatenate_rows(left) if left else None
        positions = (
            np.full(requested.n, -1) if buffered is None else find_rows(requested, buffered, timed=times is not None)
        )
        if (positions < 0).any():
            what = "sequence" if self._of_sequences else "row"
            raise StatisticsError(
                f"cannot forget: {what} {np.flatnonzero(positions < 0)[0]} of {requested.n} is not among the "
                f"{0 if buffered is None else buffered.n} that the window holds.\n"
                "    Rows that have left the window are forgotten already; omit them. Nothing was changed."
            )
        if buffered is None or not requested.n:
            return self
        rest = buffered.take(np.setdiff1d(np.arange(buffered.n), positions))
        batches = [_Batch(rest)] if rest.n else []
        self.model_ = _without(self._model_to_update(), [buffered.take(positions)], batches)
        self._batches = batches
        return self

    @property
    def n_kept_(self) -> int:
        """The number of rows or sequences in the window, regardless of their weights."""
        check_is_fitted(self)
        return sum(batch.rows.n - batch.first for batch in self._batches)

    def _resolve_time(self, time: When | None) -> Any:
        """Return `time=`, or the time column of earlier calls. Raise DataError if it does not suit the window."""
        if self.rows is not None and time is not None:
            raise DataError("time= has no effect with rows=: a window of rows uses their order of arrival.\n"
                            "    Pass duration= instead of rows=, or omit time=.")  # fmt: skip
        time = self._time_column if time is None else time
        if self.rows is None and time is None:
            raise DataError(
                "time= is missing: a window with duration= needs the times of rows.\n    Pass time=, or use rows=."
            )
        return time

    def advance(self, time: Moment) -> Self:
        """Move the current time forward and forget rows that leave the window.

        Parameters
        ----------
        time : number or date
            The current time. A time before the latest so far has no effect.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        span, uses_datetimes = self._span()
        if self.rows is not None:
            raise DataError("advance needs a window with duration=, found rows=.\n    Pass duration= instead of rows=.")
        times = read_times(time, 1)
        self._check_times(times, uses_datetimes)
        assert self._now is not None
        now = max(self._now, times.values[0].item())
        batches = list(self._batches)
        self.model_ = _forget_old(self._model_to_update(), batches, now - span)
        self._now = now
        self._batches = batches
        return self

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model and the rows of the window to a sealed file that `tb.load` reads.

        The file contains the rows in readable form: protect it as you protect the data.

        Parameters
        ----------
        path : str or path-like
        """
        check_is_fitted(self)
        content, arrays = model_to_parts(self.model_)
        span = self._span()
        clock: dict[str, Any] = {
            "span": span[0],
            "by": "rows" if self.rows is not None else "dates" if span[1] else "numbers",
        }
        clock |= {"now": self._now, "dated": self._uses_datetimes, "late": getattr(self, "n_late_", 0)}
        clock |= {} if self._time_column is None else {"time": self._time_column}
        left = [batch.remaining() for batch in sorted(self._batches)]
        rows, more = rows_to_parts(concatenate_rows(left)) if left else (None, {})
        sealed_file.write(path, "Window", {"model": content, "clock": clock, "rows": rows}, arrays | more)

    @classmethod
    def _from_manifest(cls, manifest: dict[str, Any], arrays: dict[str, np.ndarray]) -> Self:
        clock = manifest.pop("clock")
        rows = manifest.pop("rows")
        buffered = None if rows is None else rows_from_parts(rows, arrays)
        model = model_from_parts(manifest.pop("model"), arrays)
        sealed_file.check_no_unknown_entries("the window", manifest)
        by = clock.pop("by")
        span = clock.pop("span")
        now = clock.pop("now")
        uses_datetimes = clock.pop("dated")
        late = clock.pop("late")
        time = clock.pop("time", None)
        sealed_file.check_no_unknown_entries("the window's clock", clock)
        number = int if by == "dates" else float
        fits = by in ("rows", "dates", "numbers") and type(uses_datetimes) is bool and uses_datetimes is (by == "dates")
        fits = fits and all(isinstance(value, int | float) and np.isfinite(value) for value in (span, now)) and span > 0
        fits = fits and type(late) is int and late >= 0 and (by != "rows" or span == int(span))
        fits = fits and (time is None or (isinstance(time, str) and by != "rows"))
        if fits and buffered is not None:
            fits = (
                bool(buffered.n)
                and buffered.times[0] > now - span
                and buffered.times[-1] <= now
                and (buffered.times.dtype.kind == "i") is uses_datetimes
            )
        if not fits:
            raise FileError("the window's clock does not fit its rows; expected what Window.save wrote.")
        duration = np.timedelta64(int(span), "ns") if by == "dates" else span
        unfitted = type(model)(**model.get_params(deep=False))
        window = cls(unfitted, rows=int(span)) if by == "rows" else cls(unfitted, duration=duration)
        window._now = number(now)
        window._uses_datetimes = uses_datetimes
        window.model_ = model
        window._batches = [] if buffered is None else [_Batch(buffered)]
        window._time_column = time
        if (buffered is not None and buffered.offsets is not None) is not (
            buffered is not None and window._of_sequences
        ):
            raise FileError("the window's rows are not what its model is of; expected what Window.save wrote.")
        if by != "rows":
            window.n_late_ = late
        return window

    def _span(self) -> tuple[TimeSpan, bool | None]:
        """Return the length of the window, and whether it is a duration of dates (None if it is a number of rows)."""
        if (self.rows is None) is (self.duration is None):
            raise DataError(
                f"rows={self.rows!r} and duration={self.duration!r}; expected one of them.\n"
                "    rows=1000 keeps the last 1000 rows; duration=timedelta(days=7) the rows of one week."
            )
        if self.rows is None:
            return read_span(self.duration, "duration")
        return float(check_count("rows", self.rows)), None

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        if not hasattr(self, "model_"):
            return super().__repr__(N_CHAR_MAX)
        what = "sequences" if self._of_sequences else "rows"
        long = f"the last {self.rows} {what}" if self.rows is not None else f"the last {self._long()} until {self.now_}"
        late = f", {self.n_late_} arrived too late" if getattr(self, "n_late_", 0) else ""
        return f"Window of {long}: {self.n_kept_} {what}{late}, {self.model!r}"

    def _long(self) -> str:
        span, uses_datetimes = self._span()
        return str(format_span(span)) if uses_datetimes else f"{span:.12g}"


class _Batch:
    """Rows that arrived together, of which the first few may be forgotten; ordered by the oldest remaining row."""

    def __init__(self, rows: BufferedRows, first: int = 0) -> None:
        self.rows = rows
        self.first = first

    def __lt__(self, other: _Batch) -> bool:
        return bool(self.rows.times[self.first] < other.rows.times[other.first])

    def remaining(self) -> BufferedRows:
        """Return the rows that are still in the window."""
        return self.rows.take(slice(self.first, None)) if self.first else self.rows


def _forget_old(model: Estimator, batches: list[_Batch], last: TimeSpan) -> Any:
    """Remove rows with times up to `last` from a model and from its batches."""
    old = []
    while batches and batches[0].rows.times[batches[0].first] <= last:
        batch = heapq.heappop(batches)
        stop = int(np.searchsorted(batch.rows.times, last, side="right"))
        old.append(batch.rows.take(slice(batch.first, stop)))
        if stop < batch.rows.n:
            heapq.heappush(batches, _Batch(batch.rows, stop))
    return _without(model, old, batches) if old else model


def _without(model: Estimator, old: list[BufferedRows], batches: list[_Batch]) -> Any:
    """Return a model without some of its rows; `left` are the remaining rows."""
    try:
        for rows in old:
            model = model.forget(**rows.arguments())
    except StatisticsError:
        # Sums of fractional weights are rounded, and the rounding error may exceed the weight of the remaining rows.
        # The remaining rows are in memory, so they are counted again.
        model = scaled(model, 0.0)
        for batch in batches:
            model = model.partial_fit(**batch.remaining().arguments())
    return model

"""tb.Window: a model of the last rows alone, or of the last sequences."""

from __future__ import annotations

import heapq
from os import PathLike
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from tallybayes._utils import sealed_file
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
    """A model of the last rows alone: what is new is learned, and what is old is forgotten, exactly.

    At every moment ``model_`` is what a model of the rows in the window alone would be, with the columns and the
    calibration it began with. The rows of the window are kept (copied) until they are old: memory is theirs.

    Parameters
    ----------
    model : a model that learns and forgets
        Such as `NaiveBayes` or `LinearRegression`, or a `HiddenMarkovModel` of labeled sequences. One that is fitted lends
        its choices: ``model.without_rows()``.
    rows : int, optional
        How many rows the window holds, counted as they come; of a `HiddenMarkovModel`, how many sequences.
    duration : number or timedelta, optional
        How long rows stay, by their times: those in (now − duration, now]. Either this or `rows`.

    Attributes
    ----------
    model_ : the fitted model
    now_ : the latest time so far
    n_kept_ : int
        How many rows it holds.
    n_late_ : int
        How many rows arrived after rows that are newer by the whole window, and were not learned. Rows that arrive out
        of order within the window are learned. The first rows of a long batch, which are followed by the rows that
        move the window past them, are not late.

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
        """Learn rows, and forget those that are too old now.

        Parameters
        ----------
        X, y, sample_weight
            As the model takes them.
        time : array-like of shape (n,), one number or date, or the name of a column of X, optional
            When the rows came, in any order: for a window that goes by its duration. The column is not learned from;
            said once by name, it is that of the rows to come, too. A sequence came when its last step did.
        lengths, sequence, order
            Of sequences, as `HiddenMarkovModel` takes them.

        Returns
        -------
        self
        """
        span, dated = self._span()
        time = self._asked_time(time)
        how = {"lengths": lengths, "sequence": sequence, "order": order}
        model = self._model_to_update()
        source = open_source(X)
        if source is not None:
            return self._fit_batches(source, y, sample_weight, time, how)
        came = self._read(X, y, sample_weight, time, how)
        n = came.kept.n
        times = came.times
        if times is None:
            times = Times(np.arange(n, dtype=np.float64) + (0 if self._now is None else self._now) + 1, False)
        else:
            self._check_times(times, dated)
        now = times.values.max().item() if n else self._now
        now = now if self._now is None or now is None else max(now, self._now)
        if now is None:
            raise DataError("there are 0 rows to learn from; expected at least 1.")
        kept = came.kept.at(times.values)
        n_old = 0
        n_late = 0
        if n and times.values.min() <= now - span:
            n_old = int(np.searchsorted(kept.times, now - span, side="right"))
            kept = kept.some(slice(n_old, None))
            latest = np.maximum.accumulate(np.append(times.values[0] if self._now is None else self._now, times.values))
            n_late = int((times.values <= latest[:-1] - span).sum())
        if kept.n and (n_old or self._of_sequences):
            model = model.partial_fit(**kept.arguments())
        elif kept.n:
            model = model.partial_fit(came.X, **({} if y is None else {"y": y}), sample_weight=sample_weight)
        batches = list(getattr(self, "_batches", []))
        if kept.n:
            heapq.heappush(batches, _Batch(kept.counted_by(model)))
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
        """Take rows out before their time: out of the model, and out of those that are kept.

        Rows that are not in the window are refused, also those that have left it already, and nothing changes.

        Parameters
        ----------
        X, y
            Rows as they were learned.
        sample_weight, time : optional
            Where they are said, or the column of times is there, only rows of these weights and times are meant; else
            the oldest of equal ones.
        lengths, sequence, order
            Of sequences, as `HiddenMarkovModel` takes them.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        how = {"lengths": lengths, "sequence": sequence, "order": order}
        source = open_source(X)
        X = X if source is None else source.read("forget")
        if time is not None or (self._time_column is not None and has_column(X, self._time_column)):
            time = self._asked_time(time)
        _, asked, times = self._read(X, y, sample_weight, time, how)
        if times is not None:
            self._check_times(times, None)
            asked = asked._replace(times=times.values)
        left = [batch.left() for batch in sorted(self._batches)]
        kept = concatenate_rows(left) if left else None
        places = np.full(asked.n, -1) if kept is None else find_rows(asked, kept, timed=times is not None)
        if (places < 0).any():
            what = "sequence" if self._of_sequences else "row"
            raise StatisticsError(
                f"cannot forget: {what} {np.flatnonzero(places < 0)[0]} of {asked.n} is not among the "
                f"{0 if kept is None else kept.n} that the window holds.\n"
                "    What has left it is forgotten already; leave it out. Nothing was changed."
            )
        if kept is None or not asked.n:
            return self
        rest = kept.some(np.setdiff1d(np.arange(kept.n), places))
        batches = [_Batch(rest)] if rest.n else []
        self.model_ = _without(self._model_to_update(), [kept.some(places)], batches)
        self._batches = batches
        return self

    @property
    def n_kept_(self) -> int:
        """How many rows, or sequences, the window holds, whatever their weights."""
        check_is_fitted(self)
        return sum(batch.kept.n - batch.first for batch in self._batches)

    def _asked_time(self, time: Any) -> Any:
        """When rows came, as it is said now or was said before."""
        if self.rows is not None and time is not None:
            raise DataError("a window of so many rows goes by the order in which they come, and time= was given.\n"
                            "    Say duration= instead of rows=, or leave time= out.")  # fmt: skip
        time = self._time_column if time is None else time
        if self.rows is None and time is None:
            raise DataError("a window of a duration needs to know when rows came.\n    Pass time=, or say rows=.")
        return time

    def advance(self, time: Moment) -> Self:
        """Let time pass: rows that are too old by then are forgotten.

        Parameters
        ----------
        time : number or date
            Now; earlier than the latest so far, it changes nothing.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        span, dated = self._span()
        if self.rows is not None:
            raise DataError("a window of so many rows knows no time.\n    Say duration= instead of rows=.")
        times = read_times(time, 1)
        self._check_times(times, dated)
        assert self._now is not None
        now = max(self._now, times.values[0].item())
        batches = list(self._batches)
        self.model_ = _forget_old(self._model_to_update(), batches, now - span)
        self._now = now
        self._batches = batches
        return self

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model and the rows of the window to a sealed file that `tb.load` reads; it goes on from there.

        The file holds the rows: who may read it can read them.

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
        left = [batch.left() for batch in sorted(self._batches)]
        rows, more = rows_to_parts(concatenate_rows(left)) if left else (None, {})
        sealed_file.write(path, "Window", {"model": content, "clock": clock, "rows": rows}, arrays | more)

    @classmethod
    def _from_manifest(cls, manifest: dict[str, Any], arrays: dict[str, np.ndarray]) -> Self:
        clock = manifest.pop("clock")
        rows = manifest.pop("rows")
        kept = None if rows is None else rows_from_parts(rows, arrays)
        model = model_from_parts(manifest.pop("model"), arrays)
        sealed_file.check_no_unknown_entries("the window", manifest)
        by = clock.pop("by")
        span = clock.pop("span")
        now = clock.pop("now")
        dated = clock.pop("dated")
        late = clock.pop("late")
        time = clock.pop("time", None)
        sealed_file.check_no_unknown_entries("the window's clock", clock)
        number = int if by == "dates" else float
        fits = by in ("rows", "dates", "numbers") and type(dated) is bool and dated is (by == "dates")
        fits = fits and all(isinstance(one, int | float) and np.isfinite(one) for one in (span, now)) and span > 0
        fits = fits and type(late) is int and late >= 0 and (by != "rows" or span == int(span))
        fits = fits and (time is None or (isinstance(time, str) and by != "rows"))
        if fits and kept is not None:
            fits = (
                bool(kept.n)
                and kept.times[0] > now - span
                and kept.times[-1] <= now
                and (kept.times.dtype.kind == "i") is dated
            )
        if not fits:
            raise FileError("the window's clock does not fit its rows; expected what Window.save wrote.")
        duration = np.timedelta64(int(span), "ns") if by == "dates" else span
        unfitted = type(model)(**model.get_params(deep=False))
        found = cls(unfitted, rows=int(span)) if by == "rows" else cls(unfitted, duration=duration)
        found._now = number(now)
        found._uses_datetimes = dated
        found.model_ = model
        found._batches = [] if kept is None else [_Batch(kept)]
        found._time_column = time
        if (kept is not None and kept.offsets is not None) is not (kept is not None and found._of_sequences):
            raise FileError("the window's rows are not what its model is of; expected what Window.save wrote.")
        if by != "rows":
            found.n_late_ = late
        return found

    def _span(self) -> tuple[TimeSpan, bool | None]:
        """How long the window is, and whether by dates; None where it goes by rows."""
        if (self.rows is None) is (self.duration is None):
            raise DataError(
                f"rows={self.rows!r} and duration={self.duration!r}; expected one of them.\n"
                "    rows=1000 holds the last thousand; duration=timedelta(days=7) those of a week."
            )
        if self.rows is None:
            return read_span(self.duration, "duration")
        if isinstance(self.rows, bool) or not isinstance(self.rows, int | np.integer) or self.rows < 1:
            raise DataError.wrong_type("rows", repr(self.rows), "a whole number of at least 1")
        return float(self.rows), None

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        if not hasattr(self, "model_"):
            return super().__repr__(N_CHAR_MAX)
        what = "sequences" if self._of_sequences else "rows"
        long = f"the last {self.rows} {what}" if self.rows is not None else f"the last {self._long()} until {self.now_}"
        late = f", {self.n_late_} arrived too late" if getattr(self, "n_late_", 0) else ""
        return f"Window of {long}: {self.n_kept_} {what}{late}, {self.model!r}"

    def _long(self) -> str:
        span, dated = self._span()
        return str(format_span(span)) if dated else f"{span:.12g}"


class _Batch:
    """Rows that came together, of which the first few may be forgotten already; ordered by the oldest that is left."""

    def __init__(self, kept: BufferedRows, first: int = 0) -> None:
        self.kept = kept
        self.first = first

    def __lt__(self, other: _Batch) -> bool:
        return bool(self.kept.times[self.first] < other.kept.times[other.first])

    def left(self) -> BufferedRows:
        """The rows that the window still holds."""
        return self.kept.some(slice(self.first, None)) if self.first else self.kept


def _forget_old(model: Any, batches: list[_Batch], last: TimeSpan) -> Any:
    """Take out of a model, and of the batches, whatever is not after this time."""
    old = []
    while batches and batches[0].kept.times[batches[0].first] <= last:
        batch = heapq.heappop(batches)
        stop = int(np.searchsorted(batch.kept.times, last, side="right"))
        old.append(batch.kept.some(slice(batch.first, stop)))
        if stop < batch.kept.n:
            heapq.heappush(batches, _Batch(batch.kept, stop))
    return _without(model, old, batches) if old else model


def _without(model: Any, old: list[BufferedRows], left: list[_Batch]) -> Any:
    """A model without some of its rows, of which others are left."""
    try:
        for part in old:
            model = model.forget(**part.arguments())
    except StatisticsError:
        # Fractions of rows add up with rounding, of which more may be left than all rows that remain weigh. These are
        # at hand: they are counted anew.
        model = scaled(model, 0.0)
        for batch in left:
            model = model.partial_fit(**batch.left().arguments())
    return model

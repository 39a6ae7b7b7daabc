"""tb.Window: a model of the last rows alone."""

from __future__ import annotations

import heapq
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tallybayes import store
from tallybayes.errors import DataError, FileError
from tallybayes.models.inputs.features import open_features
from tallybayes.models.model_file import model_from_parts, model_to_parts
from tallybayes.models.streams.clock import Span, Times, read_span, shown_span
from tallybayes.models.streams.kept_rows import Kept, joined, rows_from_parts, rows_to_parts
from tallybayes.models.streams.stream import Stream
from tallybayes.sources.opening import open_source


class Window(Stream):
    """A model of the last rows alone: what is new is learned, and what is old is forgotten, exactly.

    At every moment ``model_`` is what a model of the rows in the window alone would be, with the columns and the
    calibration it began with. The rows of the window are kept (copied) until they are old: memory is theirs.

    Parameters
    ----------
    model : a model of rows that learns and forgets
        Such as `NaiveBayes` or `Regression`. One that is fitted lends its choices: ``model.without_rows()``.
    rows : int, optional
        How many rows the window holds, counted as they come.
    duration : number or timedelta, optional
        How long rows stay, by their times: those in (now − duration, now]. Either this or `rows`.

    Attributes
    ----------
    model_ : the fitted model
    now_ : the latest time so far
    n_late_ : int
        How many rows were too old when they came, and were not learned. Rows that are late, but within the window, are
        learned, and leave it in their own time.

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

    def __init__(self, model: Any, *, rows: int | None = None, duration: Any = None) -> None:
        self.model = model
        self.rows = rows
        self.duration = duration

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None, time: Any = None) -> Self:
        """Learn rows, and forget those that are too old now.

        Parameters
        ----------
        X, y, sample_weight
            As the model takes them.
        time : array-like of shape (n,), one number or date, or the name of a column of X, optional
            When the rows came, in any order: for a window that goes by its duration. The column is not learned from.

        Returns
        -------
        self
        """
        span, dated = self._span()
        X = _in_memory(X)
        if self.rows is not None and time is not None:
            raise DataError("a window of so many rows goes by the order in which they come, and time= was given.\n"
                            "    Say duration= instead of rows=, or leave time= out.")  # fmt: skip
        if self.rows is None and time is None:
            raise DataError("a window of a duration needs to know when rows came.\n    Pass time=, or say rows=.")
        n_rows = open_features(X).n_rows
        if self.rows is None:
            X, times = self._timed(X, n_rows, time, dates=dated)
        else:
            times = Times(np.arange(n_rows, dtype=np.float64) + (0 if self._now is None else self._now) + 1, False)
        model, now = self._begun(), times.values.max().item() if n_rows else self._now
        now = now if self._now is None or now is None else max(now, self._now)
        if now is None:
            raise DataError("there are 0 rows to learn from; expected at least 1.")
        kept, late = Kept.read(X, y, sample_weight, times.values), 0
        if n_rows and times.values.min() <= now - span:
            late = int(np.searchsorted(kept.times, now - span, side="right"))
            kept = kept.rows(slice(late, None))
            model = model.partial_fit(**kept.arguments()) if len(kept.times) else model
        elif n_rows:
            told = {} if y is None else {"y": y}
            model = model.partial_fit(X, **told, sample_weight=sample_weight)
        batches = list(getattr(self, "_batches", []))
        model = _forget_old(model, batches, now - span)
        if len(kept.times):
            heapq.heappush(batches, _Batch(kept))
        self._now, self._dated, self._batches = now, times.dated, batches
        if self.rows is None:
            self.n_late_ = getattr(self, "n_late_", 0) + late
        self.model_ = model
        return self

    def advance(self, time: Any) -> Self:
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
        _, times = self._timed(None, 1, time, dates=dated)
        assert self._now is not None
        now, batches = max(self._now, times.values[0].item()), list(self._batches)
        self.model_ = _forget_old(self._begun(), batches, now - span)
        self._now, self._batches = now, batches
        return self

    def save(self, path: Any) -> None:
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
        clock |= {"now": self._now, "dated": self._dated, "late": getattr(self, "n_late_", 0)}
        left = [batch.left() for batch in sorted(self._batches)]
        rows, more = rows_to_parts(joined(left)) if left else (None, {})
        store.write(path, "Window", {"model": content, "clock": clock, "rows": rows}, arrays | more)

    @classmethod
    def _from_parts(cls, manifest: dict[str, Any], arrays: dict[str, np.ndarray]) -> Self:
        clock, rows = manifest.pop("clock"), manifest.pop("rows")
        kept = None if rows is None else rows_from_parts(rows, arrays)
        model = model_from_parts(manifest.pop("model"), arrays)
        store.refuse_rest("the window", manifest)
        by, span, now = clock.pop("by"), clock.pop("span"), clock.pop("now")
        dated, late = clock.pop("dated"), clock.pop("late")
        store.refuse_rest("the window's clock", clock)
        number = int if by == "dates" else float
        fits = by in ("rows", "dates", "numbers") and type(dated) is bool and dated is (by == "dates")
        fits = fits and all(isinstance(one, int | float) and np.isfinite(one) for one in (span, now)) and span > 0
        fits = fits and type(late) is int and late >= 0 and (by != "rows" or span == int(span))
        if fits and kept is not None:
            fits = kept.times[0] > now - span and kept.times[-1] <= now and (kept.times.dtype.kind == "i") is dated
        if not fits:
            raise FileError("the window's clock does not fit its rows; expected what Window.save wrote.")
        duration = np.timedelta64(int(span), "ns") if by == "dates" else span
        unfitted = type(model)(**model.get_params(deep=False))
        found = cls(unfitted, rows=int(span)) if by == "rows" else cls(unfitted, duration=duration)
        found._now, found._dated, found.model_ = number(now), dated, model
        found._batches = [] if kept is None else [_Batch(kept)]
        if by != "rows":
            found.n_late_ = late
        return found

    def _span(self) -> tuple[Span, bool | None]:
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
        held = sum(len(batch.kept.times) - batch.first for batch in self._batches)
        long = f"the last {self.rows} rows" if self.rows is not None else f"the last {self._long()} until {self.now_}"
        late = f", {self.n_late_} came too late" if getattr(self, "n_late_", 0) else ""
        return f"Window of {long}: {held} rows{late}, {self.model!r}"

    def _long(self) -> str:
        span, dated = self._span()
        return str(shown_span(span)) if dated else f"{span:.12g}"


class _Batch:
    """Rows that came together, of which the first few may be forgotten already; ordered by the oldest that is left."""

    def __init__(self, kept: Kept, first: int = 0) -> None:
        self.kept, self.first = kept, first

    def __lt__(self, other: _Batch) -> bool:
        return bool(self.kept.times[self.first] < other.kept.times[other.first])

    def left(self) -> Kept:
        """The rows that the window still holds."""
        return self.kept.rows(slice(self.first, None)) if self.first else self.kept


def _forget_old(model: Any, batches: list[_Batch], last: Span) -> Any:
    """Take out of a model, and of the batches, whatever is not after this time."""
    while batches and batches[0].kept.times[batches[0].first] <= last:
        batch = heapq.heappop(batches)
        stop = int(np.searchsorted(batch.kept.times, last, side="right"))
        model = model.forget(**batch.kept.rows(slice(batch.first, stop)).arguments())
        if stop < len(batch.kept.times):
            heapq.heappush(batches, _Batch(batch.kept, stop))
    return model


def _in_memory(X: Any) -> Any:
    source = open_source(X)
    if source is None:
        return X
    raise DataError(
        f"{source.name} is read in batches, and a window learns them one at a time.\n"
        "    Go through them: for batch in tb.table(path).batches(): window.partial_fit(batch, y)."
    )

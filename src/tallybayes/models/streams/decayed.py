"""tb.Decayed: a model in which the older a row is, the less it counts."""

from __future__ import annotations

import copy
from typing import Any, NoReturn, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from tallybayes import store
from tallybayes.errors import DataError, FileError, NotForgettableError, StatisticsError
from tallybayes.models.inputs.features import open_features
from tallybayes.models.model_file import model_from_parts, model_to_parts
from tallybayes.models.streams.clock import Span, Times, read_span, shown_span
from tallybayes.models.streams.stream import Stream
from tallybayes.sources.collect import LEAST_WEIGHT, check_weight


class Decayed(Stream):
    """A model in which rows count less as they grow old: half as much after every half-life.

    A row of age a counts 2 to the power of −a / `half_life` times its weight, whatever batches it came in and in
    whatever order: ``model_`` is what a model fitted with those weights would be. The tally is scaled, so no row is
    kept, and none can be forgotten.

    Parameters
    ----------
    model : a model of rows that learns and forgets
        Such as `NaiveBayes` or `Regression`. One that is fitted lends its choices: ``model.without_rows()``.
    half_life : number or timedelta
        In rows, counted as they come, unless rows have times; else in the unit of their times.

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

    def __init__(self, model: Any, *, half_life: Any) -> None:
        self.model = model
        self.half_life = half_life

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None, time: Any = None) -> Self:
        """Learn rows; what was learned before counts less by the time that has passed.

        Parameters
        ----------
        X, y, sample_weight
            As the model takes them.
        time : array-like of shape (n,), one number or date, or the name of a column of X, optional
            When the rows came, in any order: late ones count as much as if they had come in time. The column is not
            learned from. Without it every row is one tick of the clock.

        Returns
        -------
        self
        """
        half, dated = read_span(self.half_life, "half_life")
        table = open_features(X)
        by_rows = time is None
        if self._now is not None and by_rows is not self._by_rows:
            found = "no time" if by_rows else "a time"
            raise DataError(f"these rows have {found}, unlike those before; expected the same for all of one stream.")
        if by_rows and dated:
            raise DataError(
                f"half_life is a span of time, {self.half_life!r}, and rows have none.\n"
                "    Pass time=, or a half-life in rows."
            )
        if by_rows:
            ticks = np.arange(table.n_rows, dtype=np.float64)
            times = Times(ticks + (0.0 if self._now is None else self._now) + 1, False)
        else:
            X, times = self._timed(X, table.n_rows, time, dates=dated or None)
        if table.n_rows == 0:
            raise DataError("there are 0 rows to learn from; expected at least 1.")
        latest = times.values.max().item()
        now = latest if self._now is None else max(latest, self._now)
        weight = 2.0 ** ((times.values - now) / half)
        if isinstance(sample_weight, str):
            weight = weight * np.asarray(table._column(sample_weight), dtype=np.float64)
            X = table.without(sample_weight)
        elif sample_weight is not None:
            weight = weight * check_weight(sample_weight, table.n_rows)
        weight[weight < LEAST_WEIGHT] = 0.0  # next to nothing, and no weight of a row
        told = {} if y is None else {"y": y}
        model = self._faded(self._begun(), now).partial_fit(X, **told, sample_weight=weight)
        self._now, self._dated, self._by_rows, self.model_ = now, times.dated, by_rows, model
        return self

    def advance(self, time: Any) -> Self:
        """Let time pass: all that was learned counts less by then.

        Parameters
        ----------
        time : number or date
            Now; earlier than the latest so far, it changes nothing.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        _, times = self._timed(None, 1, time, dates=None)
        assert self._now is not None
        now = max(self._now, times.values[0].item())
        self.model_ = self._faded(self._begun(), now)
        self._now = now
        return self

    def forget(self, *rows: Any, **named: Any) -> NoReturn:
        """Refused: how much a row still counts depends on when it came, and that is not kept."""
        raise NotForgettableError(
            "rows of a fading model cannot be taken out: what they count by now is not known of them.\n"
            "    They fade by themselves; tb.Window forgets exactly."
        )

    def __add__(self, other: Self) -> Self:
        if type(other) is not type(self):
            return NotImplemented
        for one in (self, other):
            check_is_fitted(one)
        if read_span(self.half_life, "half_life") != read_span(other.half_life, "half_life"):
            raise StatisticsError.incompatible("the half-lives", self.half_life, other.half_life)
        if (self._now, self._dated) != (other._now, other._dated):
            raise StatisticsError(
                f"the times of the models are {self.now_} and {other.now_}; expected the same.\n"
                "    Bring the earlier one there first: advance(time)."
            )
        both = clone(self)
        both._now, both._dated, both._by_rows = self._now, self._dated, self._by_rows
        both.model_ = self.model_ + other.model_
        return both

    def save(self, path: Any) -> None:
        """Write the model and its clock to a sealed file that `tb.load` reads; it goes on from there.

        Parameters
        ----------
        path : str or path-like
        """
        check_is_fitted(self)
        content, arrays = model_to_parts(self.model_)
        half, dated = read_span(self.half_life, "half_life")
        clock = {"half_life": half, "spans_dates": dated, "now": self._now, "dated": self._dated}
        clock |= {"by_rows": self._by_rows}
        store.write(path, "Decayed", {"model": content, "clock": clock}, arrays)

    @classmethod
    def _from_parts(cls, manifest: dict[str, Any], arrays: dict[str, np.ndarray]) -> Self:
        clock, model = manifest.pop("clock"), model_from_parts(manifest.pop("model"), arrays)
        store.refuse_rest("the fading model", manifest)
        half, now = clock.pop("half_life"), clock.pop("now")
        flags = [clock.pop(name) for name in ("spans_dates", "dated", "by_rows")]
        store.refuse_rest("the clock", clock)
        fits = all(isinstance(one, int | float) and np.isfinite(one) for one in (half, now)) and half > 0
        fits = fits and all(type(flag) is bool for flag in flags) and flags[0] is flags[1]
        if not fits or (flags[2] and flags[1]):
            raise FileError("the clock of the fading model is none; expected what Decayed.save wrote.")
        unfitted = type(model)(**model.get_params(deep=False))
        found = cls(unfitted, half_life=np.timedelta64(int(half), "ns") if flags[0] else half)
        found._now, found._dated, found._by_rows = (int(now) if flags[1] else float(now)), flags[1], flags[2]
        found.model_ = model
        return found

    _by_rows = True

    def _faded(self, model: Any, now: Span) -> Any:
        """A model at a later time."""
        if self._now is None or now == self._now:
            return model
        half, _ = read_span(self.half_life, "half_life")
        return _scaled(model, float(2.0 ** ((self._now - now) / half)))

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        if not hasattr(self, "model_"):
            return super().__repr__(N_CHAR_MAX)
        half, dated = read_span(self.half_life, "half_life")
        long = str(shown_span(half)) if dated else f"{half:.12g}"
        return f"Decayed with a half-life of {long}: {self.n_rows_:.6g} rows, {self.model!r}"


def _scaled(model: Any, factor: float) -> Any:
    """A model whose rows count so many times as much; of one that is made of others, each of them."""
    other = copy.copy(model)
    if hasattr(model, "members_"):
        other.members_ = [one._replace(model=_scaled(one.model, factor)) for one in model.members_]
        return other
    return other._update(model.tally_.scale(factor))

"""Times of rows, as people have them: numbers, dates, or a column; and spans of time."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import numpy as np

from tallybayes.errors import DataError
from tallybayes.sources.table import Table, open_table

_NANOSECONDS = np.dtype("M8[ns]")
Span = int | float  # of dates in nanoseconds, else in whatever times are in


class Times(NamedTuple):
    """The time of every row: int64 nanoseconds since 1970 where they are dates, else float64."""

    values: np.ndarray
    dated: bool


def shown(value: Span, *, dated: bool) -> Any:
    """A time that was kept as a number, as people have it."""
    return np.datetime64(int(value), "ns") if dated else float(value)


def shown_span(span: Span) -> timedelta:
    """A span of dates, as Python has it."""
    return timedelta(microseconds=int(span) / 1000)


def read_times(time: Any, n_rows: int) -> Times:
    """The times of rows: one for each, or one for all of them."""
    array = _dates(time)
    if array is None:
        array = np.asarray(time)
        if array.dtype.kind not in "biuf":
            expected = "numbers or dates, one a row, or the name of the column that has them"
            raise DataError.wrong_type("time", repr(time)[:60], expected)
        array = array.astype(np.float64)
    if array.ndim == 0:
        array = np.full(n_rows, array)
    if array.shape != (n_rows,):
        raise DataError.wrong_shape("time", array.shape, f"({n_rows},), one for every row")
    dated = array.dtype.kind == "M"
    unknown = np.flatnonzero(np.isnat(array) if dated else ~np.isfinite(array))
    if len(unknown):
        raise DataError(
            f"row {unknown[0]} has no time: {array[unknown[0]]!r}; expected one for every row.\n"
            "    Leave such rows out, or say when they came."
        )
    return Times(array.view(np.int64) if dated else array, dated)


def _dates(time: Any) -> np.ndarray | None:
    """Dates as NumPy has them, in UTC where they say their zone; None where these are none."""
    if hasattr(time, "to_numpy") and not isinstance(time, np.ndarray):
        time = time.to_numpy()  # a series of a frame
    one = isinstance(time, datetime | np.datetime64)
    cells = np.asarray([_plain(time)] if one else [_plain(cell) for cell in time] if _holds_dates(time) else time)
    if cells.dtype.kind != "M":
        return None
    cells = np.ascontiguousarray(cells.astype(_NANOSECONDS))
    return cells[0].reshape(()) if one else cells


def _holds_dates(time: Any) -> bool:
    """Whether these are Python's dates, or pandas'."""
    if isinstance(time, np.ndarray):
        return time.dtype == object and bool(len(time)) and isinstance(time[0], datetime)
    return isinstance(time, list | tuple) and bool(time) and isinstance(time[0], datetime)


def _plain(cell: Any) -> Any:
    """A date without its zone, in UTC."""
    if not isinstance(cell, datetime):
        return cell
    if cell.tzinfo is not None:
        cell = cell.astimezone(UTC).replace(tzinfo=None)
    return np.datetime64(cell, "ns")


def read_span(span: Any, name: str) -> tuple[Span, bool]:
    """A span of time, and whether it is one of dates."""
    if isinstance(span, timedelta | np.timedelta64):
        length = int(np.timedelta64(span).astype("m8[ns]").astype(np.int64))
        good, dated = length > 0, True
    else:
        dated = False
        try:
            length = float(span)  # type: ignore[assignment]
        except (TypeError, ValueError):
            length = float("nan")  # type: ignore[assignment]
        good = not isinstance(span, bool) and np.isfinite(length) and length > 0
    if not good:
        raise DataError.wrong_type(name, repr(span), "a positive number, or a timedelta where times are dates")
    return length, dated


def without_times(X: Any, time: str) -> tuple[Any, Any]:
    """Rows without the column of their times, and that column."""
    table = open_table(X)
    if time not in table.columns:
        raise DataError.unknown_column([time], table.columns)
    column = table.columns[time]
    if isinstance(X, Table):
        return X.without(time), column
    if isinstance(X, Mapping):
        return {name: values for name, values in X.items() if name != time}, column
    if isinstance(X, list):
        return table.without(time), column
    import narwhals as nw

    return nw.from_native(X).drop(time).to_native(), column

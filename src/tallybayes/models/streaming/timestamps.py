"""Times of rows, given as numbers, dates or a column; and durations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from tallybayes.data.encoding import is_missing
from tallybayes.data.table import Table, open_table
from tallybayes.errors import DataError
from tallybayes.typing import Column, Rows

_NANOSECONDS = np.dtype("M8[ns]")
Moment: TypeAlias = float | date | np.datetime64 | np.number[Any]
When: TypeAlias = (
    str | Moment | npt.NDArray[Any] | Iterable[Any]
)  # a column name, one time for all rows, or one per row
Duration: TypeAlias = float | timedelta | np.timedelta64 | np.number[Any]
TimeSpan = int | float  # for dates in nanoseconds, else in the unit of the times


class Times(NamedTuple):
    """The time of every row: int64 nanoseconds since 1970 if they are dates, else float64."""

    values: np.ndarray
    dated: bool


def shown(value: TimeSpan, *, dated: bool) -> float | np.datetime64:
    """Return a stored time as a date or a number."""
    return np.datetime64(int(value), "ns") if dated else float(value)


def format_span(span: TimeSpan) -> timedelta:
    """Return a duration in nanoseconds as a timedelta."""
    return timedelta(microseconds=int(span) / 1000)


def read_times(time: When, n_rows: int) -> Times:
    """Return the times of rows from one time per row, or one time for all."""
    array = _dates(time)
    if array is None:
        array = np.asarray(time)
        if array.dtype.kind not in "biuf":
            expected = "numbers or dates, one per row, or a column name"
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
            "    Drop such rows, or pass their times."
        )
    return Times(array.view(np.int64) if dated else array, dated)


def _dates(time: Any) -> np.ndarray | None:
    """Return dates as a NumPy array, converted to UTC if they have a zone; None if the values are not dates."""
    if isinstance(time, date | np.datetime64):
        return _in_nanoseconds(np.asarray([_instant(time)]))[0].reshape(())
    if hasattr(time, "to_numpy") and not isinstance(time, np.ndarray):
        time = _cells(time)
    if isinstance(time, list | tuple) or _kind(time) in ("O", "U"):
        kinds = {type(cell) for cell in time if not is_missing(cell)}
        if not kinds or not all(issubclass(kind, date | np.datetime64 | str) for kind in kinds):
            return None
        time = np.asarray([_instant(cell, row) for row, cell in enumerate(time)], dtype=_NANOSECONDS)
    return _in_nanoseconds(time) if _kind(time) == "M" else None


def _cells(column: Column) -> Any:
    """Return a data frame or Arrow column as a NumPy array; instants with a zone in UTC."""
    if (
        getattr(getattr(column, "dtype", None), "tz", None) is not None
    ):  # a pandas column with a zone would become an object array
        return column.to_numpy(dtype=_NANOSECONDS)
    return column.to_numpy(zero_copy_only=False) if hasattr(column, "type") else column.to_numpy()


def _kind(array: object) -> str:
    """Return the NumPy kind of an array, or ""."""
    return str(getattr(getattr(array, "dtype", None), "kind", ""))


def _in_nanoseconds(dates: np.ndarray) -> np.ndarray:
    """Return dates in nanoseconds; raise DataError if a date is not representable."""
    fine = np.ascontiguousarray(dates.astype(_NANOSECONDS))
    far = np.flatnonzero((fine.astype(dates.dtype) != dates) & ~np.isnat(dates))
    if len(far):
        raise DataError.wrong_type("time", str(dates[far[0]]), "dates between 1678 and 2262")
    return fine


def _instant(cell: object, row: int = 0) -> Any:
    """Return a date without its zone, in UTC; strings are parsed as ISO 8601."""
    if isinstance(cell, str):
        try:
            cell = datetime.fromisoformat(cell)
        except ValueError:
            hint = "Convert the values to dates first, for example with pandas.to_datetime."
            raise DataError.wrong_type(f"the time of row {row}", repr(cell), "a date: 2026-05-31T08:00", hint) from None
    if is_missing(cell):
        return np.datetime64("NaT")
    if isinstance(cell, datetime) and cell.tzinfo is not None:
        cell = cell.astimezone(UTC).replace(tzinfo=None)
    return np.datetime64(cell)


def read_span(span: Any, name: str) -> tuple[TimeSpan, bool]:
    """Return a duration as a number, and whether it is a duration of dates."""
    if isinstance(span, timedelta | np.timedelta64):
        length = int(np.timedelta64(span).astype("m8[ns]").astype(np.int64))
        good = length > 0
        dated = True
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


def has_column(X: Rows, name: str) -> bool:
    """Return whether rows have a column of this name."""
    if isinstance(X, Mapping):
        return name in X
    return name in list(getattr(X, "column_names", getattr(X, "columns", ())))


def without_times(X: Any, time: str) -> tuple[Any, Any]:
    """Return the rows without their time column, and that column."""
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

    frame = nw.from_native(X, eager_only=True)
    return frame.drop(time).to_native(), frame[time].to_native()

"""Dates: a date column is read as columns of its year, month, day of the week and hour."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import date, datetime
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.data.encoding import is_missing
from tallybayes.data.missing_indicators import columns_named, sources_of
from tallybayes.data.source import reading
from tallybayes.errors import DataError
from tallybayes.tally.factor import Name

if TYPE_CHECKING:
    import pyarrow as pa

    from tallybayes.data.table import Table
    from tallybayes.typing import Column

PARTS = ("year", "month", "day_of_week", "hour")
_LEVELS = {"month": range(1, 13), "day_of_week": range(7), "hour": range(24)}  # Monday is 0, as in pandas and Arrow
_COARSE = {"Y": 1, "M": 2, "W": 3, "D": 3}  # number of parts of NumPy dates by unit, for units of a day or more
_EXPECTED = "a date such as 2026-05-31 or 2026-05-31T08:00"


def dates_of(name: object) -> list[Name]:
    """Return the date columns of which a name may denote a part."""
    source, _, part = name.rpartition(".") if isinstance(name, str) else ("", "", "")
    return columns_named(source) if part in PARTS and source else []


def origins(name: Name) -> list[Name]:
    """Return a name and the columns it may be derived from, as a missing-value indicator or a part of dates."""
    names = [name]
    for other in names:
        names += [*sources_of(other), *dates_of(other)]
    return names


def with_dates_whole(columns: Mapping[Name, int], dates: Collection[Name]) -> dict[Name, int]:
    """Return columns and their widths with date columns in place of their parts, as before the parts were read."""
    out: dict[Name, int] = {}
    for name, width in columns.items():
        sources = [date for date in dates_of(name) if date in dates] if dates else []
        out[sources[0] if sources else name] = 1 if sources else width
    return out


def parts_of_type(kind: str) -> tuple[str, ...]:
    """Return the parts that dates of an Arrow or NumPy type have; none for other types."""
    if kind.startswith("datetime64"):
        return PARTS[: _COARSE.get(kind[11:-1].lstrip("0123456789"))]
    if kind.startswith("timestamp"):
        return PARTS
    return PARTS[:-1] if kind.startswith("date") else ()


def type_of_objects(cells: Iterable[Any]) -> str:
    """Return the Arrow type of a column of Python dates; empty for other objects."""
    kind = ""
    for cell in cells:
        if isinstance(cell, datetime | np.datetime64):
            return "timestamp[us]"
        if isinstance(cell, date):
            kind = "date32[day]"
        elif not is_missing(cell):
            return ""
    return kind


def type_of_times(column: pa.ChunkedArray) -> pa.DataType:
    """Return the type of a JSON column; strings of ISO 8601 times are times, also with fractions of a second.

    Arrow reads times with fractions as strings. The unit is microseconds, since later rows may have fractions. Times
    with a time zone are in UTC.
    """
    import pyarrow as pa

    if pa.types.is_timestamp(column.type):
        return pa.timestamp("us")
    if pa.types.is_string(column.type) and column.null_count < len(column):
        for unit, zone in product(("us", "ns"), (None, "UTC")):
            try:
                column.cast(pa.timestamp(unit, zone))
            except pa.ArrowInvalid:
                continue
            return pa.timestamp(unit)
    return column.type


def part_of(column: Column, name: Name) -> Any:
    """Return one part of every date of a column; missing if the date is missing or its type has no such part.

    The year is a numeric column. The other parts are categorical, Arrow dictionary arrays. Dates with a time zone are
    in its local time. Strings are read as ISO 8601. Infinite dates of databases are missing.

    Parameters
    ----------
    column : array, list, or Arrow array, of dates or strings
    name : str
        The name of the part, such as ``"when.hour"``.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    source, _, part = str(name).rpartition(".")
    if isinstance(column, np.ndarray) and column.dtype.kind == "M":
        has_part = part in parts_of_type(str(column.dtype))
        dates = pa.array(column.astype("datetime64[s]"))
    else:
        dates, has_part = _as_dates(column, source, part)
    levels = _LEVELS.get(part, (0,))
    with reading(f"column {source!r}"):  # unknown time zones, dates out of range
        values = getattr(pc, part)(_finite(dates)) if has_part else pa.nulls(len(dates), pa.int64())
        if part == "year":
            return values if values.null_count else values.to_numpy()
        codes = pc.subtract(values, levels[0]).cast(pa.int8())
    return pa.DictionaryArray.from_arrays(codes, pa.array(levels, pa.int64()))


def _as_dates(column: Column, name: Name, part: str) -> tuple[pa.Array, bool]:
    """Return a column as Arrow dates, and whether their type has a part."""
    import pyarrow as pa

    array = column.to_arrow() if hasattr(column, "to_arrow") else column
    kind = str(getattr(array, "type", ""))
    if kind.startswith("dictionary"):
        array = array.cast(array.type.value_type)
        kind = str(array.type)
    if not kind or kind in ("string", "large_string", "string_view", "null"):
        cells = array.to_pylist() if kind else array
        dates = [_as_datetime(cell, row, name, whole_days=part != "hour") for row, cell in enumerate(cells)]
        return pa.array(dates, pa.timestamp("us")), True
    parts = parts_of_type(kind)
    if not parts:
        raise DataError.wrong_type(f"column {name!r}", f"of type {kind}", "dates, as during fitting")
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array, part in parts


def _finite(dates: pa.Array) -> pa.Array:
    """Return dates without infinite ones, which DuckDB represents by the largest integers of their type."""
    import pyarrow as pa
    import pyarrow.compute as pc

    numbers = dates.view(pa.int32() if dates.type.bit_width == 32 else pa.int64())
    largest = 2 ** (dates.type.bit_width - 1) - 1
    extremes = pc.min_max(numbers).as_py()
    if largest not in (extremes["max"], -(extremes["min"] or 0)):
        return dates
    is_infinite = pc.is_in(numbers, pa.array([largest, -largest], numbers.type))
    return pc.if_else(is_infinite, pa.scalar(None, dates.type), dates)


def _as_datetime(cell: object, row: int, name: Name, *, whole_days: bool) -> datetime | None:
    """Return a date in local time; None if it is missing, or is a day without time and those are excluded."""
    if is_missing(cell) or cell == "":
        return None
    value = cell.astype("datetime64[us]").item() if isinstance(cell, np.datetime64) else cell
    if isinstance(cell, str):
        text = cell.strip()
        try:
            value = datetime.fromisoformat(text) if len(text) > len("2026-05-31") else date.fromisoformat(text)
        except ValueError:
            value = None
    if not isinstance(value, date):
        raise DataError.bad_cell(cell, row, name, _EXPECTED)
    if isinstance(value, datetime):
        return datetime(value.year, value.month, value.day, value.hour)
    return datetime(value.year, value.month, value.day) if whole_days else None


def _all_parts(table: Table, keep: Collection[Name]) -> dict[Name, list[Name]]:
    """Return the names of all parts of every date column except those in `keep`."""
    dates = [name for name in table.columns if name not in keep and table.kind(name) == "date"]
    return {name: [f"{name}.{part}" for part in parts_of_type(table.type_name(name))] for name in dates}


def _requested_parts(table: Table, wanted: Iterable[Name]) -> dict[Name, list[Name]]:
    """Return the requested parts of dates that are not columns of the table, by date column."""
    parts: dict[Name, list[Name]] = {}
    for part in wanted:
        if part not in table.columns:
            for name in dates_of(part):
                if name in table.columns:
                    parts.setdefault(name, []).append(part)
    return parts


def with_parts_of_dates(table: Table, wanted: Iterable[Name] | None = None, keep: Iterable[Name] = ()) -> Table:
    """Return the table with date columns replaced by their parts.

    Parameters
    ----------
    table : Table
    wanted : iterable of names, optional
        The parts that a fitted model reads; by default every part that the type of a column has.
    keep : iterable of names, optional
        Columns that stay as they are.
    """
    if wanted is None and table.matrix is not None:  # an array of numbers
        return table
    parts = _all_parts(table, set(keep)) if wanted is None else _requested_parts(table, wanted)
    if not parts:
        return table
    columns: dict[Name, Any] = {}
    for name, column in table.columns.items():
        for part in parts.get(name, ()):
            if part in table.columns:
                hint = f"Rename that column, or remove {name!r}."
                raise DataError(f"column {part!r} has the name of a part of the dates in {name!r}.\n    {hint}")
            columns[part] = table.column(part)
        if name not in parts:
            columns[name] = column
    replaced = table.replaced(columns)
    replaced.invalid_cells = table.invalid_cells
    replaced.file_location = table.file_location
    replaced.cache = table.cache
    return replaced

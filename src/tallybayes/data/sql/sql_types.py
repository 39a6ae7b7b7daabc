"""Conversion of database types to Arrow types, and of rows of Python values to Arrow tables and back."""

from __future__ import annotations

import decimal
import json
import re
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tallybayes.errors import DataError

if TYPE_CHECKING:
    import psycopg
    import pyarrow as pa

NESTED = "its cells are lists, structs or maps"
_TIMES = ("date", "timestamp", "timestamptz")
_UNREAD = re.compile(r"month_day_nano_interval|duration|time(32|64)|(large_|fixed_size_)?binary")
_SQLITE = {  # Arrow types by patterns of declared types; null if values may be of another type
    "INT": "int64",
    "CHAR|CLOB|TEXT": "string",
    r"REAL|FLOA|DOUB|,\s*[1-9]\d*\s*\)": "float64",
    "DATETIME|TIMESTAMP": "timestamp[us]",
    "DATE": "date32",
    "": "null",
}
_POSTGRESQL = {
    "bool": "bool",
    "int2": "int16",
    "int4": "int32",
    "int8": "int64",
    "oid": "int64",
    "float4": "float",
    "float8": "double",
    "numeric": "double",  # without a precision: see `PostgreSQL.exact`
    "bytea": "binary",
    "date": "date32",
    "time": "time64[us]",
    "timestamp": "timestamp[us]",
} | dict.fromkeys(("text", "varchar", "bpchar", "name", "char", "unknown"), "string")


def is_opaque(kind: pa.DataType) -> bool:
    """Return whether a type exists only in a database; its values are text."""
    return getattr(kind, "extension_name", "") == "arrow.opaque"


def unread_type(kind: object) -> str:
    """Return why cells of an Arrow type cannot be read as numbers, categories or dates; empty if they can."""
    import pyarrow as pa

    if not isinstance(kind, pa.DataType):
        return ""
    if is_opaque(kind):
        return f"its type is {kind.type_name}"
    value_type = kind.value_type if pa.types.is_dictionary(kind) else getattr(kind, "storage_type", kind)
    if pa.types.is_nested(value_type):
        return NESTED
    return f"its type is {value_type}" if _UNREAD.match(str(value_type)) else ""


def without_opaque(table: pa.Table) -> pa.Table:
    """Return the table with values of opaque types as text."""
    import pyarrow as pa

    columns = [column.cast(column.type.storage_type) if is_opaque(column.type) else column for column in table.columns]
    fields = [field.with_type(column.type) for field, column in zip(table.schema, columns, strict=True)]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


# ---- SQLite ---------------------------------------------------------------------------------------------------------


def sqlite_type(declared: str) -> pa.DataType:
    """Return the Arrow type of a declared column type; null if its values may be of another type."""
    import pyarrow as pa

    alias = next(name for pattern, name in _SQLITE.items() if re.search(pattern, declared.upper()))
    return pa.type_for_alias(alias)


# ---- PostgreSQL -----------------------------------------------------------------------------------------------------


def postgresql_schema(cursor: psycopg.Cursor[Any]) -> pa.Schema:
    """Return the columns of a result with the types sent by the server; types without an Arrow type are opaque."""
    import pyarrow as pa

    described = list(cursor.description or ())
    zone = str(cursor.connection.info.timezone)
    numbers = ", ".join(str(column.type_code) for column in described) or "0"
    names = {
        row[0]: row[1:]
        for row in cursor.execute(
            "SELECT t.oid, format_type(t.oid, -1), t.typtype, t.typname, e.typname FROM pg_catalog.pg_type t "
            f"LEFT JOIN pg_catalog.pg_type e ON e.oid = t.typelem AND t.typcategory = 'A' WHERE t.oid IN ({numbers})"
        ).fetchall()
    }
    fields = []
    for column in described:
        name, kind, base_name, element = names[column.type_code]
        arrow_type = _postgresql_type(base_name, column, zone)
        if arrow_type is None and element is not None and element != "numeric":  # no Arrow type has all its digits
            inner = _postgresql_type(element, None)
            arrow_type = None if inner is None else pa.list_(inner)
        if kind == "e" or base_name == "uuid":  # read as text
            fields.append(pa.field(column.name, pa.string(), metadata={"postgresql": name}))
        elif arrow_type is not None:
            metadata = {"postgresql": name} if base_name == "numeric" and not pa.types.is_decimal(arrow_type) else None
            fields.append(pa.field(column.name, arrow_type, metadata=metadata))
        else:
            fields.append(pa.field(column.name, pa.opaque(pa.string(), name, "PostgreSQL")))
    return pa.schema(fields)


def _postgresql_type(name: str, column: psycopg.Column | None, zone: str = "UTC") -> pa.DataType | None:
    """Return the Arrow type that has all values of a PostgreSQL type, or None."""
    import pyarrow as pa

    if name == "numeric" and column is not None and column.precision:
        return decimal_type(column.precision, column.scale or 0)
    if name == "timestamptz":
        return pa.timestamp("us", zone)
    return pa.type_for_alias(_POSTGRESQL[name]) if name in _POSTGRESQL else None


def decimal_type(precision: int, scale: int) -> pa.DataType:
    """Return the smallest decimal type; float64 if no decimal type has so many digits."""
    import pyarrow as pa

    if precision <= 38:
        return pa.decimal128(max(1, precision), scale)
    return pa.decimal256(precision, scale) if precision <= 76 and scale >= 0 else pa.float64()


def infinite_as_text(cursor: psycopg.Cursor[Any]) -> None:
    """Make a psycopg cursor return times that Python does not have, such as infinity, as text."""
    from psycopg import DataError as NoSuchTime
    from psycopg.types import datetime as loaders

    def tolerant(base: type) -> type:
        def load(self: object, data: bytes) -> Any:
            try:
                return base.load(self, data)  # type: ignore[attr-defined]
            except (NoSuchTime, ValueError):
                return bytes(data).decode()

        return type(base.__name__, (base,), {"load": load})

    for name, kind in zip(_TIMES, ("DateLoader", "TimestampLoader", "TimestamptzLoader"), strict=True):
        cursor.adapters.register_loader(name, tolerant(getattr(loaders, kind)))


# ---- Rows -----------------------------------------------------------------------------------------------------------


def as_arrow(rows: Sequence[tuple[Any, ...]], schema: pa.Schema, source: str, *, guess: bool = False) -> pa.Table:
    """Convert rows of Python values to an Arrow table.

    Parameters
    ----------
    rows : sequence of tuples
    schema : pyarrow.Schema
        The types of the columns; null types are inferred from the values.
    source : str
        The name of the table in messages.
    guess : bool, default False
        Infer the type of a column from its values if they are not of the type of the schema, instead of raising.
    """
    import pyarrow as pa

    columns: list[Any] = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
    arrays = [_array(values, field, source, guess) for field, values in zip(schema, columns, strict=True)]
    return pa.Table.from_arrays(arrays, names=schema.names)


def _array(values: Sequence[Any], field: pa.Field, source: str, guess: bool) -> Any:
    """Convert values of a column to an Arrow array."""
    import pyarrow as pa

    kind = field.type.storage_type if is_opaque(field.type) else field.type
    if any(isinstance(value, decimal.Decimal) for value in values):
        exact = pa.types.is_decimal(kind)  # decimals have no NaN
        kind = kind if exact or not (pa.types.is_null(kind) or pa.types.is_floating(kind)) else pa.float64()
        values = [_number(value, exact) for value in values]
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        infinite = ("infinity", "-infinity")  # missing, as in DuckDB: it has no month and no hour
        values = [None if v in infinite else _date(v) if isinstance(v, str) else v for v in values]
    if guess and pa.types.is_temporal(kind):
        values = [None if isinstance(value, str) else value for value in values]  # such as infinity
    for candidate in (kind, pa.null()) if guess else (kind,):
        try:
            array = pa.array(values, None if pa.types.is_null(candidate) else candidate)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
            continue
        return pa.ExtensionArray.from_storage(field.type, array) if is_opaque(field.type) else array
    invalid = next((value for value in values if isinstance(value, str)), None) if pa.types.is_temporal(kind) else None
    found, expected = "values of several kinds", "one kind"
    if invalid is not None:
        found, expected = repr(invalid), f"a {kind} of the years 1 to 9999, or 'infinity'"
    raise DataError(
        f"column {field.name!r} of {source} holds {found}; expected {expected}.\n"
        "    Convert it in the query, for example CAST(column AS TEXT), or leave the column out."
    )


def _date(text: str) -> datetime | str:
    """Return an ISO 8601 date in local time, as SQLite stores dates; return other text unchanged."""
    try:
        return datetime.fromisoformat(text).replace(tzinfo=None)
    except ValueError:
        return text


def _number(value: object, exact: bool) -> Any:
    """Return a decimal as a float or, if exact, as it is, with NaN as None; other values unchanged."""
    if not isinstance(value, decimal.Decimal):
        return value
    if exact:
        return value if value.is_finite() else None
    return float(value)


def sqlite_cells(column: pa.ChunkedArray) -> list[Any]:
    """Convert an Arrow column to values for SQLite: nested values to JSON, other types without equivalent to text."""

    def convert(value: object) -> Any:
        if isinstance(value, list | dict):
            return json.dumps(value, default=str, ensure_ascii=False)
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            return str(value)
        return value if value is None or isinstance(value, bool | int | float | str | bytes) else str(value)

    return _cells(column, convert)


def postgresql_cells(column: pa.ChunkedArray) -> list[Any]:
    """Convert an Arrow column to values for psycopg: structs and lists of structs to JSON."""
    import pyarrow as pa

    kind = column.type
    flat = pa.types.is_list(kind) and not pa.types.is_nested(kind.value_type)
    if pa.types.is_nested(kind) and not flat:
        return _cells(column, lambda value: None if value is None else json.dumps(value, default=str))
    return _cells(column, None)


def _cells(column: pa.ChunkedArray, convert: Callable[[Any], Any] | None) -> list[Any]:
    """Return the cells of an Arrow column, converted."""
    storage = column.cast(column.type.storage_type) if is_opaque(column.type) else column
    cells: list[Any] = storage.to_pylist()
    return cells if convert is None else [convert(value) for value in cells]

"""SQL dialects: expressions, names, queries and the writing of tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from tallybayes.data.sql.row_arrays import Array, evaluate
from tallybayes.data.sql.sql_arrays import SqlArrays
from tallybayes.data.sql.sql_names import Entry, find_table
from tallybayes.errors import DataError
from tallybayes.families._shared.sql_aggregates import Expression, IfPresent, Sum, Weight

if TYPE_CHECKING:
    import pyarrow as pa

    from tallybayes.tally.factor import Name

Cursor: TypeAlias = Any  # a cursor or connection of the database's library
_SQL_TYPES = {  # by the name of the Arrow type; in braces, types of the dialect
    "bool$": "BOOLEAN",
    "uint64": "NUMERIC(20, 0)",
    "u?int": "BIGINT",
    "halffloat|float|double": "{0.double}",
    "date": "DATE",
    "time(32|64)": "TIME",
    "timestamp.*tz=": "TIMESTAMP WITH TIME ZONE",
    "timestamp": "TIMESTAMP",
    "(large_)?binary$": "{0.binary}",
    "(large_)?string|string_view": "TEXT",
    "(large_|fixed_size_)?list|struct|map": "{0.nested}",
    "duration": "{0.interval}",
}


class Dialect:
    """Base class of SQL dialects.

    Parameters
    ----------
    connection : a connection of the database's library
    """

    grouping_sets = True  # whether several groupings are counted in one pass
    double = "DOUBLE PRECISION"
    binary = "BLOB"  # types of columns that are written
    nested = "TEXT"
    interval = "TEXT"
    own_type = b"sql"  # metadata key of a field for its type in the database
    most_bytes: int | None = None  # maximum length of a name; the database truncates longer ones
    dynamic_types = False  # whether the types of columns are determined only by their values
    label = "TEXT"  # the type as which strings are compared
    materialized = ""  # keyword that prevents inlining of WITH queries
    greatest = "GREATEST"
    json_rows = ""  # query of rows in a JSON text, for databases that read long lists of VALUES badly
    recursive = True  # whether a WITH query may read itself without a limit of rows
    row_number = "ROW_NUMBER() OVER ()"  # in the order of the table
    number_of = "CAST({} AS DOUBLE PRECISION)"  # a number, with NaN as NULL
    date_parts: ClassVar = {
        "year": "CASE WHEN ISFINITE({0}) THEN CAST(EXTRACT(YEAR FROM {0}) AS INTEGER) END",
        "month": "CASE WHEN ISFINITE({0}) THEN CAST(EXTRACT(MONTH FROM {0}) AS INTEGER) END",
        "day_of_week": "CASE WHEN ISFINITE({0}) THEN CAST(EXTRACT(ISODOW FROM {0}) AS INTEGER) - 1 END",
        "hour": "CASE WHEN ISFINITE({0}) THEN CAST(EXTRACT(HOUR FROM {0}) AS INTEGER) END",
    }

    def __init__(self, connection: object) -> None:
        self.connection: Any = connection
        self._in_snapshot = False

    def quote(self, name: object) -> str:
        """Return a name as a quoted identifier."""
        return '"' + str(name).replace('"', '""') + '"'

    # ---- Reading ----------------------------------------------------------------------------------------------------

    def cursor(self) -> Any:
        """Return a cursor whose rows are tuples, whatever the row factory of the connection."""
        return self.connection

    def run(self, query: str) -> list[tuple[Any, ...]]:
        """Return all rows of the result of a query."""
        with reported():
            rows: list[tuple[Any, ...]] = self.cursor().execute(query).fetchall()
            return rows

    def schema(self, table: str) -> pa.Schema:
        """Return the columns of a table or query and their types; null if only the values determine a type."""
        raise NotImplementedError

    def exact(self, table: str, schema: pa.Schema, columns: Sequence[str]) -> pa.Schema:
        """Return the schema with types that preserve all digits of some columns."""
        return schema

    def types(self, table: str) -> dict[str, str]:
        """Return the types of the columns by their names in the database; empty if new tables have Arrow's types."""
        return {}

    def known_types(self, types: dict[str, str]) -> dict[str, str]:
        """Return the types, by column, that this database has."""
        return types

    def native(self, fields: Sequence[pa.Field], types: dict[str, str]) -> set[str]:
        """Return the columns whose values Arrow preserves, by their types in the database."""
        return set()

    def without_arrow_type(self, table: str, schema: pa.Schema, columns: Sequence[str]) -> list[str]:
        """Return the columns with values that no Arrow type has."""
        return []

    def columns(self, table: str) -> list[str]:
        """Return the names of the columns of a table or query."""
        return list(self.schema(table).names)

    def rows(self, table: str, schema: pa.Schema, source: str, rest: str = "") -> Iterator[pa.Table]:
        """Yield some columns of a table or query in batches; `rest` follows the FROM clause."""
        raise NotImplementedError

    def select(self, field: pa.Field) -> str:
        """Return the expression by which a column is read."""
        return self.quote(field.name)

    def _select(self, table: str, schema: pa.Schema, rest: str) -> str:
        """Return the query that reads the columns of a schema."""
        return f"SELECT {', '.join(map(self.select, schema))} FROM {table} {rest}"

    # ---- Names of tables --------------------------------------------------------------------------------------------

    quoted_folds = True  # whether quoted names are folded, too

    def folds(self, name: str) -> str:
        """Return a name with its case folded as the database compares names."""
        return name.casefold()

    def catalog(self) -> str:
        """Return a query of all tables: database, schema, name, rank in the search path (or NULL), internal."""
        raise NotImplementedError

    def find(self, name: str) -> str:
        """Return a table, quoted, by its name as the user writes it; the catalog is searched, so no query fails."""
        return find_table(self, name)

    def tables(self, rest: str = "") -> list[Entry]:
        """Return the tables of the catalog."""
        return [Entry(*row) for row in self.run(f"SELECT * FROM ({self.catalog()}) AS found {rest}")]

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Return a context in which all queries see the same rows: a transaction, unless the user has begun one."""
        if self._in_snapshot or self.in_transaction():
            yield
            return
        self._in_snapshot = True
        try:
            with self.transaction():
                yield
        finally:
            self._in_snapshot = False

    def in_transaction(self) -> bool:
        """Return whether the user has begun a transaction, which then is the snapshot."""
        raise NotImplementedError

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run a transaction that is rolled back at the end."""
        cursor = self.cursor()
        cursor.execute("BEGIN TRANSACTION")
        try:
            yield
        finally:
            cursor.execute("ROLLBACK")

    # ---- Writing ----------------------------------------------------------------------------------------------------

    @contextmanager
    def writing(self, name: Sequence[str], schema: pa.Schema) -> Iterator[Callable[[pa.Table], None]]:
        """Create a table and yield a function that adds rows; after an error the table does not exist."""
        table = ".".join(map(self.quote, name))
        with self.all_or_nothing() as cursor:
            with _reporting_table(table):
                self.create(cursor, table, schema)

            def write(rows: pa.Table) -> None:
                with _reporting_table(table):
                    self.insert(cursor, table, rows)

            yield write

    def create(self, cursor: Cursor, table: str, schema: pa.Schema) -> None:
        """Create a table with the columns of a schema."""
        types = {field.name: self.own_type_of(field) or self.type_of(field.name, field.type) for field in schema}
        columns = ", ".join(f"{self.quote(name)} {kind}" for name, kind in types.items())
        cursor.execute(f"CREATE TABLE {table} ({columns})")

    def own_type_of(self, field: pa.Field) -> str:
        """Return the type of the database that a field names; empty if it names none."""
        return str((field.metadata or {}).get(self.own_type, b"").decode())

    @contextmanager
    def all_or_nothing(self) -> Iterator[Any]:
        """Yield a cursor for writing in the user's transaction; after an error its work is rolled back."""
        cursor = self.cursor()
        cursor.execute("SAVEPOINT tallybayes")
        try:
            yield cursor
        except BaseException:
            cursor.execute("ROLLBACK TO SAVEPOINT tallybayes")
            raise
        finally:
            cursor.execute("RELEASE SAVEPOINT tallybayes")

    def insert(self, cursor: Cursor, table: str, rows: pa.Table) -> None:
        """Add rows to a table."""
        raise NotImplementedError

    def type_of(self, name: str, kind: pa.DataType) -> str:
        """Return the SQL type of a column of an Arrow type."""
        import pyarrow as pa

        if pa.types.is_decimal(kind):
            return f"NUMERIC({kind.precision}, {kind.scale})"
        sql_type = next((name for pattern, name in _SQL_TYPES.items() if re.match(pattern, str(kind))), None)
        if sql_type is None:
            raise DataError(f"column {name!r} is {kind}, which cannot be written to a table; expected another type.")
        return sql_type.format(self)

    # ---- Values ----------------------------------------------------------------------------------------------------

    def text(self, value: str) -> str:
        """Return a string as an SQL literal; raise DataError if it contains NUL, which SQL does not allow."""
        if "\0" in value:
            raise DataError(f"the level {value!r} contains the character NUL; expected text without NUL, as in SQL.")
        return "'" + value.replace("'", "''") + "'"

    def value(self, value: float | str) -> str:
        """Return a number, a boolean or a string as an SQL literal; the literal of a float has type double."""
        if isinstance(value, bool):
            return "TRUE" if value else "FALSE"
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, int):
            return str(value)
        written = repr(float(value))
        return written if "e" in written else f"{written}e0"  # otherwise a decimal, which DuckDB and Spark round

    # ---- Expressions ------------------------------------------------------------------------------------------------

    def part_of_date(self, name: str, date: Name) -> str:
        """Return the expression for one part of a date column; days of the week are numbered from Monday, 0."""
        return self.date_parts[name.rpartition(".")[2]].format(self.quote(date))

    def cast(self, column: str) -> str:
        """Return a column converted to a number."""
        return f"CAST({column} AS {self.double})"

    def number(self, column: str) -> str:
        """Return a column converted to a number; NaN is missing."""
        return self.number_of.format(column)

    def bool_as_number(self, column: str) -> str:
        """Return a boolean column converted to 1 and 0; other columns are converted to numbers."""
        return self.number(column)

    def write(self, expression: Expression, columns: Sequence[str], weight: str | None) -> str:
        """Return an expression over columns that are already written as numbers."""
        engine = SqlArrays(self)
        arrays = [engine.array([column]) for column in columns]
        weights = 1.0 if weight is None else engine.array([self.number(weight)])
        value = evaluate(expression, arrays, weights)
        return engine.literal(value.value[0] if isinstance(value, Array) else value)

    def sum(self, sum: Sum, columns: Sequence[str], weight: str | None) -> str:
        """Return the SQL of a sum; 0 over no rows."""
        if weight is None and isinstance(sum.of, IfPresent) and sum.of.then == Weight():
            return f"COUNT({self.write(sum.of.there, columns, None)})"
        return f"COALESCE(SUM({self.write(sum.of, columns, weight)}), 0)"


@contextmanager
def reported(subject: str = "the database") -> Iterator[None]:
    """Convert errors of a database library to DataError."""
    try:
        yield
    except DataError:
        raise
    except Exception as error:
        raise DataError(
            f"{subject} cannot answer the query: {first_line(error)}.\n    Check the query and the connection."
        ) from error


@contextmanager
def _reporting_table(table: str) -> Iterator[None]:
    """Convert errors of writing a table to DataError."""
    try:
        yield
    except DataError:
        raise
    except Exception as error:
        raise DataError(
            f"the table {table} cannot be written: {first_line(error)}.\n"
            "    Nothing was changed. Existing tables are not replaced: drop the table, or pass another name."
        ) from error


def first_line(error: Exception) -> str:
    """Return the first line of the message of an error; of an error in Java, that of its exception there."""
    error = getattr(error, "java_exception", error)
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")

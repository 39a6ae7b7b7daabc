"""Dialect: how expressions, names and grouped counts are written in SQL, and how a database is queried."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tallybayes.data.sql.sql_names import Entry, find_table
from tallybayes.errors import DataError
from tallybayes.families._shared.sql_aggregates import (
    BinIndex,
    Const,
    Expression,
    IfPresent,
    Log,
    Minus,
    Product,
    SqlColumn,
    Sum,
    Weight,
)

if TYPE_CHECKING:
    import pyarrow as pa


class Dialect:
    """What the databases have in common.

    Parameters
    ----------
    connection : a connection of the database's library
    """

    grouping_sets = True  # whether several groupings are counted in one pass
    double = "DOUBLE PRECISION"
    binary, nested, interval = "BLOB", "TEXT", "TEXT"  # types of columns that are written
    own_type = b"sql"  # the key of a type of the database among the metadata of a field
    most_bytes: int | None = None  # of a name, which the database cuts after them
    dynamic_types = False  # whether only the values tell the types of columns
    label = "TEXT"  # what strings are compared as
    materialized = ""  # what keeps a WITH query from being written out wherever it is used
    greatest = "GREATEST"

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self._in_snapshot = False

    def quote(self, name: Any) -> str:
        """A name of the user's, whatever it holds."""
        return '"' + str(name).replace('"', '""') + '"'

    # ---- Reading ----------------------------------------------------------------------------------------------------

    def cursor(self) -> Any:
        """A new cursor whose rows are tuples, whatever rows the user's connection makes."""
        return self.connection

    def run(self, query: str) -> list[tuple[Any, ...]]:
        """All rows of a result."""
        with reported():
            found: list[tuple[Any, ...]] = self.cursor().execute(query).fetchall()
            return found

    def schema(self, table: str) -> pa.Schema:
        """The columns of a table or query, and their types; null where only the values tell the type."""
        raise NotImplementedError

    def exact(self, table: str, schema: pa.Schema, columns: Sequence[str]) -> pa.Schema:
        """The schema with types that have every digit of some columns, where those of the schema do not."""
        return schema

    def types(self, table: str) -> dict[str, str]:
        """The types of the columns as the database names them; empty where a new table has those of Arrow."""
        return {}

    def known_types(self, types: dict[str, str]) -> dict[str, str]:
        """Those of some types, by column, which this database has."""
        return types

    def native(self, fields: Sequence[pa.Field], types: dict[str, str]) -> set[str]:
        """The columns whose values Arrow has unchanged, by their types here."""
        return set()

    def without_arrow_type(self, table: str, schema: pa.Schema, columns: Sequence[str]) -> list[str]:
        """Those of some columns whose values no type of Arrow has."""
        return []

    def columns(self, table: str) -> list[str]:
        """The names of the columns of a table or query."""
        return list(self.schema(table).names)

    def rows(self, table: str, schema: pa.Schema, source: str, rest: str = "") -> Iterator[pa.Table]:
        """Some columns of a table or query, some rows at a time; `rest` follows FROM."""
        raise NotImplementedError

    def select(self, field: pa.Field) -> str:
        """A column as it is read."""
        return self.quote(field.name)

    def _select(self, table: str, schema: pa.Schema, rest: str) -> str:
        return f"SELECT {', '.join(map(self.select, schema))} FROM {table} {rest}"

    # ---- Names of tables --------------------------------------------------------------------------------------------

    folds = staticmethod(str.casefold)  # what is equal in names
    quoted_folds = True  # whether names in quotes are compared so, too

    def catalog(self) -> str:
        """A query of the tables: database, schema, name, and its rank in the search path, or NULL."""
        raise NotImplementedError

    def find(self, name: str) -> str:
        """A table by its name as the user writes it, quoted: from the catalog, so that no query fails."""
        return find_table(self, name)

    def tables(self, rest: str = "") -> list[Entry]:
        """The tables of the catalog."""
        return [Entry(*row) for row in self.run(f"SELECT * FROM ({self.catalog()}) AS found {rest}")]

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """While it lasts all queries see the same rows: in a transaction, unless the user has begun one."""
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
        """Whether the user has begun a transaction, which then is the snapshot."""
        raise NotImplementedError

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A transaction that ends as if it had not been."""
        cursor = self.cursor()
        cursor.execute("BEGIN TRANSACTION")
        try:
            yield
        finally:
            cursor.execute("ROLLBACK")

    # ---- Writing ----------------------------------------------------------------------------------------------------

    @contextmanager
    def writing(self, name: Sequence[str], schema: pa.Schema) -> Iterator[Callable[[pa.Table], None]]:
        """A new table, and what adds rows to it: all are there at the end or, after an error, the table is not."""
        table = ".".join(map(self.quote, name))
        with self.all_or_nothing() as cursor:
            with _refused(table):
                self.create(cursor, table, schema)

            def write(rows: pa.Table) -> None:
                with _refused(table):
                    self.insert(cursor, table, rows)

            yield write

    def create(self, cursor: Any, table: str, schema: pa.Schema) -> None:
        """Create a table with the columns of a schema."""
        own = {field.name: (field.metadata or {}).get(self.own_type, b"").decode() for field in schema}
        types = {field.name: own[field.name] or self.type_of(field.name, field.type) for field in schema}
        columns = ", ".join(f"{self.quote(name)} {kind}" for name, kind in types.items())
        cursor.execute(f"CREATE TABLE {table} ({columns})")

    @contextmanager
    def all_or_nothing(self) -> Iterator[Any]:
        """A cursor for writing, whose work is undone after an error; it is part of a transaction of the user's."""
        cursor = self.cursor()
        cursor.execute("SAVEPOINT tallybayes")
        try:
            yield cursor
        except BaseException:
            cursor.execute("ROLLBACK TO SAVEPOINT tallybayes")
            raise
        finally:
            cursor.execute("RELEASE SAVEPOINT tallybayes")

    def insert(self, cursor: Any, table: str, rows: pa.Table) -> None:
        """Add rows to a table."""
        raise NotImplementedError

    def type_of(self, name: str, kind: pa.DataType) -> str:
        """The SQL type of a column, by its Arrow type."""
        import pyarrow as pa

        is_ = pa.types
        if is_.is_decimal(kind):
            return f"NUMERIC({kind.precision}, {kind.scale})"
        if is_.is_timestamp(kind):
            return "TIMESTAMP" if kind.tz is None else "TIMESTAMP WITH TIME ZONE"
        known = [("BOOLEAN", is_.is_boolean), ("NUMERIC(20, 0)", is_.is_uint64), ("BIGINT", is_.is_integer)]
        known += [(self.double, is_.is_floating), ("DATE", is_.is_date), ("TIME", is_.is_time)]
        known += [(self.binary, is_binary) for is_binary in (is_.is_binary, is_.is_large_binary)]
        known += [("TEXT", is_text) for is_text in (is_.is_string, is_.is_large_string, is_.is_string_view)]
        known += [(self.nested, is_.is_nested), (self.interval, is_.is_duration)]
        found = next((name for name, holds in known if holds(kind)), None)
        if found is None:
            raise DataError(f"column {name!r} is {kind}, which cannot be written to a table; expected another type.")
        return found

    # ---- Values ----------------------------------------------------------------------------------------------------

    def text(self, value: str) -> str:
        """A string, whatever it holds but NUL, which no SQL can write."""
        if "\0" in value:
            raise DataError(f"the label {value!r} holds the character NUL; expected text, of which SQL has no NUL.")
        return "'" + value.replace("'", "''") + "'"

    def value(self, value: Any) -> str:
        """A label: text, a whole number, yes or no; or a number, which is a double and nothing else."""
        if isinstance(value, bool):
            return "TRUE" if value else "FALSE"
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, int):
            return str(value)
        written = repr(float(value))
        return written if "e" in written else f"{written}e0"  # a decimal, without: DuckDB and Spark round those

    # ---- Expressions ------------------------------------------------------------------------------------------------

    def part_of_date(self, name: str, date: Any) -> str:
        """A part of the dates of a column, by its name; the day of the week counts from Monday, 0."""
        part, column = name.rpartition(".")[2], self.quote(date)
        field = "ISODOW" if part == "day_of_week" else part.upper()
        found = f"CAST(EXTRACT({field} FROM {column}) AS INTEGER){' - 1' if part == 'day_of_week' else ''}"
        return f"CASE WHEN ISFINITE({column}) THEN {found} END"

    def cast(self, column: str) -> str:
        """A column as a number."""
        return f"CAST({column} AS {self.double})"

    def number(self, column: str) -> str:
        """A column as a number; NaN is missing."""
        return self.cast(column)

    def bool_as_number(self, column: str) -> str:
        """A column of yes and no as the numbers 1 and 0; others as they are."""
        return self.number(column)

    def write(self, expression: Expression, columns: Sequence[str], weight: str | None) -> str:
        """An expression over these columns, which are written as numbers already."""

        def text(one: Expression) -> str:
            return self.write(one, columns, weight)

        match expression:
            case SqlColumn(place):
                return columns[place]
            case Weight():
                return "1" if weight is None else self.number(weight)
            case Const(value):
                return self.cast(self.value(value))
            case Product(Weight(), second) if weight is None:
                return text(second)
            case Minus(first, Const(0.0)):
                return text(first)
            case Product(first, second):
                return f"({text(first)} * {text(second)})"
            case Minus(first, second):
                return f"({text(first)} - {text(second)})"
            case Log(of):
                return f"CASE WHEN {text(of)} > 0 THEN LN({text(of)}) END"
            case IfPresent(there, then):
                return f"CASE WHEN {text(there)} IS NOT NULL THEN {text(then)} END"
            case BinIndex(of, cuts):
                steps = " ".join(f"WHEN {text(of)} < {text(Const(cut))} THEN {k}" for k, cut in enumerate(cuts))
                return f"CASE WHEN {text(of)} IS NULL THEN NULL {steps} ELSE {len(cuts)} END"
        raise TypeError(f"no SQL is known for {expression!r}")

    def sum(self, sum: Sum, columns: Sequence[str], weight: str | None) -> str:
        """A sum; 0 over no row."""
        if weight is None and isinstance(sum.of, IfPresent) and sum.of.then == Weight():
            return f"COUNT({self.write(sum.of.there, columns, None)})"
        return f"COALESCE(SUM({self.write(sum.of, columns, weight)}), 0)"


@contextmanager
def reported() -> Iterator[None]:
    """Errors of a database's library as `DataError`; every library has its own."""
    try:
        yield
    except DataError:
        raise
    except Exception as error:
        raise DataError(f"the database cannot answer the query: {first_line(error)}.") from error


@contextmanager
def _refused(table: str) -> Iterator[None]:
    """What a database says against a table, in our words; every library has its own errors."""
    try:
        yield
    except DataError:
        raise
    except Exception as error:
        raise DataError(
            f"the table {table} cannot be written: {first_line(error)}.\n"
            "    Nothing was changed. A table that is there is not replaced: drop it first, or name another."
        ) from error


def first_line(error: Exception) -> str:
    """The first line of the message of an error."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")

"""Dialects: how an expression, a name and a grouped count are written for each database, and how it is asked."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tallybayes.errors import DataError
from tallybayes.families.aggregates import Column, Const, Expression, Log, Minus, Product, Steps, Sum, Weight, Where
from tallybayes.sources.source import BATCH

if TYPE_CHECKING:
    import pyarrow as pa

FEW = 10_000  # rows that are Python's own at a time, when they are written
_NUMBERS = itertools.count()  # of cursors: two may be open


class Dialect:
    """What the databases have in common.

    Parameters
    ----------
    connection : a connection of the database's library
    """

    grouping_sets = True  # whether several groupings are counted in one pass
    double = "DOUBLE PRECISION"
    label = "TEXT"  # what strings are compared as
    materialized = ""  # what keeps a WITH query from being written out wherever it is used
    greatest = "GREATEST"

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self._in_snapshot = False

    def quote(self, name: Any) -> str:
        """A name of the user's, whatever it holds."""
        return '"' + str(name).replace('"', '""') + '"'

    def run(self, query: str) -> list[tuple[Any, ...]]:
        """All rows of an answer."""
        return [tuple(row) for row in self.connection.execute(query).fetchall()]

    def columns(self, table: str) -> list[str]:
        """The names of the columns of a table or query."""
        cursor = self.connection.execute(f"SELECT * FROM {table} LIMIT 0")
        return [column[0] for column in cursor.description]

    def rows(self, query: str) -> Iterator[list[tuple[Any, ...]]]:
        """The rows of an answer, some at a time."""
        cursor = self.connection.execute(query)
        while found := cursor.fetchmany(BATCH):
            yield found

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
        self.connection.execute("BEGIN TRANSACTION")
        try:
            yield
        finally:
            self.connection.execute("ROLLBACK")

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Queries of which one may fail, and nothing else shall."""
        yield

    # ---- Writing ----------------------------------------------------------------------------------------------------

    @contextmanager
    def writing(self, name: Sequence[str], schema: pa.Schema) -> Iterator[Callable[[pa.Table], None]]:
        """A new table, and what adds rows to it: all are there at the end or, after an error, the table is not."""
        table = ".".join(map(self.quote, name))
        columns = ", ".join(f"{self.quote(field.name)} {self.type_of(field)}" for field in schema)
        with self.all_or_nothing() as connection:
            with _refused(table):
                connection.execute(f"CREATE TABLE {table} ({columns})")

            def write(rows: pa.Table) -> None:
                with _refused(table):
                    self.insert(connection, table, rows)

            yield write

    @contextmanager
    def all_or_nothing(self) -> Iterator[Any]:
        """A connection for writing, whose work is undone after an error; it is part of a transaction of the user's."""
        self.connection.execute("SAVEPOINT tallybayes")
        try:
            yield self.connection
        except BaseException:
            self.connection.execute("ROLLBACK TO SAVEPOINT tallybayes")
            raise
        finally:
            self.connection.execute("RELEASE SAVEPOINT tallybayes")

    def insert(self, connection: Any, table: str, rows: pa.Table) -> None:
        """Add rows to a table."""
        marks = ", ".join("?" * rows.num_columns)
        for part in rows.to_batches(max_chunksize=FEW):
            cells = zip(*(map(_simple, column.to_pylist()) for column in part.columns), strict=True)
            connection.executemany(f"INSERT INTO {table} VALUES ({marks})", cells)

    def type_of(self, field: pa.Field) -> str:
        """What SQL calls a type of Arrow's."""
        import pyarrow as pa

        kind, is_ = field.type, pa.types
        if is_.is_decimal(kind):
            return f"NUMERIC({kind.precision}, {kind.scale})"
        if is_.is_timestamp(kind):
            return "TIMESTAMP" if kind.tz is None else "TIMESTAMP WITH TIME ZONE"
        known = [("BOOLEAN", is_.is_boolean), ("NUMERIC(20, 0)", is_.is_uint64), ("BIGINT", is_.is_integer)]
        known += [(self.double, is_.is_floating), ("DATE", is_.is_date), ("TIME", is_.is_time)]
        known += [("TEXT", is_text) for is_text in (is_.is_string, is_.is_large_string, is_.is_string_view)]
        found = next((name for name, holds in known if holds(kind)), None)
        if found is None:
            raise DataError(f"column {field.name!r} is {kind}, which no table takes; expected numbers, text or times.")
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

    def cast(self, column: str) -> str:
        """A column as a number."""
        return f"CAST({column} AS {self.double})"

    def number(self, column: str) -> str:
        """A column as a number; NaN is missing."""
        return self.cast(column)

    def yes_or_no(self, column: str) -> str:
        """A column of yes and no as the numbers 1 and 0; others as they are."""
        return self.number(column)

    def write(self, expression: Expression, columns: Sequence[str], weight: str | None) -> str:
        """An expression over these columns, which are written as numbers already."""

        def text(one: Expression) -> str:
            return self.write(one, columns, weight)

        match expression:
            case Column(place):
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
            case Where(there, then):
                return f"CASE WHEN {text(there)} IS NOT NULL THEN {text(then)} END"
            case Steps(of, cuts):
                steps = " ".join(f"WHEN {text(of)} < {text(Const(cut))} THEN {k}" for k, cut in enumerate(cuts))
                return f"CASE WHEN {text(of)} IS NULL THEN NULL {steps} ELSE {len(cuts)} END"
        raise TypeError(f"no SQL is known for {expression!r}")

    def sum(self, sum: Sum, columns: Sequence[str], weight: str | None) -> str:
        """A sum; 0 over no row."""
        if weight is None and isinstance(sum.of, Where) and sum.of.then == Weight():
            return f"COUNT({self.write(sum.of.there, columns, None)})"
        return f"COALESCE(SUM({self.write(sum.of, columns, weight)}), 0)"


class DuckDB(Dialect):
    """DuckDB, its files and views included."""

    double = "DOUBLE"

    def number(self, column: str) -> str:
        """A column as a number; NaN, which DuckDB compares as equal to itself, is missing."""
        return f"NULLIF(CAST({column} AS DOUBLE), 'NaN'::DOUBLE)"

    def in_transaction(self) -> bool:
        """Whether two queries are of one transaction: DuckDB does not say it otherwise."""
        first, second = (self.run("SELECT txid_current()") for _ in range(2))
        return first == second

    @contextmanager
    def all_or_nothing(self) -> Iterator[Any]:
        """Another connection to the same database, with a transaction of its own: this one may be read meanwhile."""
        with self.connection.cursor() as cursor:
            cursor.execute("BEGIN TRANSACTION")
            try:
                yield cursor
            except BaseException:
                cursor.execute("ROLLBACK")
                raise
            cursor.execute("COMMIT")

    def insert(self, connection: Any, table: str, rows: pa.Table) -> None:
        """Add rows to a table, as Arrow has them."""
        connection.register("rows to be added", rows)
        connection.execute(f'INSERT INTO {table} SELECT * FROM "rows to be added"')
        connection.unregister("rows to be added")


class Relation(DuckDB):
    """A relation of DuckDB: a query that has been written already, on a connection that only it knows."""

    NAME = "rows of the relation"

    def run(self, query: str) -> list[tuple[Any, ...]]:
        """All rows of an answer."""
        return self.connection.query(self.NAME, query).fetchall()

    def columns(self, table: str) -> list[str]:
        """The names of its columns."""
        return list(self.connection.columns)

    def rows(self, query: str) -> Iterator[list[tuple[Any, ...]]]:
        """The rows of an answer, some at a time."""
        found = self.connection.query(self.NAME, query)
        while rows := found.fetchmany(BATCH):
            yield rows

    def in_transaction(self) -> bool:
        """What it is a part of is not ours to begin or end."""
        return True


class PostgreSQL(Dialect):
    """PostgreSQL by psycopg."""

    materialized = "MATERIALIZED "

    def text(self, value: str) -> str:
        """A string; one with a backslash says that it has, whatever the server takes it for otherwise."""
        written = super().text(value)
        return " E" + written.replace("\\", "\\\\") if "\\" in value else written

    def number(self, column: str) -> str:
        """A column as a number; NaN, which PostgreSQL compares as equal to itself, is missing."""
        return f"NULLIF(CAST({column} AS DOUBLE PRECISION), 'NaN')"

    def yes_or_no(self, column: str) -> str:
        """A column of yes and no, of which PostgreSQL makes text but no double."""
        text = f"CAST({column} AS TEXT)"
        return self.number(f"CASE {text} WHEN 'true' THEN '1' WHEN 'false' THEN '0' ELSE {text} END")

    def rows(self, query: str) -> Iterator[list[tuple[Any, ...]]]:
        """The rows of an answer, which stay on the server until they are asked for."""
        with self.connection.transaction(), self.connection.cursor(name=f"tallybayes {next(_NUMBERS)}") as cursor:
            cursor.execute(query)
            while found := cursor.fetchmany(BATCH):
                yield found

    def in_transaction(self) -> bool:
        """Whether the connection is not idle."""
        return bool(self.connection.info.transaction_status != 0)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A transaction that only reads."""
        with self.connection.transaction(force_rollback=True):
            self.connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """A savepoint: otherwise what fails would end the transaction."""
        with self.connection.transaction():
            yield

    @contextmanager
    def all_or_nothing(self) -> Iterator[Any]:
        """A transaction, or a savepoint in that of the user's."""
        with self.connection.transaction():
            yield self.connection

    def insert(self, connection: Any, table: str, rows: pa.Table) -> None:
        """Add rows to a table, all in one stream."""
        with connection.cursor() as cursor, cursor.copy(f"COPY {table} FROM STDIN") as copy:
            for part in rows.to_batches(max_chunksize=FEW):
                for row in zip(*(column.to_pylist() for column in part.columns), strict=True):
                    copy.write_row(row)


class SQLite(Dialect):
    """SQLite of Python itself."""

    grouping_sets = False
    double = "REAL"
    materialized = "MATERIALIZED "
    greatest = "MAX"

    def in_transaction(self) -> bool:
        """Whether the user has begun one."""
        return bool(self.connection.in_transaction)


@contextmanager
def _refused(table: str) -> Iterator[None]:
    """What a database says against a table, in our words; every library has its own errors."""
    try:
        yield
    except Exception as error:
        said = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise DataError(
            f"the table {table} cannot be written: {said}.\n"
            "    Nothing was changed. A table that is there is not replaced: drop it first, or name another."
        ) from error


def _simple(cell: Any) -> Any:
    """A cell as every library takes it."""
    return cell if cell is None or isinstance(cell, bool | int | float | str) else str(cell)


def dialect_of(connection: Any) -> Dialect | None:
    """The dialect that a connection speaks, by its library; None for what is no connection."""
    library, name = type(connection).__module__.partition(".")[0], type(connection).__name__
    if name == "DuckDBPyConnection":
        return DuckDB(connection)
    if library == "psycopg" and name == "Connection":
        return PostgreSQL(connection)
    if library == "sqlite3" and name == "Connection":
        return SQLite(connection)
    return None

"""DuckDB, PostgreSQL and SQLite: their SQL dialects, connections and types."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from tallybayes.data.source import BATCH
from tallybayes.data.sql.dialects import Cursor, Dialect, first_line, reported
from tallybayes.data.sql.sql_names import parts_of
from tallybayes.data.sql.sql_types import (
    as_arrow,
    decimal_type,
    infinite_as_text,
    is_opaque,
    postgresql_cells,
    postgresql_schema,
    sqlite_cells,
    sqlite_type,
    without_opaque,
)
from tallybayes.errors import DataError
from tallybayes.warnings import DataSourceWarning, warn

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyRelation


FEW = 10_000  # rows that are converted to Python objects at a time for writing
_DATE = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]"
_EXACT = 15  # significant digits of non-integers in SQLite
_BUSY = (
    "Fetch or close the open result of the connection first: a second connection does not see its temporary tables, "
    "registered frames, settings and uncommitted rows."
)
_NATIVE = re.compile(  # PostgreSQL types whose values psycopg and Arrow preserve
    r"(boolean|smallint|integer|bigint|real|double precision|text|bytea|date"
    r"|(character varying|character)(\(\d+\))?|(time|timestamp)(\(\d\))? without time zone"
    r"|timestamp(\(\d\))? with time zone)$"
)
_DUCKDB_ALONE = ("BIT", "BIGNUM", "VARINT", "TIME WITH TIME ZONE")  # types that Arrow does not have
_NUMBERS = itertools.count()  # for unique names of server-side cursors


class DuckDB(Dialect):
    """DuckDB, including its files and views."""

    double = "DOUBLE"
    own_type = b"duckdb"
    number_of = "NULLIF(CAST({} AS DOUBLE), 'NaN'::DOUBLE)"  # DuckDB compares NaN as equal to itself

    def __init__(self, connection: object) -> None:
        super().__init__(connection)
        self._own: Any = None  # a second connection, used while the user's connection has an open result

    def cursor(self) -> Any:
        """Return the connection of the last query."""
        return self._own or self.connection

    def run(self, query: str) -> list[tuple[Any, ...]]:
        """Return all rows of the result of a query."""
        with reported():
            rows: list[tuple[Any, ...]] = self._ask(query, lambda relation: relation.fetchall())
            return rows

    def types(self, table: str) -> dict[str, str]:
        """Return the types of the columns by their names in DuckDB."""
        with reported():
            return self._ask(f"SELECT * FROM {table} LIMIT 0", _types_of)

    def native(self, fields: Sequence[pa.Field], types: dict[str, str]) -> set[str]:
        """Return the columns whose types DuckDB has for the corresponding Arrow types."""
        import pyarrow as pa

        with self.connection.cursor() as cursor:
            cursor.register("rows", without_opaque(pa.schema(fields).empty_table()))
            duckdb_types = _types_of(cursor.sql("SELECT * FROM rows LIMIT 0"))
        return {name for name, kind in duckdb_types.items() if kind == types.get(name)}

    def without_arrow_type(self, table: str, schema: pa.Schema, columns: Sequence[str]) -> list[str]:
        """Return the columns of types that Arrow does not have: bits, big integers and times with a time zone."""
        types = self.types(table)
        return [name for name in columns if types[name] in _DUCKDB_ALONE]

    def schema(self, table: str) -> pa.Schema:
        """Return the columns of a table or query and their types."""
        with reported():
            return self._reader(f"SELECT * FROM {table} LIMIT 0").schema

    def rows(self, table: str, schema: pa.Schema, source: str, rest: str = "") -> Iterator[pa.Table]:
        """Yield some columns of a table or query in batches, as DuckDB converts them to Arrow."""
        import pyarrow as pa

        with reported():
            for batch in self._reader(self._select(table, schema, rest)):
                yield pa.Table.from_batches([batch])

    def _reader(self, query: str) -> pa.RecordBatchReader:
        """Return an Arrow reader of the result of a query."""
        from duckdb import DuckDBPyRelation

        reader = getattr(DuckDBPyRelation, "to_arrow_reader", None) or DuckDBPyRelation.fetch_arrow_reader
        return self._ask(query, lambda relation: reader(relation, BATCH))

    def _ask(self, query: str, take: Callable[[Any], Any]) -> Any:
        """Apply a function to the relation of a query.

        The user's connection is queried unless it has an open result, which a query would close. Otherwise a second
        connection to the same database is used, which has neither temporary tables nor uncommitted rows.
        """
        if self._own is None or not self._in_snapshot:
            try:
                result = take(self.query(self.connection, query))
            except Exception as error:
                if type(error).__name__ != "ResourceInUseException":
                    raise
                self._own = self.second_connection(error)
            else:
                self._own = None
                return result
        try:
            return take(self.query(self._own, query))
        except Exception as error:
            raise DataError(f"{first_line(error)}.\n    {_BUSY}") from error

    def second_connection(self, error: Exception) -> Any:
        """Return a second connection to the same database."""
        if self._own is None:
            warn(
                f"the connection has an open result, so the rows are read by a second connection.\n    {_BUSY}",
                DataSourceWarning,
            )
        return self.connection.cursor()

    def query(self, connection: Cursor, query: str) -> Any:
        """Return the relation of a query; it is not run yet."""
        return connection.sql(query)

    def catalog(self) -> str:
        """Return a query of the tables of all attached databases; of equal names, temporary tables rank first."""
        rank = (
            "CASE WHEN database_name = 'temp' THEN 0 WHEN database_name = current_database() "
            "AND schema_name = current_schema() THEN 1 WHEN list_contains(current_schemas(true), schema_name) "
            "AND database_name IN (current_database(), 'system') THEN 2 END"
        )
        return " UNION ALL ".join(
            f"SELECT database_name, schema_name, {kind}_name AS name, {rank} AS rank, internal FROM duckdb_{kind}s()"
            for kind in ("table", "view")
        )

    def find(self, name: str) -> str:
        """Return a table by its name, or what only DuckDB finds, such as a file, by a connection that may fail."""
        try:
            return super().find(name)
        except DataError:
            table = self.quote(name)
            try:
                with self.connection.cursor() as cursor:
                    cursor.execute(f"SELECT * FROM {table} LIMIT 0")
                return table
            except Exception as error:  # not a file either
                if self._own is not None:
                    raise DataError(f"the table {name!r} is not found.\n    {_BUSY}") from error
            raise

    def in_transaction(self) -> bool:
        """Return whether two queries are in one transaction; DuckDB has no other way to find out."""
        first, second = (self.run("SELECT txid_current()") for _ in range(2))
        return first == second

    @contextmanager
    def all_or_nothing(self) -> Iterator[Any]:
        """Yield a second connection with its own transaction, so that the user's connection can be read meanwhile."""
        with self.connection.cursor() as cursor:
            cursor.execute("BEGIN TRANSACTION")
            try:
                yield cursor
            except BaseException:
                cursor.execute("ROLLBACK")
                raise
            cursor.execute("COMMIT")

    def create(self, cursor: Cursor, table: str, schema: pa.Schema) -> None:
        """Create a table with the columns of a schema: of their DuckDB types if known, else those for Arrow types."""
        columns = ", ".join(
            f"CAST({self.quote(field.name)} AS {kind}) AS {self.quote(field.name)}" if kind else self.quote(field.name)
            for field in schema
            for kind in [self.own_type_of(field)]
        )
        self._with(cursor, schema.empty_table(), f"CREATE TABLE {table} AS SELECT {columns}")

    def insert(self, cursor: Cursor, table: str, rows: pa.Table) -> None:
        """Add the rows of an Arrow table to a table."""
        self._with(cursor, rows, f"INSERT INTO {table} SELECT *")

    def _with(self, cursor: Cursor, rows: pa.Table, statement: str) -> None:
        """Run a statement that reads rows of an Arrow table."""
        cursor.register("rows to be added", without_opaque(rows))
        cursor.execute(f'{statement} FROM "rows to be added"')
        cursor.unregister("rows to be added")


def _types_of(relation: DuckDBPyRelation) -> dict[str, str]:
    """Return the names of the types of the columns of a DuckDB relation."""
    return dict(zip(relation.columns, map(str, relation.types), strict=True))


class Relation(DuckDB):
    """A DuckDB relation: a query on a connection that only the relation knows."""

    NAME = "rows of the relation"

    def query(self, connection: Cursor, query: str) -> Any:
        """Return the relation of a query of its rows."""
        return connection.query(self.NAME, query)

    def second_connection(self, error: Exception) -> Any:
        """Raise DataError: a relation belongs to its connection."""
        raise DataError("the connection of the relation has an open result.\n    Fetch or close it first.") from error

    def find(self, name: str) -> str:
        """Return its own name."""
        return self.quote(name)

    def in_transaction(self) -> bool:
        """Return True: a relation does not begin or end transactions."""
        return True


class PostgreSQL(Dialect):
    """PostgreSQL, through psycopg."""

    materialized = "MATERIALIZED "
    binary = "BYTEA"
    nested = "JSONB"
    interval = "INTERVAL"
    own_type = b"postgresql"
    most_bytes = 63
    quoted_folds = False
    number_of = "NULLIF(CAST({} AS DOUBLE PRECISION), 'NaN')"  # PostgreSQL compares NaN as equal to itself

    def folds(self, name: str) -> str:
        """Return a name in lower case."""
        return name.lower()

    def cursor(self, name: str = "") -> Any:
        """Return a cursor whose rows are tuples; a server-side cursor if it has a name."""
        from psycopg import Cursor, ServerCursor
        from psycopg.rows import tuple_row

        if name:
            return ServerCursor(self.connection, name, row_factory=tuple_row)
        return Cursor(self.connection, row_factory=tuple_row)

    def run(self, query: str) -> list[tuple[Any, ...]]:
        """Return all rows of a result; after an error the user's transaction continues, and none is left open."""
        with self.connection.transaction():
            return super().run(query)

    def schema(self, table: str) -> pa.Schema:
        """Return the columns of a table or query and their types."""
        with reported(), self.connection.transaction(), self.cursor() as cursor:
            return postgresql_schema(cursor.execute(f"SELECT * FROM {table} LIMIT 0"))

    def types(self, table: str) -> dict[str, str]:
        """Return the types of the columns by their names in PostgreSQL, with lengths; also domains."""
        with reported(), self.connection.transaction(), self.cursor() as cursor:
            cursor_result = cursor.execute(f"SELECT * FROM {table} LIMIT 0")
            result = cursor_result.pgresult
            names = [column.name for column in cursor_result.description]
            bases = [(result.ftype(place), result.fmod(place)) for place in range(len(names))]
        type_expressions = ", ".join(
            f"CASE pg_typeof({name}) WHEN {base}::regtype THEN format_type({base}, {length}) "
            f"ELSE format_type(pg_typeof({name}), NULL) END"  # a domain
            for name, (base, length) in zip(map(self.quote, names), bases, strict=True)
        )
        rows = f"(SELECT) AS one LEFT JOIN (SELECT * FROM {table} LIMIT 0) AS none ON TRUE"
        return dict(zip(names, self.run(f"SELECT {type_expressions} FROM {rows}")[0], strict=True)) if names else {}

    def known_types(self, types: dict[str, str]) -> dict[str, str]:
        """Return the types, by column, that this database has."""
        tests = ", ".join(f"to_regtype({self.text(kind)}) IS NOT NULL" for kind in types.values())
        are_known = self.run(f"SELECT {tests}")[0]
        return {name: kind for (name, kind), is_known in zip(types.items(), are_known, strict=True) if is_known}

    def native(self, fields: Sequence[pa.Field], types: dict[str, str]) -> set[str]:
        """Return the columns whose values psycopg and Arrow preserve."""
        return {field.name for field in fields if _NATIVE.match(types.get(field.name, ""))}

    def without_arrow_type(self, table: str, schema: pa.Schema, columns: Sequence[str]) -> list[str]:
        """Return the numeric columns with NaN or infinity, which decimals of Arrow do not have."""
        import pyarrow as pa

        fields = [schema.field(name) for name in columns]
        numeric = [f.name for f in fields if pa.types.is_decimal(f.type) or f.metadata == {b"postgresql": b"numeric"}]
        if not numeric:
            return []
        tests = ", ".join(f"BOOL_OR({self._is_special(self.quote(name))})" for name in numeric)
        found = self.run(f"SELECT {tests} FROM {table}")[0]
        return [name for name, is_special in zip(numeric, found, strict=True) if is_special]

    @staticmethod
    def _is_special(column: str) -> str:
        """Return the condition that a number is NaN or infinite."""
        return f"CAST({column} AS TEXT) IN ('NaN', 'Infinity', '-Infinity')"

    def exact(self, table: str, schema: pa.Schema, columns: Sequence[str]) -> pa.Schema:
        """Return the schema with decimal types for finite numeric columns and opaque types for times out of range.

        Python has the years 1 to 9999.
        """
        import pyarrow as pa

        tests = {}
        for name in columns:
            field = schema.field(name)
            column = self.quote(name)
            if pa.types.is_date(field.type) or pa.types.is_timestamp(field.type):
                tests[name] = f"BOOL_OR({column} < '0001-01-01' OR {column} > '9999-12-31')"
            elif field.metadata == {b"postgresql": b"numeric"}:
                tests[name] = (
                    f"ARRAY[MAX(SCALE({column})), MAX(LENGTH(CAST(TRUNC(ABS({column})) AS TEXT))), "
                    f"MAX(CASE WHEN {self._is_special(column)} THEN 1 ELSE 0 END)]"
                )
        results = self.run(f"SELECT {', '.join(tests.values())} FROM {table}")[0] if tests else ()
        for name, result in zip(tests, results, strict=True):
            field = schema.field(name)
            kind = field.type
            if isinstance(result, list):
                scale, n_integer_digits, is_out_of_range = (bound or 0 for bound in result)
                kind = kind if is_out_of_range else decimal_type(n_integer_digits + scale, scale)
            elif result:
                type_name = "date" if pa.types.is_date(kind) else "timestamp" if kind.tz is None else "timestamptz"
                kind = pa.opaque(pa.string(), type_name, "PostgreSQL")
            schema = schema.set(schema.get_field_index(name), field.with_type(kind))
        return schema

    def select(self, field: pa.Field) -> str:
        """Return the expression by which a column is read; values of types without an Arrow type are read as text."""
        import pyarrow as pa

        name = self.quote(field.name)
        is_text = field.metadata and pa.types.is_string(field.type)
        return f"CAST({name} AS TEXT)" if is_opaque(field.type) or is_text else name

    def catalog(self) -> str:
        """Return a query of all tables."""
        return (
            "SELECT current_database() AS database, n.nspname AS schema, c.relname AS name, CASE WHEN "
            "pg_table_is_visible(c.oid) THEN 0 END AS rank, n.nspname IN ('pg_catalog', 'information_schema', "
            "'pg_toast') AS internal FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = "
            "c.relnamespace WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')"
        )

    def text(self, value: str) -> str:
        """Return a string literal; with a backslash it is an escape string, independent of server settings."""
        written = super().text(value)
        return " E" + written.replace("\\", "\\\\") if "\\" in value else written

    def bool_as_number(self, column: str) -> str:
        """Return a boolean column as a number by way of text, since PostgreSQL does not convert booleans to doubles."""
        text = f"CAST({column} AS TEXT)"
        return self.number(f"CASE {text} WHEN 'true' THEN '1' WHEN 'false' THEN '0' ELSE {text} END")

    def rows(self, table: str, schema: pa.Schema, source: str, rest: str = "") -> Iterator[pa.Table]:
        """Yield some columns of a table or query in batches, from a server-side cursor."""
        with reported(), self.connection.transaction(), self.cursor(f"tallybayes {next(_NUMBERS)}") as cursor:
            infinite_as_text(cursor)
            cursor.execute(self._select(table, schema, rest))
            while batch := cursor.fetchmany(BATCH):
                yield as_arrow(batch, schema, source, guess=bool(rest))

    def in_transaction(self) -> bool:
        """Return whether the connection is in a transaction."""
        return bool(self.connection.info.transaction_status != 0)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run a read-only transaction."""
        with self.connection.transaction(force_rollback=True):
            self.cursor().execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield

    @contextmanager
    def all_or_nothing(self) -> Iterator[Any]:
        """Yield a cursor in a transaction, or in a savepoint of the user's transaction."""
        with self.connection.transaction(), self.cursor() as cursor:
            yield cursor

    def insert(self, cursor: Cursor, table: str, rows: pa.Table) -> None:
        """Add rows to a table by COPY."""
        with cursor.copy(f"COPY {table} FROM STDIN") as copy:
            for part in rows.to_batches(max_chunksize=FEW):
                for row in zip(*map(postgresql_cells, part.columns), strict=True):
                    copy.write_row(row)

    def type_of(self, name: str, kind: pa.DataType) -> str:
        """Return the SQL type of a column of an Arrow type; lists are arrays."""
        import pyarrow as pa

        if pa.types.is_list(kind) and not pa.types.is_nested(kind.value_type):
            return f"{self.type_of(name, kind.value_type)}[]"
        return super().type_of(name, kind.storage_type if is_opaque(kind) else kind)


class SQLite(Dialect):
    """SQLite, through Python's sqlite3."""

    grouping_sets = False
    double = "REAL"
    materialized = "MATERIALIZED "
    json_rows = "SELECT {} FROM JSON_EACH('{}')"  # from some 32,000 rows of VALUES on, joins have no index
    greatest = "MAX"
    dynamic_types = True
    number_of = "CAST({} AS REAL)"
    date_parts: ClassVar = {  # without the time zone, which would shift them
        "year": "CAST(STRFTIME('%Y', SUBSTR({}, 1, 19)) AS INTEGER)",
        "month": "CAST(STRFTIME('%m', SUBSTR({}, 1, 19)) AS INTEGER)",
        "day_of_week": "(CAST(STRFTIME('%w', SUBSTR({}, 1, 19)) AS INTEGER) + 6) % 7",
        "hour": "CAST(STRFTIME('%H', SUBSTR({}, 1, 19)) AS INTEGER)",
    }

    def cursor(self) -> Any:
        """Return a cursor whose rows are tuples, whatever the row factory of the connection."""
        from sqlite3 import Cursor

        return Cursor(self.connection)

    @contextmanager
    def _text(self) -> Iterator[None]:
        """Return a context in which text is `str`, whatever the text factory of the connection."""
        before = self.connection.text_factory
        self.connection.text_factory = str
        try:
            with reported():
                yield
        finally:
            self.connection.text_factory = before

    def run(self, query: str) -> list[tuple[Any, ...]]:
        """Return all rows of the result of a query."""
        with self._text():
            return super().run(query)

    def schema(self, table: str) -> pa.Schema:
        """Return the columns of a table or query with their declared types; null if only values determine a type."""
        import pyarrow as pa

        with self._text():
            names = [column[0] for column in self.cursor().execute(f"SELECT * FROM {table} LIMIT 0").description]
        declared: dict[str, str] = {}
        if (parts := parts_of(table)) is not None:
            schema, name = (self.text(part) for part, _ in parts)
            query = f"SELECT name, type FROM pragma_table_info({name}, {schema})"
            declared = {row[0]: row[1] for row in self.run(query)}
        types = {name: sqlite_type(declared.get(name, "")) for name in names}
        for name, kind in types.items():
            if pa.types.is_temporal(kind):  # SQLite does not enforce it
                column = self.quote(name)
                is_date = f"{column} GLOB '{_DATE}*' AND STRFTIME('%Y', SUBSTR({column}, 1, 19)) IS NOT NULL"
                if self.run(f"SELECT 1 FROM {table} WHERE {column} IS NOT NULL AND NOT ({is_date}) LIMIT 1"):
                    types[name] = pa.null()
        return pa.schema(list(types.items()))

    def rows(self, table: str, schema: pa.Schema, source: str, rest: str = "") -> Iterator[pa.Table]:
        """Yield some columns of a table or query in batches."""
        with self._text():
            cursor = self.cursor().execute(self._select(table, schema, rest))
        while True:
            with self._text():
                batch = cursor.fetchmany(BATCH)
            if not batch:
                return
            yield as_arrow(batch, schema, source, guess=bool(rest))

    def catalog(self) -> str:
        """Return a query of the tables of all attached databases."""
        return " UNION ALL ".join(
            f"SELECT NULL AS database, {self.text(name)} AS schema, name, {-1 if name == 'temp' else rank} AS rank, "
            f"name LIKE 'sqlite~_%' ESCAPE '~' AS internal FROM {self.quote(name)}.sqlite_master "
            "WHERE type IN ('table', 'view')"
            for rank, name in self.run("SELECT seq, name FROM pragma_database_list")
        )

    def in_transaction(self) -> bool:
        """Return whether the user has begun a transaction."""
        return bool(self.connection.in_transaction)

    def insert(self, cursor: Cursor, table: str, rows: pa.Table) -> None:
        """Add rows to a table."""
        marks = ", ".join("?" * rows.num_columns)
        for part in rows.to_batches(max_chunksize=FEW):
            cells = zip(*map(sqlite_cells, part.columns), strict=True)
            cursor.executemany(f"INSERT INTO {table} VALUES ({marks})", cells)

    def type_of(self, name: str, kind: pa.DataType) -> str:
        """Return the SQL type of a column of an Arrow type, such that values are not rounded."""
        import pyarrow as pa

        if pa.types.is_decimal(kind) and kind.precision > _EXACT:
            return "TEXT"
        if pa.types.is_uint64(kind):
            return ""  # integers if they fit into 64 bits, else text
        return super().type_of(name, kind.storage_type if is_opaque(kind) else kind)


def dialect_of(connection: object) -> Dialect | None:
    """Return the dialect of a connection by the library of its type; None if it is not a connection."""
    kinds = {(kind.__module__.partition(".")[0], kind.__name__) for kind in type(connection).__mro__}
    if ("duckdb", "DuckDBPyConnection") in kinds or ("_duckdb", "DuckDBPyConnection") in kinds:
        return DuckDB(connection)
    if ("psycopg", "Connection") in kinds:
        return PostgreSQL(connection)
    if ("sqlite3", "Connection") in kinds:
        return SQLite(connection)
    return None

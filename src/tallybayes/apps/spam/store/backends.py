"""Databases of the spam filter: an SQLite file or a PostgreSQL database."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any, ClassVar
from urllib.parse import quote

import tallybayes as tb
from tallybayes.messages import redacted

PATIENCE = 60.0  # seconds to wait for the transaction of another process
_MAGIC = 0x7441537A  # SQLite's application id of these files
_LENGTHS = (1, 8, 32, 128, 512, 900)  # numbers of values per statement
_ADDRESSES = ("postgresql://", "postgres://")

Row = tuple[Any, ...]


# Characters that PostgreSQL cannot store: mail is untrusted.
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def storable(words: list[str]) -> list[str]:
    """Replace characters that a database cannot store: NUL and surrogates."""
    return (
        [_UNSTORABLE.sub("\N{REPLACEMENT CHARACTER}", word) for word in words]
        if _UNSTORABLE.search("\n".join(words))
        else words
    )


def _insert_statement(table: str, columns: Sequence[str], n_rows: int) -> str:
    """Return an INSERT statement for a number of rows."""
    row = f"({', '.join('?' * len(columns))})"
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES {', '.join([row] * n_rows)}"


class StoreError(tb.TallybayesError):
    """Error of a store: it cannot be opened, read or changed. It is unchanged."""


class MissingStoreError(StoreError):
    """The store does not exist."""


def default_location() -> str:
    """Return the location of the default store: TALLY_SPAM_STORE, or a file in the data folder of the user."""
    data = os.environ.get("XDG_DATA_HOME") or os.path.join(os.path.expanduser("~"), ".local", "share")
    return os.environ.get("TALLY_SPAM_STORE") or os.path.join(data, "tally", "spam.sqlite")


def is_address(location: str) -> bool:
    """Return whether a location is the address of a server."""
    return location.startswith(_ADDRESSES)


def percent_encoded(address: str) -> str:
    """Percent-encode the password of an address: psycopg misreads '@' and '/' in it."""
    match = re.fullmatch(r"(\w+://[^:/@]*:)([^?]*)(@.*)", address)
    return f"{match[1]}{quote(match[2], safe='%')}{match[3]}" if match else address


def connect(location: str, *, create: bool, read_only: bool) -> Database:
    """Open the database at a location: a file name or the address of a server."""
    kind = Postgres if is_address(location) else Sqlite
    return kind(location, create=create, read_only=read_only)


class Database:
    """Connection to a database: statements with ? for values, atomic transactions, errors as StoreError."""

    types: ClassVar[Mapping[str, str]]  # names of types and functions in this database
    tables_query: ClassVar[str]
    size_query: ClassVar[str]
    _begin_write: ClassVar[Sequence[str]]
    _begin_read: ClassVar[str]
    _messages: ClassVar[Mapping[str, str]]  # pattern of an error -> message of the StoreError
    _failures: tuple[type[Exception], ...]
    _connection: Any

    def __init__(self, location: str) -> None:
        self.location = location

    @property
    def shown(self) -> str:
        """Return the file or the address, with the password removed."""
        return redacted(self.location)

    def _sql(self, text: str) -> str:
        """Translate placeholders to those of the database."""
        return text

    def query(self, text: str, values: Sequence[Any] = ()) -> list[Row]:
        """Return all rows of a query."""
        with self._translated_errors():
            return self._connection.execute(self._sql(text), values).fetchall()

    def execute(self, text: str, values: Sequence[Any] = ()) -> int:
        """Execute a statement and return the number of changed rows."""
        with self._translated_errors():
            return int(self._connection.execute(self._sql(text), values).rowcount)

    def execute_many(self, text: str, rows: Iterable[Sequence[Any]]) -> None:
        """Execute a statement for many rows."""
        with self._translated_errors(), contextlib.closing(self._connection.cursor()) as cursor:
            cursor.executemany(self._sql(text), rows)

    def insert(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Insert rows into a table."""
        self.execute_many(_insert_statement(table, columns, 1), rows)

    def query_among(self, text: str, values: Iterable[Any]) -> Iterator[Row]:
        """Yield the rows for many values: `{among}` in the query is replaced by the condition."""
        for statement, batch in self._batches(text, list(values)):
            yield from self.query(statement, batch)

    def execute_among(self, text: str, values: Iterable[Any]) -> int:
        """Execute a statement for many values, and return the number of changed rows."""
        return sum(self.execute(statement, batch) for statement, batch in self._batches(text, list(values)))

    def _batches(self, text: str, values: list[Any]) -> Iterator[tuple[str, list[Any]]]:
        """Yield statements for batches of values."""
        raise NotImplementedError

    def writing(self) -> contextlib.AbstractContextManager[None]:
        """Return a context manager of a write transaction. Other writers wait until it ends."""
        return self._transaction(self._begin_write)

    def reading(self) -> contextlib.AbstractContextManager[None]:
        """Return a context manager of a read transaction: all queries see the same snapshot."""
        return self._transaction([self._begin_read])

    @contextlib.contextmanager
    def _transaction(self, begin: Sequence[str]) -> Iterator[None]:
        """Commit at the end, and roll back after an error."""
        with self._translated_errors():
            for statement in begin:
                self._connection.execute(statement)
        try:
            yield
            with self._translated_errors():
                self._connection.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(Exception):
                self._connection.execute("ROLLBACK")
            raise

    @contextlib.contextmanager
    def _translated_errors(self) -> Iterator[None]:
        """Convert errors of the database to StoreError."""
        try:
            yield
        except self._failures as error:
            cause = str(error).strip()
            known = (text for pattern, text in self._messages.items() if re.search(pattern, cause))
            text = next(known, "{store}: {cause}.\n    Nothing was changed.")
            raise StoreError(text.format(store=self.shown, cause=cause, first_line=cause.partition("\n")[0])) from error

    def vacuum(self) -> None:
        """Release unused space."""

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


class Sqlite(Database):
    """SQLite file in write-ahead mode: readers do not wait, writers wait for each other."""

    types = MappingProxyType({"integer": "INTEGER", "bytes": "BLOB", "greatest": "max"})
    tables_query = "SELECT 1 FROM sqlite_master WHERE name = 'meta'"
    size_query = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
    _begin_write = ("BEGIN IMMEDIATE",)
    _begin_read = "BEGIN"
    _messages = MappingProxyType(
        {
            "not a database|malformed": "{store} is not the store of a spam filter, or it is corrupted ({cause}).\n"
            "    Restore a copy, or select another with --store FILE and learn again.",
            "locked|busy": f"{{store}} has been locked by another process for {PATIENCE:.0f} s.\n    Try again later.",
            "no such (table|column)": "{store} is incomplete ({cause}); expected the store of a spam filter.",
            "unable to open": "{store} cannot be opened ({cause}).\n"
            "    Its folder must be writable, too; --store FILE selects another location.",
            "readonly": "{store} cannot be changed ({cause}).\n"
            "    Its folder must be writable, too; --store FILE selects another location.",
            "surrogates": "a word is not valid text: it has a surrogate character.\n    Nothing was changed.",
        }
    )

    def __init__(self, location: str, *, create: bool, read_only: bool) -> None:
        import sqlite3

        super().__init__(location)
        self._failures = (sqlite3.Error, UnicodeEncodeError)
        path = Path(location).expanduser().absolute()
        if not path.exists() and not create:
            raise MissingStoreError(
                f"store {location!r} does not exist.\n    'tally spam learn' creates it; --store FILE selects another."
            )
        if path.is_dir():
            raise StoreError(f"{location} is a folder; expected the file of a store.\n    --store FILE selects one.")
        with self._translated_errors():
            if create and not path.exists():
                self._make_folder(path.parent)
            # A connection that may write removes the WAL files when it is closed, also after reading only.
            is_read_only = read_only and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))
            options = "?mode=rwc" if create else "?mode=ro" if is_read_only else "?mode=rw"
            self._connection = self._open(sqlite3, path.as_uri() + options)
            try:
                self._prepare(sqlite3, path, create, read_only)
            except BaseException:
                self._connection.close()
                raise

    def _make_folder(self, folder: Path) -> None:
        """Create the folder of the store."""
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            reason = (error.strerror or "cannot be created").lower()
            raise StoreError(
                f"folder {str(folder)!r} of the store: {reason}.\n    --store FILE selects another location."
            ) from error

    @staticmethod
    def _open(sqlite3: ModuleType, uri: str) -> Any:
        """Open a connection."""
        return sqlite3.connect(uri, uri=True, timeout=PATIENCE, isolation_level=None)

    def _prepare(self, sqlite3: ModuleType, path: Path, create: bool, read_only: bool) -> None:
        """Check the application id, and set the options of the connection."""
        try:
            application_id = self._connection.execute("PRAGMA application_id").fetchone()[0]
        except sqlite3.OperationalError:
            # In a read-only folder SQLite cannot create its shared memory file; no process writes there either.
            if not read_only or os.access(path.parent, os.W_OK) or Path(f"{path}-wal").exists():
                raise
            self._connection.close()
            self._connection = self._open(sqlite3, path.as_uri() + "?immutable=1")
            application_id = self._connection.execute("PRAGMA application_id").fetchone()[0]
        empty = not application_id and not self._connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
        if application_id != _MAGIC and not (create and empty):
            problem = "is empty" if empty else "is an SQLite file of another application"
            raise StoreError(
                f"{path} {problem}; expected the store of a spam filter.\n    --store FILE selects another."
            )
        if read_only:
            self._connection.execute("PRAGMA query_only = ON")
            return
        if empty:
            self._connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            with contextlib.suppress(OSError):
                os.chmod(path, 0o600)  # the words of mail are private
            self._wait_for_write_ahead(sqlite3)
            self._connection.execute(f"PRAGMA application_id = {_MAGIC}")
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.execute("PRAGMA secure_delete = ON")
        self._connection.execute("PRAGMA journal_size_limit = 16777216")
        self._connection.execute("PRAGMA cache_size = -65536")

    def _wait_for_write_ahead(self, sqlite3: ModuleType) -> None:
        """Turn write-ahead mode on. Retry while another process does: SQLite does not wait here."""
        start = time.monotonic()
        while True:
            try:
                self._connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError:
                if time.monotonic() - start > PATIENCE:
                    raise
                time.sleep(0.01)

    def insert(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Insert rows into a table, many per statement, which takes two thirds of the time."""
        values = list(chain.from_iterable(rows))
        n_rows = _LENGTHS[-1] // len(columns)
        size = n_rows * len(columns)
        n_full = len(values) // size * size
        full_rows = (values[start : start + size] for start in range(0, n_full, size))
        self.execute_many(_insert_statement(table, columns, n_rows), full_rows)
        last_rows = (values[start : start + len(columns)] for start in range(n_full, len(values), len(columns)))
        self.execute_many(_insert_statement(table, columns, 1), last_rows)

    def _batches(self, text: str, values: list[Any]) -> Iterator[tuple[str, list[Any]]]:
        """Yield statements for batches of values. Few batch lengths occur, so that statements are prepared once."""
        for start in range(0, len(values), _LENGTHS[-1]):
            batch = values[start : start + _LENGTHS[-1]]
            length = next(length for length in _LENGTHS if len(batch) <= length)
            batch += batch[-1:] * (length - len(batch))
            yield text.format(among=f"IN ({','.join('?' * length)})"), batch

    def vacuum(self) -> None:
        """Release unused pages and truncate the write-ahead log, unless other processes use the file."""
        with contextlib.suppress(StoreError), self._translated_errors():
            self._connection.executescript("PRAGMA incremental_vacuum")  # execute would release one page only
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


class Postgres(Database):
    """PostgreSQL database for a whole site, with the tables in the schema `tally_spam`."""

    types = MappingProxyType({"integer": "BIGINT", "bytes": "BYTEA", "greatest": "greatest"})
    tables_query = "SELECT 1 FROM pg_tables WHERE schemaname = 'tally_spam' AND tablename = 'meta'"
    size_query = (
        "SELECT sum(pg_total_relation_size(c.oid))::bigint FROM pg_class c "
        "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'tally_spam' AND c.relkind = 'r'"
    )

    # Every change updates the totals, so that one lock, taken first, prevents deadlocks.
    _begin_write = ("BEGIN", f"SELECT pg_advisory_xact_lock({_MAGIC})")
    _begin_read = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
    _messages = MappingProxyType(
        {
            "relation .* does not exist": "{store} is incomplete ({first_line}); expected the store of a spam filter.",
            "permission denied": "{store}: {first_line}.\n    The owner of the database must grant this permission.",
        }
    )

    def __init__(self, location: str, *, create: bool, read_only: bool) -> None:
        super().__init__(location)
        try:
            import psycopg
        except ModuleNotFoundError as error:
            raise StoreError(
                "a PostgreSQL store requires psycopg.\n    Install it: pip install 'psycopg[binary]'"
            ) from error
        self._failures = (psycopg.Error, UnicodeEncodeError)
        with self._translated_errors():
            self._connection = psycopg.connect(percent_encoded(location), autocommit=True, connect_timeout=10)
            try:
                self._connection.execute(f"SET lock_timeout = '{PATIENCE:.0f}s'")
                self._connection.execute("SET search_path = tally_spam")
                self._prepare(create)
            except BaseException:
                self._connection.close()
                raise

    def _prepare(self, create: bool) -> None:
        """Create the schema, or raise MissingStoreError."""
        query = "SELECT 1 FROM pg_namespace WHERE nspname = 'tally_spam'"
        if self._connection.execute(query).fetchone():
            return
        if not create:
            raise MissingStoreError(f"store {self.shown} does not exist.\n    'tally spam learn' creates it.")
        import psycopg

        with contextlib.suppress(psycopg.errors.UniqueViolation):  # another process created it meanwhile
            self._connection.execute("CREATE SCHEMA IF NOT EXISTS tally_spam")

    def _sql(self, text: str) -> str:
        """Translate placeholders to those of psycopg."""
        return text.replace("%", "%%").replace("?", "%s")

    def _batches(self, text: str, values: list[Any]) -> Iterator[tuple[str, list[Any]]]:
        """Yield one statement with an array parameter."""
        yield text.format(among="= ANY(?)"), [values]

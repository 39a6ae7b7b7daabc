"""Where the counts of a filter lie: an SQLite file, or a PostgreSQL database; what differs between them."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

import tallybayes as tb
from tallybayes.messages import redacted

PATIENCE = 60.0  # seconds that one process waits for another's transaction
_MAGIC = 0x7441537A  # SQLite's application id of these files
_LENGTHS = (1, 8, 32, 128, 512, 900)  # of lists in statements
_ADDRESSES = ("postgresql://", "postgres://")

Row = tuple[Any, ...]


# What PostgreSQL's text cannot hold, and what is half a character; mail is written by strangers.
_ODD = re.compile("[\x00\ud800-\udfff]")


def storable(words: list[str]) -> list[str]:
    """Words as every database holds them, in the same order."""
    return [_ODD.sub("\N{REPLACEMENT CHARACTER}", word) for word in words] if _ODD.search("\n".join(words)) else words


def _inserting(table: str, columns: Sequence[str], n_rows: int) -> str:
    row = f"({', '.join('?' * len(columns))})"
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES {', '.join([row] * n_rows)}"


class StoreError(tb.TallybayesError):
    """A store that cannot be opened, read or changed; nothing was changed."""


class MissingStoreError(StoreError):
    """There is no store yet."""


def default_place() -> str:
    """The store that is meant where none is named: TALLY_SPAM_STORE, or a file of the user's."""
    data = os.environ.get("XDG_DATA_HOME") or os.path.join(os.path.expanduser("~"), ".local", "share")
    return os.environ.get("TALLY_SPAM_STORE") or os.path.join(data, "tally", "spam.sqlite")


def is_address(place: str) -> bool:
    """Whether a place is that of a server, not of a file."""
    return place.startswith(_ADDRESSES)


def encoded(address: str) -> str:
    """The address of a server with its password percent-encoded: psycopg would take '@' or '/' for its end."""
    found = re.fullmatch(r"(\w+://[^:/@]*:)([^?]*)(@.*)", address)
    return f"{found[1]}{quote(found[2], safe='%')}{found[3]}" if found else address


def connect(place: str, *, create: bool, read_only: bool) -> Database:
    """The database at a place: a file's name or the address of a server."""
    kind = Postgres if is_address(place) else Sqlite
    return kind(place, create=create, read_only=read_only)


class Database:
    """One connection: statements with ? for values, transactions that are whole or nothing, errors in words."""

    types: Mapping[str, str]  # the words in which the databases differ
    tables_query: str
    size_query: str
    _failures: tuple[type[Exception], ...]
    _connection: Any

    def __init__(self, place: str) -> None:
        self.place = place

    @property
    def shown(self) -> str:
        """The file or address, without the account of a server."""
        return redacted(self.place)

    def _sql(self, text: str) -> str:
        return text

    def ask(self, text: str, values: Sequence[Any] = ()) -> list[Row]:
        """All rows of an answer."""
        with self._in_words():
            return self._connection.execute(self._sql(text), values).fetchall()

    def do(self, text: str, values: Sequence[Any] = ()) -> int:
        """Change rows; how many."""
        with self._in_words():
            return int(self._connection.execute(self._sql(text), values).rowcount)

    def do_many(self, text: str, rows: Iterable[Sequence[Any]]) -> None:
        """The same statement for many rows."""
        raise NotImplementedError

    def insert(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Put rows into a table."""
        self.do_many(_inserting(table, columns, 1), rows)

    def ask_among(self, text: str, values: Iterable[Any]) -> Iterator[Row]:
        """Rows where something is among many values: `{among}` in the text stands for "in them"."""
        raise NotImplementedError

    def do_among(self, text: str, values: Iterable[Any]) -> int:
        """Change rows where something is among many values; how many."""
        raise NotImplementedError

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """A transaction that changes; who else wants to change waits until it has ended."""
        with self._between(self._begin_writing):
            yield

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """Answers of one moment, whatever others change meanwhile."""
        with self._between(self._begin_reading):
            yield

    @contextlib.contextmanager
    def _between(self, begin: Any) -> Iterator[None]:
        with self._in_words():
            begin()
        try:
            yield
            with self._in_words():
                self._connection.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(Exception):
                self._connection.execute("ROLLBACK")
            raise

    def _begin_writing(self) -> None:
        raise NotImplementedError

    def _begin_reading(self) -> None:
        raise NotImplementedError

    @contextlib.contextmanager
    def _in_words(self) -> Iterator[None]:
        """Errors of the database, told."""
        try:
            yield
        except self._failures as error:
            raise self._told(error) from error

    def _told(self, error: Exception) -> StoreError:
        raise NotImplementedError

    def _plainly(self, error: Exception) -> StoreError:
        return StoreError(f"{self.shown}: {str(error).strip()}.\n    Nothing was changed.")

    def tidy(self) -> None:
        """Give space back that is not used any more."""

    def close(self) -> None:
        """Let go of it."""
        self._connection.close()


class Sqlite(Database):
    """One file, in write-ahead mode: those who read do not wait, and those who write wait for each other."""

    types = MappingProxyType({"integer": "INTEGER", "bytes": "BLOB", "greatest": "max"})
    tables_query = "SELECT 1 FROM sqlite_master WHERE name = 'meta'"
    size_query = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"

    def __init__(self, place: str, *, create: bool, read_only: bool) -> None:
        import sqlite3

        super().__init__(place)
        self._failures = (sqlite3.Error, UnicodeEncodeError)
        self._begin = "BEGIN IMMEDIATE"
        path = Path(place).expanduser().absolute()
        if not path.exists() and not create:
            raise MissingStoreError(
                f"there is no store {place!r}.\n    'tally spam learn' makes one; --store FILE names another."
            )
        if path.is_dir():
            raise StoreError(f"{place} is a folder; expected the file of a store.\n    --store FILE names one.")
        with self._in_words():
            if create and not path.exists():
                self._make_folder(path.parent)
            # Who may write takes the files beside it away again at the end, also if only to ask.
            alone = read_only and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK))
            options = "?mode=rwc" if create else "?mode=ro" if alone else "?mode=rw"
            self._connection = self._open(sqlite3, path.as_uri() + options)
            try:
                self._prepare(sqlite3, path, create, read_only)
            except BaseException:
                self._connection.close()
                raise

    def _make_folder(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            told = (error.strerror or "cannot be made").lower()
            raise StoreError(
                f"the folder {str(folder)!r} of the store: {told}.\n    --store FILE names another place."
            ) from error

    @staticmethod
    def _open(sqlite3: Any, uri: str) -> Any:
        return sqlite3.connect(uri, uri=True, timeout=PATIENCE, isolation_level=None)

    def _prepare(self, sqlite3: Any, path: Path, create: bool, read_only: bool) -> None:
        try:
            found = self._connection.execute("PRAGMA application_id").fetchone()[0]
        except sqlite3.OperationalError:
            # A folder where nothing can be written has no place for what readers share; nobody writes there either.
            if not read_only or os.access(path.parent, os.W_OK) or Path(f"{path}-wal").exists():
                raise
            self._connection.close()
            self._connection = self._open(sqlite3, path.as_uri() + "?immutable=1")
            found = self._connection.execute("PRAGMA application_id").fetchone()[0]
        empty = not found and not self._connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
        if found != _MAGIC and not (create and empty):
            what = "is empty" if empty else "is an SQLite file of something else"
            raise StoreError(f"{path} {what}; expected the store of a spam filter.\n    --store FILE names another.")
        if read_only:
            self._connection.execute("PRAGMA query_only = ON")
            return
        if empty:
            self._connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            with contextlib.suppress(OSError):
                os.chmod(path, 0o600)  # what one's mail is about is nobody else's business
            self._wait_for_write_ahead(sqlite3)
            self._connection.execute(f"PRAGMA application_id = {_MAGIC}")
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.execute("PRAGMA secure_delete = ON")
        self._connection.execute("PRAGMA journal_size_limit = 16777216")
        self._connection.execute("PRAGMA cache_size = -65536")

    def _wait_for_write_ahead(self, sqlite3: Any) -> None:
        """Turn write-ahead mode on; where another does the same at this moment, SQLite does not wait by itself."""
        start = time.monotonic()
        while True:
            try:
                self._connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError:
                if time.monotonic() - start > PATIENCE:
                    raise
                time.sleep(0.01)

    def do_many(self, text: str, rows: Iterable[Sequence[Any]]) -> None:
        """The same statement for many rows."""
        with self._in_words():
            self._connection.executemany(text, rows)

    def insert(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Put rows into a table, many with one statement, which takes two thirds of the time."""
        values = list(chain.from_iterable(rows))
        n_rows = _LENGTHS[-1] // len(columns)
        size = n_rows * len(columns)
        whole = len(values) // size * size
        parts = (values[start : start + size] for start in range(0, whole, size))
        self.do_many(_inserting(table, columns, n_rows), parts)
        left = (values[start : start + len(columns)] for start in range(whole, len(values), len(columns)))
        self.do_many(_inserting(table, columns, 1), left)

    def ask_among(self, text: str, values: Iterable[Any]) -> Iterator[Row]:
        """Rows where something is among many values."""
        for question, part in self._parts(text, list(values)):
            yield from self.ask(question, part)

    def do_among(self, text: str, values: Iterable[Any]) -> int:
        """Change rows where something is among many values; how many."""
        return sum(self.do(statement, part) for statement, part in self._parts(text, list(values)))

    @staticmethod
    def _parts(text: str, values: list[Any]) -> Iterator[tuple[str, list[Any]]]:
        """As many values at a time as every SQLite takes; few lengths, so that statements are prepared once."""
        for start in range(0, len(values), _LENGTHS[-1]):
            part = values[start : start + _LENGTHS[-1]]
            length = next(length for length in _LENGTHS if len(part) <= length)
            part += part[-1:] * (length - len(part))
            yield text.format(among=f"IN ({','.join('?' * length)})"), part

    def _begin_writing(self) -> None:
        self._connection.execute(self._begin)

    def _begin_reading(self) -> None:
        self._connection.execute("BEGIN")

    def tidy(self) -> None:
        """Give pages back, and what the log still has of them; where others are busy, another time."""
        with contextlib.suppress(StoreError), self._in_words():
            self._connection.executescript("PRAGMA incremental_vacuum")  # execute gives one page back and stops
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def _told(self, error: Exception) -> StoreError:
        said = str(error)
        if "not a database" in said or "malformed" in said:
            return StoreError(
                f"{self.place} is no store of a spam filter, or it is damaged ({said}).\n"
                "    Put back a copy, or name another with --store FILE and learn again."
            )
        if "locked" in said or "busy" in said:
            return StoreError(f"{self.place}: another process has kept it for {PATIENCE:.0f} s.\n    Try again later.")
        if "no such table" in said or "no such column" in said:
            return StoreError(f"{self.place} is not whole ({said}); expected the store of a spam filter.")
        if "readonly" in said or "unable to open" in said:
            return StoreError(
                f"{self.place} cannot be {'opened' if 'open' in said else 'changed'} ({said}).\n"
                "    Its folder must be writable, too; --store FILE names another place."
            )
        if "surrogates" in said:
            return StoreError("a word is no text: it has half a character.\n    Nothing was changed.")
        return self._plainly(error)


class Postgres(Database):
    """A database that a site shares; its tables are in a schema of their own, `tally_spam`."""

    types = MappingProxyType({"integer": "BIGINT", "bytes": "BYTEA", "greatest": "greatest"})
    tables_query = "SELECT 1 FROM pg_tables WHERE schemaname = 'tally_spam' AND tablename = 'meta'"
    size_query = (
        "SELECT sum(pg_total_relation_size(c.oid))::bigint FROM pg_class c "
        "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'tally_spam' AND c.relkind = 'r'"
    )

    def __init__(self, place: str, *, create: bool, read_only: bool) -> None:
        super().__init__(place)
        try:
            import psycopg
        except ModuleNotFoundError as error:
            raise StoreError(
                "a store on a server needs psycopg.\n    Install it: pip install 'tallybayes[postgresql]'"
            ) from error
        self._failures = (psycopg.Error, UnicodeEncodeError)
        with self._in_words():
            self._connection = psycopg.connect(encoded(place), autocommit=True, connect_timeout=10)
            try:
                self._connection.execute(f"SET lock_timeout = '{PATIENCE:.0f}s'")
                self._connection.execute("SET search_path = tally_spam")
                self._prepare(create)
            except BaseException:
                self._connection.close()
                raise

    def _prepare(self, create: bool) -> None:
        there = "SELECT 1 FROM pg_namespace WHERE nspname = 'tally_spam'"
        if self._connection.execute(there).fetchone():
            return
        if not create:
            raise MissingStoreError(f"there is no store in {self.shown}.\n    'tally spam learn' makes one.")
        import psycopg

        with contextlib.suppress(psycopg.errors.UniqueViolation):  # another made it at the same moment
            self._connection.execute("CREATE SCHEMA IF NOT EXISTS tally_spam")

    def _sql(self, text: str) -> str:
        return text.replace("%", "%%").replace("?", "%s")

    def do_many(self, text: str, rows: Iterable[Sequence[Any]]) -> None:
        """The same statement for many rows."""
        with self._in_words(), self._connection.cursor() as cursor:
            cursor.executemany(self._sql(text), rows)

    def ask_among(self, text: str, values: Iterable[Any]) -> Iterator[Row]:
        """Rows where something is among many values."""
        yield from self.ask(text.format(among="= ANY(?)"), [list(values)])

    def do_among(self, text: str, values: Iterable[Any]) -> int:
        """Change rows where something is among many values; how many."""
        return self.do(text.format(among="= ANY(?)"), [list(values)])

    def _begin_writing(self) -> None:
        # One lock for all that is changed, taken first: totals are in every change, and nobody waits in a circle.
        self._connection.execute("BEGIN")
        self._connection.execute(f"SELECT pg_advisory_xact_lock({_MAGIC})")

    def _begin_reading(self) -> None:
        self._connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

    def _told(self, error: Exception) -> StoreError:
        said = str(error)
        if "does not exist" in said and "relation" in said:
            return StoreError(f"{self.shown} is not whole ({said.splitlines()[0]}); expected the store of a filter.")
        if "permission denied" in said:
            return StoreError(f"{self.shown}: {said.splitlines()[0]}.\n    Ask who owns the database for the right.")
        return self._plainly(error)

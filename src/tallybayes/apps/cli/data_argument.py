"""DATA: the rows that a command is about, from a file, a pattern, standard input or a database."""

from __future__ import annotations

import contextlib
import os
import sys
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import quote

from cyclopts import Parameter

from tallybayes.apps.cli.cli_errors import CommandError, UsageError
from tallybayes.apps.cli.console import STANDARD_INPUT, print_status
from tallybayes.apps.spam.store.backends import encoded

if TYPE_CHECKING:
    import tallybayes as tb

_DATABASES = ("duckdb:", "sqlite:", "postgresql://", "postgres://")


@Parameter(name="*", group="Reading DATA")
@dataclass(frozen=True)
class ReadOptions:
    """What a file or a database does not say by itself."""

    table: str | None = None
    "Of a database: the table."
    query: str | None = None
    "Of a database: a query, whose answer is the table."
    format: Literal["csv", "json", "parquet", "ipc"] | None = None
    "Of a file whose name does not tell what it is."
    delimiter: str | None = None
    "What parts the cells of text; by default what its first line has most of."
    null_values: tuple[str, ...] = ()
    "What stands for a missing cell, such as '?' and NA, besides nothing at all."
    types: tuple[str, ...] = ()
    "What columns are, as NAME=TYPE: zip=string price=float64."
    names: tuple[str, ...] = ()
    "The columns of text files that have no line of names."
    encoding: str = "utf8"
    "Of text files."
    on_bad: Literal["error", "missing", "skip"] = "error"
    "What becomes of a cell of text that is not of its column's type: an error, a missing cell, or its row is left out."

    def options(self) -> dict[str, Any]:
        """The options of `tb.table` that were given."""
        found: dict[str, Any] = {"format": self.format, "delimiter": self.delimiter}
        found |= {
            "null_values": ["", *self.null_values] if self.null_values else None,
            "names": list(self.names) or None,
        }
        found |= {"types": dict(pair(one, "types", "TYPE") for one in self.types) or None}
        found |= {"encoding": self.encoding, "on_bad": self.on_bad}
        return found


Read = Annotated[ReadOptions, Parameter(name="*")]
DEFAULT_READ_OPTIONS = ReadOptions()


def pair(text: str, option: str, what: str) -> tuple[str, str]:
    """NAME=SOMETHING, taken apart at the last sign: names may hold one."""
    name, sign, value = text.rpartition("=")
    if not sign or not name or not value:
        raise UsageError(
            f"--{option} has {text!r}; expected NAME={what}.\n    Data and models come first, options last."
        )
    return name, value


def is_database(text: str) -> bool:
    """Whether DATA, or where something is to be written, is the address of a database."""
    return text.startswith(_DATABASES)


class OpenResources(contextlib.ExitStack):
    """The files and databases that one command reads and writes; all are closed at its end.

    Parameters
    ----------
    writes : str, optional
        The address of the database that is written to: others are opened for reading only.
    """

    def __init__(self, writes: str | None = None) -> None:
        super().__init__()
        self._writes, self._connections = writes, dict[str, Any]()

    def source(
        self,
        data: str,
        reading: ReadOptions = DEFAULT_READ_OPTIONS,
        ignored: tuple[str, ...] = (),
        needed: tuple[str | None, ...] = (),
    ) -> tb.Source:
        """The rows that DATA names; columns that are needed must be there, before anything is read or written."""
        import tallybayes as tb

        if is_database(data):
            options = {name: None if value in ("utf8", "error") else value for name, value in reading.options().items()}
            given = [name for name, value in options.items() if value is not None]
            if given:
                raise UsageError(f"--{given[0].replace('_', '-')} is of files; found the database {data}.")
            connection = self.connect(data)
            found = tb.table(connection, self._asked(connection, data, reading))
        else:
            if reading.table or reading.query:
                option = "table" if reading.table else "query"
                raise UsageError(
                    f"--{option} is of databases; found {data!r}; expected duckdb:FILE, sqlite:FILE or postgresql://…"
                )
            rows: Any = data
            if data == STANDARD_INPUT:
                rows = sys.stdin.buffer
                if sys.stdin.isatty():
                    print_status("reading standard input; Ctrl-D ends it")
            found = tb.table(rows, **reading.options())
        found.check_columns([name for name in (*needed, *ignored) if name is not None])
        if not ignored:
            return found
        return tb.table(found, columns=[name for name in found.schema.names if name not in ignored])

    def connect(self, address: str) -> Any:
        """A connection to a database, one for each."""
        if address not in self._connections:
            connection = _connect(address, writes=address == self._writes)
            self._connections[address] = self.enter_context(contextlib.closing(connection))
        return self._connections[address]

    def _asked(self, connection: Any, data: str, reading: ReadOptions) -> str:
        if reading.table and reading.query:
            raise UsageError("both --table and --query are given; expected one of them.")
        found = reading.table or reading.query
        if found:
            return found
        there = _tables(connection)
        known = f" It has {', '.join(there[:8])}{', …' if len(there) > 8 else ''}." if there else ""
        raise UsageError(f"which table of {data} is not said; expected --table NAME or --query SQL.{known}")

    def target(self, out: str | None, table: str | None) -> tuple[Any, str | None]:
        """Where rows are written to, and as what: standard output, a file, or a table of a database."""
        if out is not None and is_database(out):
            if not table:
                raise UsageError(f"which table of {out} is written is not said; expected --to-table NAME.")
            return (self.connect(out), table), None
        if table:
            raise UsageError("--to-table is of databases; expected -o duckdb:FILE, sqlite:FILE or postgresql://…")
        if out is None or out == STANDARD_INPUT:
            return _standard_output(), "csv"
        return out, None


def _standard_output() -> IO[bytes]:
    sys.stdout.flush()
    return sys.stdout.buffer


def _connect(address: str, writes: bool) -> Any:
    kind, _, path = address.partition(":")
    if kind.startswith("postgres"):
        return _imported("psycopg", "postgresql").connect(encoded(address))
    path = os.path.expanduser(path.removeprefix("//") if path.startswith("///") else path)
    if not writes and path != ":memory:" and not os.path.isfile(path):
        raise CommandError(f"there is no database {path!r}; expected a file that {kind} wrote.")
    if kind == "duckdb":
        return _imported("duckdb", "duckdb").connect(path, read_only=not writes)
    import sqlite3

    mode = "rwc" if writes else "ro"
    return sqlite3.connect(f"file:{quote(os.path.abspath(path))}?mode={mode}", uri=True)


def _imported(library: str, extra: str) -> Any:
    from importlib import import_module

    try:
        return import_module(library)
    except ModuleNotFoundError:
        raise CommandError(
            f"such a database needs {library}, which is not installed.\n    pip install 'tallybayes[{extra}]'"
        ) from None


def _tables(connection: Any) -> list[str]:
    """The tables that a database has."""
    own = "('information_schema', 'pg_catalog')"
    asked = f"SELECT table_name FROM information_schema.tables WHERE table_schema NOT IN {own}"
    if type(connection).__module__.startswith("sqlite3"):
        asked = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')"
    return sorted(str(name) for (name,) in connection.execute(asked).fetchall())

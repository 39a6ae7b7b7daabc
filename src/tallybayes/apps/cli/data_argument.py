"""The argument DATA: rows of a file, a pattern of files, standard input or a database."""

from __future__ import annotations

import contextlib
import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import quote

from cyclopts import Parameter

from tallybayes.apps.cli.cli_errors import CommandError, UsageError
from tallybayes.apps.cli.console import STANDARD_INPUT, print_status
from tallybayes.apps.spam.store.backends import percent_encoded

if TYPE_CHECKING:
    import tallybayes as tb

_DATABASES = ("duckdb:", "sqlite:", "postgresql://", "postgres://")


@Parameter(name="*", group="Reading DATA")
@dataclass(frozen=True)
class ReadOptions:
    """Options for reading a file or a database."""

    table: str | None = None
    "Table of a database."
    query: str | None = None
    "SQL query of a database, whose result is DATA."
    format: Literal["csv", "json", "parquet", "ipc"] | None = None
    "Format of the file; by default from its name."
    delimiter: str | None = None
    "Separator of the cells of a text file; by default the most frequent one of its first line."
    null_values: tuple[str, ...] = ()
    "Texts that are missing values, such as '?' and NA, besides the empty cell."
    types: tuple[str, ...] = ()
    "Types of columns, as NAME=TYPE: zip=string price=float64."
    names: tuple[str, ...] = ()
    "Names of the columns of a text file without a header."
    encoding: str = "utf8"
    "Encoding of text files."
    on_bad: Literal["error", "missing", "skip"] = "error"
    "Action for a cell that does not match the type of its column: an error, a missing value, or skip its row."

    def options(self) -> dict[str, Any]:
        """Return the options of `tb.table` that were passed."""
        options: dict[str, Any] = {"format": self.format, "delimiter": self.delimiter}
        options |= {
            "null_values": ["", *self.null_values] if self.null_values else None,
            "names": list(self.names) or None,
        }
        options |= {"types": dict(pair(one, "types", "TYPE") for one in self.types) or None}
        options |= {"encoding": self.encoding, "on_bad": self.on_bad}
        return options


Read = Annotated[ReadOptions, Parameter(name="*")]
DEFAULT_READ_OPTIONS = ReadOptions()


def pair(text: str, option: str, what: str) -> tuple[str, str]:
    """Split NAME=VALUE at the last equals sign: names may contain one."""
    name, sign, value = text.rpartition("=")
    if not sign or not name or not value:
        raise UsageError(
            f"--{option} has {text!r}; expected NAME={what}.\n    Data and models come first, options last."
        )
    return name, value


def is_database(text: str) -> bool:
    """Return whether a text is the address of a database."""
    return text.startswith(_DATABASES)


class OpenResources(contextlib.ExitStack):
    """Context manager of the files and databases of one command, which are closed at its end.

    Parameters
    ----------
    writes : str, optional
        Address of the database to write to. All others are opened read-only.
    """

    def __init__(self, writes: str | None = None) -> None:
        super().__init__()
        self._writes = writes
        self._connections: dict[str, Any] = {}

    def source(
        self,
        data: str,
        reading: ReadOptions = DEFAULT_READ_OPTIONS,
        ignored: tuple[str, ...] = (),
        needed: tuple[str | None, ...] = (),
    ) -> tb.Source:
        """Return the rows of DATA. Raise an error now if a required column is missing."""
        import tallybayes as tb

        if is_database(data):
            options = {name: None if value in ("utf8", "error") else value for name, value in reading.options().items()}
            given = [name for name, value in options.items() if value is not None]
            if given:
                raise UsageError(
                    f"--{given[0].replace('_', '-')} applies to files; found the database {data}; expected a file."
                )
            connection = self.connect(data)
            table = tb.table(connection, _query(connection, data, reading))
        else:
            if reading.table or reading.query:
                option = "table" if reading.table else "query"
                raise UsageError(
                    f"--{option} applies to databases; found {data!r}; expected duckdb:FILE, sqlite:FILE or postgresql://…"
                )
            rows: Any = data
            if data == STANDARD_INPUT:
                rows = sys.stdin.buffer
                if sys.stdin.isatty():
                    print_status("reading standard input; Ctrl-D ends it")
            table = tb.table(rows, **reading.options())
        table.check_columns([name for name in (*needed, *ignored) if name is not None])
        if not ignored:
            return table
        return tb.table(table, columns=[name for name in table.schema.names if name not in ignored])

    def connect(self, address: str) -> Any:
        """Return the connection to a database; each is opened once."""
        if address not in self._connections:
            connection = _connect(address, writes=address == self._writes)
            self._connections[address] = self.enter_context(contextlib.closing(connection))
        return self._connections[address]

    def target(self, out: str | None, table: str | None, json: bool) -> tuple[Any, str | None]:
        """Return the target of the output, and its format if it is standard output, not a file or a database table."""
        if json and out is not None:
            raise UsageError(
                "--json applies to standard output.\n    The suffix of a file sets its format: -o rows.jsonl."
            )
        if out is not None and is_database(out):
            if not table:
                raise UsageError(f"missing option --to-table NAME: the table of {out} to write.")
            return (self.connect(out), table), None
        if table:
            raise UsageError("--to-table requires a database; expected -o duckdb:FILE, sqlite:FILE or postgresql://…")
        if out is None or out == STANDARD_INPUT:
            sys.stdout.flush()
            return sys.stdout.buffer, "json" if json else "csv"
        return out, None


def _query(connection: Any, data: str, reading: ReadOptions) -> str:
    """Return the table or the query to read. Raise UsageError unless exactly one is given."""
    if reading.table and reading.query:
        raise UsageError("--table and --query exclude each other; pass one of them.")
    query = reading.table or reading.query
    if query:
        return query
    tables = _tables(connection)
    known = f" Tables: {', '.join(tables[:8])}{', …' if len(tables) > 8 else ''}." if tables else ""
    raise UsageError(f"missing option: the table of {data}; expected --table NAME or --query SQL.{known}")


def _connect(address: str, writes: bool) -> Any:
    """Open a database; read-only unless it is written to."""
    kind, _, path = address.partition(":")
    if kind.startswith("postgres"):
        return _imported("psycopg", "psycopg[binary]").connect(percent_encoded(address))
    path = os.path.expanduser(path.removeprefix("//") if path.startswith("///") else path)
    if not writes and path != ":memory:" and not os.path.isfile(path):
        raise CommandError(f"database {path!r} does not exist; expected a file written by {kind}.")
    if kind == "duckdb":
        return _imported("duckdb", "duckdb").connect(path, read_only=not writes)
    import sqlite3

    mode = "rwc" if writes else "ro"
    return sqlite3.connect(f"file:{quote(os.path.abspath(path))}?mode={mode}", uri=True)


def _imported(library: str, requirement: str) -> Any:
    """Import a database library, or raise CommandError with the command to install it."""
    from importlib import import_module

    try:
        return import_module(library)
    except ModuleNotFoundError:
        raise CommandError(
            f"reading this database requires {library}, which is not installed.\n    pip install '{requirement}'"
        ) from None


def _tables(connection: Any) -> list[str]:
    """Return the names of the tables of a database."""
    own = "('information_schema', 'pg_catalog')"
    query = f"SELECT table_name FROM information_schema.tables WHERE table_schema NOT IN {own}"
    if type(connection).__module__.startswith("sqlite3"):
        query = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')"
    return sorted(str(name) for (name,) in connection.execute(query).fetchall())

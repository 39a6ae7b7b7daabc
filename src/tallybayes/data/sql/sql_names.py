"""Names of tables as users write them, found in the catalog of a database: no query has to fail for it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from tallybayes.errors import DataError
from tallybayes.messages import closest_names

if TYPE_CHECKING:
    from tallybayes.data.sql.dialects import Dialect

_PART = re.compile(r'"((?:[^"]|"")+)"|([^".]+)')
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
_SHOWN = 8  # names in a message


class Entry(NamedTuple):
    """A table of the catalog."""

    database: str | None
    schema: str
    name: str
    rank: int | None  # in the search path, where the name needs no schema; the lowest is found first
    internal: bool

    def matches(self, parts: list[str]) -> bool:
        """Whether these are its names, from the right; the schema main may be left out after a database."""
        if len(parts) == 1:
            return self.rank is not None and parts[0] == self.name
        path = [self.database, self.schema, self.name]
        in_main = self.schema == "main" and parts == [self.database, self.name]
        return path[-len(parts) :] == parts or in_main


def parts_of(name: str) -> list[tuple[str, bool]] | None:
    """The parts of a name between dots, each with whether it is in quotes; None for another text."""
    found, place = [], 0
    while match := _PART.match(name, place):
        quoted, plain = match.groups()
        found.append((plain if quoted is None else quoted.replace('""', '"'), quoted is not None))
        if match.end() == len(name):
            return found
        if name[match.end()] != ".":
            return None
        place = match.end() + 1
    return None


def cut(name: str, most: int | None) -> str:
    """The beginning of a name, of at most so many bytes as UTF-8."""
    return name if most is None else name.encode()[:most].decode(errors="ignore")


def find_table(dialect: Dialect, name: str) -> str:
    """A table by its name, quoted and with its schema.

    Three readings are tried: the whole text as one name; its parts between dots, to the letter; and its parts as the
    database compares names, PostgreSQL in lower case unless they are quoted, others in any case.

    Parameters
    ----------
    dialect : Dialect
    name : str
    """
    fold, parts = dialect.folds, parts_of(name) or []
    last = dict.fromkeys([name, *(part for part, _ in parts[-1:])])
    wanted = ", ".join(f"LOWER({dialect.text(part)})" for part in last)
    entries = sorted(dialect.tables(f"WHERE LOWER(name) IN ({wanted})"), key=_order)
    folded = [part if quoted and not dialect.quoted_folds else fold(part) for part, quoted in parts]
    for reading in ([name], [part for part, _ in parts]):
        for entry in entries:
            if entry.matches(reading):
                return _quoted(dialect, entry)
    for entry in entries:
        own = entry
        if dialect.quoted_folds:  # PostgreSQL folds what is typed, not what the catalog has
            database = None if entry.database is None else fold(entry.database)
            own = entry._replace(database=database, schema=fold(entry.schema), name=fold(entry.name))
        if own.matches(folded):
            return _quoted(dialect, entry)
    raise DataError(f"there is no table {name!r} in the database (found: {_listed(dialect, name)}).")


def _quoted(dialect: Dialect, entry: Entry) -> str:
    return ".".join(dialect.quote(part) for part in entry[:3] if part is not None)


def _listed(dialect: Dialect, name: str) -> str:
    """The tables there are, those with a similar name first, as they may be typed."""
    fold = dialect.folds if dialect.quoted_folds else str
    first: dict[str, Entry] = {}
    entries = [entry for entry in sorted(dialect.tables(), key=_order) if not entry.internal]
    if len({entry.database for entry in entries}) == 1:
        entries = [entry._replace(database=None) for entry in entries]
    shown = dict.fromkeys(_typed(one, alone=first.setdefault(fold(one.name), one) is one) for one in entries)
    near = [str(close) for close in closest_names(name, shown, _SHOWN)]
    found = [*near, *(other for other in shown if other not in near)]
    more = f" and {len(found) - _SHOWN:,} more" if len(found) > _SHOWN else ""
    return ", ".join(found[:_SHOWN]) + more if found else "none"


def _order(entry: Entry) -> tuple[bool, int]:
    return entry.rank is None, entry.rank or 0


def _typed(entry: Entry, *, alone: bool) -> str:
    """A name that finds the table: without its schema where no other of the same name is found before."""
    if entry.rank is not None and alone:
        return entry.name
    return ".".join(
        part if _PLAIN.fullmatch(part) else '"' + part.replace('"', '""') + '"'
        for part in (entry.database, entry.schema, entry.name)
        if part is not None
    )

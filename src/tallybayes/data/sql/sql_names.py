"""Table names as users write them, resolved by the catalog of a database without failing queries."""

from __future__ import annotations

import re
from collections.abc import Callable
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
    rank: int | None  # in the search path, lowest first; None if the name needs a schema
    internal: bool

    @property
    def path(self) -> list[str]:
        """The parts of the qualified name."""
        return [part for part in self[:3] if part is not None]

    def matches(self, parts: list[str], convert: Callable[[str], str]) -> bool:
        """Return whether `parts` are the last parts of its converted name; the schema main may be omitted."""
        path = list(map(convert, self.path))
        if len(parts) == 1:
            return self.rank is not None and parts == path[-1:]
        return parts in (path[-len(parts) :], path[:1] + path[2:] if self.schema == "main" else None)


def parts_of(name: str) -> list[tuple[str, bool]] | None:
    """Return the parts of a dotted name, each with whether it is quoted; None for other text."""
    parts = []
    position = 0
    while match := _PART.match(name, position):
        quoted, plain = match.groups()
        parts.append((plain if quoted is None else quoted.replace('""', '"'), quoted is not None))
        if match.end() == len(name):
            return parts
        if name[match.end()] != ".":
            return None
        position = match.end() + 1
    return None


def truncated(name: str, most: int | None) -> str:
    """Return the prefix of a name with at most `most` bytes in UTF-8."""
    return name if most is None else name.encode()[:most].decode(errors="ignore")


def find_table(dialect: Dialect, name: str) -> str:
    """Return a table by its name, quoted and with its schema.

    Three interpretations are tried: the text as one name; its parts between dots, exactly; and its parts as the
    database compares names. PostgreSQL folds unquoted names to lower case, other databases ignore case.

    Parameters
    ----------
    dialect : Dialect
    name : str
    """
    fold = dialect.folds
    parts = parts_of(name) or []
    last = dict.fromkeys([name, *(part for part, _ in parts[-1:])])
    wanted = ", ".join(f"LOWER({dialect.text(part)})" for part in last)
    entries = sorted(dialect.tables(f"WHERE LOWER(name) IN ({wanted})"), key=_order)
    plain = [part for part, _ in parts]
    folded = [part if quoted and not dialect.quoted_folds else fold(part) for part, quoted in parts]
    of_catalog = fold if dialect.quoted_folds else str  # PostgreSQL folds the typed name, not the name in the catalog
    for reading, convert in (([name], str), (plain, str), (folded, of_catalog)):
        for entry in entries:
            if entry.matches(reading, convert):
                return ".".join(dialect.quote(part) for part in entry.path)
    raise DataError(
        f"there is no table {name!r} in the database (found: {_listed(dialect, name)}).\n"
        "    Pass the name of a table, or a query: SELECT ..."
    )


def _listed(dialect: Dialect, name: str) -> str:
    """Return the names of the tables as they may be typed, similar names first, for a message."""
    fold = dialect.folds if dialect.quoted_folds else str
    entries = [entry for entry in sorted(dialect.tables(), key=_order) if not entry.internal]
    if len({entry.database for entry in entries}) == 1:
        entries = [Entry(None, *entry[1:]) for entry in entries]
    first = {fold(entry.name): entry for entry in reversed(entries)}
    typed = dict.fromkeys(_typed(entry, alone=first[fold(entry.name)] is entry) for entry in entries)
    names = list(dict.fromkeys([*map(str, closest_names(name, typed, _SHOWN)), *typed]))
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more if names else "none"


def _order(entry: Entry) -> tuple[bool, int]:
    """Return the sort key of tables: those in the search path first, by rank."""
    return entry.rank is None, entry.rank or 0


def _typed(entry: Entry, *, alone: bool) -> str:
    """Return a name that finds the table: without its schema if no other table of that name has precedence."""
    if entry.rank is not None and alone:
        return entry.name
    return ".".join(part if _PLAIN.fullmatch(part) else '"' + part.replace('"', '""') + '"' for part in entry.path)

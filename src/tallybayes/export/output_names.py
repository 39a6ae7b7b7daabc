"""Names of output columns."""

from __future__ import annotations

from collections.abc import Sequence

from tallybayes.data.sql.sql_names import truncated
from tallybayes.tally.factor import Name


def free_names(wanted: Sequence[str], taken: Sequence[Name], most: int | None = None) -> list[str]:
    """Return the requested names, with underscores appended where a column has the name, ignoring case.

    Parameters
    ----------
    wanted, taken : sequences of names
        Requested names, and the names of existing columns.
    most : int, optional
        The number of bytes after which the database truncates names.
    """
    used = {truncated(str(name), most).lower() for name in taken}
    names = []
    for full_name in wanted:
        name = truncated(full_name, most)
        suffix = ""
        while name.lower() in used:
            suffix += "_"
            name = truncated(full_name, None if most is None else most - len(suffix)) + suffix
        used.add(name.lower())
        names.append(name)
    return names

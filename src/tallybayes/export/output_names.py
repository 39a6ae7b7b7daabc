"""Names of what is written beside a user's own columns."""

from __future__ import annotations

from collections.abc import Sequence

from tallybayes.data.sql.sql_names import truncated
from tallybayes.tally.factor import Name


def free_names(wanted: Sequence[str], taken: Sequence[Name], most: int | None = None) -> list[str]:
    """Names that no column has, in a database that ignores case, too.

    Parameters
    ----------
    wanted, taken : sequences of names
    most : int, optional
        How many bytes of a name the database keeps.
    """
    used, found = {truncated(str(name), most).lower() for name in taken}, []
    for whole in wanted:
        name, end = truncated(whole, most), ""
        while name.lower() in used:
            end += "_"
            name = truncated(whole, None if most is None else most - len(end)) + end
        used.add(name.lower())
        found.append(name)
    return found

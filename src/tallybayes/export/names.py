"""Names of what is written beside a user's own columns."""

from __future__ import annotations

from collections.abc import Sequence

from tallybayes.tally.factor import Name


def free_names(wanted: Sequence[str], taken: Sequence[Name]) -> list[str]:
    """Names that no column has, in a database that does not tell capitals apart, either."""
    used, found = {str(name).lower() for name in taken}, []
    for name in wanted:
        while name.lower() in used:
            name += "_"
        used.add(name.lower())
        found.append(name)
    return found

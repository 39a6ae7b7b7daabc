"""What a search may not do: arrows that must or must not be there, tiers, and how many parents at most."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tallybayes.errors import DataError
from tallybayes.models.network.graph import Graph
from tallybayes.tally.factor import Name


class Constraints(NamedTuple):
    """Which arrows there may be.

    Attributes
    ----------
    allowed, required : bool arrays of shape (columns, columns)
        By parent and child.
    most : int
        Parents of a node, at most.
    told : list of str
        What was asked for, in words.
    """

    allowed: np.ndarray
    required: np.ndarray
    most: int
    told: list[str]

    @property
    def known(self) -> np.ndarray:
        """Arrows whose direction is known, wherever they are."""
        return self.required | ~self.allowed.T


def read_constraints(
    names: Sequence[Name], required: Any, forbidden: Any, tiers: Any, max_parents: int | None
) -> Constraints:
    """What was asked for, checked: names that exist, no contradiction, no cycle."""
    index = {name: place for place, name in enumerate(names)}
    must, must_not = (_edges(given, what, index) for given, what in ((required, "required"), (forbidden, "forbidden")))
    allowed = ~np.eye(len(names), dtype=bool)
    asked = np.zeros_like(allowed)
    for parent, child in must_not:
        allowed[index[parent], index[child]] = False
    tiers = tiers if tiers is None or isinstance(tiers, str | bytes) or not isinstance(tiers, Iterable) else list(tiers)
    tier = _tiers(tiers, index)
    for first, level in tier.items():
        for second, other in tier.items():
            allowed[index[first], index[second]] &= level <= other
    for parent, child in must:
        place = index[parent], index[child]
        if not allowed[place]:
            why = "by the tiers" if (parent, child) not in must_not else "in forbidden="
            raise DataError(f"the arrow {parent!r} → {child!r} is required, and forbidden {why}; expected one of them.")
        asked[place] = True
    if max_parents is not None and (
        isinstance(max_parents, bool) or not isinstance(max_parents, int | np.integer) or max_parents < 0
    ):
        raise DataError.wrong_type("max_parents", repr(max_parents), "a whole number from 0 on, or None")
    most = len(names) - 1 if max_parents is None else min(int(max_parents), len(names) - 1)
    if (asked.sum(axis=0) > most).any():
        child = int(np.argmax(asked.sum(axis=0)))
        raise DataError(
            f"{int(asked[:, child].sum())} parents of {names[child]!r} are required, and max_parents is {max_parents}."
        )
    if must:
        Graph.read(must)  # refuses a cycle, and shows it
        allowed &= ~asked.T
    return Constraints(allowed, asked, most, _told(must, must_not, tiers, max_parents))


def _edges(given: Any, what: str, index: dict[Name, int]) -> list[tuple[Name, Name]]:
    """Arrows (parent, child) between columns that exist."""
    found = []
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise DataError.wrong_type(what, repr(given)[:60], "a list of arrows (parent, child)")
    for edge in given:
        if isinstance(edge, str | bytes) or not isinstance(edge, Iterable) or len(pair := tuple(edge)) != 2:
            raise DataError.wrong_type(f"an arrow of {what}=", repr(edge)[:60], "a pair (parent, child)")
        _know(pair, index)
        if pair[0] == pair[1]:
            raise DataError(f"{what}= has an arrow from {pair[0]!r} to itself; expected two columns.")
        found.append(pair)
    return list(dict.fromkeys(found))


def _tiers(tiers: Any, index: dict[Name, int]) -> dict[Name, int]:
    """The tier of every column that has one."""
    found: dict[Name, int] = {}
    if tiers is None:
        return found
    if isinstance(tiers, str | bytes) or not isinstance(tiers, Iterable):
        raise DataError.wrong_type("tiers", repr(tiers)[:60], "a list of lists of columns, the earliest first")
    for level, members in enumerate(tiers):
        if isinstance(members, str | bytes) or not isinstance(members, Iterable):
            raise DataError.wrong_type(f"tier {level}", repr(members)[:60], "a list of columns")
        for name in members:
            _know((name,), index)
            if name in found:
                raise DataError(f"column {name!r} is in two tiers; expected one at most.")
            found[name] = level
    return found


def _know(names: Iterable[Any], index: dict[Name, int]) -> None:
    unknown = [name for name in names if not isinstance(name, str | int) or name not in index]
    if unknown:
        raise DataError.unknown_column(unknown, index)


def _told(must: Sequence[Any], must_not: Sequence[Any], tiers: Any, max_parents: int | None) -> list[str]:
    """The constraints, for people."""
    told = []
    for what, edges in (("required", must), ("forbidden", must_not)):
        if edges:
            shown = ", ".join(f"{parent} → {child}" for parent, child in edges[:4])
            told.append(f"{what}: {shown}" + (f", … {len(edges) - 4} more" if len(edges) > 4 else ""))
    if tiers is not None:
        told.append(f"tiers: {' < '.join(map(_tier, tiers))}")
    return told + ([] if max_parents is None else [f"at most {max_parents} parents"])


def _tier(members: Any) -> str:
    """A tier: its columns, or how many these are."""
    names = list(map(str, members))
    return ", ".join(names) if len(names) <= 3 else f"{names[0]}, {names[1]}, … {len(names) - 2} more"

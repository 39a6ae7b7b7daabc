"""Constraints of a structure search: required and forbidden edges, tiers, and the maximum number of parents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tallybayes._utils.parameter_checks import check_count
from tallybayes.errors import DataError
from tallybayes.models.network.graph import Graph, read_edge
from tallybayes.tally.factor import Name

Edge = tuple[Name, Name]


class Constraints(NamedTuple):
    """The edges that a structure may and must have.

    Attributes
    ----------
    allowed, required : bool arrays of shape (columns, columns)
        By parent and child.
    max_parents : int
    description : list of str
        The constraints, as printed.
    """

    allowed: np.ndarray
    required: np.ndarray
    max_parents: int
    description: list[str]

    @property
    def oriented(self) -> np.ndarray:
        """The edges that can have this direction only, whether or not a structure has them."""
        return self.required | ~self.allowed.T


def read_constraints(
    names: Sequence[Name], required: object, forbidden: object, tiers: object, max_parents: int | None
) -> Constraints:
    """Return the constraints; raise DataError for unknown names, contradictions and cycles."""
    index = {name: k for k, name in enumerate(names)}
    required_edges = _read_edges(required, "required", index)
    forbidden_edges = _read_edges(forbidden, "forbidden", index)
    members = _read_tiers(tiers, index)
    allowed = _allowed_edges(index, forbidden_edges, members)
    is_required = np.zeros_like(allowed)
    for parent, child in required_edges:
        if not allowed[index[parent], index[child]]:
            where = "in forbidden=" if (parent, child) in forbidden_edges else "by the tiers"
            raise DataError(
                f"the edge {parent!r} → {child!r} is required, and forbidden {where}; expected one of them."
            )
        is_required[index[parent], index[child]] = True
    limit = len(names) - 1 if max_parents is None else min(check_count("max_parents", max_parents, 0), len(names) - 1)
    n_required = is_required.sum(axis=0)
    if (n_required > limit).any():
        child_index = int(np.argmax(n_required))
        raise DataError(
            f"required= has {n_required[child_index]} parents of {names[child_index]!r}; "
            f"expected at most max_parents={max_parents}."
        )
    if required_edges:
        Graph.read(required_edges)  # raises an error that shows the cycle, if there is one
    description = _describe(required_edges, forbidden_edges, members, max_parents)
    return Constraints(allowed & ~is_required.T, is_required, limit, description)


def _allowed_edges(index: dict[Name, int], forbidden: list[Edge], tiers: list[list[Name]] | None) -> np.ndarray:
    """Return the allowed edges: not forbidden, and not from a later tier to an earlier one."""
    allowed = ~np.eye(len(index), dtype=bool)
    for parent, child in forbidden:
        allowed[index[parent], index[child]] = False
    tier = {name: number for number, members in enumerate(tiers or ()) for name in members}
    for parent, earlier in tier.items():
        for child, later in tier.items():
            allowed[index[parent], index[child]] &= earlier <= later
    return allowed


def _is_collection(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes)


def _read_edges(given: object, what: str, index: dict[Name, int]) -> list[Edge]:
    """Return the edges (parent, child) of a parameter; raise DataError for unknown columns."""
    if not isinstance(given, Iterable) or not _is_collection(given):
        raise DataError.wrong_type(what, repr(given)[:60], "a list of edges (parent, child)")
    edges = [read_edge(edge, f"an edge of {what}=") for edge in given]
    for edge in edges:
        _require_columns(edge, index)
        if edge[0] == edge[1]:
            raise DataError(f"{what}= has an edge from {edge[0]!r} to itself; expected two columns.")
    return list(dict.fromkeys(edges))


def _read_tiers(tiers: object, index: dict[Name, int]) -> list[list[Name]] | None:
    """Return the columns of every tier; raise DataError for a column in two tiers."""
    if tiers is None:
        return None
    if not isinstance(tiers, Iterable) or not _is_collection(tiers):
        raise DataError.wrong_type("tiers", repr(tiers)[:60], "a list of lists of columns, the earliest first")
    members: list[list[Name]] = []
    seen: set[Name] = set()
    for number, tier in enumerate(tiers):
        if not _is_collection(tier):
            raise DataError.wrong_type(f"tier {number}", repr(tier)[:60], "a list of columns")
        members.append(list(tier))
        for name in members[-1]:
            _require_columns((name,), index)
            if name in seen:
                raise DataError(f"column {name!r} is in two tiers; expected one at most.")
            seen.add(name)
    return members


def _require_columns(names: Iterable[object], index: Mapping[Name, int]) -> None:
    unknown = [name for name in names if not isinstance(name, str | int) or name not in index]
    if unknown:
        raise DataError.unknown_column(unknown, index)


def _describe(
    required: list[Edge], forbidden: list[Edge], tiers: list[list[Name]] | None, max_parents: int | None
) -> list[str]:
    """Return the constraints as lines of text."""
    lines = []
    for what, edges in (("required", required), ("forbidden", forbidden)):
        if edges:
            shown = ", ".join(f"{parent} → {child}" for parent, child in edges[:4])
            lines.append(f"{what}: {shown}" + (f", … {len(edges) - 4} more" if len(edges) > 4 else ""))
    if tiers is not None:
        lines.append(f"tiers: {' < '.join(map(_format_tier, tiers))}")
    return lines + ([] if max_parents is None else [f"at most {max_parents} parents"])


def _format_tier(members: list[Name]) -> str:
    """Format the columns of a tier, or the first two and the number of the others."""
    names = list(map(str, members))
    return ", ".join(names) if len(names) <= 3 else f"{names[0]}, {names[1]}, … {len(names) - 2} more"

"""Schema: the domain of every column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tallybayes._utils.frozen_value import FrozenValue
from tallybayes.typing import Name


@dataclass(frozen=True, eq=False, repr=False)
class Schema(FrozenValue):
    """Which domain the levels of a column belong to (by default its own, named after it), and what is kept of them.

    Parameters
    ----------
    domains : mapping or tuple of pairs
        From column to the name of its domain, for columns that share one.
    ordered : tuple of str
        The domains whose levels are kept sorted.
    absent : tuple of str
        The domains of which absence is a level: there a missing cell is counted, not left out.

    Examples
    --------
    >>> from tallybayes.tally.schema import Schema
    >>> Schema({"from": "state", "to": "state"}).domain("to")
    'state'
    """

    domains: Mapping[Any, str] | Iterable[tuple[Name, str]] = ()
    sorted_domains: tuple[str, ...] = ()
    missing_level_domains: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        pairs = self.domains.items() if hasattr(self.domains, "items") else self.domains
        object.__setattr__(self, "domains", tuple((column, str(domain)) for column, domain in pairs))
        object.__setattr__(self, "sorted_domains", tuple(self.sorted_domains))
        object.__setattr__(self, "missing_level_domains", tuple(self.missing_level_domains))
        object.__setattr__(self, "_domain_of", dict(self.domains))

    def domain(self, column: Name) -> str:
        """The name of the domain of a column."""
        return self._domain_of.get(column, str(column))  # type: ignore[attr-defined]

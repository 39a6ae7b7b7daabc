"""Schema: the domain of every categorical column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tallybayes._utils.frozen_value import FrozenValue
from tallybayes.typing import Name


@dataclass(frozen=True, eq=False, repr=False)
class Schema(FrozenValue):
    """Assignment of columns to domains. By default every column has its own domain, named after it.

    Parameters
    ----------
    domains : mapping or tuple of pairs
        From column to domain name, for columns that share a domain.
    sorted_domains : tuple of str
        Domains whose levels are kept sorted.
    missing_level_domains : tuple of str
        Domains with a level for missing values, which are counted instead of skipped.

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
        """Return the name of the domain of a column."""
        return self._domain_of.get(column, str(column))  # type: ignore[attr-defined]

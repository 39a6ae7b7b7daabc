"""Factor: p(columns | given) in one family. And Schema: which columns share one domain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tallybayes.families.family import Family
from tallybayes.value import Value

Name = str | int


@dataclass(frozen=True, eq=False, repr=False)
class Factor(Value):
    """What one block of columns depends on, and how: p(columns | given).

    Parameters
    ----------
    columns : tuple of names
        Like columns, each p(column | given) on its own unless the family is joint.
    given : tuple of names, default ()
        The columns whose levels select the group.
    family : Family
    prior : Belief, rule or None
        None is the family's default. The prior plays no part in counting.

    Examples
    --------
    >>> import tallybayes as tb
    >>> tb.Factor(("height", "weight"), ("sex",), tb.Gaussian())
    Factor(('height', 'weight'), ('sex',), Gaussian())
    """

    columns: tuple[Name, ...]
    given: tuple[Name, ...]
    family: Family
    prior: Any = None

    def __post_init__(self) -> None:
        for name in ("columns", "given"):
            value = getattr(self, name)
            object.__setattr__(self, name, (value,) if isinstance(value, str | int) else tuple(value))

    @property
    def counting(self) -> tuple[Any, ...]:
        """What decides which statistics are kept: all but the prior, and only the family's layout."""
        return (self.columns, self.given, self.family.layout)


@dataclass(frozen=True, eq=False, repr=False)
class Schema(Value):
    """Which domain the levels of a column belong to; by default its own, named after it.

    Parameters
    ----------
    domains : mapping or tuple of pairs
        From column to the name of its domain, for columns that share one.
    ordered : tuple of str
        The domains whose levels are kept sorted.

    Examples
    --------
    >>> from tallybayes.tally.factor import Schema
    >>> Schema({"from": "state", "to": "state"}).domain("to")
    'state'
    """

    domains: Any = ()
    ordered: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        pairs = self.domains.items() if hasattr(self.domains, "items") else self.domains
        object.__setattr__(self, "domains", tuple((column, str(domain)) for column, domain in pairs))
        object.__setattr__(self, "ordered", tuple(self.ordered))

    def domain(self, column: Name) -> str:
        """The name of the domain of a column."""
        return dict(self.domains).get(column, str(column))

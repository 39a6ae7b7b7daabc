"""Factor: p(columns | given) in one family."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes._utils.frozen_value import FrozenValue
from tallybayes.errors import DataError
from tallybayes.families.family import Family
from tallybayes.typing import Name as Name
from tallybayes.typing import Names, Prior


@dataclass(frozen=True, eq=False, repr=False)
class Factor(FrozenValue):
    """What one block of columns depends on, and how: p(columns | given).

    Parameters
    ----------
    columns : name or tuple of names
        Like columns, each p(column | given) on its own unless the family is joint.
    given : name or tuple of names
        The columns whose levels select the group; () for none.
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
    prior: Prior = None

    if TYPE_CHECKING:  # one name stands for a tuple of it

        def __init__(self, columns: Names, given: Names | None, family: Family, prior: Prior = None) -> None: ...

    def __post_init__(self) -> None:
        for name in ("columns", "given"):
            object.__setattr__(self, name, _names(getattr(self, name), name))
        if not isinstance(self.family, Family):
            raise DataError.wrong_type("family", repr(self.family), "a family such as tb.Gaussian()")

    def column(self, place: int, width: int | None = None) -> Name | tuple[Name, int]:
        """The name of the column at a place: (block, place) where one name stands for a block of `width` columns."""
        if len(self.columns) > 1 or width == 1 or (width is None and place == 0):
            return self.columns[place]
        return (self.columns[0], place)

    def index_of(self, column: Name | tuple[Name, ...], width: int) -> int | None:
        """The place of a column among several, by name or as (block, place); None where it is none of them."""
        if isinstance(column, tuple) and len(column) == 2 and self.columns == column[:1]:
            return column[1] if isinstance(column[1], int) and 0 <= column[1] < width else None
        return self.columns.index(column) if column in self.columns else None

    @property
    def level_columns(self) -> tuple[Name, ...]:
        """The columns whose values are levels, each over a domain: those of labels."""
        return self.columns if self.family.cell_type == "codes" else ()

    @property
    def word_columns(self) -> tuple[Name, ...]:
        """The columns whose words are the columns that are counted, over a domain: those of text."""
        return self.columns if self.family.cell_type == "text" and self.family.has_vocabulary else ()

    @property
    def statistics_key(self) -> tuple[Any, ...]:
        """What decides which statistics are kept: all but the prior, and only the family's layout."""
        return (self.columns, self.given, self.family.statistics_key)


def _names(value: Any, what: str) -> tuple[Name, ...]:
    """One name or several, as plain strings and whole numbers."""
    if isinstance(value, str | int | np.integer):
        value = (value,)
    names = tuple(name.item() if isinstance(name, np.generic) else name for name in (() if value is None else value))
    wrong = [name for name in names if not isinstance(name, str | int)]
    if wrong:
        raise DataError.wrong_type(f"a name in {what}", repr(wrong[0]), "a string or a whole number")
    return names

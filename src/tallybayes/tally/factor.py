"""Factor: p(columns | given) in one family of distributions."""

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
    """A factor p(columns | given) of a model: a block of columns, the columns it depends on, and a family.

    Parameters
    ----------
    columns : name or tuple of names
        Columns of the same family. Each has its own p(column | given), unless the family is a joint distribution.
    given : name or tuple of names
        Categorical columns that the distribution is conditioned on; () for none.
    family : Family
        Distribution of the columns.
    prior : ParameterDistribution, PriorRule or None
        None is the default of the family. The prior does not affect the counts.

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

    if TYPE_CHECKING:  # a single name is accepted for a tuple of one

        def __init__(self, columns: Names, given: Names | None, family: Family, prior: Prior = None) -> None: ...

    def __post_init__(self) -> None:
        for name in ("columns", "given"):
            object.__setattr__(self, name, _names(getattr(self, name), name))
        if not isinstance(self.family, Family):
            raise DataError.wrong_type("family", repr(self.family), "a family such as tb.Gaussian()")

    def column(self, index: int, width: int | None = None) -> Name | tuple[Name, int]:
        """Return the name of a column, or (block, index) if one name stands for a block of `width` columns."""
        if len(self.columns) > 1 or width == 1 or (width is None and index == 0):
            return self.columns[index]
        return (self.columns[0], index)

    def index_of(self, column: Name | tuple[Name, ...], width: int) -> int | None:
        """Return the index of a column given by name or as (block, index), or None."""
        if isinstance(column, tuple) and len(column) == 2 and self.columns == column[:1]:
            return column[1] if isinstance(column[1], int) and 0 <= column[1] < width else None
        return self.columns.index(column) if column in self.columns else None

    @property
    def level_columns(self) -> tuple[Name, ...]:
        """Categorical columns, whose values are levels of a domain."""
        return self.columns if self.family.cell_type == "codes" else ()

    @property
    def word_columns(self) -> tuple[Name, ...]:
        """Text columns, whose words form a domain and are counted as columns."""
        return self.columns if self.family.cell_type == "text" and self.family.has_vocabulary else ()

    @property
    def statistics_key(self) -> tuple[Any, ...]:
        """Columns, conditioning columns and layout of the statistics: all except the prior."""
        return (self.columns, self.given, self.family.statistics_key)


def _names(value: Names | None, parameter: str) -> tuple[Name, ...]:
    """Return one or several names as plain strings and integers."""
    if isinstance(value, str | int | np.integer):
        value = (value,)
    names = tuple(name.item() if isinstance(name, np.generic) else name for name in (() if value is None else value))
    wrong = [name for name in names if not isinstance(name, str | int)]
    if wrong:
        raise DataError.wrong_type(f"a name in {parameter}", repr(wrong[0]), "a string or a whole number")
    return names

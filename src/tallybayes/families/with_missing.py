"""WithMissing: a column whose missing cells say something."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from tallybayes.errors import DataError
from tallybayes.families.family import Family

MISSING = "(missing)"  # how the level is called that absence is


@dataclass(frozen=True, eq=False, repr=False)
class WithMissing(Family):
    """A column of some family that is sometimes not there, and whether it is says something: absence as a value.

    p(cell) = p(there) · p(value) of a cell that is there, and p(not there) of one that is missing. A model of such a
    column counts a yes or no beside it, a column of its own, called ``"age (there)"`` for ``"age"``: `explain`,
    ``prior=`` and ``prior_`` name it so. To classifiers that count pairs of columns, and for the labels of a
    `BayesianNetwork`, absence is one more level of the column itself, shown as ``(missing)``. Cells that are not known
    for another reason when something is asked, as a label that nobody has seen, are neither.

    Parameters
    ----------
    family : Family
        What a cell is that is there; its columns are independent.

    Examples
    --------
    >>> import tallybayes as tb
    >>> rows = {"salary": [20.0, None, None, 31.0, 25.0, None], "employed": [1, 0, 0, 1, 1, 1]}
    >>> model = tb.NaiveBayes({"salary": tb.WithMissing(tb.Gaussian())}).fit(rows, "employed")
    >>> model.predict({"salary": [None, 22.0]})
    array([0, 1])
    """

    family: Family

    def __post_init__(self) -> None:
        if not isinstance(self.family, Family) or isinstance(self.family, WithMissing):
            raise DataError.wrong_type("the family of WithMissing", repr(self.family), "a family such as tb.Gaussian()")
        if not self.family.columnwise or not self.family.accepts_missing:
            expected = "one whose columns are independent and may be missing, such as tb.Gaussian()"
            raise DataError.wrong_type("the family of WithMissing", repr(self.family), expected)

    @property
    def present_family(self) -> Family:  # type: ignore[override]
        """What a cell is that is there."""
        return self.family

    @property
    def bins(self) -> tuple[str, ...]:  # type: ignore[override]
        """Those of the cells that are there, and one more for absence."""
        return (*self.family.bins, MISSING) if self.family.bins else ()

    def sql_group_value(self, groups: np.ndarray) -> np.ndarray:
        """The middle of a bin, NaN of that of absence."""
        there = np.minimum(groups, len(self.family.bins) - 1)
        return np.where(groups < len(self.family.bins), self.family.sql_group_value(there), np.nan)

    @property
    def statistics_key(self) -> tuple[Any, ...]:
        """That of the cells, and whether they are there."""
        return ("WithMissing", *self.family.statistics_key)

    def collect(self, *_: Any, **__: Any) -> NoReturn:
        """Refused: models, `fit_distribution` and `count` count two columns for it, or one more level."""
        raise DataError(
            f"{self!r} is a family of columns=, of tb.fit_distribution and of tb.count, which count two columns for it.\n"
            f"    Here take {self.family!r}, and whether a cell is there as a column of its own."
        )

"""WithMissing: columns with informative missingness."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from tallybayes.errors import DataError
from tallybayes.families.family import Family

MISSING = "(missing)"  # name of the level of missing cells


@dataclass(frozen=True, eq=False, repr=False)
class WithMissing(Family):
    """A column with informative missingness: missing is a value of its own.

    p(cell) = p(present) · p(value) for a present cell, and p(missing) for a missing one. A model adds a binary column
    with the missing-value indicator, named ``"age (present)"`` for ``"age"`` in `explain`, ``prior=``, ``prior_``. For
    classifiers that count pairs of columns, and for categorical nodes of a `BayesianNetwork`, missing is one more level
    of the column, shown as ``(missing)``. Unseen levels at prediction are neither present nor missing: they are
    ignored.

    Parameters
    ----------
    family : Family
        Family of the present cells, with independent columns.

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
        """Return the family of the present cells."""
        return self.family

    @property
    def bins(self) -> tuple[str, ...]:  # type: ignore[override]
        """Return the bins of the present cells and one for missing."""
        return (*self.family.bins, MISSING) if self.family.bins else ()

    @property
    def statistics_key(self) -> tuple[Any, ...]:
        """Return the key of the present cells' statistics, marked as having missing-value indicators."""
        return ("WithMissing", *self.family.statistics_key)

    def collect(self, *_: Any, **__: Any) -> NoReturn:
        """Raise DataError: models, `fit_distribution` and `count` count two columns or one more level instead."""
        raise DataError(
            f"{self!r} is a family for columns=, tb.fit_distribution and tb.count, which count two columns for it.\n"
            f"    Here use {self.family!r}, and a separate column for the missing-value indicator."
        )

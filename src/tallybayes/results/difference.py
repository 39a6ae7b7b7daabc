"""Difference: the changes from one model to another, in rows, classes and columns."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tallybayes.errors import printable
from tallybayes.results.result import FrameData, Result, ResultTable, columns_of

_SHOWN = 12  # rows of a table in text
_LEVELS = 5  # levels of a column in text


class ColumnDifference(NamedTuple):
    """A column: its divergence, the group with the largest one, and the levels that are new or gone."""

    column: Any
    bits: float
    group: Any  # None if the column is given nothing
    group_bits: float
    new_levels: tuple[Any, ...]
    gone_levels: tuple[Any, ...]


@dataclass(eq=False, repr=False)
class Difference(Result):
    """The changes from one model to another. Returned by `difference`; it prints as tables.

    Attributes
    ----------
    kind : str
        The class of both models.
    rows : tuple of float
        The number of rows that each has counted.
    classes : dict
        From class, or state, to its rows in each model; 0 if the model does not have the class.
    class_bits : float
        The divergence of p(class); NaN for models without classes.
    columns : list of ColumnDifference
        In descending order of divergence.
    only_before, only_after : list
        Columns that only one model has, or has in another family.
    note : str
        For mixtures of models, the members that are compared.

    Examples
    --------
    >>> import tallybayes as tb
    >>> coin = tb.NaiveBayes({"toss": tb.Bernoulli()}, estimate="mle")
    >>> fair = coin.fit({"toss": [1, 0, 1, 0], "whose": ["mine"] * 4}, "whose").reestimate()
    >>> result = tb.difference(fair, coin.fit({"toss": [1, 1, 1, 0], "whose": ["mine"] * 4}, "whose"))
    >>> round(result.columns[0].bits, 4)
    0.1887
    """

    kind: str
    rows: tuple[float, float]
    classes: dict[Any, tuple[float, float]]
    class_bits: float
    columns: list[ColumnDifference]
    only_before: list[Any]
    only_after: list[Any]
    note: str = ""

    def __post_init__(self) -> None:
        self.columns = sorted(self.columns, key=lambda each: 1.0 if math.isnan(each.bits) else -each.bits)

    def _frame_data(self) -> FrameData:
        return columns_of(ColumnDifference, self.columns)

    def _content(self) -> list[str | ResultTable]:
        before, after = self.rows
        title = f"{self.kind}: {_rows(before)} rows before, {_rows(after)} after"
        parts: list[str | ResultTable] = [title + (f" ({self.note})" if self.note else "")]
        if self.classes:
            moved = "" if np.isnan(self.class_bits) else f"p(class) moved by {_bits(self.class_bits)} bits"
            totals = [max(sum(counts), 1e-300) for counts in zip(*self.classes.values(), strict=True)]
            rows = [
                [
                    printable(label),
                    *map(_rows, counts),
                    *(f"{n / total:.1%}" for n, total in zip(counts, totals, strict=True)),
                ]
                for label, counts in self.classes.items()
            ]
            head = ["class", "before", "after", "frequency before", "frequency after"]
            parts.append(ResultTable(rows, head, moved, align="lr", max_rows=_SHOWN))
        rows = [
            [
                printable(each.column),
                _bits(each.bits),
                "" if each.group is None else f"{printable(each.group)}: {_bits(each.group_bits)}",
                _levels(each),
            ]
            for each in self.columns
        ]
        parts.append(ResultTable(rows, ["column", "bits", "largest in", "levels"], align="lrl", max_rows=_SHOWN))
        for name, columns in (("only before", self.only_before), ("only after", self.only_after)):
            if columns:
                parts.append(f"{name}: {', '.join(map(printable, columns))}")
        return parts


def _levels(difference: ColumnDifference) -> str:
    """Return the new and gone levels of a column as text."""
    levels = [f"+ {printable(level)}" for level in difference.new_levels]
    levels += [f"- {printable(level)}" for level in difference.gone_levels]
    if len(levels) > _LEVELS:
        levels = [*levels[: _LEVELS - 1], f"… {len(levels) - _LEVELS + 1} more"]
    return ", ".join(levels)


def _rows(weight: float) -> str:
    return f"{weight:.12g}"


def _bits(bits: float) -> str:
    return "unknown" if np.isnan(bits) else "0" if abs(bits) < 5e-7 else f"{bits:.3g}"

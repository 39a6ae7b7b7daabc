"""Audit: what was found in some rows, as sentences, tables and a picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tallybayes._utils.html import html_parts
from tallybayes._utils.text_table import text_table
from tallybayes.errors import DataError, printable
from tallybayes.evaluation.comparison.drift import ColumnDrift

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from tallybayes.plotting.plot import Plot

_SHOWN = 8  # lines of a printed table
_NAMED = 4  # things named in a sentence


class OutlierRow(NamedTuple):
    """A row that is less probable than the model's own, and the column that is most to blame."""

    row: int
    log_density: float
    column: Any  # None where no single one is
    nats: float  # by how much log p(row) is higher without it


class UnexpectedValue(NamedTuple):
    """A value that was never counted, or cannot be what its column was counted as."""

    column: Any
    value: Any
    rows: int
    first: int  # the first row that has it
    new_level: bool  # a level like the others, but never counted


class LabelIssue(NamedTuple):
    """A row whose label the model all but rules out, and the class it is nearly sure of."""

    row: int
    label: Any
    suggested: Any
    probability: float  # of its own label
    suggested_probability: float


class GroupPerformance(NamedTuple):
    """How a group fares, with intervals, and whether worse than all rows together."""

    group: Any
    rows: int
    loss: Any
    error_rate: Any  # None where there is no target
    worse: bool


_PARTS: dict[str, Any] = {
    "rows": OutlierRow,
    "cells": UnexpectedValue,
    "columns": ColumnDrift,
    "labels": LabelIssue,
    "groups": GroupPerformance,
}


class Audit:
    """What `audit` found in some rows: it prints as sentences and tables.

    Attributes
    ----------
    n_rows : int
    findings : list of str
        What is not as it should be, in plain sentences; empty where nothing was found.
    ok : bool
        Whether nothing was found.
    notes : list of str
        What could not be looked at, and why.
    rows : list of OddRow
        Rows less probable than those that the model draws itself, the least probable first.
    expected_rows : float
        How many such rows there would be by chance, had the model drawn the data.
    cells : list of OddCell
        Values that were never counted, or cannot be what their column was counted as.
    columns : list of ColumnDrift
        How far every column moved, in bits a cell, with an interval and the probability to be as far by chance.
    moved : list
        The columns that are called moved.
    labels : list of DoubtfulLabel
        Rows whose label the model all but rules out, the least probable first.
    expected_labels : float
        How many such rows there would be by chance, if the model's probabilities are right.
    groups : list of GroupFares
    first_row : int
        The number of the first row.

    Examples
    --------
    >>> import numpy as np, tallybayes as tb
    >>> rng = np.random.default_rng(0)
    >>> rows = {"size": rng.normal(170, 8, 600), "eyes": rng.choice(["blue", "brown"], 600)}
    >>> model = tb.NaiveBayes().fit(rows, rng.choice(["a", "b"], 600))
    >>> rows["size"][17] = 17.0
    >>> found = tb.audit(model, rows)
    >>> found.ok, found.rows[0].row, found.rows[0].column
    (False, 17, 'size')
    """

    def __init__(
        self,
        n_rows: int,
        findings: Sequence[str],
        notes: Sequence[str],
        rows: Sequence[OutlierRow],
        expected_rows: float,
        cells: Sequence[UnexpectedValue],
        columns: Sequence[ColumnDrift],
        drifted: Sequence[Any],
        labels: Sequence[LabelIssue],
        expected_labels: float,
        groups: Sequence[GroupPerformance],
        first_row: int = 0,
    ) -> None:
        self.first_row = first_row
        self.n_rows, self.findings, self.notes = n_rows, list(findings), list(notes)
        self.rows, self.expected_rows, self.cells = list(rows), expected_rows, list(cells)
        self.columns, self.drifted = list(columns), list(drifted)
        self.labels, self.expected_labels, self.groups = list(labels), expected_labels, list(groups)

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    def to_frame(self, part: str = "rows") -> pd.DataFrame:
        """One part as a pandas data frame.

        Parameters
        ----------
        part : {"rows", "cells", "columns", "labels", "groups"}
        """
        import pandas as pd

        if part not in _PARTS:
            raise DataError.wrong_type("part", repr(part), " or ".join(map(repr, _PARTS)))
        return pd.DataFrame(getattr(self, part), columns=list(_PARTS[part]._fields))

    def plot(self, ax: Axes | None = None) -> Plot:
        """How far every column moved, in bits a cell, with intervals; needs matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        Picture
        """
        from tallybayes.plotting.evaluation.audit import plot_audit

        if not self.columns:
            raise DataError("there is no column to draw: none was compared.\n    audit.notes says why.")
        return plot_audit(self, ax)

    def _tables(self) -> list[tuple[str, list[str], list[list[str]]]]:
        row = f"row (from {self.first_row})"
        tables = [
            (
                f"improbable rows ({self.expected_rows:.2g} expected by chance)",
                [row, "log p(row)", "most by", "nats"],
                [[str(r.row), f"{r.log_density:.4g}", _name(r.column), f"{r.nats:.4g}"] for r in self.rows],
            ),
            (
                "cells that were never counted",
                ["column", "value", "rows", f"first in {row}"],
                [[_name(c.column), printable(c.value), str(c.rows), str(c.first)] for c in self.cells],
            ),
            (
                "columns, against what was counted",
                ["column", "bits", "99 % interval", "by chance", "", "new levels"],
                [self._column(one) for one in self.columns],
            ),
            (
                f"labels that disagree ({self.expected_labels:.2g} expected by chance)",
                [row, "label", "p(label)", "suggested", "p(suggested)"],
                [
                    [str(d.row), printable(d.label), f"{d.probability:.2g}", printable(d.suggested),
                     f"{d.suggested_probability:.4f}"]
                    for d in self.labels
                ],
            ),
            (
                "groups",
                ["group", "rows", "loss", "error rate", ""],
                [
                    [printable(g.group), str(g.rows), repr(g.loss), "" if g.error_rate is None else repr(g.error_rate),
                     "worse" if g.worse else ""]
                    for g in self.groups
                ],
            ),
        ]  # fmt: skip
        return [table for table in tables if table[2]]

    def _column(self, one: ColumnDrift) -> list[str]:
        more = f" … {len(one.new_levels) - _NAMED} more" if len(one.new_levels) > _NAMED else ""
        levels = ", ".join(map(printable, one.new_levels[:_NAMED])) + more
        interval = f"{one.low:.3f} to {one.high:.3f}"
        moved = "drifted" if one.column in self.drifted else ""
        return [_name(one.column), f"{one.bits:.3f}", interval, f"{one.chance:.2g}", moved, levels]

    def _said(self) -> list[str]:
        n = len(self.findings)
        head = f"{self.n_rows} rows, numbered from {self.first_row}: " + (
            "nothing found" if self.ok else f"{n} finding{'s' * (n != 1)}"
        )
        return [head, *(f"  - {said}" for said in self.findings), *(f"  note: {note}" for note in self.notes)]

    def __repr__(self) -> str:
        out = self._said()
        for title, head, lines in self._tables():
            more = [[f"… {len(lines) - _SHOWN} more", *[""] * (len(head) - 1)]] if len(lines) > _SHOWN else []
            out += ["", title, *text_table([head, *lines[:_SHOWN], *more])]
        return "\n".join(out)

    def _repr_html_(self) -> str:
        return html_parts("\n".join(self._said()), *self._tables())


def _name(column: Any) -> str:
    if column is None:
        return "—"
    return ", ".join(map(printable, column)) if isinstance(column, tuple) else printable(column)


def listed(things: Sequence[str]) -> str:
    """A few things in a sentence, and how many more there are."""
    more = f" and {len(things) - _NAMED} more" if len(things) > _NAMED else ""
    return ", ".join(things[:_NAMED]) + more

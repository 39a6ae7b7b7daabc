"""Audit: the findings of `audit`, as sentences, tables and a plot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tallybayes.errors import DataError, printable
from tallybayes.results.metric_intervals import MetricEstimate
from tallybayes.results.result import PlottedResult, ResultTable, columns_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from tallybayes.plotting.plot import Plot

_SHOWN = 8  # rows of a table in text
_NAMED = 4  # items of a list in a sentence


class OutlierRow(NamedTuple):
    """A row that is less probable than rows drawn from the model, and the column most responsible for it."""

    row: int
    log_density: float
    column: Any  # None if no single column is responsible
    nats: float  # the increase of log p(row) without the column


class UnexpectedValue(NamedTuple):
    """A value that was never counted, or is invalid for the family of its column."""

    column: Any
    value: Any
    rows: int
    first: int  # the first row with the value
    new_level: bool  # whether it is a valid level that was never counted


class ColumnDrift(NamedTuple):
    """A column: its divergence in bits per cell with an interval, and its new levels."""

    column: Any
    bits: float
    low: float
    high: float
    chance: float  # the probability of this divergence or more without drift
    group: Any  # the group with the largest divergence; None if the column is given nothing
    new_levels: tuple[Any, ...]


class LabelIssue(NamedTuple):
    """A row whose label has almost probability 0 under the model, and its most probable class."""

    row: int
    label: Any
    suggested: Any
    probability: float  # of its own label
    suggested_probability: float


class GroupPerformance(NamedTuple):
    """The metrics of a group with intervals, and whether they are worse than those of all rows."""

    group: Any
    rows: int
    loss: MetricEstimate
    error_rate: MetricEstimate | None  # None without a target
    worse: bool


_PARTS: dict[str, Any] = {
    "rows": OutlierRow,
    "cells": UnexpectedValue,
    "columns": ColumnDrift,
    "labels": LabelIssue,
    "groups": GroupPerformance,
}


class Audit(PlottedResult):
    """The findings of `audit` in some rows; it prints as sentences and tables.

    Attributes
    ----------
    n_rows : int
    findings : list of str
        The findings as sentences; empty if there are none.
    ok : bool
        Whether there are no findings.
    notes : list of str
        The checks that were not possible, and the reasons.
    rows : list of OutlierRow
        Rows that are less probable than rows drawn from the model, the least probable first.
    expected_rows : float
        The expected number of such rows by chance, if the model is right.
    cells : list of UnexpectedValue
        Values that were never counted, or are invalid for the family of their column.
    columns : list of ColumnDrift
        The divergence of every column in bits per cell, with an interval and its probability without drift.
    drifted : list
        The columns whose drift is a finding.
    labels : list of LabelIssue
        Rows whose label has almost probability 0, the least probable first.
    expected_labels : float
        The expected number of such rows by chance, if the probabilities are right.
    groups : list of GroupPerformance
    first_row : int
        The number of the first row.

    Examples
    --------
    >>> import numpy as np, tallybayes as tb
    >>> rng = np.random.default_rng(0)
    >>> rows = {"size": rng.normal(170, 8, 600), "eyes": rng.choice(["blue", "brown"], 600)}
    >>> model = tb.NaiveBayes().fit(rows, rng.choice(["a", "b"], 600))
    >>> rows["size"][17] = 17.0
    >>> result = tb.audit(model, rows)
    >>> result.ok, result.rows[0].row, result.rows[0].column
    (False, 17, 'size')
    """

    _separator = "\n\n"
    _plot_function = "evaluation.audit.plot_audit"

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
        self.n_rows = n_rows
        self.findings = list(findings)
        self.notes = list(notes)
        self.rows = list(rows)
        self.expected_rows = expected_rows
        self.cells = list(cells)
        self.columns = list(columns)
        self.drifted = list(drifted)
        self.labels = list(labels)
        self.expected_labels = expected_labels
        self.groups = list(groups)
        self.first_row = first_row

    @property
    def ok(self) -> bool:
        """Whether there are no findings."""
        return not self.findings

    def to_frame(self, part: str = "rows") -> pd.DataFrame:
        """Return one part as a pandas DataFrame.

        Parameters
        ----------
        part : {"rows", "cells", "columns", "labels", "groups"}

        Returns
        -------
        pandas.DataFrame
        """
        import pandas as pd

        if part not in _PARTS:
            raise DataError.wrong_type("part", repr(part), " or ".join(map(repr, _PARTS)))
        return pd.DataFrame(columns_of(_PARTS[part], getattr(self, part)))

    def plot(self, ax: Axes | None = None) -> Plot:
        """Plot the divergence of every column in bits per cell, with intervals. Requires matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        Plot
        """
        if not self.columns:
            raise DataError("no column was compared, so that there is nothing to plot.\n    See audit.notes.")
        return super().plot(ax)

    def _content(self) -> list[str | ResultTable]:
        n = len(self.findings)
        findings = "nothing found" if self.ok else f"{n} finding{'s' * (n != 1)}"
        lines = [f"{self.n_rows} rows, numbered from {self.first_row}: {findings}"]
        lines += [f"  - {finding}" for finding in self.findings]
        lines += [f"  note: {note}" for note in self.notes]
        return ["\n".join(lines), *(table._replace(max_rows=_SHOWN) for table in self._tables() if table.rows)]

    def _tables(self) -> Iterator[ResultTable]:
        """Yield a table of every part."""
        row = f"row (from {self.first_row})"
        yield ResultTable(
            [[str(r.row), f"{r.log_density:.4g}", _name(r.column), f"{r.nats:.4g}"] for r in self.rows],
            [row, "log p(row)", "most by", "nats"],
            f"improbable rows ({self.expected_rows:.2g} expected by chance)",
        )
        yield ResultTable(
            [[_name(c.column), printable(c.value), str(c.rows), str(c.first)] for c in self.cells],
            ["column", "value", "rows", f"first in {row}"],
            "cells that were never counted",
        )
        yield ResultTable(
            [self._column_cells(column) for column in self.columns],
            ["column", "bits", "99 % interval", "by chance", "", "new levels"],
            "columns, compared to the counted rows",
        )
        yield ResultTable(
            [
                [
                    str(d.row),
                    printable(d.label),
                    f"{d.probability:.2g}",
                    printable(d.suggested),
                    f"{d.suggested_probability:.4g}",
                ]
                for d in self.labels
            ],
            [row, "label", "p(label)", "suggested", "p(suggested)"],
            f"suspected label errors ({self.expected_labels:.2g} expected by chance)",
        )
        yield ResultTable(
            [
                [
                    printable(g.group),
                    str(g.rows),
                    repr(g.loss),
                    "" if g.error_rate is None else repr(g.error_rate),
                    "worse" if g.worse else "",
                ]
                for g in self.groups
            ],
            ["group", "rows", "loss", "error rate", ""],
            "groups",
        )

    def _column_cells(self, column: ColumnDrift) -> list[str]:
        """Return the cells of a column's drift."""
        more = f" … {len(column.new_levels) - _NAMED} more" if len(column.new_levels) > _NAMED else ""
        levels = ", ".join(map(printable, column.new_levels[:_NAMED])) + more
        interval = f"{column.low:.3f} to {column.high:.3f}"
        drifted = "drifted" if column.column in self.drifted else ""
        return [_name(column.column), f"{column.bits:.3f}", interval, f"{column.chance:.2g}", drifted, levels]


def _name(column: object) -> str:
    """Return the name of a column, or of several, as text; a dash for None."""
    if column is None:
        return "—"
    return ", ".join(map(printable, column)) if isinstance(column, tuple) else printable(column)


def join_some(items: Sequence[str]) -> str:
    """Return the first items as a list in a sentence, and the number of the others."""
    more = f" and {len(items) - _NAMED} more" if len(items) > _NAMED else ""
    return ", ".join(items[:_NAMED]) + more

"""Audit: the findings of `audit`, as sentences, tables and a plot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from tallybayes.errors import DataError
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


class _Part(NamedTuple):
    """A list of an audit: the class of its items, the title of its table, and the formats of its cells."""

    kind: type[NamedTuple]
    title: str
    formats: dict[str, str]


_ROW = "row (from {first_row})"
_PARTS = {
    "rows": _Part(
        OutlierRow,
        "outliers ({expected_rows:.2g} expected by chance)",
        {_ROW: "{row}", "log p(row)": "{log_density:.4g}", "main column": "{column}", "nats": "{nats:.4g}"},
    ),
    "cells": _Part(
        UnexpectedValue,
        "unseen levels and values",
        {"column": "{column}", "value": "{value}", "rows": "{rows}", f"first in {_ROW}": "{first}"},
    ),
    "columns": _Part(
        ColumnDrift,
        "drift from the training data",
        {
            "column": "{column}",
            "bits per cell": "{bits:.3f}",
            "99 % interval": "{low:.3f} to {high:.3f}",
            "p-value": "{chance:.2g}",
            "": "{drifted:drifted}",
            "new levels": "{new_levels:4}",
        },
    ),
    "labels": _Part(
        LabelIssue,
        "suspected label errors ({expected_labels:.2g} expected by chance)",
        {
            _ROW: "{row}",
            "label": "{label}",
            "p(label)": "{probability:.2g}",
            "predicted": "{suggested}",
            "p(predicted)": "{suggested_probability:.4g}",
        },
    ),
    "groups": _Part(
        GroupPerformance,
        "subgroup performance",
        {"group": "{group}", "rows": "{rows}", "log loss": "{loss}", "error rate": "{error_rate}", "": "{worse:worse}"},
    ),
}


@dataclass(eq=False, repr=False)
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

    n_rows: int
    findings: list[str]
    notes: list[str]
    rows: list[OutlierRow]
    expected_rows: float
    cells: list[UnexpectedValue]
    columns: list[ColumnDrift]
    drifted: list[Any]
    labels: list[LabelIssue]
    expected_labels: float
    groups: list[GroupPerformance]
    first_row: int = 0

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
        return pd.DataFrame(columns_of(_PARTS[part].kind, getattr(self, part)))

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
        return ["\n".join(lines), *(self._table(part) for part in _PARTS if getattr(self, part))]

    def _table(self, part: str) -> ResultTable:
        """Return the table of a part."""
        _, title, formats = _PARTS[part]
        heads = {head.format_map(vars(self)): cells for head, cells in formats.items()}
        records = [each._asdict() for each in getattr(self, part)]
        if part == "columns":
            records = [record | {"drifted": record["column"] in self.drifted} for record in records]
        return ResultTable.of(records, heads, title.format_map(vars(self)), max_rows=_SHOWN)


def join_some(items: Sequence[str]) -> str:
    """Return the first items as a list in a sentence, and the number of the others."""
    more = f" and {len(items) - _NAMED} more" if len(items) > _NAMED else ""
    return ", ".join(items[:_NAMED]) + more

"""Summaries of fitted models: columns with families, levels, priors and missing fractions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tallybayes.distributions.parameter_distribution import ParameterDistribution
from tallybayes.errors import printable, short_repr
from tallybayes.families.family import Family
from tallybayes.models.inputs.columns import display_family
from tallybayes.results.result import FrameData, Result, ResultTable, columns_of
from tallybayes.statistics.counts import Counts
from tallybayes.statistics.sufficient_statistics import Statistics
from tallybayes.tally.factor import Factor, Name
from tallybayes.tally.tally import Tally

_MOST_ROWS = 40  # rows of the table in text and HTML


class ColumnSummary(NamedTuple):
    """One column of a model: its family, number of levels or bins, fraction of missing cells, and prior."""

    column: Any
    family: str
    levels: int | None
    missing: float | None
    prior: str


class Summary(Result):
    """Summary of a fitted model. ``model.summary()`` returns it.

    Attributes
    ----------
    title : str
        The model, its number of rows and its classes.
    columns : list of ColumnSummary
    dropped_columns : dict
        From dropped column to the reason.

    Examples
    --------
    >>> import tallybayes as tb
    >>> rows = {"sky": ["sun", "rain", "sun", None], "eggs": [2, 1, 3, 0], "kept": ["yes", "no", "yes", "no"]}
    >>> tb.NaiveBayes({"sky": "auto", "eggs": tb.Poisson()}).fit(rows, "kept").summary()
    NaiveBayes of 4 rows, classes no: 2, yes: 2
      column  family         levels  missing  prior
      sky     Categorical()       2     25 %  Dirichlet([0.5774, 0.4226])
      eggs    Poisson()                  0 %  Gamma(1.3, 1)
    """

    def __init__(self, title: str, columns: list[ColumnSummary], dropped_columns: dict[Any, str]) -> None:
        self.title = title
        self.columns = columns
        self.dropped_columns = dropped_columns

    def tables(self) -> list[ResultTable]:
        """Return the tables of the columns and of the dropped columns, without the title.

        Returns
        -------
        list of ResultTable
        """
        rows = [
            [
                printable(column.column),
                column.family,
                "" if column.levels is None else str(column.levels),
                "" if column.missing is None else _percent(column.missing),
                column.prior,
            ]
            for column in self.columns[:_MOST_ROWS]
        ]
        tables = [ResultTable(rows, ColumnSummary._fields, align="llrrl", n_rows=len(self.columns))]
        if self.dropped_columns:
            reasons = [[printable(name), reason] for name, reason in self.dropped_columns.items()]
            tables.append(ResultTable(reasons, title="left out", max_rows=_MOST_ROWS))
        return tables

    def _frame_data(self) -> FrameData:
        return columns_of(ColumnSummary, self.columns)

    def _content(self) -> list[str | ResultTable]:
        first, *others = self.tables()
        return [first._replace(title=self.title), *others]


def title_by_class(model: str, n_rows: float | None, groups: str, levels: Sequence[Any], weights: np.ndarray) -> str:
    """Return the model, its rows, and how many there are of every class; without rows, its fixed probabilities."""
    shares = [f"{printable(c)}: {n:.6g}" for c, n in zip(levels, weights, strict=True)]
    shown = ", ".join(shares[:10]) + (f" and {len(shares) - 10} more" if len(shares) > 10 else "")
    rows = "as it was given" if n_rows is None else f"of {n_rows:.12g} rows"
    return f"{model} {rows}, {groups} {shown}"


def column_summaries(
    tally: Tally,
    factor: Factor,
    families: Sequence[Family],
    prior: ParameterDistribution | None,
    n_rows: float,
    *,
    shows_parents: bool,
) -> list[ColumnSummary]:
    """Return a line for every column of a factor, or one for a block of them.

    Parameters
    ----------
    tally : Tally
    factor : Factor
    families : sequence of Family
        The family of every column in results.
    prior : ParameterDistribution or None
    n_rows : float
        The total weight of the rows.
    shows_parents : bool
        Whether the parents of the columns are listed.
    """
    family = factor.family
    statistics: Any = tally[factor.columns]
    width = int(statistics.n_columns)
    if len(factor.columns) == 1 and width > 1:
        shown = f"{display_family(family, 40)}, {width:,} {'words' if family.has_vocabulary else 'columns'}"
        return [ColumnSummary(factor.columns[0], shown, None, None, short_repr(prior, 60))]
    weight = family.row_weight(statistics) if family.columnwise else statistics.weight
    known = np.broadcast_to(np.asarray(weight), (*statistics.given_shape, width)).reshape(-1, width).sum(axis=0)
    out = []
    for place, (name, read) in enumerate(zip(factor.columns, families, strict=True)):
        levels = len(family.bins) or None
        if family.cell_type == "codes":
            levels = len(tally.domains[tally.schema.domain(name)].levels)
        there = float(known[place]) - _absent(tally, read, name, place, statistics)
        missing = round(max(0.0, 1 - there / n_rows), 9) if n_rows else None  # shares of rows are rounded
        shown = display_family(read, 40)
        if shows_parents and factor.given:
            shown = f"{shown}, given {', '.join(map(printable, factor.given))}"
        out.append(ColumnSummary(name, shown, levels, missing, _prior(prior, place, statistics)))
    return out


def _absent(tally: Tally, family: Family, name: Name, index: int, statistics: Statistics) -> float:
    """Return the weight of the missing cells that a column counts as a level."""
    if family.present_family is None or not isinstance(statistics, Counts):
        return 0.0
    level = -1 if family.bins else tally.domains[tally.schema.domain(name)].index[None]
    return float(statistics.segments.split(statistics.pool_groups().table)[index][level])


def _prior(prior: object, index: int, statistics: Statistics) -> str:
    """Return the prior of one column of a block as text."""
    width = int(statistics.n_columns)
    segments = getattr(statistics, "segments", None)
    if not isinstance(prior, ParameterDistribution):
        return "" if prior is None else short_repr(prior, 60)
    parts = []
    for array in prior.arrays().values():
        if segments is not None and array.shape == (segments.n_cells,) and segments.n_cells > 1:  # of levels
            kind: Any = type(prior)
            start, stop = segments.offsets[index : index + 2]
            return short_repr(kind(array[start:stop]), 60)
        if array.ndim > 1 or (array.ndim == 1 and array.shape[0] not in (1, width)):
            return short_repr(prior, 60)
        parts.append(float(array[index % array.shape[0]] if array.ndim else array))
    return f"{type(prior).__name__}({', '.join(f'{part:.4g}' for part in parts)})"


def _percent(fraction: float) -> str:
    """Return a fraction as a percentage."""
    if 0 < fraction < 0.001:
        return "< 0.1 %"
    return f"{100 * fraction:.1f} %" if 0 < fraction < 0.095 else f"{100 * fraction:.0f} %"

"""CodedColumns: columns as codes from 0 to 255, chosen once from the rows that trees are grown from."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np

from tallybayes.data.sampling import SAMPLE, sampled_rows
from tallybayes.data.table import Table
from tallybayes.errors import DataError, FileError
from tallybayes.families._shared.bin_edges import quantile_edges
from tallybayes.families.binned import Binned
from tallybayes.families.categorical import Categorical
from tallybayes.families.gaussian import Gaussian
from tallybayes.models.inputs.invalid_cells import ColumnSpec
from tallybayes.models.inspection.model_summary import ColumnSummary
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Name

MISSING = 0
_MOST_BINS = 254
_MOST_LEVELS = 253
_LEAST_ROWS = 3  # levels of fewer rows share a code


class CodedColumns(NamedTuple):
    """The columns that trees read. Code 0 is a missing cell.

    Numbers have a code for each bin. The bins have about equal weight, and their edges are rounded, so that no edge is
    the value of a row. Of a categorical column the most frequent levels have a code, and all others share one: rare
    levels, and those that were not present.

    Attributes
    ----------
    names : tuple of names
    edges : tuple of tuple of float
        The inner bin edges of numeric columns; () for categorical columns.
    levels : tuple of tuple, or None
        The levels of categorical columns, in the order of their codes; None for numeric columns.
    dropped_columns : dict
        From dropped column to the reason.
    """

    names: tuple[Name, ...]
    edges: tuple[tuple[float, ...], ...]
    levels: tuple[tuple[Any, ...] | None, ...]
    dropped_columns: dict[Name, str]

    @classmethod
    def of_table(cls, table: Table, target: Name, weight: np.ndarray | None) -> Self:
        """Return the columns of the training rows; constant columns are dropped."""
        sample = sampled_rows(table.n_rows, SAMPLE)
        weights = None if weight is None else weight[sample]
        names: list[Name] = []
        edges: list[tuple[float, ...]] = []
        levels: list[tuple[Any, ...] | None] = []
        dropped: dict[Name, str] = {}
        for name in table.columns:
            if name == target:
                continue
            if reason := table.unread(name):
                dropped[name] = reason
                continue
            _check_dense(table, name)
            is_number = table.kind(name) == "number"
            column_edges, column_levels, varies = (
                _bins(table, name, sample, weights) if is_number else _levels(table, name, weight)
            )
            if varies:
                names.append(name)
                edges.append(column_edges)
                levels.append(column_levels)
            else:
                dropped[name] = "constant"
        return cls(tuple(names), tuple(edges), tuple(levels), dropped)

    def encode(self, table: Table) -> np.ndarray:
        """Return the codes of rows, uint8 of shape (n, columns)."""
        codes = np.zeros((table.n_rows, len(self.names)), dtype=np.uint8)
        for j, (name, edges, levels) in enumerate(zip(self.names, self.edges, self.levels, strict=True)):
            if levels is None:
                cells = _numbers(table, name)
                bins = np.searchsorted(np.array(edges), cells, side="right") + 1
                codes[:, j] = np.where(np.isnan(cells), MISSING, bins)
            else:
                found, domain = table.encoded(name)
                places = Domain(levels, str(name)).positions_of(domain.levels)
                by_level = np.where(places < 0, len(levels), places) + 1
                codes[:, j] = np.append(by_level, MISSING)[found.astype(np.intp)]  # code −1 selects the last
        return codes

    @property
    def categorical(self) -> np.ndarray:
        """Which columns are categorical."""
        return np.array([levels is not None for levels in self.levels], dtype=np.uint8)

    def specs(self) -> list[ColumnSpec]:
        """Return the columns with the family and the levels of each, to find invalid cells."""
        columns = zip(self.names, self.levels, strict=True)
        return [
            ([name], Gaussian(), []) if levels is None else ([name], Categorical(), [Domain(levels, str(name))])
            for name, levels in columns
        ]

    def summaries(self) -> list[ColumnSummary]:
        """Return each column with its number of levels or bins."""
        columns = zip(self.names, self.edges, self.levels, strict=True)
        return [
            ColumnSummary(name, "bins", len(edges) + 1, None, "")
            if levels is None
            else ColumnSummary(name, "levels", len(levels), None, "")
            for name, edges, levels in columns
        ]

    def shown(self, column: int, code: int) -> Any:
        """Return a code as its level, or as its bin."""
        levels = self.levels[column]
        if code == MISSING:
            return None
        if levels is not None:
            return levels[code - 1] if code <= len(levels) else "(other)"
        return str(Binned((None, *self.edges[column], None)).bins[code - 1]) if self.edges[column] else "(present)"

    def check(self) -> Self:
        """Raise FileError if the columns of a file are invalid."""
        if not len(self.names) == len(self.edges) == len(self.levels) or len(set(self.names)) < len(self.names):
            raise FileError("the columns of the trees in the file are invalid: names, edges and levels differ.")
        for name, edges, levels in zip(self.names, self.edges, self.levels, strict=True):
            rising = all(isinstance(edge, float) and np.isfinite(edge) for edge in edges)
            rising = rising and all(low < high for low, high in pairwise(edges))
            if not rising or len(edges) >= _MOST_BINS or len(levels or ()) > _MOST_LEVELS:
                raise FileError(f"column {name!r:.60} of the file has invalid bins or levels.")
            _ = Domain(levels or (), str(name))
        return self


def _check_dense(table: Table, name: Name) -> None:
    """Raise DataError for a block of columns."""
    if table.is_block(name):
        what = {"sparse": "a sparse block", "text": "a column of text"}.get(table.kind(name), "a block of columns")
        hint = "Pass dense columns, each with a name; words are counted by tb.NaiveBayes(tb.Text())."
        raise DataError.wrong_type(f"column {name!r}", what, "one dense column", hint)


def _numbers(table: Table, name: Name) -> np.ndarray:
    """Return a numeric column, NaN where a cell is missing; raise DataError for infinity."""
    cells = table.numbers([name])
    column = np.asarray(cells[:, 0] if isinstance(cells, np.ndarray) else cells[0], dtype=np.float64)
    infinite = np.isinf(column)
    if infinite.any():
        row = int(infinite.argmax())
        raise DataError.bad_cell(float(column[row]), row, name, Binned.allowed_values)
    return column


def _bins(
    table: Table, name: Name, sample: np.ndarray, weight: np.ndarray | None
) -> tuple[tuple[float, ...], None, bool]:
    """Return the bin edges of a numeric column, and whether it varies."""
    column = _numbers(table, name)
    known = ~np.isnan(column[sample])
    cells, weights = column[sample][known], None if weight is None else weight[known]
    n_bins = _MOST_BINS
    while len(edges := quantile_edges(cells, weights, n_bins)) >= _MOST_BINS:  # rounding may give a few bins more
        n_bins -= len(edges) - _MOST_BINS + 1
    return edges, None, bool(edges) or bool(np.isnan(column).any() and not np.isnan(column).all())


def _levels(table: Table, name: Name, weight: np.ndarray | None) -> tuple[tuple[float, ...], tuple[Any, ...], bool]:
    """Return the frequent levels of a categorical column in the order of their weight, and whether it varies."""
    codes, domain = table.encoded(name)
    present = codes >= 0
    counts = np.bincount(
        codes[present].astype(np.intp), None if weight is None else weight[present], minlength=len(domain.levels)
    )
    known = [(-float(n), str(level), level) for n, level in zip(counts, domain.levels, strict=True) if n >= _LEAST_ROWS]
    frequent = sorted(known, key=lambda one: one[:2])[:_MOST_LEVELS]
    n_others = float(counts.sum()) + sum(negative for negative, *_ in frequent)
    levels = tuple(level for *_, level in frequent)
    return (), levels, len(levels) + (n_others > 0) + bool((~present).any()) > 1

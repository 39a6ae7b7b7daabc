"""Columns with levels.

Categorical columns, and numeric columns in bins that are chosen from a random sample of rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tallybayes._utils.parameter_checks import is_integer_at_least
from tallybayes.data.counting import check_weight
from tallybayes.data.missing_indicators import with_missing_level
from tallybayes.data.sampling import sampled_rows
from tallybayes.data.table import Table
from tallybayes.errors import DataError, short_repr
from tallybayes.families._shared.bin_edges import mdl_edges, mdl_edges_by_fold, quantile_edges
from tallybayes.families.binned import Binned
from tallybayes.families.categorical import Categorical
from tallybayes.families.family import Family
from tallybayes.families.protocols.scoring_forms import transform
from tallybayes.families.with_missing import WithMissing
from tallybayes.models.inputs.columns import columns_with_option, read_columns
from tallybayes.models.inputs.distinct_values import warn_dropped_text
from tallybayes.models.inputs.family_selection import identifiers
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Name
from tallybayes.typing import Columns, SampleWeights

_MOST_ROWS = 50_000  # rows of the random sample that determines bins


class DiscretizedColumns(NamedTuple):
    """The families of the columns, all of which have levels, and the dropped columns with the reason."""

    families: dict[Name, Family]
    dropped_columns: dict[Name, str]

    def discretize(self, table: Table) -> Table:
        """Return the rows with numeric columns as bin numbers, and missing values as a level if the family has one."""
        labels = [
            name for name, family in self.families.items() if family.present_family is not None and not family.bins
        ]
        seen = with_missing_level(table, labels)
        found = {}
        for name, family in self.families.items():
            if family.bins:
                cells = table.numbers([name])
                column = np.asarray(cells[:, 0] if isinstance(cells, np.ndarray) else cells[0])
                codes = _codes(family.present_family or family, column, name)
                if family.present_family is not None:  # the last level
                    absent = codes < 0
                    absent &= ~table.invalid_cells.get(name, np.zeros(len(codes), dtype=bool))
                    codes[absent] = len(family.bins) - 1
                found[name] = codes, Domain(range(len(family.bins)), str(name))
            elif family.present_family is not None:
                found[name] = seen.encoded(name)
        if not found:
            return table
        out = Table({**table.columns, **{name: codes for name, (codes, _) in found.items()}})
        out._encoded = {key: one for key, one in table._encoded.items() if key[0] not in found}
        out._encoded |= {(name, ordered): one for name, one in found.items() for ordered in (True, False)}
        return out

    def counted(self, name: Name) -> Family:
        """Return the family in which a column is counted; empty bins are levels, too."""
        family = self.families[name]
        return Categorical(tuple(range(len(family.bins)))) if family.bins else family.present_family or family

    def absent_level(self, name: Name, domain: Domain) -> int | None:
        """Return the position of the missing level of a column, if it has one."""
        family = self.families[name]
        if family.present_family is None:
            return None
        return len(family.bins) - 1 if family.bins else domain.index[None]


def read_levels(
    columns: Columns, bins: int | str, table: Table, target: Name, weight: SampleWeights, model: str
) -> DiscretizedColumns:
    """Return the families of the columns by ``columns``; other numeric columns are discretized.

    Parameters
    ----------
    columns : as for `read_columns`
    bins : int or "mdl"
        The number of bins of about equal weight, or bins by the MDL criterion (Fayyad and Irani 1993).
    table : Table
        The rows that determine the bins.
    target : name
    weight : array-like of shape (n,), optional
    model : str
        The name of the model, for messages.
    """
    if not (isinstance(bins, str) and bins == "mdl") and not is_integer_at_least(bins, 2):
        raise DataError.wrong_type("bins", short_repr(bins), "a whole number of at least 2, or 'mdl'")
    weights = check_weight(weight, table.n_rows)
    sample = _sample_rows(table, target, weights)
    read = read_columns(columns, table, [target], target, weights)
    dropped_columns = dict(read.dropped_columns)
    features = [name for name in table.columns if name != target]
    free = columns_with_option(columns, features, "auto") - dropped_columns.keys()
    labels = [name for name in free if not table.is_block(name) and table.kind(name) == "label"]
    if labels:
        dropped_columns.update(identifiers(table, labels, weights))  # pairs of their levels would be many
        warn_dropped_text(table, dropped_columns)
    free |= columns_with_option(columns, features, "suggest")
    families = {name: family for names, family in read.blocks for name in names}
    with_indicator = {table.source_of(name) for name in families if name not in table.columns}
    discretized: dict[Name, Family] = {}
    for name, family in families.items():
        if name not in table.columns or name in dropped_columns:
            continue
        _check_has_levels(table, name, family, model, is_free=name in free | with_indicator)
        if not _has_levels(family) or (name in free and family.bins):
            edges = _bin_edges(table, name, bins, sample)
            if not edges and name not in with_indicator:
                dropped_columns[name] = "no bins discriminate the classes" if bins == "mdl" else "constant"
                continue
            family = Binned((None, *(edges or (0.0,)), None))  # one bin, if only missing values are informative
        discretized[name] = WithMissing(family) if name in with_indicator else family
    in_order = {name: discretized[name] for name in table.columns if name in discretized}
    return DiscretizedColumns(in_order, dropped_columns)


class _Sample(NamedTuple):
    """The rows that determine bins: their numbers, class codes and weights."""

    rows: np.ndarray
    groups: np.ndarray
    weights: np.ndarray | None


def _sample_rows(table: Table, target: Name, weights: np.ndarray | None) -> _Sample:
    """Return the rows with positive weight, or a random sample of them."""
    rows = np.arange(table.n_rows) if weights is None else np.flatnonzero(weights > 0)
    if len(rows) > _MOST_ROWS:
        rows = rows[sampled_rows(len(rows), _MOST_ROWS)]
    codes, _ = table.encoded(target, True)
    return _Sample(rows, codes[rows].astype(np.intp), None if weights is None else weights[rows])


def _has_levels(family: Family) -> bool:
    """Return whether a family has levels: categories or bins."""
    return family.cell_type == "codes" or bool(family.bins)


def _check_has_levels(table: Table, name: Name, family: Family, model: str, *, is_free: bool) -> None:
    """Raise DataError for a block of columns, and for a numeric family that the user has chosen."""
    if table.is_block(name):
        hint = f"{model} counts pairs of columns. Pass those of interest as an array."
        what = "a sparse block" if table.kind(name) == "sparse" else "a block of columns"
        raise DataError.wrong_type(f"column {name!r}", what, "one dense column", hint)
    if not _has_levels(family) and not is_free:
        hint = "Use columns='auto', which discretizes numbers."
        what = f"the family of column {name!r} in {model}"
        raise DataError.wrong_type(what, repr(family), "one with levels: Categorical() or Binned(...)", hint)


def _bin_edges(table: Table, name: Name, bins: int | str, sample: _Sample) -> tuple[float, ...]:
    """Return the inner bin edges of a numeric column."""
    cells = table.numbers([name])
    column = np.asarray(cells[:, 0] if isinstance(cells, np.ndarray) else cells[0])
    _check_finite(column, name)
    column = column[sample.rows].astype(np.float64)
    known = ~np.isnan(column) & (sample.groups >= 0)
    weight = None if sample.weights is None else sample.weights[known]
    if bins == "mdl":
        return mdl_edges(column[known], sample.groups[known], int(sample.groups.max(initial=-1)) + 1, weight)
    return quantile_edges(column[known], weight, int(bins))


def class_bins_by_fold(
    columns: DiscretizedColumns, table: Table, codes: np.ndarray, fold: np.ndarray, weight: np.ndarray | None
) -> list[DiscretizedColumns]:
    """Return the columns with bins by the MDL criterion, from the rows without each fold and, last, from all rows."""
    out = [DiscretizedColumns({}, {}) for _ in range(int(fold.max()) + 2)]
    for name, family in columns.families.items():
        if not family.bins:
            for one in out:
                one.families[name] = family
            continue
        cells = table.numbers([name])
        column = np.asarray(cells[:, 0] if isinstance(cells, np.ndarray) else cells[0], dtype=np.float64)
        known = np.flatnonzero(~np.isnan(column))
        heavy = None if weight is None else weight[known]
        found = mdl_edges_by_fold(column[known], codes[known], int(codes.max()) + 1, fold[known], heavy)
        for one, cuts in zip(out, found, strict=True):
            if cuts:
                one.families[name] = Binned((None, *cuts, None))
    return out


def _codes(family: Family, column: np.ndarray, name: Name) -> np.ndarray:
    codes = np.asarray(transform(family, column))
    if column.dtype.kind == "f" and (codes == len(family.bins)).any():
        _check_finite(column, name)
    return codes.astype(np.int16 if len(family.bins) < 2**15 else np.int64)


def _check_finite(column: np.ndarray, name: Name) -> None:
    if column.dtype.kind == "f":
        lost = np.isinf(column)
        if lost.any():
            row = int(lost.argmax())
            raise DataError.bad_cell(column[row].item(), row, name, Binned.allowed_values)

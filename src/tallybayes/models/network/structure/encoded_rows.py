"""Rows encoded for a structure search: small integer codes of levels, column by column."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Self

import numpy as np

from tallybayes.data.counting import check_weight
from tallybayes.data.missing_indicators import with_missing_level
from tallybayes.data.table import Table
from tallybayes.errors import DataError
from tallybayes.families.family import Family
from tallybayes.kernels.contingency_tables import MOST_SUMMED_CELLS
from tallybayes.models.network.graph import Graph
from tallybayes.models.network.network_factors import has_levels, node_families, warn_many_levels
from tallybayes.models.network.network_fit import open_training_table
from tallybayes.tally.factor import Name
from tallybayes.typing import Columns, Rows, SampleWeights

_BYTE_LEVELS = 253  # levels that codes of one byte can have besides missing cells
_MIN_REPETITION = 8  # rows per distinct row from which distinct rows are counted once, with weights


class EncodedRows(NamedTuple):
    """Categorical columns as codes of their levels.

    Attributes
    ----------
    names : list
    codes : list of arrays of shape (n,)
        Positions in `levels`; the largest value of the type for a missing cell.
    levels : list of tuples
        The levels that occur or were declared.
    weight : float64 array of shape (n,), or None
        None if every row has weight 1.
    observed : list of bool arrays of shape (n,), or None
        None if no cell is missing.
    """

    names: list[Name]
    codes: list[np.ndarray]
    levels: list[tuple[Any, ...]]
    weight: np.ndarray | None
    observed: list[np.ndarray] | None

    @property
    def sizes(self) -> np.ndarray:
        """The number of levels of every column."""
        return np.array([len(levels) for levels in self.levels], dtype=np.int64)

    @property
    def total(self) -> float:
        """The total weight of all rows."""
        return float(len(self.codes[0])) if self.weight is None else float(self.weight.sum())

    def n_cells(self, members: Iterable[int]) -> int:
        """Return the number of cells of a table of some columns."""
        return math.prod(len(self.levels[k]) for k in members)

    def observed_fraction(self, columns: tuple[int, ...]) -> float:
        """Return the fraction of the rows, by weight, in which none of these columns is missing."""
        if self.observed is None:
            return 1.0
        rows = np.logical_and.reduce([self.observed[k] for k in columns])
        return float(rows.mean() if self.weight is None else self.weight[rows].sum() / self.total)

    def bootstrap_sample(self, rng: np.random.Generator) -> Self:
        """Return a bootstrap sample of the same number of rows; weights are numbers of repetitions."""
        if self.weight is not None:
            n = max(1, round(self.total))
            return self._replace(weight=rng.multinomial(n, self.weight / self.total) * (self.total / n))
        chosen = np.sort(rng.integers(0, len(self.codes[0]), len(self.codes[0])))
        observed = None if self.observed is None else [column[chosen] for column in self.observed]
        return self._replace(codes=[column[chosen] for column in self.codes], observed=observed)

    def distinct(self) -> Self:
        """Return the distinct rows with their weights, if there are far fewer of them."""
        sizes = self.sizes.tolist()
        if self.observed is not None or math.prod(sizes) > MOST_SUMMED_CELLS:
            return self
        keys = np.zeros(len(self.codes[0]), dtype=np.int64)
        for column, size in zip(self.codes, sizes, strict=True):
            keys = keys * size + column
        distinct, first, group = np.unique(keys, return_index=True, return_inverse=True)
        if len(distinct) * _MIN_REPETITION > len(keys):
            return self
        weight = np.bincount(group, weights=self.weight, minlength=len(distinct)).astype(np.float64)
        return self._replace(codes=[column[first] for column in self.codes], weight=weight)


def read_rows(
    data: Rows, columns: Columns, sample_weight: SampleWeights, names: Iterable[Name] | None, missing: str
) -> EncodedRows:
    """Encode the levels of a table; raise DataError for continuous columns, and for missing cells by default."""
    table, sample_weight = open_training_table(data, sample_weight, names)
    families = column_families(table, columns)
    continuous = [name for name in families if not has_levels(families[name])]
    if table.n_rows and continuous:  # without rows, columns have no types
        raise DataError(
            f"column {continuous[0]!r} is continuous; structure search needs categorical columns.\n"
            "    Bin its numbers, for example in quartiles, or drop it; if the numbers are levels, pass "
            f"columns={{{continuous[0]!r}: tb.Categorical()}}."
        )
    weight = check_weight(sample_weight, table.n_rows)
    if table.n_rows == 0 or (weight is not None and not (weight > 0).any()):
        raise DataError("the data have 0 rows of positive weight; expected at least 1.")
    rows = encode_columns(table, list(families), families, weight)
    if rows.observed is not None and missing == "error":
        raise _missing_cells(rows)
    warn_many_levels(columns, table, dict(zip(rows.names, rows.levels, strict=True)))
    return rows


def column_families(table: Table, columns: Columns) -> dict[Name, Family]:
    """Return the family of every column; raise DataError if there is none."""
    if not table.columns:
        raise DataError("the data have no columns; expected at least 1.")
    return node_families(Graph.read(dict.fromkeys(table.columns, ())), columns, table)


def encode_columns(
    table: Table, names: list[Name], families: Mapping[Name, Family], weight: np.ndarray | None
) -> EncodedRows:
    """Encode the levels of some columns in the rows of positive weight."""
    with_missing = [name for name in names if families[name].present_family is not None]
    table = with_missing_level(table, with_missing, with_missing)
    if weight is not None and not (weight > 0).all():
        table, weight = table.rows(np.flatnonzero(weight > 0)), weight[weight > 0]
    weight = None if weight is None or (weight == 1).all() else np.ascontiguousarray(weight, dtype=np.float64)
    encoded = [_encode(table, name, families[name].present_family or families[name]) for name in names]
    codes, levels, observed = map(list, zip(*encoded, strict=True))
    return EncodedRows(names, codes, levels, weight, None if all(map(np.all, observed)) else observed)


def _missing_cells(rows: EncodedRows) -> DataError:
    """Return the error for missing cells, with their number in the first incomplete column."""
    n_missing = [int((~observed).sum()) for observed in rows.observed or ()]
    first, *others = np.flatnonzero(n_missing)
    more = f"; {len(others)} more column{'s have' if len(others) > 1 else ' has'} missing cells" if others else ""
    return DataError(
        f"column {rows.names[first]!r} lacks {n_missing[first]:,} of {len(rows.codes[0]):,} cells{more}; expected no "
        "missing cells.\n    Pass missing='available', impute them (model.impute), or make them a level "
        "(columns={...: tb.WithMissing(tb.Categorical())})."
    )


def _encode(table: Table, name: Name, family: Family) -> tuple[np.ndarray, tuple[Any, ...], np.ndarray]:
    """Return a column as codes of its levels, the levels that occur or are declared, and its observed cells."""
    codes, domain = table.encoded(name, True)
    cells = codes.astype(np.int64)
    n = len(domain.levels)
    observed = (cells >= 0) & (cells < n)
    occurs = np.bincount(cells[observed], minlength=n) > 0
    declared = getattr(family, "levels", None) or ()
    unseen = [level for level in declared if level not in domain.index]
    kept = [level for level, seen in zip(domain.levels, occurs, strict=True) if seen or level in declared]
    if not kept and not unseen:
        raise DataError(f"column {name!r} has no cell that counts; expected at least 1.")
    position = {level: k for k, level in enumerate(kept)}
    recoded = np.array([position.get(level, -1) for level in domain.levels] + [-1], dtype=np.int64)
    levels = (*kept, *unseen)
    dtype = np.uint8 if len(levels) <= _BYTE_LEVELS else np.uint32
    codes = recoded[np.where(observed, cells, n)]
    return np.where(observed, codes, np.iinfo(dtype).max).astype(dtype), levels, observed

"""Protocol of counting in a database: sums, and groups of values."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from tallybayes.families._shared.sql_aggregates import (
    BinIndex,
    Expression,
    Log,
    SqlColumn,
    Sum,
    moments_of_sums,
    sums_of_powers,
)
from tallybayes.families.binned import Binned
from tallybayes.families.binomial import Binomial
from tallybayes.families.continuous import ContinuousFamily
from tallybayes.families.family import (
    Family,
)
from tallybayes.families.log_normal import LogNormal
from tallybayes.families.with_missing import WithMissing
from tallybayes.statistics.moments import Moments
from tallybayes.statistics.sufficient_statistics import Statistics


@singledispatch
def aggregates(family: Family, n_columns: int, anchor: np.ndarray) -> list[Sum] | None:
    """Return the sums that a database computes for `from_aggregates`, or None.

    If None, the database counts the frequency of every value, and the values are collected with their frequencies.
    """
    return None


@aggregates.register(ContinuousFamily)
def _(family: ContinuousFamily, n_columns: int, anchor: np.ndarray) -> list[Sum]:
    """Return weights, sums and sums of squares (or of all products) about an anchor."""
    cells: list[Any] = [sql_expression(family, SqlColumn(column)) for column in range(n_columns)]
    return sums_of_powers(cells, anchor, full=family.full_moments)


@singledispatch
def from_aggregates(family: Family, sums: np.ndarray, anchor: np.ndarray) -> Statistics:
    """Return the statistics of groups from their `aggregates`, shape (groups, sums)."""
    raise NotImplementedError


@from_aggregates.register(ContinuousFamily)
def _(family: ContinuousFamily, sums: np.ndarray, anchor: np.ndarray) -> Moments:
    """Return the moments of groups."""
    return moments_of_sums(anchor, sums, full=family.full_moments)


@singledispatch
def sql_group_expression(family: Family, column: Expression) -> Expression | None:
    """Return the expression that a database groups by instead of the values, or None for the values."""
    return None


@sql_group_expression.register(Binned)
def _(family: Binned, column: Expression) -> Expression:
    """Return the bin index."""
    return BinIndex(column, tuple(float(edge) for edge in family.edges[1:-1] if edge is not None))


@singledispatch
def sql_group_value(family: Family, groups: np.ndarray) -> np.ndarray:
    """Return representative values of the groups of `sql_group_expression`."""
    raise NotImplementedError


@sql_group_value.register(Binned)
def _(family: Binned, groups: np.ndarray) -> np.ndarray:
    """Return the midpoints of the bins."""
    ends = family.ends
    return np.asarray(((ends[:-1] + ends[1:]) / 2)[groups.astype(np.intp)])


@sql_group_value.register(WithMissing)
def _(family: WithMissing, groups: np.ndarray) -> np.ndarray:
    """Return the midpoints of the bins, NaN for missing."""
    bin_index = np.minimum(groups, len(family.family.bins) - 1)
    return np.where(groups < len(family.family.bins), sql_group_value(family.family, bin_index), np.nan)


@singledispatch
def sql_expression(family: Family, column: Expression) -> Expression | None:
    """Return the SQL expression of `transform`, or None if there is none."""
    return None if family.transforms else column


@sql_expression.register(Binomial)
def _(family: Binomial, column: Expression) -> Expression:
    """Return the number of successes."""
    return column


@sql_expression.register(LogNormal)
def _(family: LogNormal, column: Expression) -> Expression:
    """Return the logarithm."""
    return Log(column)


@sql_expression.register(Binned)
def _(family: Binned, column: Expression) -> Expression | None:
    """Return the bin index."""
    return sql_group_expression(family, column)

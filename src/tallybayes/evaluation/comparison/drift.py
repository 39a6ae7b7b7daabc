"""How far columns moved between what a model has counted and other rows, in bits, with intervals."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np
from scipy.special import fdtrc, stdtrit

from tallybayes.data.array_input import as_array
from tallybayes.data.table import Table
from tallybayes.errors import DataError
from tallybayes.evaluation.comparison.model_difference import ColumnDifference, difference
from tallybayes.models.inputs.features import is_name, only_column, open_features
from tallybayes.models.naive_bayes.naive_bayes import NaiveBayes
from tallybayes.statistics.counts import Counts
from tallybayes.tally.domain import Domain
from tallybayes.tally.tally import Tally
from tallybayes.typing import Labels, Rows

_BLOCKS = 20
_SURE = 0.99


class ColumnDrift(NamedTuple):
    """One column: how far it moved, in bits a cell, and the levels that are new."""

    column: Any
    bits: float
    low: float
    high: float
    chance: float  # the probability to be as far or farther, had it not moved
    group: Any  # where it moved most; None where nothing is given
    new_levels: tuple[Any, ...]


def drift(model: Any, data: Rows, target: Labels | None = None, mass: float = _SURE) -> list[ColumnDrift]:
    """How far every column of some rows is from what a model has counted, those that moved most first.

    The rows are counted in blocks, and each is left out once by subtraction: so every column's bits
    (`tallybayes.difference`, per cell of the rows) are freed of what so few rows differ by chance, with an interval.

    Parameters
    ----------
    model : fitted model
    data : rows as `fit` takes them
    target : name of a column or array of labels, optional
        Columns are compared class by class; without it, models that have classes are compared all classes together.
    mass : float
        Of the intervals.
    """
    table, y = open_features(data), target
    if table.n_rows < 2:
        raise DataError(f"there is {table.n_rows} row to compare; expected at least 2.")
    if target is None and hasattr(model, "target_"):
        model = _of_one_class(model)
        y = np.zeros(table.n_rows, dtype=np.int64)
    elif target is not None and not is_name(target):
        y = as_array(only_column(target))
    whole = _partial_fit(model.without_rows(), table, y)
    found = {one.column: one for one in difference(model, whole).columns}
    without = []
    for block in np.array_split(np.arange(table.n_rows), min(_BLOCKS, table.n_rows)):
        rest = copy.copy(whole).forget(table.rows(block), **_label_arguments(y, block))
        without.append({one.column: one.bits for one in difference(model, rest).columns})
    # What was counted before differs by chance, too: the more, the fewer rows that were.
    counted, n_rows = float(model.n_rows_), float(whole.n_rows_)
    both = 1 + n_rows / counted if counted > 0 else 1.0
    drifts = []
    for name, one in found.items():
        left_out = np.array([some.get(name, np.nan) for some in without])
        k = _n_parameters(whole, name)
        least = k / (2 * np.log(2) * n_rows)  # on the mean, where the column is what its family says
        told = _jackknife_interval(one, left_out[np.isfinite(left_out)], k, least, both, mass)
        drifts += [] if told is None else [told]
    return sorted(drifts, key=lambda one: (one.chance, -one.bits))


def _jackknife_interval(
    one: ColumnDifference, left_out: np.ndarray, k: int, least: float, both: float, mass: float
) -> ColumnDrift | None:
    """A column's drift without what few rows differ by chance; None where its numbers are all the same.

    What n blocks differ by chance is on the mean what leaving one out adds, times n − 1: a quadratic form of the k
    parameters within blocks. The bits are the same form of their mean; had the column not moved, their ratio would be
    distributed as F with k and k(n − 1) degrees of freedom, whether or not the column is what its family says. All of
    it is `both` times as much where the counts to compare with are of rows themselves, not of ever more. What is found
    by leaving out is uncertain itself, and may be negative: it is not taken below what the family alone says.
    """
    n = len(left_out)
    if not np.isfinite(one.bits) or n < 2:
        return None
    by_chance = both * max((n - 1) * (left_out.mean() - one.bits), least)
    bits = float(one.bits - by_chance)
    spread = np.sqrt(both * (n - 1) * np.mean((left_out - left_out.mean()) ** 2)) * stdtrit(n - 1, 0.5 + mass / 2)
    chance = float(fdtrc(k, k * (n - 1), max(one.bits, 0.0) / by_chance))
    low, high = float(bits - spread), float(bits + spread)
    return ColumnDrift(one.column, bits, low, high, chance, one.group, one.new_levels)


def _n_parameters(model: Any, column: Any) -> int:
    """How many parameters a column has in all groups; 1, by which less is called a drift, where that is not told."""
    if hasattr(model, "members_"):
        return max(_n_parameters(member.model, column) for member in model.members_)
    for factor, statistic in zip(model._selected_tally.factors, model._selected_tally.statistics, strict=True):
        if column in factor.columns or column == factor.columns:
            place = factor.columns.index(column) if factor.family.columnwise and column in factor.columns else None
            part = statistic if place is None or len(factor.columns) == 1 else statistic.columns(np.array([place]))
            return max(1, int(factor.family.n_parameters(part)))
    return 1


def _label_arguments(y: Any, rows: Any) -> dict[str, Any]:
    return {} if y is None else {"y": y if is_name(y) else y[rows]}


def _partial_fit(model: Any, table: Table, y: Any) -> Any:
    return model.partial_fit(table, **_label_arguments(y, slice(None)))


def _of_one_class(model: Any) -> Any:
    """A model of the same columns, all classes taken together."""
    if hasattr(model, "members_"):
        model = max(model.members_, key=lambda member: (type(member.model) is NaiveBayes, member.spec.weight)).model
    tally, name = model.tally_, model.target_
    apart = [factor for factor in tally.factors if factor.given and factor.given != (name,)]
    if apart:
        raise DataError(
            f"{type(model).__name__} has no counts of columns by themselves, so rows without labels do not compare.\n"
            "    Pass target=."
        )
    statistics = [
        part.pool_groups().reshape_groups((1,)) if factor.given else Counts(part.table.sum(keepdims=True))
        for factor, part in zip(tally.factors, tally.statistics, strict=True)
    ]
    domains = tally.domains | {str(name): Domain([0], str(name))}
    families = {
        factor.columns if len(factor.columns) > 1 else factor.columns[0]: factor.family
        for factor in tally.factors
        if factor.given
    }
    together = NaiveBayes(families).fit_tally(Tally(tally.factors, statistics, domains, tally.schema))
    together._shape = model._shape
    return together

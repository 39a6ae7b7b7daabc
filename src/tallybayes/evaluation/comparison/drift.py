"""Drift of columns from the rows that a model has counted, in bits, with intervals."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from scipy.special import fdtrc, stdtrit

from tallybayes.data.array_input import as_array
from tallybayes.errors import DataError
from tallybayes.evaluation.comparison.model_difference import ColumnName, difference
from tallybayes.models.base import Model
from tallybayes.models.ensemble.auto_classifier import AutoClassifier
from tallybayes.models.ensemble.members import generative_members
from tallybayes.models.inputs.features import is_name, only_column, open_features
from tallybayes.models.naive_bayes.naive_bayes import NaiveBayes
from tallybayes.results.audit import ColumnDrift
from tallybayes.results.difference import ColumnDifference
from tallybayes.statistics.counts import Counts
from tallybayes.tally.domain import Domain
from tallybayes.tally.tally import Tally
from tallybayes.typing import Labels, Name, Rows

_BLOCKS = 20
_MASS = 0.99


def drift(
    model: Model | AutoClassifier, data: Rows, target: Labels | None = None, mass: float = _MASS
) -> list[ColumnDrift]:
    """Return the divergence of every column of some rows from the counted rows, in order of significance.

    The divergence is that of `tallybayes.difference`, per cell of the rows. The rows are counted in blocks, and each
    block is subtracted once: a jackknife, which corrects the bias of small samples and gives an interval.

    Parameters
    ----------
    model : fitted model
    data : rows as `fit` takes them
    target : name of a column or array of labels, optional
        If given, columns are compared by class; otherwise classes are pooled.
    mass : float
        The probability of the intervals.
    """
    table = open_features(data)
    y: Any = target
    if table.n_rows < 2:
        raise DataError(f"there is {table.n_rows} row to compare; expected at least 2.")
    if target is None and hasattr(model, "target_"):
        model = _pool_classes(model)
        y = np.zeros(table.n_rows, dtype=np.int64)
    elif target is not None and not is_name(target):
        y = as_array(only_column(target))
    of_rows = model.without_rows().partial_fit(table, **_label_arguments(y, slice(None)))
    jackknife: list[dict[Any, float]] = []
    for block in np.array_split(np.arange(table.n_rows), min(_BLOCKS, table.n_rows)):
        remaining = copy.copy(of_rows).forget(table.rows(block), **_label_arguments(y, block))
        jackknife.append({each.column: each.bits for each in difference(model, remaining).columns})
    # The counted rows are a sample too: the fewer there are, the larger the divergence by chance.
    n_counted = float(model.n_rows_)
    n_rows = float(of_rows.n_rows_)
    inflation = 1 + n_rows / n_counted if n_counted > 0 else 1.0
    drifts = []
    for each in difference(model, of_rows).columns:
        left_out = np.array([bits.get(each.column, np.nan) for bits in jackknife])
        k = _n_parameters(of_rows, each.column)
        least = k / (2 * np.log(2) * n_rows)  # the expected divergence by chance if the family is right
        column = _jackknife_interval(each, left_out[np.isfinite(left_out)], k, least, inflation, mass)
        drifts += [] if column is None else [column]
    return sorted(drifts, key=lambda each: (each.chance, -each.bits))


def _jackknife_interval(
    column: ColumnDifference, left_out: np.ndarray, k: int, least: float, inflation: float, mass: float
) -> ColumnDrift | None:
    """Return a column's drift without its expectation by chance; None if the divergence is infinite.

    The expected divergence of n blocks by chance is n − 1 times the mean increase by leaving one out: a quadratic form
    of the k parameters within blocks. The divergence is the same form of their mean. Without drift, their ratio has an
    F distribution with k and k(n − 1) degrees of freedom, even if the family is wrong. Both are multiplied by
    `inflation` if the counted rows are a sample. The jackknife estimate is uncertain and may be negative: it is at
    least the expectation if the family is right.
    """
    n = len(left_out)
    if not np.isfinite(column.bits) or n < 2:
        return None
    by_chance = inflation * max((n - 1) * (left_out.mean() - column.bits), least)
    bits = float(column.bits - by_chance)
    half_width = np.sqrt(inflation * (n - 1) * np.mean((left_out - left_out.mean()) ** 2)) * stdtrit(
        n - 1, 0.5 + mass / 2
    )
    chance = float(fdtrc(k, k * (n - 1), max(column.bits, 0.0) / by_chance))
    return ColumnDrift(
        column.column,
        bits,
        float(bits - half_width),
        float(bits + half_width),
        chance,
        column.group,
        column.new_levels,
    )


def _n_parameters(model: Model | AutoClassifier, column: ColumnName) -> int:
    """Return the number of parameters of a column in all groups; 1, the most sensitive, if it is unknown."""
    if isinstance(model, AutoClassifier):
        return max((_n_parameters(member.model, column) for member in generative_members(model)), default=1)
    tally = model._selected_tally
    for factor, statistic in zip(tally.factors, tally.statistics, strict=True):
        if column in factor.columns or column == factor.columns:
            is_single = factor.family.columnwise and column in factor.columns and len(factor.columns) > 1
            part = statistic.columns(np.array([factor.columns.index(column)])) if is_single else statistic
            return max(1, int(factor.family.n_parameters(part)))
    return 1


def _label_arguments(y: Name | np.ndarray | None, rows: slice | np.ndarray) -> dict[str, Any]:
    """Return the argument y of ``partial_fit`` and ``forget`` for some rows; empty without a target."""
    return {} if y is None else {"y": y if is_name(y) else np.asarray(y)[rows]}


def _pool_classes(model: Model | AutoClassifier) -> NaiveBayes:
    """Return a naive Bayes model of the same columns with all classes pooled into one."""
    if isinstance(model, AutoClassifier):
        members = generative_members(model)
        if not members:
            raise DataError("the model has no generative member that counts single columns.\n    Pass target=.")
        model = max(members, key=lambda member: (type(member.model) is NaiveBayes, member.spec.weight)).model
    tally = model.tally_
    name = model.target_
    if any(factor.given and factor.given != (name,) for factor in tally.factors):
        raise DataError(
            f"{type(model).__name__} has no counts of single columns, so that rows without labels cannot be compared.\n"
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
    pooled = NaiveBayes(families).fit_tally(Tally(tally.factors, statistics, domains, tally.schema))
    pooled.input_format_ = model.input_format_
    return pooled

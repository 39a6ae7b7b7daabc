"""Leave-one-out: log p(row | class) from the counts of all other rows, in closed form or by subtraction."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from tallybayes.distributions.parameter_distribution import ParameterDistribution
from tallybayes.families._shared.blocks import Block
from tallybayes.families._shared.leave_one_out_counts import GroupStatistics, RemovedRows
from tallybayes.families.estimates import read_estimate
from tallybayes.families.family import Family
from tallybayes.families.protocols import leave_one_out as closed_form
from tallybayes.statistics.sufficient_statistics import Statistics


def is_cellwise(family: Family, sparse: bool) -> bool:
    """Return whether leaving rows out needs arrays with as many elements as the rows have cells."""
    return not family.full_moments and not (sparse and closed_form.has_closed_form(family))


def leave_one_out_log_prob(
    family: Family,
    statistics: Statistics,
    prior: ParameterDistribution | None,
    estimate: str,
    block: Block,
    group: np.ndarray,
    weight: np.ndarray | None,
    constant: np.ndarray,
) -> np.ndarray:
    """Return log p(row | group) with the row itself left out of the statistics.

    Parameters
    ----------
    family : Family
    statistics : Statistics of shape (groups, …)
        The statistics of all rows, these included.
    prior : ParameterDistribution or None
    estimate : {"bayes", "map", "mle", "unbiased"}
    block : array of shape (n, columns), `Codes` or `SparseRows`
        The rows.
    group : array of int of shape (n,)
        The group of every row.
    weight : array of shape (n,), optional
        The weight of every row.
    constant : array of int
        Positions of constant columns.

    Returns
    -------
    ndarray of shape (n, groups) if `Family.leave_one_out_changes_all_groups`, else (n, 1), of the row's own group
        NaN where the closed form is not precise enough; such rows are subtracted.
    """
    together = closed_form.leave_one_out_changes_all_groups(family)
    counted = GroupStatistics(statistics, prior, read_estimate(estimate))
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        rows = RemovedRows(block, group, np.ones(len(group)) if weight is None else weight, constant)
        terms = closed_form.leave_one_out_log_prob(family, counted, rows)
        if terms is None and (together or not family.columnwise):  # one group per row is impossible, or too large
            terms = np.full((len(group), statistics.given_shape[0] if together else 1), np.nan)
        if terms is not None:
            return terms
        if len(constant):
            block = np.array(block, dtype=float)
            block[:, constant] = np.nan
        return _counted_out(family, counted, block, group, weight)[:, None]


def leave_one_out_tables(
    family: Family, statistics: Statistics, prior: ParameterDistribution | None, estimate: str, constant: np.ndarray
) -> tuple[np.ndarray, ...] | None:
    """Return tables of log p(row | group) without the row, which has weight one, for the scoring kernels.

    Parameters
    ----------
    family, statistics, prior, estimate, constant
        As for `leave_one_out_log_prob`.

    Returns
    -------
    tuple of arrays of shape (columns or cells, groups), or None if there is no such table
        `Categorical`: log probabilities. `Bernoulli`: log p(1) and log p(0). `Gaussian`: mean, inverse spread, power
        and log norm of a factor ``"left_out"``. NaN in groups whose rows have to be subtracted.
    """
    counted = GroupStatistics(statistics, prior, read_estimate(estimate))
    with np.errstate(invalid="ignore", divide="ignore"):
        return closed_form.leave_one_out_tables(family, counted, constant)


def _counted_out(
    family: Family, counted: GroupStatistics, block: Block, group: np.ndarray, weight: np.ndarray | None
) -> np.ndarray:
    """Score every row as a group of its own: the statistics of its class minus those of the row."""
    (statistics, prior, estimate), n_rows = counted, len(group)
    if not n_rows:
        return np.zeros(0)
    each = np.arange(n_rows)
    row = family.collect(block, each, n_rows, weight, like=statistics)
    once = row if weight is None else family.collect(block, each, n_rows, None, like=statistics)
    rest = statistics.take(0, group) - row
    if estimate.has_prior:
        prior = _of_groups(counted.start, group)
    if estimate.integrates:
        terms = family.log_evidence(prior.update(rest), once)
    else:
        terms = family.log_likelihood(estimate.point(family, prior, rest), once)
    return np.reshape(terms, (n_rows, -1)).sum(axis=1)


def _of_groups(belief: ParameterDistribution, group: np.ndarray) -> Any:
    """Return a distribution with one group per row, from one with a group per class."""
    arrays = {field.name: getattr(belief, field.name) for field in dataclasses.fields(belief)}  # type: ignore[arg-type]
    return belief.replace(**{name: a[group] for name, a in arrays.items() if isinstance(a, np.ndarray)})

"""Protocol of closed-form leave-one-out: log probabilities of rows without themselves."""

from __future__ import annotations

import numpy as np

from tallybayes.distributions.log_gamma import (
    log_choose,
)
from tallybayes.families._shared.blocks import (
    Codes,
    SparseRows,
)
from tallybayes.families._shared.leave_one_out_counts import (
    GroupStatistics,
    LevelCounts,
    RemovedRows,
    level_counts,
    sparse_leave_one_out,
    token_leave_one_out,
)
from tallybayes.families._shared.leave_one_out_gaussian import (
    columns_leave_one_out,
    rows_leave_one_out,
    student_t_leave_one_out,
)
from tallybayes.families.bernoulli import Bernoulli, codes_of
from tallybayes.families.binned import Binned
from tallybayes.families.categorical import Categorical
from tallybayes.families.family import (
    Family,
)
from tallybayes.families.gaussian import Gaussian, SphericalGaussian, TiedGaussian, TiedSphericalGaussian
from tallybayes.families.log_normal import LogNormal, log_cells
from tallybayes.families.multinomial import DirichletMultinomial, Multinomial
from tallybayes.families.multivariate_gaussian import MultivariateGaussian, TiedMultivariateGaussian
from tallybayes.families.poisson import Poisson
from tallybayes.families.protocols.closed_form import ClosedForm
from tallybayes.kernels.base_measure import log_base_csr
from tallybayes.statistics.counts import Segments


def leave_one_out_changes_all_groups(family: Family) -> bool:
    """Return whether removing a row changes the log probabilities of all groups, or all are computed at once."""
    return "groups" in family.tied_over or isinstance(family, MultivariateGaussian)


@ClosedForm
def leave_one_out_log_prob(family: Family, counted: GroupStatistics, rows: RemovedRows) -> np.ndarray | None:
    """Return log p(row | group) of counted rows, each without itself, or None if there is no closed form.

    The shape is (n, groups) if `leave_one_out_changes_all_groups`, else (n, 1) for the row's own group. Entries are
    NaN where the closed form loses too many digits.
    """
    return None


leave_one_out_log_prob.register(Poisson)(sparse_leave_one_out)
leave_one_out_log_prob.register(Gaussian, TiedGaussian, SphericalGaussian, TiedSphericalGaussian)(columns_leave_one_out)
leave_one_out_log_prob.register(MultivariateGaussian, TiedMultivariateGaussian)(rows_leave_one_out)


@leave_one_out_log_prob.register(Bernoulli)
def _(family: Bernoulli, counted: GroupStatistics, rows: RemovedRows) -> np.ndarray | None:
    """Return the log proportions among the remaining rows."""
    if isinstance(rows.cells, SparseRows):
        return sparse_leave_one_out(family, counted, rows)
    levels = _binary_counts(counted)
    return None if levels is None else levels.left_out(codes_of(np.asarray(rows.cells)), rows)


@leave_one_out_log_prob.register(Binned)
def _(family: Binned, counted: GroupStatistics, rows: RemovedRows) -> np.ndarray | None:
    """Return the log densities from the remaining counts."""
    levels, codes = _level_counts(counted), family.codes(np.asarray(rows.cells))
    widths = np.where(codes < 0, 1.0, family.widths[np.minimum(codes, len(family.widths) - 1)])
    return None if levels is None else levels.left_out(codes, rows) - np.log(widths).sum(axis=1, keepdims=True)


@leave_one_out_log_prob.register(Categorical)
def _(family: Categorical, counted: GroupStatistics, rows: RemovedRows) -> np.ndarray | None:
    """Return the log proportions among the remaining rows."""
    assert isinstance(rows.cells, Codes)
    levels = _level_counts(counted)
    return None if levels is None else levels.left_out(np.asarray(rows.cells.columns), rows)


@leave_one_out_log_prob.register(LogNormal)
def _(family: LogNormal, counted: GroupStatistics, rows: RemovedRows) -> np.ndarray:
    """Return the log densities from the logarithms of the remaining rows."""
    logs = log_cells(np.asarray(rows.cells))
    terms = columns_leave_one_out(Gaussian(), counted, rows._replace(cells=logs))
    return np.asarray(terms - np.nansum(np.delete(logs, rows.constant, axis=1), axis=1)[:, None])


@leave_one_out_log_prob.register(Multinomial)
def _(family: Multinomial, counted: GroupStatistics, rows: RemovedRows) -> np.ndarray:
    """Return the log probabilities from the remaining token counts."""
    remaining = token_leave_one_out(counted, rows)
    if remaining is None:
        return np.full((len(rows.group), 1), np.nan)
    x = remaining.rows.data
    terms = remaining.rows.sum_rows(np.where(x > 0, x * np.log(remaining.cells), 0.0))
    terms = terms + log_base_csr(remaining.rows.indptr, x, "multinomial")
    terms = terms - remaining.length * np.log(np.where(remaining.whole > 0, remaining.whole, np.nan))
    return np.where(remaining.length > 0, terms, 0.0)[:, None]


@leave_one_out_log_prob.register(DirichletMultinomial)
def _(family: DirichletMultinomial, counted: GroupStatistics, rows: RemovedRows) -> np.ndarray | None:
    """Return the compound log probabilities from the remaining token counts."""
    remaining = token_leave_one_out(counted, rows) if counted.estimate.integrates else None
    if remaining is None:
        return leave_one_out_log_prob.of(Multinomial)(family, counted, rows)
    terms = remaining.rows.sum_rows(log_choose(remaining.cells, remaining.rows.data))
    return (terms - log_choose(remaining.whole, remaining.length))[:, None]


@ClosedForm
def leave_one_out_tables(
    family: Family, counted: GroupStatistics, constant: np.ndarray
) -> tuple[np.ndarray, ...] | None:
    """Return `leave_one_out_log_prob` of rows of weight 1 as tables for the kernels, or None."""
    return None


@leave_one_out_tables.register(Bernoulli)
def _(family: Bernoulli, counted: GroupStatistics, constant: np.ndarray) -> tuple[np.ndarray, ...] | None:
    """Return the tables of log p(1) and log p(0)."""
    levels = _binary_counts(counted)
    table = None if levels is None else levels.table()
    return None if table is None else (table[1::2], table[0::2])


@leave_one_out_tables.register(Binned)
def _(family: Binned, counted: GroupStatistics, constant: np.ndarray) -> tuple[np.ndarray, ...] | None:
    """Return the table of log densities from the remaining counts."""
    levels = _level_counts(counted)
    widths = np.tile(family.widths, counted.statistics.n_columns)
    return None if levels is None else (levels.table() - np.log(widths)[:, None],)


@leave_one_out_tables.register(Categorical)
def _(family: Categorical, counted: GroupStatistics, constant: np.ndarray) -> tuple[np.ndarray, ...] | None:
    """Return the table of log proportions among the remaining rows."""
    levels = _level_counts(counted)
    return None if levels is None else (levels.table(),)


@leave_one_out_tables.register(Gaussian, TiedGaussian, SphericalGaussian, TiedSphericalGaussian, LogNormal)
def _(family: Gaussian, counted: GroupStatistics, constant: np.ndarray) -> tuple[np.ndarray, ...] | None:
    """Return mean, inverse scale, power and log norm of Student's t for the kernel factor ``"left_out"``."""
    return student_t_leave_one_out(counted, constant) if counted.estimate.integrates and not family.tied_over else None


def has_closed_form(family: Family) -> bool:
    """Return whether leave-one-out has a closed form."""
    return type(family) in leave_one_out_log_prob.registry


def _level_counts(counted: GroupStatistics) -> LevelCounts | None:
    """Return the level counts and the prior's pseudo-counts, or None."""
    statistics, prior = counted.statistics, counted.start
    pseudo_counts = None if prior is None else prior.concentration
    return level_counts(counted, statistics.table, statistics.weight, pseudo_counts, statistics.segments)


def _binary_counts(counted: GroupStatistics) -> LevelCounts | None:
    """Return the counts of 0 and 1 and the prior's pseudo-counts, or None."""
    statistics, prior = counted.statistics, counted.start
    cells = np.stack([statistics.failures, statistics.total], axis=-1)
    pseudo_counts = None if prior is None else np.stack([prior.beta, prior.alpha], axis=-1)
    return level_counts(counted, cells, cells.sum(axis=-1), pseudo_counts, Segments(np.full(statistics.n_columns, 2)))

"""Leave-one-out log probabilities of count families in closed form."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from tallybayes.families._shared.blocks import Block, SparseRows, compressed
from tallybayes.families._shared.log_prob_forms import CellSumForm
from tallybayes.families.estimates import Estimate
from tallybayes.families.family import Family
from tallybayes.statistics.counts import Segments
from tallybayes.statistics.totals import Totals


class GroupStatistics(NamedTuple):
    """Statistics of all rows by group, with the prior and the estimate."""

    statistics: Any
    prior: Any
    estimate: Estimate

    @property
    def start(self) -> Any:
        """Return the prior broadcast to the shape of the statistics; None if the estimate has no prior."""
        return self.prior.update(self.statistics.scale(0.0)) if self.estimate.has_prior else None


class RemovedRows(NamedTuple):
    """Rows to leave out: cells, group and weight of every row, and the constant columns, which are not scored."""

    cells: Block
    group: np.ndarray
    weight: np.ndarray
    constant: np.ndarray


class LevelCounts(NamedTuple):
    """Counts of levels (groups, cells) and totals (groups, columns), and the prior's pseudo-counts for both."""

    cells: np.ndarray
    totals: np.ndarray
    added: np.ndarray
    all_added: np.ndarray
    segments: Segments

    def table(self) -> np.ndarray:
        """Return log p of every level without one row of that level: (cells, groups)."""
        cells, totals = (
            subtract_or_zero(self.cells, 1.0) + self.added,
            subtract_or_zero(self.totals, 1.0) + self.all_added,
        )
        return np.asarray(np.log(cells / self.segments.broadcast_to_cells(totals)).T)

    def left_out(self, codes: np.ndarray, rows: RemovedRows) -> np.ndarray:
        """Return log p of rows of codes without the row itself, (n, 1)."""
        if not self.cells.shape[1]:  # no column has any level
            return np.zeros((len(rows.group), 1))
        known = codes >= 0
        cell = np.where(known, codes + self.segments.offsets[:-1], 0)
        removed, row = rows.weight[:, None], rows.group[:, None]
        cells = subtract_or_zero(self.cells[row, cell], removed) + self.added[row, cell]
        totals = subtract_or_zero(self.totals[rows.group], removed) + self.all_added[rows.group]
        return np.asarray(np.where(known, np.log(cells / totals), 0.0).sum(axis=1, keepdims=True))


def level_counts(
    counted: GroupStatistics,
    cells: np.ndarray,
    totals: np.ndarray,
    pseudo_counts: np.ndarray | None,
    segments: Segments,
) -> LevelCounts | None:
    """Return level counts and pseudo-counts; None if the posterior mode may lie on the boundary."""
    cells = cells.reshape(len(cells), -1)
    pseudo_counts = (
        np.zeros_like(cells)
        if pseudo_counts is None
        else pseudo_counts.reshape(cells.shape) - counted.estimate.takes_mode
    )
    if (pseudo_counts < 0).any():
        return None
    return LevelCounts(cells, totals, pseudo_counts, segments.sum(pseudo_counts), segments)


class RemainingTokens(NamedTuple):
    """Rows of counts and the remaining token counts without each row: of its own words, and of all words."""

    rows: SparseRows
    length: np.ndarray
    cells: np.ndarray
    whole: np.ndarray


def token_leave_one_out(counted: GroupStatistics, removed: RemovedRows) -> RemainingTokens | None:
    """Return the remaining token counts of every row; None if the posterior mode may lie on the boundary."""
    cells, group = removed.cells, removed.group
    rows = cells if isinstance(cells, SparseRows) else compressed(np.asarray(cells))
    lengths, totals = np.diff(rows.indptr), counted.statistics.total
    length = rows.sum_rows(rows.data)
    position = np.repeat(group * totals.shape[-1], lengths) + rows.indices
    removed_counts = rows.data if (removed.weight == 1).all() else np.repeat(removed.weight, lengths) * rows.data
    remaining = subtract_or_zero(totals.take(position), removed_counts)
    remaining_total = subtract_or_zero(totals.sum(axis=1)[group], removed.weight * length)
    if counted.estimate.has_prior:
        pseudo_counts = np.broadcast_to(counted.prior.concentration, totals.shape) - counted.estimate.takes_mode
        if (pseudo_counts < 0).any():
            return None
        remaining, remaining_total = (
            remaining + pseudo_counts.take(position),
            remaining_total + pseudo_counts.sum(axis=1)[group],
        )
    return RemainingTokens(rows, length, remaining, remaining_total)


def sparse_leave_one_out(family: Family, counted: GroupStatistics, removed: RemovedRows) -> np.ndarray | None:
    """Return log p of sparse rows of count columns, each without itself: (n, 1); None for dense rows.

    Rows of the same group and weight have the same form. For statistics Σw and Σwx only.
    """
    if not isinstance(removed.cells, SparseRows):
        return None
    combinations, which = np.unique(np.stack([removed.group, removed.weight]), axis=1, return_inverse=True)
    order = np.argsort(which.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(which.ravel(), minlength=combinations.shape[1]))[:-1]
    out = np.empty((len(removed.group), 1))
    start, rows = counted.start, removed.cells.without_zeros()
    for (code, weight), index in zip(combinations.T, np.split(order, ends), strict=True):
        out[index] = _form_without_row(family, counted, start, int(code), weight).score(rows.rows(index))
    return out


def _form_without_row(family: Family, counted: GroupStatistics, prior: Any, code: int, weight: float) -> CellSumForm:
    """Return log p of the rows of one group, each without itself, as a sum over cells; `prior` is `counted.start`."""
    statistics, estimate = counted.statistics, counted.estimate
    weights = statistics.column_weights()[code]
    fields = (
        {} if prior is None else {field.name: getattr(prior, field.name)[code] for field in dataclasses.fields(prior)}
    )

    def log_p(x: np.ndarray, column: np.ndarray) -> np.ndarray:
        """Return log p(x) in some columns, without such a cell."""
        remaining = subtract_or_zero(weights[column], weight)
        total = subtract_or_zero(statistics.total[code, column], weight * x)
        rest = Totals(remaining, np.minimum(total, remaining) if family.is_binary else total)
        start = None if prior is None else prior.replace(**{name: part[column] for name, part in fields.items()})
        if start is not None and estimate.integrates:
            return family.log_predictive(start.update(rest), x[None])[0]
        return family.log_prob(estimate.point(family, start, rest), x[None])[0]

    zero = log_p(np.zeros(len(weights)), np.arange(len(weights)))
    finite_zero = np.where(np.isfinite(zero), zero, 0.0)
    return CellSumForm(zero[None], lambda x, column: log_p(x, column) - finite_zero[column])


def subtract_or_zero(total: np.ndarray, removed: float | np.ndarray) -> np.ndarray:
    """Return a difference of counts, 0 if only rounding error is left."""
    difference = total - removed
    return np.where(difference > 1e-10 * total, difference, 0.0)

"""Rows without themselves: log p(row | group) from the counts of all other rows, in closed form, not counted again."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from tallybayes.families._shared.blocks import Block, SparseRows, compressed
from tallybayes.families._shared.log_prob_forms import row_chunks
from tallybayes.families.estimates import Estimate
from tallybayes.families.family import Family
from tallybayes.statistics.segments import Segments
from tallybayes.statistics.totals import Totals


class GroupStatistics(NamedTuple):
    """What all rows left behind: their statistics by group, the belief before them, and what is made of both."""

    statistics: Any
    prior: Any
    estimate: Estimate

    @property
    def start(self) -> Any:
        """The prior in the shape of the statistics; None where the estimate has none."""
        return self.prior.update(self.statistics.scale(0.0)) if self.estimate.has_prior else None


class RemovedRows(NamedTuple):
    """Rows to leave out: their cells, the group that each was counted in, its weight, and columns that say nothing."""

    cells: Block
    group: np.ndarray
    weight: np.ndarray
    constant: np.ndarray


class LevelCounts(NamedTuple):
    """Counts of levels: cells (groups, cells) and totals (groups, columns), and what a prior adds to both."""

    cells: np.ndarray
    totals: np.ndarray
    added: np.ndarray
    all_added: np.ndarray
    segments: Segments

    def table(self) -> np.ndarray:
        """log p of every level without one row that has it: (cells, groups)."""
        cells, totals = (
            subtract_or_zero(self.cells, 1.0) + self.added,
            subtract_or_zero(self.totals, 1.0) + self.all_added,
        )
        return np.asarray(np.log(cells / self.segments.broadcast_to_cells(totals)).T)

    def left_out(self, codes: np.ndarray, rows: RemovedRows) -> np.ndarray:
        """log p of rows of codes, (n, 1): a row's own cells and columns lose its weight."""
        if not self.cells.shape[1]:  # no column has any level
            return np.zeros((len(rows.group), 1))
        known = codes >= 0
        cell = np.where(known, codes + self.segments.offsets[:-1], 0)
        lost, row = rows.weight[:, None], rows.group[:, None]
        cells = subtract_or_zero(self.cells[row, cell], lost) + self.added[row, cell]
        totals = subtract_or_zero(self.totals[rows.group], lost) + self.all_added[rows.group]
        return np.asarray(np.where(known, np.log(cells / totals), 0.0).sum(axis=1, keepdims=True))


def level_counts(
    counted: GroupStatistics, cells: np.ndarray, totals: np.ndarray, added: np.ndarray | None, segments: Segments
) -> LevelCounts | None:
    """What the probabilities of levels are shares of, or None where a mode may lie on an edge that moves with a row."""
    cells = cells.reshape(len(cells), -1)
    added = np.zeros_like(cells) if added is None else added.reshape(cells.shape) - counted.estimate.takes_mode
    if (added < 0).any():
        return None
    return LevelCounts(cells, totals, added, segments.sum(added), segments)


class Tokens(NamedTuple):
    """Rows of counts, and what is left without each: of its own words' counts, and of those of all words."""

    rows: SparseRows
    length: np.ndarray
    cells: np.ndarray
    whole: np.ndarray


def token_leave_one_out(counted: GroupStatistics, removed: RemovedRows) -> Tokens | None:
    """Rows of counts: only their own words change. None where a mode may lie on an edge that moves with the row."""
    cells, group = removed.cells, removed.group
    rows = cells if isinstance(cells, SparseRows) else compressed(np.asarray(cells))
    lengths, held = np.diff(rows.indptr), counted.statistics.total
    length = rows.sum_rows(rows.data)
    place = np.repeat(group * held.shape[-1], lengths) + rows.indices
    lost = rows.data if (removed.weight == 1).all() else np.repeat(removed.weight, lengths) * rows.data
    left = subtract_or_zero(held.take(place), lost)
    whole = subtract_or_zero(held.sum(axis=1)[group], removed.weight * length)
    if counted.estimate.has_prior:
        added = np.broadcast_to(counted.prior.concentration, held.shape) - counted.estimate.takes_mode
        if (added < 0).any():
            return None
        left, whole = left + added.take(place), whole + added.sum(axis=1)[group]
    return Tokens(rows, length, left, whole)


def sparse_leave_one_out(family: Family, counted: GroupStatistics, removed: RemovedRows) -> np.ndarray | None:
    """Sparse rows of columns of counts: what a row of zeros would have, then what the row's other cells change: (n, 1).

    A zero without the row depends on the group and on the row's weight alone, so rows of zeros are summed once for each
    of these; of families only whose statistics are Σw and Σwx. None for dense rows.
    """
    if not isinstance(removed.cells, SparseRows):
        return None
    (statistics, _, estimate), (_, group, weight, _) = counted, removed
    rows, width, start = removed.cells.without_zeros(), statistics.n_columns, counted.start
    held = np.broadcast_to(statistics.weight, statistics.total.shape)

    def log_p(x: np.ndarray, cell: np.ndarray, lost: Any) -> np.ndarray:
        """log p(x) in some cells of (groups, columns), without such a cell of weight `lost`."""
        left = subtract_or_zero(held.take(cell), lost)
        total = subtract_or_zero(statistics.total.take(cell), lost * x)
        some = Totals(left, np.minimum(total, left) if family.is_binary else total)
        belief: Any = None
        if start is not None:
            mine = {field.name: getattr(start, field.name).take(cell) for field in dataclasses.fields(start)}
            belief = start.replace(**mine)
        if estimate.integrates:
            return family.log_predictive(belief.update(some), x[None])[0]
        return family.log_prob(estimate.point(family, belief, some), x[None])[0]

    kinds, which = np.unique(np.stack([group, weight]), axis=1, return_inverse=True)
    zeros = np.zeros((2, kinds.shape[1]))  # sums, and how many zeros are impossible, whose −inf are counted apart
    for k, (code, lost) in enumerate(kinds.T):
        terms = log_p(np.zeros(width), int(code) * width + np.arange(width), lost)
        zeros[:, k] = np.where(np.isneginf(terms), 0.0, terms).sum(), np.isneginf(terms).sum()
    out = np.empty((len(group), 1))
    for part in row_chunks(rows.indptr):
        some = rows.rows(part)
        lengths = np.diff(some.indptr)
        cell, lost = np.repeat(group[part] * width, lengths) + some.indices, np.repeat(weight[part], lengths)
        x = np.asarray(some.data, dtype=float)
        zero, known = log_p(np.zeros(len(x)), cell, lost), ~np.isnan(x)
        terms = np.where(known, log_p(np.where(known, x, 0.0), cell, lost), 0.0)
        possible = ~np.isneginf(zero)
        sums, impossible = zeros[:, which.ravel()[part]]
        sums = sums + some.sum_rows(terms - np.where(possible, zero, 0.0))
        out[part, 0] = np.where(impossible > some.sum_rows(~possible), -np.inf, sums)
    return out


def subtract_or_zero(held: np.ndarray, removed: Any) -> np.ndarray:
    """A difference of counts, 0 where only rounding is left."""
    rest = held - removed
    return np.where(rest > 1e-10 * held, rest, 0.0)

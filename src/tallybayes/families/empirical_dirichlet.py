"""The Dirichlet under which the counts of several groups are most probable, from the counts that differ."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tallybayes.beliefs.log_gamma import digamma_rising, trigamma_rising
from tallybayes.statistics.segments import Segments

_ROUNDS = 40
_FEW = 8  # whole counts up to this have their derivatives summed, term by term
_CLOSE = 1e-7  # of log α, where a column is done


def fit_dirichlet(table: np.ndarray, segments: Segments) -> np.ndarray:
    """Concentrations that maximise Σ_groups [log Γ(A)/Γ(A + N) + Σ_k log Γ(α_k + n_k)/Γ(α_k)], per column; A = Σα.

    At the maximum h_k = Σ_groups [ψ(α_k + n_k) − ψ(α_k)] is the same number U = Σ_groups [ψ(A + N) − ψ(A)] for every
    level. Both fall in log α and log A along nearly straight lines, so Newton's method on log h_k = log U is quick; its
    Jacobian is a diagonal and a matrix of rank one.

    Neither h_k nor U asks which group has which count. So levels of a column with the same counts, in whichever groups,
    have one α, and columns whose levels are alike have the same ones. Of a hundred thousand words most are rare, and
    rare words were counted alike: only those that differ are solved for, in an order of their own. What is found does
    not depend on the order of groups, levels or columns, to the bit where the counts are whole; nor do its sums, as it
    is rounded to what adds up exactly.

    Parameters
    ----------
    table : ndarray of shape (groups, cells)
    segments : Segments
        How the cells fall into columns.

    Returns
    -------
    ndarray of shape (cells,)
    """
    rows = segments.sum(table)
    cell_key = _key_of(table)
    column_key = _mixed(_key_of(rows) + _ONE) + _sums(_mixed(cell_key + _TWO), segments)
    kinds, column, kind, n_columns = np.unique(column_key, return_index=True, return_inverse=True, return_counts=True)
    every_kind = np.repeat(kind, segments.sizes)
    _, cell, again, n_cells = np.unique(
        _mixed(cell_key + _mixed(kinds)[every_kind]), return_index=True, return_inverse=True, return_counts=True
    )
    order = np.argsort(every_kind[cell], kind="stable")
    cell, n_cells, of_kind = cell[order], n_cells[order], every_kind[cell][order]
    distinct = Segments(np.bincount(of_kind, minlength=len(kinds)))
    columns = _columns_of(
        np.sort(table[:, cell], axis=0),
        np.sort(rows[:, column], axis=0),
        n_cells / n_columns[of_kind],
        distinct,
        segments.sizes[column],
    )
    place = np.empty(len(order), dtype=np.intp)
    place[order] = np.arange(len(order))
    return _rounded(_climbed(columns), columns)[place[again]]


class _Columns(NamedTuple):
    """Columns to fit, without the levels that others are like."""

    segments: Segments
    many: np.ndarray  # how many levels of its column a cell stands for
    half: np.ndarray  # what is counted of levels that no group has seen: half a one, together
    few: np.ndarray  # in how many groups every cell has more than 0, 1, 2, … counts: ψ(α + n) − ψ(α) is Σ 1/(α + j) < n
    cell: np.ndarray  # of every count beyond these that a cell has in some group,
    seen: np.ndarray  # how far beyond,
    times: np.ndarray  # and in how many groups
    rows: np.ndarray  # of every group and column
    free: np.ndarray  # whether there are groups to compare; else the levels share one α, and only the strength moves
    low: np.ndarray  # bounds of log A
    high: np.ndarray
    alpha: np.ndarray  # where to start
    log_strength: np.ndarray

    def sum(self, cells: np.ndarray) -> np.ndarray:
        """Over all levels of every column."""
        return self.segments.sum(self.many * cells)

    def some(self, chosen: np.ndarray) -> _Columns:
        """These columns alone."""
        cells = self.segments.spread(chosen)
        pairs = cells[self.cell]
        return self._replace(
            segments=Segments(self.segments.sizes[chosen]),
            **{name: getattr(self, name)[cells] for name in ("many", "half", "few", "alpha")},
            **{name: getattr(self, name)[pairs] for name in ("seen", "times")},
            cell=(np.cumsum(cells) - 1)[self.cell[pairs]],
            rows=self.rows[:, chosen],
            **{name: getattr(self, name)[chosen] for name in ("free", "low", "high", "log_strength")},
        )


def _columns_of(
    table: np.ndarray, rows: np.ndarray, many: np.ndarray, segments: Segments, n_levels: np.ndarray
) -> _Columns:
    """The counts (groups, cells), in rising order, as they are fitted."""
    by_cell = np.ascontiguousarray(table.T)
    n_few = _FEW if (np.rint(by_cell) == by_cell).all() else 0
    few = np.stack([(by_cell > j).sum(axis=1) for j in range(n_few)], axis=-1) if n_few else np.zeros((len(by_cell), 0))
    first = by_cell > n_few
    first[:, 1:] &= by_cell[:, 1:] != by_cell[:, :-1]
    cell, group = np.nonzero(first)
    after = np.full(len(cell), table.shape[0])  # the last counts go on to the last group
    inner = cell[1:] == cell[:-1]
    after[:-1][inner] = group[1:][inner]
    n_groups = (rows > 0).sum(axis=0)
    free = n_groups > 1
    pooled = table.sum(axis=0)
    unseen = segments.spread(free) & (pooled == 0)
    half = unseen * 0.5 / np.maximum(segments.spread(segments.sum(many * unseen)), 1.0)
    low = np.log(2 / np.maximum(n_groups, 1))
    high = np.maximum(np.log(np.maximum(rows.sum(axis=0), 1e-300)), low)
    log_strength = np.clip(np.log(np.maximum(n_levels, 1)), low, high)
    alpha = np.where(segments.spread(free), pooled + half, 1.0)
    alpha *= segments.spread(np.exp(log_strength) / np.maximum(segments.sum(many * alpha), 1e-300))
    return _Columns(
        segments,
        many,
        half,
        few,
        cell,
        by_cell[first] - n_few,
        after - group,
        rows,
        free,
        low,
        high,
        alpha,
        log_strength,
    )


def _climbed(columns: _Columns) -> np.ndarray:
    """The concentrations of all cells. A column that is done stays as it is, whatever others do."""
    found, where = columns.alpha.copy(), np.arange(len(columns.alpha))
    moving: np.ndarray = np.asarray((columns.rows > 0).any(axis=0))
    found[~columns.segments.spread(moving)] = 1.0
    radius, before = np.full(len(moving), 2.0), np.zeros(len(moving))
    for _ in range(_ROUNDS):
        if not moving.all():
            cells = columns.segments.spread(moving)
            columns, where, radius, before = columns.some(moving), where[cells], radius[moving], before[moving]
        if not len(radius):
            break
        step, stretch, raw = _newton(columns, radius, before)
        radius, before = np.where(raw * before < 0, radius / 2, radius), raw
        log_strength = columns.log_strength + step
        alpha = columns.alpha * np.exp(np.clip(stretch, -3.0, 3.0))
        alpha *= columns.segments.spread(np.exp(log_strength) / np.maximum(columns.sum(alpha), 1e-300))
        columns = columns._replace(alpha=alpha, log_strength=log_strength)
        found[where] = alpha
        moving = np.asarray(np.maximum(np.abs(step), columns.segments.max(np.abs(stretch))) >= _CLOSE)
    return found


def _rounded(alpha: np.ndarray, columns: _Columns) -> np.ndarray:
    """Concentrations of so few bits that they and whole counts add up without rounding, in whichever order."""
    _, bits = np.frexp(columns.sum(alpha) + columns.rows.sum(axis=0))
    unit = columns.segments.spread(np.ldexp(1.0, bits - 52))
    return np.maximum(np.rint(alpha / unit), 1.0) * unit


def _newton(columns: _Columns, radius: np.ndarray, before: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A step of log A, one of every log α, and the former within its radius alone, as the next one compares with it."""
    segments, alpha, free, cell = columns.segments, columns.alpha, columns.free, columns.cell
    strength, n_cells = np.exp(columns.log_strength), len(columns.alpha)
    n_few = columns.few.shape[1]
    start, half, terms = alpha[cell] + n_few, columns.half / alpha, 1.0 / (alpha[:, None] + np.arange(n_few))
    slope = half + np.bincount(cell, columns.times * digamma_rising(start, columns.seen), n_cells)
    bend = np.bincount(cell, columns.times * trigamma_rising(start, columns.seen), n_cells) - half / alpha
    slope += (columns.few * terms).sum(axis=1)
    bend -= (columns.few * terms * terms).sum(axis=1)
    common = digamma_rising(strength, columns.rows).sum(axis=0)
    fall = -strength * trigamma_rising(strength, columns.rows).sum(axis=0) / common
    gain = columns.sum(alpha * slope) - strength * common  # of the evidence, for a larger log A
    seen = slope > 0
    log_slope = np.log(np.where(seen, slope, 1.0))
    steep = np.where(seen, -alpha * bend / np.where(seen, slope, 1.0), 1.0)
    share = alpha / segments.spread(strength)
    gap = np.where(seen, log_slope - segments.spread(np.log(common)), 0.0)
    # The two forms of Newton's step in log A: with every α_k at its best for that A, and with the mean held.
    give = np.where(free, columns.sum(share / steep), 0.0)
    top = np.where(free, columns.sum(share * gap / steep), gain)
    held = strength * common * (1 - fall) - columns.sum(alpha * (slope + alpha * bend))
    bottom = np.where(free, 1 - fall * give, held)
    raw = np.where(bottom > 0, top / np.where(bottom > 0, bottom, 1.0), np.sign(gain) * 9.0)
    radius = np.where(raw * before < 0, radius / 2, radius)
    raw = np.clip(raw, -radius, radius)
    step = np.clip(columns.log_strength + raw, columns.low, columns.high) - columns.log_strength
    # Given that step, all log h_k are to meet in one number, so that the α_k sum to the new A.
    meet = np.where(free, (columns.sum(share * log_slope / steep) - step) / np.where(give > 0, give, 1.0), 0.0)
    stretch = np.where(segments.spread(free), (log_slope - segments.spread(meet)) / steep, segments.spread(step))
    return step, stretch, raw


# ---- Keys: numbers of 64 bits that are the same for what is alike, and for nothing else --------------------------

_ONE, _TWO = np.uint64(0x9E3779B97F4A7C15), np.uint64(0x3C6EF372FE94F82A)
_FACTORS = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def _mixed(keys: np.ndarray) -> np.ndarray:
    """Keys with their bits stirred, so that sums of them tell apart what was summed; 0 stays 0 (splitmix64)."""
    keys = keys.copy()
    for factor in _FACTORS:
        keys ^= keys >> np.uint64(30)
        keys *= factor
    keys ^= keys >> np.uint64(31)
    return keys


def _key_of(table: np.ndarray) -> np.ndarray:
    """A key of the numbers in every column of a table, in whichever order."""
    keys = np.zeros(table.shape[1], dtype=np.uint64)
    for row in table:  # one at a time stays in cache
        keys += _mixed((np.ascontiguousarray(row, dtype=np.float64) + 0.0).view(np.uint64))  # −0 is 0
    return keys


def _sums(keys: np.ndarray, segments: Segments) -> np.ndarray:
    """The sum of the keys of every column, modulo 2⁶⁴."""
    ends = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(keys, dtype=np.uint64)])
    return ends[segments.offsets[1:]] - ends[segments.offsets[:-1]]

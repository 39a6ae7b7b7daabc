"""Empirical Dirichlets in NumPy: the truth the compiled ones are tested against."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tallybayes.kernels.arguments import Float64Array, Int64Array

_ROUNDS = 40
_FEW = 8  # whole counts up to this have their derivatives summed, term by term
_CLOSE = 1e-7  # of log α, where a column is done
_BERNOULLI = (-1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)  # B_2k / 2k, from the fourth on


def climb_dirichlet(
    counts: Float64Array,
    rows: Float64Array,
    many: Float64Array,
    sizes: Int64Array,
    n_levels: Int64Array,
    n_groups: int,
) -> Float64Array:
    """All columns at once, as long as they move.

    At the maximum h_k = Σ_groups [ψ(α_k + n_k) − ψ(α_k)] is the same number U = Σ_groups [ψ(A + N) − ψ(A)] for every
    level. Both fall in log α and log A along nearly straight lines, so Newton's method on log h_k = log U is quick; its
    Jacobian is a diagonal and a matrix of rank one.
    """
    filled = sizes > 0
    columns = _columns_of(
        counts.reshape(-1, n_groups),
        rows.reshape(-1, n_groups)[filled].T,
        many,
        _Parts(sizes[filled]),
        n_levels[filled],
    )
    return _rounded(_climbed(columns), columns)


class _Parts:
    """Cells that fall into columns, none of which is empty."""

    def __init__(self, sizes: np.ndarray) -> None:
        self.sizes, self.starts = sizes, np.cumsum(sizes) - sizes

    def sum(self, cells: np.ndarray) -> np.ndarray:
        return np.add.reduceat(cells, self.starts) if len(self.sizes) else np.zeros(0)

    def max(self, cells: np.ndarray) -> np.ndarray:
        return np.maximum.reduceat(cells, self.starts) if len(self.sizes) else np.zeros(0)

    def spread(self, columns: np.ndarray) -> np.ndarray:
        return np.repeat(columns, self.sizes)


class _Columns(NamedTuple):
    parts: _Parts
    many: np.ndarray  # how many levels of its column a cell stands for
    half: np.ndarray  # what is counted of levels that no group has seen: half a one, together
    few: np.ndarray  # in how many groups every cell has more than 0, 1, 2, … counts: ψ(α + n) − ψ(α) is Σ 1/(α + j) < n
    cell: np.ndarray  # of every count beyond these that a cell has in some group,
    seen: np.ndarray  # how far beyond,
    times: np.ndarray  # and in how many groups
    rows: np.ndarray  # of every group and column
    several: np.ndarray  # whether there are levels to compare; of a single one all concentrations are as good
    free: np.ndarray  # whether there are groups to compare; else the levels share one α, and only the strength moves
    low: np.ndarray  # bounds of log A
    high: np.ndarray
    alpha: np.ndarray  # where to start
    log_strength: np.ndarray

    def sum(self, cells: np.ndarray) -> np.ndarray:
        """Over all levels of every column."""
        return self.parts.sum(self.many * cells)

    def some(self, chosen: np.ndarray) -> _Columns:
        """These columns alone."""
        cells = self.parts.spread(chosen)
        pairs = cells[self.cell]
        return self._replace(
            parts=_Parts(self.parts.sizes[chosen]),
            **{name: getattr(self, name)[cells] for name in ("many", "half", "few", "alpha")},
            **{name: getattr(self, name)[pairs] for name in ("seen", "times")},
            cell=(np.cumsum(cells) - 1)[self.cell[pairs]],
            rows=self.rows[:, chosen],
            **{name: getattr(self, name)[chosen] for name in ("several", "free", "low", "high", "log_strength")},
        )


def _columns_of(
    by_cell: np.ndarray, rows: np.ndarray, many: np.ndarray, parts: _Parts, n_levels: np.ndarray
) -> _Columns:
    """The counts (cells, groups), in rising order, as they are fitted."""
    n_few = _FEW if (np.rint(by_cell) == by_cell).all() else 0
    few = np.stack([(by_cell > j).sum(axis=1) for j in range(n_few)], axis=-1) if n_few else np.zeros((len(by_cell), 0))
    first = by_cell > n_few
    first[:, 1:] &= by_cell[:, 1:] != by_cell[:, :-1]
    cell, group = np.nonzero(first)
    after = np.full(len(cell), by_cell.shape[1])  # the last counts go on to the last group
    inner = cell[1:] == cell[:-1]
    after[:-1][inner] = group[1:][inner]
    n_groups = (rows > 0).sum(axis=0)
    free = n_groups > 1
    pooled = by_cell.sum(axis=1)
    unseen = parts.spread(free) & (pooled == 0)
    half = unseen * 0.5 / np.maximum(parts.spread(parts.sum(many * unseen)), 1.0)
    low = np.log(2 / np.maximum(n_groups, 1))
    high = np.maximum(np.log(np.maximum(rows.sum(axis=0), 1e-300)), low)
    log_strength = np.clip(np.log(np.maximum(n_levels, 1)), low, high)
    alpha = np.where(parts.spread(free), pooled + half, 1.0)
    alpha *= parts.spread(np.exp(log_strength) / np.maximum(parts.sum(many * alpha), 1e-300))
    seen = by_cell[first] - n_few
    return _Columns(
        parts, many, half, few, cell, seen, after - group, rows, n_levels > 1, free, low, high, alpha, log_strength
    )


def _climbed(columns: _Columns) -> np.ndarray:
    """The concentrations of all cells. A column that is done stays as it is, whatever others do."""
    found, where = columns.alpha.copy(), np.arange(len(columns.alpha))
    counted: np.ndarray = np.asarray((columns.rows > 0).any(axis=0))
    found[~columns.parts.spread(counted)] = 1.0
    moving = counted & columns.several
    radius, before = np.full(len(moving), 2.0), np.zeros(len(moving))
    for _ in range(_ROUNDS):
        if not moving.all():
            cells = columns.parts.spread(moving)
            columns, where, radius, before = columns.some(moving), where[cells], radius[moving], before[moving]
        if not len(radius):
            break
        step, stretch, raw = _newton(columns, radius, before)
        radius, before = np.where(raw * before < 0, radius / 2, radius), raw
        log_strength = columns.log_strength + step
        alpha = columns.alpha * np.exp(np.clip(stretch, -3.0, 3.0))
        alpha *= columns.parts.spread(np.exp(log_strength) / np.maximum(columns.sum(alpha), 1e-300))
        columns = columns._replace(alpha=alpha, log_strength=log_strength)
        found[where] = alpha
        moving = np.asarray(np.maximum(np.abs(step), columns.parts.max(np.abs(stretch))) >= _CLOSE)
    return found


def _rounded(alpha: np.ndarray, columns: _Columns) -> np.ndarray:
    """Concentrations of so few bits that they and whole counts add up without rounding, in whichever order."""
    _, bits = np.frexp(columns.sum(alpha) + columns.rows.sum(axis=0))
    unit = columns.parts.spread(np.ldexp(1.0, bits - 52))
    return np.maximum(np.rint(alpha / unit), 1.0) * unit


def _newton(columns: _Columns, radius: np.ndarray, before: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A step of log A, one of every log α, and the former within its radius alone, as the next one compares with it."""
    parts, alpha, free, cell = columns.parts, columns.alpha, columns.free, columns.cell
    strength, n_cells = np.exp(columns.log_strength), len(columns.alpha)
    n_few = columns.few.shape[1]
    half, terms = columns.half / alpha, 1.0 / (alpha[:, None] + np.arange(n_few))
    first, second = _rising(alpha[cell] + n_few, columns.seen)
    slope = half + (columns.few * terms).sum(axis=1) + np.bincount(cell, columns.times * first, n_cells)
    bend = np.bincount(cell, columns.times * second, n_cells) - half / alpha - (columns.few * terms**2).sum(axis=1)
    first, second = _rising(strength[None], columns.rows)
    common = first.sum(axis=0)
    fall = -strength * second.sum(axis=0) / common
    gain = columns.sum(alpha * slope) - strength * common  # of the evidence, for a larger log A
    seen = slope > 0
    log_slope = np.log(np.where(seen, slope, 1.0))
    steep = np.where(seen, -alpha * bend / np.where(seen, slope, 1.0), 1.0)
    share = alpha / parts.spread(strength)
    gap = np.where(seen, log_slope - parts.spread(np.log(common)), 0.0)
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
    stretch = np.where(parts.spread(free), (log_slope - parts.spread(meet)) / steep, parts.spread(step))
    return step, stretch, raw


def _rising(start: np.ndarray, steps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """ψ(start + steps) − ψ(start), and the same of ψ′ to six digits, which is enough for the steps of Newton's method.

    By recurrence up to 8, then by asymptotic series, all as differences, which nothing cancels in.
    """
    a = start + np.zeros_like(steps)
    b = a + steps
    first, second = np.zeros((2, *a.shape))
    while (low := a < 8.0).any():
        over = np.where(low, 1.0 / (a * b), 0.0)
        first += steps * over
        second -= steps * (a + b) * over * over
        a, b = a + low, b + low
    over = 1.0 / (a * b)
    r, t, by_one = b * over, a * over, steps * over
    p, q, m = r * r, t * t, r * t
    total, power, series = np.ones_like(a), np.ones_like(a), np.full(a.shape, 1 / 12)
    for term in _BERNOULLI:  # times Σ pⁱ qʲ with i + j = k
        power *= q
        total = p * total + power
        series += term * total
    first += np.log1p(steps * r) + (0.5 * by_one + by_one * (r + t) * series)
    second -= by_one * (1.0 + 0.5 * (r + t) + (p + m + q) / 6.0 - (p * (p + m) + m * m + q * (m + q)) / 30.0)
    return first, second

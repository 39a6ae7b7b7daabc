"""Maximum likelihood fit of Dirichlet distributions (empirical Bayes) by Newton's method, in NumPy.

At the maximum h_k = Σ_groups [ψ(α_k + n_k) − ψ(α_k)] equals U = Σ_groups [ψ(A + N) − ψ(A)] for every level k, where
A = Σα. Both are nearly linear in log α and log A. Newton's method for log h_k = log U therefore converges in few
iterations; its Jacobian is a diagonal plus a matrix of rank one (Minka, 2000).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tallybayes.kernels.arguments import Float64Array, Int64Array

_MAX_ITERATIONS = 40
_FEW = 8  # ψ differences of integer counts up to this are sums of reciprocals
_TOLERANCE = 1e-7  # of log α
_BERNOULLI = (-1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)  # B_2k / 2k, from the fourth on


def climb_dirichlet(
    counts: Float64Array,
    rows: Float64Array,
    many: Float64Array,
    sizes: Int64Array,
    n_levels: Int64Array,
    n_groups: int,
) -> Float64Array:
    """Fit all columns at once; columns that have converged are removed from the iteration."""
    filled = sizes > 0
    columns = _columns_of(
        counts.reshape(-1, n_groups),
        rows.reshape(-1, n_groups)[filled].T,
        many,
        _Parts(sizes[filled]),
        n_levels[filled],
    )
    return _round(_maximize(columns), columns)


class _Parts:
    """Partition of cells into nonempty columns."""

    def __init__(self, sizes: np.ndarray) -> None:
        self.sizes = sizes
        self.starts = np.cumsum(sizes) - sizes

    def sum(self, cells: np.ndarray) -> np.ndarray:
        """Return the sum of the cells of every column."""
        return np.add.reduceat(cells, self.starts) if len(self.sizes) else np.zeros(0)

    def max(self, cells: np.ndarray) -> np.ndarray:
        """Return the largest cell of every column."""
        return np.maximum.reduceat(cells, self.starts) if len(self.sizes) else np.zeros(0)

    def to_cells(self, columns: np.ndarray) -> np.ndarray:
        """Repeat one number per column over its cells."""
        return np.repeat(columns, self.sizes)


class _Columns(NamedTuple):
    """Counts of some columns in the form of the iteration, and the current concentrations.

    ψ(α + n) − ψ(α) is Σ 1/(α + j) over j < n. Its first terms are computed from `few`; `cell`, `excess` and `times`
    hold the larger counts.
    """

    parts: _Parts
    many: np.ndarray  # number of levels that a cell represents
    half: np.ndarray  # pseudo-count of levels without counts in any group: ½ in total
    few: np.ndarray  # number of groups in which a cell has more than 0, 1, 2, … counts
    cell: np.ndarray  # cell of every distinct larger count
    excess: np.ndarray  # count minus `_FEW`
    times: np.ndarray  # number of groups with this count
    rows: np.ndarray  # totals by group and column
    several: np.ndarray  # whether a column has more than one level; otherwise its α has no effect
    free: np.ndarray  # whether a column has more than one group; otherwise all its levels have the same α
    low: np.ndarray  # bounds of log A
    high: np.ndarray
    alpha: np.ndarray  # current concentrations
    log_strength: np.ndarray  # current log A

    def sum(self, cells: np.ndarray) -> np.ndarray:
        """Return the sum over all levels of every column."""
        return self.parts.sum(self.many * cells)

    def subset(self, chosen: np.ndarray) -> _Columns:
        """Return the columns of a mask."""
        cells = self.parts.to_cells(chosen)
        pairs = cells[self.cell]
        selected = {
            **{name: getattr(self, name)[cells] for name in ("many", "half", "few", "alpha")},
            **{name: getattr(self, name)[pairs] for name in ("excess", "times")},
            **{name: getattr(self, name)[chosen] for name in ("several", "free", "low", "high", "log_strength")},
        }
        return _Columns(
            parts=_Parts(self.parts.sizes[chosen]),
            cell=(np.cumsum(cells) - 1)[self.cell[pairs]],
            rows=self.rows[:, chosen],
            **selected,
        )

    def moved(self, alpha: np.ndarray, log_strength: np.ndarray) -> _Columns:
        """Return the same counts with other concentrations."""
        return _Columns(*self[:-2], alpha, log_strength)


def _columns_of(
    by_cell: np.ndarray, rows: np.ndarray, many: np.ndarray, parts: _Parts, n_levels: np.ndarray
) -> _Columns:
    """Return counts (cells, groups), sorted by group, in the form of the iteration, with initial concentrations."""
    n_few = _FEW if (np.rint(by_cell) == by_cell).all() else 0
    few = np.stack([(by_cell > j).sum(axis=1) for j in range(n_few)], axis=-1) if n_few else np.zeros((len(by_cell), 0))
    first = by_cell > n_few
    first[:, 1:] &= by_cell[:, 1:] != by_cell[:, :-1]
    cell, group = np.nonzero(first)
    after = np.full(len(cell), by_cell.shape[1])  # the largest count of a cell continues to the last group
    inner = cell[1:] == cell[:-1]
    after[:-1][inner] = group[1:][inner]
    n_groups = (rows > 0).sum(axis=0)
    free = n_groups > 1
    pooled = by_cell.sum(axis=1)
    unseen = parts.to_cells(free) & (pooled == 0)
    half = unseen * 0.5 / np.maximum(parts.to_cells(parts.sum(many * unseen)), 1.0)
    low = np.log(2 / np.maximum(n_groups, 1))
    high = np.maximum(np.log(np.maximum(rows.sum(axis=0), 1e-300)), low)
    log_strength = np.clip(np.log(np.maximum(n_levels, 1)), low, high)
    alpha = np.where(parts.to_cells(free), pooled + half, 1.0)
    alpha *= parts.to_cells(np.exp(log_strength) / np.maximum(parts.sum(many * alpha), 1e-300))
    excess = by_cell[first] - n_few
    several = n_levels > 1
    times = after - group
    return _Columns(parts, many, half, few, cell, excess, times, rows, several, free, low, high, alpha, log_strength)


def _maximize(columns: _Columns) -> np.ndarray:
    """Return the concentrations of all cells. The result for a column does not depend on other columns."""
    result = columns.alpha.copy()
    index = np.arange(len(columns.alpha))
    counted: np.ndarray = np.asarray((columns.rows > 0).any(axis=0))
    result[~columns.parts.to_cells(counted)] = 1.0
    active = counted & columns.several
    radius = np.full(len(active), 2.0)
    previous = np.zeros(len(active))
    for _ in range(_MAX_ITERATIONS):
        if not active.all():
            index = index[columns.parts.to_cells(active)]
            columns = columns.subset(active)
            radius = radius[active]
            previous = previous[active]
        if not len(radius):
            break
        step, stretch, raw = _newton_step(columns, radius, previous)
        radius = np.where(raw * previous < 0, radius / 2, radius)
        previous = raw
        log_strength = columns.log_strength + step
        alpha = columns.alpha * np.exp(np.clip(stretch, -3.0, 3.0))
        alpha *= columns.parts.to_cells(np.exp(log_strength) / np.maximum(columns.sum(alpha), 1e-300))
        columns = columns.moved(alpha, log_strength)
        result[index] = alpha
        active = np.asarray(np.maximum(np.abs(step), columns.parts.max(np.abs(stretch))) >= _TOLERANCE)
    return result


def _round(alpha: np.ndarray, columns: _Columns) -> np.ndarray:
    """Round concentrations to so few bits that sums with integer counts are exact, in any order."""
    _, bits = np.frexp(columns.sum(alpha) + columns.rows.sum(axis=0))
    unit = columns.parts.to_cells(np.ldexp(1.0, bits - 52))
    return np.maximum(np.rint(alpha / unit), 1.0) * unit


def _newton_step(
    columns: _Columns, radius: np.ndarray, previous: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the steps of log A and of every log α, and the step of log A before it is clipped to the bounds.

    The trust radius is halved if the step changes its sign.
    """
    parts = columns.parts
    alpha = columns.alpha
    free = columns.free
    cell = columns.cell
    strength = np.exp(columns.log_strength)
    n_cells = len(alpha)
    n_few = columns.few.shape[1]
    half = columns.half / alpha
    terms = 1.0 / (alpha[:, None] + np.arange(n_few))
    first, second = _digamma_differences(alpha[cell] + n_few, columns.excess)
    slope = half + (columns.few * terms).sum(axis=1) + np.bincount(cell, columns.times * first, n_cells)  # h_k
    curvature = np.bincount(cell, columns.times * second, n_cells) - half / alpha - (columns.few * terms**2).sum(axis=1)
    first, second = _digamma_differences(strength[None], columns.rows)
    common = first.sum(axis=0)  # U
    decay = -strength * second.sum(axis=0) / common  # −d log U / d log A
    gain = columns.sum(alpha * slope) - strength * common  # derivative of the log evidence with respect to log A
    counted = slope > 0
    log_slope = np.log(np.where(counted, slope, 1.0))
    steepness = np.where(counted, -alpha * curvature / np.where(counted, slope, 1.0), 1.0)  # −d log h_k / d log α_k
    proportion = alpha / parts.to_cells(strength)
    difference = np.where(counted, log_slope - parts.to_cells(np.log(common)), 0.0)
    # Newton's step of log A: with every α_k optimal for the new A, or, for a single group, with fixed proportions.
    response = np.where(free, columns.sum(proportion / steepness), 0.0)
    numerator = np.where(free, columns.sum(proportion * difference / steepness), gain)
    fixed = strength * common * (1 - decay) - columns.sum(alpha * (slope + alpha * curvature))
    denominator = np.where(free, 1 - decay * response, fixed)
    raw = np.where(denominator > 0, numerator / np.where(denominator > 0, denominator, 1.0), np.sign(gain) * 9.0)
    radius = np.where(raw * previous < 0, radius / 2, radius)
    raw = np.clip(raw, -radius, radius)
    step = np.clip(columns.log_strength + raw, columns.low, columns.high) - columns.log_strength
    # Given that step, the common value of all log h_k is chosen so that the α_k sum to the new A.
    level_sum = columns.sum(proportion * log_slope / steepness) - step
    common_log = np.where(free, level_sum / np.where(response > 0, response, 1.0), 0.0)
    stretch = np.where(parts.to_cells(free), (log_slope - parts.to_cells(common_log)) / steepness, parts.to_cells(step))
    return step, stretch, raw


def _digamma_differences(start: np.ndarray, steps: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return ψ(start + steps) − ψ(start), and the same difference of ψ′ to six digits, enough for Newton's method.

    By recurrence up to 8, then by asymptotic series. All terms are computed as differences, without cancellation.
    """
    a = start + np.zeros_like(steps)
    b = a + steps
    first, second = np.zeros((2, *a.shape))
    while (low := a < 8.0).any():
        over = np.where(low, 1.0 / (a * b), 0.0)
        first += steps * over
        second -= steps * (a + b) * over * over
        a = a + low
        b = b + low
    over = 1.0 / (a * b)
    r = b * over
    t = a * over
    scaled = steps * over
    p = r * r
    q = t * t
    m = r * t
    total = np.ones_like(a)
    power = np.ones_like(a)
    series = np.full(a.shape, 1 / 12)
    for term in _BERNOULLI:  # times Σ pⁱ qʲ with i + j = k
        power *= q
        total = p * total + power
        series += term * total
    first += np.log1p(steps * r) + (0.5 * scaled + scaled * (r + t) * series)
    second -= scaled * (1.0 + 0.5 * (r + t) + (p + m + q) / 6.0 - (p * (p + m) + m * m + q * (m + q)) / 30.0)
    return first, second

"""Differences of log Γ and its derivatives without cancellation of large, nearly equal terms."""

from __future__ import annotations

import numpy as np
from scipy.special import digamma, gammaln

from tallybayes.statistics.counts import Segments

_HALF_LOG_TWO_PI = 0.5 * float(np.log(2 * np.pi))
_N_FACTORIALS = 1024  # log Γ of smaller integers comes from a lookup table


def _float_arrays(start: np.ndarray, steps: np.ndarray | float) -> tuple[np.ndarray, np.ndarray]:
    """Return float64 arrays of one shape."""
    first, second = np.broadcast_arrays(np.asarray(start, np.float64), np.asarray(steps, np.float64))
    return first, second


def log_rising(start: np.ndarray, steps: np.ndarray | float) -> np.ndarray:
    """Return log Γ(start + steps) − log Γ(start): the log of the rising factorial, 0 if `steps` is 0.

    For start > 50 the difference is computed from Stirling's series, so that large counts keep full precision.

    Parameters
    ----------
    start, steps : arrays of one shape, start > 0, steps >= 0

    Returns
    -------
    ndarray
    """
    start, steps = _float_arrays(start, steps)
    large = start > 50.0
    a = np.where(large, start, 50.0)
    up = np.where(large, steps, 0.0)
    b = a + up
    # log Γ(z) = (z − ½) log z − z + ½ log 2π + 1/(12 z) − 1/(360 z³) + 1/(1260 z⁵) − …
    tail = [1 / z * (1 / 12 - (1 / z**2) * (1 / 360 - (1 / z**2) * (1 / 1260 - 1 / z**2 / 1680))) for z in (a, b)]
    series = (a - 0.5) * np.log1p(up / a) + up * (np.log(b) - 1.0) + tail[1] - tail[0]  # `up` is more exact than b − a
    small = np.where(large | (steps == 0), 1.0, start)  # columns without levels have start = 0
    plain = gammaln(small + np.where(large, 0.0, steps)) - gammaln(small)
    return np.where(steps == 0, 0.0, np.where(large, series, plain))


def stirling_remainder(z: np.ndarray) -> np.ndarray:
    """Return log Γ(z) minus Stirling's (z − ½) log z − z + ½ log 2π: about 1/(12 z) for large z.

    Sums of log Γ whose Stirling terms cancel analytically can be computed from the remainders without loss of digits.

    Parameters
    ----------
    z : array of positive numbers

    Returns
    -------
    ndarray, like `z`
    """
    z = np.asarray(z, dtype=np.float64)
    r = 1.0 / np.maximum(z, 16.0)
    s = r * r
    series = r * (1 / 12 - s * (1 / 360 - s * (1 / 1260 - s * (1 / 1680 - s * (1 / 1188 - s * 691 / 360360)))))
    if (z >= 16.0).all():
        return np.asarray(series)
    low = np.minimum(z, 16.0)
    return np.where(z >= 16.0, series, gammaln(low) - (low - 0.5) * np.log(low) + low - _HALF_LOG_TWO_PI)


def log_growth(start: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Return log((start + steps) / start) without loss of digits for small steps, finite if the ratio overflows."""
    small = steps < start
    return np.where(small, np.log1p(np.where(small, steps, 0.0) / start), np.log(start + steps) - np.log(start))


def log_dirichlet_norm_ratio(start: np.ndarray, steps: np.ndarray, segments: Segments) -> np.ndarray:
    """Return Σ log_rising(start, steps) − log_rising(Σ start, Σ steps) over the cells of every column.

    This is the log of the ratio of two Dirichlet normalizing constants. Its terms grow like n log n, the result like
    the entropy of the proportions. The sum is therefore computed from logarithms of proportions: with z = start + steps
    and Z = Σz,

        Σ [steps log(z/Z) + start (log(z/Z) − log(start/Σ start)) − ½ log(z/start)] + ½ log(Z/Σ start) + …

    Parameters
    ----------
    start, steps : arrays of shape (…, cells), start > 0, steps >= 0
    segments : Segments
        The columns as contiguous segments of the cells.

    Returns
    -------
    ndarray of shape (…, columns)
    """
    before = segments.sum(start)
    added = segments.sum(steps)
    empty = before == 0  # columns without levels
    if empty.any():
        before = np.where(empty, 1.0, before)
    ends = start + steps
    after = before + added
    growth = log_growth(start, steps)
    total_growth = log_growth(before, added)
    log_p, others = _log_proportions(ends, after, segments)
    log_p_start, others_start = _log_proportions(start, before, segments)
    # Growth of a cell relative to its column. Computed from the other cells where these hold little of the column.
    relative = growth - segments.broadcast_to_cells(total_growth)
    from_others = np.maximum(others, others_start) < np.maximum(growth, segments.broadcast_to_cells(total_growth))
    relative = np.where(from_others, log_p - log_p_start, relative)
    cells = steps * log_p + start * relative - 0.5 * growth + (stirling_remainder(ends) - stirling_remainder(start))
    column_terms = 0.5 * total_growth - (stirling_remainder(after) - stirling_remainder(before))
    return np.where(empty | (added == 0), 0.0, segments.sum(np.where(steps + start > 0, cells, 0.0)) + column_terms)


def _log_proportions(cells: np.ndarray, totals: np.ndarray, segments: Segments) -> tuple[np.ndarray, np.ndarray]:
    """Return the log proportions of the cells of each column, and the proportion of the column's other cells.

    The second array is inf for cells of at most half their column. Larger cells use log1p(−others): more exact.
    """
    column_totals = segments.broadcast_to_cells(totals)
    large = cells > 0.5 * column_totals
    others = segments.broadcast_to_cells(segments.sum(np.where(large, 0.0, cells))) / column_totals
    log_proportions = np.where(large, np.log1p(-np.where(large, others, 0.0)), np.log(cells / column_totals))
    return log_proportions, np.where(large, others, np.inf)


def log_choose(start: np.ndarray, steps: np.ndarray | float) -> np.ndarray:
    """Return log Γ(start + steps) / (Γ(start) Γ(steps + 1)): a generalized log binomial coefficient.

    Computed as one function because the rising factorial and the factorial can both be far larger than their ratio.

    Parameters
    ----------
    start, steps : arrays that broadcast, start > 0, steps >= 0

    Returns
    -------
    ndarray
    """
    if np.max(steps, initial=0.0) < _N_FACTORIALS:  # false for NaN
        return log_rising(start, steps) - log_factorials(np.asarray(steps))
    start, steps = _float_arrays(start, steps)
    few = steps <= np.maximum(start, 1.0)
    a = np.where(few, start, 1.0)
    n = np.where(few, steps, 0.0)
    many_a = np.where(few, 1.0, start)
    many_n = np.where(few, 1.0, steps)
    up = np.maximum(many_a - 1.0, 0.0)
    down = np.maximum(1.0 - many_a, 0.0)
    swapped = log_rising(many_n + 1.0, up) - log_rising(many_n + many_a, down) - gammaln(many_a)
    return np.where(few, log_rising(a, n) - gammaln(n + 1.0), swapped)


def digamma_rising(start: np.ndarray, steps: np.ndarray | float) -> np.ndarray:
    """Return ψ(start + steps) − ψ(start): the derivative of `log_rising` with respect to `start`.

    For start > 50 the difference is computed from the asymptotic series, so that no digits cancel.

    Parameters
    ----------
    start, steps : arrays of one shape, start > 0, steps >= 0

    Returns
    -------
    ndarray
    """
    start, steps = _float_arrays(start, steps)
    large = start > 50.0
    a = np.where(large, start, 50.0)
    b = a + steps
    # ψ(z) = log z − 1/(2 z) − 1/(12 z²) + 1/(120 z⁴) − …, and 1/a − 1/b = steps / (a b)
    over = 1.0 / (a * b)
    series = np.log1p(steps / a)
    series += steps * over * (0.5 + (a + b) * over * (1 / 12 - (a * a + b * b) * over * over / 120))
    if large.all():
        return np.asarray(series)
    small = ~large
    series[small] = digamma(start[small] + steps[small]) - digamma(start[small])
    return np.asarray(series)


def trigamma_rising(start: np.ndarray, steps: np.ndarray | float) -> np.ndarray:
    """Return ψ′(start + steps) − ψ′(start), the second derivative of `log_rising`, to about six digits.

    Six digits suffice for Newton's method, whose fixed point depends on the first derivative only.

    Parameters
    ----------
    start, steps : arrays of one shape, start > 0, steps >= 0

    Returns
    -------
    ndarray
    """
    start, steps = _float_arrays(start, steps)
    out = np.zeros(start.shape)
    a = start
    b = start + steps
    # ψ′(z) = ψ′(z + 1) + 1/z² up to z > 4, then 1/z + 1/(2 z²) + 1/(6 z³) − 1/(30 z⁵) + …, all as differences:
    # 1/bᵏ − 1/aᵏ = −(steps / (a b)) Σ (1/a)^i (1/b)^(k − 1 − i)
    for _ in range(4 if (start < 20.0).any() else 0):
        over = 1.0 / (a * b)
        out -= steps * (a + b) * over * over
        a = a + 1.0
        b = b + 1.0
    r = 1.0 / a
    t = 1.0 / b
    rr = r * r
    rt = r * t
    tt = t * t
    remainder = 1.0 + 0.5 * (r + t) + (rr + rt + tt) / 6.0 - (rr * (rr + rt) + rt * rt + tt * (rt + tt)) / 30.0
    return np.asarray(out - steps * rt * remainder)


def log_factorials(x: np.ndarray) -> np.ndarray:
    """Return log Γ(x + 1), from a lookup table if all values are small nonnegative integers.

    Parameters
    ----------
    x : array of numbers above −1, or NaN

    Returns
    -------
    ndarray, like `x`
    """
    if x.size and x.min() >= 0 and x.max() < _N_FACTORIALS:  # false for NaN
        whole = x.astype(np.intp, copy=False)
        if x.dtype.kind in "iu" or (whole == x).all():
            return np.asarray(gammaln(np.arange(1.0, _N_FACTORIALS + 1)).take(whole))
    return np.asarray(gammaln(np.asarray(x, dtype=np.float64) + 1.0))

"""Differences of log Γ that stay exact where the two terms are large and nearly equal."""

from __future__ import annotations

import numpy as np
from scipy.special import digamma, gammaln

from tallybayes.statistics.segments import Segments

_HALF_LOG_TWO_PI = 0.5 * float(np.log(2 * np.pi))
_N_FACTORIALS = 1024  # numbers below this have their log Γ looked up


def log_gamma_half_step(z: np.ndarray) -> np.ndarray:
    """log Γ(z + ½) − log Γ(z), by its asymptotic series above 50, where subtracting would lose digits.

    Parameters
    ----------
    z : array of positive numbers

    Returns
    -------
    ndarray, like `z`
    """
    z = np.asarray(z, dtype=np.float64)
    r = 1.0 / np.maximum(z, 50.0)
    tail = r * (-1 / 8 + r * r * (1 / 192 + r * r * (-1 / 640 + r * r * 17 / 14336)))
    series = 0.5 * np.log(np.maximum(z, 50.0)) + tail
    return np.where(z > 50.0, series, gammaln(z + 0.5) - gammaln(z))


def log_rising(start: np.ndarray, steps: np.ndarray | float) -> np.ndarray:
    """log Γ(start + steps) − log Γ(start): the log of the rising factorial, 0 where `steps` is 0.

    Where start is large beside steps the difference of two large logarithms is replaced by Stirling's series of
    the difference, so that log evidences of big counts keep their digits.

    Parameters
    ----------
    start, steps : arrays of one shape, start > 0, steps >= 0

    Returns
    -------
    ndarray
    """
    start, steps = np.broadcast_arrays(np.asarray(start, np.float64), np.asarray(steps, np.float64))
    large = start > 50.0
    a = np.where(large, start, 50.0)
    up = np.where(large, steps, 0.0)
    b = a + up
    # log Γ(z) = (z − ½) log z − z + ½ log 2π + 1/(12 z) − 1/(360 z³) + 1/(1260 z⁵) − …
    tail = [1 / z * (1 / 12 - (1 / z**2) * (1 / 360 - (1 / z**2) * (1 / 1260 - 1 / z**2 / 1680))) for z in (a, b)]
    series = (a - 0.5) * np.log1p(up / a) + up * (np.log(b) - 1.0) + tail[1] - tail[0]  # b − a would round a small up
    small = np.where(large | (steps == 0), 1.0, start)  # a column without levels starts from 0
    plain = gammaln(small + np.where(large, 0.0, steps)) - gammaln(small)
    return np.where(steps == 0, 0.0, np.where(large, series, plain))


def stirling_rest(z: np.ndarray) -> np.ndarray:
    """log Γ(z) less Stirling's (z − ½) log z − z + ½ log 2π: 1/(12 z) for a large z, −½ log z for a small one.

    With it, what cancels in sums of log Γ can be canceled by hand, before it swallows the digits of what is left.

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
    """log((start + steps) / start), to all digits where it is next to nothing, and finite where the ratio is not."""
    small = steps < start
    return np.where(small, np.log1p(np.where(small, steps, 0.0) / start), np.log(start + steps) - np.log(start))


def log_rising_shares(start: np.ndarray, steps: np.ndarray, segments: Segments) -> np.ndarray:
    """Σ log_rising(start, steps) − log_rising(Σ start, Σ steps), over the cells of every column.

    The log of the ratio of two Dirichlet norms. Its terms grow like n log n and the result like the entropy of the
    shares, so they are made of the logarithms of shares: with z = start + steps and Z = Σz,

        Σ [steps log(z/Z) + start (log(z/Z) − log(start/Σ start)) − ½ log(z/start)] + ½ log(Z/Σ start) + …

    Parameters
    ----------
    start, steps : arrays of shape (…, cells), start > 0, steps >= 0
    segments : Segments
        How the cells fall into columns.

    Returns
    -------
    ndarray of shape (…, columns)
    """
    before, added = segments.sum(start), segments.sum(steps)
    none = before == 0  # a column without levels
    if none.any():
        before = np.where(none, 1.0, before)
    ends, after = start + steps, before + added
    growth, all_growth = log_growth(start, steps), log_growth(before, added)
    share, aside = _log_shares(ends, after, segments)
    first_share, first_aside = _log_shares(start, before, segments)
    # Growth beyond that of all together: from the growths, or from what is not in the cell where that is next to none.
    beyond = growth - segments.broadcast_to_cells(all_growth)
    from_rest = np.maximum(aside, first_aside) < np.maximum(growth, segments.broadcast_to_cells(all_growth))
    beyond = np.where(from_rest, share - first_share, beyond)
    cells = steps * share + start * beyond - 0.5 * growth + (stirling_rest(ends) - stirling_rest(start))
    rest = 0.5 * all_growth - (stirling_rest(after) - stirling_rest(before))
    return np.where(none | (added == 0), 0.0, segments.sum(np.where(steps + start > 0, cells, 0.0)) + rest)


def _log_shares(cells: np.ndarray, totals: np.ndarray, segments: Segments) -> tuple[np.ndarray, np.ndarray]:
    """The logs of shares of columns, and, for cells that are more than half of theirs, the share of the others."""
    whole = segments.broadcast_to_cells(totals)
    large = cells > 0.5 * whole
    others = segments.broadcast_to_cells(segments.sum(np.where(large, 0.0, cells))) / whole
    aside = np.where(large, others, np.inf)
    return np.where(large, np.log1p(-np.where(large, others, 0.0)), np.log(cells / whole)), aside


def log_choose(start: np.ndarray, steps: np.ndarray | float) -> np.ndarray:
    """log Γ(start + steps) / (Γ(start) Γ(steps + 1)): the ways to put `steps` things in `start` places.

    A multinomial coefficient and a rising factorial in one, neither of which is ever as large as its two parts.

    Parameters
    ----------
    start, steps : arrays that broadcast, start > 0, steps >= 0

    Returns
    -------
    ndarray
    """
    if np.max(steps, initial=0.0) < _N_FACTORIALS:  # not so of NaN
        return log_rising(start, steps) - log_factorials(np.asarray(steps))
    start, steps = np.broadcast_arrays(np.asarray(start, np.float64), np.asarray(steps, np.float64))
    few = steps <= np.maximum(start, 1.0)
    a, n = np.where(few, start, 1.0), np.where(few, steps, 0.0)
    many_a, many_n = np.where(few, 1.0, start), np.where(few, 1.0, steps)
    up, down = np.maximum(many_a - 1.0, 0.0), np.maximum(1.0 - many_a, 0.0)
    swapped = log_rising(many_n + 1.0, up) - log_rising(many_n + many_a, down) - gammaln(many_a)
    return np.where(few, log_rising(a, n) - gammaln(n + 1.0), swapped)


def digamma_rising(start: np.ndarray, steps: np.ndarray | float) -> np.ndarray:
    """ψ(start + steps) − ψ(start), the derivative of `log_rising` in `start`; exact where start is large too.

    Parameters
    ----------
    start, steps : arrays of one shape, start > 0, steps >= 0

    Returns
    -------
    ndarray
    """
    start, steps = np.broadcast_arrays(np.asarray(start, np.float64), np.asarray(steps, np.float64))
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
    """ψ′(start + steps) − ψ′(start), the second derivative of `log_rising` in `start`, to six digits.

    That is enough for the steps of Newton's method, which end where a first derivative is 0.

    Parameters
    ----------
    start, steps : arrays of one shape, start > 0, steps >= 0

    Returns
    -------
    ndarray
    """
    start, steps = np.broadcast_arrays(np.asarray(start, np.float64), np.asarray(steps, np.float64))
    out = np.zeros(start.shape)
    a, b = start, start + steps
    # ψ′(z) = ψ′(z + 1) + 1/z² up to z > 4, then 1/z + 1/(2 z²) + 1/(6 z³) − 1/(30 z⁵) + …, all as differences:
    # 1/bᵏ − 1/aᵏ = −(steps / (a b)) Σ (1/a)^i (1/b)^(k − 1 − i)
    for _ in range(4 if (start < 20.0).any() else 0):
        over = 1.0 / (a * b)
        out -= steps * (a + b) * over * over
        a, b = a + 1.0, b + 1.0
    r, t = 1.0 / a, 1.0 / b
    rr, rt, tt = r * r, r * t, t * t
    rest = 1.0 + 0.5 * (r + t) + (rr + rt + tt) / 6.0 - (rr * (rr + rt) + rt * rt + tt * (rt + tt)) / 30.0
    return np.asarray(out - steps * rt * rest)


def log_factorials(x: np.ndarray) -> np.ndarray:
    """log Γ(x + 1), looked up where all are small whole numbers.

    Parameters
    ----------
    x : array of numbers above −1, or NaN

    Returns
    -------
    ndarray, like `x`
    """
    if x.size and x.min() >= 0 and x.max() < _N_FACTORIALS:  # neither is so of NaN
        whole = x.astype(np.intp, copy=False)
        if x.dtype.kind in "iu" or (whole == x).all():
            return np.asarray(gammaln(np.arange(1.0, _N_FACTORIALS + 1)).take(whole))
    return np.asarray(gammaln(np.asarray(x, dtype=np.float64) + 1.0))

"""Differences of log Γ that stay exact where the two terms are large and nearly equal."""

from __future__ import annotations

import numpy as np
from scipy.special import digamma, gammaln


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
    out = np.asarray(digamma(start + steps) - digamma(start))
    if large.any():
        a, up = start[large], steps[large]
        b = a + up
        # ψ(z) = log z − 1/(2 z) − 1/(12 z²) + 1/(120 z⁴) − …, and 1/a − 1/b = up / (a b)
        gap = up / (a * b)
        out[large] = np.log1p(up / a) + gap * (0.5 + (a + b) / (a * b) * (1 / 12 - (1 / a**2 + 1 / b**2) / 120))
    return out


def trigamma_rising(start: np.ndarray, steps: np.ndarray | float) -> np.ndarray:
    """ψ′(start + steps) − ψ′(start), the second derivative of `log_rising` in `start`, to about eight digits.

    Parameters
    ----------
    start, steps : arrays of one shape, start > 0, steps >= 0

    Returns
    -------
    ndarray
    """
    start, steps = np.broadcast_arrays(np.asarray(start, np.float64), np.asarray(steps, np.float64))
    out = np.zeros(start.shape)
    z = start.copy()
    for _ in range(4):  # ψ′(z) = ψ′(z + 1) + 1/z²; 1/b² − 1/a² = −up (a + b) / (a b)²
        b = z + steps
        out -= steps * (z + b) / (z * b) ** 2
        z += 1.0
    b = z + steps
    p, s = 1 / (z * b), z + b
    # ψ′(z) = 1/z + 1/(2 z²) + 1/(6 z³) − 1/(30 z⁵) + …
    cubes = (z * z + z * b + b * b) * p * p
    fifths = (1 / z**4 + 1 / (z**3 * b) + 1 / (z * b) ** 2 + 1 / (z * b**3) + 1 / b**4) * p
    return out - steps * (p * (1.0 + 0.5 * s * p) + p * cubes / 6.0 - fifths / 30.0)

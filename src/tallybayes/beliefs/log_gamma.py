"""Differences of log Γ that stay exact where the two terms are large and nearly equal."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln


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

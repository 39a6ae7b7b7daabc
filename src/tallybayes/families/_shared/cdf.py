"""Distribution functions of columns: of a family, of mixtures of its groups, and the quantiles of these."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tallybayes.families.family import Family, is_not_overridden

_HALVINGS = 200  # more than a float has digits, whatever its size


def family_cdf(family: Family, parameters: Any, x: np.ndarray) -> np.ndarray:
    """As `Family.cumulative`: in closed form, unless a class made from the one that knows it scores rows anew."""
    known = is_not_overridden(family, "cdf", "log_prob", "sample")
    return family.cdf(parameters, x) if known else Family.cdf(family, parameters, x)


def mixture_cdf(family: Family, parameters: Any, shares: np.ndarray, x: np.ndarray) -> np.ndarray:
    """p(X ≤ x) of every cell, where row i is of group g with probability ``shares[i, g]``: (n, columns)."""
    return np.einsum("ng,ngc->nc", shares, family_cdf(family, parameters, x))


def mixture_quantile(family: Family, parameters: Any, shares: np.ndarray, level: float) -> np.ndarray:
    """The lowest value that a cell is at most with a probability of `level` or more: (n, columns).

    By halving what lies between two values, one below it and one that is not; whole numbers where cells are counts.
    """
    whole = not family.is_continuous
    means = np.asarray(family.mean(parameters))
    middle = shares @ means

    def reached(x: np.ndarray) -> np.ndarray:
        return mixture_cdf(family, parameters, shares, x) >= level

    if whole:
        low, high = np.floor(middle), np.floor(middle)
        unit = np.ones_like(middle)
    else:
        low, high = middle.copy(), middle.copy()
        unit = np.maximum(np.ptp(means, axis=0), np.maximum(np.abs(middle) * 1e-3, 1e-300)) * np.ones_like(middle)
    high = _moved(high, unit, lambda x: ~reached(x))
    low = _moved(low, -unit, reached)
    for _ in range(_HALVINGS):
        half = np.floor((low + high) / 2) if whole else low + (high - low) / 2
        if ((half <= low) | (half >= high)).all():
            break
        above = reached(half)
        low, high = np.where(above, low, half), np.where(above, half, high)
    return high


def _moved(x: np.ndarray, step: np.ndarray, while_: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Values moved on by steps that double, as long as something holds of them."""
    for _ in range(2100):  # from the smallest float to the largest
        holds = while_(x)
        if not holds.any():
            break
        with np.errstate(over="ignore"):
            x = np.where(holds, np.clip(x + step, -1e308, 1e308), x)
            step = np.where(holds, step * 2, step)
    return x

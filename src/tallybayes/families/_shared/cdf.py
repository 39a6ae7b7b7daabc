"""Distribution functions of columns: of a family, of mixtures over its groups, and their quantiles."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tallybayes.families.family import Family, Parameters
from tallybayes.families.protocols.distribution_functions import cdf

_MAX_BISECTIONS = 200  # more than the digits of a float


def mixture_cdf(family: Family, parameters: Parameters, weights: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return P(X ≤ x) of every cell, for row i in group g with probability ``weights[i, g]``: (n, columns)."""
    return np.einsum("ng,ngc->nc", weights, cdf(family, parameters, x))


def mixture_quantile(family: Family, parameters: Parameters, weights: np.ndarray, level: float) -> np.ndarray:
    """Return the `level` quantile of every cell: (n, columns).

    It is computed by bracketing and bisection; quantiles of discrete columns are integers.
    """
    is_discrete = not family.is_continuous
    means = family.mean(parameters)
    center = weights @ means

    def reached(x: np.ndarray) -> np.ndarray:
        return mixture_cdf(family, parameters, weights, x) >= level

    if is_discrete:
        center, unit = np.floor(center), np.ones_like(center)
    else:
        unit = np.maximum(np.ptp(means, axis=0), np.maximum(np.abs(center) * 1e-3, 1e-300)) * np.ones_like(center)
    high = _move_while(center, unit, lambda x: ~reached(x))
    low = _move_while(center, -unit, reached)
    for _ in range(_MAX_BISECTIONS):
        half = np.floor((low + high) / 2) if is_discrete else low + (high - low) / 2
        if ((half <= low) | (half >= high)).all():
            break
        is_reached = reached(half)
        low, high = np.where(is_reached, low, half), np.where(is_reached, half, high)
    return high


def _move_while(x: np.ndarray, step: np.ndarray, condition: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Move values by doubling steps while a condition holds."""
    for _ in range(2100):  # from the smallest float to the largest
        holds = condition(x)
        if not holds.any():
            break
        with np.errstate(over="ignore"):
            x = np.where(holds, np.clip(x + step, -1e308, 1e308), x)
            step = np.where(holds, step * 2, step)
    return x

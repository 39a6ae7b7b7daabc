"""Elicitation of priors: the parameters of a distribution with two given quantiles."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tallybayes.errors import PriorError


def beta_from_interval(low: float, high: float, tails: tuple[float, float]) -> tuple[float, float]:
    """Return a and b of the Beta distribution with these two quantiles."""
    from scipy.special import betainc

    if not 0 < low < high < 1:
        raise PriorError.wrong_parameter("Beta.from_interval", "(low, high)", (low, high), "0 < low < high < 1")
    center = (low + high) / 2
    strength = max(4 * center * (1 - center) / (high - low) ** 2, 0.1)
    start = (center * strength, (1 - center) * strength)
    return _solve(lambda a, b: (betainc(a, b, low), betainc(a, b, high)), start, tails, (low, high))


def gamma_from_interval(low: float, high: float, tails: tuple[float, float]) -> tuple[float, float]:
    """Return shape and rate of the Gamma distribution with these two quantiles."""
    from scipy.special import gammainc

    if not 0 < low < high < np.inf:
        raise PriorError.wrong_parameter("Gamma.from_interval", "(low, high)", (low, high), "0 < low < high < inf")
    center = (low + high) / 2
    spread = (high - low) / 4
    start = ((center / spread) ** 2, center / spread**2)
    return _solve(lambda a, b: (gammainc(a, b * low), gammainc(a, b * high)), start, tails, (low, high))


def _solve(
    tail_masses: Callable[[float, float], tuple[float, float]],
    start: tuple[float, float],
    tails: tuple[float, float],
    ends: tuple[float, float],
) -> tuple[float, float]:
    """Solve two quantile equations for the logarithms of two positive parameters."""
    from scipy.optimize import root
    from scipy.special import logit

    def residuals(log_parameters: np.ndarray) -> np.ndarray:
        """Return the differences of the quantile equations, as logits: well scaled if the tails are thin."""
        below = tail_masses(*np.exp(np.clip(log_parameters, -500, 500)))
        return np.asarray(logit(np.clip(below, 1e-300, 1 - 1e-16)) - logit(tails))

    for method in ("hybr", "lm"):
        solution = root(residuals, np.log(start), method=method, tol=1e-13)
        if np.abs(residuals(solution.x)).max() < 1e-8:
            first, second = np.exp(solution.x)
            return float(first), float(second)
    raise PriorError(
        f"no distribution with the interval {ends[0]} to {ends[1]} was found (probabilities {tails[0]:.3g} and "
        f"{tails[1]:.3g} below the ends).\n    Try a wider interval, or from_mean(mean, strength)."
    )

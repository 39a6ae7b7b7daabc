"""Ridge penalty of maximum marginal likelihood, from the moments alone."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq

_LOW, _HIGH = -10.0, 6.0  # bounds of log₁₀ λ, per row
_STEPS = 65


def best_decay(
    weight: np.ndarray, within: np.ndarray, across: np.ndarray, squares: np.ndarray, shape: float, scale: float
) -> float:
    """Return the λ of slopes ~ N(0, σ²/λ) that maximizes the marginal likelihood of the groups' targets.

    The inputs must be on a common scale. The log evidence is a sum over the eigenvalues of the inputs' scatter (MacKay
    1992), so a grid of λ costs little.

    Parameters
    ----------
    weight : ndarray of shape (groups,)
    within : ndarray of shape (groups, p, p)
        Scatter of the inputs.
    across : ndarray of shape (groups, p)
        Products of inputs and target.
    squares : ndarray of shape (groups,)
        Scatter of the target.
    shape, scale : float
        Parameters of the inverse gamma prior of the noise.
    """
    rows = max(float(weight.sum()), 1.0)
    if within.shape[-1] == 0:
        return rows
    values, axes = np.linalg.eigh(within)
    values = np.maximum(values, 0.0)
    rotated = (np.swapaxes(axes, -1, -2) @ across[..., None])[..., 0]
    # Directions without scatter have products of 0, up to rounding.
    rotated = np.where(values > 1e-13 * values.max(initial=0.0), rotated, 0.0)

    def evidence(logs: np.ndarray) -> np.ndarray:
        decay = rows * 10.0 ** logs[:, None, None]
        explained = (rotated**2 / (decay + values)).sum(axis=-1)
        left = np.maximum(squares - explained, 0.0)
        shrunk = 0.5 * np.log(decay / (decay + values)).sum(axis=-1)
        return (shrunk - (shape + weight / 2) * np.log(scale + left / 2)).sum(axis=-1)

    def slope(log: float) -> float:
        """Return the derivative by log λ, whose root is more accurate than the maximum of the flat evidence."""
        decay = rows * 10.0**log
        residual = np.maximum(squares - (rotated**2 / (decay + values)).sum(axis=-1), 0.0)
        shrinkage = decay * (rotated**2 / (decay + values) ** 2).sum(axis=-1) / (2 * scale + residual)
        return float((0.5 * (values / (decay + values)).sum(axis=-1) - (shape + weight / 2) * shrinkage).sum())

    logs = np.linspace(_LOW, _HIGH, _STEPS)
    best = int(np.argmax(evidence(logs)))
    low, high = logs[max(best - 1, 0)], logs[min(best + 1, _STEPS - 1)]
    if slope(low) > 0 > slope(high):
        return float(rows * 10.0 ** brentq(slope, low, high, xtol=1e-14))
    return float(rows * 10.0 ** logs[best])

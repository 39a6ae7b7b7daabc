"""Weight decay by evidence: the λ under which the data are most probable, from their moments alone."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq

_LOW, _HIGH = -10.0, 6.0  # of log₁₀ λ, by row
_STEPS = 65


def best_decay(
    weight: np.ndarray, within: np.ndarray, across: np.ndarray, squares: np.ndarray, shape: float, scale: float
) -> float:
    """The λ of slopes ~ N(0, σ²/λ) under which the groups' targets are most probable; inputs are on one scale.

    The evidence of every λ is a sum over the eigenvalues of the inputs' scatter, so that hundreds are tried at no cost.

    Parameters
    ----------
    weight : ndarray of shape (groups,)
    within : ndarray of shape (groups, p, p)
        The scatter of the inputs.
    across : ndarray of shape (groups, p)
        Their products with the target.
    squares : ndarray of shape (groups,)
        The scatter of the target.
    shape, scale : float
        Of the noise's inverse gamma.
    """
    rows = max(float(weight.sum()), 1.0)
    if within.shape[-1] == 0:
        return rows
    values, axes = np.linalg.eigh(within)
    values = np.maximum(values, 0.0)
    turned = (np.swapaxes(axes, -1, -2) @ across[..., None])[..., 0]
    # Along directions without any scatter there are no products either, but for rounding.
    turned = np.where(values > 1e-13 * values.max(initial=0.0), turned, 0.0)

    def evidence(logs: np.ndarray) -> np.ndarray:
        decay = rows * 10.0 ** logs[:, None, None]
        explained = (turned**2 / (decay + values)).sum(axis=-1)
        left = np.maximum(squares - explained, 0.0)
        shrunk = 0.5 * np.log(decay / (decay + values)).sum(axis=-1)
        return (shrunk - (shape + weight / 2) * np.log(scale + left / 2)).sum(axis=-1)

    def slope(log: float) -> float:
        """By log λ: 0 at the top, which it tells to more digits than the evidence, flat there, does."""
        decay = rows * 10.0**log
        left = np.maximum(squares - (turned**2 / (decay + values)).sum(axis=-1), 0.0)
        pull = decay * (turned**2 / (decay + values) ** 2).sum(axis=-1) / (2 * scale + left)
        return float((0.5 * (values / (decay + values)).sum(axis=-1) - (shape + weight / 2) * pull).sum())

    logs = np.linspace(_LOW, _HIGH, _STEPS)
    best = int(np.argmax(evidence(logs)))
    low, high = logs[max(best - 1, 0)], logs[min(best + 1, _STEPS - 1)]
    if slope(low) > 0 > slope(high):
        return float(rows * 10.0 ** brentq(slope, low, high, xtol=1e-14))
    return float(rows * 10.0 ** logs[best])

"""Shrinkage of the scatter of Gaussian columns towards its diagonal."""

from __future__ import annotations

import numpy as np

from tallybayes.statistics.moments import Moments


def oas(moments: Moments, *, tied: bool) -> np.ndarray:
    """Return the oracle-approximating shrinkage of the correlations of each class, or of the pooled moments."""
    scatter = moments.scatter
    weight = moments.weight[..., 0]
    if tied:
        scatter = scatter.sum(axis=0, keepdims=True)
        weight = weight.sum(keepdims=True)
    return oas_of(scatter, weight)


def oas_of(scatter: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the oracle-approximating shrinkage of the correlations in scatter matrices (…, columns, columns).

    It needs only the number of rows, the trace and the sum of squares (Chen, Wiesel, Eldar and Hero 2010).
    """
    d = scatter.shape[-1]
    variance = np.diagonal(scatter, axis1=-2, axis2=-1)
    std = np.sqrt(np.where(variance > 0, variance, 1.0))
    correlation = scatter / (std[..., :, None] * std[..., None, :])
    mean_variance = (variance > 0).mean(axis=-1)  # the mean variance after scaling; 1 without constant columns
    spread = (correlation**2).mean(axis=(-2, -1))
    excess = (weight + 1) * (spread - mean_variance**2 / d)
    amount = np.where(excess > 0, (spread + mean_variance**2) / np.where(excess > 0, excess, 1.0), 1.0)
    return np.minimum(amount, 1.0)


def shrunk(moments: Moments, shrinkage: float | str, *, tied: bool) -> Moments:
    """Return moments with the scatter λ·diag(S) + (1 − λ)·S."""
    amount = oas(moments, tied=tied) if shrinkage == "auto" else np.array([float(shrinkage)])
    off = moments.scatter * (1 - np.eye(moments.n_columns))
    return moments.with_scatter(-amount[:, None, None] * off)

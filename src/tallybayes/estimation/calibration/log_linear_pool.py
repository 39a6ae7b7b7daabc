"""Log-linear pooling of class probabilities (Genest and Zidek 1986), with temperature scaling of the pool."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from tallybayes._utils.threads import single_blas_thread
from tallybayes.estimation.calibration.temperature_scaling import TemperatureScaling, fit_temperature_scaling
from tallybayes.estimation.scoring.bayes_rule import apply_bayes_rule

LEAST = 1e-7  # probabilities are bounded below before their logarithms are weighted


class LogLinearPool(NamedTuple):
    """p(class) ∝ exp(T⁻¹ (Σ_m w_m log p_m(class) + b(class))), mixed with the class frequencies.

    Attributes
    ----------
    weights : ndarray of shape (members,)
    bias : ndarray of shape (classes,)
    inverse_temperature, contamination : float
        See `TemperatureScaling`.
    """

    weights: np.ndarray
    bias: np.ndarray
    inverse_temperature: float
    contamination: float

    def scores(self, proba: np.ndarray, bias: np.ndarray) -> np.ndarray:
        """Return the log scores of the pool, (n, classes), from probabilities (n, members, classes)."""
        return np.asarray((np.tensordot(self.weights, _centered(proba), (0, 1)) + bias) * self.inverse_temperature)

    def log_proba(self, proba: np.ndarray, bias: np.ndarray, base_rates: np.ndarray) -> np.ndarray:
        """Return the pooled log probabilities, (n, classes)."""
        pooled = apply_bayes_rule(self.scores(proba, bias), np.zeros(len(bias))).log_proba
        return mixed_log_proba(pooled, self.contamination, base_rates)


def mixed_log_proba(log_proba: np.ndarray, contamination: float, base_rates: np.ndarray) -> np.ndarray:
    """Return log((1 − ε) p + ε base rate); −inf stays where both are 0."""
    if not contamination:
        return log_proba
    return np.asarray(np.log((1 - contamination) * np.exp(log_proba) + contamination * base_rates))


def _centered(proba: np.ndarray) -> np.ndarray:
    """Return log probabilities, bounded below, minus their means over the classes."""
    logs = np.log(np.maximum(proba, LEAST))
    return np.asarray(logs - logs.mean(axis=-1, keepdims=True))


def fit_log_linear_pool(
    proba: np.ndarray, codes: np.ndarray, weight: np.ndarray | None = None, ridge: float = 1.0
) -> LogLinearPool:
    """Return the MAP estimate of a pool from held-out probabilities, under w ~ N(1/M, 1/ridge) and b ~ N(0, 1/ridge).

    The weights are at least 0. A single member has no weight or bias to estimate, only a temperature.

    Parameters
    ----------
    proba : ndarray of shape (n, members, classes)
    codes : int array of shape (n,)
    weight : ndarray of shape (n,), optional
    ridge : float
    """
    n, n_members, n_classes = proba.shape
    rows = np.ones(n) if weight is None else weight
    pool = LogLinearPool(np.full(n_members, 1 / n_members), np.zeros(n_classes), 1.0, 0.0)
    if n_members > 1 and n:
        weights, bias = _fitted(_centered(proba), codes, rows, ridge, pool.weights, with_bias=True)
        pool = LogLinearPool(weights, bias, 1.0, 0.0)
    scores = apply_bayes_rule(pool.scores(proba, pool.bias), np.zeros(n_classes)).log_proba
    scaling: TemperatureScaling = fit_temperature_scaling(scores, codes, rows)
    return pool._replace(inverse_temperature=scaling.inverse_temperature, contamination=scaling.contamination)


def fit_pool_weights(
    proba: np.ndarray, codes: np.ndarray, weight: np.ndarray | None, center: np.ndarray, ridge: float
) -> np.ndarray:
    """Return the weights of highest posterior density under w ~ N(center, 1/ridge), w ≥ 0, without biases.

    Parameters
    ----------
    proba : ndarray of shape (n, members, classes)
    codes : int array of shape (n,)
    weight : ndarray of shape (n,), optional
    center : ndarray of shape (members,)
    ridge : float
        The prior precision: the larger it is, the more rows it takes to move the weights from the center.
    """
    rows = np.ones(len(codes)) if weight is None else weight
    return _fitted(_centered(proba), codes, rows, ridge, center, with_bias=False)[0]


def _fitted(
    logs: np.ndarray, codes: np.ndarray, rows: np.ndarray, ridge: float, center: np.ndarray, *, with_bias: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights and biases of highest posterior density, by L-BFGS."""
    n, n_members, n_classes = logs.shape
    total = max(float(rows.sum()), 1e-300)
    each = np.arange(n)

    def objective(point: np.ndarray) -> tuple[float, np.ndarray]:
        offset, bias = point[:n_members] - center, point[n_members:]
        scores = np.tensordot(logs, point[:n_members], (1, 0)) + bias
        scores -= scores.max(axis=1, keepdims=True)
        residual = np.exp(scores)
        sums = residual.sum(axis=1, keepdims=True)
        loss = rows @ (np.log(sums[:, 0]) - scores[each, codes])
        residual /= sums
        residual[each, codes] -= 1
        residual *= rows[:, None]
        slopes = np.einsum("nmc,nc->m", logs, residual) + ridge * offset, residual.sum(axis=0) + ridge * bias
        loss += 0.5 * ridge * (offset @ offset + bias @ bias)
        return loss / total, np.concatenate(slopes) / total

    start = np.concatenate([center, np.zeros(n_classes)])
    free = (None, None) if with_bias else (0.0, 0.0)
    bounds: list[tuple[float | None, float | None]] = [(0.0, None)] * n_members + [free] * n_classes
    with single_blas_thread():  # for few parameters threads cost more than they save
        found = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 200}).x
    return found[:n_members], found[n_members:]

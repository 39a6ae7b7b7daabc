"""Isotonic calibration (Zadrozny and Elkan 2002), one class against the rest."""

from __future__ import annotations

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.special import logsumexp

from tallybayes.estimation.calibration.temperature_scaling import LOG_ODDS


def fit_isotonic(
    log_proba: np.ndarray, codes: np.ndarray, weights: np.ndarray
) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
    """Return, for every class against the rest, its probability as a nondecreasing function of its log-odds.

    One row that contradicts the trend is added at each end, so that no probability is 0 or 1.
    """
    log_odds = []
    values = []
    for k in range(log_proba.shape[1]):
        score = class_log_odds(log_proba, k)
        order = np.argsort(score, kind="stable")
        x = np.concatenate([score[order[:1]], score[order], score[order[-1:]]])
        is_class = np.concatenate([[1.0], (codes[order] == k).astype(float), [0.0]])
        knots, probabilities = weighted_isotonic(x, is_class, np.concatenate([[1.0], weights[order], [1.0]]))
        log_odds.append(knots)
        values.append(probabilities)
    return tuple(log_odds), tuple(values)


def class_log_odds(log_proba: np.ndarray, k: int) -> np.ndarray:
    """Return log p(k) − log p(not k); log p(not k) is summed from the other classes to keep precision near 0 and 1."""
    if log_proba.shape[1] == 1:
        return np.full(len(log_proba), LOG_ODDS)
    with np.errstate(invalid="ignore"):
        rest = log_proba[:, 1 - k] if log_proba.shape[1] == 2 else logsumexp(np.delete(log_proba, k, axis=1), axis=1)
        odds = log_proba[:, k] - rest
    return np.clip(odds, -LOG_ODDS, LOG_ODDS)


def weighted_isotonic(x: np.ndarray, y: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the knots and values of weighted isotonic regression of `y` on `x` (pool adjacent violators)."""
    values, index = np.unique(x, return_inverse=True)
    mass = np.bincount(index, weight)
    fit = isotonic_regression(np.bincount(index, weight * y) / mass, weights=mass)
    is_knot = np.zeros(len(values), dtype=bool)
    is_knot[fit.blocks[:-1]] = is_knot[fit.blocks[1:] - 1] = True  # the ends of every pool
    return values[is_knot], np.asarray(fit.x, dtype=np.float64)[is_knot]


def apply_isotonic(
    log_proba: np.ndarray, log_odds: tuple[np.ndarray, ...], values: tuple[np.ndarray, ...]
) -> np.ndarray:
    """Return calibrated log probabilities: the isotonic probability of every class, normalized to sum to 1."""
    columns = [np.interp(class_log_odds(log_proba, k), log_odds[k], values[k]) for k in range(log_proba.shape[1])]
    proba = np.stack(columns, axis=1)
    return np.log(proba) - np.log(proba.sum(axis=1, keepdims=True))

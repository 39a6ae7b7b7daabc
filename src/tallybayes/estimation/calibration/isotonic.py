"""Isotonic calibration: for every class against the rest, its share as a rising function of its log-odds."""

from __future__ import annotations

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.special import logsumexp

from tallybayes.estimation.calibration.temperature_scaling import LOG_ODDS


def fit_isotonic(
    log_proba: np.ndarray, codes: np.ndarray, weights: np.ndarray
) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
    """For every class against the rest, the share of it as a rising function of its log-odds.

    One row that goes against the trend is added at each end, so that no probability is 0 or 1.
    """
    log_odds, values = [], []
    for k in range(log_proba.shape[1]):
        score = class_log_odds(log_proba, k)
        order = np.argsort(score, kind="stable")
        x = np.concatenate([score[order[:1]], score[order], score[order[-1:]]])
        hit = np.concatenate([[1.0], (codes[order] == k).astype(float), [0.0]])
        at, p = weighted_isotonic(x, hit, np.concatenate([[1.0], weights[order], [1.0]]))
        log_odds.append(at)
        values.append(p)
    return tuple(log_odds), tuple(values)


def class_log_odds(log_proba: np.ndarray, k: int) -> np.ndarray:
    """log p(k) − log p(not k), from the other classes' own probabilities, so that neither end loses its digits."""
    if log_proba.shape[1] == 1:
        return np.full(len(log_proba), LOG_ODDS)
    with np.errstate(invalid="ignore"):
        rest = log_proba[:, 1 - k] if log_proba.shape[1] == 2 else logsumexp(np.delete(log_proba, k, axis=1), axis=1)
        odds = log_proba[:, k] - rest
    return np.clip(odds, -LOG_ODDS, LOG_ODDS)


def weighted_isotonic(x: np.ndarray, y: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The corners of the rising function of `x` nearest to `y` in weighted squares (pool adjacent violators)."""
    at, place = np.unique(x, return_inverse=True)
    mass = np.bincount(place, weight)
    found = isotonic_regression(np.bincount(place, weight * y) / mass, weights=mass)
    corner = np.zeros(len(at), dtype=bool)
    corner[found.blocks[:-1]] = corner[found.blocks[1:] - 1] = True  # where every pool begins and ends
    return at[corner], np.asarray(found.x, dtype=np.float64)[corner]


def apply_isotonic(
    log_proba: np.ndarray, log_odds: tuple[np.ndarray, ...], values: tuple[np.ndarray, ...]
) -> np.ndarray:
    """Every class's probability against the rest by its steps, all made to sum to 1."""
    columns = [np.interp(class_log_odds(log_proba, k), log_odds[k], values[k]) for k in range(log_proba.shape[1])]
    mended = np.stack(columns, axis=1)
    return np.log(mended) - np.log(mended.sum(axis=1, keepdims=True))

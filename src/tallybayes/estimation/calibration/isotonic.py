"""Isotonic calibration (Zadrozny and Elkan 2002), one class against the rest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from scipy.optimize import isotonic_regression

from tallybayes.estimation.calibration.temperature_scaling import LOG_ODDS

Functions = tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]  # log-odds and probabilities at the knots, by class


def fit_isotonic(odds: np.ndarray, codes: np.ndarray, weightings: Iterable[np.ndarray]) -> Iterator[Functions]:
    """Yield, for every weighting of the rows, the probability of every class as a nondecreasing function of its odds.

    One row that contradicts the trend is added at each end, so that no probability is 0 or 1. Rows are sorted once.

    Parameters
    ----------
    odds : ndarray of shape (n, classes)
        See `class_log_odds`.
    codes : ndarray of int of shape (n,)
    weightings : arrays of shape (n,)
        Rows of weight 0 are left out.
    """
    distinct = [np.unique(column, return_inverse=True) for column in odds.T]
    for weight in weightings:
        functions = [_steps(*each, codes == k, weight) for k, each in enumerate(distinct)]
        knots, values = zip(*functions, strict=True)
        yield knots, values


def class_log_odds(log_proba: np.ndarray) -> np.ndarray:
    """Return log p(k) − log p(not k) of every class k, (n, classes).

    p(not k) is summed from the other classes to keep precision near 0 and 1.
    """
    n, n_classes = log_proba.shape
    if n_classes == 1:
        return np.full((n, 1), LOG_ODDS)
    best = np.arange(n), log_proba.argmax(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = log_proba - log_proba[best][:, None]
        proba = np.exp(relative)
        proba[best] = 0.0
        others = proba.sum(axis=1)
        rest = 1.0 + (others[:, None] - proba)  # 1 is the best class
        rest[best] = others
        return np.clip(relative - np.log(rest), -LOG_ODDS, LOG_ODDS)


def _steps(x: np.ndarray, index: np.ndarray, is_class: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the knots and values of isotonic regression on the distinct values `x` (pool adjacent violators)."""
    mass = np.bincount(index, weight)
    hits = np.bincount(index, weight * is_class)
    kept = mass > 0
    if not kept.all():
        x, mass, hits = x[kept], mass[kept], hits[kept]
    hits[0] += 1.0
    mass[0] += 1.0
    mass[-1] += 1.0
    fit = isotonic_regression(hits / mass, weights=mass)
    is_knot = np.zeros(len(x), dtype=bool)
    is_knot[fit.blocks[:-1]] = is_knot[fit.blocks[1:] - 1] = True  # the ends of every pool
    return x[is_knot], np.asarray(fit.x, dtype=np.float64)[is_knot]


def apply_isotonic(odds: np.ndarray, functions: Functions) -> np.ndarray:
    """Return calibrated log probabilities: the isotonic probability of every class, normalized to sum to 1."""
    proba = np.stack([np.interp(*each) for each in zip(odds.T, *functions, strict=True)], axis=1)
    return np.log(proba) - np.log(proba.sum(axis=1, keepdims=True))

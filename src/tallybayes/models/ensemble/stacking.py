"""Stacking: weights of candidate models that maximize the likelihood of held-out classes."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from tallybayes.estimation.scoring.bayes_rule import apply_bayes_rule

_STEPS = 100
_CLOSE = 1e-9  # convergence tolerance of the weights
LEAST = -700.0  # lower bound of log probabilities


def stacking_weights(log_truth: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """Return the stacking weights w that maximize Σ log Σₘ wₘ p(class | row, m) plus one uniform pseudo-row.

    Newton's method on Σ log Σₘ wₘ pₘ + 1/M Σₘ log wₘ − N Σₘ wₘ, where N is the total weight of the rows. The objective
    is concave, and its maximum has weights that sum to 1.

    Parameters
    ----------
    log_truth : ndarray of shape (n, members)
        The log probability of each row's true class under each member, from held-out predictions.
    weight : ndarray of shape (n,), optional

    Returns
    -------
    ndarray of shape (members,)
    """
    n, members = log_truth.shape
    rows = np.ones(n) if weight is None else weight
    likelihoods = np.exp(log_truth - log_truth.max(axis=1, keepdims=True))
    stacking = np.full(members, 1 / members)
    total = float(rows.sum()) + 1.0

    def objective(candidate: np.ndarray) -> float:
        return float(rows @ np.log(likelihoods @ candidate) + np.log(candidate).mean() - total * candidate.sum())

    for _ in range(_STEPS):
        scaled = likelihoods / (likelihoods @ stacking)[:, None]
        gradient = rows @ scaled + 1 / (members * stacking) - total
        negative_hessian = (scaled * rows[:, None]).T @ scaled + np.diag(1 / (members * stacking**2))
        step = np.linalg.solve(negative_hessian, gradient)
        step *= min(1.0, 0.9 / max(float((-step / stacking).max()), 1e-300))  # weights stay positive
        current = objective(stacking)
        while objective(stacking + step) < current and np.abs(step).max() > _CLOSE:
            step /= 2
        if np.abs(step).max() <= _CLOSE:
            break
        stacking = stacking + step
    return stacking / stacking.sum()


def stack_log_proba(log_probas: list[np.ndarray], weights: np.ndarray) -> np.ndarray:
    """Return log Σₘ wₘ p(class | row, m)."""
    with np.errstate(divide="ignore"):
        logs = np.log(weights)
    stacked = np.stack(log_probas)
    return np.asarray(logsumexp(stacked + logs[:, None, None], axis=0))


def bounded(log_proba: np.ndarray) -> np.ndarray:
    """Return normalized log probabilities bounded below, so that no class is impossible."""
    if log_proba.size and log_proba.min() >= LEAST:  # NaN is not
        return log_proba
    clipped = np.maximum(np.nan_to_num(log_proba, nan=LEAST, neginf=LEAST), LEAST)
    return apply_bayes_rule(clipped, np.zeros(clipped.shape[1])).log_proba

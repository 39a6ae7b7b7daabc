"""Mixing: the weights of probabilities that explain the classes of held-out rows best."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from tallybayes.estimation.scoring.bayes_rule import apply_bayes_rule

_STEPS = 100
_CLOSE = 1e-9  # steps below this change no weight that is shown
LEAST = -700.0  # log probabilities below are as good as impossible


def stacking_weights(log_truth: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """The weights w under which Σ log Σₘ wₘ p(class | row, m) is largest, with one row more that all explain alike.

    Newton's steps on Σ log Σₘ wₘ pₘ + 1/M Σₘ log wₘ − N Σₘ wₘ, N the weight of all rows: it is concave, and largest
    where the weights sum to 1.

    Parameters
    ----------
    log_truth : ndarray of shape (n, members)
        The log probability of every row's own class by each of the members, which had not seen the row.
    weight : ndarray of shape (n,), optional

    Returns
    -------
    ndarray of shape (members,)
    """
    n, members = log_truth.shape
    rows = np.ones(n) if weight is None else weight
    shares = np.exp(log_truth - log_truth.max(axis=1, keepdims=True))
    found = np.full(members, 1 / members)
    total = float(rows.sum()) + 1.0

    def height(at: np.ndarray) -> float:
        return float(rows @ np.log(shares @ at) + np.log(at).mean() - total * at.sum())

    for _ in range(_STEPS):
        scaled = shares / (shares @ found)[:, None]
        slope = rows @ scaled + 1 / (members * found) - total
        curve = (scaled * rows[:, None]).T @ scaled + np.diag(1 / (members * found**2))
        step = np.linalg.solve(curve, slope)
        step *= min(1.0, 0.9 / max(float((-step / found).max()), 1e-300))  # weights stay positive
        here = height(found)
        while height(found + step) < here and np.abs(step).max() > _CLOSE:
            step /= 2
        if np.abs(step).max() <= _CLOSE:
            break
        found = found + step
    return found / found.sum()


def stack_log_proba(log_probas: list[np.ndarray], weights: np.ndarray) -> np.ndarray:
    """log Σₘ wₘ p(class | row, m)."""
    with np.errstate(divide="ignore"):
        logs = np.log(weights)
    stacked = np.stack(log_probas)
    return np.asarray(logsumexp(stacked + logs[:, None, None], axis=0))


def bounded(log_proba: np.ndarray) -> np.ndarray:
    """Log probabilities that sum to 1, none of which forbids anything altogether."""
    if log_proba.size and log_proba.min() >= LEAST:  # NaN is not
        return log_proba
    found = np.maximum(np.nan_to_num(log_proba, nan=LEAST, neginf=LEAST), LEAST)
    return apply_bayes_rule(found, np.zeros(found.shape[1])).log_proba

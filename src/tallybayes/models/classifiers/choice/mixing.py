"""Mixing: the weights of probabilities that explain the classes of held-out rows best."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from tallybayes.models.fitted.bayes_rule import normalised

LEAST = -700.0  # log probabilities below are as good as impossible


def mixture_weights(log_truth: np.ndarray, weight: np.ndarray | None, n_steps: int = 200) -> np.ndarray:
    """The weights w under which Σ log Σₘ wₘ p(class | row, m) is largest, with one row more that all explain alike.

    Parameters
    ----------
    log_truth : ndarray of shape (n, members)
        The log probability of every row's own class by each of the members, which had not seen the row.
    weight : ndarray of shape (n,), optional
    n_steps : int
        Of EM, each of which raises it.

    Returns
    -------
    ndarray of shape (members,)
    """
    n, members = log_truth.shape
    rows = np.ones(n) if weight is None else weight
    shares = np.exp(log_truth - log_truth.max(axis=1, keepdims=True))
    mixed = np.full(members, 1 / members)
    for _ in range(n_steps):
        part = shares * mixed
        part *= (rows / part.sum(axis=1))[:, None]
        after = part.sum(axis=0) + 1 / members
        after /= after.sum()
        if np.abs(after - mixed).max() < 1e-7:
            return after
        mixed = after
    return mixed


def mixed(log_probas: list[np.ndarray], weights: np.ndarray) -> np.ndarray:
    """log Σₘ wₘ p(class | row, m)."""
    with np.errstate(divide="ignore"):
        logs = np.log(weights)
    stacked = np.stack(log_probas)
    return np.asarray(logsumexp(stacked + logs[:, None, None], axis=0))


def bounded(log_proba: np.ndarray) -> np.ndarray:
    """Log probabilities that none forbids altogether, and that sum to 1."""
    found = np.maximum(np.nan_to_num(log_proba, nan=LEAST, neginf=LEAST), LEAST)
    return normalised(found, np.zeros(found.shape[1])).log_proba

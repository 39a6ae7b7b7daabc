"""Weights of the members of an ensemble, by their held-out predictions."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tallybayes.estimation.calibration.log_linear_pool import fit_pool_weights
from tallybayes.estimation.scoring.bayes_rule import apply_bayes_rule

_STEPS = 100
_CLOSE = 1e-9  # convergence tolerance of the weights
LEAST = -700.0  # lower bound of log probabilities
LEAST_WEIGHT = 0.01  # of a member
_RIDGE = 100.0  # prior precision of the pool's weights
_TOLERATED, _MOST_ELIMINATED = 1e-3, 0.25  # increase of the loss by elimination, and weight of an eliminated member


def pooled_weights(proba: np.ndarray, codes: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """Return the weights w of the pool p(class | row) ∝ Πₘ p(class | row, m)^wₘ, from held-out predictions.

    They maximize the likelihood of the held-out classes under w ~ N(stacking weights, 1/100): of few rows they are the
    stacking weights, which maximize the likelihood of the linear mixture.

    Parameters
    ----------
    proba : ndarray of shape (n, members, classes)
    codes : int array of shape (n,)
    weight : ndarray of shape (n,), optional

    Returns
    -------
    ndarray of shape (members,)
    """
    if proba.shape[1] == 1:
        return np.ones(1)
    log_truth = np.log(np.maximum(proba[np.arange(len(codes)), :, codes], np.exp(LEAST)))
    return fit_pool_weights(proba, codes, weight, stacking_weights(log_truth, weight), _RIDGE)


def eliminate_members(
    proba: np.ndarray, codes: np.ndarray, weight: np.ndarray | None, kept: int | None = None
) -> tuple[list[int], np.ndarray]:
    """Return the numbers of the members of a pool and their weights, after backward elimination.

    The member of the smallest weight is left out as long as the weight is below 0.01, or the held-out log loss of the
    pool of the others is at most 0.1 % higher than that of all members.

    Parameters
    ----------
    proba, codes, weight
        As for `pooled_weights`.
    kept : int, optional
        A member that is not left out.
    """
    members, weights = list(range(proba.shape[1])), pooled_weights(proba, codes, weight)
    most = _pool_loss(proba, codes, weight, weights) * (1 + _TOLERATED)
    while len(members) > 1:
        place = min((k for k, member in enumerate(members) if member != kept), key=lambda k: float(weights[k]))
        others = [member for k, member in enumerate(members) if k != place]
        if weights[place] > _MOST_ELIMINATED:
            break
        found = pooled_weights(proba[:, others], codes, weight)
        if weights[place] >= LEAST_WEIGHT and _pool_loss(proba[:, others], codes, weight, found) > most:
            break
        members, weights = others, found
    return members, weights


def _pool_loss(proba: np.ndarray, codes: np.ndarray, weight: np.ndarray | None, weights: np.ndarray) -> float:
    """Return the mean log loss of a pool."""
    log_proba = pool_log_proba(np.log(proba).swapaxes(0, 1), weights.tolist())
    return -float(np.average(log_proba[np.arange(len(codes)), codes], weights=weight))


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


def pool_log_proba(log_probas: Iterable[np.ndarray], weights: Iterable[float]) -> np.ndarray:
    """Return log p(class | row) ∝ Σₘ wₘ log p(class | row, m), bounded below."""
    scores = sum(weight * log_proba for weight, log_proba in zip(weights, log_probas, strict=True))
    return bounded(apply_bayes_rule(np.asarray(scores), np.zeros(np.shape(scores)[1])).log_proba)


def bounded(log_proba: np.ndarray) -> np.ndarray:
    """Return normalized log probabilities bounded below, so that no class is impossible."""
    if log_proba.size and log_proba.min() >= LEAST:  # NaN is not
        return log_proba
    clipped = np.maximum(np.nan_to_num(log_proba, nan=LEAST, neginf=LEAST), LEAST)
    return apply_bayes_rule(clipped, np.zeros(clipped.shape[1])).log_proba

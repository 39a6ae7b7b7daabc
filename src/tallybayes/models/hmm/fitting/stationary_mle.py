"""Stationary distributions, and maximum likelihood transitions whose stationary distribution is the initial one."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.sparse.csgraph import connected_components
from scipy.special import softmax, xlogy

_MIN_PROBABILITY = 1e-12  # of initial values: a softmax cannot leave probability 0


def stationary_distribution(transition: np.ndarray) -> np.ndarray:
    """Return the distribution δ with δ = δA: 0 in transient states, equal totals for the closed classes.

    Algorithm of Grassmann, Taksar and Heyman (1985): Gaussian elimination without subtractions, so that small
    probabilities keep their relative precision.
    """
    out = np.zeros(len(transition))
    closed = closed_classes(transition)
    for states in closed:
        matrix = transition[np.ix_(states, states)]
        n = len(states)
        for k in range(n - 1, 0, -1):
            matrix[:k, k] /= matrix[k, :k].sum()
            matrix[:k, :k] += matrix[:k, k, None] * matrix[k, :k]
        weight = np.ones(n)
        for k in range(1, n):
            weight[k] = weight[:k] @ matrix[:k, k]
        out[states] = weight / weight.sum() / len(closed)
    return out


def closed_classes(transition: np.ndarray) -> list[np.ndarray]:
    """Return the closed communicating classes of states, by index."""
    n_classes, label = connected_components(transition > 0, connection="strong")
    classes = [np.flatnonzero(label == number) for number in range(n_classes)]
    closed = [states for states in classes if not np.delete(transition[states], states, axis=1).any()]
    return sorted(closed, key=lambda states: int(states[0]))


def stationary_mle(
    start_counts: np.ndarray,
    transition_counts: np.ndarray,
    allowed: np.ndarray | None = None,
    initial: np.ndarray | None = None,
) -> np.ndarray:
    """Return the transitions A that maximize Σ n log A + Σ s log δ(A), with the stationary distribution δ(A).

    There is no closed form. The rows of A are softmaxes, optimized by L-BFGS from the estimate that ignores the start
    counts, and from `initial`. The best result is returned, so that the objective of EM never decreases.

    Parameters
    ----------
    start_counts : ndarray of shape (states,)
        The counts s of first states.
    transition_counts : ndarray of shape (states, states)
        The counts n of transitions, including pseudo-counts; at least 0.
    allowed : ndarray of bool of shape (states, states), optional
        The allowed transitions.
    initial : ndarray of shape (states, states), optional
        A previous solution.

    Returns
    -------
    ndarray of shape (states, states)
    """
    n = len(start_counts)
    mask = np.ones((n, n), dtype=bool) if allowed is None else allowed
    total = transition_counts.sum(axis=1, keepdims=True)
    uniform = mask / mask.sum(axis=1, keepdims=True)
    unconstrained = np.where(total > 0, transition_counts / np.where(total > 0, total, 1.0), uniform)
    if start_counts.sum() == 0:
        return unconstrained

    def objective(transition: np.ndarray, stationary: np.ndarray) -> float:
        """Return Σ n log A + Σ s log δ(A)."""
        return float(xlogy(transition_counts, transition).sum() + xlogy(start_counts, stationary).sum())

    def softmax_rows(free: np.ndarray) -> np.ndarray:
        """Return the transition matrix of free parameters, one for each allowed cell."""
        logits = np.full((n, n), -np.inf)
        logits[mask] = free
        return np.asarray(softmax(logits, axis=1))

    def negative_objective(free: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the negative objective and its gradient in the free parameters."""
        transition = softmax_rows(free)
        inverse = np.linalg.inv(np.eye(n) - transition + 1.0)
        stationary = np.maximum(inverse.sum(axis=0), 1e-300)
        # dδ = δ dA (I − A + 1)⁻¹, so that d Σ s log δ / dA = δᵢ ((I − A + 1)⁻¹ s / δ)ⱼ.
        slope = np.outer(stationary, inverse @ (start_counts / stationary))
        scaled = transition_counts + transition * slope  # A · ∂/∂A
        gradient = scaled - transition * scaled.sum(axis=1, keepdims=True)
        return -objective(transition, stationary), -gradient[mask]

    previous = [] if initial is None else [initial]
    candidates = list(previous)
    for point in [unconstrained, *previous]:
        free = np.log(np.maximum(point, _MIN_PROBABILITY)[mask])
        options = {"maxiter": 500, "ftol": 1e-15, "gtol": 1e-9}
        result = minimize(negative_objective, free, jac=True, method="L-BFGS-B", options=options)
        candidates.append(softmax_rows(result.x))
    return max(candidates, key=lambda transition: objective(transition, stationary_distribution(transition)))

"""Transitions whose stationary distribution is where sequences begin: the most likely ones, found numerically."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.sparse.csgraph import connected_components

_LEAST = 1e-12  # of a share where the search begins: exactly 0 it could never leave


def stationary_distribution(transition: np.ndarray) -> np.ndarray:
    """The distribution δ with δ = δA, 0 in states that are left for good; groups that are never left have equal shares.

    By Grassmann, Taksar and Heyman's elimination, which subtracts nothing, so that small shares keep their digits.
    """
    out, closed = np.zeros(len(transition)), closed_classes(transition)
    for group in closed:
        moves, n = transition[np.ix_(group, group)], len(group)
        for k in range(n - 1, 0, -1):
            moves[:k, k] /= moves[k, :k].sum()
            moves[:k, :k] += moves[:k, k, None] * moves[k, :k]
        share = np.ones(n)
        for k in range(1, n):
            share[k] = share[:k] @ moves[:k, k]
        out[group] = share / share.sum() / len(closed)
    return out


def closed_classes(transition: np.ndarray) -> list[np.ndarray]:
    """The groups of states that reach each other and nothing else, by number."""
    n_groups, group = connected_components(transition > 0, connection="strong")
    found = [np.flatnonzero(group == number) for number in range(n_groups)]
    closed = [part for part in found if not np.delete(transition[part], part, axis=1).any()]
    return sorted(closed, key=lambda part: int(part[0]))


def stationary_mle(
    starts: np.ndarray, moves: np.ndarray, allowed: np.ndarray | None = None, begin: np.ndarray | None = None
) -> np.ndarray:
    """The transitions A that make Σ moves · log A + Σ starts · log δ(A) largest, δ being where A settles.

    There is no closed form: the rows of A are softmaxes of free numbers, climbed by their gradient (L-BFGS), from what
    the transitions alone would have and from `begin`. Whichever is highest is taken, so that nothing falls.

    Parameters
    ----------
    starts : ndarray of shape (states,)
        How many sequences began in each.
    moves : ndarray of shape (states, states)
        How many steps went from row to column, what a prior adds to them included; at least 0.
    allowed : ndarray of bool of shape (states, states), optional
    begin : ndarray of shape (states, states), optional
        Transitions found before.

    Returns
    -------
    ndarray of shape (states, states)
    """
    n = len(starts)
    kept = np.ones((n, n), dtype=bool) if allowed is None else allowed
    total = moves.sum(axis=1, keepdims=True)
    even = kept / kept.sum(axis=1, keepdims=True)
    own = np.where(total > 0, moves / np.where(total > 0, total, 1.0), even)
    tried = [own] if begin is None else [own, begin]
    if starts.sum() == 0:
        return own

    def value(transition: np.ndarray) -> float:
        with np.errstate(divide="ignore"):
            here, first = np.log(transition), np.log(stationary_distribution(transition))
        return float(np.where(moves > 0, moves * here, 0.0).sum() + np.where(starts > 0, starts * first, 0.0).sum())

    def descend(free: np.ndarray) -> tuple[float, np.ndarray]:
        logs = np.full((n, n), -np.inf)
        logs[kept] = free
        logs -= logs.max(axis=1, keepdims=True)
        transition = np.exp(logs)
        transition /= transition.sum(axis=1, keepdims=True)
        inverse = np.linalg.inv(np.eye(n) - transition + 1.0)
        shares = np.maximum(inverse.sum(axis=0), 1e-300)
        with np.errstate(divide="ignore", invalid="ignore"):
            here = np.where(moves > 0, moves * np.log(transition), 0.0).sum()
        # δ moves by δ dA (I − A + 1)⁻¹, so that d Σ s log δ / dA = δᵢ ((I − A + 1)⁻¹ s / δ)ⱼ.
        slope = np.outer(shares, inverse @ (starts / shares))
        each = moves + transition * slope  # A · ∂/∂A
        gradient = each - transition * each.sum(axis=1, keepdims=True)
        return -float(here + (starts * np.log(shares)).sum()), -gradient[kept]

    found = []
    for transition in tried:
        lifted = np.where(kept, np.maximum(transition, _LEAST), 0.0)
        done = minimize(
            descend,
            np.log(lifted[kept] / np.repeat(lifted.sum(axis=1), kept.sum(axis=1))),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": 500, "ftol": 1e-15, "gtol": 1e-9},
        )
        logs = np.full((n, n), -np.inf)
        logs[kept] = done.x
        shares = np.exp(logs - logs.max(axis=1, keepdims=True))
        found.append(shares / shares.sum(axis=1, keepdims=True))
    if begin is not None:
        found.append(begin)
    return max(found, key=value)

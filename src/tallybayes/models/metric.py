"""Learning a metric: W that makes rows nearest to the mean of their own class."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np


class Trained(NamedTuple):
    """A learned metric and how its training ended."""

    projection: np.ndarray
    history: list[float]  # mean −log p(class | row) after every step, in nats
    converged: bool
    message: str


def objective(
    projection: np.ndarray, rows: np.ndarray, codes: np.ndarray, weight: np.ndarray, means: np.ndarray
) -> tuple[float, np.ndarray]:
    """Mean −log p(class | row) under p ∝ exp(−½‖W(x − μ_c)‖²), and its gradient with respect to W.

    Parameters
    ----------
    projection : ndarray of shape (components, columns)
        W.
    rows : ndarray of shape (n, columns)
    codes : ndarray of int of shape (n,)
    weight : ndarray of shape (n,), summing to 1
    means : ndarray of shape (classes, columns)

    Returns
    -------
    value : float
    gradient : ndarray of shape (components, columns)
    """
    seen, centres = rows @ projection.T, means @ projection.T
    # ‖Wx‖² is the same for every class, so only the parts that differ are needed
    score = seen @ centres.T - 0.5 * (centres**2).sum(axis=1)
    score -= score.max(axis=1, keepdims=True)
    proba = np.exp(score)
    total = proba.sum(axis=1, keepdims=True)
    proba /= total
    index = np.arange(len(rows))
    value = -float(weight @ (score[index, codes] - np.log(total[:, 0])))
    # pull = Σ_c (p_c − [c = y]) ∂score_c, with score_c = xᵀWᵀWμ_c − ½ μ_cᵀWᵀWμ_c
    proba[index, codes] -= 1.0
    proba *= weight[:, None]
    cross = proba.T @ rows  # (classes, columns)
    gradient = centres.T @ cross + (proba.T @ seen).T @ means - (centres * proba.sum(axis=0)[:, None]).T @ means
    return value, gradient


def train(
    start: np.ndarray,
    rows: np.ndarray,
    codes: np.ndarray,
    weight: np.ndarray,
    means: np.ndarray,
    n_iter: int,
    tol: float,
    verbose: bool,
) -> Trained:
    """Minimise `objective` by L-BFGS from `start`.

    It stops when a step improves the objective by less than `tol`, relatively, or after `n_iter` steps; ``converged``
    says which.
    """
    from scipy.optimize import minimize

    weight = weight / weight.sum()
    history = [objective(start, rows, codes, weight, means)[0]]

    def value(flat: np.ndarray) -> tuple[float, np.ndarray]:
        found, gradient = objective(flat.reshape(start.shape), rows, codes, weight, means)
        return found, gradient.ravel()

    def watch(intermediate_result: Any) -> None:
        history.append(float(intermediate_result.fun))
        if verbose:
            sys.stderr.write(f"\rmetric: step {len(history) - 1} of at most {n_iter}, log-loss {history[-1]:.6f}")

    options = {"maxiter": n_iter, "ftol": tol, "gtol": 0.0}
    found = minimize(value, start.ravel(), jac=True, method="L-BFGS-B", callback=watch, options=options)
    if verbose:
        sys.stderr.write("\n")
    return Trained(found.x.reshape(start.shape), history, bool(found.status == 0), str(found.message))

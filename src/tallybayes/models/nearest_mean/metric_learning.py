"""Metrics as a matrix W with d² = ‖W(x − μ)‖²: from a covariance, from a matrix, or learned from the rows."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import OptimizeResult

from tallybayes.errors import DataError, EstimateError
from tallybayes.estimation.scoring.factor_scorer import make_factor_scorer, resolve_prior
from tallybayes.families.continuous import pooled_scale
from tallybayes.families.multivariate_gaussian import TiedMultivariateGaussian
from tallybayes.statistics.moments import Moments
from tallybayes.tally.factor import Factor


class MetricFit(NamedTuple):
    """A learned metric and the history of its optimization."""

    projection: np.ndarray
    history: list[float]  # mean log loss after each iteration, in nats
    converged: bool
    message: str


def whitening_matrix(moments: Moments, factor: Factor) -> np.ndarray:
    """Return the W that whitens the pooled covariance: the unbiased estimate, or the MAP estimate if it is singular."""
    family = TiedMultivariateGaussian()
    if not moments.full:
        raise EstimateError(
            "metric='mahalanobis' needs the products of the columns, which were not counted under the metric of fit.\n"
            "    Fit with metric='mahalanobis'; reestimate gives any other metric from it."
        )
    if not len(moments.weight):
        raise DataError("no class is left to measure distances by: every row was forgotten.\n    Fit some rows first.")
    covariance = family.unbiased(moments).covariance[0]
    if family.is_definite(covariance):
        return np.linalg.inv(np.linalg.cholesky(covariance))
    read = Factor(factor.columns, factor.given, family)
    scored = make_factor_scorer(read, moments, resolve_prior(read, moments, None, "map"), "map")
    root = np.linalg.inv(np.linalg.cholesky(np.asarray(scored.parameters.covariance)[0]))
    root[:, scored.constant] = 0.0
    return root


def metric_root(metric: npt.ArrayLike, n_columns: int) -> np.ndarray:
    """Return W of a symmetric positive semi-definite matrix A = WᵀW; raise EstimateError for other matrices."""
    try:
        matrix = np.asarray(metric, dtype=float)
    except (TypeError, ValueError):
        matrix = np.zeros(0)
    if matrix.ndim != 2 or not np.isfinite(matrix).all():
        raise EstimateError(
            f"metric is {metric!r}; expected 'mahalanobis', 'euclidean', 'learned', a matrix of finite numbers or a "
            "callable."
        )
    if matrix.shape != (n_columns, n_columns) or not np.allclose(matrix, matrix.T):
        raise EstimateError(
            f"metric is a matrix of shape {matrix.shape}; expected a symmetric one of ({n_columns}, {n_columns}).\n"
            "    For a projection W, with d² = ‖W(x − μ)‖², pass W.T @ W."
        )
    values, vectors = np.linalg.eigh(matrix)
    if values.min(initial=0.0) < -1e-10 * np.abs(values).max(initial=0.0):
        raise EstimateError(f"metric has the negative eigenvalue {values.min():.3g}; expected d² of at least 0.")
    return np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T


def objective(
    projection: np.ndarray, rows: np.ndarray, codes: np.ndarray, weight: np.ndarray, means: np.ndarray
) -> tuple[float, np.ndarray]:
    """Return the mean log loss under p ∝ exp(−½‖W(x − μ_c)‖²), and its gradient with respect to W.

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
    projected = rows @ projection.T
    centers = means @ projection.T
    # ‖Wx‖² is the same for every class and cancels
    score = projected @ centers.T - 0.5 * (centers**2).sum(axis=1)
    score -= score.max(axis=1, keepdims=True)
    proba = np.exp(score)
    total = proba.sum(axis=1, keepdims=True)
    proba /= total
    index = np.arange(len(rows))
    value = -float(weight @ (score[index, codes] - np.log(total[:, 0])))
    # gradient = Σ_c (p_c − [c = y]) ∂score_c, with score_c = xᵀWᵀWμ_c − ½ μ_cᵀWᵀWμ_c
    proba[index, codes] -= 1.0
    proba *= weight[:, None]
    cross = proba.T @ rows  # (classes, columns)
    gradient = centers.T @ cross + (proba.T @ projected).T @ means - (centers * proba.sum(axis=0)[:, None]).T @ means
    return value, gradient


def learn_metric(
    rows: np.ndarray,
    codes: np.ndarray,
    weight: np.ndarray,
    moments: Moments,
    n_components: int | None,
    **settings: Any,
) -> MetricFit:
    """Learn the metric that minimizes the log loss of the rows (Mensink et al. 2013).

    Columns are scaled for the optimization, which makes it invariant to units, and rows are centered for accuracy.
    """
    center, variance, _ = pooled_scale(moments)
    scale = np.sqrt(np.where(variance > 0, variance, 1.0))
    rows = (rows - center) / scale
    means = (moments.mean - center) / scale
    d = rows.shape[1]
    start = _initial_directions(codes, weight, means)[: d if n_components is None else min(n_components, d)] / np.sqrt(
        d
    )
    trained = minimize_log_loss(start, rows, codes, weight, means, **settings)
    # A constant column does not separate classes, so its coefficient is 0.
    return trained._replace(projection=np.where(variance > 0, trained.projection / scale, 0.0))


def _initial_directions(codes: np.ndarray, weight: np.ndarray, means: np.ndarray) -> np.ndarray:
    """Return the directions of the largest variance between class means, then an orthonormal completion."""
    class_weight = np.bincount(codes, weight, minlength=len(means))
    return np.linalg.svd(
        np.sqrt(class_weight)[:, None] * (means - class_weight @ means / class_weight.sum()), full_matrices=True
    )[2]


def minimize_log_loss(
    start: np.ndarray,
    rows: np.ndarray,
    codes: np.ndarray,
    weight: np.ndarray,
    means: np.ndarray,
    max_iter: int,
    tol: float,
    verbose: bool,
) -> MetricFit:
    """Minimize `objective` by L-BFGS from `start`.

    The iteration ends if it improves the objective relatively by less than `tol`, or after `max_iter` iterations;
    ``converged`` is True in the first case.
    """
    from scipy.optimize import minimize

    weight = weight / weight.sum()
    history = [objective(start, rows, codes, weight, means)[0]]

    def value(flat: np.ndarray) -> tuple[float, np.ndarray]:
        result, gradient = objective(flat.reshape(start.shape), rows, codes, weight, means)
        return result, gradient.ravel()

    def watch(intermediate_result: OptimizeResult) -> None:
        history.append(float(intermediate_result.fun))
        if verbose:
            sys.stderr.write(
                f"\rmetric: iteration {len(history) - 1} of at most {max_iter}, log loss {history[-1]:.6f}"
            )

    options = {"maxiter": max_iter, "ftol": tol, "gtol": 0.0}
    result = minimize(value, start.ravel(), jac=True, method="L-BFGS-B", callback=watch, options=options)
    if verbose:
        sys.stderr.write("\n")
    return MetricFit(result.x.reshape(start.shape), history, bool(result.status == 0), str(result.message))

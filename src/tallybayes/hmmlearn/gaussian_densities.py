"""Densities of Gaussians, many of them at once, and where hmmlearn mends a covariance."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

import tallybayes as tb
from tallybayes.kernels import Scorer, squared_lengths

FAMILIES = {
    "full": tb.MultivariateGaussian,
    "tied": tb.TiedMultivariateGaussian,
    "diag": tb.Gaussian,
    "spherical": tb.SphericalGaussian,
}
_MENDED = 1e-7  # what hmmlearn adds to the diagonal of a matrix that is not positive-definite


def log_densities(X: np.ndarray, means: np.ndarray, covars: np.ndarray) -> np.ndarray:
    """log p(x) under Gaussians of variances (n, columns), or of matrices; missing cells say nothing.

    Parameters
    ----------
    X : ndarray of float of shape (steps, columns)
    means : ndarray of shape (n, columns)
    covars : ndarray

    Returns
    -------
    ndarray of shape (steps, n)
    """
    means = np.asarray(means, dtype=float)
    if X.shape[1] != means.shape[1]:
        raise ValueError(f"Unexpected number of dimensions, got {X.shape[1]} but expected {means.shape[1]}")
    if covars.ndim == 3:
        return _of_matrices(X, means, covars)
    covars = np.maximum(covars, np.finfo(float).tiny)
    scale = -0.5 * np.log(2 * np.pi * covars)
    return Scorer(np.zeros(len(means)), [("normal", means.T, 1 / covars.T, scale.T)]).joint([X], len(X))


def _of_matrices(X: np.ndarray, means: np.ndarray, covars: np.ndarray) -> np.ndarray:
    known = ~np.isnan(X)
    if known.all():
        return _of_whole_rows(X, means, covars)
    out = np.zeros((len(X), len(means)))
    patterns, which = np.unique(known, axis=0, return_inverse=True)
    for number, some in enumerate(patterns):
        if some.any():
            rows = np.flatnonzero(which.ravel() == number)
            out[rows] = _of_whole_rows(X[np.ix_(rows, some)], means[:, some], covars[:, some][:, :, some])
    return out


def _of_whole_rows(X: np.ndarray, means: np.ndarray, covars: np.ndarray) -> np.ndarray:
    """By lower roots, as hmmlearn has it: near-singular matrices, which our families refuse, are taken."""
    roots = np.linalg.cholesky(mended(covars))
    turns = np.stack([solve_triangular(root, np.eye(len(root)), lower=True) for root in roots])
    center = means.mean(axis=0)
    shifts = (turns @ (means - center)[:, :, None])[:, :, 0]
    level = np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1) + X.shape[1] * np.log(2 * np.pi) / 2
    return np.asarray(-0.5 * squared_lengths(X, center, turns, shifts) - level)


def mended(covars: np.ndarray) -> np.ndarray:
    """Positive-definite matrices: those that are not have a little more on their diagonal, as in hmmlearn."""
    try:
        np.linalg.cholesky(covars)
    except np.linalg.LinAlgError:
        return np.stack([_mended(matrix) for matrix in covars])
    return covars


def _mended(matrix: np.ndarray) -> np.ndarray:
    for more in (0.0, _MENDED):
        found = matrix + more * np.eye(len(matrix))
        try:
            np.linalg.cholesky(found)
        except np.linalg.LinAlgError:
            continue
        return found
    raise ValueError("'covars' must be symmetric, positive-definite")


def over_states(covars: Any, kind: str, n: int, n_features: int) -> np.ndarray:
    """Covariances as our families have them: variances of shape (n, columns), or a matrix for each."""
    covars = np.asarray(covars, dtype=float)
    if kind == "diag":
        return covars
    if kind == "spherical":
        return np.broadcast_to(covars.reshape(n, -1)[:, :1], (n, n_features))
    return np.broadcast_to(covars, (n, n_features, n_features))


def outer(rows: np.ndarray) -> np.ndarray:
    """The products of the columns of every row."""
    return rows[..., :, None] * rows[..., None, :]


def refuse_parts(X: np.ndarray, what: str) -> None:
    """Refuse steps of which a part is missing."""
    holes = np.isnan(X)
    some = np.flatnonzero(holes.any(axis=1) & ~holes.all(axis=1))
    if len(some):
        raise tb.DataError(
            f"step {some[0]} lacks some of its cells; expected all or none of them to learn from with {what}.\n"
            "    Use tb.HiddenMarkovModel, which expects missing cells, or covariance_type='diag'."
        )

"""Log densities of Gaussians, with the regularization of singular covariances of hmmlearn."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular

import tallybayes as tb
from tallybayes.hmmlearn.hmm_drop_in import check_width
from tallybayes.kernels import Scorer, squared_lengths

FAMILIES = {
    "full": tb.MultivariateGaussian,
    "tied": tb.TiedMultivariateGaussian,
    "diag": tb.Gaussian,
    "spherical": tb.SphericalGaussian,
}
_JITTER = 1e-7  # hmmlearn adds this to the diagonal of a matrix that is not positive-definite


def log_densities(X: np.ndarray, means: np.ndarray, covars: np.ndarray) -> np.ndarray:
    """Return log p(x) of every row under n Gaussians; missing cells are marginalized.

    Parameters
    ----------
    X : ndarray of float of shape (steps, columns)
    means : ndarray of shape (n, columns)
    covars : ndarray of shape (n, columns) or (n, columns, columns)
        Variances, or covariance matrices.

    Returns
    -------
    ndarray of shape (steps, n)
    """
    means = np.asarray(means, dtype=float)
    check_width(X, means.shape[1])
    if covars.ndim == 3:
        return _of_matrices(X, means, covars)
    covars = np.maximum(covars, np.finfo(float).tiny)
    scale = -0.5 * np.log(2 * np.pi * covars)
    return Scorer(np.zeros(len(means)), [("normal", means.T, 1 / covars.T, scale.T)]).joint([X], len(X))


def _of_matrices(X: np.ndarray, means: np.ndarray, covars: np.ndarray) -> np.ndarray:
    """Return the log densities under covariance matrices, one pattern of missing cells at a time."""
    known = ~np.isnan(X)
    if known.all():
        return _of_whole_rows(X, means, covars)
    out = np.zeros((len(X), len(means)))
    patterns, which = np.unique(known, axis=0, return_inverse=True)
    for number, columns in enumerate(patterns):
        if columns.any():
            rows = np.flatnonzero(which.ravel() == number)
            out[rows] = _of_whole_rows(X[np.ix_(rows, columns)], means[:, columns], covars[:, columns][:, :, columns])
    return out


def _of_whole_rows(X: np.ndarray, means: np.ndarray, covars: np.ndarray) -> np.ndarray:
    """Return the log densities of rows without missing cells, by Cholesky factors.

    Like hmmlearn, this accepts nearly singular matrices, for which the families of this package raise an error.
    """
    roots = np.linalg.cholesky(regularize(covars))
    inverse_roots = np.stack([solve_triangular(root, np.eye(len(root)), lower=True) for root in roots])
    center = means.mean(axis=0)
    shifts = (inverse_roots @ (means - center)[:, :, None])[:, :, 0]
    log_normalizer = np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1) + X.shape[1] * np.log(2 * np.pi) / 2
    return np.asarray(-0.5 * squared_lengths(X, center, inverse_roots, shifts) - log_normalizer)


def regularize(covars: np.ndarray) -> np.ndarray:
    """Return positive-definite matrices: as in hmmlearn, 1e-7 is added to the diagonal of a singular one."""
    try:
        np.linalg.cholesky(covars)
    except np.linalg.LinAlgError:
        return np.stack([_regularize(matrix) for matrix in covars])
    return covars


def _regularize(matrix: np.ndarray) -> np.ndarray:
    """Return the matrix, regularized if it is not positive-definite."""
    for jitter in (0.0, _JITTER):
        regularized = matrix + jitter * np.eye(len(matrix))
        try:
            np.linalg.cholesky(regularized)
        except np.linalg.LinAlgError:
            continue
        return regularized
    raise ValueError("'covars' must be symmetric, positive-definite")


def gaussian_parameters(means: np.ndarray, covars: np.ndarray) -> list[dict[str, np.ndarray]]:
    """Return mean and variance, or covariance matrix, of each Gaussian by name."""
    if covars.ndim == 2:
        return [{"mean": mean, "variance": part} for mean, part in zip(means, covars, strict=True)]
    return [{"mean": mean, "covariance": part} for mean, part in zip(means, regularize(covars), strict=True)]


def over_states(covars: npt.ArrayLike, kind: str, n: int, n_features: int) -> np.ndarray:
    """Return covariances of all states: variances of shape (n, columns), or one matrix for each state."""
    covars = np.asarray(covars, dtype=float)
    if kind == "diag":
        return covars
    if kind == "spherical":
        return np.broadcast_to(covars.reshape(n, -1)[:, :1], (n, n_features))
    return np.broadcast_to(covars, (n, n_features, n_features))


def outer_products(rows: np.ndarray) -> np.ndarray:
    """Return the outer product of every row with itself."""
    return rows[..., :, None] * rows[..., None, :]


def check_complete_steps(X: np.ndarray, what: str) -> None:
    """Raise DataError if some cells of a time step are missing and others are not."""
    missing = np.isnan(X)
    partial = np.flatnonzero(missing.any(axis=1) & ~missing.all(axis=1))
    if len(partial):
        raise tb.DataError(
            f"step {partial[0]} has some missing cells; expected all or none to be missing with {what}.\n"
            "    Use tb.HiddenMarkovModel, which imputes missing cells in EM, or covariance_type='diag'."
        )

"""Mahalanobis distances of rows, also of incomplete rows, by pattern of missing cells."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy.linalg.lapack import dtrtri

from tallybayes import kernels
from tallybayes.distributions.log_gamma import log_rising

_CELLS, _LEAST = (
    1 << 17,
    256,
)  # per batch of whitened rows: small enough for the cache, large enough for matrix products


def cholesky(covariance: np.ndarray) -> np.ndarray | None:
    """Return Cholesky factors, or None if a column is, up to rounding, a linear combination of others."""
    try:
        root = np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        return None
    pivots = np.diagonal(root, axis1=-2, axis2=-1) ** 2
    variances = np.diagonal(covariance, axis1=-2, axis2=-1)
    return root if (pivots > 1e-13 * variances).all() else None


def invert_lower(root: np.ndarray) -> np.ndarray:
    """Return the inverses of lower triangular matrices."""
    k = root.shape[-1]
    if not k:
        return root
    return np.stack([dtrtri(lower, lower=1)[0] for lower in root.reshape(-1, k, k)]).reshape(root.shape)


def whiten(rows: np.ndarray, root: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return rows (n, k) whitened by lower factors (groups, k, k), as (n, groups, k), and the log determinants."""
    return np.einsum("kij,nj->nki", invert_lower(root), rows), log_determinants(root)


def log_determinants(root: np.ndarray) -> np.ndarray:
    """Return the log determinants of matrices from their Cholesky factors."""
    return np.asarray(2 * np.log(np.diagonal(root, axis1=-2, axis2=-1)).sum(axis=-1))


def multivariate_t_log_density(
    squares: np.ndarray, log_det: np.ndarray, shape: np.ndarray, k: int | np.ndarray
) -> np.ndarray:
    """Return log densities of a multivariate t of k columns, from squared distances and log determinants.

    The density is ∝ (1 + q)^(−shape − k/2), with q the squared distance; `shape` is half the degrees of freedom.
    """
    log_norm = log_rising(shape, k / 2) - k / 2 * np.log(np.pi) - log_det / 2
    return np.asarray(log_norm - (shape + k / 2) * np.log1p(squares))


def squared_distances(rows: np.ndarray, mean: np.ndarray, root: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return squared Mahalanobis distances (n, *given) of rows (n, k) from means (*given, k), and log determinants.

    Rows are whitened by each group's inverse factor, or once if groups share it (`root` then has length 1).
    """
    return distances_by_inverse(rows, mean, invert_lower(root)), log_determinants(root)


def distances_by_inverse(rows: np.ndarray, mean: np.ndarray, inverse: np.ndarray) -> np.ndarray:
    """Return `squared_distances` from inverse factors; rows are centered at the mean of the means, for precision."""
    *given, k = mean.shape
    if not k:
        return np.zeros((len(rows), *given))
    defined = mean[~np.isnan(mean).any(axis=-1)]  # a group without rows has a NaN mean and NaN distances
    center = defined.mean(axis=0) if len(defined) else np.zeros(k)
    shift = (inverse @ (mean - center)[..., None])[..., 0]
    return whitened_squared_norms(
        np.ascontiguousarray(rows), center, inverse.reshape(-1, k, k), shift.reshape(-1, k)
    ).reshape(len(rows), *given)


def whitened_squared_norms(rows: np.ndarray, center: np.ndarray, inverse: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """Return squared norms (n, groups) of rows whitened about a center, minus whitened shifts (groups, k).

    `inverse` has the inverse factor of every group, or a single one that all groups share.
    """
    if len(inverse) == len(shift):
        return kernels.squared_lengths(rows, center, inverse, shift)
    # ‖A(x − c) − s‖² = ‖A(x − c)‖² − 2 (x − c)·Aᵀs + ‖s‖²: the first term is the same for all groups.
    common = kernels.squared_lengths(rows, center, inverse, np.zeros((1, len(center))))
    slope, squares = shift @ inverse[0], np.empty((len(rows), len(shift)))
    for start in range(0, len(rows), step := max(_LEAST, _CELLS // rows.shape[1])):
        part = slice(start, start + step)
        square = common[part] - 2 * ((rows[part] - center) @ slope.T) + (shift**2).sum(axis=-1)
        np.maximum(square, 0.0, out=squares[part])
    return squares


def by_missing_pattern(
    x: np.ndarray, given: tuple[int, ...], density: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> np.ndarray:
    """Return log densities of rows, each by the marginal of its observed cells."""
    x = np.asarray(x, dtype=float)
    if not x.size:
        return np.zeros((len(x), *given))
    # Most rows are complete: score all rows as if they were, then those with non-finite results by pattern.
    if np.isnan(x[0]).any() and np.isnan(x).any(axis=1).all():  # no row is complete
        out = np.full((len(x), *given), np.nan)
    else:
        with np.errstate(invalid="ignore", over="ignore"):
            out = density(x, np.arange(x.shape[1]))
    incomplete = np.flatnonzero(~np.isfinite(out).reshape(len(x), -1).all(axis=1))
    if len(incomplete):
        rows = x[incomplete]
        marginal = np.zeros((len(rows), *given))
        for known, index in missing_patterns(rows):
            with np.errstate(invalid="ignore", over="ignore"):
                marginal[index] = density(rows[np.ix_(index, known)], known)
        out[incomplete] = marginal
    return out


def missing_patterns(x: np.ndarray, *, empty: bool = False) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the observed columns and the row indices of every pattern; patterns without any only if `empty`."""
    known = ~np.isnan(x)
    if known.all():
        if x.size:
            yield np.arange(x.shape[1]), np.arange(len(x))
        return
    patterns, pattern_of_row = np.unique(known, axis=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        if empty or pattern.any():
            yield np.flatnonzero(pattern), np.flatnonzero(pattern_of_row.ravel() == number)

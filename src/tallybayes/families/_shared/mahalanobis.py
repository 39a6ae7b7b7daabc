"""Squared lengths of rows under covariance matrices, and rows that lack cells by what they lack."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.linalg.lapack import dtrtri

from tallybayes import kernels

_CELLS, _LEAST = 1 << 17, 256  # of rows that are turned at a time: what stays in a cache, and is worth a product


def cholesky(covariance: np.ndarray) -> np.ndarray | None:
    """Cholesky factors, or None where a column is, but for rounding, a combination of the others."""
    try:
        root = np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError:
        return None
    pivots = np.diagonal(root, axis1=-2, axis2=-1) ** 2
    variances = np.diagonal(covariance, axis1=-2, axis2=-1)
    return root if (pivots > 1e-13 * variances).all() else None


def invert_lower(root: np.ndarray) -> np.ndarray:
    """The inverses of lower triangular matrices."""
    k = root.shape[-1]
    if not k:
        return root
    return np.stack([dtrtri(lower, lower=1)[0] for lower in root.reshape(-1, k, k)]).reshape(root.shape)


def whiten(rows: np.ndarray, root: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows (n, k) by the inverses of lower roots (groups, k, k): (n, groups, k); and the log determinants."""
    return np.einsum("kij,nj->nki", invert_lower(root), rows), log_determinants(root)


def log_determinants(root: np.ndarray) -> np.ndarray:
    """Of matrices, by their lower roots."""
    return np.asarray(2 * np.log(np.diagonal(root, axis1=-2, axis2=-1)).sum(axis=-1))


def squared_distances(rows: np.ndarray, mean: np.ndarray, root: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Squared Mahalanobis lengths (n, *given) of rows (n, k) from means (*given, k), and the log determinants.

    The rows are turned by each group's inverse root, or once for all groups where they share it (`root` has length 1
    there), about the middle of the means, so that the products keep their digits.
    """
    counted = mean[~np.isnan(mean).any(axis=-1)]  # a group without rows has no mean, and its lengths are NaN
    center = counted.mean(axis=0) if len(counted) else np.zeros(mean.shape[-1])
    inverse = invert_lower(root)
    shift = (inverse @ (mean - center)[..., None])[..., 0]
    log_det, k = log_determinants(root), mean.shape[-1]
    if not k:
        return np.zeros((len(rows), *mean.shape[:-1])), log_det
    lengths = whitened_squared_norms(rows, center, inverse.reshape(-1, k, k), shift.reshape(-1, k))
    return lengths.reshape(len(rows), *mean.shape[:-1]), log_det


def whitened_squared_norms(rows: np.ndarray, center: np.ndarray, inverse: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """Squared lengths (n, groups) of rows turned about a center, from shifts (groups, k) that are turned already.

    `inverse` has the inverse root of every group, or a single one that all groups share.
    """
    if len(inverse) == len(shift):
        return kernels.squared_lengths(rows, center, inverse, shift)
    # ‖A(x − c) − s‖² = ‖A(x − c)‖² − 2 (x − c)·Aᵀs + ‖s‖²: the square is the same for all groups.
    own = kernels.squared_lengths(rows, center, inverse, np.zeros((1, len(center))))
    slope, squares = shift @ inverse[0], np.empty((len(rows), len(shift)))
    for start in range(0, len(rows), step := max(_LEAST, _CELLS // rows.shape[1])):
        part = slice(start, start + step)
        square = own[part] - 2 * ((rows[part] - center) @ slope.T) + (shift**2).sum(axis=-1)
        np.maximum(square, 0.0, out=squares[part])
    return squares


def by_missing_pattern(x: np.ndarray, given: tuple[int, ...], density: Any) -> np.ndarray:
    """Rows grouped by which cells are known; each pattern is scored by its marginal."""
    x = np.asarray(x, dtype=float)
    if not x.size:
        return np.zeros((len(x), *given))
    # Most rows are whole: score them all as if they were, and only then look at those that did not come out.
    if np.isnan(x[0]).any() and np.isnan(x).any(axis=1).all():  # none is, so their joint density is nobody's business
        out = np.full((len(x), *given), np.nan)
    else:
        with np.errstate(invalid="ignore", over="ignore"):
            out = density(x, np.arange(x.shape[1]))
    broken = np.flatnonzero(~np.isfinite(out).reshape(len(x), -1).all(axis=1))
    if len(broken):
        rows = x[broken]
        again = np.zeros((len(rows), *given))
        for known, index in missing_patterns(rows):
            with np.errstate(invalid="ignore", over="ignore"):
                again[index] = density(rows[np.ix_(index, known)], known)
        out[broken] = again
    return out


def missing_patterns(x: np.ndarray, *, empty: bool = False) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The known columns and the rows of every pattern of missing cells; rows with no known cell only if `empty`."""
    known = ~np.isnan(x)
    if known.all():
        if x.size:
            yield np.arange(x.shape[1]), np.arange(len(x))
        return
    patterns, which = np.unique(known, axis=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        if empty or pattern.any():
            yield np.flatnonzero(pattern), np.flatnonzero(which.ravel() == number)

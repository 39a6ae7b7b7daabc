"""Gaussian discriminants of every fold at once: moments of each fold and class, counted once and taken out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tallybayes.distributions.log_gamma import log_rising
from tallybayes.families._shared.mahalanobis import invert_lower, log_determinants, whitened_squared_norms
from tallybayes.families.multivariate_gaussian import MultivariateGaussian
from tallybayes.models.discriminant.gaussian_discriminant import oas_of
from tallybayes.models.ensemble.candidate_folds import Folds
from tallybayes.statistics.double_double import DoubleDouble
from tallybayes.statistics.moments import Moments

_ROUNDING = 1e-12  # of a sum of squares


def discriminant_scores(block: np.ndarray, folds: Folds, settings: Sequence[dict[str, Any]]) -> list[np.ndarray]:
    """log p(class, row) of every row under each of the settings, by the moments of the other folds.

    The default prior is that of all rows, as it is held wherever folds are taken out of counts.

    Parameters
    ----------
    block : ndarray of shape (n, columns)
        Finite. Constant columns say nothing.
    folds : Folds
    settings : sequence of dict
        ``covariance``, "full" or "tied", and ``shrinkage``, as `GaussianDiscriminant` takes them.

    Returns
    -------
    list of ndarray of shape (n, classes)
    """
    varied = block[:, (block != block[0]).any(axis=0)]
    rows = (varied - varied.mean(axis=0)) / varied.std(axis=0)  # no scale or offset of a column matters
    weight, first, second = _sums(rows, folds)
    prior = MultivariateGaussian().default_prior(_moments(weight, first, second), "bayes")
    weight, first, second = (folds.without(part) for part in (weight, first, second))
    mean = first / np.where(weight > 0, weight, 1.0)[..., None]
    scatter = second - first[..., :, None] * mean[..., None, :]
    squares = np.diagonal(second, axis1=-2, axis2=-1)
    flat = np.diagonal(scatter, axis1=-2, axis2=-1) <= _ROUNDING * squares  # a constant leaves some
    if flat.any():
        scatter *= ~(flat[..., :, None] | flat[..., None, :])
    strength = prior.strength + weight
    gap = mean - prior.location
    pulls = gap * np.sqrt(prior.strength * weight / strength)[..., None]
    location = prior.location + gap * (weight / strength)[..., None]
    tied = (
        scatter.sum(axis=1, keepdims=True),
        (pulls.swapaxes(1, 2) @ pulls)[:, None],
        weight.sum(axis=1, keepdims=True),
    )
    out = []
    for setting in settings:
        spread, pulled, counted = tied
        if setting["covariance"] == "full":
            spread = scatter
            pulled = pulls[..., :, None] * pulls[..., None, :]
            counted = weight
        amount = setting.get("shrinkage", 0.0)
        amount = oas_of(spread, counted)[..., None, None] if amount == "auto" else amount
        scale = spread * (1 - amount * (1 - np.eye(rows.shape[1])))
        scale += pulled
        scale += prior.scale
        out.append(_scores(rows, folds, location, 1 + 1 / strength, scale, counted + 3.0))
    return out


def _sums(rows: np.ndarray, folds: Folds) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The weight, the sum and the sum of products of every fold and class."""
    d = rows.shape[1]
    shape = (folds.n_folds, folds.n_classes)
    first = np.zeros((*shape, d))
    second = np.zeros((*shape, d, d))
    for place, here in zip(np.ndindex(shape), folds.by_fold_and_class(), strict=True):
        part = rows[here]
        heavy = part if folds.weight is None else part * folds.weight[here, None]
        first[place] = heavy.sum(axis=0)
        second[place] = heavy.T @ part
    return folds.table, first, second


def _moments(weight: np.ndarray, first: np.ndarray, second: np.ndarray) -> Moments:
    """The moments of the classes over all folds, each column by itself."""
    squares = np.diagonal(second, axis1=-2, axis2=-1)
    sums = (part.sum(axis=0) for part in (weight[..., None], first, squares))
    return Moments(np.zeros(first.shape[-1]), *map(DoubleDouble.of, sums))


def _scores(
    rows: np.ndarray, folds: Folds, location: np.ndarray, widen: np.ndarray, scale: np.ndarray, freedom: np.ndarray
) -> np.ndarray:
    """log p(class) and the multivariate t of every row, by its fold's own parameters."""
    root = np.linalg.cholesky(scale)
    k = rows.shape[1]
    center = location.mean(axis=1)
    inverse = invert_lower(root)
    shift = (inverse @ (location - center[:, None])[..., None])[..., 0]
    log_norm = log_rising(freedom / 2, k / 2) - k / 2 * np.log(np.pi * widen) - log_determinants(root) / 2
    start = folds.log_prior + log_norm
    power = np.broadcast_to((freedom + k) / 2, widen.shape)
    out = np.empty((len(rows), folds.n_classes))
    for fold, test in enumerate(folds.tests):
        squares = whitened_squared_norms(rows[test], center[fold], inverse[fold], shift[fold])
        squares /= widen[fold]
        out[test] = start[fold] - power[fold] * np.log1p(squares, out=squares)
    return out

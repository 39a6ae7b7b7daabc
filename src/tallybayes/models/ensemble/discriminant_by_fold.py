"""Cross-validated scores of Gaussian discriminants: moments are counted once by fold and class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tallybayes.distributions.log_gamma import log_rising
from tallybayes.families._shared.mahalanobis import invert_lower, log_determinants, whitened_squared_norms
from tallybayes.families.multivariate_gaussian import MultivariateGaussian
from tallybayes.models.discriminant.shrinkage import oas_of
from tallybayes.models.ensemble.candidate_folds import CountedFolds
from tallybayes.statistics.double_double import DoubleDouble
from tallybayes.statistics.moments import Moments

_ROUNDING = 1e-12  # of a sum of squares


def discriminant_scores(block: np.ndarray, folds: CountedFolds, settings: Sequence[dict[str, Any]]) -> list[np.ndarray]:
    """Return log p(class, row) of each row under each setting, by the moments of the other folds.

    The default prior comes from all rows, as in all resampling by subtraction.

    Parameters
    ----------
    block : ndarray of shape (n, columns)
        Finite. Constant columns are ignored.
    folds : CountedFolds
    settings : sequence of dict
        ``covariance``, "full" or "tied", and ``shrinkage``, as for `GaussianDiscriminant`.

    Returns
    -------
    list of ndarray of shape (n, classes)
    """
    varied = block[:, (block != block[0]).any(axis=0)]
    rows = (varied - varied.mean(axis=0)) / varied.std(
        axis=0
    )  # the scores are invariant to scales and offsets of columns
    weight, first, second = _sums(rows, folds)
    prior = MultivariateGaussian().default_prior(_moments(weight, first, second), "bayes")
    weight, first, second = (folds.without(part) for part in (weight, first, second))
    mean = first / np.where(weight > 0, weight, 1.0)[..., None]
    scatter = second - first[..., :, None] * mean[..., None, :]
    squares = np.diagonal(second, axis1=-2, axis2=-1)
    constant = (
        np.diagonal(scatter, axis1=-2, axis2=-1) <= _ROUNDING * squares
    )  # rounding leaves a small sum of squares for constant columns
    if constant.any():
        scatter *= ~(constant[..., :, None] | constant[..., None, :])
    strength = prior.strength + weight
    difference = mean - prior.location
    mean_terms = difference * np.sqrt(prior.strength * weight / strength)[..., None]
    location = prior.location + difference * (weight / strength)[..., None]
    tied = (
        scatter.sum(axis=1, keepdims=True),
        (mean_terms.swapaxes(1, 2) @ mean_terms)[:, None],
        weight.sum(axis=1, keepdims=True),
    )
    out = []
    for setting in settings:
        spread, mean_term, n_counted = tied
        if setting["covariance"] == "full":
            spread = scatter
            mean_term = mean_terms[..., :, None] * mean_terms[..., None, :]
            n_counted = weight
        amount = setting.get("shrinkage", 0.0)
        amount = oas_of(spread, n_counted)[..., None, None] if amount == "auto" else amount
        scale = spread * (1 - amount * (1 - np.eye(rows.shape[1])))
        scale += mean_term
        scale += prior.scale
        out.append(_scores(rows, folds, location, 1 + 1 / strength, scale, n_counted + 3.0))
    return out


def _sums(rows: np.ndarray, folds: CountedFolds) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the weight, the sum and the sum of products of each fold and class."""
    d = rows.shape[1]
    shape = (folds.n_folds, folds.n_classes)
    first = np.zeros((*shape, d))
    second = np.zeros((*shape, d, d))
    for index, rows_of_group in zip(np.ndindex(shape), folds.by_fold_and_class(), strict=True):
        cells = rows[rows_of_group]
        weighted = cells if folds.weight is None else cells * folds.weight[rows_of_group, None]
        first[index] = weighted.sum(axis=0)
        second[index] = weighted.T @ cells
    return folds.table, first, second


def _moments(weight: np.ndarray, first: np.ndarray, second: np.ndarray) -> Moments:
    """Return the per-column moments of the classes over all folds."""
    squares = np.diagonal(second, axis1=-2, axis2=-1)
    sums = (part.sum(axis=0) for part in (weight[..., None], first, squares))
    return Moments(np.zeros(first.shape[-1]), *map(DoubleDouble.of, sums))


def _scores(
    rows: np.ndarray,
    folds: CountedFolds,
    location: np.ndarray,
    widen: np.ndarray,
    scale: np.ndarray,
    freedom: np.ndarray,
) -> np.ndarray:
    """Return log p(class) plus the multivariate t log density of each row, with the parameters of its fold."""
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

"""Empirical priors of Gaussian families: the distribution of means and variances over groups."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tallybayes.distributions.log_gamma import digamma_rising, log_rising
from tallybayes.distributions.normal_inverse_gamma import NormalInverseGamma
from tallybayes.distributions.normal_inverse_wishart import NormalInverseWishart
from tallybayes.distributions.tied_variance import pool_tied
from tallybayes.families._shared.newton import Evaluate, newton_maximize, with_hessian
from tallybayes.families.continuous import pooled_scale
from tallybayes.families.estimates import read_estimate
from tallybayes.families.family import Family
from tallybayes.statistics.moments import Moments

_FEW_GROUPS = 10  # number of groups up to which the shape stays at the default's or above
_Sums = Callable[[np.ndarray], np.ndarray]
_EvidenceAt = Callable[[np.ndarray], Evaluate]  # of the location: the log evidence of the other parameters
_MAX_ROUNDS = 8  # of updating the location and maximizing the other parameters


def fit_gamma_of_variances(family: Family, statistics: Moments, flat: Moments, estimate: str) -> NormalInverseGamma:
    """Return the normal-inverse-gamma prior of every column, or of columns that share a variance.

    Parameters
    ----------
    family : Family
    statistics : Moments
        Statistics for the default prior.
    flat : Moments
        The same with one axis of groups.
    estimate : {"bayes", "map"}

    Returns
    -------
    NormalInverseGamma
    """
    family.default_prior(statistics, estimate)  # raises EstimateError for constant columns
    shared = family.tied_over
    moments = flat.diagonal()
    n = moments.column_weights()
    shares_columns = "columns" in shared
    center, variance, _ = pooled_scale(flat, together=shares_columns)
    unit = np.where(variance > 0, variance, 1.0)
    mean = np.where(n > 0, (moments.mean - center) / np.sqrt(unit), 0.0)
    scatter = moments.scatter / unit

    def pool(cells: np.ndarray) -> np.ndarray:
        """Sum over the axes that share a variance: from (groups, columns) to (variances, units)."""
        return pool_tied(cells, shared)

    def over(cells: np.ndarray) -> np.ndarray:
        """Sum over the groups, and over columns that share the hyperparameters: (units,)."""
        total = cells.sum(axis=0)
        return total.sum(keepdims=True) if shares_columns else total

    total = over(n) / (len(unit) if shares_columns else 1)
    within = over(scatter)
    n_groups = (n > 0).sum(axis=0)
    n_groups = np.where(within > 0, n_groups.max(initial=0) if shares_columns else n_groups, 0)
    start = np.log(np.stack([np.full_like(total, 0.01), np.full_like(total, 1.5), np.ones_like(total)], -1))
    low, high = _bounds(total, n_groups, start, tied="groups" in shared)
    maximum, location = _alternate(_gamma_evidence(n, mean, scatter, pool, over), start, low, high, mean, n)
    kappa, a, typical = (np.exp(maximum[:, i]) for i in range(3))
    location = np.where(n_groups < 2, 0.0, location)
    n_means = n.size // max(pool(n).size, 1)  # that share one variance
    factor = a + 1 + n_means / 2 if read_estimate(estimate).takes_mode else a
    scale = typical * factor * (unit[:1] if shares_columns else unit)
    return NormalInverseGamma(center + location * np.sqrt(unit), kappa, a, scale, tied_over=shared)


def _gamma_evidence(n: np.ndarray, mean: np.ndarray, scatter: np.ndarray, pool: _Sums, over: _Sums) -> _EvidenceAt:
    """Return the log evidence as a function of the location, then of log κ, log a and log b/a.

    The groups have means and scatter of shape (groups, columns). `pool` sums over the cells that share a variance,
    `over` over those that share the hyperparameters.
    """
    half = pool(n) / 2

    def make(location: np.ndarray) -> Evaluate:
        square = (mean - location) ** 2

        def evaluate(point: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            kappa, a = np.exp(point[:, 0]), np.exp(point[:, 1])
            b = a * np.exp(point[:, 2])
            part = n / (kappa + n)  # weight of the squared distance from the location in the scatter, divided by κ
            moved = kappa * part * square / 2
            e, e1 = pool(scatter / 2 + moved), pool(moved * part)
            posterior_scale, posterior_shape = b + e, a + half
            value = (log_rising(a, half) - a * np.log1p(e / b) - half * np.log(posterior_scale)).sum(axis=0)
            value += over(-0.5 * np.log1p(n / kappa))
            by_k = -(posterior_shape * e1 / posterior_scale).sum(axis=0) + over(part) / 2
            by_b = (a - posterior_shape * b / posterior_scale).sum(axis=0)
            by_a = a * (digamma_rising(a, half) - np.log1p(e / b)).sum(axis=0)
            return value, np.stack([by_k, by_a + by_b, by_b], axis=-1)

        return with_hessian(evaluate)

    return make


def fit_wishart(family: Family, statistics: Moments, flat: Moments, estimate: str) -> NormalInverseWishart:
    """Return the normal-inverse-Wishart prior of a block of columns.

    Parameters
    ----------
    family : Family
    statistics : Moments
        Statistics for the default prior.
    flat : Moments
        The same with one axis of groups.
    estimate : {"bayes", "map"}

    Returns
    -------
    NormalInverseWishart
    """
    default = family.default_prior(statistics, estimate)
    assert isinstance(default, NormalInverseWishart)
    n = flat.weight[:, 0]
    scatter = flat.scatter if flat.full else np.zeros((len(n), 0, 0))
    if not flat.full or (n > 0).sum() < 2 or not scatter.any():
        return default
    d, tied = flat.n_columns, "groups" in family.tied_over
    center, variance, _ = pooled_scale(flat)
    unit = np.sqrt(variance)
    mean = np.where(n[:, None] > 0, (flat.mean - center) / unit, 0.0)
    scatter = scatter / (unit[:, None] * unit)
    start = np.log(np.array([[0.01, 1.5, 1.0]]))
    low, high = _bounds(n.sum(keepdims=True), (n > 0).sum(keepdims=True), start, tied=tied)
    make = _tied_evidence(n, scatter.sum(axis=0)) if tied else _wishart_evidence(n, scatter)
    maximum, location = _alternate(lambda at: make(mean - at), start, low, high, mean, n[:, None])
    kappa, shape, typical = np.exp(maximum[0])
    degrees_of_freedom = 2 * shape + d - 1
    n_means = len(n) if tied else 1
    size = typical * (degrees_of_freedom + d + 1 + n_means if read_estimate(estimate).takes_mode else 2 * shape)
    return default.replace(
        location=center + location * unit,
        strength=kappa,
        degrees_of_freedom=degrees_of_freedom,
        scale=np.diag(variance * size),
    )


def _wishart_evidence(n: np.ndarray, scatter: np.ndarray) -> _EvidenceAt:
    """Return the log evidence of groups with their own covariances, for Ψ = c·1, ν = 2a + d − 1, c = 2a·v.

    In the eigenbasis of a group's scatter, with eigenvalues λ and components z of the distance from the location, log
    |Ψ + S + r·zzᵀ| = Σ log(c + λ) + log(1 + r Σ z² / (c + λ)), with r = κn / (κ + n).
    """
    d = scatter.shape[-1]
    values, axes = np.linalg.eigh(scatter)
    values, n = np.maximum(values, 0.0), n[:, None]
    half = n / 2

    def make(difference: np.ndarray) -> Evaluate:
        squares = (difference[:, None, :] @ axes)[:, 0, :] ** 2

        def evaluate(point: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            kappa, f = np.exp(point[0, 0]), 2 * np.exp(point[0, 1])
            c, nu = f * np.exp(point[0, 2]), f + d - 1
            part = n / (kappa + n)
            r, over = kappa * part, 1 / (c + values)
            q1, q2 = ((squares * over**k).sum(axis=1, keepdims=True) for k in (1, 2))
            m, posterior_df = 1 + r * q1, (nu + n) / 2
            log_ratio = np.log1p(values / c).sum(axis=1, keepdims=True) + np.log(m)  # log |Ψ + …| − log |Ψ|
            steps = (nu - np.arange(d)) / 2
            value = log_rising(steps, half).sum() - (posterior_df * log_ratio + half * d * np.log(c)).sum()
            value -= d / 2 * np.log1p(n / kappa).sum()
            det_k, det_c = r * part * q1 / m, (c * over).sum(axis=1, keepdims=True) - r * c * q2 / m
            by_k = d / 2 * part.sum() - (posterior_df * det_k).sum()
            by_a = f / 2 * (digamma_rising(steps, half).sum() - log_ratio.sum())
            by_b = (nu * d / 2 - posterior_df * det_c).sum()
            return np.array([value]), np.array([[by_k, by_a + by_b, by_b]])

        return with_hessian(evaluate)

    return make


def _tied_evidence(n: np.ndarray, scatter: np.ndarray) -> _EvidenceAt:
    """Return the log evidence of groups that share one covariance, with scatter (d, d), as a function of κ."""
    d = len(scatter)

    def make(difference: np.ndarray) -> Evaluate:
        def evaluate(point: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            kappa, f = np.exp(point[0, 0]), 2 * np.exp(point[0, 1])
            part = n / (kappa + n)
            r = kappa * part
            posterior_scale = f * np.exp(point[0, 2]) * np.eye(d) + scatter + (difference.T * r) @ difference
            squared_norms = (difference.T * np.linalg.solve(posterior_scale, difference.T)).sum(axis=0)
            posterior_df = (f + d - 1 + n.sum()) / 2
            value = -posterior_df * np.linalg.slogdet(posterior_scale)[1] - d / 2 * np.log1p(n / kappa).sum()
            by_k = d / 2 * part.sum() - posterior_df * (r * part * squared_norms).sum()
            return np.array([value]), np.array([[by_k, 0.0, 0.0]])

        return with_hessian(evaluate)

    return make


def _bounds(total: np.ndarray, n_groups: np.ndarray, start: np.ndarray, *, tied: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return bounds of log κ, log a and the log of the typical variance b/a relative to that within groups.

    Parameters that are not identifiable stay at their start: all with a single group, and a and b with one variance.
    With few groups the typical variance is fixed and a ≥ 1.5: otherwise one group of little variance would draw b to 0.
    """
    rows, open_ = np.maximum(total, 3.0), np.log(np.maximum(n_groups / _FEW_GROUPS, 1.0))
    low = np.stack([np.full_like(rows, -30.0), np.maximum(np.log(1.5) - open_, np.log(0.5)), -open_], -1)
    high = np.stack([np.log(rows), np.log(rows / 2), open_], -1)
    hold = (n_groups < 2)[:, None] | (np.array([False, True, True]) if tied else np.zeros(3, dtype=bool))
    return np.where(hold, start, low), np.where(hold, start, high)


def _alternate(
    make: _EvidenceAt, start: np.ndarray, low: np.ndarray, high: np.ndarray, mean: np.ndarray, n: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Alternate between Newton's method and the location, the mean of group means weighted by n/(n + κ)."""
    point = start
    for _ in range(_MAX_ROUNDS):
        weight = n / (n + np.exp(point[:, 0]))
        location = (weight * mean).sum(axis=0) / np.maximum(weight.sum(axis=0), 1e-300)
        maximum = newton_maximize(make(location), point, low, high)[0]
        if np.abs(maximum - point).max(initial=0.0) < 1e-7:
            return maximum, location
        point = maximum
    return point, location

"""Leave-one-out log densities of Gaussian families in closed form, by rank-one updates of mean and scatter."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tallybayes.distributions.log_gamma import log_gamma_half_step, log_rising
from tallybayes.distributions.normal_inverse_gamma import Normal, NormalInverseGamma
from tallybayes.families._shared.mahalanobis import invert_lower, squared_distances

if TYPE_CHECKING:
    from tallybayes.families._shared.leave_one_out_counts import GroupStatistics, RemovedRows
    from tallybayes.families.gaussian import Gaussian
    from tallybayes.families.multivariate_gaussian import MultivariateGaussian

# Least fraction of a scatter that may remain without a row. Below it the float64 difference has lost too many digits:
# those few rows are subtracted in double-double instead.
_MIN_REMAINING = 1e-5


def student_t_leave_one_out(counted: GroupStatistics, constant: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return Student's t of every column without one row: mean, inverse scale, power, log norm, (columns, groups)."""
    posterior = counted.prior.update(counted.statistics)
    size = np.broadcast_shapes(posterior.location.shape, posterior.scale.shape)
    mean, before, shape, scale = (
        np.broadcast_to(part, size).T
        for part in (posterior.location, posterior.strength, posterior.shape, posterior.scale)
    )
    after, power = before - 1, shape - 0.5
    valid = (after > 0) & (power > 0)
    power = np.where(valid, power, 1.0)
    spread = np.where(valid, before / after / (2 * scale), np.nan)
    log_norm = log_gamma_half_step(power) + 0.5 * np.log(after / before / (2 * np.pi * scale))
    spread[constant], log_norm[constant] = 0.0, 0.0
    return mean, spread, power, log_norm


def columns_leave_one_out(family: Gaussian, counted: GroupStatistics, rows: RemovedRows) -> np.ndarray:
    """Return log densities of columns with variances, each row without itself.

    Without a row of weight w the mean moves by w(x − m)/(κ − w), and the scatter decreases by wκ/(κ − w)·(x − m)².
    """
    (statistics, prior, estimate), group, constant = counted, rows.group, rows.constant
    moments = statistics.diagonal()
    size = moments.first_sum.shape
    tied, spherical = "groups" in family.tied_over, "columns" in family.tied_over
    count = np.broadcast_to(moments.weight, size)
    if estimate.has_prior:
        posterior = prior.update(moments)
        location, strength = (np.broadcast_to(part, size) for part in (posterior.location, posterior.strength))
        scale, freedom = posterior.scale, 2 * posterior.shape  # a of the t, which is half the freedom
        freedom = freedom + estimate.takes_mode * (2 + posterior.n_means)
    else:
        location, strength, scale = moments.mean, count, family._pool(moments.scatter) / 2
        freedom = family._pool(count) - estimate.df_per_mean * family._pool((count > 0).astype(float))
    variance_group = np.zeros_like(group) if tied else group
    x = np.asarray(rows.cells, dtype=float)[:, None, :]
    known = ~np.isnan(x)
    removed = rows.weight[:, None, None] * known
    difference = np.where(known, x - location[group][:, None, :], 0.0)
    before = strength[group][:, None, :]
    after = before - removed
    new_mean = location[group][:, None, :] - difference * removed / after
    scatter_removed = removed * before / after * difference**2 / 2
    if spherical:
        scatter_removed, removed = scatter_removed.sum(axis=-1, keepdims=True), removed.sum(axis=-1, keepdims=True)
    distinct_shape = (1 if tied else size[0], 1 if spherical else size[1])
    scale = np.broadcast_to(scale, distinct_shape)[variance_group][:, None, :]
    freedom = np.broadcast_to(freedom, distinct_shape)[variance_group][:, None, :] - removed
    scatter_left = scale - scatter_removed
    valid = (
        (after > 0).all(axis=(1, 2))
        & (scatter_left > _MIN_REMAINING * scale).all(axis=(1, 2))
        & (freedom > 0).all(axis=(1, 2))
    )
    if tied:
        is_own_group = np.arange(size[0])[:, None] == group[:, None, None]
        new_mean, after = np.where(is_own_group, new_mean, location), np.where(is_own_group, after, strength)
        valid &= (after > 0).all(axis=(1, 2))
    new_mean, after, scatter_left, freedom = (
        np.where(valid[:, None, None], part, 1.0) for part in (new_mean, after, scatter_left, freedom)
    )
    if len(constant):
        x = x.copy()
        x[..., constant] = np.nan
    if estimate.integrates:
        terms = family.log_predictive(NormalInverseGamma(new_mean, after, freedom / 2, scatter_left), x)
    else:
        terms = family.log_prob(Normal(new_mean, 2 * scatter_left / freedom), x)
    terms = terms.sum(axis=-1) if family.columnwise else terms
    return np.where(valid[:, None], terms, np.nan)


def rows_leave_one_out(family: MultivariateGaussian, counted: GroupStatistics, rows: RemovedRows) -> np.ndarray:
    """Return log densities of rows under a full covariance, each row without itself.

    Without a row, the scatter Ψ has a rank-one update. With u = x − m of its own group, g = wκ/(κ − w) and q = uᵀΨ⁻¹u:
    |Ψ − g·uuᵀ| = |Ψ|·F with F = 1 − gq, and vᵀΨ⁻¹v grows by g(uᵀΨ⁻¹v)²/F (Sherman and Morrison 1950). So only the
    squared distances of the row are needed.
    """
    (statistics, prior, estimate), (_, group, weight, constant) = counted, rows
    count, d, tied = statistics.weight[:, 0], statistics.n_columns, "groups" in family.tied_over
    if estimate.has_prior:
        posterior = prior.update(statistics)
        location, strength, scale = posterior.location, posterior.strength, posterior.scale
        freedom = posterior.degrees_of_freedom + estimate.takes_mode * (d + 1 + posterior.n_means)
    else:
        location, strength, scale = statistics.mean, count, family._pool(statistics.scatter, 2)
        freedom = family._pool(count - (count > 0) * estimate.df_per_mean, 0)
    kept = np.setdiff1d(np.arange(d), constant)
    k = len(kept)
    try:
        root = np.linalg.cholesky(scale[:, kept[:, None], kept])
    except np.linalg.LinAlgError:
        return np.full((len(group), len(count)), np.nan)
    mean = np.broadcast_to(location, (len(count), d))[:, kept]
    squares, log_det = squared_distances(np.asarray(rows.cells, dtype=float)[:, kept], mean, root)
    rows_index = np.arange(len(group))
    strength = np.broadcast_to(strength, count.shape)
    own_distance, before = squares[rows_index, group], strength[group]
    after = before - weight
    factor = weight * before / after
    remaining = 1 - factor * own_distance
    is_own_group = np.arange(len(count)) == group[:, None]
    changed = True if tied else is_own_group
    if tied:
        whitened_mean = (mean - mean[:1]) @ invert_lower(root[0]).T
        mean_distances = ((whitened_mean[:, None, :] - whitened_mean[None, :, :]) ** 2).sum(axis=-1)
        product = (own_distance[:, None] + squares - mean_distances[group]) / 2
        squares = squares + (factor / remaining)[:, None] * product**2
    own_squared = (before / after) ** 2 * own_distance / remaining  # distance from the mean without the row
    squares = np.where(is_own_group, own_squared[:, None], squares)
    strength = np.where(is_own_group, after[:, None], strength)
    freedom = np.broadcast_to(freedom, count.shape) - np.where(changed, weight[:, None], 0.0)
    log_det = np.broadcast_to(log_det, count.shape) + np.where(changed, np.log(remaining)[:, None], 0.0)
    if estimate.integrates:
        freedom = freedom - d + 1  # of the t distribution, whichever columns are constant
        log_norm = log_rising(np.where(freedom > 0, freedom, np.nan) / 2, k / 2) - k / 2 * np.log(np.pi)
        widen = 1 + 1 / strength
        terms = log_norm - (log_det + k * np.log(widen)) / 2 - (freedom + k) / 2 * np.log1p(squares / widen)
    else:
        terms = -0.5 * (k * np.log(2 * np.pi / freedom) + log_det + freedom * squares)
    valid = (after > 0) & (remaining > _MIN_REMAINING)
    if tied:
        valid &= (strength > 0).all(axis=1) & (freedom > 0).all(axis=1)
    return np.where(valid[:, None], terms, np.nan)

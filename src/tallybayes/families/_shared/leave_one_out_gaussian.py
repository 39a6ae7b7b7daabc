"""Leave-one-out log densities of Gaussian families in closed form, by rank-one updates of mean and scatter."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from tallybayes.distributions.log_gamma import log_rising
from tallybayes.distributions.normal_inverse_gamma import Normal, NormalInverseGamma
from tallybayes.distributions.tied_variance import pool_tied
from tallybayes.families._shared.mahalanobis import multivariate_t_log_density, squared_distances

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
    log_norm = log_rising(power, 0.5) + 0.5 * np.log(after / before / (2 * np.pi * scale))
    spread[constant], log_norm[constant] = 0.0, 0.0
    return mean, spread, power, log_norm


def columns_leave_one_out(family: Gaussian, counted: GroupStatistics, rows: RemovedRows) -> np.ndarray:
    """Return log densities of columns with variances, each row without itself.

    Without a row of weight w the mean moves by w(x − m)/(κ − w), and the scatter decreases by wκ/(κ − w)·(x − m)².
    """
    estimate, group = counted.estimate, rows.group
    tied, spherical = "groups" in family.tied_over, "columns" in family.tied_over
    if estimate.integrates and not family.tied_over and (rows.weight == 1).all():
        return _unit_rows_leave_one_out(counted, rows)
    location, strength, scale, freedom = _column_posterior(family, counted)
    x = np.asarray(rows.cells, dtype=float)
    known = ~np.isnan(x)
    removed, before = rows.weight[:, None] * known, strength[group]
    after = before - removed
    difference = np.where(known, x - location[group], 0.0)
    new_mean = location[group] - difference * removed / after
    scatter_removed = removed * before / after * difference**2 / 2
    if spherical:
        scatter_removed, removed = scatter_removed.sum(axis=-1, keepdims=True), removed.sum(axis=-1, keepdims=True)
    scatter_left, freedom = scale[group] - scatter_removed, freedom[group] - removed
    valid = ((after > 0) & (scatter_left > _MIN_REMAINING * scale[group]) & (freedom > 0)).all(axis=1)
    new_mean, after, scatter_left, freedom, x = (
        part[:, None, :] for part in (new_mean, after, scatter_left, freedom, x)
    )
    if tied:
        is_own_group = np.arange(len(location))[:, None] == group[:, None, None]
        new_mean, after = np.where(is_own_group, new_mean, location), np.where(is_own_group, after, strength)
        valid &= (after > 0).all(axis=(1, 2))
    new_mean, after, scatter_left, freedom = (
        np.where(valid[:, None, None], part, 1.0) for part in (new_mean, after, scatter_left, freedom)
    )
    if len(rows.constant):
        x = x.copy()
        x[..., rows.constant] = np.nan
    if estimate.integrates:
        terms = family.log_predictive(NormalInverseGamma(new_mean, after, freedom / 2, scatter_left), x)
    else:
        terms = family.log_prob(Normal(new_mean, 2 * scatter_left / freedom), x)
    terms = terms.sum(axis=-1) if family.columnwise else terms
    return np.where(valid[:, None], terms, np.nan)


def _unit_rows_leave_one_out(counted: GroupStatistics, rows: RemovedRows) -> np.ndarray:
    """Return log densities of columns with variances of their own, each row of weight 1 without itself."""
    tables = student_t_leave_one_out(counted, rows.constant)
    mean, inverse_spread, power, log_norm = (table.T[rows.group] for table in tables)
    x = np.asarray(rows.cells, dtype=float)
    removed = (x - mean) ** 2 * inverse_spread  # fraction of the scatter
    with np.errstate(invalid="ignore", divide="ignore"):
        terms = np.where(1 - removed > _MIN_REMAINING, log_norm + power * np.log1p(-removed), np.nan)
    return np.where(np.isnan(x), 0.0, terms).sum(axis=1, keepdims=True)


def _column_posterior(family: Gaussian, counted: GroupStatistics) -> Iterator[np.ndarray]:
    """Yield mean, strength, half the scatter and degrees of freedom of all rows: (groups, columns) each."""
    (statistics, prior, estimate), moments = counted, counted.statistics.diagonal()
    count = statistics.column_weights()
    if estimate.has_prior:
        posterior = prior.update(moments)
        freedom = 2 * posterior.shape + estimate.takes_mode * (2 + posterior.n_means)
        parts = posterior.location, posterior.strength, posterior.scale, freedom
    else:
        freedom = pool_tied(count - estimate.df_per_mean * (count > 0), family.tied_over)
        parts = moments.mean, count, pool_tied(moments.scatter, family.tied_over) / 2, freedom
    return (np.broadcast_to(part, count.shape) for part in parts)


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
        location, strength, scale = statistics.mean, count, pool_tied(statistics.scatter, family.tied_over, 2)
        freedom = pool_tied(count - (count > 0) * estimate.df_per_mean, family.tied_over, 0)
    kept = np.setdiff1d(np.arange(d), constant)
    k = len(kept)
    try:
        root = np.linalg.cholesky(scale[:, kept[:, None], kept])
    except np.linalg.LinAlgError:
        return np.full((len(group), len(count)), np.nan)
    mean = location[:, kept]
    squares, log_det = squared_distances(np.asarray(rows.cells, dtype=float)[:, kept], mean, root)
    own_distance, before = squares[np.arange(len(group)), group], strength[group]
    after = before - weight
    factor = weight * before / after
    remaining = 1 - factor * own_distance
    is_own_group = np.arange(len(count)) == group[:, None]
    changed = True if tied else is_own_group
    if tied:
        product = (own_distance[:, None] + squares - squared_distances(mean, mean, root)[0][group]) / 2
        squares = squares + (factor / remaining)[:, None] * product**2
    own_squared = (before / after) ** 2 * own_distance / remaining  # distance from the mean without the row
    squares = np.where(is_own_group, own_squared[:, None], squares)
    strength = np.where(is_own_group, after[:, None], strength)
    freedom = freedom - np.where(changed, weight[:, None], 0.0)
    log_det = log_det + np.where(changed, np.log(remaining)[:, None], 0.0)
    if estimate.integrates:
        freedom = freedom - d + 1  # of the t distribution, whichever columns are constant
        shape, widen = np.where(freedom > 0, freedom, np.nan) / 2, 1 + 1 / strength
        terms = multivariate_t_log_density(squares / widen, log_det + k * np.log(widen), shape, k)
    else:
        terms = -0.5 * (k * np.log(2 * np.pi / freedom) + log_det + freedom * squares)
    valid = (after > 0) & (remaining > _MIN_REMAINING)
    if tied:
        valid &= (strength > 0).all(axis=1) & (freedom > 0).all(axis=1)
    return np.where(valid[:, None], terms, np.nan)

"""Measured rows without themselves: their absence moves a mean, and takes a square from a variance."""

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

# What must be left of a spread when a row is taken out of it. Where less is left, a difference of float64 has lost too
# many digits: those few rows are counted out instead, in double-double.
_LEFT = 1e-5


def student_t_leave_one_out(counted: GroupStatistics, constant: np.ndarray) -> tuple[np.ndarray, ...]:
    """Student's t of every column without one row: mean, inverse spread, power and log norm, (columns, groups)."""
    found = counted.prior.update(counted.statistics)
    size = np.broadcast_shapes(found.location.shape, found.scale.shape)
    mean, before, shape, scale = (
        np.broadcast_to(part, size).T for part in (found.location, found.strength, found.shape, found.scale)
    )
    after, power = before - 1, shape - 0.5
    good = (after > 0) & (power > 0)
    power = np.where(good, power, 1.0)
    spread = np.where(good, before / after / (2 * scale), np.nan)
    log_norm = log_gamma_half_step(power) + 0.5 * np.log(after / before / (2 * np.pi * scale))
    spread[constant], log_norm[constant] = 0.0, 0.0
    return mean, spread, power, log_norm


def columns_leave_one_out(family: Gaussian, counted: GroupStatistics, rows: RemovedRows) -> np.ndarray:
    """Columns with variances: the mean moves by w(x − m)/(κ − w), the scatter falls by wκ/(κ − w)·(x − m)²."""
    (statistics, prior, estimate), group, constant = counted, rows.group, rows.constant
    moments = statistics.diagonal()
    size = moments.first_sum.shape
    tied, round_ = "groups" in family.tied_over, "columns" in family.tied_over
    count = np.broadcast_to(moments.weight, size)
    if estimate.has_prior:
        posterior = prior.update(moments)
        location, strength = (np.broadcast_to(part, size) for part in (posterior.location, posterior.strength))
        scale, freedom = posterior.scale, 2 * posterior.shape  # a of the t, which is half the freedom
        freedom = freedom + estimate.takes_mode * (2 + posterior.n_means)
    else:
        location, strength, scale = moments.mean, count, family._pool(moments.scatter) / 2
        freedom = family._pool(count) - estimate.df_per_mean * family._pool((count > 0).astype(float))
    own = np.zeros_like(group) if tied else group
    x = np.asarray(rows.cells, dtype=float)[:, None, :]
    known = ~np.isnan(x)
    removed = rows.weight[:, None, None] * known
    gap = np.where(known, x - location[group][:, None, :], 0.0)
    before = strength[group][:, None, :]
    after = before - removed
    moved = location[group][:, None, :] - gap * removed / after
    lost = removed * before / after * gap**2 / 2
    if round_:
        lost, removed = lost.sum(axis=-1, keepdims=True), removed.sum(axis=-1, keepdims=True)
    shared = (1 if tied else size[0], 1 if round_ else size[1])
    scale = np.broadcast_to(scale, shared)[own][:, None, :]
    freedom = np.broadcast_to(freedom, shared)[own][:, None, :] - removed
    rest = scale - lost
    good = (after > 0).all(axis=(1, 2)) & (rest > _LEFT * scale).all(axis=(1, 2)) & (freedom > 0).all(axis=(1, 2))
    if tied:
        here = np.arange(size[0])[:, None] == group[:, None, None]
        moved, after = np.where(here, moved, location), np.where(here, after, strength)
        good &= (after > 0).all(axis=(1, 2))
    moved, after, rest, freedom = (np.where(good[:, None, None], part, 1.0) for part in (moved, after, rest, freedom))
    if len(constant):
        x = x.copy()
        x[..., constant] = np.nan
    if estimate.integrates:
        terms = family.log_predictive(NormalInverseGamma(moved, after, freedom / 2, rest), x)
    else:
        terms = family.log_prob(Normal(moved, 2 * rest / freedom), x)
    terms = terms.sum(axis=-1) if family.columnwise else terms
    return np.where(good[:, None], terms, np.nan)


def rows_leave_one_out(family: MultivariateGaussian, counted: GroupStatistics, rows: RemovedRows) -> np.ndarray:
    """Whole rows: their absence changes the scatter Ψ by a matrix of rank one, its inverse and determinant with it.

    With u = x − m of the own group, g = wκ/(κ − w) and q = uᵀΨ⁻¹u: |Ψ − g·uuᵀ| = |Ψ|·F with F = 1 − gq, and a squared
    length vᵀΨ⁻¹v grows by g(uᵀΨ⁻¹v)²/F (Sherman and Morrison). All it takes are the squared lengths of the row.
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
    every = np.arange(len(group))
    strength = np.broadcast_to(strength, count.shape)
    own, before = squares[every, group], strength[group]
    after = before - weight
    share = weight * before / after
    left = 1 - share * own
    here = np.arange(len(count)) == group[:, None]
    changed = True if tied else here
    if tied:
        half = (mean - mean[:1]) @ invert_lower(root[0]).T
        apart = ((half[:, None, :] - half[None, :, :]) ** 2).sum(axis=-1)
        product = (own[:, None] + squares - apart[group]) / 2
        squares = squares + (share / left)[:, None] * product**2
    moved = (before / after) ** 2 * own / left  # from the mean without the row
    squares = np.where(here, moved[:, None], squares)
    strength = np.where(here, after[:, None], strength)
    freedom = np.broadcast_to(freedom, count.shape) - np.where(changed, weight[:, None], 0.0)
    log_det = np.broadcast_to(log_det, count.shape) + np.where(changed, np.log(left)[:, None], 0.0)
    if estimate.integrates:
        freedom = freedom - d + 1  # of the t, whatever columns are left out
        log_norm = log_rising(np.where(freedom > 0, freedom, np.nan) / 2, k / 2) - k / 2 * np.log(np.pi)
        widen = 1 + 1 / strength
        terms = log_norm - (log_det + k * np.log(widen)) / 2 - (freedom + k) / 2 * np.log1p(squares / widen)
    else:
        terms = -0.5 * (k * np.log(2 * np.pi / freedom) + log_det + freedom * squares)
    good = (after > 0) & (left > _LEFT)
    if tied:
        good &= (strength > 0).all(axis=1) & (freedom > 0).all(axis=1)
    return np.where(good[:, None], terms, np.nan)

"""Protocol of estimates without a density: groups without rows, zero variances, constant columns."""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import Any

import numpy as np

from tallybayes.distributions.linear_normal_inverse_gamma import LinearParameters
from tallybayes.distributions.normal_inverse_gamma import Normal
from tallybayes.distributions.normal_inverse_wishart import MultivariateNormal
from tallybayes.families.autoregressive import Autoregressive
from tallybayes.families.categorical import LevelProbabilities
from tallybayes.families.conditional_linear_gaussian import ConditionalLinearGaussian
from tallybayes.families.continuous import (
    ContinuousFamily,
    least_variance,
    pooled_scale,
)
from tallybayes.families.family import Family, Parameters
from tallybayes.families.gaussian import Gaussian
from tallybayes.families.linear_gaussian import LinearGaussian
from tallybayes.families.log_normal import LogNormal
from tallybayes.families.multivariate_gaussian import MultivariateGaussian
from tallybayes.statistics.moments import Moments
from tallybayes.statistics.sufficient_statistics import Statistics

# Relative to the squared mean: below the variance that one deviating row in 10⁸ causes by rounding.
_RELATIVE_ROUNDING = 1e-40


def is_undefined(parameters: Parameters) -> np.ndarray:
    """Return which groups and columns have undefined (NaN) point estimates: bool, (*given, columns)."""
    if isinstance(parameters, LevelProbabilities):  # columns without counts
        columns = parameters.segments.split(parameters.table)
        return np.stack([np.isnan(column).any(axis=-1) for column in columns], axis=-1)
    if isinstance(parameters, LinearParameters):  # groups without rows
        return np.isnan(np.asarray(parameters.intercept))[..., None]
    return np.isnan(parameters[0] if isinstance(parameters, tuple) else parameters)


@singledispatch
def degenerate_parts(family: Family, parameters: Parameters, least: np.ndarray | None) -> np.ndarray | None:
    """Return which point estimates have no density, by group, or by group and column; None if all have one.

    `least` is the variance per column up to which it is rounding error; None for 0.
    """
    return None


@degenerate_parts.register(Autoregressive)
@degenerate_parts.register(ConditionalLinearGaussian)
def _(family: LinearGaussian, parameters: LinearParameters, least: np.ndarray | None) -> np.ndarray:
    """Return the groups with zero residual variance."""
    return ~(parameters.variance > (0.0 if least is None else least[-1]))


@degenerate_parts.register(Gaussian)
def _(family: Gaussian, parameters: Normal, least: np.ndarray | None) -> np.ndarray:
    """Return the groups and columns of zero variance."""
    return np.broadcast_to(~(parameters.variance > 0), parameters.mean.shape)


@degenerate_parts.register(MultivariateGaussian)
def _(family: MultivariateGaussian, parameters: MultivariateNormal, least: np.ndarray | None) -> np.ndarray:
    """Return the groups with a singular covariance."""
    distinct = parameters.covariance[:1] if "groups" in family.tied_over else parameters.covariance
    singular = np.fromiter((not family.is_definite(matrix) for matrix in distinct), dtype=bool, count=len(distinct))
    return np.broadcast_to(singular, len(parameters.mean))


def first_degenerate_group(
    family: Family, parameters: Parameters, statistics: Statistics
) -> tuple[int | None, int | None] | None:
    """Return the first group and column whose point estimate has no density, or None.

    The column is None if it concerns the whole row, the group is None if it concerns all groups.
    """
    least = least_variance(statistics) if isinstance(statistics, Moments) else None
    parts = degenerate_parts(family, parameters, least)
    if parts is None:
        return None
    weight = statistics.column_weights() if parts.ndim == 2 else statistics.group_weights()
    first = np.argwhere(parts & (weight > 0))[:1].tolist()
    if not first:
        return None
    if family.is_conditional:
        return first[0][0], statistics.n_columns - 1
    whole = not family.columnwise and "groups" in family.tied_over and parts.ndim == 1
    return (None, None) if whole else (first[0][0], first[0][1] if parts.ndim == 2 else None)


def mask_degenerate_groups(family: Family, parameters: Parameters) -> Parameters:
    """Return point parameters with groups of zero variance set to NaN."""
    parts = degenerate_parts(family, parameters, None)
    if parts is None:
        return parameters
    group = parts.any(axis=-1) if parts.shape == np.shape(parameters[0]) else parts  # by column, or by group
    masked = [np.where(group.reshape(-1, *(1,) * (np.ndim(part) - 1)), np.nan, part) for part in parameters]
    make: Callable[..., Parameters] = type(parameters)
    return make(*masked)


@singledispatch
def constant_columns(family: Family, statistics: Statistics) -> np.ndarray:
    """Return the positions of continuous columns with zero variance, which have no density."""
    return np.zeros(0, dtype=np.intp)


@constant_columns.register(ContinuousFamily)
def _(family: ContinuousFamily, statistics: Moments) -> np.ndarray:
    """Return the columns whose pooled variance is 0 or at rounding level, as EM may leave it."""
    scale = pooled_scale(statistics)
    return np.flatnonzero(~(scale.spread > _RELATIVE_ROUNDING * scale.mean**2))


# The coefficient of a constant input is 0.
constant_columns.register(LinearGaussian, constant_columns.dispatch(object))


@singledispatch
def add_unit_variance(family: Family, statistics: Statistics, constant: np.ndarray) -> Any:
    """Return the statistics with unit variance added to constant columns, which are excluded from scores."""
    return statistics


@add_unit_variance.register(ContinuousFamily)
def _(family: ContinuousFamily, statistics: Moments, constant: np.ndarray) -> Moments:
    """Return the statistics with unit variance added to constant columns.

    If columns share one variance, it is added only if all columns are constant.
    """
    if not len(constant) or ("columns" in family.tied_over and len(constant) < statistics.n_columns):
        return statistics
    extra = np.zeros(statistics.n_columns)
    extra[constant] = 1.0
    return statistics.with_scatter(np.diag(extra) if statistics.full else extra)


@singledispatch
def remove_unit_variance(family: Family, parameters: Parameters, constant: np.ndarray) -> Any:
    """Return point parameters without the unit variance of `add_unit_variance`, for display."""
    return parameters


@remove_unit_variance.register(ContinuousFamily)
def _(family: ContinuousFamily, parameters: Normal | MultivariateNormal, constant: np.ndarray) -> Any:
    """Return parameters whose constant columns have variance and covariances 0."""
    mean, spread = parameters
    if not len(constant) or ("columns" in family.tied_over and len(constant) < mean.shape[-1]):
        return parameters
    full = spread.ndim > mean.ndim
    spread = np.array(np.broadcast_to(spread, (*mean.shape, *mean.shape[-1:] * full)))
    spread[..., constant] = 0.0
    if full:
        spread[..., constant, :] = 0.0
    return type(parameters)(mean, spread)


@singledispatch
def pooled_value(family: Family, statistics: Statistics) -> np.ndarray:
    """Return the mean of every column over all groups; NaN for columns without values."""
    pooled: Any = statistics.pool_groups()  # totals or moments
    return np.where(pooled.column_weights() > 0, pooled.mean, np.nan)


@pooled_value.register(LogNormal)
def _(family: LogNormal, statistics: Moments) -> np.ndarray:
    """Return the geometric mean of every column over all groups."""
    return np.exp(pooled_value.dispatch(Gaussian)(family, statistics))

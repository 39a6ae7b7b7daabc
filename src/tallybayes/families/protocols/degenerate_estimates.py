"""Protocol of estimates without a density: groups without rows, zero variances, constant columns."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from tallybayes.distributions.linear_normal_inverse_gamma import LinearParameters
from tallybayes.distributions.normal_inverse_gamma import Normal
from tallybayes.distributions.normal_inverse_wishart import MultivariateNormal
from tallybayes.families.autoregressive import Autoregressive
from tallybayes.families.categorical import LevelFamily, LevelProbabilities
from tallybayes.families.conditional_linear_gaussian import ConditionalLinearGaussian
from tallybayes.families.continuous import (
    ContinuousFamily,
    least_variance,
    pooled_scale,
)
from tallybayes.families.family import (
    Family,
)
from tallybayes.families.gaussian import Gaussian
from tallybayes.families.linear_gaussian import LinearGaussian
from tallybayes.families.log_normal import LogNormal
from tallybayes.families.multivariate_gaussian import MultivariateGaussian
from tallybayes.statistics.moments import Moments

# Relative to the squared mean: below the variance that one deviating row in 10⁸ causes by rounding.
_RELATIVE_ROUNDING = 1e-40


@singledispatch
def is_undefined(family: Family, parameters: Any) -> np.ndarray:
    """Return which groups and columns have undefined (NaN) point estimates: bool, (*given, columns)."""
    return np.isnan(parameters[0] if isinstance(parameters, tuple) else parameters)


@is_undefined.register(LevelFamily)
def _(family: LevelFamily, parameters: LevelProbabilities) -> np.ndarray:
    """Return which columns have no counts."""
    columns = parameters.segments.split(parameters.table)
    return np.stack([np.isnan(column).any(axis=-1) for column in columns], axis=-1)


@is_undefined.register(LinearGaussian)
def _(family: LinearGaussian, parameters: LinearParameters) -> np.ndarray:
    """Return which groups have no rows."""
    return np.isnan(np.asarray(parameters.intercept))[..., None]


@singledispatch
def first_degenerate_group(family: Family, parameters: Any, statistics: Any) -> tuple[int | None, int | None] | None:
    """Return the first group and column whose point estimate has no density, or None.

    The column is None if it concerns the whole row, the group is None if it concerns all groups.
    """
    return None


@first_degenerate_group.register(Autoregressive)
@first_degenerate_group.register(ConditionalLinearGaussian)
def _(
    family: Autoregressive | ConditionalLinearGaussian, parameters: LinearParameters, statistics: Moments
) -> tuple[int | None, int | None] | None:
    """Return the first group with zero residual variance, or None."""
    degenerate = np.flatnonzero(np.asarray(parameters.variance) <= least_variance(statistics)[-1])
    return (int(degenerate[0]), statistics.n_columns - 1) if len(degenerate) else None


@first_degenerate_group.register(Gaussian)
def _(family: Gaussian, parameters: Normal, statistics: Moments) -> tuple[int | None, int | None] | None:
    """Return the first group and column of zero variance, or None."""
    degenerate = np.argwhere(~(np.asarray(parameters.variance) > 0) & (statistics.weight > 0))
    return (int(degenerate[0][0]), int(degenerate[0][1])) if len(degenerate) else None


@first_degenerate_group.register(MultivariateGaussian)
def _(family: MultivariateGaussian, parameters: Any, statistics: Moments) -> tuple[int | None, int | None] | None:
    """Return the first group with a singular covariance, (None, None) if it is shared, or None."""
    weight, covariance = statistics.weight[:, 0], np.asarray(parameters.covariance)
    if "groups" in family.tied_over:
        is_singular = weight.sum() > 0 and not family.is_definite(covariance[int(weight.argmax())])
        return (None, None) if is_singular else None
    singular = (code for code in np.flatnonzero(weight > 0) if not family.is_definite(covariance[code]))
    first = next(singular, None)
    return None if first is None else (int(first), None)


@singledispatch
def mask_degenerate_groups(family: Family, parameters: Any) -> Any:
    """Return point parameters with groups of zero variance set to NaN."""
    return parameters


@mask_degenerate_groups.register(ConditionalLinearGaussian)
def _(family: ConditionalLinearGaussian, parameters: LinearParameters) -> LinearParameters:
    """Return the parameters, NaN for groups with zero residual variance."""
    slope, intercept, variance = (np.asarray(part, dtype=float) for part in parameters)
    degenerate = ~(variance > 0)
    mask = np.where(degenerate, np.nan, 0.0)
    return LinearParameters(slope + mask[..., None], intercept + mask, variance + mask)


@mask_degenerate_groups.register(Gaussian)
def _(family: Gaussian, parameters: Normal) -> Normal:
    """Return the parameters, NaN for groups that have a column of variance 0."""
    mean, variance = (np.asarray(part, dtype=float) for part in parameters)
    degenerate = ~(np.broadcast_to(variance, mean.shape) > 0).all(axis=-1, keepdims=True)
    return Normal(np.where(degenerate, np.nan, mean), np.where(degenerate, np.nan, variance))


@mask_degenerate_groups.register(MultivariateGaussian)
def _(family: MultivariateGaussian, parameters: MultivariateNormal) -> MultivariateNormal:
    """Return the parameters, NaN for groups with a singular covariance."""
    mean, covariance = (np.asarray(part, dtype=float) for part in parameters)
    singular = np.fromiter((not family.is_definite(matrix) for matrix in covariance), dtype=bool, count=len(covariance))
    return MultivariateNormal(
        np.where(singular[:, None], np.nan, mean), np.where(singular[:, None, None], np.nan, covariance)
    )


@singledispatch
def constant_columns(family: Family, statistics: Any) -> np.ndarray:
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
def add_unit_variance(family: Family, statistics: Any, constant: np.ndarray) -> Any:
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
def remove_unit_variance(family: Family, parameters: Any, constant: np.ndarray) -> Any:
    """Return point parameters without the unit variance of `add_unit_variance`, for display."""
    return parameters


@remove_unit_variance.register(ContinuousFamily)
def _(family: ContinuousFamily, parameters: Any, constant: np.ndarray) -> Any:
    """Return parameters whose constant columns have variance and covariances 0."""
    mean, spread = (np.asarray(part, dtype=float) for part in parameters)
    if not len(constant) or ("columns" in family.tied_over and len(constant) < mean.shape[-1]):
        return parameters
    full = spread.ndim > mean.ndim
    spread = np.array(np.broadcast_to(spread, (*mean.shape, *mean.shape[-1:] * full)))
    spread[..., constant] = 0.0
    if full:
        spread[..., constant, :] = 0.0
    return type(parameters)(mean, spread)


@singledispatch
def pooled_value(family: Family, statistics: Any) -> np.ndarray:
    """Return the mean of every column over all groups; NaN for columns without values."""
    pooled = statistics.pool_groups()
    return np.where(np.broadcast_to(pooled.weight, pooled.mean.shape) > 0, pooled.mean, np.nan)


@pooled_value.register(LogNormal)
def _(family: LogNormal, statistics: Moments) -> np.ndarray:
    """Return the geometric mean of every column over all groups."""
    return np.exp(pooled_value.dispatch(Gaussian)(family, statistics))

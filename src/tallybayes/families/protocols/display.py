"""Protocol of display: named parameters, contributions of columns, and plots."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import Any

import numpy as np
from scipy.special import xlogy

from tallybayes.distributions.linear_normal_inverse_gamma import LinearParameters
from tallybayes.distributions.log_gamma import (
    log_rising,
)
from tallybayes.distributions.normal_inverse_gamma import NormalInverseGamma
from tallybayes.families._shared.mahalanobis import (
    missing_patterns,
)
from tallybayes.families.autoregressive import Autoregressive
from tallybayes.families.bernoulli import Bernoulli
from tallybayes.families.binned import Binned
from tallybayes.families.categorical import LevelFamily
from tallybayes.families.conditional_linear_gaussian import ConditionalLinearGaussian, weight_name
from tallybayes.families.family import (
    Family,
    broadcast_over_groups,
)
from tallybayes.families.gaussian import Gaussian, SphericalGaussian
from tallybayes.families.linear_gaussian import LinearGaussian
from tallybayes.families.log_normal import LogNormal
from tallybayes.families.multinomial import DirichletMultinomial, Multinomial
from tallybayes.families.multivariate_gaussian import MultivariateGaussian
from tallybayes.families.poisson import Poisson


@singledispatch
def named_parameters(family: Family, parameters: Any) -> dict[str, np.ndarray]:
    """Return the parameters, or their posterior means, by name, each (*given, columns)."""
    return {"mean": family.mean(parameters)}


@named_parameters.register(Autoregressive)
def _(family: Autoregressive, parameters: Any) -> dict[str, np.ndarray]:
    """Return the intercept, one coefficient per lag, and the noise."""
    return _linear_parameters(family.point(parameters), [f"weight of {k + 1} before" for k in range(family.order)])


@named_parameters.register(Bernoulli)
def _(family: Bernoulli, parameters: Any) -> dict[str, np.ndarray]:
    """Return the probability of a success, or its posterior mean."""
    return {"probability": np.asarray(family.point(parameters))}


@named_parameters.register(LevelFamily)
def _(family: LevelFamily, parameters: Any) -> dict[str, np.ndarray]:
    """Return no parameters: tables show the level probabilities themselves."""
    return {}


@named_parameters.register(ConditionalLinearGaussian)
def _(family: ConditionalLinearGaussian, parameters: Any) -> dict[str, np.ndarray]:
    """Return the intercept, one coefficient per parent, and the noise."""
    point = family.point(parameters)
    return _linear_parameters(point, [weight_name(k) for k in range(np.shape(point.slope)[-1])])


@named_parameters.register(Gaussian)
def _(family: Gaussian, parameters: Any) -> dict[str, np.ndarray]:
    """Return mean, variance and standard deviation; for a posterior, location, scale and degrees of freedom."""
    point = family.student(parameters) if isinstance(parameters, NormalInverseGamma) else parameters
    parts = {name: np.broadcast_to(part, np.shape(point[0])) for name, part in point._asdict().items()}
    return parts | ({"std": np.sqrt(parts["variance"])} if "variance" in parts else {})


@named_parameters.register(LinearGaussian)
def _(family: LinearGaussian, parameters: Any) -> dict[str, np.ndarray]:
    """Return the coefficients, the intercept last."""
    point = family.point(parameters)
    weights = [np.asarray(point.slope), np.asarray(point.intercept)[..., None]]
    return {"weight": np.concatenate(weights, axis=-1)}


@named_parameters.register(LogNormal)
def _(family: LogNormal, parameters: Any) -> dict[str, np.ndarray]:
    """Return mean and variance of the logarithms; for a posterior, those of its predictive."""
    return {f"{name} of log": part for name, part in named_parameters.dispatch(Gaussian)(family, parameters).items()}


@named_parameters.register(Multinomial)
def _(family: Multinomial, parameters: Any) -> dict[str, np.ndarray]:
    """Return every word's probability, or its posterior mean, as ``share``."""
    return {"share": family.mean(parameters)}


@named_parameters.register(MultivariateGaussian)
def _(family: MultivariateGaussian, parameters: Any) -> dict[str, np.ndarray]:
    """Return mean, variance and standard deviation of every column; for a posterior, their means."""
    point = family.point(parameters)
    variance = np.diagonal(np.asarray(point.covariance), axis1=-2, axis2=-1)
    return {"mean": np.asarray(point.mean), "variance": variance, "std": np.sqrt(variance)}


@named_parameters.register(Poisson)
def _(family: Poisson, parameters: Any) -> dict[str, np.ndarray]:
    """Return the rate, or its posterior mean."""
    return {"rate": family.mean(parameters)}


@singledispatch
def column_contributions(family: Family, parameters: Any, x: np.ndarray, predictive: bool) -> np.ndarray:
    """Return the contribution of every column to `log_prob` of a row, (n, *given, columns).

    Only for families that are not `columnwise`. Terms equal in all groups may be distributed over the columns in
    any way.
    """
    raise NotImplementedError


@column_contributions.register(SphericalGaussian)
def _(family: SphericalGaussian, parameters: Any, x: np.ndarray, predictive: bool) -> np.ndarray:
    """Return the normal log densities, or each column's proportion of the squared distance for a t."""
    if not predictive:
        return Gaussian.log_prob(family, parameters, x)
    row = family.log_predictive(parameters, x)[..., None]
    size = np.broadcast_shapes(parameters.location.shape, parameters.scale.shape)
    x = broadcast_over_groups(np.asarray(x, dtype=float), len(size) - 1)
    known = ~np.isnan(x)
    n_known = known.sum(axis=-1, keepdims=True)
    t = np.where(known, (x - parameters.location) ** 2 / (1 + 1 / parameters.strength), 0.0)
    t = t / (2 * np.broadcast_to(parameters.scale, size))
    squared_norm = t.sum(axis=-1, keepdims=True)
    log_kernel = -(np.broadcast_to(parameters.shape, size)[..., :1] + n_known / 2) * np.log1p(squared_norm)
    remainder = known * (row - log_kernel) / np.maximum(n_known, 1)
    return remainder + log_kernel * t / np.where(squared_norm > 0, squared_norm, 1.0)


@column_contributions.register(Multinomial)
def _(family: Multinomial, parameters: Any, x: np.ndarray, predictive: bool) -> np.ndarray:
    """Return x_j log θ_j; the coefficient, equal in all groups, is omitted."""
    p = np.asarray(parameters.mean() if predictive else parameters)
    return xlogy(broadcast_over_groups(np.asarray(x, dtype=float), p.ndim - 1), p)


@column_contributions.register(DirichletMultinomial)
def _(family: DirichletMultinomial, parameters: Any, x: np.ndarray, predictive: bool) -> np.ndarray:
    """Return the log rising factorials per word; the normalizer is split in proportion to x_j."""
    if not predictive:
        return column_contributions.dispatch(Multinomial)(family, parameters, x, predictive)
    alpha = np.asarray(parameters.concentration)
    x = broadcast_over_groups(np.asarray(x, dtype=float), alpha.ndim - 1)
    length = x.sum(axis=-1, keepdims=True)
    common = log_rising(alpha.sum(axis=-1, keepdims=True), length)
    return log_rising(alpha, x) - common * x / np.where(length > 0, length, 1.0)


@column_contributions.register(MultivariateGaussian)
def _(family: MultivariateGaussian, parameters: Any, x: np.ndarray, predictive: bool) -> np.ndarray:
    """Return each column's part of the squared distance, with cross terms split equally.

    The remaining terms are split evenly over the columns.
    """
    located = parameters.location if predictive else parameters.mean
    covariance = (
        parameters.scale * (1 + 1 / parameters.strength)[..., None, None] if predictive else parameters.covariance
    )
    mean = np.asarray(located)
    d, n_given = mean.shape[-1], mean.ndim - 1
    covariance = np.broadcast_to(covariance, (*mean.shape, d))
    rows = (family.log_predictive if predictive else family.log_prob)(parameters, x)
    out = np.zeros((len(x), *mean.shape))
    for known, index in missing_patterns(x):
        difference = broadcast_over_groups(x[index][:, known], n_given) - mean[..., known]
        solved = np.moveaxis(difference, 0, -1)
        solved = np.moveaxis(np.linalg.solve(covariance[..., known[:, None], known], solved), -1, 0)
        squares = difference * solved
        squared_norm = squares.sum(axis=-1, keepdims=True)
        if predictive:
            log_kernel = -(parameters.degrees_of_freedom - d + 1 + len(known))[..., None] / 2 * np.log1p(squared_norm)
            parts = log_kernel * squares / np.where(squared_norm > 0, squared_norm, 1.0)
        else:
            log_kernel, parts = -0.5 * squared_norm, -0.5 * squares
        terms = np.zeros((len(index), *mean.shape))
        terms[..., known] = parts + (rows[index][..., None] - log_kernel) / len(known)
        out[index] = terms
    return out


@singledispatch
def plot_grid(family: Family, parameters: Any, column: int) -> np.ndarray:
    """Return the points at which to plot the distribution of one column."""
    if family.is_continuous:
        point = family.point(parameters)
        draws = family.sample(point, 500, np.random.default_rng(0))[..., column]
        return np.linspace(np.nanmin(draws), np.nanmax(draws), 400)
    means = family.mean(parameters)[:, column]
    top = means[np.isfinite(means)].max(initial=0.0)  # under maximum likelihood some groups may have none
    return np.arange(0, int(top + 5 * np.sqrt(top + 1)) + 1, dtype=float)


@plot_grid.register(Bernoulli)
def _(family: Bernoulli, parameters: Any, column: int) -> np.ndarray:
    """Return 0 and 1."""
    return np.array([0.0, 1.0]) if family.is_binary else plot_grid.dispatch(object)(family, parameters, column)


@plot_grid.register(Binned)
def _(family: Binned, parameters: Any, column: int) -> np.ndarray:
    """Return both ends of every bin."""
    grid = np.repeat(family.ends, 2)[1:-1]
    grid[1::2] = np.nextafter(grid[1::2], -np.inf)  # just before the edge, so that the density is a step
    return grid


@plot_grid.register(Gaussian)
def _(family: Gaussian, parameters: Any, column: int, reach: float = 4.0) -> np.ndarray:
    """Return 400 points within `reach` standard deviations of the means."""
    if isinstance(parameters, NormalInverseGamma):
        center, std, _ = family.student(parameters)
    else:
        center, std = parameters.mean, np.sqrt(parameters.variance)
    center, std = (part[:, column] for part in np.broadcast_arrays(center, std))
    return np.linspace((center - reach * std).min(), (center + reach * std).max(), 400)


@plot_grid.register(LogNormal)
def _(family: LogNormal, parameters: Any, column: int, reach: float = 3.0) -> np.ndarray:
    """Return 400 points within `reach` standard deviations of the means on the log scale."""
    return np.exp(plot_grid.dispatch(Gaussian)(family, parameters, column, reach))


def plot_scale(family: Family) -> str:
    """Return the scale of the axis on which to plot a column: "linear" or "log"."""
    return "log" if isinstance(family, LogNormal) else "linear"


def _linear_parameters(point: LinearParameters, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Return intercept, coefficients by name, variance and standard deviation, each (*given, 1)."""
    slope, intercept, variance = (np.asarray(part, dtype=float) for part in point)
    named = {"intercept": intercept, **{name: slope[..., k] for k, name in enumerate(names)}}
    named |= {"variance": variance, "std": np.sqrt(variance)}
    return {name: part[..., None] for name, part in named.items()}

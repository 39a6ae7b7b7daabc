"""Protocol of display: named parameters, contributions of columns, and plots."""

from __future__ import annotations

from functools import singledispatch

import numpy as np
from scipy.special import xlogy

from tallybayes.distributions.beta import Beta
from tallybayes.distributions.dirichlet import Dirichlet
from tallybayes.distributions.gamma import Gamma
from tallybayes.distributions.linear_normal_inverse_gamma import LinearNormalInverseGamma, LinearParameters
from tallybayes.distributions.log_gamma import (
    log_rising,
)
from tallybayes.distributions.normal_inverse_gamma import Normal, NormalInverseGamma
from tallybayes.distributions.normal_inverse_wishart import MultivariateNormal, NormalInverseWishart
from tallybayes.distributions.parameter_distribution import ParameterDistribution
from tallybayes.families._shared.mahalanobis import (
    missing_patterns,
)
from tallybayes.families.autoregressive import Autoregressive
from tallybayes.families.bernoulli import Bernoulli
from tallybayes.families.binned import Binned
from tallybayes.families.categorical import LevelFamily, LevelProbabilities
from tallybayes.families.conditional_linear_gaussian import ConditionalLinearGaussian, weight_name
from tallybayes.families.family import Family, Parameters, broadcast_over_groups
from tallybayes.families.gaussian import Gaussian, SphericalGaussian
from tallybayes.families.linear_gaussian import LinearGaussian
from tallybayes.families.log_normal import LogNormal
from tallybayes.families.multinomial import DirichletMultinomial, Multinomial
from tallybayes.families.multivariate_gaussian import MultivariateGaussian
from tallybayes.families.poisson import Poisson


@singledispatch
def named_parameters(family: Family, parameters: Parameters | ParameterDistribution) -> dict[str, np.ndarray]:
    """Return the parameters, or their posterior means, by name, each (*given, columns)."""
    return {"mean": family.mean(parameters)}


@named_parameters.register(Bernoulli)
def _(family: Bernoulli, parameters: np.ndarray | Beta) -> dict[str, np.ndarray]:
    """Return the probability of a success, or its posterior mean."""
    return {"probability": np.asarray(family.point(parameters))}


@named_parameters.register(LevelFamily)
def _(family: LevelFamily, parameters: LevelProbabilities | Dirichlet) -> dict[str, np.ndarray]:
    """Return no parameters: tables show the level probabilities themselves."""
    return {}


@named_parameters.register(Autoregressive)
@named_parameters.register(ConditionalLinearGaussian)
def _(family: LinearGaussian, parameters: LinearParameters | LinearNormalInverseGamma) -> dict[str, np.ndarray]:
    """Return the intercept, one coefficient per lag or parent, and the noise."""
    slope, intercept, variance = family.point(parameters)
    names = [weight_name(f"{k + 1} before" if family.order else k) for k in range(slope.shape[-1])]
    named = {"intercept": intercept, **dict(zip(names, np.moveaxis(slope, -1, 0), strict=True))}
    named |= {"variance": variance, "std": np.sqrt(variance)}
    return {name: part[..., None] for name, part in named.items()}


@named_parameters.register(Gaussian)
def _(family: Gaussian, parameters: Normal | NormalInverseGamma) -> dict[str, np.ndarray]:
    """Return mean, variance and standard deviation; for a posterior, location, scale and degrees of freedom."""
    point = family.student(parameters) if isinstance(parameters, NormalInverseGamma) else parameters
    parts = {name: np.broadcast_to(part, np.shape(point[0])) for name, part in point._asdict().items()}
    return parts | ({"std": np.sqrt(parts["variance"])} if "variance" in parts else {})


@named_parameters.register(LinearGaussian)
def _(family: LinearGaussian, parameters: LinearParameters | LinearNormalInverseGamma) -> dict[str, np.ndarray]:
    """Return the coefficients, the intercept last."""
    point = family.point(parameters)
    weights = [np.asarray(point.slope), np.asarray(point.intercept)[..., None]]
    return {"weight": np.concatenate(weights, axis=-1)}


@named_parameters.register(LogNormal)
def _(family: LogNormal, parameters: Normal | NormalInverseGamma) -> dict[str, np.ndarray]:
    """Return mean and variance of the logarithms; for a posterior, those of its predictive."""
    return {f"{name} of log": part for name, part in named_parameters.dispatch(Gaussian)(family, parameters).items()}


@named_parameters.register(Multinomial)
def _(family: Multinomial, parameters: np.ndarray | Dirichlet) -> dict[str, np.ndarray]:
    """Return every word's probability, or its posterior mean, as ``share``."""
    return {"share": family.mean(parameters)}


@named_parameters.register(MultivariateGaussian)
def _(family: MultivariateGaussian, parameters: MultivariateNormal | NormalInverseWishart) -> dict[str, np.ndarray]:
    """Return mean, variance and standard deviation of every column; for a posterior, their means."""
    point = family.point(parameters)
    variance = np.diagonal(point.covariance, axis1=-2, axis2=-1)
    return {"mean": point.mean, "variance": variance, "std": np.sqrt(variance)}


@named_parameters.register(Poisson)
def _(family: Poisson, parameters: np.ndarray | Gamma) -> dict[str, np.ndarray]:
    """Return the rate, or its posterior mean."""
    return {"rate": family.mean(parameters)}


@singledispatch
def column_contributions(family: Family, parameters: Parameters | ParameterDistribution, x: np.ndarray) -> np.ndarray:
    """Return the contribution of every column to `log_prob` of a row, (n, *given, columns).

    Only for families that are not `columnwise`. Terms equal in all groups may be distributed over the columns in
    any way.
    """
    raise NotImplementedError


@column_contributions.register(SphericalGaussian)
def _(family: SphericalGaussian, parameters: Normal | NormalInverseGamma, x: np.ndarray) -> np.ndarray:
    """Return the normal log densities, or each column's proportion of the squared distance for a t."""
    if isinstance(parameters, Normal):
        return Gaussian.log_prob(family, parameters, x)
    size = np.broadcast_shapes(parameters.location.shape, parameters.scale.shape)
    cells = broadcast_over_groups(x, len(size) - 1)
    squares = (cells - parameters.location) ** 2 / (1 + 1 / parameters.strength) / (2 * parameters.scale)
    shape = np.broadcast_to(parameters.shape, size)[..., 0]
    return _split_by_squares(family.log_predictive(parameters, x), np.broadcast_to(squares, (len(x), *size)), shape)


@column_contributions.register(Multinomial)
def _(family: Multinomial, parameters: np.ndarray | Dirichlet, x: np.ndarray) -> np.ndarray:
    """Return x_j log θ_j; the coefficient, equal in all groups, is omitted."""
    p = family.mean(parameters)
    return xlogy(broadcast_over_groups(x, p.ndim - 1), p)


@column_contributions.register(DirichletMultinomial)
def _(family: DirichletMultinomial, parameters: np.ndarray | Dirichlet, x: np.ndarray) -> np.ndarray:
    """Return the log rising factorials per word; the normalizer is split in proportion to x_j."""
    if not isinstance(parameters, Dirichlet):
        return column_contributions.dispatch(Multinomial)(family, parameters, x)
    alpha = parameters.concentration
    x = broadcast_over_groups(x, alpha.ndim - 1)
    length = x.sum(axis=-1, keepdims=True)
    common = log_rising(alpha.sum(axis=-1, keepdims=True), length)
    return log_rising(alpha, x) - common * x / np.where(length > 0, length, 1.0)


@column_contributions.register(MultivariateGaussian)
def _(family: MultivariateGaussian, parameters: MultivariateNormal | NormalInverseWishart, x: np.ndarray) -> np.ndarray:
    """Return each column's part of the squared distance, with cross terms split equally.

    The remaining terms are split evenly over the columns.
    """
    shape = None
    if isinstance(parameters, NormalInverseWishart):
        mean, covariance = parameters.location, parameters.scale * (1 + 1 / parameters.strength)[..., None, None]
        log_p, shape = family.log_predictive(parameters, x), (parameters.degrees_of_freedom - mean.shape[-1] + 1) / 2
    else:
        (mean, covariance), log_p = parameters, family.log_prob(parameters, x)
    n_given = mean.ndim - 1
    covariance = np.broadcast_to(covariance, (*mean.shape, mean.shape[-1]))
    squares = np.full((len(x), *mean.shape), np.nan)
    for known, index in missing_patterns(x):
        difference = broadcast_over_groups(x[index][:, known], n_given) - mean[..., known]
        columns = np.moveaxis(difference, 0, -1)
        solved = np.moveaxis(np.linalg.solve(covariance[..., known[:, None], known], columns), -1, 0)
        squares[(index[:, None], ..., known)] = np.moveaxis(difference * solved, -1, 1)
    return _split_by_squares(log_p, squares, shape)


def _split_by_squares(log_p: np.ndarray, squares: np.ndarray, shape: np.ndarray | None) -> np.ndarray:
    """Return log densities of rows split over the columns by their parts of the squared distance, NaN where missing.

    The remaining terms are split evenly over the observed columns. `shape` is half the degrees of freedom of a t
    density; None for a normal one.
    """
    known = ~np.isnan(squares)
    squares = np.where(known, squares, 0.0)
    squared_norm, n_known = squares.sum(axis=-1, keepdims=True), known.sum(axis=-1, keepdims=True)
    t_kernel = None if shape is None else -(shape[..., None] + n_known / 2) * np.log1p(squared_norm)
    log_kernel = -0.5 * squared_norm if t_kernel is None else t_kernel
    evenly = known * (log_p[..., None] - log_kernel) / np.maximum(n_known, 1)
    return evenly + log_kernel * squares / np.where(squared_norm > 0, squared_norm, 1.0)


@singledispatch
def plot_grid(family: Family, parameters: Parameters | ParameterDistribution, column: int) -> np.ndarray:
    """Return the points at which to plot the distribution of one column."""
    if family.is_continuous:
        point = family.point(parameters)
        draws = family.sample(point, 500, np.random.default_rng(0))[..., column]
        return np.linspace(np.nanmin(draws), np.nanmax(draws), 400)
    means = family.mean(parameters)[:, column]
    top = means[np.isfinite(means)].max(initial=0.0)  # under maximum likelihood some groups may have none
    return np.arange(0, int(top + 5 * np.sqrt(top + 1)) + 1, dtype=float)


@plot_grid.register(Bernoulli)
def _(family: Bernoulli, parameters: np.ndarray | Beta, column: int) -> np.ndarray:
    """Return 0 and 1."""
    return np.array([0.0, 1.0]) if family.is_binary else plot_grid.dispatch(object)(family, parameters, column)


@plot_grid.register(Binned)
def _(family: Binned, parameters: LevelProbabilities | Dirichlet, column: int) -> np.ndarray:
    """Return both ends of every bin."""
    grid = np.repeat(family.ends, 2)[1:-1]
    grid[1::2] = np.nextafter(grid[1::2], -np.inf)  # just before the edge, so that the density is a step
    return grid


@plot_grid.register(Gaussian)
def _(family: Gaussian, parameters: Normal | NormalInverseGamma, column: int, reach: float = 4.0) -> np.ndarray:
    """Return 400 points within `reach` standard deviations of the means."""
    if isinstance(parameters, NormalInverseGamma):
        center, std, _ = family.student(parameters)
    else:
        center, std = parameters.mean, np.sqrt(parameters.variance)
    center, std = (part[:, column] for part in np.broadcast_arrays(center, std))
    return np.linspace((center - reach * std).min(), (center + reach * std).max(), 400)


@plot_grid.register(LogNormal)
def _(family: LogNormal, parameters: Normal | NormalInverseGamma, column: int, reach: float = 3.0) -> np.ndarray:
    """Return 400 points within `reach` standard deviations of the means on the log scale."""
    return np.exp(plot_grid.dispatch(Gaussian)(family, parameters, column, reach))


def plot_scale(family: Family) -> str:
    """Return the scale of the axis on which to plot a column: "linear" or "log"."""
    return "log" if isinstance(family, LogNormal) else "linear"

"""Protocol of distribution functions, divergences and conditional means."""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import Any

import numpy as np
from scipy.special import bdtr, kl_div, ndtr, pdtr

from tallybayes.distributions.linear_normal_inverse_gamma import LinearParameters
from tallybayes.distributions.normal_inverse_gamma import Normal
from tallybayes.distributions.normal_inverse_wishart import MultivariateNormal, NormalInverseWishart
from tallybayes.families._shared.joint_gaussian import (
    JointGaussian,
    JointGaussianParameters,
)
from tallybayes.families._shared.mahalanobis import (
    missing_patterns,
)
from tallybayes.families.autoregressive import Autoregressive
from tallybayes.families.bernoulli import Bernoulli
from tallybayes.families.binned import Binned
from tallybayes.families.binomial import Binomial
from tallybayes.families.categorical import LevelProbabilities
from tallybayes.families.family import Family, Parameters, broadcast_over_groups
from tallybayes.families.gaussian import Gaussian, SphericalGaussian, TiedGaussian, TiedSphericalGaussian
from tallybayes.families.linear_gaussian import LinearGaussian
from tallybayes.families.log_normal import LogNormal, log_cells
from tallybayes.families.multinomial import DirichletMultinomial, Multinomial
from tallybayes.families.multivariate_gaussian import MultivariateGaussian, TiedMultivariateGaussian
from tallybayes.families.poisson import Poisson
from tallybayes.families.protocols.closed_form import ClosedForm
from tallybayes.statistics.moments import Moments
from tallybayes.statistics.sufficient_statistics import Statistics
from tallybayes.statistics.totals import Totals


@ClosedForm
def cdf(family: Family, parameters: Parameters, x: np.ndarray) -> np.ndarray:
    """Return P(X ≤ x) of every cell, for each column separately: (n, *given, columns).

    The default estimates it from 4,096 draws with a fixed seed. Cells must not be missing.
    """
    draws = family.sample(parameters, 4096, np.random.default_rng(0))
    return np.stack([(draws <= row).mean(axis=0) for row in x]) if len(x) else np.zeros((0, *draws.shape[1:]))


@cdf.register(Autoregressive)
def _(family: Autoregressive, parameters: LinearParameters, x: np.ndarray) -> np.ndarray:
    """Return P(step ≤ observed step | lags): (n, *given, 1); NaN where a value is missing."""
    error, known = family.errors(parameters, x)
    return np.where(known, ndtr(error / np.sqrt(parameters.variance)), np.nan)[..., None]


@cdf.register(Bernoulli)
def _(family: Bernoulli, parameters: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return P(X ≤ x): 0 below 0, 1 − θ from 0, 1 from 1."""
    x = broadcast_over_groups(x, parameters.ndim - 1)
    return np.where(x < 0, 0.0, np.where(x < 1, 1 - parameters, 1.0))


@cdf.register(Binned)
def _(family: Binned, parameters: LevelProbabilities, x: np.ndarray) -> np.ndarray:
    """Return P(X ≤ x), linear within a bin; unbounded bins use their nominal ends."""
    ends, columns = family.ends, []
    for position, probabilities in enumerate(parameters.segments.split(parameters.table)):
        cumulative = np.concatenate(
            [np.zeros((*probabilities.shape[:-1], 1)), np.cumsum(probabilities, axis=-1)], axis=-1
        )
        codes = np.clip(np.searchsorted(ends, x[:, position], side="right") - 1, 0, len(ends) - 2)
        fraction = np.clip((x[:, position] - ends[codes]) / family.widths[codes], 0.0, 1.0)
        columns.append(np.moveaxis(cumulative[..., codes] + probabilities[..., codes] * fraction, -1, 0))
    return np.stack(columns, axis=-1)


@cdf.register(Binomial)
def _(family: Binomial, parameters: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return P(at most x successes)."""
    successes = np.minimum(np.floor(broadcast_over_groups(x, parameters.ndim - 1)), family.n)
    return np.where(successes < 0, 0.0, bdtr(np.maximum(successes, 0.0), family.n, parameters))


@cdf.register(Gaussian, TiedGaussian, SphericalGaussian, TiedSphericalGaussian)
def _(family: Gaussian, parameters: Normal, x: np.ndarray) -> np.ndarray:
    """Return Φ((x − μ) / σ) of every cell."""
    mean, std = np.broadcast_arrays(parameters.mean, np.sqrt(parameters.variance))
    return ndtr((broadcast_over_groups(x, mean.ndim - 1) - mean) / std)


@cdf.register(LogNormal)
def _(family: LogNormal, parameters: Normal, x: np.ndarray) -> np.ndarray:
    """Return Φ((log x − μ) / σ) of every cell."""
    return cdf.of(Gaussian)(family, parameters, log_cells(x))


@cdf.register(MultivariateGaussian, TiedMultivariateGaussian)
def _(family: MultivariateGaussian, parameters: MultivariateNormal, x: np.ndarray) -> np.ndarray:
    """Return Φ((x − μ) / σ) of every cell, for each column separately."""
    return cdf.of(Gaussian)(family, Normal(parameters.mean, parameters.std**2), x)


@cdf.register(Poisson)
def _(family: Poisson, parameters: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return P(at most x events)."""
    events = np.floor(broadcast_over_groups(x, parameters.ndim - 1))
    return np.where(events < 0, 0.0, pdtr(np.maximum(events, 0.0), parameters))


@ClosedForm
def kl_divergence(family: Family, parameters: Parameters, other: Parameters) -> np.ndarray:
    """Return the Kullback–Leibler divergence KL(p(x | parameters) ‖ p(x | other)) of one row, in nats.

    The default estimates it from 4,096 draws with a fixed seed.
    """
    rows = family.sample(parameters, 4096, np.random.default_rng(0))
    log_ratios = family.log_prob(parameters, rows) - family.log_prob(other, rows)
    return np.maximum(log_ratios.mean(axis=0), 0.0)


@kl_divergence.register(Gaussian, TiedGaussian, LogNormal)
def _(family: Gaussian, parameters: Normal, other: Normal) -> np.ndarray:
    """Return (log σ₂²/σ₁² + (σ₁² + (μ₁ − μ₂)²)/σ₂² − 1) / 2 of every column; the same for their logarithms."""
    (mean, variance), (other_mean, other_variance) = (
        (np.asarray(part, dtype=float) for part in pair) for pair in (parameters, other)
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        return (np.log(other_variance / variance) + (variance + (mean - other_mean) ** 2) / other_variance - 1) / 2


@kl_divergence.register(SphericalGaussian, TiedSphericalGaussian)
def _(family: SphericalGaussian, parameters: Normal, other: Normal) -> np.ndarray:
    """Return the divergence of rows: the sum over the columns."""
    return kl_divergence.of(Gaussian)(family, parameters, other).sum(axis=-1)


@kl_divergence.register(Multinomial, DirichletMultinomial, Poisson)
def _(family: Multinomial | Poisson, parameters: Parameters, other: Parameters) -> np.ndarray:
    """Return λ₁ log λ₁/λ₂ − λ₁ + λ₂; for one token of a multinomial, one term per word."""
    return kl_div(parameters, other)


@kl_divergence.register(MultivariateGaussian, TiedMultivariateGaussian)
def _(family: MultivariateGaussian, parameters: MultivariateNormal, other: MultivariateNormal) -> np.ndarray:
    """Return (log |Σ₂|/|Σ₁| + tr Σ₂⁻¹Σ₁ + (μ₁ − μ₂)ᵀΣ₂⁻¹(μ₁ − μ₂) − d) / 2."""
    mean, covariance = parameters
    difference = np.asarray(other.mean, dtype=float) - mean
    other_covariance = np.asarray(other.covariance, dtype=float)
    second_moment = covariance + difference[..., None] * difference[..., None, :]
    try:
        trace = np.trace(
            np.linalg.solve(other_covariance + np.zeros_like(second_moment), second_moment), axis1=-2, axis2=-1
        )
    except np.linalg.LinAlgError:
        return np.full(mean.shape[:-1], np.nan)
    log_det_ratio = np.linalg.slogdet(other_covariance).logabsdet - np.linalg.slogdet(covariance).logabsdet
    return (log_det_ratio + trace - mean.shape[-1]) / 2


@singledispatch
def conditional_means(family: Family, parameters: Parameters, x: np.ndarray) -> np.ndarray:
    """Return E[x | observed cells of the row] in every group: (n, *given, columns)."""
    mean = family.mean(parameters)
    return np.broadcast_to(mean, (len(x), *mean.shape))


@conditional_means.register(JointGaussian)
def _(family: JointGaussian, parameters: JointGaussianParameters, x: np.ndarray) -> np.ndarray:
    """Return E[x | observed cells of the row] in every group: (n, groups, columns)."""

    def slope(known: np.ndarray, absent: np.ndarray) -> np.ndarray:
        return family.condition_on(parameters, known).slope

    return _regression_means(parameters.mean, x, slope)


@conditional_means.register(MultivariateGaussian)
def _(family: MultivariateGaussian, parameters: MultivariateNormal | NormalInverseWishart, x: np.ndarray) -> np.ndarray:
    """Return E[x | observed cells of the row] in every group: (n, *given, columns)."""
    mean, covariance = (
        (parameters.location, parameters.scale) if isinstance(parameters, NormalInverseWishart) else parameters
    )
    covariance = np.broadcast_to(covariance, (*mean.shape, mean.shape[-1]))

    def slope(known: np.ndarray, absent: np.ndarray) -> np.ndarray:
        columns = covariance[..., known[:, None], known], covariance[..., known[:, None], absent]
        return np.swapaxes(np.linalg.solve(*columns), -1, -2)

    return _regression_means(mean, x, slope)


def _regression_means(
    mean: np.ndarray, x: np.ndarray, slope: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> np.ndarray:
    """Return rows with missing cells replaced by their regression on the observed ones, in every group.

    `slope` maps the positions of observed and of missing columns to the coefficients, (*given, missing, observed).
    """
    out = np.broadcast_to(mean, (len(x), *mean.shape)).copy()
    for known, index in missing_patterns(x):
        absent, rows = np.setdiff1d(np.arange(mean.shape[-1]), known), out[index]
        rows[..., known] = broadcast_over_groups(x[index][:, known], mean.ndim - 1)
        if len(absent):
            rows[..., absent] += (slope(known, absent) @ (rows - mean)[..., known, None])[..., 0]
        out[index] = rows
    return out


@singledispatch
def sampling_options(family: Family, statistics: Statistics) -> dict[str, Any]:
    """Return the keyword arguments of `sample` that describe the training rows besides the parameters."""
    return {}


@sampling_options.register(LinearGaussian)
def _(family: LinearGaussian, statistics: Moments) -> dict[str, Any]:
    """Return the mean and covariance of the inputs."""
    p, pooled = statistics.n_columns - 1, statistics.pool_groups()
    covariance = pooled.scatter[:p, :p] / max(float(pooled.weight[0]), 1.0)
    return {"inputs": (pooled.mean[:p], covariance)}


@sampling_options.register(Multinomial)
def _(family: Multinomial, statistics: Totals) -> dict[str, Any]:
    """Return the mean number of tokens per row."""
    rows = float(statistics.weight.sum())
    return {"size": max(1, round(float(statistics.total.sum()) / rows)) if rows else 1}

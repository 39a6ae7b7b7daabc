"""Gaussian columns, independent given the group, with variances per column or shared over groups, columns or both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tallybayes.distributions.log_gamma import log_rising
from tallybayes.distributions.normal_inverse_gamma import Normal, NormalInverseGamma
from tallybayes.distributions.parameter_distribution import ParameterDistribution
from tallybayes.distributions.tied_variance import pool_tied
from tallybayes.errors import EstimateError
from tallybayes.families._shared.mahalanobis import multivariate_t_log_density
from tallybayes.families.continuous import ContinuousFamily, check_variance, pooled_scale
from tallybayes.families.estimates import read_estimate
from tallybayes.families.family import broadcast_over_groups, ratio, zero_where_missing
from tallybayes.statistics.moments import Moments

_LARGE = 1e150  # its square is finite


class StudentT(NamedTuple):
    """Location, scale and degrees of freedom of Student's t distribution."""

    location: np.ndarray
    scale: np.ndarray
    degrees_of_freedom: np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class Gaussian(ContinuousFamily):
    """A continuous column x ~ N(μ, σ²), with its own mean and variance in every group.

    Examples
    --------
    >>> import tallybayes as tb
    >>> tb.fit_distribution([1.0, 2.0, 6.0], tb.Gaussian()).estimate("mle")
    Normal(mean=3.0, variance=4.666666666666667)
    """

    conjugate_prior: ClassVar[type[ParameterDistribution]] = NormalInverseGamma
    allowed_values: ClassVar[str] = "a finite number (or missing)"
    sums_cells: ClassVar[bool] = True
    compiled_em: ClassVar[bool] = True

    def _estimate(self, statistics: Moments, df_per_mean: int) -> Normal:
        """Return mean and variance, with `df_per_mean` degrees of freedom removed per mean."""
        moments, weight = statistics.diagonal(), statistics.column_weights()
        degrees_of_freedom = pool_tied(weight - df_per_mean * (weight > 0), self.tied_over)
        variance = ratio(pool_tied(moments.scatter, self.tied_over), np.maximum(degrees_of_freedom, 0.0))
        empty = weight == 0
        return Normal(np.where(empty, np.nan, moments.mean), np.where(empty, np.nan, variance))

    def default_prior(self, statistics: Moments, estimate: str) -> NormalInverseGamma:
        """Return a weak prior at the pooled mean and the typical variance within groups.

        It is equivariant under scaling and shifting of the columns.
        """
        shares_columns = "columns" in self.tied_over
        mean, spread, strength = pooled_scale(statistics, together=shares_columns)
        factor = 2.5 + self.means_per_variance(statistics) / 2 if read_estimate(estimate).takes_mode else 1.5
        scale = (spread[:1] if shares_columns else spread) * factor
        check_variance(scale, statistics)
        return NormalInverseGamma(mean, strength, 1.5, scale, tied_over=self.tied_over)

    def as_parameters(self, parameters: Any, statistics: Moments) -> Normal:
        """Return mean and variance, with an axis for columns."""
        return Normal(*(np.atleast_1d(np.asarray(part, dtype=float)) for part in parameters))

    def n_parameters(self, statistics: Moments) -> int:
        """Return the number of means and of distinct variances."""
        n_means = super().n_parameters(statistics)
        return n_means + n_means // self.means_per_variance(statistics) if n_means else 0

    def log_likelihood(self, parameters: Normal, statistics: Moments) -> np.ndarray:
        """Return Σ log N(x | μ, σ²) per group and column; summed over groups that share the variance."""
        moments, weight = statistics.diagonal(), statistics.column_weights()
        variance = self._positive_variance(parameters)
        about = moments.scatter + weight * (moments.mean - parameters.mean) ** 2
        terms = np.where(weight > 0, -0.5 * (weight * np.log(2 * np.pi * variance) + about / variance), 0.0)
        return self._sum_tied_groups(terms, statistics)

    def _positive_variance(self, parameters: Normal) -> np.ndarray:
        """Return the variance; raise EstimateError if it is not positive."""
        variance = parameters.variance
        if (variance <= 0).any():
            index = np.argwhere(variance <= 0)[0]
            raise EstimateError.zero_variance(f"column {int(index[-1]) if len(index) else 0}")
        return variance

    def log_prob(self, parameters: Normal, x: np.ndarray) -> np.ndarray:
        """Return log N(x | μ, σ²) of every cell."""
        mean, variance = parameters.mean, self._positive_variance(parameters)
        x = broadcast_over_groups(x, mean.ndim - 1)
        return zero_where_missing(-0.5 * (np.log(2 * np.pi * variance) + (x - mean) ** 2 / variance), x)

    def log_predictive(self, posterior: NormalInverseGamma, x: np.ndarray) -> np.ndarray:
        """Return log p(x | data) of every cell, Student's t with 2a degrees of freedom."""
        size = np.broadcast_shapes(posterior.location.shape, posterior.scale.shape)
        shape, scale = (np.broadcast_to(part, size) for part in (posterior.shape, posterior.scale))
        x = broadcast_over_groups(x, len(size) - 1)
        # t = (x − m)² / (2b(1 + 1/κ)), so that p ∝ (1 + t)^(−a − ½)
        spread = 2 * scale * (1 + 1 / posterior.strength)
        z = np.abs(x - posterior.location) / np.sqrt(spread)
        log_term = np.log1p(np.minimum(z, _LARGE) ** 2) + 2 * np.log(np.maximum(z, _LARGE) / _LARGE)
        log_norm = log_rising(shape, 0.5) - 0.5 * np.log(np.pi * spread)
        return zero_where_missing(log_norm - (shape + 0.5) * log_term, x)

    def student(self, posterior: NormalInverseGamma) -> StudentT:
        """Return the parameters of the posterior predictive, Student's t."""
        variance = posterior.scale / posterior.shape * (1 + 1 / posterior.strength)
        return StudentT(posterior.location, np.sqrt(variance), 2 * posterior.shape)

    def sample(self, parameters: Normal, n: int, rng: np.random.Generator) -> np.ndarray:
        """Return random values."""
        mean, std = np.broadcast_arrays(parameters.mean, np.sqrt(parameters.variance))
        return rng.normal(mean, std, (n, *mean.shape))


@dataclass(frozen=True, eq=False, repr=False)
class TiedGaussian(Gaussian):
    """`Gaussian` with one variance per column, shared by all groups.

    Examples
    --------
    >>> import tallybayes as tb
    >>> tb.fit_distribution([0.0, 2.0, 10.0, 14.0], tb.TiedGaussian(), group=[0, 0, 1, 1]).estimate("mle").variance
    array([2.5, 2.5])
    """

    tied_over: ClassVar[tuple[str, ...]] = ("groups",)
    compiled_em: ClassVar[bool] = True


@dataclass(frozen=True, eq=False, repr=False)
class SphericalGaussian(Gaussian):
    """`Gaussian` with one variance per group, shared by all columns.

    Examples
    --------
    >>> import tallybayes as tb
    >>> tb.fit_distribution([[0.0, 4.0], [2.0, 8.0]], tb.SphericalGaussian()).estimate("mle")
    Normal(mean=array([1., 6.]), variance=array([2.5, 2.5]))
    """

    tied_over: ClassVar[tuple[str, ...]] = ("columns",)
    compiled_em: ClassVar[bool] = True
    columnwise: ClassVar[bool] = False

    def log_likelihood(self, parameters: Normal, statistics: Moments) -> np.ndarray:
        """Return Σ log N(x | μ, σ² I), per group."""
        return super().log_likelihood(parameters, statistics).sum(axis=-1)

    def log_prob(self, parameters: Normal, x: np.ndarray) -> np.ndarray:
        """Return log N(row | μ, σ² I)."""
        return super().log_prob(parameters, x).sum(axis=-1)

    def log_predictive(self, posterior: NormalInverseGamma, x: np.ndarray) -> np.ndarray:
        """Return log p(row | data), a multivariate t: the columns share σ²."""
        size = np.broadcast_shapes(posterior.location.shape, posterior.scale.shape)
        shape, scale = (np.broadcast_to(part, size)[..., 0] for part in (posterior.shape, posterior.scale))
        x = broadcast_over_groups(x, len(size) - 1)
        known = ~np.isnan(x)
        widen = np.broadcast_to(1 + 1 / posterior.strength, size)
        squares = np.where(known, (x - posterior.location) ** 2 / widen, 0.0).sum(axis=-1) / (2 * scale)
        n_known = known.sum(axis=-1)
        log_det = n_known * np.log(2 * scale) + np.where(known, np.log(widen), 0.0).sum(axis=-1)
        return multivariate_t_log_density(squares, log_det, shape, n_known)


@dataclass(frozen=True, eq=False, repr=False)
class TiedSphericalGaussian(SphericalGaussian):
    """`Gaussian` with a single variance, shared by all columns and groups.

    Examples
    --------
    >>> import tallybayes as tb
    >>> tb.fit_distribution([[0.0, 4.0], [2.0, 8.0]], tb.TiedSphericalGaussian()).estimate("mle").variance
    array([2.5, 2.5])
    """

    tied_over: ClassVar[tuple[str, ...]] = ("groups", "columns")
    compiled_em: ClassVar[bool] = True

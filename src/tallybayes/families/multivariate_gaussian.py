"""Multivariate Gaussian columns, with one covariance matrix per group or one for all groups."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tallybayes.distributions.normal_inverse_wishart import MultivariateNormal, NormalInverseWishart, cholesky_update
from tallybayes.distributions.parameter_distribution import ParameterDistribution
from tallybayes.distributions.tied_variance import first_along, pool_tied, tied_axes
from tallybayes.errors import EstimateError
from tallybayes.families._shared.mahalanobis import (
    by_missing_pattern,
    cholesky,
    log_determinants,
    multivariate_t_log_density,
    squared_distances,
)
from tallybayes.families.continuous import ContinuousFamily, check_variance, pooled_scale
from tallybayes.families.estimates import read_estimate
from tallybayes.families.family import ratio
from tallybayes.statistics.moments import Moments


@dataclass(frozen=True, eq=False, repr=False)
class MultivariateGaussian(ContinuousFamily):
    """Continuous columns with x ~ N(μ, Σ), with its own mean and covariance in every group.

    Examples
    --------
    >>> import tallybayes as tb
    >>> tb.fit_distribution([[0.0, 1.0], [2.0, 5.0], [4.0, 3.0]], tb.MultivariateGaussian()).estimate("unbiased")
    MultivariateNormal(mean=array([2., 3.]), covariance=array([[4., 2.],
           [2., 4.]]))
    """

    conjugate_prior: ClassVar[type[ParameterDistribution]] = NormalInverseWishart
    columnwise: ClassVar[bool] = False
    full_moments: ClassVar[bool] = True
    requires_complete_rows: ClassVar[bool] = True
    sums_cells: ClassVar[bool] = True
    compiled_em: ClassVar[bool] = True
    allowed_values: ClassVar[str] = "a finite number (missing cells cannot be counted under a full covariance)"

    def _estimate(self, statistics: Moments, df_per_mean: int) -> MultivariateNormal:
        """Return mean and covariance, with `df_per_mean` degrees of freedom removed per mean."""
        weight = statistics.weight
        degrees_of_freedom = pool_tied(weight - df_per_mean * (weight > 0), self.tied_over)[..., None]
        scatter = pool_tied(statistics.scatter, self.tied_over, 2)
        covariance = ratio(scatter, np.broadcast_to(np.maximum(degrees_of_freedom, 0.0), scatter.shape))
        covariance = np.broadcast_to(covariance, statistics.second_sum.shape)
        empty = weight == 0
        if "groups" not in self.tied_over:  # else a group without rows has the shared covariance
            covariance = np.where(empty[..., None], np.nan, covariance)
        return MultivariateNormal(np.where(empty, np.nan, statistics.mean), covariance)

    def default_prior(self, statistics: Moments, estimate: str) -> NormalInverseWishart:
        """Return a weak prior at the pooled mean, with the columns' typical variances and no correlations."""
        mean, variance, strength = pooled_scale(statistics)
        check_variance(variance, statistics)
        d = statistics.n_columns
        factor = 2 * d + 3 + self.means_per_variance(statistics) if read_estimate(estimate).takes_mode else 3
        return NormalInverseWishart(mean, strength.min(), d + 2, np.diag(variance * factor), tied_over=self.tied_over)

    def as_parameters(self, parameters: Any, statistics: Moments) -> MultivariateNormal:
        """Return mean and covariance."""
        return MultivariateNormal(*(np.asarray(part, dtype=float) for part in parameters))

    def n_parameters(self, statistics: Moments) -> int:
        """Return the number of means and of distinct covariances."""
        d, n_groups = statistics.n_columns, math.prod(statistics.given_shape)
        return n_groups * d + (1 if "groups" in self.tied_over else n_groups) * d * (d + 1) // 2

    def log_likelihood(self, parameters: MultivariateNormal, statistics: Moments) -> np.ndarray:
        """Return Σ log N(x | μ, Σ) per group; summed over groups that share the covariance."""
        weight, d = statistics.weight[..., 0], statistics.n_columns
        difference = statistics.mean - parameters.mean
        about = statistics.scatter + weight[..., None, None] * difference[..., :, None] * difference[..., None, :]
        root = self._root(parameters.covariance, weight)
        log_det = log_determinants(root)
        half = np.linalg.solve(root, about)
        trace = np.trace(np.linalg.solve(root, np.swapaxes(half, -1, -2)), axis1=-2, axis2=-1)
        terms = np.where(weight > 0, -0.5 * (weight * (d * np.log(2 * np.pi) + log_det) + trace), 0.0)
        return self._sum_tied_groups(terms, statistics)

    def _distinct(self, covariance: np.ndarray) -> np.ndarray:
        """Return the covariances, with length 1 along groups that share one."""
        return first_along(covariance, tied_axes(self.tied_over, covariance.ndim, 2))

    def is_definite(self, covariance: np.ndarray) -> bool:
        """Return whether a covariance matrix is finite and numerically positive definite."""
        return bool(np.isfinite(covariance).all() and cholesky(covariance) is not None)

    def _root(self, covariance: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
        """Return Cholesky factors; identity for NaN; raise EstimateError for singular covariances."""
        covariance = np.asarray(covariance, dtype=float)
        undefined = np.isnan(covariance).any(axis=(-2, -1))
        if undefined.any():
            covariance = np.where(undefined[..., None, None], np.eye(covariance.shape[-1]), covariance)
        root = cholesky(covariance)
        if root is None:
            for index in np.ndindex(covariance.shape[:-2]):
                if cholesky(covariance[index]) is None:
                    group_name = f"group {', '.join(map(str, index))}" if index else "the data"
                    rows = float("nan") if weight is None else float(weight[index])
                    raise EstimateError.singular(group_name, rows, covariance.shape[-1])
        assert root is not None
        return root

    def log_prob(self, parameters: MultivariateNormal, x: np.ndarray) -> np.ndarray:
        """Return log N(row | μ, Σ); missing cells are marginalized."""
        mean = parameters.mean

        def density(rows: np.ndarray, known: np.ndarray) -> np.ndarray:
            root = self._root(self._distinct(parameters.covariance)[..., known[:, None], known])
            squares, log_det = squared_distances(rows, mean[..., known], root)
            return -0.5 * (squares + log_det + len(known) * np.log(2 * np.pi))

        return by_missing_pattern(x, mean.shape[:-1], density)

    def log_predictive(self, posterior: NormalInverseWishart, x: np.ndarray) -> np.ndarray:
        """Return log p(row | data), the multivariate t with ν − d + 1 degrees of freedom.

        Missing cells are marginalized.
        """
        d = posterior.n_columns
        mean = posterior.location
        shape = (posterior.degrees_of_freedom - d + 1) / 2

        def density(rows: np.ndarray, known: np.ndarray) -> np.ndarray:
            # The marginal of a multivariate t has the same degrees of freedom.
            k = len(known)
            if posterior.root is None and "groups" in self.tied_over:  # whiten rows once for all groups
                widen = 1 + 1 / posterior.strength
                own = self._root(posterior.scale[..., known[:, None], known])
                squares, log_det = squared_distances(rows, mean[..., known], own)
                squares, log_det = squares / widen, log_det + k * np.log(widen)
            else:
                squares, log_det = squared_distances(rows, mean[..., known], self.predictive_root(posterior, known))
            return multivariate_t_log_density(squares, log_det, shape, k)

        return by_missing_pattern(x, mean.shape[:-1], density)

    def predictive_root(self, posterior: NormalInverseWishart, known: np.ndarray) -> np.ndarray:
        """Return the lower Cholesky factor of Ψ(1 + 1/κ) over the `known` columns in every group."""
        size = (*np.shape(posterior.location), posterior.n_columns)
        widen = 1 + 1 / posterior.strength
        if posterior.root is None:
            own = self._root(posterior.scale[..., known[:, None], known])  # a single matrix if groups share the scale
            size = (*size[:-2], len(known), len(known))
            return np.broadcast_to(own * np.sqrt(widen)[..., None, None], size)
        upper = np.broadcast_to(np.swapaxes(posterior.root * np.sqrt(widen)[..., None, None], -1, -2), size)
        return cholesky_update(upper[..., known], np.zeros((*size[:-2], 0, len(known))))

    def sample(self, parameters: MultivariateNormal, n: int, rng: np.random.Generator) -> np.ndarray:
        """Return random rows."""
        mean = parameters.mean
        values, vectors = np.linalg.eigh(parameters.covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]  # works for singular covariances
        noise = rng.standard_normal((n, *mean.shape))
        if mean.ndim == 1:  # one matrix product, far faster than one per row
            return mean + noise @ root.T
        return mean + (root @ noise[..., None])[..., 0]


@dataclass(frozen=True, eq=False, repr=False)
class TiedMultivariateGaussian(MultivariateGaussian):
    """`MultivariateGaussian` with one covariance matrix, shared by all groups.

    Examples
    --------
    >>> import tallybayes as tb
    >>> rows = [[0.0, 0.0], [2.0, 1.0], [9.0, 9.0], [9.0, 7.0]]
    >>> tb.fit_distribution(rows, tb.TiedMultivariateGaussian(), group=[0, 0, 1, 1]).estimate("mle").covariance[0]
    array([[0.5  , 0.25 ],
           [0.25 , 0.625]])
    """

    tied_over: ClassVar[tuple[str, ...]] = ("groups",)
    compiled_em: ClassVar[bool] = True

"""Multivariate Gaussian columns, with one covariance matrix per group or one for all groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtr

from tallybayes import kernels
from tallybayes.distributions.log_gamma import log_rising
from tallybayes.distributions.normal_inverse_wishart import MultivariateNormal, NormalInverseWishart, cholesky_update
from tallybayes.errors import EstimateError
from tallybayes.families._shared.blocks import Block, dense
from tallybayes.families._shared.leave_one_out_counts import GroupStatistics, RemovedRows
from tallybayes.families._shared.leave_one_out_gaussian import rows_leave_one_out
from tallybayes.families._shared.log_prob_forms import MultivariateNormalForm, MultivariateTForm
from tallybayes.families._shared.mahalanobis import (
    by_missing_pattern,
    cholesky,
    log_determinants,
    missing_patterns,
    squared_distances,
    whiten,
)
from tallybayes.families._shared.sql_aggregates import SqlColumn, Sum, moments_of_sums, sums_of_powers
from tallybayes.families.continuous import ContinuousFamily, check_variance, least_variance, pooled_scale
from tallybayes.families.estimates import read_estimate
from tallybayes.families.family import broadcast_over_groups, ratio
from tallybayes.families.gaussian import Gaussian
from tallybayes.statistics.moments import Moments, choose_anchor

_MIN_EIGENVALUE = 1e-10  # least eigenvalue of a correlation matrix; below it, a group collapses to a hyperplane


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

    conjugate_prior = NormalInverseWishart
    columnwise: ClassVar[bool] = False
    low_memory_scoring: ClassVar[bool] = True
    requires_complete_rows: ClassVar[bool] = True
    sums_cells: ClassVar[bool] = True
    allowed_values: ClassVar[str] = "a finite number (missing cells cannot be counted under a full covariance)"
    memory_hint: ClassVar[str] = "Use tb.NaiveBayes(tb.Gaussian()), which needs no covariances, or fewer columns."

    @property
    def statistics_key(self) -> tuple[Any, ...]:
        """Return the key of full moments, shared by tied and untied families."""
        return ("moments", "full")

    def n_numbers(self, n_columns: int) -> tuple[int, int]:
        """Return the sums of all products in double-double, and the intermediate arrays."""
        return 2 * n_columns**2, 6 * n_columns**2

    def collect(
        self,
        block: Block,
        group: np.ndarray | None = None,
        n_groups: int = 1,
        weight: np.ndarray | None = None,
        *,
        like: Any = None,
    ) -> Moments:
        """Return weights, sums and sums of products about an anchor."""
        columns = dense(block, "MultivariateGaussian")
        anchor = choose_anchor(columns, group, weight) if like is None else like.anchor
        return Moments.from_kernel(anchor, kernels.sum_scatter(columns, anchor, group, n_groups, weight))

    def aggregates(self, n_columns: int, anchor: np.ndarray) -> list[Sum]:
        """Return weights, sums and sums of products about an anchor."""
        return sums_of_powers([SqlColumn(column) for column in range(n_columns)], anchor, full=True)

    def from_aggregates(self, sums: np.ndarray, anchor: np.ndarray) -> Moments:
        """Return the moments of groups."""
        return moments_of_sums(anchor, sums, full=True)

    def maximum_likelihood(self, statistics: Moments) -> MultivariateNormal:
        """Return the mean, and the scatter divided by the number of rows."""
        return self._estimate(statistics, 0)

    def unbiased(self, statistics: Moments) -> MultivariateNormal:
        """Return the mean, and the scatter divided by the number of rows minus the number of means."""
        return self._estimate(statistics, 1)

    def _estimate(self, statistics: Moments, df_per_mean: int) -> MultivariateNormal:
        """Return mean and covariance, with `df_per_mean` degrees of freedom removed per mean."""
        weight = statistics.weight[..., 0]
        degrees_of_freedom = self._pool(weight - df_per_mean * (weight > 0), 0)
        scatter = self._pool(statistics.scatter, 2)
        divisor = np.broadcast_to(
            np.where(degrees_of_freedom > 0, degrees_of_freedom, 0.0)[..., None, None], scatter.shape
        )
        covariance = np.broadcast_to(ratio(scatter, divisor), statistics.second_sum.shape)
        empty = weight == 0
        mean = np.where(empty[..., None], np.nan, statistics.mean)
        if "groups" in self.tied_over:  # a group without rows has the shared covariance
            return MultivariateNormal(mean, covariance)
        return MultivariateNormal(mean, np.where(empty[..., None, None], np.nan, covariance))

    def _pool(self, array: np.ndarray, n_trailing: int) -> np.ndarray:
        """Sum over the groups if they share the covariance, keeping the axes."""
        axes = tuple(range(array.ndim - n_trailing))
        return array.sum(axis=axes, keepdims=True) if "groups" in self.tied_over and axes else array

    def default_prior(self, statistics: Moments, estimate: str) -> NormalInverseWishart:
        """Return a weak prior at the pooled mean, with the columns' typical variances and no correlations."""
        mean, variance, strength = pooled_scale(statistics)
        check_variance(variance, statistics)
        d = statistics.n_columns
        n_means = int(np.prod(statistics.given_shape, dtype=np.int64)) if "groups" in self.tied_over else 1
        scale = np.diag(variance * (2 * d + 3 + n_means if read_estimate(estimate).takes_mode else 3))
        return NormalInverseWishart(mean, strength.min(), d + 2, scale, tied_over=self.tied_over)

    def as_parameters(self, parameters: Any, statistics: Moments) -> MultivariateNormal:
        """Return mean and covariance."""
        return MultivariateNormal(*(np.asarray(part, dtype=float) for part in parameters))

    def n_parameters(self, statistics: Moments) -> int:
        """Return the number of means and of distinct covariances."""
        d = statistics.n_columns
        n_groups = int(np.prod(statistics.given_shape, dtype=np.int64))
        return n_groups * d + (1 if "groups" in self.tied_over else n_groups) * d * (d + 1) // 2

    def row_weight(self, statistics: Moments) -> np.ndarray:
        """Return the number of rows of every group, or of all if they share the covariance."""
        rows = statistics.group_weights()
        return rows.sum() if "groups" in self.tied_over else rows

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
        return terms.sum() if "groups" in self.tied_over else terms

    def _distinct(self, covariance: np.ndarray) -> np.ndarray:
        """Return the covariances, with length 1 along groups that share one."""
        return covariance[(slice(0, 1),) * (covariance.ndim - 2)] if "groups" in self.tied_over else covariance

    def is_definite(self, covariance: np.ndarray) -> bool:
        """Return whether a covariance matrix is finite and numerically positive definite."""
        return bool(np.isfinite(covariance).all() and cholesky(covariance) is not None)

    def _root(self, covariance: Any, weight: np.ndarray | None = None) -> np.ndarray:
        """Return Cholesky factors; identity for NaN; raise EstimateError for singular covariances."""
        covariance = np.asarray(covariance, dtype=float)
        undefined = np.isnan(covariance).any(axis=(-2, -1))
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
        mean = np.asarray(parameters.mean)

        def density(rows: np.ndarray, known: np.ndarray) -> np.ndarray:
            root = self._root(self._distinct(np.asarray(parameters.covariance))[..., known[:, None], known])
            squares, log_det = squared_distances(rows, mean[..., known], root)
            return -0.5 * (squares + log_det + len(known) * np.log(2 * np.pi))

        return by_missing_pattern(x, mean.shape[:-1], density)

    def log_predictive(self, posterior: NormalInverseWishart, x: np.ndarray) -> np.ndarray:
        """Return log p(row | data), the multivariate t with ν − d + 1 degrees of freedom.

        Missing cells are marginalized.
        """
        d = posterior.n_columns
        mean = np.asarray(posterior.location)
        freedom = posterior.degrees_of_freedom - d + 1

        def density(rows: np.ndarray, known: np.ndarray) -> np.ndarray:
            # The marginal of a multivariate t has the same freedom; p ∝ (1 + tᵀ(scale)⁻¹t)^(−(freedom + k)/2)
            k = len(known)
            if posterior.root is None and "groups" in self.tied_over:  # whiten rows once for all groups
                widen = 1 + 1 / posterior.strength
                own = self._root(posterior.scale[..., known[:, None], known])
                squares, log_det = squared_distances(rows, mean[..., known], own)
                squares, log_det = squares / widen, log_det + k * np.log(widen)
            else:
                squares, log_det = squared_distances(rows, mean[..., known], self.predictive_root(posterior, known))
            log_norm = log_rising(freedom / 2, k / 2) - k / 2 * np.log(np.pi) - log_det / 2
            return log_norm - (freedom + k) / 2 * np.log1p(squares)

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

    def log_prob_form(self, parameters: MultivariateNormal) -> MultivariateNormalForm:
        """Return a multivariate normal density."""
        mean, covariance = (np.asarray(part, dtype=float) for part in parameters)
        return MultivariateNormalForm(
            mean, covariance, "groups" in self.tied_over, lambda x: self.log_prob(parameters, x)
        )

    def log_predictive_form(self, posterior: NormalInverseWishart) -> MultivariateTForm:
        """Return a multivariate t density."""
        location = np.asarray(posterior.location)
        shape = np.broadcast_to((posterior.degrees_of_freedom - posterior.n_columns + 1) / 2, location.shape[:-1])

        def by_root(rows: np.ndarray, known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return whiten(rows, self.predictive_root(posterior, known))

        return MultivariateTForm(location, shape, by_root, lambda x: self.log_predictive(posterior, x))

    @property
    def leave_one_out_changes_all_groups(self) -> bool:
        """Return True: all groups are computed at the cost of one."""
        return True

    def leave_one_out_log_prob(self, counted: GroupStatistics, rows: RemovedRows) -> np.ndarray:
        """Return the log densities from the mean and covariance of the remaining rows."""
        return rows_leave_one_out(self, counted, rows)

    def zero_small_variances(self, parameters: MultivariateNormal, statistics: Moments) -> MultivariateNormal:
        """Return the estimate with nearly singular covariances set to 0; EM would not converge."""
        covariance, least = np.array(parameters.covariance, dtype=float), least_variance(statistics)
        variance = np.diagonal(covariance, axis1=-2, axis2=-1)
        collapsed = (variance < least).any(axis=-1)
        regular = np.asarray((variance > 0).all(axis=-1) & ~collapsed)
        std = np.sqrt(np.where(regular[..., None], variance, 1.0))
        correlation = covariance / (std[..., :, None] * std[..., None, :])
        correlation = np.where(regular[..., None, None], correlation, np.eye(covariance.shape[-1]))
        collapsed |= np.linalg.eigvalsh(correlation)[..., 0] < _MIN_EIGENVALUE
        return parameters._replace(covariance=np.where(collapsed[..., None, None], 0.0, covariance))

    def mask_degenerate_groups(self, parameters: MultivariateNormal) -> MultivariateNormal:
        """Return the parameters, NaN for groups with a singular covariance."""
        mean, covariance = (np.asarray(part, dtype=float) for part in parameters)
        singular = np.fromiter(
            (not self.is_definite(matrix) for matrix in covariance), dtype=bool, count=len(covariance)
        )
        return MultivariateNormal(
            np.where(singular[:, None], np.nan, mean), np.where(singular[:, None, None], np.nan, covariance)
        )

    @property
    def columnwise_family(self) -> Gaussian:
        """Return the Gaussian family with independent columns."""
        return Gaussian()

    def columnwise_statistics(self, statistics: Moments) -> Moments:
        """Return the moments without products of columns."""
        return statistics.diagonal()

    def first_degenerate_group(self, parameters: Any, statistics: Moments) -> tuple[int | None, int | None] | None:
        """Return the first group with a singular covariance, (None, None) if it is shared, or None."""
        weight, covariance = statistics.weight[:, 0], np.asarray(parameters.covariance)
        if "groups" in self.tied_over:
            is_singular = weight.sum() > 0 and not self.is_definite(covariance[int(weight.argmax())])
            return (None, None) if is_singular else None
        singular = (code for code in np.flatnonzero(weight > 0) if not self.is_definite(covariance[code]))
        first = next(singular, None)
        return None if first is None else (int(first), None)

    def named_parameters(self, parameters: Any) -> dict[str, np.ndarray]:
        """Return mean, variance and standard deviation of every column; for a posterior, their means."""
        point = self.parameters_from(parameters, "mean") if isinstance(parameters, NormalInverseWishart) else parameters
        variance = np.diagonal(np.asarray(point.covariance), axis1=-2, axis2=-1)
        return {"mean": np.asarray(point.mean), "variance": variance, "std": np.sqrt(variance)}

    def kl_divergence(self, parameters: MultivariateNormal, other: MultivariateNormal) -> np.ndarray:
        """Return (log |Σ₂|/|Σ₁| + tr Σ₂⁻¹Σ₁ + (μ₁ − μ₂)ᵀΣ₂⁻¹(μ₁ − μ₂) − d) / 2."""
        mean, covariance = (np.asarray(part, dtype=float) for part in parameters)
        difference, other_covariance = (
            np.asarray(other.mean, dtype=float) - mean,
            np.asarray(other.covariance, dtype=float),
        )
        second_moment = covariance + difference[..., None] * difference[..., None, :]
        try:
            trace = np.trace(
                np.linalg.solve(other_covariance + np.zeros_like(second_moment), second_moment), axis1=-2, axis2=-1
            )
        except np.linalg.LinAlgError:
            return np.full(mean.shape[:-1], np.nan)
        log_det_ratio = np.linalg.slogdet(other_covariance).logabsdet - np.linalg.slogdet(covariance).logabsdet
        return (log_det_ratio + trace - mean.shape[-1]) / 2

    def column_contributions(self, parameters: Any, x: np.ndarray, predictive: bool) -> np.ndarray:
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
        rows = (self.log_predictive if predictive else self.log_prob)(parameters, x)
        out = np.zeros((len(x), *mean.shape))
        for known, index in missing_patterns(x):
            difference = broadcast_over_groups(x[index][:, known], n_given) - mean[..., known]
            solved = np.moveaxis(difference, 0, -1)
            solved = np.moveaxis(np.linalg.solve(covariance[..., known[:, None], known], solved), -1, 0)
            squares = difference * solved
            squared_norm = squares.sum(axis=-1, keepdims=True)
            if predictive:
                log_kernel = (
                    -(parameters.degrees_of_freedom - d + 1 + len(known))[..., None] / 2 * np.log1p(squared_norm)
                )
                parts = log_kernel * squares / np.where(squared_norm > 0, squared_norm, 1.0)
            else:
                log_kernel, parts = -0.5 * squared_norm, -0.5 * squares
            terms = np.zeros((len(index), *mean.shape))
            terms[..., known] = parts + (rows[index][..., None] - log_kernel) / len(known)
            out[index] = terms
        return out

    def conditional_means(self, parameters: Any, x: np.ndarray) -> np.ndarray:
        """Return E[x | observed cells of the row] in every group: (n, *given, columns)."""
        predictive = isinstance(parameters, NormalInverseWishart)
        mean = np.asarray(parameters.location if predictive else parameters.mean)
        d, n_given = mean.shape[-1], mean.ndim - 1
        covariance = np.broadcast_to(parameters.scale if predictive else parameters.covariance, (*mean.shape, d))
        out = np.broadcast_to(mean, (len(x), *mean.shape)).copy()
        for known, index in missing_patterns(x):
            absent = np.setdiff1d(np.arange(d), known)
            difference = broadcast_over_groups(x[index][:, known], n_given) - mean[..., known]
            slope = np.linalg.solve(covariance[..., known[:, None], known], covariance[..., known[:, None], absent])
            rows = out[index]
            rows[..., absent] += (difference[..., None, :] @ slope)[..., 0, :]
            rows[..., known] = broadcast_over_groups(x[index][:, known], n_given)
            out[index] = rows
        return out

    def cdf(self, parameters: MultivariateNormal, x: np.ndarray) -> np.ndarray:
        """Return Φ((x − μ) / σ) of every cell, for each column separately."""
        mean, covariance = np.asarray(parameters.mean), np.asarray(parameters.covariance)
        variance = np.diagonal(covariance, axis1=-2, axis2=-1)
        return ndtr((broadcast_over_groups(x, mean.ndim - 1) - mean) / np.sqrt(variance))

    def sample(self, parameters: MultivariateNormal, n: int, rng: np.random.Generator) -> np.ndarray:
        """Return random rows."""
        mean = np.asarray(parameters.mean)
        values, vectors = np.linalg.eigh(np.asarray(parameters.covariance))
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

"""Multivariate Gaussian columns: one covariance matrix per group, or one for all groups."""

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

_FLATTENED = 1e-10  # the least eigenvalue of correlations; below, a group is falling in on a plane


@dataclass(frozen=True, eq=False, repr=False)
class MultivariateGaussian(ContinuousFamily):
    """Measured columns that vary together: x ~ N(μ, Σ), with its own mean and covariance in every group.

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
    memory_hint: ClassVar[str] = (
        "Use tb.NaiveBayes(tb.Gaussian()), which keeps no products of columns, or fewer columns."
    )

    @property
    def statistics_key(self) -> tuple[Any, ...]:
        """Tied or not, the same moments."""
        return ("moments", "full")

    def n_numbers(self, n_columns: int) -> tuple[int, int]:
        """Sums of all products in two parts, and the arithmetic on them."""
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
        """Sum weights, values and products about an anchor."""
        columns = dense(block, "MultivariateGaussian")
        anchor = choose_anchor(columns, group, weight) if like is None else like.anchor
        return Moments.from_kernel(anchor, kernels.sum_scatter(columns, anchor, group, n_groups, weight))

    def aggregates(self, n_columns: int, anchor: np.ndarray) -> list[Sum]:
        """Weights, values and products about an anchor."""
        return sums_of_powers([SqlColumn(place) for place in range(n_columns)], anchor, full=True)

    def from_aggregates(self, sums: np.ndarray, anchor: np.ndarray) -> Moments:
        """The moments of groups."""
        return moments_of_sums(anchor, sums, full=True)

    def maximum_likelihood(self, statistics: Moments) -> MultivariateNormal:
        """The mean, and the scatter over the number of rows."""
        return self._estimate(statistics, 0)

    def unbiased(self, statistics: Moments) -> MultivariateNormal:
        """The mean, and the scatter over the number of rows less one for every mean estimated."""
        return self._estimate(statistics, 1)

    def _estimate(self, statistics: Moments, spent: int) -> MultivariateNormal:
        weight = statistics.weight[..., 0]
        freedom = self._pool(weight - spent * (weight > 0), 0)
        scatter = self._pool(statistics.scatter, 2)
        divisor = np.broadcast_to(np.where(freedom > 0, freedom, 0.0)[..., None, None], scatter.shape)
        covariance = np.broadcast_to(ratio(scatter, divisor), statistics.second_sum.shape)
        empty = weight == 0
        mean = np.where(empty[..., None], np.nan, statistics.mean)
        if "groups" in self.tied_over:  # even a group without rows has the covariance of all
            return MultivariateNormal(mean, covariance)
        return MultivariateNormal(mean, np.where(empty[..., None, None], np.nan, covariance))

    def _pool(self, array: np.ndarray, n_trailing: int) -> np.ndarray:
        axes = tuple(range(array.ndim - n_trailing))
        return array.sum(axis=axes, keepdims=True) if "groups" in self.tied_over and axes else array

    def default_prior(self, statistics: Moments, estimate: str) -> NormalInverseWishart:
        """A weak belief about the pooled mean and the columns' spread within groups, uncorrelated."""
        mean, spread, strength = pooled_scale(statistics)
        check_variance(spread, statistics)
        d = statistics.n_columns
        n_means = int(np.prod(statistics.given_shape, dtype=np.int64)) if "groups" in self.tied_over else 1
        scale = np.diag(spread * (2 * d + 3 + n_means if read_estimate(estimate).takes_mode else 3))
        return NormalInverseWishart(mean, strength.min(), d + 2, scale, tied_over=self.tied_over)

    def as_parameters(self, parameters: Any, statistics: Moments) -> MultivariateNormal:
        """Mean and covariance."""
        return MultivariateNormal(*(np.asarray(part, dtype=float) for part in parameters))

    def n_parameters(self, statistics: Moments) -> int:
        """A mean per group and column, and a covariance per group or one for all."""
        d = statistics.n_columns
        n_groups = int(np.prod(statistics.given_shape, dtype=np.int64))
        return n_groups * d + (1 if "groups" in self.tied_over else n_groups) * d * (d + 1) // 2

    def row_weight(self, statistics: Moments) -> np.ndarray:
        """The rows of every group, or of all where they share the covariance."""
        rows = statistics.group_weights()
        return rows.sum() if "groups" in self.tied_over else rows

    def log_likelihood(self, parameters: MultivariateNormal, statistics: Moments) -> np.ndarray:
        """Σ log N(x | μ, Σ), per group; over all groups where they share the covariance."""
        weight, d = statistics.weight[..., 0], statistics.n_columns
        gap = statistics.mean - parameters.mean
        about = statistics.scatter + weight[..., None, None] * gap[..., :, None] * gap[..., None, :]
        root = self._root(parameters.covariance, weight)
        log_det = log_determinants(root)
        half = np.linalg.solve(root, about)
        trace = np.trace(np.linalg.solve(root, np.swapaxes(half, -1, -2)), axis1=-2, axis2=-1)
        terms = np.where(weight > 0, -0.5 * (weight * (d * np.log(2 * np.pi) + log_det) + trace), 0.0)
        return terms.sum() if "groups" in self.tied_over else terms

    def _own(self, covariance: np.ndarray) -> np.ndarray:
        """Covariances with length 1 along the groups that share one."""
        return covariance[(slice(0, 1),) * (covariance.ndim - 2)] if "groups" in self.tied_over else covariance

    def is_definite(self, covariance: np.ndarray) -> bool:
        """Whether a covariance matrix has an inverse worth the name."""
        return bool(np.isfinite(covariance).all() and cholesky(covariance) is not None)

    def _root(self, covariance: Any, weight: np.ndarray | None = None) -> np.ndarray:
        """Cholesky factors; a singular covariance is named by its group, one of no rows (NaN) stands for itself."""
        covariance = np.asarray(covariance, dtype=float)
        unknown = np.isnan(covariance).any(axis=(-2, -1))
        covariance = np.where(unknown[..., None, None], np.eye(covariance.shape[-1]), covariance)
        root = cholesky(covariance)
        if root is None:
            for index in np.ndindex(covariance.shape[:-2]):
                if cholesky(covariance[index]) is None:
                    where = f"group {', '.join(map(str, index))}" if index else "the data"
                    rows = float("nan") if weight is None else float(weight[index])
                    raise EstimateError.singular(where, rows, covariance.shape[-1])
        assert root is not None
        return root

    def log_prob(self, parameters: MultivariateNormal, x: np.ndarray) -> np.ndarray:
        """log N(row | μ, Σ); missing cells are marginalized."""
        mean = np.asarray(parameters.mean)

        def density(rows: np.ndarray, known: np.ndarray) -> np.ndarray:
            root = self._root(self._own(np.asarray(parameters.covariance))[..., known[:, None], known])
            squares, log_det = squared_distances(rows, mean[..., known], root)
            return -0.5 * (squares + log_det + len(known) * np.log(2 * np.pi))

        return by_missing_pattern(x, mean.shape[:-1], density)

    def log_predictive(self, posterior: NormalInverseWishart, x: np.ndarray) -> np.ndarray:
        """log p(row | data), the multivariate t with ν − d + 1 degrees of freedom; missing cells are marginalized."""
        d = posterior.n_columns
        mean = np.asarray(posterior.location)
        freedom = posterior.degrees_of_freedom - d + 1

        def density(rows: np.ndarray, known: np.ndarray) -> np.ndarray:
            # The marginal of a multivariate t has the same freedom; p ∝ (1 + tᵀ(scale)⁻¹t)^(−(freedom + k)/2)
            k = len(known)
            if posterior.root is None and "groups" in self.tied_over:  # rows are turned once for all groups
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
        """The lower root of Ψ(1 + 1/κ) over the `known` columns, by position, in every group."""
        size = (*np.shape(posterior.location), posterior.n_columns)
        widen = 1 + 1 / posterior.strength
        if posterior.root is None:
            own = self._root(posterior.scale[..., known[:, None], known])  # once, where groups share the scale
            size = (*size[:-2], len(known), len(known))
            return np.broadcast_to(own * np.sqrt(widen)[..., None, None], size)
        upper = np.broadcast_to(np.swapaxes(posterior.root * np.sqrt(widen)[..., None, None], -1, -2), size)
        return cholesky_update(upper[..., known], np.zeros((*size[:-2], 0, len(known))))

    def log_prob_form(self, parameters: MultivariateNormal) -> MultivariateNormalForm:
        """A bell of whole rows."""
        mean, covariance = (np.asarray(part, dtype=float) for part in parameters)
        return MultivariateNormalForm(
            mean, covariance, "groups" in self.tied_over, lambda x: self.log_prob(parameters, x)
        )

    def log_predictive_form(self, posterior: NormalInverseWishart) -> MultivariateTForm:
        """Student's t of whole rows."""
        location = np.asarray(posterior.location)
        shape = np.broadcast_to((posterior.degrees_of_freedom - posterior.n_columns + 1) / 2, location.shape[:-1])

        def by_root(rows: np.ndarray, known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return whiten(rows, self.predictive_root(posterior, known))

        return MultivariateTForm(location, shape, by_root, lambda x: self.log_predictive(posterior, x))

    @property
    def leave_one_out_changes_all_groups(self) -> bool:
        """All groups, for the price of one: it takes squared lengths from every mean."""
        return True

    def leave_one_out_log_prob(self, counted: GroupStatistics, rows: RemovedRows) -> np.ndarray:
        """Mean and covariance of what is left."""
        return rows_leave_one_out(self, counted, rows)

    def zero_small_variances(self, parameters: MultivariateNormal, statistics: Moments) -> MultivariateNormal:
        """Covariances next to flat are 0: without a prior, a group may fall in on a plane, with no end."""
        spread, least = np.array(parameters.covariance, dtype=float), least_variance(statistics)
        variance = np.diagonal(spread, axis1=-2, axis2=-1)
        fallen = (variance < least).any(axis=-1)
        usual = np.asarray((variance > 0).all(axis=-1) & ~fallen)
        deviation = np.sqrt(np.where(usual[..., None], variance, 1.0))
        correlation = spread / (deviation[..., :, None] * deviation[..., None, :])
        correlation = np.where(usual[..., None, None], correlation, np.eye(spread.shape[-1]))
        fallen |= np.linalg.eigvalsh(correlation)[..., 0] < _FLATTENED
        return parameters._replace(covariance=np.where(fallen[..., None, None], 0.0, spread))

    def mask_degenerate_groups(self, parameters: MultivariateNormal) -> MultivariateNormal:
        """Groups whose covariance is singular."""
        mean, spread = (np.asarray(part, dtype=float) for part in parameters)
        flat = np.fromiter((not self.is_definite(matrix) for matrix in spread), dtype=bool, count=len(spread))
        return MultivariateNormal(np.where(flat[:, None], np.nan, mean), np.where(flat[:, None, None], np.nan, spread))

    @property
    def columnwise_family(self) -> Gaussian:
        """The same columns, each with a variance."""
        return Gaussian()

    def columnwise_statistics(self, statistics: Moments) -> Moments:
        """The moments without products."""
        return statistics.diagonal()

    def first_degenerate_group(self, parameters: Any, statistics: Moments) -> tuple[int | None, int | None] | None:
        """The first group whose covariance is singular, or all where they share it."""
        weight, covariance = statistics.weight[:, 0], np.asarray(parameters.covariance)
        if "groups" in self.tied_over:
            some = weight.sum() > 0 and not self.is_definite(covariance[int(weight.argmax())])
            return (None, None) if some else None
        lost = (code for code in np.flatnonzero(weight > 0) if not self.is_definite(covariance[code]))
        first = next(lost, None)
        return None if first is None else (int(first), None)

    def named_parameters(self, parameters: Any) -> dict[str, np.ndarray]:
        """Every column by itself: its mean, variance and deviation; of a posterior, their means."""
        found = self.parameters_from(parameters, "mean") if isinstance(parameters, NormalInverseWishart) else parameters
        variance = np.diagonal(np.asarray(found.covariance), axis1=-2, axis2=-1)
        return {"mean": np.asarray(found.mean), "variance": variance, "std": np.sqrt(variance)}

    def kl_divergence(self, parameters: MultivariateNormal, other: MultivariateNormal) -> np.ndarray:
        """(log |Σ₂|/|Σ₁| + tr Σ₂⁻¹Σ₁ + the squared distance of the means under Σ₂ − d) / 2 of whole rows."""
        mean, covariance = (np.asarray(part, dtype=float) for part in parameters)
        gap, wide = np.asarray(other.mean, dtype=float) - mean, np.asarray(other.covariance, dtype=float)
        whole = covariance + gap[..., None] * gap[..., None, :]
        try:
            spread = np.trace(np.linalg.solve(wide + np.zeros_like(whole), whole), axis1=-2, axis2=-1)
        except np.linalg.LinAlgError:
            return np.full(mean.shape[:-1], np.nan)
        sizes = np.linalg.slogdet(wide).logabsdet - np.linalg.slogdet(covariance).logabsdet
        return (sizes + spread - mean.shape[-1]) / 2

    def column_contributions(self, parameters: Any, x: np.ndarray, predictive: bool) -> np.ndarray:
        """Every column's share of a row's squared length, cross terms split equally; the rest evenly."""
        located = parameters.location if predictive else parameters.mean
        spread = (
            parameters.scale * (1 + 1 / parameters.strength)[..., None, None] if predictive else parameters.covariance
        )
        mean = np.asarray(located)
        d, n_given = mean.shape[-1], mean.ndim - 1
        spread = np.broadcast_to(spread, (*mean.shape, d))
        rows = (self.log_predictive if predictive else self.log_prob)(parameters, x)
        out = np.zeros((len(x), *mean.shape))
        for known, index in missing_patterns(x):
            gap = broadcast_over_groups(x[index][:, known], n_given) - mean[..., known]
            solved = np.moveaxis(gap, 0, -1)
            solved = np.moveaxis(np.linalg.solve(spread[..., known[:, None], known], solved), -1, 0)
            squares = gap * solved
            length = squares.sum(axis=-1, keepdims=True)
            if predictive:
                bend = -(parameters.degrees_of_freedom - d + 1 + len(known))[..., None] / 2 * np.log1p(length)
                shares = bend * squares / np.where(length > 0, length, 1.0)
            else:
                bend, shares = -0.5 * length, -0.5 * squares
            terms = np.zeros((len(index), *mean.shape))
            terms[..., known] = shares + (rows[index][..., None] - bend) / len(known)
            out[index] = terms
        return out

    def conditional_means(self, parameters: Any, x: np.ndarray) -> np.ndarray:
        """E[x | the row's known cells] in every group: (n, *given, columns)."""
        predictive = isinstance(parameters, NormalInverseWishart)
        mean = np.asarray(parameters.location if predictive else parameters.mean)
        d, n_given = mean.shape[-1], mean.ndim - 1
        spread = np.broadcast_to(parameters.scale if predictive else parameters.covariance, (*mean.shape, d))
        out = np.broadcast_to(mean, (len(x), *mean.shape)).copy()
        for known, index in missing_patterns(x):
            absent = np.setdiff1d(np.arange(d), known)
            gap = broadcast_over_groups(x[index][:, known], n_given) - mean[..., known]
            slope = np.linalg.solve(spread[..., known[:, None], known], spread[..., known[:, None], absent])
            rows = out[index]
            rows[..., absent] += (gap[..., None, :] @ slope)[..., 0, :]
            rows[..., known] = broadcast_over_groups(x[index][:, known], n_given)
            out[index] = rows
        return out

    def cdf(self, parameters: MultivariateNormal, x: np.ndarray) -> np.ndarray:
        """Φ((x − μ) / σ) of every cell, each column by itself."""
        mean, covariance = np.asarray(parameters.mean), np.asarray(parameters.covariance)
        variance = np.diagonal(covariance, axis1=-2, axis2=-1)
        return ndtr((broadcast_over_groups(x, mean.ndim - 1) - mean) / np.sqrt(variance))

    def sample(self, parameters: MultivariateNormal, n: int, rng: np.random.Generator) -> np.ndarray:
        """Rows."""
        mean = np.asarray(parameters.mean)
        values, vectors = np.linalg.eigh(np.asarray(parameters.covariance))
        root = vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]  # a singular covariance can be sampled too
        noise = rng.standard_normal((n, *mean.shape))
        if mean.ndim == 1:  # one product of matrices, many times as fast as one for every row
            return mean + noise @ root.T
        return mean + (root @ noise[..., None])[..., 0]


@dataclass(frozen=True, eq=False, repr=False)
class TiedMultivariateGaussian(MultivariateGaussian):
    """As `MultivariateGaussian`, with one covariance matrix shared by all groups.

    Examples
    --------
    >>> import tallybayes as tb
    >>> rows = [[0.0, 0.0], [2.0, 1.0], [9.0, 9.0], [9.0, 7.0]]
    >>> tb.fit_distribution(rows, tb.TiedMultivariateGaussian(), group=[0, 0, 1, 1]).estimate("mle").covariance[0]
    array([[0.5  , 0.25 ],
           [0.25 , 0.625]])
    """

    tied_over: ClassVar[tuple[str, ...]] = ("groups",)

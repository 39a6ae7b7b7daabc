"""Continuous columns: the common base of Gaussian families, and the typical variance of default priors."""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tallybayes import kernels
from tallybayes.distributions.normal_inverse_gamma import NormalInverseGamma
from tallybayes.distributions.normal_inverse_wishart import NormalInverseWishart
from tallybayes.distributions.parameter_distribution import ParameterDistribution
from tallybayes.errors import DataError, EstimateError
from tallybayes.families._shared.blocks import Block, dense
from tallybayes.families.family import Family, Parameters
from tallybayes.statistics.moments import Moments, choose_anchor
from tallybayes.statistics.sufficient_statistics import Statistics
from tallybayes.typing import Prior

_TOTAL_VARIANCE_ROWS = 8.0  # prior strength of the total variance relative to the within-group variance
_MAX_VARIANCE_RATIO = 1000.0  # largest ratio of total to within-group variance that is used
_STRENGTH = 0.01  # prior strength of the pooled mean, in rows
_COLLAPSED = 1e-20  # relative to the variance of all rows


class ContinuousFamily(Family):
    """Continuous columns whose sufficient statistics are moments."""

    is_continuous: ClassVar[bool] = True

    @property
    def statistics_key(self) -> tuple[Any, ...]:
        """Return the key of full or diagonal moments: tied and untied families have the same statistics."""
        return ("moments", "full" if self.full_moments else "diagonal")

    def collect(
        self,
        block: Block,
        group: np.ndarray | None = None,
        n_groups: int = 1,
        weight: np.ndarray | None = None,
        *,
        like: Statistics | None = None,
    ) -> Moments:
        """Return weights, sums and sums of squares (or of all products) about an anchor."""
        columns = dense(block, type(self).__name__)
        anchor = like.anchor if isinstance(like, Moments) else choose_anchor(columns, group, weight)
        sum_powers = kernels.sum_scatter if self.full_moments else kernels.sum_moments
        return Moments.from_kernel(anchor, sum_powers(columns, anchor, group, n_groups, weight))

    def maximum_likelihood(self, statistics: Moments) -> Any:
        """Return the means or coefficients, and the scatter divided by the number of rows."""
        return self._estimate(statistics, 0)

    def unbiased(self, statistics: Moments) -> Any:
        """Return the means or coefficients, and the scatter divided by the degrees of freedom."""
        return self._estimate(statistics, 1)

    def _estimate(self, statistics: Moments, df_per_mean: int) -> Any:
        """Return the estimates, with `df_per_mean` degrees of freedom removed per mean or coefficient."""
        raise NotImplementedError

    def resolve_prior(self, prior: Prior, statistics: Moments, estimate: str) -> ParameterDistribution:
        """Return the prior, with variances shared over `tied_over`."""
        distribution = super().resolve_prior(prior, statistics, estimate)
        return distribution.tied(self.tied_over) if hasattr(distribution, "tied") else distribution

    def row_weight(self, statistics: Moments) -> np.ndarray:
        """Return the number of rows of every group, and of every column if these are independent."""
        rows = super().row_weight(statistics) if self.columnwise else statistics.group_weights()
        return self._sum_tied_groups(rows, statistics)

    def _sum_tied_groups(self, terms: np.ndarray, statistics: Moments) -> np.ndarray:
        """Return the sum over groups if they share the variance, since only together they have a likelihood."""
        groups = tuple(range(len(statistics.given_shape)))
        return terms.sum(axis=groups) if "groups" in self.tied_over else terms

    def means_per_variance(self, statistics: Moments) -> int:
        """Return the number of means that share one variance."""
        n_groups = math.prod(statistics.given_shape) if "groups" in self.tied_over else 1
        return n_groups * (statistics.n_columns if "columns" in self.tied_over else 1)

    def mean(self, parameters: Parameters | ParameterDistribution) -> np.ndarray:
        """Return the means."""
        if isinstance(parameters, NormalInverseGamma | NormalInverseWishart):
            return parameters.location
        return np.asarray(self.point(parameters)[0])


class PooledScale(NamedTuple):
    """Pooled mean, typical variance within groups and prior strength of every column, for default priors.

    ``mean`` is the pooled mean m₀, ``spread`` the typical variance s² within groups, and ``strength`` the prior
    strength of m₀ in rows.
    """

    mean: np.ndarray
    spread: np.ndarray
    strength: np.ndarray


def pooled_scale(statistics: Moments, *, together: bool = False) -> PooledScale:
    """Return the mean, typical variance and prior strength of every column from the groups' moments.

    With N rows in K groups, T the variance of all rows, f = N − K degrees of freedom and v = S_within / f,

        s² = v · min(T/v, 1000)^(8 / (f + 8))

    This is T if every group has a single row, and approaches the within-group variance as f grows. A weighted mean of
    both variances would be dominated by T, which may be millions of times v. The constants 8 and 1000 were tuned on
    small samples of real data. If no group varies, s² = T / (f + 1).

    κ₀ = min(0.01, s² / g²), where g is the largest distance of a group mean from m₀. A prior N(m₀, σ²/κ₀) expects means
    within 10 σ of m₀; otherwise a mean 1000 σ away would inflate the estimate of σ.

    `together`: one variance for all columns.
    """
    moments = statistics.diagonal()
    pooled = moments.pool_groups()
    mean = pooled.mean
    axes = tuple(range(len(moments.given_shape)))
    weight = moments.column_weights()
    rows = pooled.column_weights()
    # Constant columns differ in the last bits of double-double after rows were forgotten or weighted by
    # responsibilities, so scatters below the rounding error count as 0.
    least = 1e-29 * pooled.second_sum.value
    within, total_scatter = (
        np.where(part > least, part, 0.0) for part in (moments.scatter.sum(axis=axes), pooled.scatter)
    )
    if statistics.full:  # products of columns are summed in float64 first, which leaves rounding errors
        within = np.where(within > 1e-14 * total_scatter, within, 0.0)
    total = total_scatter / np.where(rows > 0, rows, 1.0)
    freedom = np.maximum(rows - (weight > 0).sum(axis=axes), 0.0)
    squared_distances = np.where(weight > 0, (moments.mean - mean) ** 2, 0.0)
    if together and total.size:
        within, total, freedom = (np.full(part.shape, part.mean()) for part in (within, total, freedom))
        squared_distances = np.broadcast_to(squared_distances.mean(axis=-1, keepdims=True), squared_distances.shape)
    spread = typical_variance(within, freedom, total)
    largest_distance = squared_distances.max(axis=axes, initial=0.0)
    is_distant = _STRENGTH * largest_distance > spread
    return PooledScale(
        mean, spread, np.where(is_distant, spread / np.where(is_distant, largest_distance, 1.0), _STRENGTH)
    )


def typical_variance(within: np.ndarray, freedom: np.ndarray, total: np.ndarray) -> np.ndarray:
    """Return s² of `pooled_scale` from the within-group scatter, its degrees of freedom and the total variance."""
    varied = (within > 0) & (freedom > 0) & (total > 0)
    inner = np.where(varied, within, 1.0) / np.where(varied, freedom, 1.0)
    with np.errstate(over="ignore"):
        wider = np.minimum(total / inner, _MAX_VARIANCE_RATIO) ** (
            _TOTAL_VARIANCE_ROWS / (freedom + _TOTAL_VARIANCE_ROWS)
        )
    return np.where(varied, inner * wider, total / (freedom + 1))


def least_variance(statistics: Moments) -> np.ndarray:
    """Return the variance per column below which a group's variance is rounding error."""
    pooled = statistics.diagonal().pool_groups()
    return np.asarray(_COLLAPSED * pooled.scatter / np.maximum(pooled.weight, 1.0))


def check_variance(variance: np.ndarray, statistics: Moments) -> None:
    """Raise DataError if a column has no values, EstimateError if it has zero variance."""
    zero = np.argwhere(~(variance > 0))
    if len(zero):
        column = int(zero[0][-1])
        weight = statistics.pool_groups().column_weights()
        if weight[column] == 0:
            raise DataError.no_default(f"column {column}")
        raise EstimateError.zero_variance(f"column {column}")

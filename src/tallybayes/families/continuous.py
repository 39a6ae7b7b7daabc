"""Measured columns, independent or not: what their families have in common, and the spread default priors go by."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np

from tallybayes.distributions.parameter_distribution import ParameterDistribution
from tallybayes.errors import DataError, EstimateError
from tallybayes.families._shared.blocks import SparseRows, first_infinite_cell
from tallybayes.families.family import Family
from tallybayes.statistics.moments import Moments
from tallybayes.typing import Prior

_TOTAL_ROWS = 8.0  # what the variance of all rows is worth beside that within groups
_MOST_APART = 1000.0  # times the variance within groups that the variance of all rows counts for
_STRENGTH = 0.01  # what the pooled mean is worth, in rows
_COLLAPSED = 1e-20  # of the variance of all rows
_SHOWN = 1e-40  # of the squared mean: less than one of 10⁸ rows has that is the next number to all others


class ContinuousFamily(Family):
    """Columns of numbers that are kept as moments, and believed to lie about a mean with some spread."""

    is_continuous: ClassVar[bool] = True

    def resolve_prior(self, prior: Prior, statistics: Moments, estimate: str) -> ParameterDistribution:
        """As for every family; the belief shares what this family shares."""
        belief = super().resolve_prior(prior, statistics, estimate)
        return belief.tied(self.tied_over) if hasattr(belief, "tied") else belief

    def mean(self, parameters: Any) -> np.ndarray:
        """The means."""
        located = isinstance(parameters, self.conjugate_prior)
        return np.asarray(parameters.location if located else parameters.mean)

    def first_invalid_cell(self, rows: Any) -> tuple[int, int] | None:
        """The first that is infinite: full covariances predict around missing cells, too."""
        return super().first_invalid_cell(rows) if isinstance(rows, SparseRows) else first_infinite_cell(rows)

    def constant_columns(self, statistics: Moments) -> np.ndarray:
        """Columns whose pooled spread is 0, or less than numbers can show: what EM leaves of cells that it expected."""
        found = pooled_scale(statistics)
        return np.flatnonzero(~(found.spread > _SHOWN * found.mean**2))

    def add_unit_variance(self, statistics: Moments, flat: np.ndarray) -> Moments:
        """A unit for each, unless columns share one variance, among which it would count, and some have spread."""
        if not len(flat) or ("columns" in self.tied_over and len(flat) < statistics.n_columns):
            return statistics
        extra = np.zeros(statistics.n_columns)
        extra[flat] = 1.0
        return statistics.with_scatter(np.diag(extra) if statistics.full else extra)

    def remove_unit_variance(self, parameters: Any, flat: np.ndarray) -> Any:
        """Their variance, and covariance with others, is 0."""
        mean, spread = (np.asarray(part, dtype=float) for part in parameters)
        if not len(flat) or ("columns" in self.tied_over and len(flat) < mean.shape[-1]):
            return parameters
        full = spread.ndim > mean.ndim
        spread = np.array(np.broadcast_to(spread, (*mean.shape, *mean.shape[-1:] * full)))
        spread[..., flat] = 0.0
        if full:
            spread[..., flat, :] = 0.0
        return type(parameters)(mean, spread)


class PooledScale(NamedTuple):
    """What a default prior knows of every column.

    Its pooled mean m₀, a typical variance s² within groups, and what m₀ is worth as their expected mean, in rows.
    """

    mean: np.ndarray
    spread: np.ndarray
    strength: np.ndarray


def pooled_scale(statistics: Moments, *, together: bool = False) -> PooledScale:
    """The default prior's mean, variance and strength, per column, from the groups' moments.

    With N rows in K groups, T the variance of all rows, f = N − K degrees of freedom and v = S_within / f,

        s² = v · min(T/v, 1000)^(8 / (f + 8))

    T where every group has a single row, and soon the variance within groups, however far these lie apart: a mean of
    the two variances would not do, for T may be millions of times v. Both numbers were measured on small samples of
    real data. Where nothing varies within groups, s² = T / (f + 1).

    κ₀ = min(0.01, s² / g²), with g the largest distance of a group's mean from m₀. A prior N(m₀, σ²/κ₀) expects means
    within 10 σ of m₀; a mean 1000 σ away would be taken for a sign that σ is large.

    `together`: the variances of all columns are one.
    """
    moments = statistics.diagonal()
    pooled = moments.pool_groups()
    mean = pooled.mean
    axes = tuple(range(len(moments.given_shape)))
    weight = np.broadcast_to(moments.weight, moments.first_sum.shape)
    rows = np.broadcast_to(pooled.weight, mean.shape)
    # Constants differ in the last bits of double-double: groups of one, once other rows were forgotten, and rows of a
    # group, once their weights are shares; EM leaves shares next to nothing besides.
    least = 1e-29 * pooled.second_sum.value
    within, apart = (np.where(part > least, part, 0.0) for part in (moments.scatter.sum(axis=axes), pooled.scatter))
    if statistics.full:  # products of columns are summed in float64 first: forgetting all rows but one leaves rounding
        within = np.where(within > 1e-14 * apart, within, 0.0)
    total = apart / np.where(rows > 0, rows, 1.0)
    freedom = np.maximum(rows - (weight > 0).sum(axis=axes), 0.0)
    gaps = np.where(weight > 0, (moments.mean - mean) ** 2, 0.0)
    if together and total.size:
        within, total, freedom = (np.full(part.shape, part.mean()) for part in (within, total, freedom))
        gaps = np.broadcast_to(gaps.mean(axis=-1, keepdims=True), gaps.shape)
    spread = typical_variance(within, freedom, total)
    farthest = gaps.max(axis=axes, initial=0.0)
    far = _STRENGTH * farthest > spread
    return PooledScale(mean, spread, np.where(far, spread / np.where(far, farthest, 1.0), _STRENGTH))


def typical_variance(within: np.ndarray, freedom: np.ndarray, total: np.ndarray) -> np.ndarray:
    """s² of `pooled_scale`: from squared errors within groups, their degrees of freedom, and the variance of all."""
    varied = (within > 0) & (freedom > 0) & (total > 0)
    inner = np.where(varied, within, 1.0) / np.where(varied, freedom, 1.0)
    with np.errstate(over="ignore"):
        wider = np.minimum(total / inner, _MOST_APART) ** (_TOTAL_ROWS / (freedom + _TOTAL_ROWS))
    return np.where(varied, inner * wider, total / (freedom + 1))


def least_variance(statistics: Moments) -> np.ndarray:
    """Per column, the variance below which that of a group is rounding."""
    pooled = statistics.diagonal().pool_groups()
    return np.asarray(_COLLAPSED * pooled.scatter / np.maximum(pooled.weight, 1.0))


def check_variance(spread: np.ndarray, statistics: Moments) -> None:
    """Refuse a default prior where nothing was counted, or the data show no spread at all."""
    flat = np.argwhere(~(spread > 0))
    if len(flat):
        column = int(flat[0][-1])
        weight = np.broadcast_to(statistics.pool_groups().weight, (statistics.n_columns,))
        if weight[column] == 0:
            raise DataError.no_default(f"column {column}")
        raise EstimateError.zero_variance(f"column {column}")

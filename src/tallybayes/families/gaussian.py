"""Gaussian columns, independent given the group: a variance per column, or one shared by groups, columns or both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import ndtr

from tallybayes import kernels
from tallybayes.distributions.linear_normal_inverse_gamma import LinearParameters
from tallybayes.distributions.log_gamma import log_gamma_half_step, log_rising
from tallybayes.distributions.normal_inverse_gamma import Normal, NormalInverseGamma
from tallybayes.errors import EstimateError
from tallybayes.families._shared.blocks import Block, dense
from tallybayes.families._shared.leave_one_out_counts import GroupStatistics, RemovedRows
from tallybayes.families._shared.leave_one_out_gaussian import columns_leave_one_out, student_t_leave_one_out
from tallybayes.families._shared.log_prob_forms import MultivariateTForm, NormalForm, StudentTForm
from tallybayes.families._shared.sql_aggregates import SqlColumn, Sum, moments_of_sums, sums_of_powers
from tallybayes.families.continuous import ContinuousFamily, check_variance, least_variance, pooled_scale
from tallybayes.families.estimates import read_estimate
from tallybayes.families.family import Family, broadcast_over_groups, ratio, zero_where_missing
from tallybayes.statistics.moments import Moments, choose_anchor

_LARGE = 1e150  # whose square is still finite


class StudentT(NamedTuple):
    """Parameters of Student's t: where it is centered, how wide it is, and how heavy its tails."""

    location: np.ndarray
    scale: np.ndarray
    degrees_of_freedom: np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class Gaussian(ContinuousFamily):
    """A measured column: x ~ N(μ, σ²), with its own mean and variance in every group.

    Examples
    --------
    >>> import tallybayes as tb
    >>> tb.fit_distribution([1.0, 2.0, 6.0], tb.Gaussian()).estimate("mle")
    Normal(mean=3.0, variance=4.666666666666667)
    """

    conjugate_prior = NormalInverseGamma
    allowed_values: ClassVar[str] = "a finite number (or missing)"
    sums_cells: ClassVar[bool] = True

    @property
    def family_given_continuous_parents(self) -> Family | None:
        """A line with Gaussian noise, unless variances are shared, or the cells are not the numbers themselves."""
        from tallybayes.families.conditional_linear_gaussian import (
            ConditionalLinearGaussian,  # which knows of estimates, as this does
        )

        return ConditionalLinearGaussian() if type(self) is Gaussian else None

    def as_line(self, parameters: Normal) -> LinearParameters:
        """A line in nothing: its intercept is the mean."""
        mean, variance = np.broadcast_arrays(*(np.asarray(part, dtype=float)[..., 0] for part in parameters))
        return LinearParameters(np.zeros((*mean.shape, 0)), mean, variance)

    @property
    def statistics_key(self) -> tuple[Any, ...]:
        """All Gaussians with independent columns keep the same moments."""
        return ("moments", "diagonal")

    def n_numbers(self, n_columns: int) -> tuple[int, int]:
        """Sums and squares in two parts each, and the arithmetic on them."""
        return 8 * n_columns, 12 * n_columns

    def collect(
        self,
        block: Block,
        group: np.ndarray | None = None,
        n_groups: int = 1,
        weight: np.ndarray | None = None,
        *,
        like: Any = None,
    ) -> Moments:
        """Sum weights, values and squares about an anchor."""
        columns = dense(block, "Gaussian")
        anchor = choose_anchor(columns, group, weight) if like is None else like.anchor
        return Moments.from_kernel(anchor, kernels.sum_moments(columns, anchor, group, n_groups, weight))

    def aggregates(self, n_columns: int, anchor: np.ndarray) -> list[Sum]:
        """Weights, values and squares about an anchor."""
        return sums_of_powers([SqlColumn(place) for place in range(n_columns)], anchor, full=False)

    def from_aggregates(self, sums: np.ndarray, anchor: np.ndarray) -> Moments:
        """The moments of groups."""
        return moments_of_sums(anchor, sums, full=False)

    def _pool(self, array: np.ndarray) -> np.ndarray:
        """The sum over what shares one variance, keeping the axes."""
        groups = tuple(range(array.ndim - 1)) if "groups" in self.tied_over else ()
        axes = (*groups, array.ndim - 1) if "columns" in self.tied_over else groups
        return array.sum(axis=axes, keepdims=True) if axes else array

    def maximum_likelihood(self, statistics: Moments) -> Normal:
        """The mean, and the scatter over the number of rows."""
        return self._estimate(statistics, 0)

    def unbiased(self, statistics: Moments) -> Normal:
        """The mean, and the scatter over the number of rows less one for every mean estimated."""
        return self._estimate(statistics, 1)

    def _estimate(self, statistics: Moments, spent: int) -> Normal:
        moments = statistics.diagonal()
        weight = np.broadcast_to(moments.weight, moments.first_sum.shape)
        freedom = self._pool(weight) - spent * self._pool((weight > 0).astype(float))
        variance = ratio(self._pool(moments.scatter), np.where(freedom > 0, freedom, 0.0))
        empty = weight == 0
        return Normal(np.where(empty, np.nan, moments.mean), np.where(empty, np.nan, variance))

    def default_prior(self, statistics: Moments, estimate: str) -> NormalInverseGamma:
        """A weak belief about the pooled mean and the spread within groups, the same for every scale and offset."""
        mean, spread, strength = pooled_scale(statistics, together="columns" in self.tied_over)
        n_means = int(np.prod(self._shared_sizes(statistics), dtype=np.int64))
        scale = spread * (2.5 + n_means / 2 if read_estimate(estimate).takes_mode else 1.5)
        keep = slice(0, 1) if "columns" in self.tied_over else slice(None)
        check_variance(scale[keep], statistics)
        return NormalInverseGamma(mean, strength, 1.5, scale[keep], tied_over=self.tied_over)

    def _shared_sizes(self, statistics: Moments) -> list[int]:
        groups = list(statistics.given_shape) if "groups" in self.tied_over else []
        return [*groups, statistics.n_columns] if "columns" in self.tied_over else groups

    def as_parameters(self, parameters: Any, statistics: Moments) -> Normal:
        """Mean and variance, with an axis for columns."""
        return Normal(*(np.atleast_1d(np.asarray(part, dtype=float)) for part in parameters))

    def n_parameters(self, statistics: Moments) -> int:
        """A mean per group and column, and a variance for all that share one."""
        n_means = int(np.prod(statistics.first_sum.shape, dtype=np.int64))
        return n_means + n_means // int(np.prod(self._shared_sizes(statistics), dtype=np.int64)) if n_means else 0

    def row_weight(self, statistics: Moments) -> np.ndarray:
        """The rows behind every column."""
        return self._over_groups(np.broadcast_to(statistics.weight, statistics.first_sum.shape))

    def log_likelihood(self, parameters: Normal, statistics: Moments) -> np.ndarray:
        """Σ log N(x | μ, σ²), per group and column; over all groups where they share the variance."""
        moments, variance = statistics.diagonal(), self._spread(parameters)
        weight = np.broadcast_to(moments.weight, moments.first_sum.shape)
        about = moments.scatter + weight * (moments.mean - parameters.mean) ** 2
        terms = np.where(weight > 0, -0.5 * (weight * np.log(2 * np.pi * variance) + about / variance), 0.0)
        return self._over_groups(terms)

    def _over_groups(self, terms: np.ndarray) -> np.ndarray:
        """The sum over the groups if they share the variance: only together do they have a likelihood of their own."""
        return terms.sum(axis=tuple(range(terms.ndim - 1))) if "groups" in self.tied_over else terms

    def _spread(self, parameters: Normal) -> np.ndarray:
        variance = np.asarray(parameters.variance)
        if (variance <= 0).any():
            where = np.argwhere(variance <= 0)[0]
            raise EstimateError.zero_variance(f"column {int(where[-1]) if len(where) else 0}")
        return variance

    def log_prob(self, parameters: Normal, x: np.ndarray) -> np.ndarray:
        """log N(x | μ, σ²) of every cell."""
        mean, variance = np.asarray(parameters.mean), self._spread(parameters)
        x = broadcast_over_groups(x, mean.ndim - 1)
        return zero_where_missing(-0.5 * (np.log(2 * np.pi * variance) + (x - mean) ** 2 / variance), x)

    def log_predictive(self, posterior: NormalInverseGamma, x: np.ndarray) -> np.ndarray:
        """log p(x | data), Student's t with 2a degrees of freedom, of every cell."""
        size = np.broadcast_shapes(posterior.location.shape, posterior.scale.shape)
        shape, scale = (np.broadcast_to(part, size) for part in (posterior.shape, posterior.scale))
        x = broadcast_over_groups(x, len(size) - 1)
        # t = (x − m)² / (2b(1 + 1/κ)), so that p ∝ (1 + t)^(−a − ½)
        spread = 2 * scale * (1 + 1 / posterior.strength)
        z = np.abs(x - posterior.location) / np.sqrt(spread)
        log_term = np.log1p(np.minimum(z, _LARGE) ** 2) + 2 * np.log(np.maximum(z, _LARGE) / _LARGE)
        log_norm = log_gamma_half_step(shape) - 0.5 * np.log(np.pi * spread)
        return zero_where_missing(log_norm - (shape + 0.5) * log_term, x)

    def log_prob_form(self, parameters: Normal) -> NormalForm:
        """A bell of every column."""
        mean, variance = (np.asarray(part, dtype=float) for part in parameters)
        with np.errstate(divide="ignore"):
            log_norm = -0.5 * np.log(2 * np.pi * variance)
            return NormalForm(mean, 1 / variance, log_norm, "groups" in self.tied_over)

    def log_predictive_form(self, posterior: NormalInverseGamma) -> StudentTForm | MultivariateTForm:
        """Student's t of every column."""
        size = np.broadcast_shapes(posterior.location.shape, posterior.scale.shape)
        spread = np.broadcast_to(2 * posterior.scale * (1 + 1 / posterior.strength), size)
        location, shape = (np.broadcast_to(part, size) for part in (posterior.location, posterior.shape))
        log_norm = log_gamma_half_step(shape) - 0.5 * np.log(np.pi * spread)
        return StudentTForm(location, 1 / spread, shape + 0.5, log_norm)

    def leave_one_out_log_prob(self, counted: GroupStatistics, rows: RemovedRows) -> np.ndarray:
        """Mean and variance of what is left."""
        return columns_leave_one_out(self, counted, rows)

    def leave_one_out_tables(self, counted: GroupStatistics, constant: np.ndarray) -> tuple[np.ndarray, ...] | None:
        """Student's t: mean, inverse spread, power and log norm of a factor ``"left_out"``."""
        return (
            student_t_leave_one_out(counted, constant) if counted.estimate.integrates and not self.tied_over else None
        )

    def zero_small_variances(self, parameters: Normal, statistics: Moments) -> Normal:
        """A variance next to nothing is nothing: without a prior, a group may fall in on a single row."""
        variance = np.asarray(parameters.variance)
        return parameters._replace(variance=np.where(variance < least_variance(statistics), 0.0, variance))

    def mask_degenerate_groups(self, parameters: Normal) -> Normal:
        """Groups that have a column of variance 0."""
        mean, variance = (np.asarray(part, dtype=float) for part in parameters)
        flat = ~(np.broadcast_to(variance, mean.shape) > 0).all(axis=-1, keepdims=True)
        return Normal(np.where(flat, np.nan, mean), np.where(flat, np.nan, variance))

    def first_degenerate_group(self, parameters: Normal, statistics: Moments) -> tuple[int | None, int | None] | None:
        """The first group and column whose values are all the same."""
        flat = np.argwhere(~(np.asarray(parameters.variance) > 0) & (statistics.weight > 0))
        return (int(flat[0][0]), int(flat[0][1])) if len(flat) else None

    def named_parameters(self, parameters: Any) -> dict[str, np.ndarray]:
        """Mean, variance and its root; of a posterior, what its predictive has."""
        found = self.student(parameters) if isinstance(parameters, NormalInverseGamma) else parameters
        parts = {name: np.broadcast_to(part, np.shape(found[0])) for name, part in found._asdict().items()}
        return parts | ({"std": np.sqrt(parts["variance"])} if "variance" in parts else {})

    def kl_divergence(self, parameters: Normal, other: Normal) -> np.ndarray:
        """(log σ₂²/σ₁² + (σ₁² + (μ₁ − μ₂)²)/σ₂² − 1) / 2 of every column."""
        (mean, variance), (far, wide) = ((np.asarray(part, dtype=float) for part in two) for two in (parameters, other))
        with np.errstate(divide="ignore", invalid="ignore"):
            return (np.log(wide / variance) + (variance + (mean - far) ** 2) / wide - 1) / 2

    def plot_grid(self, parameters: Any, column: int, reach: float = 4.0) -> np.ndarray:
        """As many deviations as `reach` about every mean."""
        if isinstance(parameters, NormalInverseGamma):
            middle, spread, _ = self.student(parameters)
        else:
            middle, spread = parameters.mean, np.sqrt(parameters.variance)
        middle, spread = (part[:, column] for part in np.broadcast_arrays(middle, spread))
        return np.linspace((middle - reach * spread).min(), (middle + reach * spread).max(), 400)

    def student(self, posterior: NormalInverseGamma) -> StudentT:
        """The predictive distribution's own parameters."""
        variance = posterior.scale / posterior.shape * (1 + 1 / posterior.strength)
        return StudentT(posterior.location, np.sqrt(variance), 2 * posterior.shape)

    def cdf(self, parameters: Normal, x: np.ndarray) -> np.ndarray:
        """Φ((x − μ) / σ) of every cell."""
        mean, deviation = np.broadcast_arrays(parameters.mean, np.sqrt(parameters.variance))
        return ndtr((broadcast_over_groups(x, mean.ndim - 1) - mean) / deviation)

    def sample(self, parameters: Normal, n: int, rng: np.random.Generator) -> np.ndarray:
        """Values."""
        mean, deviation = np.broadcast_arrays(parameters.mean, np.sqrt(parameters.variance))
        return rng.normal(mean, deviation, (n, *mean.shape))


@dataclass(frozen=True, eq=False, repr=False)
class TiedGaussian(Gaussian):
    """As `Gaussian`, with one variance per column shared by all groups.

    Examples
    --------
    >>> import tallybayes as tb
    >>> tb.fit_distribution([0.0, 2.0, 10.0, 14.0], tb.TiedGaussian(), group=[0, 0, 1, 1]).estimate("mle").variance
    array([2.5, 2.5])
    """

    tied_over: ClassVar[tuple[str, ...]] = ("groups",)


@dataclass(frozen=True, eq=False, repr=False)
class SphericalGaussian(Gaussian):
    """As `Gaussian`, with one variance per group shared by all columns.

    Examples
    --------
    >>> import tallybayes as tb
    >>> tb.fit_distribution([[0.0, 4.0], [2.0, 8.0]], tb.SphericalGaussian()).estimate("mle")
    Normal(mean=array([1., 6.]), variance=array([2.5, 2.5]))
    """

    tied_over: ClassVar[tuple[str, ...]] = ("columns",)
    columnwise: ClassVar[bool] = False

    log_prob_form = Gaussian.log_prob_form  # with the variance known, columns are independent
    leave_one_out_log_prob = Gaussian.leave_one_out_log_prob

    def log_predictive_form(self, posterior: NormalInverseGamma) -> MultivariateTForm:
        """Student's t of whole rows: the columns share what is not known of the variance."""
        size = np.broadcast_shapes(posterior.location.shape, posterior.scale.shape)
        root = np.sqrt(np.broadcast_to(2 * posterior.scale * (1 + 1 / posterior.strength), size))

        def turned(rows: np.ndarray, known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return rows[:, None, :] / root[:, known], 2 * np.log(root[:, known]).sum(axis=-1)

        location, shape = (np.broadcast_to(part, size) for part in (posterior.location, posterior.shape))
        return MultivariateTForm(location, shape[..., 0], turned, lambda x: self.log_predictive(posterior, x))

    def row_weight(self, statistics: Moments) -> np.ndarray:
        """The rows of every group, of its fullest column."""
        return self._over_groups(statistics.group_weights()[..., None])[..., 0]

    def log_likelihood(self, parameters: Normal, statistics: Moments) -> np.ndarray:
        """Σ log N(x | μ, σ² I), per group."""
        return super().log_likelihood(parameters, statistics).sum(axis=-1)

    def column_contributions(self, parameters: Any, x: np.ndarray, predictive: bool) -> np.ndarray:
        """Every column's share: its own normal density, or its share of the row's squared length."""
        if not predictive:
            return Gaussian.log_prob(self, parameters, x)
        row = self.log_predictive(parameters, x)[..., None]
        size = np.broadcast_shapes(parameters.location.shape, parameters.scale.shape)
        x = broadcast_over_groups(np.asarray(x, dtype=float), len(size) - 1)
        known = ~np.isnan(x)
        n_known = known.sum(axis=-1, keepdims=True)
        t = np.where(known, (x - parameters.location) ** 2 / (1 + 1 / parameters.strength), 0.0)
        t = t / (2 * np.broadcast_to(parameters.scale, size))
        length = t.sum(axis=-1, keepdims=True)
        bend = -(np.broadcast_to(parameters.shape, size)[..., :1] + n_known / 2) * np.log1p(length)
        even = known * (row - bend) / np.maximum(n_known, 1)
        return even + bend * t / np.where(length > 0, length, 1.0)

    def log_prob(self, parameters: Normal, x: np.ndarray) -> np.ndarray:
        """log N(row | μ, σ² I)."""
        return super().log_prob(parameters, x).sum(axis=-1)

    def log_predictive(self, posterior: NormalInverseGamma, x: np.ndarray) -> np.ndarray:
        """log p(row | data): the columns share σ², so a row follows one multivariate t."""
        size = np.broadcast_shapes(posterior.location.shape, posterior.scale.shape)
        shape, scale = (np.broadcast_to(part, size)[..., 0] for part in (posterior.shape, posterior.scale))
        x = broadcast_over_groups(x, len(size) - 1)
        known = ~np.isnan(x)
        widen = np.broadcast_to(1 + 1 / posterior.strength, size)
        t = np.where(known, (x - posterior.location) ** 2 / widen, 0.0).sum(axis=-1) / (2 * scale)
        n_known = known.sum(axis=-1)
        log_norm = log_rising(shape, n_known / 2) - n_known / 2 * np.log(2 * np.pi * scale)
        return log_norm - 0.5 * np.where(known, np.log(widen), 0.0).sum(axis=-1) - (shape + n_known / 2) * np.log1p(t)


@dataclass(frozen=True, eq=False, repr=False)
class TiedSphericalGaussian(SphericalGaussian):
    """As `Gaussian`, with a single variance shared by all columns and groups.

    Examples
    --------
    >>> import tallybayes as tb
    >>> tb.fit_distribution([[0.0, 4.0], [2.0, 8.0]], tb.TiedSphericalGaussian()).estimate("mle").variance
    array([2.5, 2.5])
    """

    tied_over: ClassVar[tuple[str, ...]] = ("groups", "columns")

"""Normal-inverse-gamma distribution: conjugate prior of a mean and a variance."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from tallybayes._utils.parameter_checks import random_generator
from tallybayes.distributions.inverse_gamma import InverseGamma, log_normal_density
from tallybayes.distributions.log_gamma import log_growth
from tallybayes.distributions.parameter_distribution import (
    Interval,
    ParameterDistribution,
    as_float,
    as_size,
    tail_probabilities,
)
from tallybayes.distributions.tied_variance import check_tied, pool_tied, tied_axes
from tallybayes.errors import DataError, PriorError
from tallybayes.statistics.moments import Moments
from tallybayes.typing import RandomState

_ARRAYS = ("location", "strength", "shape", "scale")


class Normal(NamedTuple):
    """Parameters of Gaussian columns: mean and variance, each of shape (*given, columns)."""

    mean: Any
    variance: Any

    @property
    def std(self) -> Any:
        """Standard deviation √variance."""
        return as_float(np.sqrt(self.variance))


@dataclass(frozen=True, eq=False, repr=False)
class NormalInverseGamma(ParameterDistribution):
    """σ² ~ InverseGamma(a, b), μ | σ² ~ N(m, σ²/κ): conjugate prior of `Gaussian`.

    Parameters
    ----------
    location : float or array broadcasting to (*given, columns)
        Expected mean m.
    strength : float or array
        Prior strength κ of the mean, in rows.
    shape, scale : float or array
        a and b of the variance, equivalent to 2a rows with a scatter (sum of squared deviations) of 2b.
    tied_over : tuple of {"groups", "columns"}, default ()
        Axes along which all means share one variance. Set by the tied and spherical families.

    Examples
    --------
    >>> import tallybayes as tb
    >>> prior = tb.NormalInverseGamma(0, 1, 2, 3)
    >>> posterior = prior.update(tb.Moments.of([[1.0], [2.0], [6.0]]))
    >>> posterior.mean()
    Normal(mean=array([2.25]), variance=array([5.35]))
    """

    location: np.ndarray
    strength: np.ndarray
    shape: np.ndarray
    scale: np.ndarray
    tied_over: tuple[str, ...] = field(default=(), kw_only=True)

    strength_fields: ClassVar[tuple[str, ...]] = ("strength", "shape", "scale")

    if TYPE_CHECKING:  # the constructor accepts any array-like and stores arrays

        def __init__(
            self,
            location: npt.ArrayLike,
            strength: npt.ArrayLike,
            shape: npt.ArrayLike,
            scale: npt.ArrayLike,
            *,
            tied_over: tuple[str, ...] = (),
        ) -> None: ...

    def __post_init__(self) -> None:
        self._freeze(*_ARRAYS)
        object.__setattr__(self, "tied_over", tuple(self.tied_over))
        self._require_positive("strength", "shape", "scale")
        self._require_finite("location")

    @classmethod
    def from_mean(cls, mean: npt.ArrayLike, variance: npt.ArrayLike, strength: npt.ArrayLike) -> NormalInverseGamma:
        """Return the distribution with this expected mean and variance, and a prior strength above 2 rows.

        Examples
        --------
        >>> import tallybayes as tb
        >>> tb.NormalInverseGamma.from_mean(5.0, 4.0, 6).mean()
        Normal(mean=5.0, variance=4.0)
        """
        strength = np.asarray(strength, dtype=float)
        if not (strength > 2).all():
            raise PriorError.wrong_parameter(
                "NormalInverseGamma.from_mean", "strength", strength, "numbers above 2, in rows"
            )
        return cls(mean, strength, strength / 2, np.asarray(variance, dtype=float) * (strength / 2 - 1))

    def tied(self, axes: tuple[str, ...]) -> NormalInverseGamma:
        """Return the same distribution with one variance shared along `axes`."""
        return self if axes == self.tied_over else self.replace(tied_over=axes)

    def update(self, statistics: Moments) -> NormalInverseGamma:
        """Add the weight to strength and shape, average the means, add the scatter to the scale."""
        mean, strength, shape, scale, weight, scatter = self._combine(statistics)
        total = strength + weight
        location = mean + (statistics.mean - mean) * (weight / total)
        return NormalInverseGamma(
            location,
            total,
            shape + pool_tied(weight, self.tied_over) / 2,
            scale + pool_tied(scatter, self.tied_over) / 2,
            tied_over=self.tied_over,
        )

    def _combine(self, statistics: Moments) -> tuple[np.ndarray, ...]:
        """Return prior parameters, weights and scatter about the prior mean, broadcast to the statistics' shape.

        Shape and scale have length 1 along tied axes.
        """
        if not isinstance(statistics, Moments):
            raise DataError.no_statistics(statistics)
        moments, weight = statistics.diagonal(), statistics.column_weights()
        mean, strength = self._broadcast(weight.shape, "location", "strength")
        shape, scale = self._broadcast(self._variance_shape(weight.shape), "shape", "scale")
        scatter = moments.scatter + strength * weight / (strength + weight) * (moments.mean - mean) ** 2
        return mean, strength, shape, scale, weight, scatter

    def _variance_shape(self, size: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of the variances for means of shape `size`: length 1 along tied axes."""
        tied = tied_axes(self.tied_over, len(size))
        return tuple(1 if axis in tied else n for axis, n in enumerate(size))

    @property
    def _size(self) -> tuple[int, ...]:
        """Broadcast shape of all parameters."""
        return np.broadcast_shapes(*(getattr(self, name).shape for name in _ARRAYS))

    @property
    def n_means(self) -> int:
        """Number of means that share one variance."""
        return math.prod(self._size[axis] for axis in tied_axes(self.tied_over, len(self._size)))

    def _normal(self, variance: np.ndarray) -> Normal:
        """Return the location and this variance, broadcast to one shape."""
        size = self._size
        return Normal(as_float(np.broadcast_to(self.location, size)), as_float(np.broadcast_to(variance, size)))

    def mean(self) -> Normal:
        """Return E[μ] = m and E[σ²] = b / (a − 1), infinite for a ≤ 1."""
        return self._normal(InverseGamma(self.shape, self.scale).mean())

    def mode(self) -> Normal:
        """Return the joint mode: μ = m, σ² = b / (a + 1 + k/2), where k means share the variance."""
        return self._normal(self.scale / (self.shape + 1 + self.n_means / 2))

    def interval(self, mass: float = 0.95) -> Interval:
        """Return equal-tailed credible intervals of the mean (Student t) and the variance (inverse gamma)."""
        std = np.sqrt(self.scale / (self.shape * self.strength))
        ends = []
        for tail in tail_probabilities(mass):
            mean = self.location + stdtrit(2 * self.shape, tail) * std
            variance = InverseGamma(self.shape, self.scale).quantile(tail)
            ends.append(Normal(*(as_float(np.broadcast_to(part, self._size)) for part in (mean, variance))))
        return Interval(*ends)

    def sample(self, n: int | tuple[int, ...] = (), *, random_state: RandomState = None) -> Normal:
        """Draw random means and variances. A tied variance is drawn once."""
        rng = random_generator(random_state)
        full = as_size(n) + self._size
        size = self._variance_shape(self._size)
        prior = InverseGamma(np.broadcast_to(self.shape, size), np.broadcast_to(self.scale, size))
        variance = np.broadcast_to(prior.sample(as_size(n) + size, rng), full)
        mean = self.location + np.sqrt(variance / self.strength) * rng.standard_normal(full)
        return Normal(as_float(mean), as_float(variance))

    def log_prob(self, parameter: Normal) -> Any:
        """Return log p(μ, σ²), joint over the parameters that share a variance; −inf for σ² ≤ 0."""
        size = np.broadcast_shapes(self._size, np.shape(parameter[0]), np.shape(parameter[1]))
        mean, variance = (np.broadcast_to(np.asarray(part, dtype=float), size) for part in parameter)
        n_axes = len(self._size) or len(size)  # a scalar distribution has no group axes
        tied = tuple(axis + len(size) - n_axes for axis in tied_axes(self.tied_over, n_axes))
        first = check_tied(variance, tied, f"variances differ along the shared {' and '.join(self.tied_over)}")
        safe = np.where(variance > 0, variance, 1.0)
        normal = log_normal_density(mean - self.location, self.strength, safe).sum(axis=tied)
        prior = InverseGamma(self.shape, self.scale).log_prob(np.where(first > 0, first, 1.0))
        density = normal + prior.reshape(normal.shape)
        return as_float(np.where((first > 0).reshape(density.shape), density, -np.inf))

    def log_evidence(self, statistics: Moments) -> Any:
        """Return the log marginal likelihood, one number per variance: per group and column, summed over tied axes."""
        _, strength, shape, scale, weight, scatter = self._combine(statistics)
        half_weight, half_scatter = (pool_tied(part, self.tied_over) / 2 for part in (weight, scatter))
        variance = InverseGamma(shape, scale).log_evidence(half_weight, half_scatter)
        means = -0.5 * log_growth(strength, weight).sum(axis=tied_axes(self.tied_over, weight.ndim))
        return as_float(variance.reshape(means.shape) + means)

    def column(self, index: int) -> NormalInverseGamma:
        """Return the distribution of one column's mean and variance."""
        parts = (np.broadcast_to(getattr(self, name), self._size)[..., index, None] for name in _ARRAYS)
        return NormalInverseGamma(*parts, tied_over=self.tied_over).drop_column_axis()

    def drop_column_axis(self) -> NormalInverseGamma:
        """Return the distribution of a single column without the column axis. Groups can still be tied."""
        if "groups" in self.tied_over:
            return self
        parts = (getattr(self, name) for name in _ARRAYS)
        return NormalInverseGamma(*(part[..., 0] if part.ndim else part for part in parts))

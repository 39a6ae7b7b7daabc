"""Normal-inverse-Wishart distribution: conjugate prior of a mean vector and a covariance matrix."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from tallybayes._utils.parameter_checks import random_generator
from tallybayes.distributions.log_gamma import log_growth, stirling_remainder
from tallybayes.distributions.normal_inverse_gamma import NormalInverseGamma
from tallybayes.distributions.parameter_distribution import (
    Interval,
    ParameterDistribution,
    as_float,
    as_size,
)
from tallybayes.distributions.tied_variance import check_tied, pool_tied
from tallybayes.errors import DataError, PriorError
from tallybayes.statistics.moments import Moments
from tallybayes.typing import RandomState

_FLAT = 1e-10  # if the smallest eigenvalue relative to the variances is below this, the Cholesky root is stored too


class MultivariateNormal(NamedTuple):
    """Parameters of a multivariate Gaussian: mean (*given, columns), covariance (*given, columns, columns)."""

    mean: Any
    covariance: Any

    @property
    def std(self) -> Any:
        """Standard deviation of every column."""
        return np.sqrt(_diagonal(self.covariance))


@dataclass(frozen=True, eq=False, repr=False)
class NormalInverseWishart(ParameterDistribution):
    """Σ ~ InverseWishart(ν, Ψ), μ | Σ ~ N(m, Σ/κ): conjugate prior of `MultivariateGaussian`.

    Parameters
    ----------
    location : array broadcasting to (*given, columns)
        Expected mean m.
    strength : float or array broadcasting to (*given,)
        Prior strength κ of the mean, in rows.
    degrees_of_freedom : float or array broadcasting to (*given,)
        ν > columns − 1, the prior strength of the covariance, in rows.
    scale : array broadcasting to (*given, columns, columns)
        Ψ, symmetric and positive definite: the scatter matrix of the pseudo-rows.
    tied_over : tuple of {"groups"}, default ()
        ``("groups",)`` if all groups share one covariance. Set by the tied family.
    root : array broadcasting to (*given, columns, columns), optional
        Cholesky root of Ψ, needed if Ψ is so ill-conditioned that float64 cannot represent it as positive definite.
        `update` sets it if data lie very far from the expected mean.

    Examples
    --------
    >>> import tallybayes as tb
    >>> prior = tb.NormalInverseWishart([0, 0], 1, 4, [[1, 0], [0, 1]])
    >>> prior.update(tb.Moments.of([[1.0, 2.0], [3.0, 1.0]], full=True)).mode().mean.round(4)
    array([1.3333, 1.    ])
    """

    location: np.ndarray
    strength: np.ndarray
    degrees_of_freedom: np.ndarray
    scale: np.ndarray
    tied_over: tuple[str, ...] = field(default=(), kw_only=True)
    root: Any = field(default=None, kw_only=True)

    if TYPE_CHECKING:  # the constructor accepts any array-like and stores arrays

        def __init__(
            self,
            location: npt.ArrayLike,
            strength: npt.ArrayLike,
            degrees_of_freedom: npt.ArrayLike,
            scale: npt.ArrayLike,
            *,
            tied_over: tuple[str, ...] = (),
            root: npt.ArrayLike | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        self._freeze("location", "strength", "degrees_of_freedom", "scale")
        object.__setattr__(self, "tied_over", tuple(self.tied_over))
        self._require_positive("strength", "degrees_of_freedom")
        if self.scale.ndim < 2 or self.scale.shape[-1] != self.scale.shape[-2]:
            raise PriorError.wrong_shape("NormalInverseWishart", self.scale.shape, (self.n_columns, self.n_columns))
        self._require_finite("location", "scale")
        if not (self.degrees_of_freedom > self.n_columns - 1).all():
            expected = f"numbers above {self.n_columns - 1}, the number of columns minus 1"
            raise PriorError.wrong_parameter(
                "NormalInverseWishart", "degrees_of_freedom", self.degrees_of_freedom, expected
            )
        self._require_symmetric("scale")
        if self.root is not None:
            self._freeze("root")
            if self.root.shape[-2:] != self.scale.shape[-2:] or not (_diagonal(self.root) > 0).all():
                raise PriorError.wrong_parameter(
                    "NormalInverseWishart", "root", self.root, "the Cholesky factor of the scale", "Omit root=."
                )
        elif not (min_eigenvalues(self.scale) > self.n_columns * np.finfo(float).eps).all():
            raise PriorError.wrong_parameter(
                "NormalInverseWishart",
                "scale",
                self.scale,
                "a positive definite matrix",
                "Add a small number to its diagonal.",
            )

    @classmethod
    def from_mean(cls, mean: npt.ArrayLike, covariance: npt.ArrayLike, strength: float) -> NormalInverseWishart:
        """Return the distribution with this expected mean and covariance. `strength` must exceed columns + 1 rows.

        Examples
        --------
        >>> import tallybayes as tb
        >>> tb.NormalInverseWishart.from_mean([0.0, 1.0], [[2.0, 0.5], [0.5, 1.0]], 6).mean().covariance
        array([[2. , 0.5],
               [0.5, 1. ]])
        """
        covariance = np.asarray(covariance, dtype=float)
        n_columns = covariance.shape[-1]
        if not strength > n_columns + 1:
            expected = f"a number above {n_columns + 1}, the number of columns plus 1"
            raise PriorError.wrong_parameter("NormalInverseWishart.from_mean", "strength", strength, expected)
        return cls(mean, strength, strength, covariance * (strength - n_columns - 1))

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return int(self.scale.shape[-1])

    def tied(self, axes: tuple[str, ...]) -> NormalInverseWishart:
        """Return the same distribution with one covariance shared along `axes`."""
        return self if axes == self.tied_over else self.replace(tied_over=axes)

    def update(self, statistics: Moments) -> NormalInverseWishart:
        """Add the weight to strength and degrees of freedom, average the means, add the scatter to the scale."""
        mean, strength, freedom, scale, weight, scatter, shifts = self._combine(statistics)
        total = strength + weight
        location = mean + (statistics.mean - mean) * (weight / total)[..., None]
        added = scatter + shifts[..., :, None] * shifts[..., None, :]  # exactly symmetric
        posterior_scale = scale + pool_tied(added, self.tied_over, 2)
        flat = self.root is not None or not (min_eigenvalues(posterior_scale) > _FLAT).all()
        root = self._posterior_root(scale, pool_tied(scatter, self.tied_over, 2), shifts) if flat else None
        return NormalInverseWishart(
            location,
            total,
            freedom + pool_tied(weight, self.tied_over, 0),
            posterior_scale,
            tied_over=self.tied_over,
            root=root,
        )

    def scale_cholesky(self) -> np.ndarray:
        """Return the lower Cholesky root of the scale."""
        return np.linalg.cholesky(self.scale) if self.root is None else np.asarray(self.root)

    def _posterior_root(self, scale: np.ndarray, scatter: np.ndarray, shifts: np.ndarray) -> np.ndarray:
        """Return the root of scale + scatter + Σ shift·shiftᵀ, from stacked rows: the sum itself would lose digits."""
        if self.root is None:
            upper = np.swapaxes(np.linalg.cholesky(scale + scatter), -1, -2)
            return cholesky_update(upper, self._shift_rows(shifts))
        values, axes = np.linalg.eigh(scatter)
        rows = np.sqrt(np.maximum(values, 0.0))[..., :, None] * np.swapaxes(axes, -1, -2)
        upper = np.broadcast_to(np.swapaxes(self.root, -1, -2), scale.shape)
        return cholesky_update(np.concatenate([upper, rows], axis=-2), self._shift_rows(shifts))

    def _combine(self, statistics: Moments) -> tuple[np.ndarray, ...]:
        """Return prior parameters, weights, scatter and shifts, broadcast to the statistics' shape.

        The shift √(κn / (κ + n)) (x̄ − m) is the root of the scatter of the two means. Degrees of freedom and scale
        have length 1 along tied groups.
        """
        if not isinstance(statistics, Moments):
            raise DataError.no_statistics(statistics)
        given, d = statistics.given_shape, statistics.n_columns
        covariances = self._covariance_shape(given)
        (mean,) = self._broadcast((*given, d), "location")
        (strength,) = self._broadcast(given, "strength")
        (freedom,) = self._broadcast(covariances, "degrees_of_freedom")
        (scale,) = self._broadcast((*covariances, d, d), "scale")
        weight = statistics.column_weights()[..., 0]
        shifts = (statistics.mean - mean) * np.sqrt(strength * (weight / (strength + weight)))[..., None]
        return mean, strength, freedom, scale, weight, statistics.scatter, shifts

    def _covariance_shape(self, given: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of the covariances' leading axes: length 1 along tied groups."""
        return tuple(1 for _ in given) if "groups" in self.tied_over else given

    def _shift_rows(self, shifts: np.ndarray) -> np.ndarray:
        """Return the shifts of every covariance as rows: one each, or those of all groups if these are tied."""
        if "groups" not in self.tied_over:
            return shifts[..., None, :]
        return shifts.reshape(*(1 for _ in shifts.shape[:-1]), -1, shifts.shape[-1])

    @property
    def given_shape(self) -> tuple[int, ...]:
        """Shape of the groups."""
        shapes = self.location.shape[:-1], self.strength.shape, self.degrees_of_freedom.shape, self.scale.shape[:-2]
        return np.broadcast_shapes(*shapes)

    @property
    def n_means(self) -> int:
        """Number of mean vectors that share one covariance."""
        return math.prod(self.given_shape) if "groups" in self.tied_over else 1

    def _normal(self, divisor: np.ndarray) -> MultivariateNormal:
        """Return the location and the scale divided by `divisor`, broadcast to all groups."""
        size = (*self.given_shape, self.n_columns)
        covariance = self.scale / np.asarray(divisor)[..., None, None]
        return MultivariateNormal(np.broadcast_to(self.location, size), np.broadcast_to(covariance, (*size, size[-1])))

    def mean(self) -> MultivariateNormal:
        """Return E[μ] = m and E[Σ] = Ψ / (ν − d − 1), infinite for ν ≤ d + 1."""
        divisor = self.degrees_of_freedom - self.n_columns - 1
        mean = self._normal(np.where(divisor > 0, divisor, 1.0))
        infinite = np.broadcast_to((divisor <= 0)[..., None, None], mean.covariance.shape)
        return MultivariateNormal(mean.mean, np.where(infinite, np.inf, mean.covariance))

    def mode(self) -> MultivariateNormal:
        """Return the joint mode: μ = m, Σ = Ψ / (ν + d + 1 + k), where k means share the covariance."""
        return self._normal(self.degrees_of_freedom + self.n_columns + 1 + self.n_means)

    def marginal(self) -> NormalInverseGamma:
        """Return the marginal distributions of every column's mean and variance."""
        shape = (self.degrees_of_freedom - self.n_columns + 1) / 2
        variances = _diagonal(self.scale)
        return NormalInverseGamma(self.location, self.strength[..., None], shape[..., None], variances / 2)

    def interval(self, mass: float = 0.95) -> Interval:
        """Return equal-tailed credible intervals of every column's mean and variance (marginal distributions)."""
        return self.marginal().interval(mass)

    def sample(self, n: int | tuple[int, ...] = (), *, random_state: RandomState = None) -> MultivariateNormal:
        """Draw random means and covariances (Bartlett decomposition). A tied covariance is drawn once."""
        rng = random_generator(random_state)
        leading = as_size(n)
        d = self.n_columns
        given = self.given_shape
        covariances = self._covariance_shape(given)
        freedom = np.broadcast_to(self.degrees_of_freedom, covariances)
        # Σ⁻¹ ~ Wishart(ν, Ψ⁻¹) = (L⁻ᵀ A)(L⁻ᵀ A)ᵀ with Ψ = L Lᵀ and A lower triangular, so Σ = B Bᵀ, B = L A⁻ᵀ.
        lower = np.zeros((*leading, *covariances, d, d))
        below = np.tril_indices(d, -1)
        lower[(..., *below)] = rng.standard_normal((*leading, *covariances, len(below[0])))
        degrees = freedom[..., None] - np.arange(d)
        diagonal = np.sqrt(2 * rng.standard_gamma(degrees / 2, (*leading, *covariances, d)))
        lower[..., np.arange(d), np.arange(d)] = diagonal
        root = np.broadcast_to(self.scale_cholesky(), (*covariances, d, d))
        root = np.swapaxes(np.linalg.solve(lower, np.swapaxes(root, -1, -2) + np.zeros_like(lower)), -1, -2)
        covariance = np.broadcast_to(root @ np.swapaxes(root, -1, -2), (*leading, *given, d, d))
        noise = np.broadcast_to(root, covariance.shape) @ rng.standard_normal((*leading, *given, d, 1))
        mean = self.location + noise[..., 0] / np.sqrt(self.strength)[..., None]
        return MultivariateNormal(mean, covariance)

    def log_prob(self, parameter: MultivariateNormal) -> Any:
        """Return log p(μ, Σ), joint over groups that share Σ; −inf if Σ is not positive definite."""
        d, given = self.n_columns, self.given_shape
        mean, covariance = (np.asarray(part, dtype=float) for part in parameter)
        size = np.broadcast_shapes(given, mean.shape[:-1], covariance.shape[:-2])
        covariance = np.broadcast_to(covariance, (*size, d, d))
        tied = tuple(range(len(size) - len(given), len(size))) if "groups" in self.tied_over else ()
        check_tied(covariance, tied, "covariances differ along the shared groups")
        inside = min_eigenvalues(covariance) > d * np.finfo(float).eps
        root = np.linalg.cholesky(np.where(inside[..., None, None], covariance, np.eye(d)))
        scale_root = self.scale_cholesky()
        columns = (
            np.broadcast_to((mean - self.location)[..., None], (*size, d, 1)),
            np.broadcast_to(scale_root, root.shape),
        )
        squares = (np.linalg.solve(root, np.concatenate(columns, axis=-1)) ** 2).sum(axis=-2)
        log_det, log_scale = (2 * np.log(_diagonal(part)).sum(-1) for part in (root, scale_root))
        normal = 0.5 * (d * np.log(self.strength / (2 * np.pi)) - log_det - self.strength * squares[..., 0])
        log_gamma = _log_multivariate_gamma(self.degrees_of_freedom / 2, d)
        log_norm = self.degrees_of_freedom / 2 * (log_scale - d * np.log(2)) - log_gamma
        wishart = log_norm - (self.degrees_of_freedom + d + 1) / 2 * log_det - squares[..., 1:].sum(axis=-1) / 2
        normal, wishart = (np.where(inside, part, -np.inf) for part in (normal, wishart))
        if not tied:
            return as_float(normal + wishart)
        return as_float(normal.sum(axis=tied) + wishart.max(axis=tied))

    def log_evidence(self, statistics: Moments) -> Any:
        """Return the log marginal likelihood per group, or one number if the groups are tied."""
        d = self.n_columns
        _, strength, freedom, scale, weight, scatter, shifts = self._combine(statistics)
        half = pool_tied(weight, self.tied_over, 0) / 2
        # As in NormalInverseGamma, the terms that grow like n log n cancel up to log determinants of covariances.
        shapes = (freedom[..., None] - np.arange(d)) / 2
        posterior_shapes = shapes + half[..., None]
        growth = log_growth(shapes, half[..., None])
        root = self._posterior_root(scale, pool_tied(scatter, self.tied_over, 2), shifts)
        before = 2 * np.log(_diagonal(self.scale_cholesky())).sum(-1) - np.log(shapes).sum(-1)
        after = 2 * np.log(_diagonal(root)).sum(-1) - np.log(posterior_shapes).sum(-1)
        covariance = (
            -half * (d * (1 + np.log(np.pi)) + after)
            - freedom / 2 * (after - before)
            - (growth * (1 + np.arange(d)) / 2).sum(-1)
            + (stirling_remainder(posterior_shapes) - stirling_remainder(shapes)).sum(-1)
        )
        means = -0.5 * d * log_growth(strength, weight)
        return as_float(covariance.sum() + means.sum() if "groups" in self.tied_over else covariance + means)

    def scaled(self, factor: float) -> NormalInverseWishart:
        """Return the same location and expected covariance with `factor` times the prior strength.

        The prior strength of the covariance is ν − (columns − 1), as in the marginal distribution of one column.
        """
        offset = self.n_columns - 1
        freedom = offset + factor * (self.degrees_of_freedom - offset)
        root = None if self.root is None else self.root * np.sqrt(factor)
        return self.replace(
            strength=self.strength * factor, degrees_of_freedom=freedom, scale=self.scale * factor, root=root
        )

    def column(self, index: int) -> NormalInverseGamma:
        """Return the marginal distribution of one column's mean and variance."""
        return self.marginal().column(index)


def cholesky_update(upper: np.ndarray, updates: np.ndarray) -> np.ndarray:
    """Return the lower Cholesky root of Σ row·rowᵀ over the rows of two matrices of very different magnitude.

    Forming the sum would round away the rows that are short compared with the longest. A QR decomposition of the
    stacked rows, sorted by descending length, keeps their digits.

    Parameters
    ----------
    upper : ndarray of shape (…, n, d)
        Rows of the current root's transpose.
    updates : ndarray of shape (…, m, d)
        Rows to add, of any length.

    Returns
    -------
    ndarray of shape (…, d, d)
    """
    rows = np.concatenate([updates, upper], axis=-2)
    unit = np.sqrt((rows**2).sum(axis=-2))[..., None, :]
    rows = rows / unit
    order = np.argsort(-np.abs(rows).max(axis=-1), axis=-1, kind="stable")
    triangle = np.linalg.qr(np.take_along_axis(rows, order[..., None], axis=-2), mode="r") * unit
    signs = np.where(_diagonal(triangle) < 0, -1.0, 1.0)
    return np.swapaxes(triangle * signs[..., :, None], -1, -2)


def _diagonal(matrix: np.ndarray) -> np.ndarray:
    """Return the diagonals of stacked matrices."""
    return np.diagonal(matrix, axis1=-2, axis2=-1)


def min_eigenvalues(matrices: np.ndarray) -> np.ndarray:
    """Return a lower bound of the eigenvalues of each correlation matrix; negative if a variance is not positive.

    The bound is 1e-6 if a Cholesky factorization proves that all eigenvalues exceed it.
    """
    variances = _diagonal(matrices)
    std = np.sqrt(np.where(variances > 0, variances, 1.0))
    correlations = matrices / (std[..., :, None] * std[..., None, :])
    possible = np.asarray((variances > 0).all(axis=-1))
    try:  # ten times faster than computing eigenvalues
        np.linalg.cholesky(correlations - 1e-6 * np.eye(matrices.shape[-1]))
        return np.where(possible, 1e-6, -1.0)
    except np.linalg.LinAlgError:
        return np.where(possible, np.linalg.eigvalsh(correlations)[..., 0], -1.0)


def _log_multivariate_gamma(half_freedom: np.ndarray, n_columns: int) -> np.ndarray:
    """Return the log of the multivariate gamma function elementwise (SciPy's function takes a scalar)."""
    steps = np.asarray(half_freedom)[..., None] - np.arange(n_columns) / 2
    return np.asarray(n_columns * (n_columns - 1) / 4 * np.log(np.pi) + gammaln(steps).sum(-1))

"""Conjugate prior of Bayesian linear regression: normal for the coefficients, inverse gamma for the noise variance."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from tallybayes._utils.parameter_checks import random_generator
from tallybayes.distributions.inverse_gamma import InverseGamma, log_normal_density
from tallybayes.distributions.log_gamma import log_growth
from tallybayes.distributions.normal_inverse_gamma import NormalInverseGamma
from tallybayes.distributions.parameter_distribution import (
    Interval,
    ParameterDistribution,
    as_float,
    as_size,
    broadcast_prior,
    tail_probabilities,
)
from tallybayes.errors import DataError, PriorError
from tallybayes.statistics.double_double import DoubleDouble
from tallybayes.statistics.ldl_solver import LDLSolution, solve_ldl
from tallybayes.statistics.moments import Moments
from tallybayes.typing import RandomState


class LinearParameters(NamedTuple):
    """y ~ N(slope · x + intercept, variance): slope (*given, inputs), intercept and variance (*given)."""

    slope: Any
    intercept: Any
    variance: Any

    @property
    def std(self) -> Any:
        """Standard deviation of the noise."""
        return as_float(np.sqrt(self.variance))


@dataclass(frozen=True, eq=False, repr=False)
class LinearNormalInverseGamma(ParameterDistribution):
    """σ² ~ InverseGamma(a, b), w | σ² ~ N(m, σ²Λ⁻¹): conjugate prior of `LinearGaussian`.

    The model is y = l + w · (x − c) + noise. The value l at the input center c has the prior N(intercept_location,
    σ²/κ), independent of the slopes w. Centering at the means of the inputs makes l and w independent in the posterior
    as well. Λ = λI is a ridge penalty (weight decay) λ.

    Parameters
    ----------
    location : array broadcasting to (*given, inputs)
        Expected slopes m.
    precision : array broadcasting to (*given, inputs, inputs)
        Λ, symmetric positive semidefinite, in units of Σ(x − c)(x − c)ᵀ. A singular Λ is an improper prior.
    shape, scale : float or array broadcasting to (*given,)
        a and b of the noise variance, equivalent to 2a rows with a sum of squared errors of 2b.
    intercept_location : float or array broadcasting to (*given,), default 0
        Expected value of l.
    strength : float, array broadcasting to (*given,), or None, default 0
        Prior strength κ of l, in rows. 0 is a flat prior; None fixes l, as in a regression through the origin.
    input_center : float or array broadcasting to (*given, inputs), default 0
        c, the inputs at which l is the expected value of y.
    precision_cholesky : array broadcasting to (*given, inputs, inputs), optional
        Lower root of Λ. `update` sets it, because Λ itself loses digits if the inputs are nearly collinear.

    Examples
    --------
    >>> import tallybayes as tb
    >>> prior = tb.LinearNormalInverseGamma([0.0], [[1.0]], 1, 1, strength=None)     # through the origin
    >>> posterior = prior.update(tb.Moments.of([[1.0, 2.0], [2.0, 3.0], [3.0, 7.0]], full=True))
    >>> posterior.mode().slope.round(4), posterior.precision
    (array([1.9333]), array([[15.]]))
    """

    location: np.ndarray
    precision: np.ndarray
    shape: np.ndarray
    scale: np.ndarray
    intercept_location: Any = field(default=0.0, kw_only=True)
    strength: Any = field(default=0.0, kw_only=True)
    input_center: Any = field(default=0.0, kw_only=True)
    precision_cholesky: Any = field(default=None, kw_only=True, repr=False)

    strength_fields: ClassVar[tuple[str, ...]] = ("precision", "shape", "scale")

    if TYPE_CHECKING:  # the constructor accepts any array-like and stores arrays

        def __init__(
            self,
            location: npt.ArrayLike,
            precision: npt.ArrayLike,
            shape: npt.ArrayLike,
            scale: npt.ArrayLike,
            *,
            intercept_location: npt.ArrayLike = 0.0,
            strength: npt.ArrayLike | None = 0.0,
            input_center: npt.ArrayLike = 0.0,
            precision_cholesky: npt.ArrayLike | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        self._freeze("location", "precision", "shape", "scale", "intercept_location", "input_center")
        if self.strength is not None:
            self._freeze("strength")
            self._allow_limits("strength")
        self._require_positive("shape", "scale")
        name = type(self).__name__
        p = self.n_inputs
        if self.location.ndim < 1 or self.precision.ndim < 2 or self.precision.shape[-2:] != (p, p):
            raise PriorError.wrong_shape(name, self.precision.shape, (p, p))
        self._require_finite("location", "precision", "intercept_location", "input_center")
        self._require_symmetric("precision")
        diagonal = _diagonal_or_none(self.precision) if self.precision_cholesky is None else None
        if diagonal is not None and (diagonal >= 0).all():
            self._freeze(precision_cholesky=np.sqrt(diagonal)[..., None] * np.eye(p))
        elif self.precision_cholesky is None:
            solution = solve_ldl(DoubleDouble.of(self.precision), DoubleDouble.zeros((*self.precision.shape[:-1], 0)))
            size = _diagonal(self.precision)
            product = solution.root @ np.swapaxes(solution.root, -1, -2)
            same = np.allclose(product, self.precision, rtol=1e-6, atol=1e-6 * size.max(initial=0.0))
            if (size < 0).any() or not same:
                raise PriorError.wrong_parameter(
                    name, "precision", self.precision, "a matrix without negative eigenvalues"
                )
            self._freeze(precision_cholesky=solution.root)
        else:
            self._freeze("precision_cholesky")
        singular = not (_diagonal(self.precision_cholesky) > 0).all()
        object.__setattr__(self, "_improper", singular or self.improper)

    @property
    def n_inputs(self) -> int:
        """Number of inputs."""
        return int(self.location.shape[-1]) if self.location.ndim else 0

    @property
    def given_shape(self) -> tuple[int, ...]:
        """Shape of the groups."""
        numbers = (np.shape(part) for part in (self.shape, self.scale, self.intercept_location, self._kappa()))
        return np.broadcast_shapes(
            self.location.shape[:-1], self.precision.shape[:-2], self.input_center.shape[:-1], *numbers
        )

    def _kappa(self) -> np.ndarray:
        """Return κ, infinite if the value at the center is fixed."""
        return np.asarray(np.inf if self.strength is None else self.strength)

    # ---- Updating ---------------------------------------------------------------------------------------------------

    def update(self, statistics: Moments) -> LinearNormalInverseGamma:
        """Move the center to the rows' mean, add their scatter to the precision and squared errors to the scale."""
        prior, kappa, solved = self._solve(statistics)
        mean, root = solved.mean.value, solved.solution.root
        return self.replace(
            location=solved.slope.value[..., 0],
            precision=root @ np.swapaxes(root, -1, -2),
            shape=prior.shape + solved.weight / 2,
            scale=prior.scale + np.maximum(solved.squares, 0.0) / 2,
            intercept_location=mean[..., -1],
            strength=None if self.strength is None else kappa + solved.weight,
            input_center=mean[..., :-1],
            precision_cholesky=root,
        )

    def _solve(self, statistics: Moments) -> tuple[InverseGamma, np.ndarray, NormalEquations]:
        """Return the noise prior and κ, broadcast to the statistics' groups, and the solved normal equations."""
        if not isinstance(statistics, Moments):
            raise DataError.no_statistics(statistics)
        given = statistics.given_shape
        p = statistics.n_columns - 1
        location, center = self._broadcast((*given, p), "location", "input_center")
        (root,) = self._broadcast((*given, p, p), "precision_cholesky")
        shape, scale, intercept = self._broadcast(given, "shape", "scale", "intercept_location")
        kappa = broadcast_prior(type(self).__name__, self._kappa(), given)
        center = np.concatenate([center, intercept[..., None]], axis=-1)
        return InverseGamma(shape, scale), kappa, solve_normal_equations(statistics, center, kappa, location, root)

    def log_evidence(self, statistics: Moments) -> Any:
        """Return the log marginal likelihood of the targets given the inputs, per group."""
        self._require_proper("evidence")
        prior, kappa, solved = self._solve(statistics)
        noise = prior.log_evidence(solved.weight / 2, np.maximum(solved.squares, 0.0) / 2)
        fixed = np.isinf(kappa)
        intercept = np.where(fixed, 0.0, -0.5 * log_growth(np.where(fixed, 1.0, kappa), solved.weight))
        prior_log_det, log_det = (
            np.log(_diagonal(root)).sum(-1) for root in (self.precision_cholesky, solved.solution.root)
        )
        return as_float(noise + intercept + (prior_log_det - log_det))

    # ---- Parameters -------------------------------------------------------------------------------------------------

    def _parameters(self, variance: np.ndarray) -> LinearParameters:
        """Return the expected slopes and intercept with this variance, broadcast to all groups."""
        given = self.given_shape
        slope = np.broadcast_to(self.location, (*given, self.n_inputs))
        at_center = DoubleDouble.of(np.broadcast_to(self.intercept_location[..., None, None], (*given, 1, 1)))
        center = np.broadcast_to(self.input_center, slope.shape)[..., None]
        change = dot(DoubleDouble.of(slope[..., None]), DoubleDouble.of(center))
        intercept = (at_center - change).value[..., 0, 0]
        return LinearParameters(slope, as_float(intercept), as_float(np.broadcast_to(variance, given)))

    def mean(self) -> LinearParameters:
        """Return the expected slopes and intercept, and E[σ²] = b / (a − 1), infinite for a ≤ 1."""
        return self._parameters(InverseGamma(self.shape, self.scale).mean())

    def mode(self) -> LinearParameters:
        """Return the joint mode: the expected coefficients and σ² = b / (a + 1 + k/2) for k free coefficients."""
        k = self.n_inputs + (self.strength is not None)
        return self._parameters(self.scale / (self.shape + 1 + k / 2))

    def leverage(self, x: np.ndarray) -> np.ndarray:
        """Return the variance of the expected value at inputs (n, inputs), divided by σ²; shape (n, *given)."""
        self._require_proper("uncertainty")
        given, p = self.given_shape, self.n_inputs
        deviation = np.moveaxis(self._deviation(x), 0, -1) + np.zeros((*given, p, len(x)))
        half = np.linalg.solve(np.broadcast_to(self.precision_cholesky, (*given, p, p)), deviation)
        return np.moveaxis((half**2).sum(axis=-2), -1, 0) + self._center_variance()

    def _deviation(self, x: np.ndarray) -> np.ndarray:
        """Return inputs (n, inputs) minus the center, with axes for groups."""
        x = x.reshape(len(x), *(1,) * len(self.given_shape), self.n_inputs) if x.ndim == 2 else x
        return np.asarray(x - self.input_center)

    def _center_variance(self) -> np.ndarray:
        """Return the variance of the value at the input center, divided by σ²."""
        return np.zeros(()) if self.strength is None else 1.0 / self.strength

    def at(self, x: np.ndarray) -> np.ndarray:
        """Return the expected value at inputs (n, inputs), with shape (n, *given)."""
        return np.asarray((self._deviation(x) * self.location).sum(axis=-1) + self.intercept_location)

    def _inverse_root(self) -> np.ndarray:
        """Return the inverse of the Cholesky root of the precision."""
        given = self.given_shape
        p = self.n_inputs
        return np.linalg.solve(
            np.broadcast_to(self.precision_cholesky, (*given, p, p)), np.broadcast_to(np.eye(p), (*given, p, p))
        )

    def coefficient_variances(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the variances of the slopes and of the intercept, divided by σ²."""
        self._require_proper("uncertainty")
        inverse = self._inverse_root()
        center = np.broadcast_to(self.input_center, (*self.given_shape, self.n_inputs))[..., None]
        intercept = ((inverse @ center) ** 2).sum(axis=(-2, -1)) + self._center_variance()
        return (inverse**2).sum(axis=-2), intercept

    def interval(self, mass: float = 0.95) -> Interval:
        """Return equal-tailed credible intervals of slopes and intercept (Student t) and variance (inverse gamma)."""
        slopes, intercept = self.coefficient_variances()
        expected = self._parameters(np.zeros(()))
        unit = self.scale / self.shape
        ends = []
        for tail in tail_probabilities(mass):
            t = stdtrit(2 * self.shape, tail)
            slope = expected.slope + (t * np.sqrt(unit))[..., None] * np.sqrt(slopes)
            end = expected.intercept + t * np.sqrt(unit * intercept)
            variance = np.broadcast_to(InverseGamma(self.shape, self.scale).quantile(tail), self.given_shape)
            ends.append(LinearParameters(slope, as_float(end), as_float(variance)))
        return Interval(*ends)

    def sample(self, n: int | tuple[int, ...] = (), *, random_state: RandomState = None) -> LinearParameters:
        """Draw random slopes, intercepts and variances."""
        self._require_proper("draws")
        rng = random_generator(random_state)
        leading = as_size(n)
        given = self.given_shape
        p = self.n_inputs
        variance = InverseGamma(self.shape, self.scale).sample((*leading, *given), rng)
        noise = rng.standard_normal((*leading, *given, p, 1))
        standardized = (np.swapaxes(self._inverse_root(), -1, -2) @ noise)[..., 0]
        slope = self.location + np.sqrt(variance)[..., None] * standardized
        noise = rng.standard_normal((*leading, *given))
        level = self.intercept_location + np.sqrt(variance * self._center_variance()) * noise
        return LinearParameters(slope, as_float(level - (slope * self.input_center).sum(axis=-1)), as_float(variance))

    def log_prob(self, parameter: LinearParameters) -> Any:
        """Return log p(slope, intercept, σ²): −inf for σ² ≤ 0."""
        self._require_proper("density")
        slope, intercept, variance = parameter
        p = self.n_inputs
        safe = np.where(variance > 0, variance, 1.0)
        half = (np.swapaxes(self.precision_cholesky, -1, -2) @ (slope - self.location)[..., None])[..., 0]
        log_det = 2 * np.log(_diagonal(self.precision_cholesky)).sum(-1)
        density = 0.5 * (log_det - p * np.log(2 * np.pi * safe) - (half**2).sum(-1) / safe)
        if self.strength is not None:
            error = intercept + (slope * self.input_center).sum(axis=-1) - self.intercept_location
            density = density + log_normal_density(error, self.strength, safe)
        density = density + InverseGamma(self.shape, self.scale).log_prob(safe)
        return as_float(np.where(variance > 0, density, -np.inf))

    def scaled(self, factor: float) -> LinearNormalInverseGamma:
        """Return the same coefficients and expected variance with `factor` times the prior strength."""
        strength = None if self.strength is None else self.strength * factor
        root = self.precision_cholesky * np.sqrt(factor)
        return super().scaled(factor).replace(precision_cholesky=root, strength=strength)

    def column(self, index: int) -> NormalInverseGamma:
        """Return the marginal distribution of one slope and the noise variance."""
        slopes, _ = self.coefficient_variances()
        location = np.broadcast_to(self.location, slopes.shape)[..., index]
        return NormalInverseGamma(location, 1.0 / slopes[..., index], self.shape, self.scale)


class NormalEquations(NamedTuple):
    """Normal equations of a regression with a prior, and their solution."""

    weight: np.ndarray  # rows, (*given,)
    mean: DoubleDouble  # of inputs and target, (*given, p + 1)
    scatter: DoubleDouble  # of inputs and target, (*given, p + 1, p + 1)
    slope: DoubleDouble  # (*given, p, 1)
    squares: np.ndarray  # sum of squared errors, including the deviation from the prior, (*given,)
    solution: LDLSolution  # of the deviation from the expected slopes


def solve_normal_equations(
    statistics: Moments, center: np.ndarray, strength: np.ndarray, expected: np.ndarray, root: np.ndarray
) -> NormalEquations:
    """Solve the normal equations of the last column given the others.

    All sums are double-double numbers (Dekker, 1971): squared errors are small differences of large sums.

    Parameters
    ----------
    statistics : Moments
    center, strength
        As for `scatter_about`.
    expected : array of shape (*given, p)
        Expected slopes.
    root : array of shape (*given, p, p)
        Root of the prior precision of the slopes; zeros for least squares.
    """
    weight, mean, scatter = scatter_about(statistics, center, strength)
    p = expected.shape[-1]
    prior_slope = DoubleDouble.of(expected[..., None])
    # Solve for the deviation from the expected slopes: a small deviation keeps its digits.
    products, squares = errors_of_slope(scatter, prior_slope)
    solution = solve_ldl(scatter[..., :p, :p] + _root_times_transpose(root), products)
    squares = squares - dot(solution.solution, products)
    return NormalEquations(weight, mean, scatter, prior_slope + solution.solution, squares.value[..., 0, 0], solution)


def scatter_about(
    statistics: Moments, center: np.ndarray, strength: np.ndarray
) -> tuple[np.ndarray, DoubleDouble, DoubleDouble]:
    """Return the weight of the rows, and mean and scatter of rows and of a center that counts as `strength` rows.

    The scatter includes that of the two means: κn / (κ + n) (x̄ − c)(x̄ − c)ᵀ. A strength of 0 gives the scatter about
    the mean of the rows, an infinite one that about the center.
    """
    weight = statistics.column_weights()[..., 0]
    kappa = np.broadcast_to(strength, weight.shape)
    prior_mean = DoubleDouble.of(np.broadcast_to(center, statistics.first_sum.shape))
    fixed = np.isinf(kappa)
    if fixed.all():
        return weight, prior_mean, statistics.sums_about(prior_mean.high)[1]
    data_fraction = np.where(weight > 0, weight / (np.where(weight > 0, kappa, 1.0) + weight), 0.0)
    mean_weight = np.where(fixed, weight, np.where(fixed, 0.0, kappa) * data_fraction)
    difference = statistics.mean_double_double() - prior_mean
    weighted = difference * mean_weight[..., None]
    scatter = statistics.scatter_double_double() + difference[..., :, None] * weighted[..., None, :]
    return weight, prior_mean + difference * data_fraction[..., None], scatter


def errors_of_slope(scatter: DoubleDouble, slope: DoubleDouble) -> tuple[DoubleDouble, DoubleDouble]:
    """Return Σx·e, shape (…, p, 1), and Σe², shape (…, 1, 1), of e = y − w · x, from the scatter of (x, y)."""
    p = slope.shape[-2]
    across = scatter[..., :p, p:]
    products = across - (scatter[..., :p, :p] * slope.transposed()).sum((-1,))[..., None]
    return products, scatter[..., p:, p:] - dot(slope, across) - dot(slope, products)


def _diagonal(matrix: np.ndarray) -> np.ndarray:
    """Return the diagonals of stacked matrices."""
    return np.diagonal(matrix, axis1=-2, axis2=-1)


def dot(first: DoubleDouble, second: DoubleDouble) -> DoubleDouble:
    """Return the inner product of column vectors (…, p, 1), with shape (…, 1, 1)."""
    return (first * second).sum((-2,))[..., None]


def _diagonal_or_none(matrix: np.ndarray) -> np.ndarray | None:
    """Return the diagonals of stacked matrices, or None if an off-diagonal element is not 0."""
    diagonal = _diagonal(matrix)
    return diagonal if np.count_nonzero(matrix) == np.count_nonzero(diagonal) else None


def _root_times_transpose(root: np.ndarray) -> DoubleDouble:
    """Return root · rootᵀ as double-double numbers."""
    diagonal = _diagonal_or_none(root)
    if diagonal is not None:
        square = DoubleDouble.of(diagonal) * diagonal
        return square[..., None].scaled(np.eye(root.shape[-1]))
    total = DoubleDouble.zeros(root.shape)
    for k in range(root.shape[-1]):
        column = DoubleDouble.of(root[..., :, k])
        total = total + column[..., :, None] * column[..., None, :]
    return total

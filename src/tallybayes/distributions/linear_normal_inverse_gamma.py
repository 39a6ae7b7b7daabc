"""Linear normal-inverse-gamma: the belief about the weights of a line, or plane, and the noise about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import gammaincinv, gammaln, stdtrit

from tallybayes.distributions.log_gamma import log_growth, stirling_rest
from tallybayes.distributions.normal_inverse_gamma import NormalInverseGamma
from tallybayes.distributions.parameter_distribution import (
    Interval,
    ParameterDistribution,
    as_float,
    as_size,
    broadcast_prior,
    tail_probabilities,
)
from tallybayes.errors import PriorError
from tallybayes.statistics.double_double import DoubleDouble
from tallybayes.statistics.ldl_solver import LDLSolution, solve_ldl
from tallybayes.statistics.moments import Moments
from tallybayes.typing import RandomState


class LinearParameters(NamedTuple):
    """y ~ N(slope · x + intercept, variance): (*given, inputs), and (*given) twice."""

    slope: Any
    intercept: Any
    variance: Any

    @property
    def std(self) -> Any:
        """σ of the noise, √variance."""
        return as_float(np.sqrt(self.variance))


@dataclass(frozen=True, eq=False, repr=False)
class LinearNormalInverseGamma(ParameterDistribution):
    """σ² ~ InverseGamma(a, b), w | σ² ~ N(m, σ²Λ⁻¹), and a level: the conjugate belief of `LinearGaussian`.

    y = l + w · (x − c) + noise, where the level l, the value of the line at the center c, is believed to be N(level,
    σ²/κ), whatever the slopes. About the means of the inputs, level and slopes do not depend on each other; far from
    them, as an intercept is, no number would say much. Λ = λ·1 is weight decay.

    Parameters
    ----------
    location : array broadcasting to (*given, inputs)
        m, the expected slopes.
    precision : array broadcasting to (*given, inputs, inputs)
        Λ, symmetric: how much of Σ(x − c)(x − c)ᵀ that expectation is worth. 0 is a limit that needs data.
    shape, scale : float or array broadcasting to (*given,)
        a and b of the noise's variance: as if 2a rows had shown squared errors of 2b.
    level : float or array broadcasting to (*given,), default 0
        The expected level at the center.
    strength : float, array broadcasting to (*given,), or None, default 0
        κ, worth how many rows that is: 0 where nothing is known of it, None where it is known, as through the origin.
    center : float or array broadcasting to (*given, inputs), default 0
    root : array broadcasting to (*given, inputs, inputs), optional
        The lower root of Λ, which `update` sets: it has digits that Λ has not where inputs are nearly collinear.

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

    if TYPE_CHECKING:  # arrays are made of whatever is given

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
        self._set(location=self.location, precision=self.precision, shape=self.shape, scale=self.scale)
        self._set(intercept_location=self.intercept_location, input_center=self.input_center)
        if self.strength is not None:
            self._set(strength=self.strength)
            self._allow_limits("strength")
        self._require_positive("shape", "scale")
        name, p = type(self).__name__, self.n_inputs
        if self.location.ndim < 1 or self.precision.ndim < 2 or self.precision.shape[-2:] != (p, p):
            raise PriorError.wrong_shape(name, self.precision.shape, (p, p))
        numbers = self.location, self.precision, self.intercept_location, self.input_center
        if not all(np.isfinite(part).all() for part in numbers):
            raise PriorError(f"{name} needs finite numbers.")
        if not np.allclose(self.precision, np.swapaxes(self.precision, -1, -2), rtol=1e-9, atol=0):
            raise PriorError(f"{name} needs a symmetric precision matrix.")
        diagonal = _diagonal(self.precision) if self.precision_cholesky is None else None
        if diagonal is not None and (diagonal >= 0).all():
            self._set(precision_cholesky=np.sqrt(diagonal)[..., None] * np.eye(p))
        elif self.precision_cholesky is None:
            found = solve_ldl(DoubleDouble.of(self.precision), DoubleDouble.zeros((*self.precision.shape[:-1], 0)))
            size = np.diagonal(self.precision, axis1=-2, axis2=-1)
            back = found.root @ np.swapaxes(found.root, -1, -2)
            if (size < 0).any() or not np.allclose(back, self.precision, rtol=1e-6, atol=1e-6 * size.max(initial=0.0)):
                raise PriorError(f"{name} needs a precision without a negative eigenvalue, found {self.precision}.")
            self._set(precision_cholesky=found.root)
        else:
            self._set(precision_cholesky=self.precision_cholesky)
        flat = not (np.diagonal(self.precision_cholesky, axis1=-2, axis2=-1) > 0).all()
        object.__setattr__(self, "_improper", flat or self.improper)

    @property
    def n_inputs(self) -> int:
        """The number of inputs."""
        return int(self.location.shape[-1]) if self.location.ndim else 0

    @property
    def _given(self) -> tuple[int, ...]:
        numbers = (np.shape(part) for part in (self.shape, self.scale, self.intercept_location, self._kappa()))
        return np.broadcast_shapes(
            self.location.shape[:-1], self.precision.shape[:-2], self.input_center.shape[:-1], *numbers
        )

    def _kappa(self) -> np.ndarray:
        """κ, infinite where the level is known."""
        return np.asarray(np.inf if self.strength is None else self.strength)

    # ---- Learning ---------------------------------------------------------------------------------------------------

    def update(self, statistics: Moments) -> LinearNormalInverseGamma:
        """Move the center to the rows, add their scatter to the precision and their squared errors to the scale."""
        met = self._meet(statistics)
        return self.replace(
            location=met.location,
            precision=met.eliminated.root @ np.swapaxes(met.eliminated.root, -1, -2),
            shape=met.shape + met.weight / 2,
            scale=met.scale + met.squares / 2,
            intercept_location=met.intercept_location,
            strength=None if self.strength is None else met.kappa + met.weight,
            input_center=met.input_center,
            precision_cholesky=met.eliminated.root,
        )

    def _meet(self, statistics: Moments) -> _Met:
        """The belief and rows together."""
        given, p, name = statistics.given_shape, statistics.n_columns - 1, type(self).__name__
        location, center = (broadcast_prior(name, part, (*given, p)) for part in (self.location, self.input_center))
        root = broadcast_prior(name, self.precision_cholesky, (*given, p, p))
        shape, scale, level, kappa = (
            broadcast_prior(name, part, given)
            for part in (self.shape, self.scale, self.intercept_location, self._kappa())
        )
        weight = np.broadcast_to(statistics.weight, (*given, p + 1))[..., 0]
        with np.errstate(invalid="ignore"):
            share = np.where(weight > 0, weight / (np.where(weight > 0, kappa, 1.0) + weight), 0.0)
            lever = np.where(np.isinf(kappa), weight, np.where(np.isinf(kappa), 0.0, kappa) * share)
        # What the rows show about the center of the belief, which is worth κ rows there.
        point = DoubleDouble.of(np.concatenate([center, level[..., None]], axis=-1))
        gap = statistics.mean_double_double() - point
        pulls = gap * lever[..., None]
        shown = statistics.scatter_double_double() + gap.map(_row) * pulls.map(_column)
        within, across = shown.map(lambda a: a[..., :p, :p]), shown.map(lambda a: a[..., :p, p:])
        # In errors of the slopes that were expected: what is small stays so.
        expected = DoubleDouble.of(location[..., None])
        moved = _times(within, expected)
        across_errors = across - moved
        squares = shown.map(lambda a: a[..., p:, p:]) - _dot(expected, across) - _dot(expected, across_errors)
        whole = within + _squared(root)
        found = solve_ldl(whole, across_errors)
        squares = squares - _dot(found.solution, across_errors)
        moved_point = (point + gap * share[..., None]).value
        return _Met(
            shape,
            scale,
            kappa,
            weight,
            (expected + found.solution).value[..., 0],
            moved_point[..., :p],
            moved_point[..., p],
            np.maximum(squares.value[..., 0, 0], 0.0),
            found,
        )

    def log_evidence(self, statistics: Moments) -> Any:
        """The log marginal likelihood of the targets, given the inputs, per group."""
        self._require_proper("evidence")
        met = self._meet(statistics)
        half, added = met.weight / 2, met.squares / 2
        growth, log_variance = log_growth(met.shape, half), np.log(met.scale + added) - np.log(met.shape + half)
        noise = (
            -half * (1 + np.log(2 * np.pi) + log_variance)
            - met.shape * (log_growth(met.scale, added) - growth)
            - 0.5 * growth
            + (stirling_rest(met.shape + half) - stirling_rest(met.shape))
        )
        known = np.isinf(met.kappa)
        level = np.where(known, 0.0, -0.5 * log_growth(np.where(known, 1.0, met.kappa), met.weight))
        slopes = np.log(_pivots(self.precision_cholesky)).sum(-1) - np.log(_pivots(met.eliminated.root)).sum(-1)
        return as_float(noise + level + slopes)

    # ---- Parameters -------------------------------------------------------------------------------------------------

    def _line(self, variance: np.ndarray) -> LinearParameters:
        given = self._given
        slope = np.broadcast_to(self.location, (*given, self.n_inputs))
        fine = DoubleDouble.of(np.broadcast_to(self.intercept_location[..., None, None], (*given, 1, 1)))
        away = np.broadcast_to(self.input_center, slope.shape)[..., None]
        intercept = (fine - _dot(DoubleDouble.of(slope[..., None]), DoubleDouble.of(away))).value[..., 0, 0]
        return LinearParameters(slope, as_float(intercept), as_float(np.broadcast_to(variance, given)))

    def mean(self) -> LinearParameters:
        """The expected slopes and intercept, and E[σ²] = b / (a − 1), infinite for a ≤ 1."""
        finite = self.shape > 1
        return self._line(np.where(finite, self.scale / np.where(finite, self.shape - 1, 1.0), np.inf))

    def mode(self) -> LinearParameters:
        """The joint mode: the expected line, and σ² = b / (a + 1 + k/2), k the number of weights that are not known."""
        k = self.n_inputs + (self.strength is not None)
        return self._line(self.scale / (self.shape + 1 + k / 2))

    def leverage(self, x: np.ndarray) -> np.ndarray:
        """How uncertain the line is at inputs (n, inputs), in variances of the noise: (n, *given)."""
        self._require_proper("uncertainty")
        given, p = self._given, self.n_inputs
        x = x.reshape(len(x), *(1 for _ in given), p) if x.ndim == 2 else x
        gap = np.moveaxis(x - self.input_center, 0, -1) + np.zeros((*given, p, len(x)))
        half = np.linalg.solve(np.broadcast_to(self.precision_cholesky, (*given, p, p)), gap)
        return np.moveaxis((half**2).sum(axis=-2), -1, 0) + self._spread_of_level()

    def _spread_of_level(self) -> np.ndarray:
        return np.zeros(()) if self.strength is None else 1.0 / self.strength

    def at(self, x: np.ndarray) -> np.ndarray:
        """The expected line at inputs (n, inputs): (n, *given)."""
        x = x.reshape(len(x), *(1 for _ in self._given), self.n_inputs) if x.ndim == 2 else x
        return np.asarray(((x - self.input_center) * self.location).sum(axis=-1) + self.intercept_location)

    def _inverse_root(self) -> np.ndarray:
        given, p = self._given, self.n_inputs
        return np.linalg.solve(
            np.broadcast_to(self.precision_cholesky, (*given, p, p)), np.broadcast_to(np.eye(p), (*given, p, p))
        )

    def _variances(self) -> tuple[np.ndarray, np.ndarray]:
        """Of the slopes and the intercept, in those of the noise."""
        self._require_proper("uncertainty")
        inverse = self._inverse_root()
        away = np.broadcast_to(self.input_center, (*self._given, self.n_inputs))[..., None]
        intercept = ((inverse @ away) ** 2).sum(axis=(-2, -1)) + self._spread_of_level()
        return (inverse**2).sum(axis=-2), intercept

    def interval(self, mass: float = 0.95) -> Interval:
        """Equal-tailed credible intervals of slopes and intercept (Student's t) and of the variance (inverse gamma)."""
        slopes, intercept = self._variances()
        middle, unit = self._line(np.zeros(())), self.scale / self.shape
        ends = []
        for tail in tail_probabilities(mass):
            t = stdtrit(2 * self.shape, tail)
            slope = middle.slope + (t * np.sqrt(unit))[..., None] * np.sqrt(slopes)
            variance = np.broadcast_to(self.scale / gammaincinv(self.shape, 1 - tail), self._given)
            ends.append(
                LinearParameters(slope, as_float(middle.intercept + t * np.sqrt(unit * intercept)), as_float(variance))
            )
        return Interval(*ends)

    def sample(self, n: int | tuple[int, ...] = (), *, random_state: RandomState = None) -> LinearParameters:
        """Lines drawn from this belief."""
        self._require_proper("draws")
        rng = np.random.default_rng(random_state)
        leading, given, p = as_size(n), self._given, self.n_inputs
        precision = np.maximum(rng.standard_gamma(np.broadcast_to(self.shape, given), (*leading, *given)), 1e-150)
        variance = self.scale / precision
        noise = rng.standard_normal((*leading, *given, p, 1))
        turned = (np.swapaxes(self._inverse_root(), -1, -2) @ noise)[..., 0]
        slope = self.location + np.sqrt(variance)[..., None] * turned
        level = self.intercept_location + np.sqrt(variance * self._spread_of_level()) * rng.standard_normal(
            (*leading, *given)
        )
        return LinearParameters(slope, as_float(level - (slope * self.input_center).sum(axis=-1)), as_float(variance))

    def log_prob(self, parameter: LinearParameters) -> Any:
        """log p(slope, intercept, σ²), −inf for σ² ≤ 0."""
        self._require_proper("density")
        slope, intercept, variance = (np.asarray(part, dtype=float) for part in parameter)
        p, safe = self.n_inputs, np.where(variance > 0, variance, 1.0)
        gap = slope - self.location
        half = (np.swapaxes(self.precision_cholesky, -1, -2) @ gap[..., None])[..., 0]
        log_det = 2 * np.log(_pivots(self.precision_cholesky)).sum(-1)
        density = 0.5 * (log_det - p * np.log(2 * np.pi * safe) - (half**2).sum(-1) / safe)
        if self.strength is not None:
            away = intercept + (slope * self.input_center).sum(axis=-1) - self.intercept_location
            density = density + 0.5 * (np.log(self.strength / (2 * np.pi * safe)) - self.strength * away**2 / safe)
        density = density + self.shape * np.log(self.scale) - gammaln(self.shape)
        density = density - (self.shape + 1) * np.log(safe) - self.scale / safe
        return as_float(np.where(variance > 0, density, -np.inf))

    def scaled(self, factor: float) -> LinearNormalInverseGamma:
        """The same line and noise, worth `factor` times as many rows."""
        return self.replace(
            precision=self.precision * factor,
            precision_cholesky=self.precision_cholesky * np.sqrt(factor),
            shape=self.shape * factor,
            scale=self.scale * factor,
            strength=None if self.strength is None else self.strength * factor,
        )

    def column(self, index: int) -> NormalInverseGamma:
        """The marginal belief about one slope and the noise."""
        slopes, _ = self._variances()
        location = np.broadcast_to(self.location, slopes.shape)[..., index]
        return NormalInverseGamma(location, 1.0 / slopes[..., index], self.shape, self.scale)


class _Met(NamedTuple):
    """A belief and rows, put together."""

    shape: np.ndarray
    scale: np.ndarray
    kappa: np.ndarray
    weight: np.ndarray
    location: np.ndarray
    input_center: np.ndarray
    intercept_location: np.ndarray
    squares: np.ndarray  # errors of the rows, and of what was expected, squared
    eliminated: LDLSolution


def _row(a: np.ndarray) -> np.ndarray:
    return a[..., :, None]


def _column(a: np.ndarray) -> np.ndarray:
    return a[..., None, :]


def _pivots(root: np.ndarray) -> np.ndarray:
    return np.diagonal(root, axis1=-2, axis2=-1)


def _times(matrix: DoubleDouble, vector: DoubleDouble) -> DoubleDouble:
    """The product of (…, p, p) and (…, p, 1)."""
    product = matrix * vector.map(lambda a: np.swapaxes(a, -1, -2))
    return product.sum((len(product.shape) - 1,)).map(lambda a: a[..., None])


def _dot(first: DoubleDouble, second: DoubleDouble) -> DoubleDouble:
    """The inner product of vectors (…, p, 1): (…, 1, 1)."""
    return (first * second).sum((len(first.shape) - 2,)).map(lambda a: a[..., None])


def _diagonal(matrix: np.ndarray) -> np.ndarray | None:
    """The diagonal of matrices that have nothing beside it."""
    diagonal = _pivots(matrix)
    return diagonal if np.count_nonzero(matrix) == np.count_nonzero(diagonal) else None


def _squared(root: np.ndarray) -> DoubleDouble:
    """Root · rootᵀ, in double-double."""
    diagonal = _diagonal(root)
    if diagonal is not None:
        square = DoubleDouble.of(diagonal) * diagonal
        return square.map(lambda a: a[..., None] * np.eye(root.shape[-1]))
    total = DoubleDouble.zeros(root.shape)
    for k in range(root.shape[-1]):
        column = DoubleDouble.of(root[..., :, k])
        total = total + column.map(_row) * column.map(_column)
    return total

"""Linear regression with Gaussian noise as a family: the last column given the others, from the moments of all."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tallybayes.distributions.linear_normal_inverse_gamma import (
    LinearNormalInverseGamma,
    LinearParameters,
    dot,
    errors_of_slope,
    scatter_about,
    solve_normal_equations,
)
from tallybayes.distributions.log_gamma import log_rising
from tallybayes.distributions.parameter_distribution import ParameterDistribution
from tallybayes.errors import DataError, PriorError
from tallybayes.families._shared.blocks import Block, Dense, dense
from tallybayes.families._shared.high_precision_moments import collect_high_precision
from tallybayes.families._shared.weight_decay import best_decay
from tallybayes.families.continuous import ContinuousFamily
from tallybayes.families.family import Parameters, broadcast_over_groups, ratio
from tallybayes.statistics.double_double import DoubleDouble
from tallybayes.statistics.ldl_solver import minimum_norm_solution
from tallybayes.statistics.moments import Moments
from tallybayes.statistics.sufficient_statistics import Statistics
from tallybayes.typing import Prior

_STRENGTH = 0.01  # prior strength of the default prior's intercept and noise, in rows
_SATURATED_NOISE = 0.1  # relative to the target's variance: expected noise if there are as many coefficients as rows
_NOISE = 1e-4  # relative to the target's variance: expected noise with many rows, below usual noise levels


@dataclass(frozen=True, eq=False, repr=False)
class LinearGaussian(ContinuousFamily):
    """The last column given the others: y ~ N(w · x + b, σ²), with its own coefficients in every group.

    The statistics are the moments of inputs and target, as for `MultivariateGaussian`. One tally gives least squares
    (``"mle"``), ridge regression (``"map"``) and the Bayesian predictive, a Student t (``"bayes"``), for any subset of
    the inputs. ``prior=λ`` is the ridge penalty λ·|w|² added to the squared errors; the intercept is not penalized.
    Without a prior, λ maximizes the marginal likelihood on inputs of unit variance. If inputs are collinear (less than
    1e-7 of an input's norm is linearly independent of those before it), least squares returns the minimum-norm
    coefficients.

    Examples
    --------
    >>> import tallybayes as tb
    >>> rows = [[1.0, 3.1], [2.0, 4.9], [3.0, 7.0], [4.0, 9.0]]
    >>> line = tb.fit_distribution(rows, tb.LinearGaussian()).estimate("mle")
    >>> line.slope.round(4), round(line.intercept, 4)
    (array([1.98]), 1.05)
    """

    conjugate_prior: ClassVar[type[ParameterDistribution]] = LinearNormalInverseGamma
    columnwise: ClassVar[bool] = False
    full_moments: ClassVar[bool] = True
    accepts_missing: ClassVar[bool] = False
    requires_complete_rows: ClassVar[bool] = True
    sums_cells: ClassVar[bool] = True
    is_conditional: ClassVar[bool] = True
    allowed_values: ClassVar[str] = "a finite number (regression counts whole rows)"
    intercept: ClassVar[bool] = True  # whether there is an intercept

    def collect(
        self,
        block: Block,
        group: np.ndarray | None = None,
        n_groups: int = 1,
        weight: np.ndarray | None = None,
        *,
        like: Statistics | None = None,
    ) -> Moments:
        """Return weights, sums and sums of products about an anchor, in high precision.

        Incomplete rows raise an error, or are skipped if cells may be missing.
        """
        name = type(self).__name__
        if self.accepts_missing:
            group, weight = _without_incomplete_rows(dense(block, name), group, weight)
        return collect_high_precision(block, group, n_groups, weight, like, name)

    # ---- Estimates --------------------------------------------------------------------------------------------------

    def _estimate(self, statistics: Moments, df_per_mean: int) -> LinearParameters:
        """Return the least-squares solution by LDLᵀ in double-double."""
        given, p = statistics.given_shape, statistics.n_columns - 1
        no_prior = np.zeros((*given, p)), np.zeros((*given, p, p))
        solved = solve_normal_equations(statistics, np.zeros(p + 1), self._center_strength, *no_prior)
        dependent, slope = solved.solution.dependent, solved.slope
        if dependent.any():
            slope = minimum_norm_solution(solved.scatter[..., :p, :p], solved.solution)
        intercept = (solved.mean[..., p:, None] - dot(slope, solved.mean[..., :p, None])).value[..., 0, 0]
        residual = _positive_squares(solved.squares, solved.scatter)
        n_coefficients = p - dependent.sum(axis=-1) + self.intercept
        variance = ratio(residual, np.maximum(solved.weight - df_per_mean * n_coefficients, 0.0))
        mask = np.where(solved.weight <= 0, np.nan, 0.0)
        return LinearParameters(slope.value[..., 0] + mask[..., None], intercept + mask, variance + mask)

    @property
    def _center_strength(self) -> np.ndarray:
        """Return the prior strength of the value 0 at the inputs 0: infinite without an intercept."""
        return np.array(0.0 if self.intercept else np.inf)

    def _scatter(self, statistics: Moments) -> np.ndarray:
        """Return the scatter of all columns about their mean (about 0 without an intercept)."""
        return scatter_about(statistics, np.zeros(statistics.n_columns), self._center_strength)[2].value

    # ---- Priors -----------------------------------------------------------------------------------------------------

    def resolve_prior(self, prior: Prior, statistics: Moments, estimate: str) -> ParameterDistribution:
        """Return the prior as for every family; a number is the ridge penalty λ in units of the inputs."""
        if isinstance(prior, int | float | np.number) and not isinstance(prior, bool):
            if not 0 <= prior < np.inf:
                raise PriorError(f"prior is {prior!r}; expected λ of weight decay, a finite number of at least 0.")
            return self.weight_decay_prior(statistics, np.full(statistics.n_columns - 1, float(prior)))
        if isinstance(prior, str | bool):
            raise PriorError.wrong_prior(self, prior, "a LinearNormalInverseGamma, or a number, λ of weight decay")
        if not self.intercept and isinstance(prior, LinearNormalInverseGamma) and prior.strength is not None:
            raise PriorError(
                f"prior has strength={prior.strength}, but {self!r} has no intercept; expected strength=None."
            )
        return super().resolve_prior(prior, statistics, estimate)

    def default_prior(self, statistics: Moments, estimate: str) -> LinearNormalInverseGamma:
        """Return the ridge prior on inputs of unit variance with the λ of maximum marginal likelihood."""
        p = statistics.n_columns - 1
        variance = self.spreads(statistics)
        unit = 1.0 / np.sqrt(variance)
        groups = self._scatter(statistics).reshape(-1, p + 1, p + 1)
        weight = statistics.weight[..., 0].reshape(-1)
        decay = best_decay(
            weight,
            groups[:, :p, :p] * unit[:, None] * unit,
            groups[:, :p, p] * unit,
            groups[:, p, p],
            *self._noise_prior(statistics),
        )
        return self.weight_decay_prior(statistics, decay * variance)

    def spreads(self, statistics: Moments) -> np.ndarray:
        """Return the variance of every input within groups, shape (inputs,); 1 for constant inputs."""
        p, weight = statistics.n_columns - 1, statistics.weight[..., 0]
        rows, scatter = float(weight.sum()), np.diagonal(self._scatter(statistics), axis1=-2, axis2=-1)[..., :p]
        variance = scatter.sum(axis=tuple(range(scatter.ndim - 1))) / (rows or 1.0)
        return np.where(variance > 0, variance, 1.0)

    def weight_decay_prior(self, statistics: Moments, decay: np.ndarray) -> LinearNormalInverseGamma:
        """Return the ridge prior with one λ per input, and a vague prior for intercept and noise."""
        given, p = statistics.given_shape, statistics.n_columns - 1
        weight, mean = statistics.weight[..., 0], statistics.mean
        shape, scale = self._noise_prior(statistics)
        intercept, strength, center = np.zeros(given), None, np.zeros((*given, p))
        if self.intercept:  # centered at each group's mean, so that it does not shrink
            pooled = statistics.pool_groups().mean
            point = np.where((weight > 0)[..., None], mean, pooled)
            intercept, strength, center = point[..., p], _STRENGTH, point[..., :p]
        return LinearNormalInverseGamma(
            np.zeros(p),
            np.diag(decay),
            shape,
            scale,
            intercept_location=intercept,
            strength=strength,
            input_center=center,
        )

    def _noise_prior(self, statistics: Moments) -> tuple[float, float]:
        """Return shape and scale of the noise prior: a hundredth of a row, small relative to the target's variance.

        As many coefficients as rows fit any target exactly; the prior then still expects noise.
        """
        p, weight = statistics.n_columns - 1, float(statistics.weight[..., 0].sum())
        scatter = float(statistics.pool_groups().scatter[p, p])
        usual = scatter / weight if weight > 0 else 1.0
        least = float(statistics.pool_groups().mean[p]) ** 2 * 1e-12
        rows = weight / max(1, math.prod(statistics.given_shape))
        saturation = (
            min(1.0, (p + self.intercept) / max(rows, 1.0)) ** 4
        )  # negligible if rows are several times as many
        return _STRENGTH / 2, (_STRENGTH / 2 * _NOISE + _SATURATED_NOISE * saturation) * (max(usual, least) or 1.0)

    # ---- Rows -------------------------------------------------------------------------------------------------------

    def as_parameters(self, parameters: Any, statistics: Moments) -> LinearParameters:
        """Return slopes, intercept and variance."""
        slope, intercept, variance = parameters
        return LinearParameters(np.atleast_1d(slope), intercept, variance)

    def n_parameters(self, statistics: Moments) -> int:
        """Return the number of slopes, intercept and noise variance, in every group."""
        return math.prod(statistics.given_shape) * (statistics.n_columns + self.intercept)

    def mean(self, parameters: Parameters | ParameterDistribution) -> np.ndarray:
        """Return the intercept for the target, and 0 for the inputs, which have no distribution here."""
        point = self.point(parameters)
        slope = np.asarray(point.slope)
        return np.concatenate([np.zeros_like(slope), np.asarray(point.intercept)[..., None]], axis=-1)

    def log_likelihood(self, parameters: LinearParameters, statistics: Moments) -> np.ndarray:
        """Return Σ log N(y | w · x + b, σ²), per group."""
        p, weight = statistics.n_columns - 1, statistics.weight[..., 0]
        slope, intercept, variance = parameters
        scatter, mean = statistics.scatter_double_double(), statistics.mean_double_double()
        exact_slope = DoubleDouble.of(slope[..., None])
        mean_error = (mean[..., p:, None] - dot(exact_slope, mean[..., :p, None])).value[..., 0, 0] - intercept
        squares = errors_of_slope(scatter, exact_slope)[1].value[..., 0, 0]
        squares = _positive_squares(np.maximum(squares, 0.0) + weight * mean_error**2, scatter)
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = -0.5 * (weight * np.log(2 * np.pi * variance) + np.where(squares > 0, squares / variance, 0.0))
        terms = np.where((variance == 0) & (squares > 0), -np.inf, terms)  # errors without noise have probability 0
        return np.where(weight > 0, terms, 0.0)

    def _inputs_and_target(self, x: np.ndarray, n_given: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return inputs and targets with axes for groups, and which rows count: those with a target, or all cells."""
        rows = broadcast_over_groups(x, n_given)
        inputs, target = rows[..., :-1], rows[..., -1]
        known, complete = ~np.isnan(target), ~np.isnan(rows).any(axis=-1)
        if self.accepts_missing:
            known = complete
        elif (known & ~complete).any():
            raise DataError(
                "inputs are missing in a row with a target; expected all inputs.\n    Impute them, or drop the row."
            )
        return inputs, np.where(known, target, 0.0), known

    def errors(self, parameters: LinearParameters, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return y − w · x − b of every row in every group, (n, *given), and which rows count."""
        slope, intercept, _ = parameters
        inputs, target, known = self._inputs_and_target(x, np.ndim(slope) - 1)
        return target - (np.where(known[..., None], inputs, 0.0) * slope).sum(axis=-1) - intercept, known

    def log_prob(self, parameters: LinearParameters, x: np.ndarray) -> np.ndarray:
        """Return log N(y | w · x + b, σ²) of every row's target; 0 where it is missing."""
        variance = parameters.variance
        error, known = self.errors(parameters, x)
        with np.errstate(divide="ignore", invalid="ignore"):
            density = -0.5 * (np.log(2 * np.pi * variance) + np.where(error == 0, 0.0, error**2 / variance))
        density = np.where((variance == 0) & (error != 0), -np.inf, density)  # errors without noise have probability 0
        return np.where(known, density, 0.0)

    def log_predictive(self, posterior: LinearNormalInverseGamma, x: np.ndarray) -> np.ndarray:
        """Return log p(y | x, data), Student's t with 2a degrees of freedom; 0 where the target is missing."""
        inputs, target, known = self._inputs_and_target(x, len(posterior.given_shape))
        inputs = np.where(known[..., None], inputs, posterior.input_center)
        squared_scale = posterior.scale / posterior.shape * (1 + posterior.leverage(inputs))
        squares = (target - posterior.at(inputs)) ** 2 / (2 * posterior.shape * squared_scale)
        log_norm = log_rising(posterior.shape, 0.5) - 0.5 * np.log(2 * np.pi * posterior.shape * squared_scale)
        return np.where(known, log_norm - (posterior.shape + 0.5) * np.log1p(squares), 0.0)

    def sample(
        self,
        parameters: LinearParameters,
        n: int,
        rng: np.random.Generator,
        inputs: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> np.ndarray:
        """Return random rows: Gaussian inputs (standard normal by default) and targets."""
        slope, intercept, variance = parameters
        x = rng.standard_normal((n, *slope.shape))
        if inputs is not None:
            values, vectors = np.linalg.eigh(inputs[1])
            x = inputs[0] + x @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
        noise = rng.standard_normal((n, *slope.shape[:-1])) * np.sqrt(variance)
        y = (x * slope).sum(axis=-1) + intercept + noise
        return np.concatenate([x, y[..., None]], axis=-1)


@dataclass(frozen=True, eq=False, repr=False)
class LinearGaussianThroughOrigin(LinearGaussian):
    """`LinearGaussian` without an intercept: y ~ N(w · x, σ²), from the same moments.

    Examples
    --------
    >>> import tallybayes as tb
    >>> rows = [[1.0, 2.0], [2.0, 3.0], [3.0, 7.0]]
    >>> line = tb.fit_distribution(rows, tb.LinearGaussianThroughOrigin()).estimate("mle")
    >>> line.slope.round(6), line.intercept
    (array([2.071429]), 0.0)
    """

    intercept: ClassVar[bool] = False


def _positive_squares(squares: np.ndarray, scatter: DoubleDouble) -> np.ndarray:
    """Return sums of squared errors, 0 at the rounding level of the target's scatter: a perfect fit."""
    return np.where(squares > 1e-24 * scatter.high[..., -1, -1], squares, 0.0)


def _without_incomplete_rows(
    columns: Dense, group: np.ndarray | None, weight: np.ndarray | None
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Return groups and weights that exclude rows with a missing cell."""
    cells = columns.T if isinstance(columns, np.ndarray) else columns
    missing_cells = [np.isnan(column) for column in map(np.asarray, cells) if column.dtype.kind == "f"]
    incomplete = np.logical_or.reduce(missing_cells) if missing_cells else np.zeros(0, dtype=bool)
    if not incomplete.any():
        return group, weight
    if weight is not None and weight.ndim == 2:
        return group, np.where(incomplete[:, None], 0.0, weight)
    return np.where(incomplete, -1, np.int64(0) if group is None else np.asarray(group).astype(np.int64)), weight

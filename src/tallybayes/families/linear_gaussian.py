"""A target that is linear in other columns, with Gaussian noise: regression, from the moments of all columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tallybayes.distributions.linear_normal_inverse_gamma import LinearNormalInverseGamma, LinearParameters
from tallybayes.distributions.log_gamma import log_gamma_half_step
from tallybayes.distributions.parameter_distribution import ParameterDistribution
from tallybayes.errors import DataError, PriorError
from tallybayes.families._shared.blocks import Block
from tallybayes.families._shared.high_precision_moments import collect_high_precision
from tallybayes.families._shared.sql_aggregates import SqlColumn, Sum, moments_of_sums, sums_of_powers
from tallybayes.families._shared.weight_decay import best_decay
from tallybayes.families.continuous import ContinuousFamily
from tallybayes.families.family import Family, broadcast_over_groups
from tallybayes.statistics.double_double import DoubleDouble
from tallybayes.statistics.ldl_solver import minimum_norm_solution, solve_ldl
from tallybayes.statistics.moments import Moments
from tallybayes.typing import Prior

_STRENGTH = 0.01  # what the default prior's level and noise are worth, in rows
_MET = 0.1  # of the target's variance: the squared error that is expected where weights are as many as rows
_NOISE = 1e-4  # of the target's variance: the noise that it expects, far below what is usual


@dataclass(frozen=True, eq=False, repr=False)
class LinearGaussian(ContinuousFamily):
    """The last column given the others: y ~ N(w · x + b, σ²), with its own line in every group.

    What is kept are the moments of inputs and target together, as of `MultivariateGaussian`: one tally gives least
    squares (``"mle"``), weight decay (``"map"``) and the Bayesian predictive, a Student t (``"bayes"``), of any of the
    inputs. ``prior=λ`` is weight decay, λ·|w|² beside the squared errors; the intercept is free. Without a prior λ is
    the one under which the data are most probable, on inputs of unit variance. Of inputs that are combinations of
    others (less than 1e-7 of their length is left beyond those before them) least squares takes the shortest weights.

    Examples
    --------
    >>> import tallybayes as tb
    >>> rows = [[1.0, 3.1], [2.0, 4.9], [3.0, 7.0], [4.0, 9.0]]
    >>> line = tb.fit_distribution(rows, tb.LinearGaussian()).estimate("mle")
    >>> line.slope.round(4), round(line.intercept, 4)
    (array([1.98]), 1.05)
    """

    conjugate_prior = LinearNormalInverseGamma
    columnwise: ClassVar[bool] = False
    low_memory_scoring: ClassVar[bool] = True
    accepts_missing: ClassVar[bool] = False
    requires_complete_rows: ClassVar[bool] = True
    sums_cells: ClassVar[bool] = True
    is_conditional: ClassVar[bool] = True
    allowed_values: ClassVar[str] = "a finite number (regression counts whole rows)"
    memory_hint: ClassVar[str] = "Use fewer columns, or a lower degree."
    intercept: ClassVar[bool] = True  # whether a line has one that is to be learned

    @property
    def family_given_continuous_parents(self) -> Family | None:
        """The same in a network, if it is the plain line."""
        from tallybayes.families.conditional_linear_gaussian import ConditionalLinearGaussian  # which is made from this

        return ConditionalLinearGaussian() if type(self) is LinearGaussian else None

    def as_line(self, parameters: LinearParameters) -> LinearParameters:
        """As it is."""
        return parameters

    @property
    def statistics_key(self) -> tuple[Any, ...]:
        """The moments of a full covariance."""
        return ("moments", "full")

    def n_numbers(self, n_columns: int) -> tuple[int, int]:
        """Sums of all products in two parts, of cells that are taken apart, and the arithmetic on them."""
        return 8 * n_columns**2, 24 * n_columns**2

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
        return collect_high_precision(block, group, n_groups, weight, like, "LinearGaussian")

    def aggregates(self, n_columns: int, anchor: np.ndarray) -> list[Sum]:
        """Weights, values and products about an anchor."""
        return sums_of_powers([SqlColumn(place) for place in range(n_columns)], anchor, full=True)

    def from_aggregates(self, sums: np.ndarray, anchor: np.ndarray) -> Moments:
        """The moments of groups."""
        return moments_of_sums(anchor, sums, full=True)

    # ---- Estimates --------------------------------------------------------------------------------------------------

    def maximum_likelihood(self, statistics: Moments) -> LinearParameters:
        """Least squares, and the mean of squared errors."""
        return self._least_squares(statistics, unbiased=False)

    def unbiased(self, statistics: Moments) -> LinearParameters:
        """Least squares, and the sum of squared errors over the rows less the weights that were estimated."""
        return self._least_squares(statistics, unbiased=True)

    def _least_squares(self, statistics: Moments, *, unbiased: bool) -> LinearParameters:
        p, weight = statistics.n_columns - 1, statistics.weight[..., 0]
        mean, shown = self._shown(statistics)
        within, across = shown.map(lambda a: a[..., :p, :p]), shown.map(lambda a: a[..., :p, p:])
        found = solve_ldl(within, across)
        slope = minimum_norm_solution(within, found) if found.dependent.any() else found.solution
        left = (shown.map(lambda a: a[..., p, p]) - _dot(found.solution, across)).value
        # What is no more than the rounding of sums is no noise, and a perfect fit.
        left = np.where(left > 1e-24 * shown.high[..., p, p], left, 0.0)
        away = mean.map(lambda a: a[..., :p, None])
        intercept = (mean.map(lambda a: a[..., p]) - _dot(slope, away)).value if self.intercept else np.zeros_like(left)
        spent = (p - found.dependent.sum(axis=-1) + self.intercept) if unbiased else 0
        freedom = np.maximum(weight - spent, 0.0)
        empty = weight <= 0
        variance = np.where(freedom > 0, left / np.where(freedom > 0, freedom, 1.0), np.nan)
        nothing = np.where(empty, np.nan, 0.0)
        return LinearParameters(slope.value[..., 0] + nothing[..., None], intercept + nothing, variance + nothing)

    def _shown(self, statistics: Moments) -> tuple[DoubleDouble, DoubleDouble]:
        """The mean of all columns, and their scatter: about it, or about 0 where lines have no intercept."""
        return statistics.mean_double_double(), statistics.scatter_double_double()

    # ---- Priors -----------------------------------------------------------------------------------------------------

    def resolve_prior(self, prior: Prior, statistics: Moments, estimate: str) -> ParameterDistribution:
        """As for every family; a number is λ of weight decay, in units of the inputs."""
        if isinstance(prior, int | float | np.number) and not isinstance(prior, bool):
            if not 0 <= prior < np.inf:
                raise PriorError(f"prior is {prior!r}; expected λ of weight decay, a finite number of at least 0.")
            return self.weight_decay_prior(statistics, np.full(statistics.n_columns - 1, float(prior)))
        if isinstance(prior, str | bool):
            raise PriorError.wrong_prior(self, prior, "a LinearNormalInverseGamma, or a number, λ of weight decay")
        if not self.intercept and isinstance(prior, LinearNormalInverseGamma) and prior.strength is not None:
            raise PriorError(
                f"a line through the origin has no level to learn, and strength= of its prior is {prior.strength}.\n"
                "    Use strength=None: it is known."
            )
        return super().resolve_prior(prior, statistics, estimate)

    def default_prior(self, statistics: Moments, estimate: str) -> LinearNormalInverseGamma:
        """Weight decay on inputs of unit variance, of the λ under which the data are most probable."""
        p = statistics.n_columns - 1
        spread = self.spreads(statistics)
        _, shown = self._shown(statistics)
        unit = 1.0 / np.sqrt(spread)
        groups = shown.value.reshape(-1, p + 1, p + 1)
        weight = statistics.weight[..., 0].reshape(-1)
        decay = best_decay(
            weight,
            groups[:, :p, :p] * unit[:, None] * unit,
            groups[:, :p, p] * unit,
            groups[:, p, p],
            *self._noise(statistics),
        )
        return self.weight_decay_prior(statistics, decay * spread)

    def spreads(self, statistics: Moments) -> np.ndarray:
        """The variance of every input, within groups, (inputs,); 1 where it has none."""
        p, weight = statistics.n_columns - 1, statistics.weight[..., 0]
        _, shown = self._shown(statistics)
        rows, scatter = float(weight.sum()), np.diagonal(shown.value, axis1=-2, axis2=-1)[..., :p]
        variance = scatter.sum(axis=tuple(range(scatter.ndim - 1))) / (rows or 1.0)
        return np.where(variance > 0, variance, 1.0)

    def weight_decay_prior(self, statistics: Moments, decay: np.ndarray) -> LinearNormalInverseGamma:
        """The prior of slopes that decay, an own λ each; level and noise are as good as unknown."""
        given, p = statistics.given_shape, statistics.n_columns - 1
        weight, mean = statistics.weight[..., 0], statistics.mean
        shape, scale = self._noise(statistics)
        level, strength, center = np.zeros(given), None, np.zeros((*given, p))
        if self.intercept:  # at the mean of every group, where it holds nothing back
            pooled = statistics.pool_groups().mean
            point = np.where((weight > 0)[..., None], mean, pooled)
            level, strength, center = point[..., p], _STRENGTH, point[..., :p]
        return LinearNormalInverseGamma(
            np.zeros(p), np.diag(decay), shape, scale, intercept_location=level, strength=strength, input_center=center
        )

    def _noise(self, statistics: Moments) -> tuple[float, float]:
        """Shape and scale of the noise: worth a hundredth of a row, and small beside the target's variance.

        As many weights as rows meet every target, whatever it is: there, noise is expected all the same.
        """
        p, weight = statistics.n_columns - 1, float(statistics.weight[..., 0].sum())
        scatter = float(statistics.pool_groups().scatter[p, p])
        usual = scatter / weight if weight > 0 else 1.0
        level = float(statistics.pool_groups().mean[p]) ** 2 * 1e-12
        rows = weight / max(1, int(np.prod(statistics.given_shape, dtype=np.int64)))
        met = min(1.0, (p + self.intercept) / max(rows, 1.0)) ** 4  # next to nothing, where rows are some times as many
        return _STRENGTH / 2, (_STRENGTH / 2 * _NOISE + _MET * met) * (max(usual, level) or 1.0)

    def constant_columns(self, statistics: Moments) -> np.ndarray:
        """None: an input that is the same in every row has no weight."""
        return np.zeros(0, dtype=np.intp)

    # ---- Rows -------------------------------------------------------------------------------------------------------

    def as_parameters(self, parameters: Any, statistics: Moments) -> LinearParameters:
        """Slopes, intercept and variance."""
        slope, intercept, variance = (np.asarray(part, dtype=float) for part in parameters)
        return LinearParameters(np.atleast_1d(slope), intercept, variance)

    def n_parameters(self, statistics: Moments) -> int:
        """A weight for every input, the intercept and the noise, in every group."""
        return int(np.prod(statistics.given_shape, dtype=np.int64)) * (statistics.n_columns + self.intercept)

    def row_weight(self, statistics: Moments) -> np.ndarray:
        """The rows of every group."""
        return statistics.group_weights()

    def mean(self, parameters: Any) -> np.ndarray:
        """0 of inputs, which have no distribution here, and the target where they are 0."""
        line = parameters.mean() if isinstance(parameters, ParameterDistribution) else parameters
        slope = np.asarray(line.slope)
        return np.concatenate([np.zeros_like(slope), np.asarray(line.intercept)[..., None]], axis=-1)

    def log_likelihood(self, parameters: LinearParameters, statistics: Moments) -> np.ndarray:
        """Σ log N(y | w · x + b, σ²), per group."""
        p, weight = statistics.n_columns - 1, statistics.weight[..., 0]
        slope, intercept, variance = (np.asarray(part, dtype=float) for part in parameters)
        weights = DoubleDouble.of(np.concatenate([-slope, np.ones((*slope.shape[:-1], 1))], axis=-1)[..., None])
        scatter = statistics.scatter_double_double()
        turned = (scatter * weights.map(lambda a: np.swapaxes(a, -1, -2))).sum((len(scatter.shape) - 1,))
        spread = _dot(weights, turned.map(lambda a: a[..., None])).value
        gap = (_dot(weights, statistics.mean_double_double().map(lambda a: a[..., None]))).value - intercept
        squares = np.maximum(spread, 0.0) + weight * gap**2
        squares = np.where(squares > 1e-24 * scatter.high[..., p, p], squares, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = -0.5 * (weight * np.log(2 * np.pi * variance) + np.where(squares > 0, squares / variance, 0.0))
        terms = np.where((variance == 0) & (squares > 0), -np.inf, terms)  # off a line without noise
        return np.where(weight > 0, terms, 0.0)

    def _errors(self, x: np.ndarray, n_given: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Inputs and targets, with axes for groups, and which rows have a target."""
        rows = broadcast_over_groups(np.asarray(x, dtype=float), n_given)
        inputs, target = rows[..., :-1], rows[..., -1]
        known = ~np.isnan(target)
        if np.isnan(inputs).any() and (np.isnan(inputs).any(axis=-1) & known).any():
            raise DataError(
                "a row has a target but lacks an input, and p(target | inputs) needs them all.\n"
                "    Fill it in, or leave the row out."
            )
        return inputs, np.where(known, target, 0.0), known

    def log_prob(self, parameters: LinearParameters, x: np.ndarray) -> np.ndarray:
        """log N(y | w · x + b, σ²) of every row's target; 0 where it is missing."""
        slope, intercept, variance = (np.asarray(part, dtype=float) for part in parameters)
        inputs, target, known = self._errors(x, slope.ndim - 1)
        gap = target - (np.where(known[..., None], inputs, 0.0) * slope).sum(axis=-1) - intercept
        with np.errstate(divide="ignore", invalid="ignore"):
            density = -0.5 * (np.log(2 * np.pi * variance) + np.where(gap == 0, 0.0, gap**2 / variance))
        density = np.where((variance == 0) & (gap != 0), -np.inf, density)  # off a line without noise
        return np.where(known, density, 0.0)

    def log_predictive(self, posterior: LinearNormalInverseGamma, x: np.ndarray) -> np.ndarray:
        """log p(y | x, data), Student's t with 2a degrees of freedom; 0 where the target is missing."""
        inputs, target, known = self._errors(x, len(posterior._given))
        inputs = np.where(known[..., None], inputs, posterior.input_center)
        wide = posterior.scale / posterior.shape * (1 + posterior.leverage(inputs))
        squares = (target - posterior.at(inputs)) ** 2 / (2 * posterior.shape * wide)
        log_norm = log_gamma_half_step(posterior.shape) - 0.5 * np.log(2 * np.pi * posterior.shape * wide)
        return np.where(known, log_norm - (posterior.shape + 0.5) * np.log1p(squares), 0.0)

    def sampling_options(self, statistics: Moments) -> dict[str, Any]:
        """The mean and the covariance of the inputs."""
        p, pooled = statistics.n_columns - 1, statistics.pool_groups()
        covariance = pooled.scatter[:p, :p] / max(float(pooled.weight[0]), 1.0)
        return {"inputs": (pooled.mean[:p], covariance)}

    def sample(self, parameters: LinearParameters, n: int, rng: np.random.Generator, inputs: Any = None) -> np.ndarray:
        """Rows of Gaussian inputs with this mean and covariance, by default standard ones, and of targets."""
        slope, intercept, variance = (np.asarray(part, dtype=float) for part in parameters)
        x = rng.standard_normal((n, *slope.shape))
        if inputs is not None:
            values, vectors = np.linalg.eigh(inputs[1])
            x = inputs[0] + x @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
        noise = rng.standard_normal((n, *slope.shape[:-1])) * np.sqrt(variance)
        y = (x * slope).sum(axis=-1) + intercept + noise
        return np.concatenate([x, y[..., None]], axis=-1)

    def is_undefined(self, parameters: LinearParameters) -> np.ndarray:
        """Groups without a row."""
        return np.isnan(np.asarray(parameters.intercept))[..., None]

    def named_parameters(self, parameters: Any) -> dict[str, np.ndarray]:
        """The weights, the intercept last."""
        line = self.parameters_from(parameters, "mean") if isinstance(parameters, ParameterDistribution) else parameters
        weights = [np.asarray(line.slope), np.asarray(line.intercept)[..., None]]
        return {"weight": np.concatenate(weights, axis=-1)}


@dataclass(frozen=True, eq=False, repr=False)
class LinearGaussianThroughOrigin(LinearGaussian):
    """As `LinearGaussian`, without an intercept: y ~ N(w · x, σ²), from the same moments.

    Examples
    --------
    >>> import tallybayes as tb
    >>> line = tb.fit_distribution([[1.0, 2.0], [2.0, 3.0], [3.0, 7.0]], tb.LinearGaussianThroughOrigin()).estimate("mle")
    >>> line.slope.round(6), line.intercept
    (array([2.071429]), 0.0)
    """

    intercept: ClassVar[bool] = False

    def _shown(self, statistics: Moments) -> tuple[DoubleDouble, DoubleDouble]:
        mean, weight = statistics.mean_double_double(), statistics.weight_sum
        outer = mean.map(lambda a: a[..., :, None]) * mean.map(lambda a: a[..., None, :])
        return mean, statistics.scatter_double_double() + outer * weight.map(lambda a: a[..., :1, None])


def _dot(first: DoubleDouble, second: DoubleDouble) -> DoubleDouble:
    """The inner product of vectors (…, p, 1), in double-double: (…)."""
    return (first * second).sum((len(first.shape) - 2,)).map(lambda a: a[..., 0])

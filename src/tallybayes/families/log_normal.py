"""Log-normal columns: positive measurements whose logarithms are Gaussian."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tallybayes.distributions.normal_inverse_gamma import Normal, NormalInverseGamma
from tallybayes.distributions.parameter_distribution import ParameterDistribution
from tallybayes.families._shared.blocks import Block, Dense, SparseRows, dense
from tallybayes.families._shared.leave_one_out_counts import GroupStatistics, RemovedRows
from tallybayes.families._shared.leave_one_out_gaussian import columns_leave_one_out
from tallybayes.families._shared.sql_aggregates import Expression, Log, SqlColumn, Sum, sums_of_powers
from tallybayes.families.family import broadcast_over_groups
from tallybayes.families.gaussian import Gaussian
from tallybayes.statistics.moments import Moments

if TYPE_CHECKING:
    from tallybayes.statistics.sufficient_statistics import Statistics

_LARGEST = 709.0  # the logarithms of what a float can hold, nearly


@dataclass(frozen=True, eq=False, repr=False)
class LogNormal(Gaussian):
    """A positive column whose logarithm is measured: log x ~ N(μ, σ²), with its own mean and variance in every group.

    Its parameters and its prior, a `NormalInverseGamma`, are about log x. Probabilities and evidence are about x itself
    (the density of x is that of log x over x), so they compare with those of `Gaussian` on the same column. Scaling the
    column changes no prediction. For incomes, prices, sizes, times.

    Examples
    --------
    >>> import numpy as np, tallybayes as tb
    >>> prices = tb.fit_distribution([1.0, 10.0, 100.0], tb.LogNormal())
    >>> round(float(np.exp(prices.estimate("mle").mean)), 9)
    10.0
    >>> bits = [tb.fit_distribution([1.0, 10.0, 100.0], family).description_length().evidence for family in (tb.LogNormal(), tb.Gaussian())]
    >>> bits[0] < bits[1]
    True
    """

    transforms: ClassVar[bool] = True
    scale: ClassVar[str] = "log"
    sums_cells: ClassVar[bool] = False
    allowed_values: ClassVar[str] = "a finite number above 0 (or missing)"

    @property
    def statistics_key(self) -> tuple[Any, ...]:
        """Moments of logarithms are no moments of x."""
        return ("LogNormal",)

    def out_of_support(self, x: np.ndarray) -> np.ndarray:
        """0 and below."""
        return x <= 0

    def collect(
        self,
        block: Block,
        group: np.ndarray | None = None,
        n_groups: int = 1,
        weight: np.ndarray | None = None,
        *,
        like: Statistics | None = None,
    ) -> Moments:
        """Sum weights, logarithms and their squares about an anchor."""
        return super().collect(self.transform(dense(block, "LogNormal")), group, n_groups, weight, like=like)

    def aggregates(self, n_columns: int, anchor: np.ndarray) -> list[Sum]:
        """Weights, logarithms and their squares about an anchor."""
        return sums_of_powers([Log(SqlColumn(place)) for place in range(n_columns)], anchor, full=False)

    log_prob_form, log_predictive_form = Gaussian.log_prob_form, Gaussian.log_predictive_form

    def transform(self, columns: Dense) -> Dense:
        """Logarithms; −inf, which no kernel counts, where there is none."""
        return _log(columns) if isinstance(columns, np.ndarray) else [_log(column) for column in columns]

    def sql_expression(self, column: Expression) -> Expression:
        """The logarithm."""
        return Log(column)

    def log_jacobian(self, transformed: np.ndarray) -> np.ndarray:
        """−Σ log x."""
        return -np.nansum(transformed, axis=1)

    def mean(self, parameters: Any) -> np.ndarray:
        """E[x] = exp(μ + σ²/2); of a posterior, at its mean of μ and σ², since E[x] itself has no bound there."""
        found = parameters.mean() if isinstance(parameters, ParameterDistribution) else parameters
        return _exp(np.asarray(found.mean) + np.asarray(found.variance) / 2)

    def log_likelihood(self, parameters: Normal, statistics: Moments) -> np.ndarray:
        """Σ log p(x | μ, σ²)."""
        return super().log_likelihood(parameters, statistics) + _log_base(statistics)

    def log_evidence(self, belief: ParameterDistribution, statistics: Moments) -> Any:
        """log p(x) of all rows: that of the logarithms, less their sum."""
        evidence = super().log_evidence(belief, statistics)
        return evidence + _log_base(statistics) if isinstance(belief, NormalInverseGamma) else evidence

    def log_prob(self, parameters: Normal, x: np.ndarray) -> np.ndarray:
        """log p(x | μ, σ²) = log N(log x | μ, σ²) − log x of every cell."""
        logs = _log(x)
        return _less(super().log_prob(parameters, logs), logs)

    def log_predictive(self, posterior: NormalInverseGamma, x: np.ndarray) -> np.ndarray:
        """log p(x | data): log x follows Student's t."""
        logs = _log(x)
        return _less(super().log_predictive(posterior, logs), logs)

    def leave_one_out_log_prob(self, counted: GroupStatistics, rows: RemovedRows) -> np.ndarray:
        """Mean and variance of the logarithms that are left."""
        logs = _log(np.asarray(rows.cells))
        terms = columns_leave_one_out(Gaussian(), counted, rows._replace(cells=logs))
        return np.asarray(terms + self.log_jacobian(np.delete(logs, rows.constant, axis=1))[:, None])

    def first_invalid_cell(self, rows: Any) -> tuple[int, int] | None:
        """The first that has no logarithm."""
        return super().first_invalid_cell(rows if isinstance(rows, SparseRows) else np.where(rows <= 0, np.inf, rows))

    def pooled_value(self, statistics: Moments) -> np.ndarray:
        """The value of columns that are the same in every row."""
        return np.exp(super().pooled_value(statistics))

    def named_parameters(self, parameters: Any) -> dict[str, np.ndarray]:
        """Mean and variance of the logarithms; of a posterior, what its predictive has."""
        return {f"{name} of log": part for name, part in super().named_parameters(parameters).items()}

    def plot_grid(self, parameters: Any, column: int, reach: float = 3.0) -> np.ndarray:
        """The same about every mean of the logarithms."""
        return np.exp(super().plot_grid(parameters, column, reach))

    def kl_divergence(self, parameters: Normal, other: Normal) -> np.ndarray:
        """That of the logarithms: it is the same on every scale."""
        return super().kl_divergence(parameters, other)

    def distance_features(self, cells: Any) -> tuple[np.ndarray, None]:
        """Logarithms."""
        return _log(cells), None

    def cdf(self, parameters: Normal, x: np.ndarray) -> np.ndarray:
        """That of the logarithms."""
        return super().cdf(parameters, _log(x))

    def sample(self, parameters: Normal, n: int, rng: np.random.Generator) -> np.ndarray:
        """Values above 0."""
        return _exp(super().sample(parameters, n, rng))


def _log(column: np.ndarray) -> np.ndarray:
    """Logarithms; −inf, which no kernel counts, where there is none."""
    values = np.ascontiguousarray(column, dtype=np.float64).reshape(np.shape(column))
    with np.errstate(invalid="ignore", divide="ignore"):
        logs = np.log(values)
        return np.where(values < 0, -np.inf, logs) if (values < 0).any() else logs


def _less(terms: np.ndarray, logs: np.ndarray) -> np.ndarray:
    """Densities of x from those of its logarithm; missing cells add nothing."""
    return np.asarray(terms - broadcast_over_groups(np.where(np.isnan(logs), 0.0, logs), terms.ndim - 2))


def _exp(logs: np.ndarray) -> np.ndarray:
    """Exponentials that stay above 0 and finite: the tails of a t on the scale of logarithms leave no float out."""
    return np.exp(np.clip(logs, -_LARGEST, _LARGEST))


def _log_base(statistics: Moments) -> np.ndarray:
    """−Σ log x, per group and column: what turns a density of log x into one of x."""
    return -(statistics.first_sum.value + statistics.anchor * statistics.weight)

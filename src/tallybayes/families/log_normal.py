"""Log-normal columns: positive values whose logarithms are Gaussian."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from tallybayes.distributions.normal_inverse_gamma import Normal, NormalInverseGamma
from tallybayes.distributions.parameter_distribution import ParameterDistribution
from tallybayes.families._shared.blocks import Block, dense, per_column
from tallybayes.families.family import Parameters, broadcast_over_groups
from tallybayes.families.gaussian import Gaussian
from tallybayes.statistics.moments import Moments

if TYPE_CHECKING:
    from tallybayes.statistics.sufficient_statistics import Statistics

_LARGEST = 709.0  # about the largest x for which exp(x) is finite


@dataclass(frozen=True, eq=False, repr=False)
class LogNormal(Gaussian):
    """A positive column with log x ~ N(μ, σ²), with its own mean and variance in every group.

    The parameters and the prior, a `NormalInverseGamma`, refer to log x. Probabilities and marginal likelihoods are
    densities of x (that of log x divided by x), so they are comparable with those of `Gaussian` on the same column.
    Scaling the column changes no prediction. Suited to incomes, prices, sizes and durations.

    Examples
    --------
    >>> import numpy as np, tallybayes as tb
    >>> prices = tb.fit_distribution([1.0, 10.0, 100.0], tb.LogNormal())
    >>> round(float(np.exp(prices.estimate("mle").mean)), 9)
    10.0
    >>> gaussian = tb.fit_distribution([1.0, 10.0, 100.0], tb.Gaussian())
    >>> prices.description_length().evidence < gaussian.description_length().evidence
    True
    """

    transforms: ClassVar[bool] = True
    sums_cells: ClassVar[bool] = False
    allowed_values: ClassVar[str] = "a finite number above 0 (or missing)"

    @property
    def statistics_key(self) -> tuple[Any, ...]:
        """Return the key of the moments of logarithms."""
        return ("LogNormal",)

    def collect(
        self,
        block: Block,
        group: np.ndarray | None = None,
        n_groups: int = 1,
        weight: np.ndarray | None = None,
        *,
        like: Statistics | None = None,
    ) -> Moments:
        """Return weights, sums and sums of squares of the logarithms about an anchor."""
        return super().collect(per_column(log_cells, dense(block, "LogNormal")), group, n_groups, weight, like=like)

    def mean(self, parameters: Parameters | ParameterDistribution) -> np.ndarray:
        """Return E[x] = exp(μ + σ²/2), for a posterior at its mean of μ and σ² (E[x] itself is infinite)."""
        point = self.point(parameters)
        return _exp(point.mean + point.variance / 2)

    def log_likelihood(self, parameters: Normal, statistics: Moments) -> np.ndarray:
        """Return Σ log p(x | μ, σ²)."""
        return super().log_likelihood(parameters, statistics) + _log_density_correction(statistics)

    def log_evidence(self, prior: ParameterDistribution, statistics: Moments) -> Any:
        """Return the log evidence of the logarithms minus Σ log x."""
        evidence = super().log_evidence(prior, statistics)
        return evidence + _log_density_correction(statistics) if isinstance(prior, NormalInverseGamma) else evidence

    def log_prob(self, parameters: Normal, x: np.ndarray) -> np.ndarray:
        """Return log N(log x | μ, σ²) − log x of every cell."""
        logs = log_cells(x)
        return _subtract_logs(super().log_prob(parameters, logs), logs)

    def log_predictive(self, posterior: NormalInverseGamma, x: np.ndarray) -> np.ndarray:
        """Return log p(x | data): log x follows Student's t."""
        logs = log_cells(x)
        return _subtract_logs(super().log_predictive(posterior, logs), logs)

    def sample(self, parameters: Normal, n: int, rng: np.random.Generator) -> np.ndarray:
        """Return random positive values."""
        return _exp(super().sample(parameters, n, rng))


def log_cells(column: np.ndarray) -> np.ndarray:
    """Return logarithms; −inf, which kernels reject, for nonpositive values."""
    values = np.ascontiguousarray(column, dtype=np.float64).reshape(np.shape(column))
    with np.errstate(invalid="ignore", divide="ignore"):
        logs = np.log(values)
        return np.where(values < 0, -np.inf, logs) if (values < 0).any() else logs


def _subtract_logs(terms: np.ndarray, logs: np.ndarray) -> np.ndarray:
    """Subtract log x from the log densities of log x; missing cells contribute 0."""
    return np.asarray(terms - broadcast_over_groups(np.where(np.isnan(logs), 0.0, logs), terms.ndim - 2))


def _exp(logs: np.ndarray) -> np.ndarray:
    """Return exponentials, clipped to finite positive numbers."""
    return np.exp(np.clip(logs, -_LARGEST, _LARGEST))


def _log_density_correction(statistics: Moments) -> np.ndarray:
    """Return −Σ log x per group and column: from densities of log x to densities of x."""
    return -(statistics.first_sum.value + statistics.anchor * statistics.weight)

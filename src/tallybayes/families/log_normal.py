"""Log-normal columns: positive measurements whose logarithms are Gaussian."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tallybayes import kernels
from tallybayes.beliefs.belief import Belief
from tallybayes.beliefs.normal_inverse_gamma import Normal, NormalInverseGamma
from tallybayes.families.block import Block, dense
from tallybayes.families.family import Family, over_given
from tallybayes.families.gaussian import Gaussian, StudentT
from tallybayes.statistics.moments import Moments, choose_anchor

_LOGS = Gaussian()  # what the logarithms are
_LARGEST = 709.0  # the logarithms of what a float can hold, nearly


@dataclass(frozen=True, eq=False, repr=False)
class LogNormal(Family):
    """A positive column whose logarithm is measured: log x ~ N(μ, σ²), with its own mean and variance in every group.

    Its parameters and its prior, a `NormalInverseGamma`, are about log x. Probabilities and evidence are about x itself
    (the density of x is that of log x over x), so they compare with those of `Gaussian` on the same column. Scaling the
    column changes no prediction. For incomes, prices, sizes, times.

    Examples
    --------
    >>> import numpy as np, tallybayes as tb
    >>> prices = tb.learn([1.0, 10.0, 100.0], tb.LogNormal())
    >>> round(float(np.exp(prices.estimate("mle").mean)), 9)
    10.0
    >>> bits = [tb.learn([1.0, 10.0, 100.0], family).bits().evidence for family in (tb.LogNormal(), tb.Gaussian())]
    >>> bits[0] < bits[1]
    True
    """

    belief = NormalInverseGamma
    measured: ClassVar[bool] = True
    expects: ClassVar[str] = "a finite number above 0 (or missing)"

    def collect(
        self,
        block: Block,
        group: np.ndarray | None = None,
        n_groups: int = 1,
        weight: np.ndarray | None = None,
        *,
        like: Any = None,
    ) -> Moments:
        """Sum weights, logarithms and their squares about an anchor."""
        columns = dense(block, "LogNormal")
        logs = _log(columns) if isinstance(columns, np.ndarray) else [_log(column) for column in columns]
        anchor = choose_anchor(logs, group, weight) if like is None else like.anchor
        return Moments.from_kernel(anchor, kernels.sum_moments(logs, anchor, group, n_groups, weight))

    def maximum_likelihood(self, statistics: Moments) -> Normal:
        """The mean and the variance of the logarithms."""
        return _LOGS.maximum_likelihood(statistics)

    def unbiased(self, statistics: Moments) -> Normal:
        """The same, the scatter over the number of rows less one."""
        return _LOGS.unbiased(statistics)

    def default_prior(self, statistics: Moments, estimate: str) -> NormalInverseGamma:
        """A weak belief about the logarithms, the same for every unit and power of x."""
        return _LOGS.default_prior(statistics, estimate)

    def as_parameters(self, parameters: Any, statistics: Moments) -> Normal:
        """Mean and variance of the logarithms, with an axis for columns."""
        return _LOGS.as_parameters(parameters, statistics)

    def n_parameters(self, statistics: Moments) -> int:
        """A mean and a variance per group and column."""
        return _LOGS.n_parameters(statistics)

    def row_weight(self, statistics: Moments) -> np.ndarray:
        """The rows behind every column."""
        return _LOGS.row_weight(statistics)

    def expected(self, parameters: Any) -> np.ndarray:
        """E[x] = exp(μ + σ²/2); of a posterior, at its mean of μ and σ², since E[x] itself has no bound there."""
        found = parameters.mean() if isinstance(parameters, Belief) else parameters
        return _exp(np.asarray(found.mean) + np.asarray(found.variance) / 2)

    def log_likelihood(self, parameters: Normal, statistics: Moments) -> np.ndarray:
        """Σ log p(x | μ, σ²)."""
        return _LOGS.log_likelihood(parameters, statistics) + _log_base(statistics)

    def log_evidence(self, belief: Any, statistics: Moments) -> Any:
        """log p(x) of all rows: that of the logarithms, less their sum."""
        evidence = belief.log_evidence(statistics)
        return evidence + _log_base(statistics) if isinstance(belief, NormalInverseGamma) else evidence

    def log_prob(self, parameters: Normal, x: np.ndarray) -> np.ndarray:
        """log p(x | μ, σ²) = log N(log x | μ, σ²) − log x of every cell."""
        return self._density(_LOGS.log_prob, parameters, x)

    def log_predictive(self, posterior: NormalInverseGamma, x: np.ndarray) -> np.ndarray:
        """log p(x | data): log x follows Student's t."""
        return self._density(_LOGS.log_predictive, posterior, x)

    def _density(self, score: Any, parameters: Any, x: np.ndarray) -> np.ndarray:
        logs = _log(x)
        terms = score(parameters, logs)
        return np.asarray(terms - over_given(np.where(np.isnan(logs), 0.0, logs), terms.ndim - 2))

    def student(self, posterior: NormalInverseGamma) -> StudentT:
        """The parameters of the predictive distribution of log x."""
        return _LOGS.student(posterior)

    def without_density(self, parameters: Normal, statistics: Moments) -> tuple[int | None, int | None] | None:
        """The first group and column whose values are all the same."""
        return _LOGS.without_density(parameters, statistics)

    def collapsed(self, parameters: Normal, statistics: Moments) -> Normal:
        """A variance next to nothing is nothing."""
        return _LOGS.collapsed(parameters, statistics)

    def without_flat(self, parameters: Normal) -> Normal:
        """Groups that have a column of variance 0."""
        return _LOGS.without_flat(parameters)

    def flat_columns(self, statistics: Moments) -> np.ndarray:
        """Columns whose pooled spread is 0."""
        return _LOGS.flat_columns(statistics)

    def with_spread(self, statistics: Moments, flat: np.ndarray) -> Moments:
        """A unit for each."""
        return _LOGS.with_spread(statistics, flat)

    def pooled_value(self, statistics: Moments) -> np.ndarray:
        """The value of columns that are the same in every row."""
        return np.exp(_LOGS.pooled_value(statistics))

    def describe(self, parameters: Any) -> dict[str, np.ndarray]:
        """Mean and variance of the logarithms; of a posterior, what its predictive has."""
        return {f"{name} of log": part for name, part in _LOGS.describe(parameters).items()}

    def seed_cells(self, cells: Any) -> tuple[np.ndarray, None]:
        """Logarithms."""
        return _log(cells), None

    def sample(self, parameters: Normal, n: int, rng: np.random.Generator) -> np.ndarray:
        """Values above 0."""
        return _exp(_LOGS.sample(parameters, n, rng))


def _log(column: np.ndarray) -> np.ndarray:
    """Logarithms; −inf, which no kernel counts, where there is none."""
    values = np.asarray(column, dtype=np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(values <= 0, -np.inf, np.log(values))


def _exp(logs: np.ndarray) -> np.ndarray:
    """Exponentials that stay above 0 and finite: the tails of a t on the scale of logarithms leave no float out."""
    return np.exp(np.clip(logs, -_LARGEST, _LARGEST))


def _log_base(statistics: Moments) -> np.ndarray:
    """−Σ log x, per group and column: what turns a density of log x into one of x."""
    return -(statistics.first_sum.value + statistics.anchor * statistics.weight)

"""Gamma distribution: conjugate prior of a rate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, xlogy

from tallybayes._utils.parameter_checks import random_generator
from tallybayes.distributions.beta import base_measure_by_column
from tallybayes.distributions.elicitation import gamma_from_interval
from tallybayes.distributions.log_gamma import log_growth, stirling_remainder
from tallybayes.distributions.parameter_distribution import (
    Interval,
    ParameterDistribution,
    as_float,
    as_size,
    check_positive,
    tail_probabilities,
)
from tallybayes.errors import DataError
from tallybayes.statistics.totals import Totals
from tallybayes.typing import RandomState


@dataclass(frozen=True, eq=False, repr=False)
class Gamma(ParameterDistribution):
    """Gamma(a, b) with density ∝ λ^(a−1) e^(−bλ): conjugate prior of `Poisson`.

    Parameters
    ----------
    shape, rate : float or array broadcasting to (*given, columns)
        The parameters a and b, as pseudo-counts: b rows with a total of a.

    Examples
    --------
    >>> import tallybayes as tb
    >>> tb.Gamma(3, 2).update(tb.Totals(weight=[4.0], total=[9.0])).mean()
    array([2.])
    """

    shape: np.ndarray
    rate: np.ndarray

    strength_fields: ClassVar[tuple[str, ...]] = ("shape", "rate")
    count_fields: ClassVar[tuple[str, ...]] = ("shape",)

    if TYPE_CHECKING:  # the constructor accepts any array-like and stores arrays

        def __init__(self, shape: npt.ArrayLike, rate: npt.ArrayLike) -> None: ...

    def __post_init__(self) -> None:
        self._freeze("shape", "rate")
        self._allow_limits("shape", "rate")

    @classmethod
    def from_mean(cls, mean: npt.ArrayLike, strength: npt.ArrayLike) -> Gamma:
        """Return the Gamma distribution with this mean and a prior strength of `strength` rows.

        Examples
        --------
        >>> import tallybayes as tb
        >>> tb.Gamma.from_mean(3.0, 2)
        Gamma(6, 2)
        """
        check_positive("Gamma.from_mean", mean=mean, strength=strength)
        return cls(np.asarray(mean, dtype=float) * strength, strength)

    @classmethod
    def from_interval(cls, low: float, high: float, mass: float = 0.95) -> Gamma:
        """Return the Gamma distribution whose equal-tailed interval with probability `mass` is (low, high).

        Examples
        --------
        >>> import tallybayes as tb
        >>> low, high = tb.Gamma.from_interval(1.0, 4.0).interval()
        >>> round(low, 6), round(high, 6)
        (1.0, 4.0)
        """
        return cls(*gamma_from_interval(low, high, tail_probabilities(mass)))

    def update(self, statistics: Totals) -> Gamma:
        """Add the total to the shape and the weight of the rows to the rate."""
        if not isinstance(statistics, Totals):
            raise DataError.no_statistics(statistics)
        shape, rate = self._broadcast(statistics.total.shape, "shape", "rate")
        return Gamma(shape + statistics.total, rate + statistics.weight)

    def mean(self) -> Any:
        """Return E[λ] = a / b."""
        self._require_proper("mean")
        return as_float(self.shape / self.rate)

    def variance(self) -> Any:
        """Return Var λ = a / b²."""
        self._require_proper("variance")
        return as_float(self.shape / self.rate**2)

    def mode(self) -> Any:
        """Return the mode (a − 1) / b, or 0 if a < 1."""
        self._require_proper("mode")
        return as_float(np.maximum(self.shape - 1, 0.0) / self.rate)

    def interval(self, mass: float = 0.95) -> Interval:
        """Return the equal-tailed credible interval of λ."""
        self._require_proper("interval")
        from scipy.special import gammaincinv

        return Interval(*(as_float(gammaincinv(self.shape, tail) / self.rate) for tail in tail_probabilities(mass)))

    def sample(self, n: int | tuple[int, ...] = (), *, random_state: RandomState = None) -> Any:
        """Draw random rates λ."""
        self._require_proper("sample")
        shape = as_size(n) + np.broadcast_shapes(self.shape.shape, self.rate.shape)
        return as_float(random_generator(random_state).gamma(self.shape, 1 / self.rate, shape))

    def log_prob(self, parameter: npt.ArrayLike) -> Any:
        """Return log p(λ): −inf if λ < 0."""
        self._require_proper("log_prob")
        rate = np.asarray(parameter, dtype=float)
        safe = np.maximum(rate, 0.0)
        density = xlogy(self.shape, self.rate) + xlogy(self.shape - 1, safe) - self.rate * safe - gammaln(self.shape)
        return as_float(np.where(rate >= 0, density, -np.inf))

    def log_evidence(self, statistics: Totals) -> Any:
        """Return log Γ(a + Σx) − log Γ(a) + a log b − (a + Σx) log(b + n) − Σ log x!, per group and column."""
        self._require_proper("log_evidence")
        if not isinstance(statistics, Totals):
            raise DataError.no_statistics(statistics)
        total, rows = statistics.total, statistics.column_weights()
        a, b = self._broadcast(total.shape, "shape", "rate")
        growth = log_growth(a, total)
        remainder = stirling_remainder(a + total) - stirling_remainder(a)
        log_rate = np.log((a + total) / (b + rows))
        # The Stirling terms of the two log Γ, which grow like n log n, cancel and are left out.
        ratio = total * (log_rate - 1) + a * (growth - log_growth(b, rows)) - 0.5 * growth + remainder
        return as_float(ratio + base_measure_by_column(statistics))

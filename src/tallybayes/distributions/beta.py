"""Beta distribution: conjugate prior of a probability."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import betaln, xlog1py, xlogy

from tallybayes._utils.parameter_checks import random_generator
from tallybayes.distributions.elicitation import beta_from_interval
from tallybayes.distributions.log_gamma import log_dirichlet_norm_ratio
from tallybayes.distributions.parameter_distribution import (
    Interval,
    ParameterDistribution,
    as_float,
    as_size,
    check_positive,
    tail_probabilities,
)
from tallybayes.errors import DataError, PriorError
from tallybayes.statistics.counts import Segments
from tallybayes.statistics.totals import Totals
from tallybayes.typing import RandomState


@dataclass(frozen=True, eq=False, repr=False)
class Beta(ParameterDistribution):
    """Beta(a, b) with density ∝ θ^(a−1) (1−θ)^(b−1): conjugate prior of `Bernoulli` and `Binomial`.

    Parameters
    ----------
    alpha, beta : float or array broadcasting to (*given, columns)
        The parameters a and b, as pseudo-counts of successes and failures. The posterior mean uses a and b, the
        posterior mode a − 1 and b − 1.

    Examples
    --------
    >>> import tallybayes as tb
    >>> prior = tb.Beta(2, 2)
    >>> posterior = prior.update(tb.Totals(weight=[2.0], total=[2.0]))
    >>> posterior.mode(), posterior.mean().round(4)
    (array([0.75]), array([0.6667]))
    """

    alpha: np.ndarray
    beta: np.ndarray

    strength_fields: ClassVar[tuple[str, ...]] = ("alpha", "beta")
    count_fields: ClassVar[tuple[str, ...]] = ("alpha", "beta")

    if TYPE_CHECKING:  # the constructor accepts any array-like and stores arrays

        def __init__(self, alpha: npt.ArrayLike, beta: npt.ArrayLike) -> None: ...

    def __post_init__(self) -> None:
        self._freeze("alpha", "beta")
        self._allow_limits("alpha", "beta")

    @classmethod
    def from_mean(cls, mean: npt.ArrayLike, strength: npt.ArrayLike) -> Beta:
        """Return the Beta distribution with this mean and a prior strength of `strength` observations.

        Examples
        --------
        >>> import tallybayes as tb
        >>> tb.Beta.from_mean(0.25, 8)
        Beta(2, 6)
        """
        mean = np.asarray(mean, dtype=float)
        if not ((mean > 0) & (mean < 1)).all():
            raise PriorError.wrong_parameter("Beta.from_mean", "mean", mean, "numbers above 0 and below 1")
        check_positive("Beta.from_mean", strength=strength)
        return cls(mean * strength, (1 - mean) * strength)

    @classmethod
    def from_interval(cls, low: float, high: float, mass: float = 0.95) -> Beta:
        """Return the Beta distribution whose equal-tailed interval with probability `mass` is (low, high).

        Examples
        --------
        >>> import tallybayes as tb
        >>> low, high = tb.Beta.from_interval(0.2, 0.4, 0.9).interval(0.9)
        >>> round(low, 6), round(high, 6)
        (0.2, 0.4)
        """
        return cls(*beta_from_interval(low, high, tail_probabilities(mass)))

    def update(self, statistics: Totals) -> Beta:
        """Add the counts of successes and failures to a and b."""
        if not isinstance(statistics, Totals):
            raise DataError.no_statistics(statistics)
        a, b = self._broadcast(statistics.total.shape, "alpha", "beta")
        return Beta(a + statistics.total, b + statistics.failures)

    def mean(self) -> Any:
        """Return E[θ] = a / (a + b)."""
        self._require_proper("mean")
        return as_float(self.alpha / (self.alpha + self.beta))

    def variance(self) -> Any:
        """Return Var θ = a b / ((a + b)² (a + b + 1))."""
        self._require_proper("variance")
        total = self.alpha + self.beta
        return as_float(self.alpha / total * (self.beta / total) / (total + 1))

    def mode(self) -> Any:
        """Return the mode (a − 1) / (a + b − 2), with a − 1 and b − 1 clipped at 0; ½ for Beta(1, 1).

        Raise PriorError if both parameters are below 1: the density is unbounded at 0 and at 1.
        """
        self._require_proper("mode")
        if ((self.alpha < 1) & (self.beta < 1)).any():
            raise self._without_mode()
        return self.mode_or_boundary()

    def mode_or_boundary(self) -> Any:
        """Return the mode. If neither parameter exceeds 1: 0 or 1, whichever has the larger parameter; ½ if equal."""
        a = np.maximum(self.alpha - 1, 0.0)
        b = np.maximum(self.beta - 1, 0.0)
        flat = a + b == 0
        edge = 0.5 * (1 + np.sign(self.alpha - self.beta))
        return as_float(np.where(flat, edge, a / np.where(flat, 1.0, a + b)))

    def interval(self, mass: float = 0.95) -> Interval:
        """Return the equal-tailed credible interval of θ."""
        self._require_proper("interval")
        from scipy.special import betaincinv

        return Interval(*(as_float(betaincinv(self.alpha, self.beta, tail)) for tail in tail_probabilities(mass)))

    def sample(self, n: int | tuple[int, ...] = (), *, random_state: RandomState = None) -> Any:
        """Draw random probabilities θ."""
        self._require_proper("sample")
        shape = as_size(n) + np.broadcast_shapes(self.alpha.shape, self.beta.shape)
        return as_float(random_generator(random_state).beta(self.alpha, self.beta, shape))

    def log_prob(self, parameter: npt.ArrayLike) -> Any:
        """Return log p(θ): −inf if θ is not in [0, 1]."""
        self._require_proper("log_prob")
        theta = np.asarray(parameter, dtype=float)
        inside = (theta >= 0) & (theta <= 1)
        safe = np.where(inside, theta, 0.5)
        density = xlogy(self.alpha - 1, safe) + xlog1py(self.beta - 1, -safe) - betaln(self.alpha, self.beta)
        return as_float(np.where(inside, density, -np.inf))

    def log_evidence(self, statistics: Totals) -> Any:
        """Return log B(a + s, b + f) − log B(a, b) + Σ log h(x), per group and column."""
        self._require_proper("log_evidence")
        if not isinstance(statistics, Totals):
            raise DataError.no_statistics(statistics)
        start = np.stack([*self._broadcast(statistics.total.shape, "alpha", "beta")], axis=-1)
        steps = np.stack([statistics.total, statistics.failures], axis=-1)
        ratio = log_dirichlet_norm_ratio(start, steps, Segments([2]))[..., 0]
        return as_float(ratio + base_measure_by_column(statistics))


def base_measure_by_column(statistics: Totals) -> np.ndarray:
    """Return Σ log h(x) per column. A value that is known per group only is assigned to the first column."""
    if statistics.log_base_measure.shape == statistics.total.shape:
        return statistics.log_base_measure
    by_column = np.zeros(statistics.total.shape)
    by_column[..., :1] = statistics.log_base_measure
    return by_column

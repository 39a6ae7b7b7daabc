"""Beta: the belief about a probability."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.special import betaln, xlog1py, xlogy

from tallybayes.distributions.elicitation import beta_from_interval
from tallybayes.distributions.log_gamma import log_rising_shares
from tallybayes.distributions.parameter_distribution import (
    Interval,
    ParameterDistribution,
    as_float,
    as_size,
    broadcast_prior,
    tail_probabilities,
)
from tallybayes.errors import PriorError
from tallybayes.statistics.segments import Segments
from tallybayes.statistics.totals import Totals
from tallybayes.typing import RandomState


@dataclass(frozen=True, eq=False, repr=False)
class Beta(ParameterDistribution):
    """Beta(a, b), density ∝ θ^(a−1) (1−θ)^(b−1): the conjugate belief of `Bernoulli` and `Binomial`.

    Parameters
    ----------
    successes, failures : float or array broadcasting to (*given, columns)
        The parameters a and b. As pseudo-counts, a posterior mean counts all of them, a mode one less of each.

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

    if TYPE_CHECKING:  # arrays are made of whatever is given

        def __init__(self, alpha: npt.ArrayLike, beta: npt.ArrayLike) -> None: ...

    def __post_init__(self) -> None:
        self._set(alpha=self.alpha, beta=self.beta)
        self._allow_limits("alpha", "beta")

    @classmethod
    def from_mean(cls, mean: npt.ArrayLike, strength: npt.ArrayLike) -> Beta:
        """The Beta with this mean, worth `strength` observations.

        Examples
        --------
        >>> import tallybayes as tb
        >>> tb.Beta.from_mean(0.25, 8)
        Beta(2, 6)
        """
        mean = np.asarray(mean, dtype=float)
        if not ((mean > 0) & (mean < 1)).all():
            raise PriorError(f"Beta.from_mean needs 0 < mean < 1, found {as_float(mean)}.")
        found = cls(mean * strength, (1 - mean) * strength)
        found._require_positive("alpha", "beta")
        return found

    @classmethod
    def from_interval(cls, low: float, high: float, mass: float = 0.95) -> Beta:
        """The Beta whose equal-tailed interval of that mass runs from `low` to `high`.

        Examples
        --------
        >>> import tallybayes as tb
        >>> low, high = tb.Beta.from_interval(0.2, 0.4, 0.9).interval(0.9)
        >>> round(low, 6), round(high, 6)
        (0.2, 0.4)
        """
        return cls(*beta_from_interval(low, high, tail_probabilities(mass)))

    def update(self, statistics: Totals) -> Beta:
        """Add the successes and the failures."""
        shape = statistics.total.shape
        return Beta(
            broadcast_prior("Beta", self.alpha, shape) + statistics.total,
            broadcast_prior("Beta", self.beta, shape) + statistics.failures,
        )

    def mean(self) -> Any:
        """E[θ] = a / (a + b)."""
        self._require_proper("mean")
        return as_float(self.alpha / (self.alpha + self.beta))

    def variance(self) -> Any:
        """Var θ = a b / ((a + b)² (a + b + 1))."""
        self._require_proper("variance")
        total = self.alpha + self.beta
        return as_float(self.alpha / total * (self.beta / total) / (total + 1))

    def mode(self) -> Any:
        """(a − 1) / (a + b − 2), with a − 1 and b − 1 not below 0; ½ for Beta(1, 1), where every θ is as probable.

        If both are below 1 there is none: the density has no upper bound at either end.
        """
        self._require_proper("mode")
        if ((self.alpha < 1) & (self.beta < 1)).any():
            raise self._without_mode()
        return self.mode_or_boundary()

    def mode_or_boundary(self) -> Any:
        """The mode; if neither parameter exceeds 1, the end with the larger one, or ½ if they are equal."""
        a, b = np.maximum(self.alpha - 1, 0.0), np.maximum(self.beta - 1, 0.0)
        flat = a + b == 0
        edge = 0.5 * (1 + np.sign(self.alpha - self.beta))
        return as_float(np.where(flat, edge, a / np.where(flat, 1.0, a + b)))

    def interval(self, mass: float = 0.95) -> Interval:
        """The equal-tailed credible interval of θ."""
        self._require_proper("interval")
        from scipy.special import betaincinv

        return Interval(*(as_float(betaincinv(self.alpha, self.beta, tail)) for tail in tail_probabilities(mass)))

    def sample(self, n: int | tuple[int, ...] = (), *, random_state: RandomState = None) -> Any:
        """Probabilities θ drawn from this belief."""
        self._require_proper("sample")
        shape = as_size(n) + np.broadcast_shapes(self.alpha.shape, self.beta.shape)
        return as_float(np.random.default_rng(random_state).beta(self.alpha, self.beta, shape))

    def log_prob(self, parameter: npt.ArrayLike) -> Any:
        """log p(θ), −inf outside [0, 1]."""
        self._require_proper("log_prob")
        theta = np.asarray(parameter, dtype=float)
        inside = (theta >= 0) & (theta <= 1)
        safe = np.where(inside, theta, 0.5)
        density = xlogy(self.alpha - 1, safe) + xlog1py(self.beta - 1, -safe) - betaln(self.alpha, self.beta)
        return as_float(np.where(inside, density, -np.inf))

    def log_evidence(self, statistics: Totals) -> Any:
        """log B(a + s, b + f) − log B(a, b) + Σ log h(x), per group and column."""
        self._require_proper("log_evidence")
        successes, failures = statistics.total, statistics.failures
        a, b = (broadcast_prior("Beta", part, successes.shape) for part in (self.alpha, self.beta))
        start, steps = np.stack([a, b], axis=-1), np.stack([successes, failures], axis=-1)
        return as_float(log_rising_shares(start, steps, Segments([2]))[..., 0] + spread_base(statistics))

    def mode_matched(self) -> Beta:
        """Beta(a + 1, b + 1): its posterior mode is the posterior mean under this one."""
        return Beta(self.alpha + 1, self.beta + 1)

    def scaled(self, factor: float) -> Beta:
        """The same expectations, worth `factor` times as many observations."""
        return Beta(self.alpha * factor, self.beta * factor)

    def column(self, index: int) -> Beta:
        """The belief about one column."""
        return Beta(*(part[..., index] for part in np.broadcast_arrays(self.alpha, self.beta)))


def spread_base(statistics: Totals) -> np.ndarray:
    """Σ log h(x) per column: where it is known per group only, it stands in the first column."""
    if statistics.log_base_measure.shape == statistics.total.shape:
        return statistics.log_base_measure
    spread = np.zeros(statistics.total.shape)
    spread[..., :1] = statistics.log_base_measure
    return spread

"""Poisson: columns of event counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.special import gammaln, xlogy

from tallybayes.distributions.gamma import Gamma
from tallybayes.distributions.log_gamma import log_choose
from tallybayes.distributions.parameter_distribution import ParameterDistribution
from tallybayes.families._shared.block_sums import sum_block
from tallybayes.families._shared.blocks import Block
from tallybayes.families.estimates import read_estimate
from tallybayes.families.family import Family, broadcast_over_groups, check_parameters_valid, ratio, zero_where_missing
from tallybayes.statistics.totals import Totals

if TYPE_CHECKING:
    from tallybayes.statistics.sufficient_statistics import Statistics


@dataclass(frozen=True, eq=False, repr=False)
class Poisson(Family):
    """A column of counts: p(x) = λ^x e^(−λ) / x!.

    Examples
    --------
    >>> import tallybayes as tb
    >>> tb.fit_distribution([3, 5, 4], tb.Poisson()).estimate("mle")
    4.0
    """

    conjugate_prior: ClassVar[type[ParameterDistribution]] = Gamma
    accepts_sparse: ClassVar[bool] = True
    nonnegative_cells: ClassVar[bool] = True
    sums_cells: ClassVar[bool] = True
    allowed_values: ClassVar[str] = "a whole number of at least 0 (or missing)"

    def collect(
        self,
        block: Block,
        group: np.ndarray | None = None,
        n_groups: int = 1,
        weight: np.ndarray | None = None,
        *,
        like: Statistics | None = None,
    ) -> Totals:
        """Return the sums of rows, events and log factorials."""
        return Totals(*sum_block(block, "poisson", group, n_groups, weight))

    def maximum_likelihood(self, statistics: Totals) -> np.ndarray:
        """Return the mean number of events."""
        return ratio(statistics.total, statistics.column_weights())

    def default_prior(self, statistics: Totals, estimate: str) -> Gamma:
        """Return a Gamma prior of one row at the pooled mean m = (Σx + ½)/(N + 1).

        This is Gamma(m, 1) for the posterior mean and Gamma(1 + m, 1) for the mode.
        """
        pooled = statistics.pool_groups()
        m = (pooled.total + 0.5) / (pooled.weight + 1)
        return Gamma(1 + m, 1) if read_estimate(estimate).takes_mode else Gamma(m, 1)

    def as_parameters(self, parameters: Any, statistics: Totals) -> np.ndarray:
        """Return rates with an axis for columns; raise EstimateError if one is negative or infinite."""
        rate = super().as_parameters(parameters, statistics)
        valid = (rate >= 0) & np.isfinite(rate)
        return check_parameters_valid(self, parameters, rate, valid, "finite rates of at least 0")

    def log_likelihood(self, parameters: np.ndarray, statistics: Totals) -> np.ndarray:
        """Return Σ log p(x | λ)."""
        return xlogy(statistics.total, parameters) - statistics.weight * parameters + statistics.log_base_measure

    def log_prob(self, parameters: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Return log p(x | λ) of every cell."""
        x = broadcast_over_groups(x, parameters.ndim - 1)
        return zero_where_missing(xlogy(x, parameters) - parameters - gammaln(x + 1), x)

    def log_predictive(self, posterior: Gamma, x: np.ndarray) -> np.ndarray:
        """Return log p(x | data), the negative binomial distribution; repeated small counts are computed once."""
        a, b = np.broadcast_arrays(posterior.shape, posterior.rate)
        x = broadcast_over_groups(x, a.ndim - 1)
        events = np.where(np.isnan(x), 0.0, x)
        if x.ndim == 3 and x.shape[2:] == a.shape[1:] and _are_small_counts(events):
            codes = events.astype(np.intp)
            table = _log_negative_binomial(a, b, np.arange(codes.max(initial=0) + 1.0)[:, None, None])
            terms = table[codes, np.arange(len(a))[:, None], np.arange(x.shape[2])]
        else:
            terms = _log_negative_binomial(a, b, events)
        return zero_where_missing(terms, x)

    def sample(self, parameters: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
        """Return random numbers of events."""
        return rng.poisson(parameters, (n, *parameters.shape))


def _log_negative_binomial(shape: np.ndarray, rate: np.ndarray, events: np.ndarray) -> np.ndarray:
    """Return log p(events) under Gamma distributions of the rate."""
    return np.asarray(log_choose(shape, events) - shape * np.log1p(1 / rate) - events * np.log1p(rate))


def _are_small_counts(x: np.ndarray) -> bool:
    """Return whether all numbers are whole and far smaller than their rows are many."""
    return len(x) > 0 and x.min() >= 0 and x.max() < len(x) / 4 and bool((x == np.floor(x)).all())

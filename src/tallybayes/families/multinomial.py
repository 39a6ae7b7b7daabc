"""Multinomial and Dirichlet-multinomial: rows of counts over one vocabulary."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.special import gammaln, xlogy

from tallybayes.distributions.dirichlet import Dirichlet
from tallybayes.distributions.log_gamma import log_choose
from tallybayes.distributions.parameter_distribution import ParameterDistribution
from tallybayes.families._shared.block_sums import sum_block
from tallybayes.families._shared.blocks import Block
from tallybayes.families.family import Family, broadcast_over_groups, ratio
from tallybayes.statistics.totals import Totals

if TYPE_CHECKING:
    from tallybayes.statistics.sufficient_statistics import Statistics


@dataclass(frozen=True, eq=False, repr=False)
class Multinomial(Family):
    """A row of counts over one vocabulary, given its sum N: p(x) = N! / Π x_j! · Π θ_j^x_j.

    The predictive uses the posterior mean of θ for every token, so it is linear in the counts. `DirichletMultinomial`
    uses the exact compound distribution.

    Examples
    --------
    >>> import tallybayes as tb
    >>> tb.fit_distribution([[2, 1, 0], [1, 0, 0]], tb.Multinomial()).estimate("mle")
    array([0.75, 0.25, 0.  ])
    """

    conjugate_prior: ClassVar[type[ParameterDistribution]] = Dirichlet
    columnwise: ClassVar[bool] = False
    accepts_missing: ClassVar[bool] = False
    is_bag_of_words: ClassVar[bool] = True
    accepts_sparse: ClassVar[bool] = True
    nonnegative_cells: ClassVar[bool] = True
    sums_cells: ClassVar[bool] = True
    allowed_values: ClassVar[str] = "a finite number of at least 0 (missing cells are not allowed in a multinomial row)"

    @property
    def statistics_key(self) -> tuple[Any, ...]:
        """Return the key shared with `DirichletMultinomial`."""
        return ("Multinomial",)

    def collect(
        self,
        block: Block,
        group: np.ndarray | None = None,
        n_groups: int = 1,
        weight: np.ndarray | None = None,
        *,
        like: Statistics | None = None,
    ) -> Totals:
        """Return the sums of the columns and of the log multinomial coefficients."""
        return Totals(*sum_block(block, "multinomial", group, n_groups, weight))

    def maximum_likelihood(self, statistics: Totals) -> np.ndarray:
        """Return the relative frequencies of the tokens."""
        total = statistics.total
        return ratio(total, np.broadcast_to(total.sum(axis=-1, keepdims=True), total.shape))

    def n_parameters(self, statistics: Totals) -> int:
        """Return the number of columns minus 1, per group."""
        return statistics.total.size - math.prod(statistics.given_shape)

    def row_weight(self, statistics: Totals) -> np.ndarray:
        """Return the number of rows of every group; 0 for groups without tokens."""
        return np.where(statistics.total.sum(axis=-1) > 0, statistics.weight[..., 0], 0.0)

    def log_likelihood(self, parameters: np.ndarray, statistics: Totals) -> np.ndarray:
        """Return Σ log p(row | θ), per group."""
        return xlogy(statistics.total, parameters).sum(axis=-1) + statistics.log_base_measure.sum(axis=-1)

    def log_prob(self, parameters: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Return log p(row | θ)."""
        x = broadcast_over_groups(x, parameters.ndim - 1)
        return xlogy(x, parameters).sum(axis=-1) + _log_coefficient(x)

    def log_predictive(self, posterior: Dirichlet, x: np.ndarray) -> np.ndarray:
        """Return log p(row | θ), with θ at its posterior mean."""
        return self.log_prob(posterior.mean(), x)

    def sample(self, parameters: np.ndarray, n: int, rng: np.random.Generator, size: int = 1) -> np.ndarray:
        """Return random rows of `size` tokens."""
        return rng.multinomial(size, parameters, (n, *parameters.shape[:-1]))


@dataclass(frozen=True, eq=False, repr=False)
class DirichletMultinomial(Multinomial):
    """`Multinomial` with the exact compound predictive distribution, which allows for bursts of words.

    Examples
    --------
    >>> import numpy as np, tallybayes as tb
    >>> urn = tb.fit_distribution([[2, 1], [1, 0]], tb.DirichletMultinomial())
    >>> np.exp(urn.predictive(tb.Dirichlet(1)).log_prob([[2, 0], [1, 1], [0, 2]])).round(4)
    array([0.4762, 0.381 , 0.1429])
    """

    def log_predictive(self, posterior: Dirichlet, x: np.ndarray) -> np.ndarray:
        """Return log p(row | data), with θ integrated out for the whole row."""
        alpha = posterior.concentration
        x = broadcast_over_groups(x, alpha.ndim - 1)
        return log_choose(alpha, x).sum(axis=-1) - log_choose(alpha.sum(axis=-1), x.sum(axis=-1))


def _log_coefficient(x: np.ndarray) -> np.ndarray:
    """Return the log multinomial coefficient of every row."""
    return gammaln(x.sum(axis=-1) + 1) - gammaln(x + 1).sum(axis=-1)

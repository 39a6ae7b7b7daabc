"""Binomial: columns of numbers of successes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.special import gammaln, xlog1py, xlogy

from tallybayes import kernels
from tallybayes._utils.parameter_checks import check_count
from tallybayes.distributions.beta import Beta
from tallybayes.distributions.log_gamma import log_choose
from tallybayes.distributions.parameter_distribution import ParameterDistribution
from tallybayes.errors import DataError
from tallybayes.families._shared.blocks import Block, Dense, dense, per_column
from tallybayes.families.bernoulli import Bernoulli
from tallybayes.families.family import Parameters, broadcast_over_groups, zero_where_missing
from tallybayes.statistics.totals import Totals

if TYPE_CHECKING:
    from tallybayes.statistics.sufficient_statistics import Statistics


@dataclass(frozen=True, eq=False, repr=False)
class Binomial(Bernoulli):
    """A column of numbers of successes in `n` trials: p(x) = C(n, x) θ^x (1 − θ)^(n − x).

    Parameters
    ----------
    n : int
        Number of trials of every cell.

    Examples
    --------
    >>> import tallybayes as tb
    >>> round(tb.fit_distribution([55], tb.Binomial(100)).log_evidence(tb.Beta(2, 2)), 3)
    -4.229
    """

    n: int

    accepts_sparse: ClassVar[bool] = False
    sums_cells: ClassVar[bool] = True
    transforms: ClassVar[bool] = True
    is_binary: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_count("n of Binomial", self.n)
        if self.success is not None:
            raise DataError.wrong_type("success of Binomial", repr(self.success), "None: its cells are numbers")

    @property
    def allowed_values(self) -> str:  # type: ignore[override]
        """Return the description of valid cells."""
        return f"a whole number from 0 to {self.n} (or missing)"

    @property
    def statistics_key(self) -> tuple[Any, ...]:
        """Return the key of the statistics, which depend on n."""
        return ("Binomial", int(self.n))

    def collect(
        self,
        block: Block,
        group: np.ndarray | None = None,
        n_groups: int = 1,
        weight: np.ndarray | None = None,
        *,
        like: Statistics | None = None,
    ) -> Totals:
        """Return the sums of trials, successes and log coefficients log C(n, x)."""
        columns = dense(block, "Binomial")
        rows, total, successes_base = kernels.sum_dense(columns, "poisson", group, n_groups, weight)
        _, failures, failures_base = kernels.sum_dense(self._failures(columns), "poisson", group, n_groups, weight)
        log_base = rows * gammaln(self.n + 1) + successes_base + failures_base
        return Totals(rows * self.n, total, log_base, failures)

    def row_weight(self, statistics: Totals) -> np.ndarray:
        """Return the number of rows of every column; a row is `n` trials."""
        return super().row_weight(statistics) / self.n

    def mean(self, parameters: Parameters | ParameterDistribution) -> np.ndarray:
        """Return the mean number of successes."""
        return self.n * super().mean(parameters)

    def _failures(self, columns: Dense) -> Dense:
        """Return the numbers of failures."""
        return per_column(lambda cells: self.n - cells.astype(np.float64), columns)

    def log_prob(self, parameters: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Return log p(x | θ) of every cell."""
        x = broadcast_over_groups(x, parameters.ndim - 1)
        terms = xlogy(x, parameters) + xlog1py(self.n - x, -parameters) + self._log_coefficient(x)
        return zero_where_missing(terms, x)

    def log_predictive(self, posterior: Beta, x: np.ndarray) -> np.ndarray:
        """Return log p(x | data), the beta-binomial distribution."""
        a, b = np.broadcast_arrays(posterior.alpha, posterior.beta)
        x = broadcast_over_groups(x, a.ndim - 1)
        successes = np.where(np.isnan(x), 0.0, x)
        return zero_where_missing(
            log_choose(a, successes) + log_choose(b, self.n - successes) - log_choose(a + b, self.n), x
        )

    def _log_coefficient(self, x: np.ndarray) -> np.ndarray:
        """Return log C(n, x)."""
        return gammaln(self.n + 1) - gammaln(x + 1) - gammaln(self.n - x + 1)

    def sample(self, parameters: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
        """Return random numbers of successes."""
        return rng.binomial(self.n, parameters, (n, *parameters.shape))

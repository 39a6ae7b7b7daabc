"""Binomial: columns of numbers of successes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.special import bdtr, gammaln, xlog1py, xlogy

from tallybayes import kernels
from tallybayes.distributions.beta import Beta
from tallybayes.distributions.log_gamma import log_choose
from tallybayes.errors import DataError
from tallybayes.families._shared.blocks import Block, Dense, dense
from tallybayes.families._shared.log_prob_forms import LogTableForm
from tallybayes.families._shared.sql_aggregates import Expression
from tallybayes.families.bernoulli import Bernoulli, codes_of
from tallybayes.families.family import broadcast_over_groups, zero_where_missing
from tallybayes.statistics.segments import Segments
from tallybayes.statistics.totals import Totals

if TYPE_CHECKING:
    from tallybayes.statistics.sufficient_statistics import Statistics

_MAX_TABLE_SUCCESSES = 256  # number of trials up to which log probabilities are tabulated


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

    def __post_init__(self) -> None:
        if not isinstance(self.n, int | np.integer) or self.n < 1:
            raise DataError.wrong_type("n of Binomial", repr(self.n), "a whole number of at least 1")
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

    def out_of_support(self, x: np.ndarray) -> np.ndarray:
        """Return which cells are not integers from 0 to n."""
        return (x < 0) | (x > self.n) | (x != np.floor(x))

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

    def mean(self, parameters: Any) -> np.ndarray:
        """Return the mean number of successes."""
        return self.n * super().mean(parameters)

    def _failures(self, columns: Dense) -> Dense:
        """Return the numbers of failures."""
        if isinstance(columns, np.ndarray):
            return self.n - columns.astype(np.float64)
        return [self.n - column.astype(np.float64) for column in columns]

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

    def transform(self, columns: Dense) -> Dense:
        """Return numbers of successes as codes, −1 where missing."""
        return codes_of(columns) if isinstance(columns, np.ndarray) else [codes_of(column) for column in columns]

    def sql_expression(self, column: Expression) -> Expression:
        """Return the number of successes."""
        return column

    def log_prob_form(self, parameters: np.ndarray) -> LogTableForm | None:  # type: ignore[override]
        """Return the table of log p over all numbers of successes, or None for large n."""
        return self._tabulate(self.log_prob, parameters, np.shape(parameters))

    def log_predictive_form(self, posterior: Beta) -> LogTableForm | None:  # type: ignore[override]
        """Return the table of the beta-binomial log probabilities, or None for large n."""
        shape = np.broadcast_shapes(np.shape(posterior.alpha), np.shape(posterior.beta))
        return self._tabulate(self.log_predictive, posterior, shape)

    def _tabulate(self, score: Any, parameters: Any, shape: tuple[int, ...]) -> LogTableForm | None:
        """Return the table of a log probability over all numbers of successes, or None for large n."""
        if self.n >= _MAX_TABLE_SUCCESSES:
            return None
        successes = np.arange(self.n + 1.0)[:, None].repeat(shape[-1], axis=1)
        log_p = np.moveaxis(score(parameters, successes), 0, -1)  # (*given, columns, successes)
        return LogTableForm(log_p.reshape(*shape[:-1], -1), Segments(np.full(shape[-1], self.n + 1)))

    def _log_coefficient(self, x: np.ndarray) -> np.ndarray:
        """Return log C(n, x)."""
        return gammaln(self.n + 1) - gammaln(x + 1) - gammaln(self.n - x + 1)

    def cdf(self, parameters: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Return P(at most x successes)."""
        successes = np.minimum(np.floor(broadcast_over_groups(x, parameters.ndim - 1)), self.n)
        return np.where(successes < 0, 0.0, bdtr(np.maximum(successes, 0.0), self.n, parameters))

    def sample(self, parameters: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
        """Return random numbers of successes."""
        return rng.binomial(self.n, parameters, (n, *parameters.shape))

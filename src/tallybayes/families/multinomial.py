"""Multinomial and Dirichlet-multinomial: rows of counts over one vocabulary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.special import gammaln, kl_div, xlogy

from tallybayes.distributions.dirichlet import Dirichlet
from tallybayes.distributions.log_gamma import log_choose, log_rising
from tallybayes.families._shared.blocks import Block, SparseRows, compressed
from tallybayes.families._shared.leave_one_out_counts import GroupStatistics, RemovedRows, token_leave_one_out
from tallybayes.families._shared.log_prob_forms import LinearLogForm, PolyaUrnForm
from tallybayes.families.bernoulli import sum_block
from tallybayes.families.estimates import read_estimate
from tallybayes.families.family import Family, broadcast_over_groups, ratio
from tallybayes.kernels.base_measure import log_base_csr
from tallybayes.statistics.totals import Totals

if TYPE_CHECKING:
    from tallybayes.statistics.sufficient_statistics import Statistics

_MOST_COLUMNS = 64  # what a row weighs at most beside other columns, where a mixture starts


@dataclass(frozen=True, eq=False, repr=False)
class Multinomial(Family):
    """A row of counts over one vocabulary: p(x) = N! / Π x_j! · Π θ_j^x_j, given its sum N.

    The predictive uses the posterior mean of θ for every token, so it stays linear in the counts;
    `DirichletMultinomial` is the exact compound.

    Examples
    --------
    >>> import tallybayes as tb
    >>> tb.fit_distribution([[2, 1, 0], [1, 0, 0]], tb.Multinomial()).estimate("mle")
    array([0.75, 0.25, 0.  ])
    """

    conjugate_prior = Dirichlet
    columnwise: ClassVar[bool] = False
    accepts_missing: ClassVar[bool] = False
    is_bag_of_words: ClassVar[bool] = True
    accepts_sparse: ClassVar[bool] = True
    nonnegative_cells: ClassVar[bool] = True
    sums_cells: ClassVar[bool] = True
    allowed_values: ClassVar[str] = "a finite number of at least 0 (missing cells are not allowed in a multinomial row)"

    @property
    def statistics_key(self) -> tuple[Any, ...]:
        """The same statistics as `DirichletMultinomial`."""
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
        """Sum every column, and the logs of the rows' coefficients."""
        return Totals(*sum_block(block, "multinomial", group, n_groups, weight))

    def maximum_likelihood(self, statistics: Totals) -> np.ndarray:
        """The relative frequencies of the tokens."""
        total = statistics.total
        return ratio(total, np.broadcast_to(total.sum(axis=-1, keepdims=True), total.shape))

    def default_prior(self, statistics: Totals, estimate: str) -> Dirichlet:
        """One pseudo-count per column: Dirichlet(1) for the mean, Dirichlet(2) for the mode."""
        return self.pseudo_count_prior(1.0, estimate)

    def pseudo_count_prior(self, amount: float, estimate: str) -> Dirichlet:
        """So many of every column; one more of each where the mode is taken, which leaves one out."""
        return Dirichlet(amount + read_estimate(estimate).takes_mode)

    def n_numbers(self, n_columns: int) -> tuple[int, int]:
        """One total a column, twice while they are laid out; no weight or coefficient of its own."""
        return 2 * n_columns, 4 * n_columns

    def n_parameters(self, statistics: Totals) -> int:
        """One per group and column, less one a group: they sum to 1."""
        return statistics.total.size - int(np.prod(statistics.given_shape, dtype=np.int64))

    def row_weight(self, statistics: Totals) -> np.ndarray:
        """The rows of every group; none where no row has a token, for they say nothing."""
        return np.where(statistics.total.sum(axis=-1) > 0, statistics.weight[..., 0], 0.0)

    def log_likelihood(self, parameters: np.ndarray, statistics: Totals) -> np.ndarray:
        """Σ log p(row | θ), per group."""
        return xlogy(statistics.total, parameters).sum(axis=-1) + statistics.log_base_measure.sum(axis=-1)

    def log_prob(self, parameters: np.ndarray, x: np.ndarray) -> np.ndarray:
        """log p(row | θ)."""
        x = broadcast_over_groups(np.asarray(x, dtype=float), parameters.ndim - 1)
        return xlogy(x, parameters).sum(axis=-1) + _log_coefficient(x)

    def log_predictive(self, posterior: Dirichlet, x: np.ndarray) -> np.ndarray:
        """log p(row | θ at its posterior mean)."""
        return self.log_prob(posterior.mean(), x)

    def log_prob_form(self, parameters: np.ndarray) -> LinearLogForm:
        """Words that are absent add nothing."""
        with np.errstate(divide="ignore"):
            log_p = np.log(np.asarray(parameters, dtype=float))
        zero = np.where(np.isnan(log_p[..., :1]), np.nan, 0.0)  # a group without tokens knows none of its words
        return LinearLogForm(log_p, zero, "nonnegative", "multinomial")

    def log_predictive_form(self, posterior: Dirichlet) -> LinearLogForm | PolyaUrnForm:
        """As `form`, with θ at its posterior mean."""
        return self.log_prob_form(posterior.mean())

    def column_contributions(self, parameters: Any, x: np.ndarray, predictive: bool) -> np.ndarray:
        """Every word's share: x_j log θ_j; the coefficient, the same in all groups, is left out."""
        p = np.asarray(parameters.mean() if predictive else parameters)
        return xlogy(broadcast_over_groups(np.asarray(x, dtype=float), p.ndim - 1), p)

    def named_parameters(self, parameters: Any) -> dict[str, np.ndarray]:
        """Every word's share of the tokens; of a posterior, its mean."""
        return {"share": self.mean(parameters)}

    def kl_divergence(self, parameters: Any, other: Any) -> np.ndarray:
        """Of one token: every word's part in Σ p log p/q."""
        return kl_div(parameters, other)

    def sampling_options(self, statistics: Totals) -> dict[str, Any]:
        """The tokens of a typical row."""
        rows = float(statistics.weight.sum())
        return {"size": max(1, round(float(statistics.total.sum()) / rows)) if rows else 1}

    def leave_one_out_log_prob(self, counted: GroupStatistics, rows: RemovedRows) -> np.ndarray:
        """Every word's share of what is left."""
        left = token_leave_one_out(counted, rows)
        if left is None:
            return np.full((len(rows.group), 1), np.nan)
        x = left.rows.data
        terms = left.rows.sum_rows(np.where(x > 0, x * np.log(left.cells), 0.0))
        terms = terms + log_base_csr(left.rows.indptr, x, "multinomial")
        terms = terms - left.length * np.log(np.where(left.whole > 0, left.whole, np.nan))
        return np.where(left.length > 0, terms, 0.0)[:, None]

    def distance_features(self, cells: np.ndarray | SparseRows) -> tuple[SparseRows, float]:
        """Square roots of every word's share of its row, so that long rows are like short ones."""
        rows = cells if isinstance(cells, SparseRows) else compressed(cells)
        length = np.maximum(rows.sum_rows(rows.data), 1e-300)
        shares = rows.data / np.repeat(length, np.diff(rows.indptr))
        return rows._replace(data=np.sqrt(shares)), 1 / np.sqrt(min(max(rows.n_columns, 1), _MOST_COLUMNS))

    def sample(self, parameters: np.ndarray, n: int, rng: np.random.Generator, size: int = 1) -> np.ndarray:
        """Rows of `size` tokens."""
        return rng.multinomial(size, parameters, (n, *parameters.shape[:-1]))


@dataclass(frozen=True, eq=False, repr=False)
class DirichletMultinomial(Multinomial):
    """As `Multinomial`, but a row is predicted by the exact compound distribution, which allows for bursts.

    Examples
    --------
    >>> import numpy as np, tallybayes as tb
    >>> urn = tb.fit_distribution([[2, 1], [1, 0]], tb.DirichletMultinomial())
    >>> np.exp(urn.predictive(tb.Dirichlet(1)).log_prob([[2, 0], [1, 1], [0, 2]])).round(4)
    array([0.4762, 0.381 , 0.1429])
    """

    def log_predictive(self, posterior: Dirichlet, x: np.ndarray) -> np.ndarray:
        """log p(row | data), θ integrated out for the whole row."""
        alpha = np.asarray(posterior.concentration)
        x = broadcast_over_groups(np.asarray(x, dtype=float), alpha.ndim - 1)
        return log_choose(alpha, x).sum(axis=-1) - log_choose(alpha.sum(axis=-1), x.sum(axis=-1))

    def log_predictive_form(self, posterior: Dirichlet) -> PolyaUrnForm:
        """Absent words add nothing; the denominator goes by the row's sum."""
        alpha = np.asarray(posterior.concentration)
        nothing = np.broadcast_to(0.0, alpha.shape)
        return PolyaUrnForm(nothing, alpha, nothing, alpha.sum(axis=-1, keepdims=True))

    def leave_one_out_log_prob(self, counted: GroupStatistics, rows: RemovedRows) -> np.ndarray:
        """As the urn without the row would have it."""
        left = token_leave_one_out(counted, rows) if counted.estimate.integrates else None
        if left is None:
            return super().leave_one_out_log_prob(counted, rows)
        terms = left.rows.sum_rows(log_choose(left.cells, left.rows.data))
        return (terms - log_choose(left.whole, left.length))[:, None]

    def column_contributions(self, parameters: Any, x: np.ndarray, predictive: bool) -> np.ndarray:
        """Every word's share; the denominator, which the words have in common, by their share of the row."""
        if not predictive:
            return super().column_contributions(parameters, x, predictive)
        alpha = np.asarray(parameters.concentration)
        x = broadcast_over_groups(np.asarray(x, dtype=float), alpha.ndim - 1)
        length = x.sum(axis=-1, keepdims=True)
        common = log_rising(alpha.sum(axis=-1, keepdims=True), length)
        return log_rising(alpha, x) - common * x / np.where(length > 0, length, 1.0)


def _log_coefficient(x: np.ndarray) -> np.ndarray:
    return gammaln(x.sum(axis=-1) + 1) - gammaln(x + 1).sum(axis=-1)

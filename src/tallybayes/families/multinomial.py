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

_MAX_COLUMNS = 64  # bound on the weight of a row relative to other columns in k-means++


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

    def default_prior(self, statistics: Totals, estimate: str) -> Dirichlet:
        """Return Dirichlet(1) for the posterior mean, Dirichlet(2) for the mode: one pseudo-count per column."""
        return self.pseudo_count_prior(1.0, estimate)

    def pseudo_count_prior(self, amount: float, estimate: str) -> Dirichlet:
        """Return Dirichlet(amount), with 1 more for the mode, which subtracts 1."""
        return Dirichlet(amount + read_estimate(estimate).takes_mode)

    def n_numbers(self, n_columns: int) -> tuple[int, int]:
        """Return one total per column (twice, for rearranging); there are no weights per column."""
        return 2 * n_columns, 4 * n_columns

    def n_parameters(self, statistics: Totals) -> int:
        """Return the number of columns minus 1, per group."""
        return statistics.total.size - int(np.prod(statistics.given_shape, dtype=np.int64))

    def row_weight(self, statistics: Totals) -> np.ndarray:
        """Return the number of rows of every group; 0 for groups without tokens."""
        return np.where(statistics.total.sum(axis=-1) > 0, statistics.weight[..., 0], 0.0)

    def log_likelihood(self, parameters: np.ndarray, statistics: Totals) -> np.ndarray:
        """Return Σ log p(row | θ), per group."""
        return xlogy(statistics.total, parameters).sum(axis=-1) + statistics.log_base_measure.sum(axis=-1)

    def log_prob(self, parameters: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Return log p(row | θ)."""
        x = broadcast_over_groups(np.asarray(x, dtype=float), parameters.ndim - 1)
        return xlogy(x, parameters).sum(axis=-1) + _log_coefficient(x)

    def log_predictive(self, posterior: Dirichlet, x: np.ndarray) -> np.ndarray:
        """Return log p(row | θ), with θ at its posterior mean."""
        return self.log_prob(posterior.mean(), x)

    def log_prob_form(self, parameters: np.ndarray) -> LinearLogForm:
        """Return the form Σ x_j log θ_j, in which zero counts contribute 0."""
        with np.errstate(divide="ignore"):
            log_p = np.log(np.asarray(parameters, dtype=float))
        zero = np.where(np.isnan(log_p[..., :1]), np.nan, 0.0)  # undefined for a group without tokens
        return LinearLogForm(log_p, zero, "nonnegative", "multinomial")

    def log_predictive_form(self, posterior: Dirichlet) -> LinearLogForm | PolyaUrnForm:
        """Return `log_prob_form` with θ at its posterior mean."""
        return self.log_prob_form(posterior.mean())

    def column_contributions(self, parameters: Any, x: np.ndarray, predictive: bool) -> np.ndarray:
        """Return x_j log θ_j; the coefficient, equal in all groups, is omitted."""
        p = np.asarray(parameters.mean() if predictive else parameters)
        return xlogy(broadcast_over_groups(np.asarray(x, dtype=float), p.ndim - 1), p)

    def named_parameters(self, parameters: Any) -> dict[str, np.ndarray]:
        """Return every word's probability, or its posterior mean, as ``share``."""
        return {"share": self.mean(parameters)}

    def kl_divergence(self, parameters: Any, other: Any) -> np.ndarray:
        """Return the terms p log(p/q) of the divergence of one token, one per word."""
        return kl_div(parameters, other)

    def sampling_options(self, statistics: Totals) -> dict[str, Any]:
        """Return the mean number of tokens per row."""
        rows = float(statistics.weight.sum())
        return {"size": max(1, round(float(statistics.total.sum()) / rows)) if rows else 1}

    def leave_one_out_log_prob(self, counted: GroupStatistics, rows: RemovedRows) -> np.ndarray:
        """Return the log probabilities from the remaining token counts."""
        remaining = token_leave_one_out(counted, rows)
        if remaining is None:
            return np.full((len(rows.group), 1), np.nan)
        x = remaining.rows.data
        terms = remaining.rows.sum_rows(np.where(x > 0, x * np.log(remaining.cells), 0.0))
        terms = terms + log_base_csr(remaining.rows.indptr, x, "multinomial")
        terms = terms - remaining.length * np.log(np.where(remaining.whole > 0, remaining.whole, np.nan))
        return np.where(remaining.length > 0, terms, 0.0)[:, None]

    def distance_features(self, cells: np.ndarray | SparseRows) -> tuple[SparseRows, float]:
        """Return the square roots of word proportions, so that rows of any length compare (Hellinger distance)."""
        rows = cells if isinstance(cells, SparseRows) else compressed(cells)
        length = np.maximum(rows.sum_rows(rows.data), 1e-300)
        proportions = rows.data / np.repeat(length, np.diff(rows.indptr))
        return rows._replace(data=np.sqrt(proportions)), 1 / np.sqrt(min(max(rows.n_columns, 1), _MAX_COLUMNS))

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
        alpha = np.asarray(posterior.concentration)
        x = broadcast_over_groups(np.asarray(x, dtype=float), alpha.ndim - 1)
        return log_choose(alpha, x).sum(axis=-1) - log_choose(alpha.sum(axis=-1), x.sum(axis=-1))

    def log_predictive_form(self, posterior: Dirichlet) -> PolyaUrnForm:
        """Return the Pólya urn form; zero counts contribute 0, the normalizer depends on the row sum."""
        alpha = np.asarray(posterior.concentration)
        zero = np.broadcast_to(0.0, alpha.shape)
        return PolyaUrnForm(zero, alpha, zero, alpha.sum(axis=-1, keepdims=True))

    def leave_one_out_log_prob(self, counted: GroupStatistics, rows: RemovedRows) -> np.ndarray:
        """Return the compound log probabilities from the remaining token counts."""
        remaining = token_leave_one_out(counted, rows) if counted.estimate.integrates else None
        if remaining is None:
            return super().leave_one_out_log_prob(counted, rows)
        terms = remaining.rows.sum_rows(log_choose(remaining.cells, remaining.rows.data))
        return (terms - log_choose(remaining.whole, remaining.length))[:, None]

    def column_contributions(self, parameters: Any, x: np.ndarray, predictive: bool) -> np.ndarray:
        """Return the log rising factorials per word; the normalizer is split in proportion to x_j."""
        if not predictive:
            return super().column_contributions(parameters, x, predictive)
        alpha = np.asarray(parameters.concentration)
        x = broadcast_over_groups(np.asarray(x, dtype=float), alpha.ndim - 1)
        length = x.sum(axis=-1, keepdims=True)
        common = log_rising(alpha.sum(axis=-1, keepdims=True), length)
        return log_rising(alpha, x) - common * x / np.where(length > 0, length, 1.0)


def _log_coefficient(x: np.ndarray) -> np.ndarray:
    """Return the log multinomial coefficient of every row."""
    return gammaln(x.sum(axis=-1) + 1) - gammaln(x + 1).sum(axis=-1)

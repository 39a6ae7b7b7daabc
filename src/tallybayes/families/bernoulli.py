"""Bernoulli: binary columns."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy.special import xlog1py, xlogy

from tallybayes import kernels
from tallybayes.distributions.beta import Beta
from tallybayes.distributions.parameter_distribution import ParameterDistribution
from tallybayes.errors import EstimateError
from tallybayes.families._shared.blocks import Block, SparseRows, dense
from tallybayes.families._shared.leave_one_out_counts import (
    GroupStatistics,
    LevelCounts,
    RemovedRows,
    level_counts,
    sparse_leave_one_out,
)
from tallybayes.families._shared.log_prob_forms import LinearLogForm
from tallybayes.families.estimates import read_estimate
from tallybayes.families.family import Family, broadcast_over_groups, ratio, zero_where_missing
from tallybayes.statistics.segments import Segments
from tallybayes.statistics.totals import Totals

if TYPE_CHECKING:
    from tallybayes.statistics.sufficient_statistics import Statistics


@dataclass(frozen=True, eq=False, repr=False)
class Bernoulli(Family):
    """A binary column: p(x) = θ^x (1 − θ)^(1 − x) for x in {0, 1}.

    Parameters
    ----------
    success : bool, int or str, optional
        For `tb.fit_distribution` with a categorical column: the level that counts as 1; all others count as 0.
        In a model, use `Categorical`.

    Examples
    --------
    >>> import tallybayes as tb
    >>> tb.fit_distribution([1, 0, 1, 1], tb.Bernoulli()).estimate("mle")
    0.75
    >>> tb.fit_distribution(["H", "T", "H", "H"], tb.Bernoulli(success="H")).estimate("mle")
    0.75
    """

    success: Hashable = field(default=None, kw_only=True)  # type: ignore[misc]

    conjugate_prior = Beta
    accepts_sparse: ClassVar[bool] = True
    nonnegative_cells: ClassVar[bool] = True
    sums_cells: ClassVar[bool] = True
    allowed_values: ClassVar[str] = "0 or 1 (or missing)"

    @property
    def is_binary(self) -> bool:
        """Return whether a cell is 0 or 1; subclasses that override `collect` count something else."""
        return type(self).collect is Bernoulli.collect

    @property
    def statistics_key(self) -> tuple[Any, ...]:
        """Return the key of the statistics, which depend on the level that counts as 1."""
        return (type(self).__name__,) if self.success is None else (type(self).__name__, repr(self.success))

    def out_of_support(self, x: np.ndarray) -> np.ndarray:
        """Return which cells are neither 0 nor 1."""
        return (x != 0) & (x != 1)

    def collect(
        self,
        block: Block,
        group: np.ndarray | None = None,
        n_groups: int = 1,
        weight: np.ndarray | None = None,
        *,
        like: Statistics | None = None,
    ) -> Totals:
        """Return the number of trials and of successes."""
        return Totals(*sum_block(block, "binary", group, n_groups, weight)).with_failures()

    def nonnegative(self, statistics: Totals) -> dict[str, np.ndarray]:
        """Return weights, successes and failures."""
        return {
            "weight": statistics.weight,
            "successes": statistics.total,
            "failures": statistics.failures,
        }

    def named_parameters(self, parameters: Any) -> dict[str, np.ndarray]:
        """Return the probability of a success, or its posterior mean."""
        return {
            "probability": np.asarray(
                parameters.mean() if isinstance(parameters, ParameterDistribution) else parameters
            )
        }

    def maximum_likelihood(self, statistics: Totals) -> np.ndarray:
        """Return the proportion of successes."""
        successes, failures = statistics.total, statistics.failures
        proportion = ratio(successes, successes + failures)
        return np.where(
            (proportion == 1) & (failures > 0), np.nextafter(1.0, 0.0), proportion
        )  # below 1 if there was a failure

    def default_prior(self, statistics: Totals, estimate: str) -> Beta:
        """Return Beta(1, 1) for the posterior mean, Beta(2, 2) for the mode: one pseudo-count each."""
        return self.pseudo_count_prior(1.0, estimate)

    def pseudo_count_prior(self, amount: float, estimate: str) -> Beta:
        """Return Beta(amount, amount), with 1 more each for the mode, which subtracts 1."""
        count = amount + read_estimate(estimate).takes_mode
        return Beta(count, count)

    def as_parameters(self, parameters: Any, statistics: Totals) -> np.ndarray:
        """Return probabilities with an axis for columns; raise EstimateError outside [0, 1]."""
        p = super().as_parameters(parameters, statistics)
        if not ((p >= 0) & (p <= 1)).all():
            raise EstimateError(f"the parameter of {self!r} is {parameters!r}; expected probabilities from 0 to 1.")
        return p

    def log_likelihood(self, parameters: np.ndarray, statistics: Totals) -> np.ndarray:
        """Return Σ log p(x | θ)."""
        failures = xlog1py(statistics.failures, -parameters)
        return xlogy(statistics.total, parameters) + failures + statistics.log_base_measure

    def log_prob(self, parameters: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Return log p(x | θ) of every cell."""
        x = broadcast_over_groups(x, parameters.ndim - 1)
        return zero_where_missing(xlogy(x, parameters) + xlog1py(1 - x, -parameters), x)

    def log_predictive(self, posterior: Beta, x: np.ndarray) -> np.ndarray:
        """Return log p(x | data), with θ at its posterior mean."""
        a, b = np.broadcast_arrays(posterior.alpha, posterior.beta)
        x = broadcast_over_groups(x, a.ndim - 1)
        # b / (a + b) instead of 1 − a / (a + b), which would cancel if b is far smaller than a
        return zero_where_missing(xlogy(x, a / (a + b)) + xlogy(1 - x, b / (a + b)), x)

    def log_prob_form(self, parameters: np.ndarray) -> LinearLogForm | None:
        """Return the form x · log(θ / (1 − θ)) + log(1 − θ)."""
        p = np.asarray(parameters, dtype=float)
        with np.errstate(divide="ignore"):
            return _log_odds_form(np.log(p), np.log1p(-p))

    def log_predictive_form(self, posterior: Beta) -> LinearLogForm | None:
        """Return `log_prob_form` with θ at its posterior mean."""
        a, b = np.broadcast_arrays(posterior.alpha, posterior.beta)
        with np.errstate(divide="ignore"):
            return _log_odds_form(np.log(a / (a + b)), np.log(b / (a + b)))

    def _level_counts(self, counted: GroupStatistics) -> LevelCounts | None:
        """Return the counts of 0 and 1 and the prior's pseudo-counts, or None."""
        statistics, prior = counted.statistics, counted.start
        cells = np.stack([statistics.failures, statistics.total], axis=-1)
        pseudo_counts = None if prior is None else np.stack([prior.beta, prior.alpha], axis=-1)
        return level_counts(
            counted, cells, cells.sum(axis=-1), pseudo_counts, Segments(np.full(statistics.n_columns, 2))
        )

    def leave_one_out_log_prob(self, counted: GroupStatistics, rows: RemovedRows) -> np.ndarray | None:
        """Return the log proportions among the remaining rows."""
        if isinstance(rows.cells, SparseRows):
            return sparse_leave_one_out(self, counted, rows)
        levels = self._level_counts(counted)
        return None if levels is None else levels.left_out(codes_of(np.asarray(rows.cells)), rows)

    def leave_one_out_tables(self, counted: GroupStatistics, constant: np.ndarray) -> tuple[np.ndarray, ...] | None:
        """Return the tables of log p(1) and log p(0)."""
        levels = self._level_counts(counted)
        table = None if levels is None else levels.table()
        return None if table is None else (table[1::2], table[0::2])

    def distance_features(self, cells: np.ndarray | SparseRows) -> tuple[np.ndarray | SparseRows, float | None]:
        """Return the cells, with the largest standard deviation of a binary column as unit.

        The fixed unit prevents near-constant binary columns from dominating the distances.
        """
        return cells, 0.5 if self.is_binary else None

    def plot_grid(self, parameters: Any, column: int) -> np.ndarray:
        """Return 0 and 1."""
        return np.array([0.0, 1.0]) if self.is_binary else super().plot_grid(parameters, column)

    def cdf(self, parameters: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Return P(X ≤ x): 0 below 0, 1 − θ from 0, 1 from 1."""
        x = broadcast_over_groups(x, parameters.ndim - 1)
        return np.where(x < 0, 0.0, np.where(x < 1, 1 - parameters, 1.0))

    def sample(self, parameters: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
        """Return random zeros and ones."""
        return rng.binomial(1, parameters, (n, *parameters.shape))


def codes_of(cells: np.ndarray) -> np.ndarray:
    """Return integer cells as codes, −1 where missing."""
    return (np.where(np.isnan(cells), -1, cells) if cells.dtype.kind == "f" else cells).astype(np.intp)


def _log_odds_form(log_one: np.ndarray, log_zero: np.ndarray) -> LinearLogForm:
    """Return the linear form with the log odds as weight."""
    return LinearLogForm(log_one - np.where(np.isneginf(log_zero), 0.0, log_zero), log_zero, "binary")


def sum_block(
    block: Block, kind: str, group: np.ndarray | None, n_groups: int, weight: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return weights, totals and log base measures of a dense or sparse block, as read-only arrays."""
    if isinstance(block, SparseRows):
        if block.missing_rows is not None and weight is not None and weight.ndim == 2:
            weight = np.where(block.missing_rows[:, None], 0.0, weight)
        elif block.missing_rows is not None:
            group = np.where(block.missing_rows, -1, np.int64(0) if group is None else group)
        sums = kernels.sum_csr(*block[:4], kind, group, n_groups, weight)
    else:
        sums = kernels.sum_dense(dense(block, kind), kind, group, n_groups, weight)
    for array in sums:
        array.setflags(write=False)
    return sums

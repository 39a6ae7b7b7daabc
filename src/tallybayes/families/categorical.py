"""Categorical: columns of levels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import xlogy

from tallybayes import kernels
from tallybayes.distributions.dirichlet import Dirichlet
from tallybayes.distributions.parameter_distribution import ParameterDistribution
from tallybayes.errors import DataError, EstimateError
from tallybayes.families._shared.blocks import Block, Codes
from tallybayes.families._shared.leave_one_out_counts import GroupStatistics, LevelCounts, RemovedRows, level_counts
from tallybayes.families._shared.log_prob_forms import LogTableForm
from tallybayes.families.estimates import read_estimate
from tallybayes.families.family import Family, ratio
from tallybayes.statistics.counts import Counts
from tallybayes.statistics.segments import Segments

if TYPE_CHECKING:
    from tallybayes.statistics.sufficient_statistics import Statistics


class LevelProbabilities(NamedTuple):
    """Level probabilities of categorical columns: one flat axis, and its segments by column."""

    table: np.ndarray
    segments: Segments


class LevelFamily(Family):
    """Base of columns with levels (categories or bins): p(level k) = θ_k, with a Dirichlet prior."""

    conjugate_prior = Dirichlet

    def maximum_likelihood(self, statistics: Counts) -> LevelProbabilities:
        """Return the relative frequencies."""
        segments = statistics.segments
        return LevelProbabilities(ratio(statistics.table, segments.broadcast_to_cells(statistics.weight)), segments)

    def default_prior(self, statistics: Counts, estimate: str) -> Dirichlet:
        """Return Dirichlet(1) for the posterior mean, Dirichlet(2) for the mode: one pseudo-count per level."""
        return self.pseudo_count_prior(1.0, estimate)

    def pseudo_count_prior(self, amount: float, estimate: str) -> Dirichlet:
        """Return Dirichlet(amount), with 1 more for the mode, which subtracts 1."""
        return Dirichlet(amount + read_estimate(estimate).takes_mode)

    def parameters_from(self, distribution: ParameterDistribution, what: str, **options: Any) -> LevelProbabilities:
        """Return the mean, mode or sample of a Dirichlet distribution, with its columns."""
        values = super().parameters_from(distribution, what, **options)
        return LevelProbabilities(values, distribution.segments) if isinstance(distribution, Dirichlet) else values

    def as_parameters(self, parameters: Any, statistics: Counts) -> LevelProbabilities:
        """Return probabilities in the order of the levels; raise EstimateError if one is negative."""
        if isinstance(parameters, LevelProbabilities):
            return parameters
        table = np.asarray(parameters, dtype=float)
        if not (table >= 0).all():
            raise EstimateError(f"the parameter of {self!r} is {parameters!r}; expected probabilities of at least 0.")
        return LevelProbabilities(table, statistics.segments)

    def n_parameters(self, statistics: Counts) -> int:
        """Return the number of levels minus 1, summed over columns and groups."""
        n_groups = int(np.prod(statistics.given_shape, dtype=np.int64))
        return n_groups * int(np.maximum(statistics.segments.sizes - 1, 0).sum())

    def log_likelihood(self, parameters: LevelProbabilities, statistics: Counts) -> np.ndarray:
        """Return Σ n_k log θ_k, per group and column."""
        return parameters.segments.sum(xlogy(statistics.table, parameters.table))

    def log_predictive(self, posterior: Dirichlet, x: np.ndarray) -> np.ndarray:
        """Return log p(x | data), with θ at its posterior mean."""
        return self.log_prob(self.parameters_from(posterior, "mean"), x)

    def table(self, parameters: LevelProbabilities) -> LogTableForm:
        """Return the table of log θ."""
        with np.errstate(divide="ignore"):
            return LogTableForm(np.log(parameters.table), parameters.segments)

    def level_counts(self, counted: GroupStatistics) -> LevelCounts | None:
        """Return the level counts and the prior's pseudo-counts, or None."""
        statistics, prior = counted.statistics, counted.start
        pseudo_counts = None if prior is None else prior.concentration
        return level_counts(counted, statistics.table, statistics.weight, pseudo_counts, statistics.segments)

    def take(self, parameters: LevelProbabilities, index: Any) -> LevelProbabilities:
        """Return the probabilities of some groups."""
        return parameters._replace(table=parameters.table[index])

    def is_undefined(self, parameters: LevelProbabilities) -> np.ndarray:
        """Return which columns have no counts."""
        columns = parameters.segments.split(parameters.table)
        return np.stack([np.isnan(column).any(axis=-1) for column in columns], axis=-1)

    def named_parameters(self, parameters: Any) -> dict[str, np.ndarray]:
        """Return no parameters: tables show the level probabilities themselves."""
        return {}

    def sample(self, parameters: LevelProbabilities, n: int, rng: np.random.Generator) -> np.ndarray:
        """Return random codes of levels, by inversion of the cumulative probabilities."""
        draws = [
            (rng.random((n, *column.shape[:-1], 1)) > np.cumsum(column, axis=-1)[..., :-1]).sum(axis=-1)
            for column in parameters.segments.split(parameters.table)
        ]
        return np.stack(draws, axis=-1)


@dataclass(frozen=True, eq=False, repr=False)
class Categorical(LevelFamily):
    """A categorical column: p(x = k) = θ_k.

    Parameters
    ----------
    levels : tuple, optional
        The possible levels. Declared levels have probabilities even if unseen; other levels raise an error. By default
        the levels are those of the data.

    Examples
    --------
    >>> import tallybayes as tb
    >>> tb.fit_distribution(["a", "b", "a"], tb.Categorical()).estimate("bayes")
    {'a': 0.6, 'b': 0.4}
    """

    levels: tuple[Any, ...] | None = None

    cell_type: ClassVar[str] = "codes"
    allowed_values: ClassVar[str] = "a label: a whole number, a string or a boolean (or missing)"
    memory_hint: ClassVar[str] = "Merge rare levels, or leave columns with very many levels out."

    def __post_init__(self) -> None:
        if self.levels is not None:
            object.__setattr__(self, "levels", tuple(self.levels))

    @property
    def is_contingency_table(self) -> bool:
        """Return True unless a subclass overrides `collect`."""
        return type(self).collect is Categorical.collect

    def n_numbers(self, n_columns: int) -> tuple[int, int]:
        """Return the counts (twice, for rearranging) and the probabilities."""
        return 2 * n_columns, 2 * n_columns

    def collect(
        self,
        block: Block,
        group: np.ndarray | None = None,
        n_groups: int = 1,
        weight: np.ndarray | None = None,
        *,
        like: Statistics | None = None,
    ) -> Counts:
        """Return the counts of every level of every column."""
        if not isinstance(block, Codes):
            raise DataError.wrong_type("a block of Categorical columns", "not encoded", "codes of levels")
        return Counts(kernels.count_codes(block.columns, block.sizes, group, n_groups, weight), block.sizes)

    def log_prob(self, parameters: LevelProbabilities, x: np.ndarray) -> np.ndarray:
        """Return log θ of every cell's code; 0 for code −1."""
        return self.table(parameters).evaluate(x)

    def log_prob_form(self, parameters: LevelProbabilities) -> LogTableForm:
        """Return the table of log θ."""
        return self.table(parameters)

    def log_predictive_form(self, posterior: Dirichlet) -> LogTableForm:
        """Return the table of log θ, with θ at its posterior mean."""
        return self.table(self.parameters_from(posterior, "mean"))

    def leave_one_out_log_prob(self, counted: GroupStatistics, rows: RemovedRows) -> np.ndarray | None:
        """Return the log proportions among the remaining rows."""
        assert isinstance(rows.cells, Codes)
        levels = self.level_counts(counted)
        return None if levels is None else levels.left_out(np.asarray(rows.cells.columns), rows)

    def leave_one_out_tables(self, counted: GroupStatistics, constant: np.ndarray) -> tuple[np.ndarray, ...] | None:
        """Return the table of log proportions among the remaining rows."""
        levels = self.level_counts(counted)
        return None if levels is None else (levels.table(),)

    def first_invalid_cell(self, rows: Any) -> None:
        """Return None: every code is valid."""

    def with_unseen_level(self, statistics: Counts) -> Counts:
        """Return the counts with one more level of count 0 in every column."""
        return statistics.with_unseen()

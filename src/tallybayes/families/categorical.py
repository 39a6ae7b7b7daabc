"""Categorical: columns of levels."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import xlogy

from tallybayes import kernels
from tallybayes.distributions.dirichlet import Dirichlet
from tallybayes.distributions.parameter_distribution import ParameterDistribution
from tallybayes.errors import DataError
from tallybayes.families._shared.blocks import Block, Codes
from tallybayes.families._shared.log_prob_forms import LogTableForm
from tallybayes.families.family import Family, check_parameters_valid, ratio
from tallybayes.statistics.counts import Counts, Segments

if TYPE_CHECKING:
    from tallybayes.statistics.sufficient_statistics import Statistics


class LevelProbabilities(NamedTuple):
    """Level probabilities of categorical columns: one flat axis, and its segments by column."""

    table: np.ndarray
    segments: Segments


class LevelFamily(Family):
    """Base of columns with levels (categories or bins): p(level k) = θ_k, with a Dirichlet prior."""

    conjugate_prior: ClassVar[type[ParameterDistribution]] = Dirichlet

    def maximum_likelihood(self, statistics: Counts) -> LevelProbabilities:
        """Return the relative frequencies."""
        segments = statistics.segments
        return LevelProbabilities(ratio(statistics.table, segments.broadcast_to_cells(statistics.weight)), segments)

    def parameters_from(self, distribution: ParameterDistribution, what: str, **options: Any) -> LevelProbabilities:
        """Return the mean, mode or sample of a Dirichlet distribution, with its columns."""
        values = super().parameters_from(distribution, what, **options)
        return LevelProbabilities(values, distribution.segments) if isinstance(distribution, Dirichlet) else values

    def as_parameters(self, parameters: Any, statistics: Counts) -> LevelProbabilities:
        """Return probabilities in the order of the levels; raise EstimateError if one is negative."""
        if isinstance(parameters, LevelProbabilities):
            return parameters
        table = np.asarray(parameters, dtype=float)
        check_parameters_valid(self, parameters, table, table >= 0, "probabilities of at least 0")
        return LevelProbabilities(table, statistics.segments)

    def n_parameters(self, statistics: Counts) -> int:
        """Return the number of levels minus 1, summed over columns and groups."""
        n_groups = math.prod(statistics.given_shape)
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
    compiled_em: ClassVar[bool] = True
    allowed_values: ClassVar[str] = "a label: a whole number, a string or a boolean (or missing)"

    def __post_init__(self) -> None:
        if self.levels is not None:
            object.__setattr__(self, "levels", tuple(self.levels))

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

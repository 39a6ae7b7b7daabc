"""Restricted tables: parameters of which some rows are tied, and some level probabilities are zero by definition."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tallybayes.distributions.dirichlet import Dirichlet
from tallybayes.estimation.scoring.factor_scorer import FactorScorer
from tallybayes.families.categorical import LevelProbabilities
from tallybayes.families.family import take_groups
from tallybayes.statistics.counts import Counts
from tallybayes.statistics.segments import Segments
from tallybayes.tally.factor import Factor
from tallybayes.typing import Prior

_NEGLIGIBLE = 1e-300  # the Dirichlet concentration of cells that are zero by definition


@dataclass(frozen=True, eq=False)
class RestrictedTable:
    """Conversion between the parameters of all groups and the distinct, nonzero ones that are estimated.

    "Reduce" converts factors, counts, priors and parameters to those of the estimated cells, "expand" converts back.
    The rows of a restricted table differ in width: they lie side by side in one flat table, as columns of one factor.

    Parameters
    ----------
    mask : ndarray of bool of shape (levels,) or (rows, levels), optional
        The level probabilities that may be positive; all by default. Parameters that are not level probabilities have
        no mask.
    tied : ndarray of int of shape (rows,), optional
        The index of the estimated row of each row; by default, all rows are estimated separately.
    """

    mask: np.ndarray | None = None
    tied: np.ndarray | None = None

    @cached_property
    def first_rows(self) -> np.ndarray:
        """The first row of each group of tied rows."""
        return np.zeros(0, np.intp) if self.tied is None else np.unique(self.tied, return_index=True)[1]

    @cached_property
    def _kept(self) -> np.ndarray | None:
        """The mask of the estimated rows."""
        return self.mask if self.mask is None or self.tied is None else self.mask[self.first_rows]

    @property
    def _sizes(self) -> tuple[int, ...] | None:
        """The widths of the estimated rows; None if they are equal."""
        return None if self._kept is None or self._kept.ndim == 1 else tuple(self._kept.sum(axis=1).tolist())

    def reduce_factor(self, factor: Factor) -> Factor:
        """Return the factor of the estimated cells."""
        return factor if self._sizes is None else Factor(factor.columns, (), factor.family)

    def reduce_statistics(self, statistics: Any) -> Any:
        """Return the statistics of the estimated cells; those of tied rows are added."""
        if self.tied is not None:
            statistics = statistics.merge_groups(self.tied, len(self.first_rows))
        return statistics if self._kept is None else Counts(statistics.table[self._kept], self._sizes)

    def reduce_parameters(self, scorer: FactorScorer) -> FactorScorer:
        """Return the parameters of the estimated cells."""
        if self.tied is not None:
            scorer = scorer.with_parameters(take_groups(scorer.point, self.first_rows))
        return scorer if self._kept is None else with_table(scorer, scorer.point.table[self._kept], self._sizes)

    def reduce_prior(self, prior: Prior) -> Prior:
        """Return the prior of the estimated cells.

        A prior that is already reduced, as in ``prior_``, is unchanged. So is one of an invalid shape, which is
        reported when it is used.
        """
        if self._kept is None or not isinstance(prior, Dirichlet) or prior.concentration.ndim == 0:
            return prior
        if prior.concentration.shape[-1] != self._kept.shape[-1] or prior.sizes is not None:
            return prior
        return Dirichlet(np.broadcast_to(prior.concentration, self._kept.shape)[self._kept], sizes=self._sizes)

    def expand(self, cells: np.ndarray, default: float = 0.0) -> np.ndarray:
        """Return the full table of the estimated cells, with `default` in the others."""
        if self._kept is not None:
            table = np.full(self._kept.shape, default)
            table[self._kept] = cells
            cells = table
        return cells if self.tied is None else cells[self.tied]

    def expand_parameters(self, scorer: FactorScorer) -> FactorScorer:
        """Return the parameters of all rows, with level probability 0 in the other cells."""
        if self._kept is not None:
            return with_table(scorer, self.expand(scorer.point.table))
        return scorer if self.tied is None else scorer.with_parameters(take_groups(scorer.point, self.tied))

    def expand_distribution(self, distribution: Dirichlet) -> Dirichlet:
        """Return the distribution of the full table."""
        if self.mask is None and self.tied is None:
            return distribution
        return Dirichlet(self.expand(distribution.concentration, _NEGLIGIBLE))


def with_table(scorer: FactorScorer, table: np.ndarray, sizes: tuple[int, ...] | None = None) -> FactorScorer:
    """Return a scorer with other level probabilities; rows of different widths are one flat table with `sizes`."""
    segments = Segments([table.shape[-1]] if sizes is None else sizes)
    return scorer.with_parameters(LevelProbabilities(table, segments))

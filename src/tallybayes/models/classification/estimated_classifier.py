"""EstimatedClassifier: the estimated factors of a classifier or mixture, and the class prior."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from tallybayes.data.table import Table
from tallybayes.distributions.dirichlet import Dirichlet
from tallybayes.errors import DataError, NoCountsError
from tallybayes.estimation.estimated_factors import EstimatedFactors, Pair
from tallybayes.estimation.scoring.factor_scorer import (
    NO_COLUMNS,
    FactorScorer,
    ResolvedPrior,
    chunk_of,
    factor_cells,
    undefined_parameters,
)
from tallybayes.estimation.scoring.row_scorer import RowScorer
from tallybayes.models.classification.class_prior import class_prior_distribution, log_class_prior
from tallybayes.models.inputs.invalid_cells import ColumnSpec
from tallybayes.statistics.counts import Counts
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Factor
from tallybayes.tally.tally import Tally
from tallybayes.typing import ClassPrior


@dataclass(frozen=True, eq=False)
class EstimatedClassifier:
    """Estimated p(class) Π p(block | class), and what is computed from it; the value behind a classifier or mixture.

    Attributes
    ----------
    tally : Tally
        The statistics; text columns as blocks of the selected words.
    class_factor : Factor
        The factor p(class).
    factors : EstimatedFactors
        The factors p(block | class), over the levels that were observed.
    class_prior : ClassPrior
        The parameter of the model.
    unseen : {"missing", "smooth", "error"}
    fixed_class_proba : Counts or None
        User-specified class probabilities; None if they are estimated.
    """

    tally: Tally
    class_factor: Factor
    factors: EstimatedFactors
    class_prior: ClassPrior
    unseen: str
    fixed_class_proba: Any = None

    @property
    def classes(self) -> Domain:
        """The classes."""
        return self.tally.domains[str(self.class_factor.columns[0])]

    @property
    def class_counts(self) -> Counts:
        """The number of rows of every class."""
        counts: Any = self.tally[self.class_factor.columns]
        return counts

    @cached_property
    def class_log_prior(self) -> np.ndarray:
        """log p(class), shape (classes,)."""
        return self.log_prior(self.class_prior)

    def log_prior(self, class_prior: ClassPrior, counts: Counts | None = None) -> np.ndarray:
        """Return log p(class) under a class prior, with the counts of the tally or with others."""
        estimate = self.factors.estimate
        if self.fixed_class_proba is not None:
            if class_prior is None:
                class_prior = self.fixed_class_proba.table
            elif class_prior_distribution(class_prior, estimate) is not None:
                raise NoCountsError(
                    f"class_prior={class_prior!r} needs counts, and the parameters of this model are user-specified.\n"
                    "    Pass the probabilities: class_prior={label: probability}."
                )
        counts = self.class_counts if counts is None else counts
        return log_class_prior(class_prior, self.classes.levels, counts, estimate)

    @cached_property
    def class_prior_distribution(self) -> Dirichlet | None:
        """The prior distribution of the class probabilities; None if they are fixed by the user."""
        return class_prior_distribution(self.class_prior, self.factors.estimate)

    @cached_property
    def scoring_factors(self) -> EstimatedFactors:
        """The factors that score rows: with one more level in every categorical column under unseen="smooth"."""
        return self.factors.with_unseen() if self.unseen == "smooth" else self.factors

    @property
    def scorers(self) -> list[FactorScorer]:
        """The scorer of every factor; EstimateError if a class has zero variance."""
        return self.scoring_factors.checked_scorers

    def level_domains(self, scorer: FactorScorer) -> list[Domain]:
        """Return the levels of every column of a categorical factor; an empty list for other factors."""
        names = scorer.factor.columns if scorer.family.cell_type == "codes" else ()
        return [self.tally.domains[self.tally.schema.domain(name)] for name in names]

    @cached_property
    def column_specs(self) -> list[ColumnSpec]:
        """The columns, the family and the levels of every factor."""
        return [(scorer.factor.columns, scorer.family, self.level_domains(scorer)) for scorer in self.scorers]

    def cells(self, table: Table, scorer: FactorScorer) -> Any:
        """Return the cells of one factor, ready for its scorer."""
        return factor_cells(table, scorer.factor.columns, scorer.family, self.level_domains(scorer), self.unseen)

    def row_scorer(self, log_prior: np.ndarray) -> RowScorer:
        """Return the scorer of rows under a class prior."""
        return RowScorer(self.scorers, log_prior, [self.level_domains(scorer) for scorer in self.scorers], self.unseen)

    @cached_property
    def undefined(self) -> list[tuple[int, Any]]:
        """The (class, column) pairs whose point estimate has no rows."""
        return [pair for scorer in self.scorers for pair in undefined_parameters(scorer)]

    def check_defined(self, log_prior: np.ndarray) -> None:
        """Raise DataError if there is no class, or if a possible class has an undefined estimate."""
        if not len(log_prior):
            raise DataError("no class is left to predict: every row was forgotten.\n    Fit at least one row.")
        for code, column in self.undefined:
            if log_prior[code] > -np.inf:
                where = f"column {column!r} in class {self.classes.levels[code]!r}"
                raise DataError.no_data(where, self.factors.estimate)

    def first_impossible_column(self, table: Table, row: int) -> Any:
        """Return the first column whose value in a row has probability zero in a class; None if there is none."""
        for scorer in self.scorers:
            terms = scorer.contributions(chunk_of(self.cells(table, scorer), slice(row, row + 1)))[0]
            columns = np.flatnonzero(np.isneginf(terms).any(axis=0))
            if len(columns):
                return scorer.factor.column(int(columns[0]), terms.shape[-1])
        return None

    @cached_property
    def all_factors(self) -> EstimatedFactors:
        """All factors, p(class) included unless its probabilities are fixed."""
        factors = self.factors
        prior = self.class_prior_distribution
        if prior is None:
            return factors
        pairs = [(self.class_factor, self.class_counts), *factors.pairs]
        if factors.fixed_parameters is not None:
            parameters = [self.fixed_class_proba, *factors.fixed_parameters]
            return EstimatedFactors.from_fixed_parameters(pairs, parameters)
        resolved_priors = (ResolvedPrior(prior, NO_COLUMNS), *factors.resolved_priors)
        return EstimatedFactors(pairs, [prior, *factors.priors], factors.estimate, resolved_priors=resolved_priors)

    @property
    def fixed_log_prob(self) -> float:
        """log p(classes of all rows) under a fixed class prior; 0 if it is estimated."""
        if self.class_prior_distribution is not None:
            return 0.0
        observed = self.class_counts.table > 0
        return float((self.class_counts.table[observed] * self.class_log_prior[observed]).sum())

    def with_statistics(self, tally: Tally, pairs: Sequence[Pair]) -> EstimatedClassifier:
        """Return this value with other statistics over the same levels, and the same resolved priors."""
        return self._with(tally, self.factors.with_statistics(pairs), self.scoring_factors.with_statistics(pairs))

    def scaled(self, strength: float) -> EstimatedClassifier:
        """Return this value with the strength of every prior multiplied by ``strength``."""
        return self._with(self.tally, self.factors.scaled(strength), self.scoring_factors.scaled(strength))

    def _with(self, tally: Tally, factors: EstimatedFactors, scoring: EstimatedFactors) -> EstimatedClassifier:
        other = replace(self, tally=tally, factors=factors)
        if self.unseen == "smooth":  # its resolved priors are kept, too
            other.__dict__["scoring_factors"] = scoring
        return other

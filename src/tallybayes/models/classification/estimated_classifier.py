"""EstimatedClassifier: the estimated factors of a classifier or mixture, and the class prior."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.data.table import Table
from tallybayes.distributions.dirichlet import Dirichlet
from tallybayes.errors import DataError, NoCountsError
from tallybayes.estimation.estimated_factors import EstimatedFactors, Pair
from tallybayes.estimation.factor_sampling import MissingCellPrediction
from tallybayes.estimation.scoring.bayes_rule import ClassPosterior
from tallybayes.estimation.scoring.factor_scorer import (
    NO_COLUMNS,
    FactorScorer,
    ResolvedPrior,
    chunk_of,
    factor_cells,
    undefined_parameters,
)
from tallybayes.estimation.scoring.row_scorer import RowScorer
from tallybayes.families.categorical import Categorical, LevelProbabilities
from tallybayes.families.estimates import read_estimate
from tallybayes.models.classification.class_parameters import labeled_class_prior, labeled_factors
from tallybayes.models.classification.class_prior import class_prior_distribution, log_class_prior
from tallybayes.models.classification.leave_one_out_scores import leave_rows_out
from tallybayes.models.classification.methods.class_sampling import predict_missing, sample_columns
from tallybayes.models.classification.methods.explanation import ExplanationPart, PriorPart, factor_parts
from tallybayes.models.classification.methods.show_work import calculation
from tallybayes.models.inputs.column_priors import check_priors, prior_in_groups
from tallybayes.models.inputs.invalid_cells import ColumnSpec
from tallybayes.models.inspection.column_names import ColumnNames
from tallybayes.models.inspection.labeled_parameters import LabeledFactor, parameters_by_column, parameters_title
from tallybayes.models.inspection.parameter_table import Parameters
from tallybayes.statistics.counts import Counts
from tallybayes.tally.domain import Domain, labels_of
from tallybayes.tally.factor import Factor, Name
from tallybayes.tally.tally import Tally
from tallybayes.tally.text_selection import Selected, with_selected_words
from tallybayes.typing import ClassPrior

if TYPE_CHECKING:
    from tallybayes.models.classification.class_conditional import ClassConditionalModel
    from tallybayes.models.classification.held_out_rows import CountedRows
    from tallybayes.models.classification.methods.calculation_sheet import CalculationSheet


@dataclass(frozen=True, eq=False)
class EstimatedClassifier:
    """Estimated p(class) Π p(block | class), and what is computed from it; the value behind a classifier or mixture.

    Attributes
    ----------
    model : str
        The name of the model's class, for titles.
    counted : Tally
        The statistics, as counted.
    words : mapping from text column to the indices of the words in use, or None for all words
    target : name
    group_word : {"class", "component"}
    label_dtype : dtype or None
        The data type of the labels.
    block_names : mapping from block to the names of its columns
    estimate, prior, class_prior, unseen
        The parameters of the model.
    fixed_parameters : tuple or None
        User-specified parameters of every factor of the tally; the tally is then empty.
    """

    model: str
    counted: Tally
    words: Selected
    target: Name
    group_word: str
    label_dtype: np.dtype | None
    block_names: Mapping[Any, Sequence[str]]
    estimate: str
    prior: Any
    class_prior: ClassPrior
    unseen: str
    fixed_parameters: tuple[Any, ...] | None

    @property
    def rows_are_independent(self) -> bool:
        """Whether every row contributes separately to the statistics that score rows."""
        return True

    @cached_property
    def tally(self) -> Tally:
        """The statistics; text columns as blocks of the selected words."""
        return with_selected_words(self.counted, self.words) if self.words else self.counted

    @property
    def names(self) -> ColumnNames:
        """The names of the columns of blocks."""
        return ColumnNames(self.block_names, self.words, self.tally)

    # ---- Classes ----------------------------------------------------------------------------------------------------

    @property
    def classes(self) -> Domain:
        """The classes."""
        return self.counted.domains[str(self.target)]

    @property
    def group_name(self) -> Name:
        """The name of the groups in results: the target, or "component"."""
        return self.target if self.group_word == "class" else self.group_word

    @cached_property
    def labels(self) -> np.ndarray:
        """The classes in the data type of the target."""
        return labels_of(self.classes.levels, self.label_dtype)

    @property
    def class_factor(self) -> Factor:
        """The factor p(class)."""
        return Factor(self.target, (), Categorical())

    @property
    def class_counts(self) -> Counts:
        """The number of rows of every class."""
        counts: Any = self.counted[self.target]
        return counts

    @property
    def fixed_class_proba(self) -> LevelProbabilities | None:
        """The user-specified class probabilities; None if they are estimated."""
        return None if self.fixed_parameters is None else self.fixed_parameters[0]

    @property
    def class_weights(self) -> np.ndarray:
        """The number of rows of every class, or the user-specified class probabilities."""
        return (self.fixed_class_proba or self.class_counts).table

    @cached_property
    def class_log_prior(self) -> np.ndarray:
        """log p(class), shape (classes,)."""
        return self.log_prior(self.class_prior)

    def log_prior(self, class_prior: ClassPrior, counts: Counts | None = None) -> np.ndarray:
        """Return log p(class) under a class prior, with the counts of the tally or with others."""
        if self.fixed_class_proba is not None:
            if class_prior is None:
                class_prior = self.fixed_class_proba.table
            elif class_prior_distribution(class_prior, self.estimate) is not None:
                raise NoCountsError(
                    f"class_prior={class_prior!r} needs counts, and the parameters of this model are user-specified.\n"
                    "    Pass the probabilities: class_prior={label: probability}."
                )
        counts = self.class_counts if counts is None else counts
        return log_class_prior(class_prior, self.classes.levels, counts, self.estimate)

    def log_prior_without(self, codes: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        """Return log p(class) without one row of the given classes and weight, shape (rows, classes)."""
        counts = self.class_counts.table
        if weight is None and len(codes) > len(counts):
            return self.log_prior_without(np.arange(len(counts)), None)[codes]
        rest = np.repeat(counts[None], len(codes), axis=0)
        rest[np.arange(len(codes)), codes] -= 1.0 if weight is None else weight
        return self.log_prior(self.class_prior, Counts(np.maximum(rest, 0.0), (len(counts),)))

    @cached_property
    def class_prior_distribution(self) -> Dirichlet | None:
        """The prior distribution of the class probabilities; None if they are fixed by the user."""
        return class_prior_distribution(self.class_prior, self.factors.estimate)

    # ---- Factors ----------------------------------------------------------------------------------------------------

    @cached_property
    def feature_factors(self) -> list[Pair]:
        """The factors p(block | class) with their statistics, in the families that score rows."""
        pairs = zip(self.tally.factors, self.tally.statistics, strict=True)
        return [(factor, statistics) for factor, statistics in pairs if len(factor.given) == 1]

    @property
    def fixed_feature_parameters(self) -> list[Any]:
        """The user-specified parameters of the factors p(block | class)."""
        assert self.fixed_parameters is not None
        pairs = zip(self.counted.factors, self.fixed_parameters, strict=True)
        return [parameters for factor, parameters in pairs if factor.given]

    @cached_property
    def factors(self) -> EstimatedFactors:
        """The estimated factors p(block | class), over the levels that were observed."""
        pairs = self.feature_factors
        groups = self.classes.levels
        if self.fixed_parameters is not None:
            return EstimatedFactors.from_fixed_parameters(pairs, self.fixed_feature_parameters, groups)
        if self.prior is not None and not isinstance(self.prior, Tally):
            check_priors(self.prior, [factor for factor, _ in pairs], self.estimate)
        priors = [self.prior_of(factor) for factor, _ in pairs]
        return EstimatedFactors(pairs, priors, self.estimate, groups=groups)

    def prior_of(self, factor: Factor) -> Any:
        """Return the prior of a factor; if ``prior`` is a tally, the default prior updated with its statistics."""
        if not isinstance(self.prior, Tally):
            domains = self.tally.domains
            return prior_in_groups(self.prior, factor, self.estimate, lambda name: domains[str(name)].levels)
        earlier = with_selected_words(self.prior.reindex_like(self.counted), self.words)[factor.columns]
        return factor.family.resolve_prior(None, self.tally[factor.columns], self.estimate).update(earlier)

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
        return [self.tally.domain(name) for name in names]

    @cached_property
    def all_factors(self) -> EstimatedFactors:
        """All factors, p(class) included unless its probabilities are fixed."""
        factors = self.factors
        prior = self.class_prior_distribution
        if prior is None:
            return factors
        pairs = [(self.class_factor, self.class_counts), *factors.pairs]
        if factors.fixed_parameters is not None:
            return EstimatedFactors.from_fixed_parameters(pairs, [self.fixed_class_proba, *factors.fixed_parameters])
        resolved_priors = (ResolvedPrior(prior, NO_COLUMNS), *factors.resolved_priors)
        return EstimatedFactors(pairs, [prior, *factors.priors], factors.estimate, resolved_priors=resolved_priors)

    @property
    def fixed_log_prob(self) -> float:
        """log p(classes of all rows) under a fixed class prior; 0 if it is estimated."""
        if self.class_prior_distribution is not None:
            return 0.0
        observed = self.class_counts.table > 0
        return float((self.class_counts.table[observed] * self.class_log_prior[observed]).sum())

    def with_tally(self, counted: Tally) -> EstimatedClassifier:
        """Return the estimates from other counts of the same levels, with the same resolved priors."""
        other = replace(self, counted=counted)
        return self._with_factors(other, lambda factors: factors.with_statistics(other.feature_factors))

    def scaled(self, strength: float) -> EstimatedClassifier:
        """Return this value with the strength of every prior multiplied by ``strength``."""
        return self._with_factors(replace(self), lambda factors: factors.scaled(strength))

    @cached_property
    def integrated(self) -> EstimatedClassifier:
        """The same under ``estimate="bayes"``, whose scorers have the posterior distributions."""
        return self if read_estimate(self.estimate).integrates else replace(self, estimate="bayes")

    def with_block_names(self, block_names: Mapping[Any, Sequence[str]]) -> EstimatedClassifier:
        """Return this value with other names of the columns of blocks."""
        return self._with_factors(replace(self, block_names=block_names), lambda factors: factors)

    def _with_factors(
        self, other: EstimatedClassifier, change: Callable[[EstimatedFactors], EstimatedFactors]
    ) -> EstimatedClassifier:
        """Set the estimated factors of a new value to changed ones of this value; resolved priors are kept."""
        other.__dict__["factors"] = change(self.factors)
        if self.unseen == "smooth":
            other.__dict__["scoring_factors"] = change(self.scoring_factors)
        return other

    # ---- Rows -------------------------------------------------------------------------------------------------------

    @cached_property
    def column_specs(self) -> list[ColumnSpec]:
        """The columns, the family and the levels of every factor."""
        return [(scorer.factor.columns, scorer.family, self.level_domains(scorer)) for scorer in self.scorers]

    def cells(self, table: Table, scorer: FactorScorer) -> Any:
        """Return the cells of one factor, ready for its scorer."""
        return factor_cells(table, scorer.factor.columns, scorer.family, self.level_domains(scorer), self.unseen)

    def scorer_under(self, log_prior: np.ndarray) -> RowScorer:
        """Return the scorer of rows under a class prior."""
        domains = [levels for _, _, levels in self.column_specs]
        return RowScorer(self.scorers, log_prior, domains, self.unseen)

    def checked_scorer(self, log_prior: np.ndarray) -> RowScorer:
        """Return the scorer of rows under a class prior; raise DataError if a possible class is undefined."""
        self.check_defined(log_prior)
        return self.scorer_under(log_prior)

    @cached_property
    def row_scorer(self) -> RowScorer:
        """The scorer of rows under the class prior of the model."""
        return self.checked_scorer(self.class_log_prior)

    def joint(self, table: Table, log_prior: np.ndarray | None = None, *, whole: bool = True) -> np.ndarray:
        """Return log p(class, row), shape (n, classes); unless `whole`, without the terms that all classes share."""
        scorer = self.row_scorer if log_prior is None else self.checked_scorer(log_prior)
        return scorer.joint(table, whole=whole)

    def posterior(self, table: Table, log_prior: np.ndarray | None = None) -> ClassPosterior:
        """Return log p(class | row), and log p(row) without the terms that all classes share."""
        scorer = self.row_scorer if log_prior is None else self.checked_scorer(log_prior)
        return scorer.posterior(table)

    def score_left_out(self, rows: CountedRows) -> ClassPosterior:
        """Return the scores of every row without its own counts."""
        return leave_rows_out(rows, self)

    def check_defined(self, log_prior: np.ndarray) -> None:
        """Raise DataError if there is no class, or if a possible class has an undefined estimate."""
        if not len(log_prior):
            raise DataError("no class is left to predict: every row was forgotten.\n    Fit at least one row.")
        for scorer in self.scorers:
            for code, column in undefined_parameters(scorer):
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

    # ---- Results ----------------------------------------------------------------------------------------------------

    def labeled_factors(self) -> list[LabeledFactor]:
        """Return p(class) and every factor given the class, labeled."""
        return [self.labeled_class_prior(), *labeled_factors(self)]

    def labeled_class_prior(self) -> LabeledFactor:
        """Return p(class), as used for scoring, as a labeled factor."""
        prior = self.class_prior_distribution
        posterior = None if prior is None else lambda: prior.update(self.class_counts)
        return labeled_class_prior(self.group_name, self.labels.tolist(), self.class_log_prior, posterior)

    @cached_property
    def parameters(self) -> Parameters:
        """The parameters by column."""
        title = parameters_title(self.model, self.estimate, fixed=self.fixed_parameters is not None)
        return parameters_by_column(title, self.labeled_factors())

    def explanation_parts(self, table: Table, prior: PriorPart, log_odds: np.ndarray) -> list[ExplanationPart]:
        """Return the contributions of the columns to the log-odds of rows."""
        return factor_parts(self, table, prior)

    def sample_columns(self, group: np.ndarray, rng: np.random.Generator) -> dict[Name, Any]:
        """Draw the columns of rows of these classes."""
        return sample_columns(self, group, rng)

    def predict_missing(self, table: Table, proba: np.ndarray, how: str) -> dict[Any, MissingCellPrediction]:
        """Return the predictive distributions of the missing cells of each column, given p(class | row)."""
        return predict_missing(self, table, proba)

    def calculation(self, table: Table, joint: np.ndarray) -> CalculationSheet:
        """Return the calculation of log p(class, row) of one row."""
        return calculation(self, table)


def estimates_of(model: ClassConditionalModel) -> EstimatedClassifier:
    """Return the estimates of a fitted classifier or mixture, for functions outside its class."""
    return model._estimated_classifier

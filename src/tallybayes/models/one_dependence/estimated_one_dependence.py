"""EstimatedOneDependence: the estimated tables of a one-dependence classifier, and the class prior."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.data.table import Table
from tallybayes.estimation.factor_sampling import MissingCellPrediction
from tallybayes.estimation.scoring.bayes_rule import ClassPosterior
from tallybayes.models.classification.estimated_classifier import EstimatedClassifier
from tallybayes.models.classification.methods.calculation_sheet import CalculationSheet
from tallybayes.models.classification.methods.explanation import ExplanationPart, PriorPart
from tallybayes.models.inputs.discretization import DiscretizedColumns
from tallybayes.models.inputs.invalid_cells import ColumnSpec
from tallybayes.models.inspection.labeled_parameters import LabeledFactor
from tallybayes.models.inspection.parameter_table import Parameters, ParameterTable
from tallybayes.models.one_dependence.estimated_pairs import EstimatedPairs
from tallybayes.models.one_dependence.pair_counts import PairCounts, check_memory
from tallybayes.models.one_dependence.pair_explanation import HeldOutColumnParts
from tallybayes.models.one_dependence.pair_sampling import columns_of_codes, predict_missing
from tallybayes.models.one_dependence.pair_scorer import PairScorer
from tallybayes.tally.factor import Name

if TYPE_CHECKING:
    from tallybayes.models.classification.held_out_rows import CountedRows


@dataclass(frozen=True, eq=False)
class EstimatedOneDependence(EstimatedClassifier):
    """Estimated class prior, and estimated tables of pairs of columns.

    Attributes
    ----------
    columns : DiscretizedColumns
        The families and bins of the columns.
    strength : float
        The prior strength of p(column | class, parent), in rows.
    pairs_type : subclass of EstimatedPairs
    formula : str
        The formula of the calculation.
    """

    columns: DiscretizedColumns
    strength: float
    pairs_type: type[EstimatedPairs]
    formula: str

    @cached_property
    def pairs(self) -> EstimatedPairs:
        """The estimated tables of pairs."""
        names = list(self.columns.families)
        n_classes = len(self.classes.levels)
        check_memory(self.model, n_classes, [len(self.counted.domains[str(name)].levels) for name in names])
        counts = PairCounts.of_tally(self.counted, names, self.factors, n_classes)
        return self.pairs_type(counts, self.columns, self.strength, self.unseen, self.target, self.labels.tolist())

    def scorer_under(self, log_prior: np.ndarray) -> PairScorer:  # type: ignore[override]
        """Return the scorer of rows under a class prior."""
        return self.pairs.row_scorer(log_prior)

    @property
    def pair_scorer(self) -> PairScorer:
        """The scorer of rows under the class prior of the model."""
        scorer: Any = self.row_scorer  # made by `scorer_under`
        return scorer

    def score_left_out(self, rows: CountedRows) -> ClassPosterior:
        """Return the scores of every row without its own counts."""
        log_prior = self.log_prior_without(rows.codes, rows.weight)
        return self.pair_scorer.left_out(rows.table, rows.codes, rows.weight, log_prior)

    @cached_property
    def column_specs(self) -> list[ColumnSpec]:
        """The columns before discretization, with their families and levels."""
        families = ((name, family.present_family or family) for name, family in self.columns.families.items())
        domains = self.counted.domains
        return [([name], family, [] if family.bins else [domains[str(name)]]) for name, family in families]

    def labeled_factors(self) -> list[LabeledFactor]:
        """Return p(class), and the tables of the columns."""
        return [self.labeled_class_prior(), *self.pairs.labeled_factors()]

    @cached_property
    def parameters(self) -> Parameters:
        """The parameters by column, and by pair of column and parent."""
        by_column = super().parameters
        names: tuple[Any, ...] = self.pairs.counts.names

        def find(column: Name | tuple[Name, ...]) -> ParameterTable:
            if isinstance(column, tuple) and len(column) == 2 and set(column) <= set(names) and column not in names:
                return self.pairs.labeled_factor(*column).column(0)
            return by_column[column]

        return Parameters(by_column.title, list(by_column), list(by_column), find)

    def explanation_parts(self, table: Table, prior: PriorPart, log_odds: np.ndarray) -> list[ExplanationPart]:
        """Return the contributions of the columns, each removed in turn, and of their interactions."""
        return [HeldOutColumnParts(self.pairs, self.pair_scorer, table, prior, log_odds)]

    def sample_columns(self, group: np.ndarray, rng: np.random.Generator) -> dict[Name, Any]:
        """Draw the columns of rows of these classes."""
        return columns_of_codes(self.pairs, self.pairs.sample_codes(group, rng), rng)

    def predict_missing(self, table: Table, proba: np.ndarray, how: str) -> dict[Any, MissingCellPrediction]:
        """Return the predictive distributions of the missing cells of each column."""
        return predict_missing(self.pairs, self.pair_scorer, table, proba, how)

    def calculation(self, table: Table, joint: np.ndarray) -> CalculationSheet:
        """Return the calculation of log p(class, row) of one row."""
        sheet = CalculationSheet(f"p(class | x) ∝ {self.formula}", list(self.labels))
        sheet.add("log p(class)", self.class_log_prior)
        codes = [int(column[0]) for column in self.pairs.codes(table)]
        self.pairs.write_work(sheet, codes, joint - self.class_log_prior)
        return sheet

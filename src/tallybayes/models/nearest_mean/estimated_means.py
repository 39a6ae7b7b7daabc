"""EstimatedMeans: the class means and the metric of a nearest-mean classifier, and the distances of rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tallybayes.data.table import Table
from tallybayes.errors import DataError, EstimateError, printable
from tallybayes.estimation.scoring.extreme_rows import far_leads, rows_without_precision
from tallybayes.estimation.scoring.factor_scorer import (
    FactorScorer,
    ResolvedPrior,
    chunk_of,
    factor_cells,
    make_factor_scorer,
)
from tallybayes.families.gaussian import TiedGaussian
from tallybayes.families.protocols.degenerate_estimates import constant_columns
from tallybayes.models.classification.class_parameters import labeled_class_prior
from tallybayes.models.classification.methods.calculation_sheet import CalculationSheet
from tallybayes.models.classification.methods.explanation import shown
from tallybayes.models.classification.methods.show_work import MOST_COLUMNS, one_row
from tallybayes.models.inspection.column_names import ColumnNames
from tallybayes.models.inspection.labeled_parameters import LabeledFactor
from tallybayes.models.nearest_mean.metric_learning import metric_root, whitening_matrix
from tallybayes.statistics.moments import Moments
from tallybayes.tally.factor import Factor, Name
from tallybayes.tally.tally import Tally

Metric: TypeAlias = str | npt.ArrayLike | Callable[[np.ndarray, np.ndarray], npt.ArrayLike]


@dataclass(frozen=True, eq=False)
class EstimatedMeans:
    """Class means, and d²(x, μ) = ‖W(x − μ)‖² in a metric W.

    Attributes
    ----------
    tally : Tally
    target : name
    labels : ndarray
        The classes, in the data type of the target.
    metric : str, matrix or callable
        The parameter of the model.
    learned : ndarray or None
        W of a learned metric.
    fixed : ndarray or None
        W of a metric that the tally no longer determines.
    names : ColumnNames
    """

    tally: Tally
    target: Name
    labels: np.ndarray
    metric: Metric
    learned: np.ndarray | None
    fixed: np.ndarray | None
    names: ColumnNames

    @property
    def factor(self) -> Factor:
        """The factor of the features."""
        return self.tally.factors[1]

    @property
    def moments(self) -> Moments:
        """The moments of the classes."""
        moments = self.tally.statistics[1]
        assert isinstance(moments, Moments)
        return moments

    @cached_property
    def means(self) -> np.ndarray:
        """The class means, (classes, columns)."""
        return self.moments.mean

    @cached_property
    def projection(self) -> np.ndarray | None:
        """W of the metric; None for a callable."""
        if self.fixed is not None or callable(self.metric):
            return self.fixed
        d = self.moments.n_columns
        if not isinstance(self.metric, str):
            return metric_root(self.metric, d)
        if self.metric == "euclidean":
            return np.eye(d)
        if self.metric == "mahalanobis":
            return whitening_matrix(self.moments, self.factor)
        if self.learned is None:
            raise EstimateError("no metric is learned yet, and a tally does not determine it.\n    Use fit.")
        return self.learned

    @property
    def class_log_prior(self) -> np.ndarray:
        """The log class prior: uniform, because only distances decide."""
        n_classes = len(self.labels)
        return np.full(n_classes, -np.log(max(n_classes, 1)))

    @cached_property
    def scorers(self) -> list[FactorScorer]:
        """The class means with a tied variance, for plots and parameter tables."""
        family = TiedGaussian()
        moments = self.moments.diagonal()
        constant = ResolvedPrior(None, constant_columns(family, moments))
        return [make_factor_scorer(self.factor.replace(family=family), moments, constant, "mle")]

    def labeled_class_prior(self) -> LabeledFactor:
        """Return p(class) with labels."""
        return labeled_class_prior(self.target, self.labels.tolist(), self.class_log_prior)

    def labeled_factors(self) -> list[LabeledFactor]:
        """Return p(class) and the class means with labels."""
        means = LabeledFactor(self.scorers[0], (self.target,), (self.labels.tolist(),), only=("mean",))
        return [self.labeled_class_prior(), means]

    def cells(self, table: Table) -> np.ndarray:
        """Return the cells of rows without missing values; raise DataError for a missing cell."""
        return complete_cells(table, self.factor)

    def squared_distances(self, table: Table) -> np.ndarray:
        """Return the squared distance of each row to each class mean, shape (n, classes)."""
        if not len(self.means):
            raise DataError("no class is left to predict: every row was forgotten.\n    Fit at least one row.")
        rows = self.cells(table)
        if self.projection is not None:  # centered at the mean of the means, for accuracy
            middle = self.means.mean(axis=0)
            rows = (rows - middle) @ self.projection.T
            means = (self.means - middle) @ self.projection.T
            return np.stack([((rows - mean) ** 2).sum(axis=1) for mean in means], axis=1)
        metric: Any = self.metric
        out = [np.asarray(metric(rows, mean), dtype=float) for mean in self.means]
        for squares in out:
            if squares.shape != (len(rows),):
                raise DataError.wrong_shape(
                    "what metric(X, mean) returned", squares.shape, f"({len(rows)},), d² per row"
                )
        return np.stack(out, axis=1)

    def scores(self, table: Table) -> np.ndarray:
        """Return −½ d² of each row to each mean; for very distant rows, up to a constant, without loss of precision."""
        with np.errstate(over="ignore"):
            score = -0.5 * self.squared_distances(table)
        imprecise = rows_without_precision(score.max(axis=1))
        if imprecise is not None and self.projection is not None:
            score[imprecise] = far_leads(self.cells(table)[imprecise], self.means, self.projection)
        return score

    def log_proba(self, table: Table) -> np.ndarray:
        """Return log p(class | x), shape (n, classes)."""
        score = self.scores(table)
        score -= score.max(axis=1, keepdims=True)
        return score - np.log(np.exp(score).sum(axis=1, keepdims=True))

    def show_work(self, table: Table) -> str:
        """Return a step-by-step calculation of the distances of one row, and of its class probabilities."""
        cells = self.cells(one_row(table))[0]
        sheet = CalculationSheet("p(class | x) ∝ exp(−½ d²(x, μ)), d² = ‖W (x − μ)‖²", list(self.labels))
        for index in range(min(len(cells), MOST_COLUMNS)):
            name = self.names.display(self.factor.column(index, len(cells)))
            sheet.add(f"  mean of {printable(name)}", self.means[:, index], shown(float(cells[index])))
        if self.projection is None:
            sheet.note("  d² by the given metric")
        else:
            squares = ((cells - self.means) @ self.projection.T) ** 2
            for k in range(min(len(self.projection), MOST_COLUMNS)):
                sheet.add(f"(W (x − μ))² in direction {k}", squares[:, k])
            if len(self.projection) > MOST_COLUMNS:
                rest = squares[:, MOST_COLUMNS:].sum(axis=1)
                sheet.add(f"in {len(self.projection) - MOST_COLUMNS:,} more directions", rest)
        sheet.rule()
        sheet.add("d²(x, μ)", self.squared_distances(table)[0])
        log_proba = self.log_proba(table)[0]
        sheet.add("p(class | x)", np.exp(log_proba))
        return sheet.to_text(self.labels[self.scores(table)[0].argmax()])


def complete_cells(table: Table, factor: Factor) -> np.ndarray:
    """Return the cells of rows; raise DataError for the first cell that is missing or infinite."""
    rows = chunk_of(factor_cells(table, factor.columns, factor.family, [], "missing"), slice(None))
    wrong = ~np.isfinite(rows)
    if wrong.any():
        row, column = (int(i) for i in np.argwhere(wrong)[0])
        name = factor.column(column, rows.shape[1])
        expected = "a finite number (distances need complete rows, without NaN)"
        hint = "tb.NaiveBayes and tb.GaussianDiscriminant take rows with missing cells."
        raise DataError.bad_cell(float(rows[row, column]), row, name, expected, hint)
    return rows

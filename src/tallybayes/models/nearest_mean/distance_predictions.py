"""Predictions of the nearest class mean from squared distances."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallybayes._utils.fitted import check_is_fitted
from tallybayes.data.table import Table
from tallybayes.errors import DataError, printable
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
from tallybayes.models.inputs.input_format import open_rows
from tallybayes.models.inspection.labeled_parameters import LabeledFactor
from tallybayes.tally.factor import Factor
from tallybayes.typing import Rows


def class_log_prior(model: Any) -> np.ndarray:
    """Return the log class prior: uniform, because only distances decide."""
    n_classes = len(model.classes_)
    return np.full(n_classes, -np.log(max(n_classes, 1)))


def scored(model: Any) -> list[FactorScorer]:
    """Return the class means with a tied variance, for plots and parameter tables."""
    return model._cached("scored", lambda: _scored(model))


def _scored(model: Any) -> list[FactorScorer]:
    """Return the scorer of the class means, without caching."""
    read = TiedGaussian()
    factor = model.tally_.factors[1]
    moments = model._moments().diagonal()
    constant = ResolvedPrior(None, constant_columns(read, moments))
    return [make_factor_scorer(Factor(factor.columns, factor.given, read), moments, constant, "mle")]


def labeled_factors(model: Any) -> list[LabeledFactor]:
    """Return p(class) and the class means with labels; the metric is ``projection_``."""
    return [
        labeled_class_prior(model),
        LabeledFactor(model._factor_scorers[0], (model._target,), (model.classes_.tolist(),), only=("mean",)),
    ]


def squared_distances(model: Any, X: Rows) -> np.ndarray:
    """Return the squared distance of each row to each class mean, shape (n, classes)."""
    check_is_fitted(model, "tally_")
    if not len(model.means_):
        raise DataError("no class is left to predict: every row was forgotten.\n    Fit at least one row.")
    rows = model._numbers(open_rows(model, X))
    means = model.means_
    projection = model._projection()
    out = np.empty((len(rows), len(means)))
    if projection is not None:  # centered at the mean of the means, for accuracy
        middle = means.mean(axis=0)
        rows = (rows - middle) @ projection.T
        means = (means - middle) @ projection.T
    for k, mean in enumerate(means):
        if projection is not None:
            out[:, k] = ((rows - mean) ** 2).sum(axis=1)
            continue
        squares = np.asarray(model.metric(rows, mean), dtype=float)
        if squares.shape != (len(rows),):
            raise DataError.wrong_shape("what metric(X, mean) returned", squares.shape, f"({len(rows)},), d² per row")
        out[:, k] = squares
    return out


def numbers(model: Any, table: Table) -> np.ndarray:
    """Return the cells of rows without missing values; raise DataError for a missing cell."""
    factor = model.tally_.factors[1]
    rows = chunk_of(factor_cells(table, factor.columns, factor.family, [], "missing"), slice(None))
    check_finite(rows, factor)
    return rows


def predict_proba(model: Any, X: Rows) -> np.ndarray:
    """Return p(class | x) ∝ exp(−½ d²(x, μ_c)), shape (n, classes)."""
    return np.exp(model.predict_log_proba(X))


def predict_log_proba(model: Any, X: Rows) -> np.ndarray:
    """Return log p(class | x), shape (n, classes)."""
    score = negative_half_squared_distances(model, X)
    score -= score.max(axis=1, keepdims=True)
    return score - np.log(np.exp(score).sum(axis=1, keepdims=True))


def predict(model: Any, X: Rows) -> np.ndarray:
    """Return the class of the nearest mean; ties go to the first class."""
    nearest = negative_half_squared_distances(model, X).argmax(axis=1)
    return model.classes_[nearest]


def negative_half_squared_distances(model: Any, X: Rows) -> np.ndarray:
    """Return −½ d² of each row to each mean; for very distant rows, up to a constant, without loss of precision."""
    with np.errstate(over="ignore"):
        score = -0.5 * model.squared_distances(X)
    imprecise = rows_without_precision(score.max(axis=1))
    projection = model._projection()
    if imprecise is not None and projection is not None:
        score[imprecise] = far_leads(model._numbers(open_rows(model, X))[imprecise], model.means_, projection)
    return score


def show_work(model: Any, row: Rows) -> str:
    """Return a step-by-step calculation of the distances of one row to each mean, and of its class probabilities."""
    table = one_row(model, row)
    squares = model.squared_distances(row)[0]
    sheet = CalculationSheet("p(class | x) ∝ exp(−½ d²(x, μ)), d² = ‖W (x − μ)‖²", list(model.classes_))
    projection = model._projection()
    cells = model._numbers(table)[0]
    names = model.tally_.factors[1].columns
    for index in range(min(len(cells), MOST_COLUMNS)):
        name = (
            model._display_name(model.tally_.factors[1].column(index, len(cells))) if len(names) == 1 else names[index]
        )
        sheet.add(f"  mean of {printable(name)}", model.means_[:, index], shown(float(cells[index])))
    if projection is None:
        sheet.note("  d² by the given metric")
    else:
        projected = (cells - model.means_) @ projection.T
        for k in range(min(len(projection), MOST_COLUMNS)):
            sheet.add(f"(W (x − μ))² in direction {k}", projected[:, k] ** 2)
        if len(projection) > MOST_COLUMNS:
            rest = (projected[:, MOST_COLUMNS:] ** 2).sum(axis=1)
            sheet.add(f"in {len(projection) - MOST_COLUMNS:,} more directions", rest)
    sheet.rule()
    sheet.add("d²(x, μ)", squares)
    sheet.add("p(class | x)", model.predict_proba(row)[0])
    return sheet.to_text(model.predict(row)[0])


def check_finite(rows: np.ndarray, factor: Factor) -> None:
    """Raise DataError for the first cell that is missing or infinite: distances need complete rows."""
    wrong = ~np.isfinite(rows)
    if wrong.any():
        row, column = (int(i) for i in np.argwhere(wrong)[0])
        name = factor.column(column, rows.shape[1])
        expected = "a finite number (distances need complete rows, without NaN)"
        hint = "tb.NaiveBayes and tb.GaussianDiscriminant take rows with missing cells."
        raise DataError.bad_cell(float(rows[row, column]), row, name, expected, hint)

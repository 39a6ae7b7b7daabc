"""Sampling from classifiers and mixtures, and imputation of missing cells."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from typing import Any

import numpy as np

from tallybayes._utils.fitted import check_is_fitted
from tallybayes.data.data_frames import frame_kind
from tallybayes.data.indicator_columns import is_presence, with_absences
from tallybayes.data.table import Table
from tallybayes.data.text_columns import Texts
from tallybayes.errors import DataError
from tallybayes.estimation.factor_sampling import (
    MissingCellPrediction,
    check_class,
    counts_to_text,
    impute_column,
    missing_cells,
    sample_factor,
)
from tallybayes.families._shared.blocks import SparseRows
from tallybayes.models.classification.estimated_classifier import EstimatedClassifier
from tallybayes.models.inputs.features import as_rows
from tallybayes.models.inputs.input_format import shaped
from tallybayes.tally.domain import labels_at
from tallybayes.tally.factor import Name
from tallybayes.typing import RandomState, Rows


def sample(model: Any, n: int, given: Hashable = None, *, random_state: RandomState = None) -> tuple[Any, np.ndarray]:
    """Draw random rows from the model."""
    check_is_fitted(model, "tally_")
    rng = np.random.default_rng(random_state)
    group = draw_classes(model, n, given, rng)
    columns = model._sample_columns(group, rng)
    return shaped(model.input_format_, with_absences(columns), model._frame_library), model.classes_[group]


def sample_columns(
    estimates: EstimatedClassifier, group: np.ndarray, text_columns: Collection[Name], rng: np.random.Generator
) -> dict[Name, Any]:
    """Draw the columns of rows of these classes, independently for each factor."""
    columns: dict[Name, Any] = {}
    domains = estimates.tally.domains
    factors = estimates.factors
    for scorer, (factor, statistics) in zip(factors.checked_scorers, factors.pairs, strict=True):
        cells = sample_factor(scorer, group, statistics, rng)
        first = factor.columns[0]
        if factor.family.cell_type == "codes":
            for index, name in enumerate(factor.columns):
                columns[name] = labels_at(domains[str(name)].levels, cells[:, index].astype(int))
        elif first in text_columns:
            columns[first] = counts_to_text(cells, domains[estimates.tally.schema.domain(first)].levels)
        elif len(factor.columns) == 1 and cells.shape[1] > 1:
            columns[first] = cells
        else:
            columns.update({name: cells[:, index] for index, name in enumerate(factor.columns)})
    return columns


def draw_classes(model: Any, n: int, given: Any, rng: np.random.Generator) -> np.ndarray:
    """Return the class codes of rows to draw: the given class, or draws from the class prior."""
    levels = model._class_domain.levels
    if not levels:
        model._check_estimated(model.class_log_prior_)
    if given is None:
        codes = rng.choice(len(levels), size=n, p=np.exp(model.class_log_prior_))
    else:
        codes = np.full(n, check_class(given, levels))
    model._check_estimated(np.where(np.isin(np.arange(len(levels)), codes), 0.0, -np.inf))
    return codes


def impute(model: Any, X: Rows, how: str = "mean") -> Any:
    """Impute missing cells from the other cells of their row."""
    if how not in ("mean", "mode", "distribution"):
        raise DataError(f"how is {how!r}; expected 'mean', 'mode' or 'distribution'.")
    table = model._open(X)
    proba = np.exp(model._log_proba(table))
    predictions = model._predict_missing(table, proba, how)
    if how == "distribution":
        return predictions
    columns: dict[Any, Any] = {
        name: _as_given(X, name) if isinstance(column, SparseRows | Texts) else np.array(column)
        for name, column in table.columns.items()
        if not is_presence(name, table.columns)
    }
    for name, prediction in predictions.items():
        if name in columns:
            columns[name] = impute_column(columns[name], prediction, how)
        else:  # a column of a block
            block, position = name
            columns[block][:, position] = impute_column(columns[block][:, position], prediction, how)
    return shaped(model.input_format_, columns, frame_kind(X), as_rows(X, model), predictions)


def predict_missing(
    estimates: EstimatedClassifier, table: Table, proba: np.ndarray
) -> dict[Any, MissingCellPrediction]:
    """Return the predictive distributions of the missing cells of each column, given p(class | row)."""
    predictions: dict[Any, MissingCellPrediction] = {}
    for scorer, (_, statistics) in zip(estimates.scorers, estimates.factors.pairs, strict=True):
        first = scorer.factor.columns[0]
        if table.source_of(first) is not None:  # missing-value indicators are not imputed
            continue
        cells = estimates.cells(table, scorer)
        domains = estimates.level_domains(scorer)
        for index, prediction in missing_cells(scorer, statistics, table, cells, proba, domains).items():
            predictions[scorer.factor.column(index, table.width(first))] = prediction
    return predictions


def _as_given(X: Any, name: Any) -> Any:
    """Return a block or a text column as passed by the user."""
    return X[name] if isinstance(X, Mapping) or hasattr(X, "columns") else X

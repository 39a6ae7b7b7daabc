"""Sampling from classifiers and mixtures, and imputation of missing cells."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes._utils.parameter_checks import check_count, random_generator
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
from tallybayes.tally.domain import labels_at
from tallybayes.tally.factor import Name
from tallybayes.typing import RandomState, Rows

if TYPE_CHECKING:
    from tallybayes.models.classification.estimated_classifier import EstimatedClassifier


def sample(
    estimates: EstimatedClassifier, n: int, given: Hashable, random_state: RandomState
) -> tuple[dict[Name, Any], np.ndarray]:
    """Draw random rows: their columns, and their class codes."""
    rng = random_generator(random_state)
    group = draw_classes(estimates, check_count("n", n, 0), given, rng)
    return with_absences(estimates.sample_columns(group, rng)), group


def sample_columns(estimates: EstimatedClassifier, group: np.ndarray, rng: np.random.Generator) -> dict[Name, Any]:
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
        elif first in estimates.words:
            columns[first] = counts_to_text(cells, domains[estimates.tally.schema.domain(first)].levels)
        elif len(factor.columns) == 1 and cells.shape[1] > 1:
            columns[first] = cells
        else:
            columns.update({name: cells[:, index] for index, name in enumerate(factor.columns)})
    return columns


def draw_classes(estimates: EstimatedClassifier, n: int, given: Hashable, rng: np.random.Generator) -> np.ndarray:
    """Return the class codes of rows to draw: the given class, or draws from the class prior."""
    levels = estimates.classes.levels
    if not levels:
        estimates.check_defined(estimates.class_log_prior)
    if given is None:
        codes = rng.choice(len(levels), size=n, p=np.exp(estimates.class_log_prior))
    else:
        codes = np.full(n, check_class(given, levels))
    estimates.check_defined(np.where(np.isin(np.arange(len(levels)), codes), 0.0, -np.inf))
    return codes


def check_how(how: str) -> None:
    """Raise DataError for an unknown way to impute."""
    if how not in ("mean", "mode", "distribution"):
        raise DataError(f"how is {how!r}; expected 'mean', 'mode' or 'distribution'.")


def imputed_columns(
    X: Rows, table: Table, predictions: Mapping[Any, MissingCellPrediction], how: str
) -> dict[Any, Any]:
    """Return the columns of rows with missing cells imputed."""
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
    return columns


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


def _as_given(X: Rows, name: Name) -> Any:
    """Return a block or a text column as passed by the user."""
    rows: Any = X
    return rows[name] if isinstance(X, Mapping) or hasattr(X, "columns") else rows

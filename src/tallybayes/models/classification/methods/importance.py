"""Feature importance: the increase of the log loss without a column."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tallybayes._utils.fitted import check_is_fitted
from tallybayes.data.indicator_columns import hidden, is_presence
from tallybayes.data.table import Table
from tallybayes.errors import DataError
from tallybayes.estimation.importance import FeatureImportance, chosen_columns
from tallybayes.models.inputs.input_format import read_codes
from tallybayes.typing import Labels, Name, Rows, SampleWeights

_LEAST = -700.0  # lower bound of log p(class | row)


def feature_importance(
    model: Any, X: Rows, y: Labels, *, columns: Iterable[Name] | None = None, sample_weight: SampleWeights = None
) -> FeatureImportance:
    """Return the increase of the log loss of labeled rows without each column."""
    check_is_fitted(model)
    codes, rows, weights = read_codes(model, X, y, sample_weight)
    required = set(model._required_columns)
    known_names = [name for name in dict.fromkeys(model._required_columns) if not is_presence(name, required)]
    names = chosen_columns(columns, known_names)
    for name in names:
        if rows.is_block(name) or rows.kind(name) == "text":
            kind = "text or a block of columns"
            hint = "Name other columns: columns=[...]."
            raise DataError.wrong_type(f"column {name!r}", kind, "a single column of numbers or labels", hint)
    return FeatureImportance.of_losses(names, *_losses(model, rows, codes, names), weights)


def _losses(model: Any, rows: Table, codes: np.ndarray, names: list[Name]) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the log loss of each row, and its increase without each column."""

    def loss(log_proba: np.ndarray) -> np.ndarray:
        return -np.maximum(log_proba[np.arange(len(codes)), codes], _LEAST)

    base = loss(model.predict_log_proba(rows))
    return base, [loss(model._log_proba_without(rows, name)) - base for name in names]


def log_proba_without(model: Any, table: Table, name: Name) -> np.ndarray:
    """Return log p(class | row) with a column marginalized out."""
    return np.asarray(model.predict_log_proba(hidden(table, [name])))

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
    """Return the increase of the log loss of labeled rows without each column.

    A column is removed by marginalizing it out, as a missing value is: exact under the model, without refitting and
    without randomness. Permutation importance (Breiman 2001; scikit-learn's ``permutation_importance``) replaces the
    cells of a column by those of other rows instead, which makes rows that cannot occur and differs from draw to draw.
    In both, a column whose information other columns repeat has a low importance. Use rows that the model was not
    fitted on: training rows overstate the importance of columns that the model has overfitted.

    Parameters
    ----------
    X : as for `fit`
    y : array-like of shape (n,), or the name of a column of X
    columns : list of names, optional
        The columns to remove, one at a time; all columns that the model reads if left out.
    sample_weight : array-like of shape (n,), or the name of a column of X, optional

    Returns
    -------
    FeatureImportance
        It prints as a table; see ``to_frame()`` and ``plot()``.

    Examples
    --------
    >>> import tallybayes as tb
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> found = tb.GaussianDiscriminant().fit(X[::2], y[::2]).feature_importance(X[1::2], y[1::2])
    >>> found.columns[0]
    'petal length (cm)'
    """
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

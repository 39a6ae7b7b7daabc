"""Sampling from classifiers and mixtures, and imputation of missing cells."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tallybayes.data.data_frames import frame_kind
from tallybayes.data.indicator_columns import is_presence, with_absences
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
from tallybayes.models.inputs.features import as_rows
from tallybayes.models.inputs.input_format import shaped
from tallybayes.models.inputs.invalid_cells import answering
from tallybayes.tally.domain import labels_at
from tallybayes.tally.factor import Name
from tallybayes.typing import RandomState, Rows


def sample(model: Any, n: int, given: Hashable = None, *, random_state: RandomState = None) -> tuple[Any, np.ndarray]:
    """Draw random rows from the model.

    Parameters
    ----------
    n : int
    given : label, optional
        The class of all rows; by default classes are drawn from the class prior.
    random_state : int, Generator or None

    Returns
    -------
    X : data frame of the library of the training rows, else an array of shape (n, columns)
        Or a dictionary of columns, if they have names or levels.
    y : ndarray of shape (n,)
    """
    check_is_fitted(model, "tally_")
    rng = np.random.default_rng(random_state)
    codes = draw_classes(model, n, given, rng)
    columns: dict[Name, Any] = {}
    for scored, (factor, statistics) in zip(model._estimated.checked_scorers, model._estimated.pairs, strict=True):
        rows = sample_factor(scored, codes, statistics, rng)
        if factor.family.cell_type == "codes":
            for index, name in enumerate(factor.columns):
                columns[name] = labels_at(model.tally_.domains[str(name)].levels, rows[:, index].astype(int))
        elif factor.columns[0] in model._selected_words:
            columns[factor.columns[0]] = counts_to_text(rows, model._block_column_names(factor.columns[0]))
        elif len(factor.columns) == 1 and rows.shape[1] > 1:
            columns[factor.columns[0]] = rows
        else:
            columns.update({name: rows[:, index] for index, name in enumerate(factor.columns)})
    return shaped(model._shape, with_absences(columns), model._frame_library), model.classes_[codes]


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


@answering
def impute(model: Any, X: Rows, how: str = "mean") -> Any:
    """Impute missing cells from the other cells of their row.

    Parameters
    ----------
    X : as for `fit`, without the target
    how : {"mean", "mode", "distribution"}, default "mean"
        Numbers are imputed by their conditional mean, or by that of the most probable class (``"mode"``); categorical
        cells by the most probable level. ``"distribution"`` returns the predictive distributions instead.

    Returns
    -------
    A copy of X: a data frame of the same library, an array or a dictionary of columns
        For ``"distribution"``, a `MissingCellPrediction` for each column with missing cells.
    """
    if how not in ("mean", "mode", "distribution"):
        raise DataError(f"how is {how!r}; expected 'mean', 'mode' or 'distribution'.")
    table = model._open(X)
    weights = np.exp(model._log_proba(table))
    columns: dict[Any, Any] = {
        name: _as_given(X, name) if isinstance(column, SparseRows | Texts) else np.array(column)
        for name, column in table.columns.items()
        if not is_presence(name, table.columns)
    }
    imputed: dict[Any, MissingCellPrediction] = {}
    for scored, (_, statistics) in zip(model._factor_scorers, model._feature_factors(), strict=True):
        names = scored.factor.columns
        if table.source_of(names[0]) is not None:  # missing-value indicators are not imputed
            continue
        domains = [model.tally_.domains[str(name)] for name in names] if scored.family.cell_type == "codes" else []
        rows = model._factor_cells(table, scored)
        for index, cells in missing_cells(scored, statistics, table, rows, weights, domains).items():
            name = scored.factor.column(index, table.width(names[0]))
            imputed[name] = cells
            if name in columns:
                columns[name] = impute_column(columns[name], cells, how)
            else:  # a column of a block
                block, position = name
                columns[block][:, position] = impute_column(columns[block][:, position], cells, how)
    return (
        imputed if how == "distribution" else shaped(model._shape, columns, frame_kind(X), as_rows(X, model), imputed)
    )


def _as_given(X: Any, name: Any) -> Any:
    """Return a block or a text column as passed by the user."""
    return X[name] if isinstance(X, Mapping) or hasattr(X, "columns") else X

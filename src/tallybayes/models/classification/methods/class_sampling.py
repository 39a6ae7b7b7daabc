"""Rows out of a classifier or a mixture: sampling, and filling in missing cells."""

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
    """Draw rows from the model.

    Parameters
    ----------
    n : int
    given : label, optional
        The class of all rows; drawn by the class prior if left out.
    random_state : int, Generator or None

    Returns
    -------
    X : a data frame of the kind the model was fitted on, else an array of shape (n, columns)
        Or a dictionary of columns, where they have names or labels.
    y : ndarray of shape (n,)
    """
    check_is_fitted(model, "tally_")
    rng = np.random.default_rng(random_state)
    codes = draw_classes(model, n, given, rng)
    columns: dict[Name, Any] = {}
    for scored, (factor, statistics) in zip(model._estimated.checked_scorers, model._estimated.pairs, strict=True):
        rows = sample_factor(scored, codes, statistics, rng)
        if factor.family.cell_type == "codes":
            for place, name in enumerate(factor.columns):
                columns[name] = labels_at(model.tally_.domains[str(name)].levels, rows[:, place].astype(int))
        elif factor.columns[0] in model._selected_words:
            columns[factor.columns[0]] = counts_to_text(rows, model._block_column_names(factor.columns[0]))
        elif len(factor.columns) == 1 and rows.shape[1] > 1:
            columns[factor.columns[0]] = rows
        else:
            columns.update({name: rows[:, place] for place, name in enumerate(factor.columns)})
    return shaped(model._shape, with_absences(columns), model._frame_library), model.classes_[codes]


def draw_classes(model: Any, n: int, given: Any, rng: np.random.Generator) -> np.ndarray:
    """The classes of rows to draw, as codes: the one that is given, or by the class prior."""
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
    """Fill in missing cells by what the rest of their row says about the class.

    Parameters
    ----------
    X : as for `fit`, without the target
    how : {"mean", "mode", "distribution"}, default "mean"
        Numbers by their expectation, or that of the most probable class (``"mode"``); labels by the most probable
        one; or, for every column with missing cells, what is believed about them.

    Returns
    -------
    A copy of X: a data frame of the same kind, an array or a dictionary of columns
        For ``"distribution"``, a `MissingCellPrediction` for every such column.
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
    found: dict[Any, MissingCellPrediction] = {}
    for scored, (_, statistics) in zip(model._factor_scorers, model._feature_factors(), strict=True):
        names = scored.factor.columns
        if table.source_of(names[0]) is not None:  # what is not there is filled in, not whether it is
            continue
        domains = [model.tally_.domains[str(name)] for name in names] if scored.family.cell_type == "codes" else []
        rows = model._factor_cells(table, scored)
        for place, cells in missing_cells(scored, statistics, table, rows, weights, domains).items():
            name = scored.factor.column(place, table.width(names[0]))
            found[name] = cells
            if name in columns:
                columns[name] = impute_column(columns[name], cells, how)
            else:  # a column of a block
                block, where = name
                columns[block][:, where] = impute_column(columns[block][:, where], cells, how)
    return found if how == "distribution" else shaped(model._shape, columns, frame_kind(X), as_rows(X, model), found)


def _as_given(X: Any, name: Any) -> Any:
    """A block, or a column of text, as it came."""
    return X[name] if isinstance(X, Mapping) or hasattr(X, "columns") else X

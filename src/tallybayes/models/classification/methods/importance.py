"""Feature importance: the increase of the log loss without a column."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from tallybayes.data.indicator_columns import is_presence
from tallybayes.data.table import Table
from tallybayes.errors import DataError
from tallybayes.estimation.importance import FeatureImportance, chosen_columns
from tallybayes.typing import Name

_LEAST = -700.0  # lower bound of log p(class | row)


class LabeledTable(NamedTuple):
    """The class codes of rows, the rows without the target, and their weights."""

    codes: np.ndarray
    rows: Table
    weight: np.ndarray | None


def feature_importance(
    labeled: LabeledTable,
    required: Sequence[Name],
    columns: Iterable[Name] | None,
    log_proba: Callable[[Table], np.ndarray],
    log_proba_without: Callable[[Table, Name], np.ndarray],
) -> FeatureImportance:
    """Return the increase of the log loss of labeled rows without each column.

    Parameters
    ----------
    labeled : LabeledTable
    required : sequence of names
        The columns that the model reads.
    columns : iterable of names, optional
        The columns to remove, one at a time; all that the model reads if left out.
    log_proba, log_proba_without : callables
        Return log p(class | row), also with a column marginalized out.
    """
    codes, rows, weight = labeled
    known = set(required)
    names = chosen_columns(columns, [name for name in dict.fromkeys(required) if not is_presence(name, known)])
    for name in names:
        if rows.is_block(name) or rows.kind(name) == "text":
            kind = "text or a block of columns"
            hint = "Name other columns: columns=[...]."
            raise DataError.wrong_type(f"column {name!r}", kind, "a single column of numbers or labels", hint)

    def loss(log_proba: np.ndarray) -> np.ndarray:
        return -np.maximum(log_proba[np.arange(len(codes)), codes], _LEAST)

    base = loss(log_proba(rows))
    return FeatureImportance.of_losses(names, base, [loss(log_proba_without(rows, n)) - base for n in names], weight)

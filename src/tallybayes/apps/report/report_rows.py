"""Rows of a report: a sample of the data as columns of Python values, and the predictions of a model for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

import tallybayes as tb

if TYPE_CHECKING:
    from tallybayes.models.classification.classifier import Classifier
    from tallybayes.typing import Labels, Name, Rows

_MAX_ROWS = 2000


class ReportRows:
    """At most `max_rows` evenly spaced rows of the data, and their class labels.

    Parameters
    ----------
    data : as for `tallybayes.evaluate`
    target : column name or array-like of labels
    max_rows : int, default 2000

    Attributes
    ----------
    indices : ndarray of shape (n_rows,)
        Positions of the rows in the data.
    columns : dict of lists
    labels : list
    """

    def __init__(self, data: Rows, target: Labels, max_rows: int = _MAX_ROWS) -> None:
        columns = _columns(data)
        n = len(next(iter(columns.values()), ()))
        labels = columns.pop(target) if isinstance(target, str | int) else list(target)
        self.indices = np.unique(np.linspace(0, max(n - 1, 0), min(n, max_rows)).astype(int))
        self.columns = {name: [cells[index] for index in self.indices] for name, cells in columns.items()}
        self.labels = [labels[index] for index in self.indices]

    def __len__(self) -> int:
        return len(self.indices)

    def take(self, rows: Iterable[int]) -> dict[Name, list[Any]]:
        """Return the columns of the rows at these positions of the report."""
        rows = list(rows)
        return {name: [cells[row] for row in rows] for name, cells in self.columns.items()}


class ReportPredictions:
    """Predictions of a classifier for the rows of a report."""

    def __init__(self, model: Classifier, rows: ReportRows) -> None:
        self.model = model
        self.rows = rows

    @cached_property
    def truth(self) -> np.ndarray:
        """The class index of each label, −1 for labels that are not classes of the model."""
        index = {label: code for code, label in enumerate(self.model.classes_.tolist())}
        plain = [label.item() if hasattr(label, "item") else label for label in self.rows.labels]
        return np.array([index.get(label, index.get(str(label), -1)) for label in plain], dtype=int)

    @cached_property
    def log_proba(self) -> np.ndarray:
        """log p(class | row) of the rows."""
        return self.log_proba_of(self.rows.columns)

    @cached_property
    def predicted(self) -> np.ndarray:
        """The index of the predicted class of each row."""
        return self.log_proba.argmax(axis=1)

    @cached_property
    def confidence(self) -> np.ndarray:
        """The log probability of the predicted class of each row."""
        return self.log_proba.max(axis=1)

    def log_proba_of(self, columns: Mapping[Name, list[Any]]) -> np.ndarray:
        """Return log p(class | row), clipped at −700 so that the page can add finite differences to it."""
        return np.maximum(np.asarray(self.model.predict_log_proba(columns)), -700.0)


def _columns(data: Rows) -> dict[Name, list[Any]]:
    """Return the columns as lists. Data sources give a random sample."""
    if hasattr(data, "tocsr"):
        raise tb.DataError.wrong_type(
            "the data", "a sparse matrix", "single columns", "Pass a data frame, a file or a dense array."
        )
    if isinstance(data, list) and data and isinstance(data[0], Mapping):
        names = dict.fromkeys(name for row in data for name in row)
        data = {name: [row.get(name) for row in data] for name in names}
    if isinstance(data, Mapping):
        return {name: list(column) for name, column in data.items()}
    if isinstance(data, list | tuple | np.ndarray) or getattr(data, "ndim", 2) == 1:  # rows, or texts
        array = np.asarray(data)
        return {"text": array.tolist()} if array.ndim == 1 else dict(enumerate(array.T.tolist()))
    import narwhals as nw

    frame = nw.from_native(data, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return dict(zip(frame.columns, (column.to_list() for column in frame.iter_columns()), strict=True))
    source = data if isinstance(data, tb.Source) else tb.table(data)
    return dict(source.sample()[0].to_pydict())

"""Rows of a report: a sample of the data as columns of Python values, for every supported input type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import tallybayes as tb

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

    def __init__(self, data: Any, target: Any, max_rows: int = _MAX_ROWS) -> None:
        columns = _columns(data)
        n = len(next(iter(columns.values()), ()))
        if not _is_labels(target) and target not in columns:
            names = ", ".join(map(repr, list(columns)[:8]))
            raise tb.DataError(
                f"no column {target!r} in the data (found: {names}), so the class labels are unknown.\n"
                "    Pass rows that have it, or pass the labels: model.report(X, y)."
            )
        labels = list(target) if _is_labels(target) else columns.pop(target)
        if len(labels) != n:
            raise tb.DataError(f"the target has {len(labels)} labels for {n} rows; expected one label per row.")
        self.indices = np.unique(np.linspace(0, n - 1, min(n, max_rows)).astype(int)) if n else np.zeros(0, int)
        self.columns = {name: [cells[index] for index in self.indices] for name, cells in columns.items()}
        self.labels = [labels[index] for index in self.indices]

    def __len__(self) -> int:
        return len(self.indices)

    def take(self, rows: Any) -> dict[Any, list[Any]]:
        """Return the columns of the rows at these positions of the report."""
        return {name: [cells[row] for row in rows] for name, cells in self.columns.items()}


def _is_labels(target: Any) -> bool:
    """Return whether a target is an array of labels, not a column name."""
    return not isinstance(target, str) and hasattr(target, "__len__")


def _columns(data: Any) -> dict[Any, list[Any]]:
    """Return the columns as lists. Data sources give a random sample."""
    if hasattr(data, "tocsr"):
        raise tb.DataError.wrong_type(
            "the data", "a sparse matrix", "single columns", "Pass a data frame, a file or a dense array."
        )
    if getattr(data, "ndim", 2) == 1 and not isinstance(data, Mapping):  # one text per row
        return {"text": data.tolist() if isinstance(data, np.ndarray) else list(data)}
    if isinstance(data, np.ndarray):
        return {index: column.tolist() for index, column in enumerate(data.T)}
    if isinstance(data, Mapping):
        return {name: list(column) for name, column in data.items()}
    if isinstance(data, tb.Source):
        return dict(data.sample()[0].to_pydict())
    if isinstance(data, list) and data and isinstance(data[0], Mapping):
        names = dict.fromkeys(name for row in data for name in row)
        return {name: [row.get(name) for row in data] for name in names}
    if isinstance(data, list | tuple):
        return _columns(np.asarray(data))
    import narwhals as nw

    frame = nw.from_native(data, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return dict(tb.table(data).sample()[0].to_pydict())
    return {name: frame[name].to_list() for name in frame.columns}

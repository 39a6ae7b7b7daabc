"""Rows that a report looks at: some of them, as columns of plain values, whatever they were given as."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import tallybayes as tb

_MOST = 2000  # rows that are looked at one by one


class ReportRows:
    """Some rows of the data, evenly spread, and their labels.

    Parameters
    ----------
    data : as for `tallybayes.evaluate`
    target : name of a column, or labels
    most : int
    """

    def __init__(self, data: Any, target: Any, most: int = _MOST) -> None:
        columns = _columns(data)
        n = len(next(iter(columns.values()), ()))
        if not _is_labels(target) and target not in columns:
            names = ", ".join(map(repr, list(columns)[:8]))
            raise tb.DataError(
                f"no column {target!r} in the data (found: {names}), so the labels are not known.\n"
                "    Pass rows that have it, or the labels: model.report(X, y)."
            )
        labels = list(target) if _is_labels(target) else columns.pop(target)
        if len(labels) != n:
            raise tb.DataError(f"there are {len(labels)} labels and {n} rows; expected one for every row.")
        self.places = np.unique(np.linspace(0, n - 1, min(n, most)).astype(int)) if n else np.zeros(0, int)
        self.columns = {name: [cells[place] for place in self.places] for name, cells in columns.items()}
        self.labels = [labels[place] for place in self.places]

    def __len__(self) -> int:
        return len(self.places)

    def take(self, rows: Any) -> dict[Any, list[Any]]:
        """Some of the rows, by number."""
        return {name: [cells[row] for row in rows] for name, cells in self.columns.items()}


def _is_labels(target: Any) -> bool:
    return not isinstance(target, str) and hasattr(target, "__len__")


def _columns(data: Any) -> dict[Any, list[Any]]:
    """Columns as lists; of rows that are read in batches, a random sample."""
    if hasattr(data, "tocsr"):
        raise tb.DataError.wrong_type(
            "the data", "a sparse matrix", "columns one by one", "Pages are of frames, files and plain arrays."
        )
    if getattr(data, "ndim", 2) == 1 and not isinstance(data, Mapping):  # one text each
        return {"text": data.tolist() if isinstance(data, np.ndarray) else list(data)}
    if isinstance(data, np.ndarray):
        return {place: column.tolist() for place, column in enumerate(data.T)}
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

"""Base class of evaluations: metrics of all rows and of groups of rows, with credible intervals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from tallybayes.data.counting import check_weight
from tallybayes.data.table import open_table
from tallybayes.distributions.parameter_distribution import tail_probabilities
from tallybayes.errors import DataError, printable
from tallybayes.results.metric_intervals import MetricEstimate
from tallybayes.results.result import FrameData, Result, ResultTable
from tallybayes.typing import Labels

ALL_GROUPS = "(all)"  # the name of the rows of all groups in data frames
MOST_SHOWN = 12  # classes and groups in text
_WIDEST = 28  # characters of a label


class RowEvaluation(Result):
    """Metrics of some rows, over all of them and by group.

    A subclass defines the metrics as attributes, ``loss`` among them, and lists them in ``_metrics``.

    Parameters
    ----------
    n_rows : int
    weight : array of shape (n,), optional
        The weight of every row.
    by : array-like of shape (n,), optional
        The group of every row; missing ones are the group None.
    by_name : str
        The name of the groups in text.
    mass : float
        The probability of the credible intervals.
    """

    loss_name: str
    _separator = "\n\n"
    _metrics: ClassVar[tuple[str, ...]]  # of a data frame; those that are None are left out
    _frame_columns: ClassVar[tuple[str, ...]] = ("measure", "value", "low", "high")
    _rows: np.ndarray | slice  # the rows that are evaluated: those with weight

    def __init__(self, n_rows: int, weight: npt.ArrayLike | None, by: Labels | None, by_name: str, mass: float) -> None:
        tail_probabilities(mass)  # raises DataError if it is no probability
        self.mass = mass
        self.weight = check_weight(weight, n_rows, any_size=True)
        self.by = by
        self.by_name = by_name
        self._group_codes = None if by is None else _group_codes(by, n_rows)

    @property
    def n_rows(self) -> int:
        """The number of rows that are evaluated: those with weight."""
        raise NotImplementedError

    @property
    def loss(self) -> MetricEstimate:
        """The mean loss, by which candidates are compared; lower is better."""
        raise NotImplementedError

    def row_losses(self) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the loss of every evaluated row, and its weight or None.

        Returns
        -------
        tuple of ndarray of shape (rows,) and ndarray or None
        """
        raise NotImplementedError

    @property
    def groups(self) -> Mapping[object, RowEvaluation]:
        """The evaluation of every group of `by`; empty without groups."""
        raise NotImplementedError

    @property
    def _loss_rows(self) -> np.ndarray | slice:
        """The row of every loss."""
        return self._rows

    def _row_metrics(self) -> dict[str, np.ndarray]:
        """Return the metrics that are means over rows, by name: the value of every evaluated row."""
        return {self.loss_name.replace("-", "_").replace(" ", "_"): self.row_losses()[0]}

    def _group_rows(self) -> Iterator[tuple[object, np.ndarray]]:
        """Yield every group that has evaluated rows, with their positions; the group None, of missing labels, last."""
        if self._group_codes is None:
            return
        codes, levels = self._group_codes
        rows = np.arange(len(codes))[self._rows]
        rows = rows[np.argsort(codes[rows], kind="stable")]
        bounds = np.searchsorted(codes[rows], np.arange(-1, len(levels) + 1))
        for k in [*range(1, len(levels) + 1), 0]:  # missing labels have code −1 and are sorted first
            if bounds[k] < bounds[k + 1]:
                yield levels[k - 1] if k else None, rows[bounds[k] : bounds[k + 1]]

    def _estimates(self, names: Iterable[str]) -> dict[str, MetricEstimate]:
        """Return metrics by name, without those that are None."""
        estimates = {name: getattr(self, name) for name in names}
        return {name: estimate for name, estimate in estimates.items() if estimate is not None}

    def _records(self) -> list[tuple[object, ...]]:
        """Return the rows of the data frame, without groups."""
        metrics = [(name, *estimate) for name, estimate in self._estimates(self._metrics).items()]
        return [("rows", float(self.n_rows), np.nan, np.nan), *metrics]

    def _frame_data(self) -> FrameData:
        records = self._records()
        names = list(self._frame_columns)
        if self.by is not None:
            names = ["group", *names]
            records = [(ALL_GROUPS, *record) for record in records]
            records += [(label, *record) for label, part in self.groups.items() for record in part._records()]
        return {name: [record[k] for record in records] for k, name in enumerate(names)}

    def _group_table(self, labels: Mapping[str, str], unit: str = "rows") -> list[ResultTable]:
        """Return a table of the groups with some metrics, from their names to their labels; none without groups."""
        if not self.groups:
            return []
        head = [printable(self.by_name), unit, *(cell for label in labels.values() for cell in (label, ""))]
        rows = [
            [short_label(label), str(part.n_rows), *(cell for name in labels for cell in getattr(part, name).cells())]
            for label, part in self.groups.items()
        ]
        return [ResultTable(rows, head, align="lr" + "rl" * len(labels), max_rows=MOST_SHOWN)]


def metric_table(estimates: Mapping[str, MetricEstimate]) -> ResultTable:
    """Return a table of estimates by their labels."""
    return ResultTable([[label, *estimate.cells()] for label, estimate in estimates.items()], align="lrl")


def check_density(log_density: npt.ArrayLike | None, n_rows: int) -> np.ndarray | None:
    """Return log densities as float64; raise DataError unless there is one for every row, finite or −inf."""
    if log_density is None:
        return None
    array = np.asarray(log_density, dtype=np.float64)
    if array.shape != (n_rows,):
        raise DataError.wrong_shape("log_density", array.shape, f"({n_rows},), one number for every row")
    wrong = np.flatnonzero(np.isnan(array) | (array == np.inf))
    if len(wrong):
        row = int(wrong[0])
        raise DataError(f"log_density is {array[row]} in row {row}; expected log p(row): finite, or -inf.")
    return array


def _group_codes(by: Labels, n_rows: int) -> tuple[np.ndarray, Sequence[object]]:
    """Return the code of every row's group, −1 for missing ones, and the groups."""
    table = open_table({"by": by})
    if table.n_rows != n_rows:
        raise DataError.lengths_differ({"rows": n_rows, "by": table.n_rows})
    codes, domain = table.encoded("by", True)
    return np.asarray(codes).astype(np.int64), domain.levels


def short_label(label: object, widest: int = _WIDEST) -> str:
    """Return a label as text; a long one without its middle, since labels often differ at their ends."""
    text = "(missing)" if label is None else printable(label)
    if len(text) <= widest:
        return text
    tail = (widest - 1) // 2
    return f"{text[: widest - 1 - tail]}…{text[-tail:]}"

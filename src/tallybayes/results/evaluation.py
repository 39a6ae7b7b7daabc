"""Base class of evaluations: metrics of all rows and of groups of rows, with credible intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from tallybayes.data.counting import check_weight
from tallybayes.data.table import open_table
from tallybayes.distributions.parameter_distribution import tail_probabilities
from tallybayes.errors import DataError, printable
from tallybayes.results.metric_intervals import MetricEstimate, RowWeights
from tallybayes.results.result import FrameData, Result, ResultTable, shortened
from tallybayes.typing import Labels

if TYPE_CHECKING:
    import pandas as pd

ALL_GROUPS = "(all)"  # the name of the rows of all groups in data frames
MOST_SHOWN = 12  # classes and groups in text
REFITTED = "The model was refitted for every fold: its counts cannot be subtracted."
_WIDEST = 28  # characters of a label


class HeldOut(NamedTuple):
    """How the rows of an evaluation were held out. Part of the results of `cross_validate` and `leave_one_out`.

    Attributes
    ----------
    model : fitted model
        Fitted on all rows.
    fold : ndarray of shape (n,)
        The fold that every row, or sequence, was held out with; −1 for those that were only used for fitting.
    parameters : dict
        The parameters of a candidate by name; empty without candidates.
    refitted : bool
        Whether the model was refitted for every fold; otherwise the fold was subtracted from the counts of all rows.
    impossible : ndarray of bool of shape (n,), or None
        The rows with probability 0 in every class when they are held out: they get the class prior.

    Examples
    --------
    >>> import tallybayes as tb
    >>> rows = {"sky": ["sun", "rain", "sun", "rain", "sun"], "picnic": [1, 0, 1, 0, 0]}
    >>> result = tb.cross_validate(tb.NaiveBayes(), rows, "picnic", folds=[0, 0, 1, 1, 1])
    >>> result.held_out.fold.tolist(), result.held_out.refitted
    ([0, 0, 1, 1, 1], False)
    """

    model: Any
    fold: np.ndarray
    parameters: dict[str, Any]
    refitted: bool = False
    impossible: np.ndarray | None = None

    @property
    def rows(self) -> np.ndarray:
        """The rows, or sequences, that were held out."""
        return np.flatnonzero(self.fold >= 0)

    @property
    def selected(self) -> np.ndarray | slice:
        """The rows that were held out, as a slice if they are all rows."""
        return slice(None) if self.fold.min() >= 0 else self.rows


class RowEvaluation(Result):
    """Metrics of some rows, over all of them and by group.

    A subclass defines the metrics as attributes, ``loss`` among them, and lists them in ``_labels``.

    Parameters
    ----------
    n_rows : int
    weight : array of shape (n,), optional
        The weight of every row; 1 if left out.
    by : array-like of shape (n,), optional
        The group of every row; missing ones are the group None.
    by_name : str
        The name of the groups in text.
    mass : float
        The probability of the credible intervals.
    held_out : HeldOut, optional
        How the rows were held out.
    """

    loss_name: str
    _separator = "\n\n"
    _labels: Mapping[str, str]  # of every metric in text; "" for one that is only in data frames
    _frame_columns: ClassVar[tuple[str, ...]] = ("measure", "value", "low", "high")
    _rows: np.ndarray | slice  # the row of every evaluated item: of those with weight
    _size: np.ndarray  # their weights, scaled by a power of two to about 1

    def __init__(
        self,
        n_rows: int,
        weight: npt.ArrayLike | None,
        by: Labels | None,
        by_name: str,
        mass: float,
        held_out: HeldOut | None = None,
    ) -> None:
        tail_probabilities(mass)  # raises DataError if it is no probability
        self.mass = mass
        given = check_weight(weight, n_rows, any_size=True)
        self.weight = np.ones(n_rows) if given is None else given
        self.by = by
        self.by_name = by_name
        self.held_out = held_out
        self._group_codes = None if by is None else _group_codes(by, n_rows)
        # Squares of weights must neither overflow nor underflow.
        self._exponent = int(np.frexp(self.weight.max(initial=0.0))[1]) - 1

    def _scaled(self, weight: np.ndarray) -> np.ndarray:
        """Return weights, scaled by a power of two to about 1."""
        return np.ldexp(weight, -self._exponent)

    @property
    def n_rows(self) -> int:
        """The number of rows that are evaluated: those with weight."""
        return len(self._size)

    @property
    def effective_rows(self) -> float:
        """The effective sample size (Σw)² / Σw²."""
        return float(RowWeights(self._size.sum(), (self._size**2).sum()).effective_rows)

    @property
    def loss(self) -> MetricEstimate:
        """The mean loss, by which candidates are compared; lower is better."""
        raise NotImplementedError

    def row_losses(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the loss of every evaluated row, and its weight.

        Returns
        -------
        tuple of two ndarrays of shape (rows,)
        """
        return self._row_losses(), np.ldexp(self._size, self._exponent)

    def _row_losses(self) -> np.ndarray:
        """Return the loss of every evaluated row."""
        raise NotImplementedError

    # ---- Groups ------------------------------------------------------------------------------------------------------

    def _take(self, rows: np.ndarray) -> Self:
        """Return the evaluation of some rows, without groups."""
        raise NotImplementedError

    @cached_property
    def groups(self) -> dict[object, Self]:
        """The evaluation of every group of `by`; empty without groups. Missing labels are the group None, last."""
        if self._group_codes is None:
            return {}
        codes, levels = self._group_codes
        codes = np.where(codes < 0, len(levels), codes)  # missing labels last
        rows = np.unique(np.arange(len(codes))[self._rows])
        rows = rows[np.argsort(codes[rows], kind="stable")]
        used, starts = np.unique(codes[rows], return_index=True)
        parts = zip(used.tolist(), np.split(rows, starts[1:]), strict=True)
        return {(*levels, None)[code]: self._take(part) for code, part in parts}

    # ---- Held-out rows -----------------------------------------------------------------------------------------------

    def _require_held_out(self) -> HeldOut:
        """Return how the rows were held out; raise DataError if they were not."""
        if self.held_out is None:
            raise DataError(
                "these rows were not held out by folds; expected the result of tb.cross_validate or tb.leave_one_out."
            )
        return self.held_out

    @property
    def model(self) -> Any:
        """The model fitted on all rows, of which these were held out."""
        return self._require_held_out().model

    @property
    def fold(self) -> np.ndarray:
        """The fold that every row, or sequence, was held out with; −1 for those that were only used for fitting."""
        return self._require_held_out().fold

    @property
    def rows(self) -> np.ndarray:
        """The rows, or sequences, that were held out: those of this evaluation, in its order."""
        return self._require_held_out().rows

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of a candidate by name; empty without candidates."""
        return self._require_held_out().parameters

    @property
    def refitted(self) -> bool:
        """Whether the model was refitted for every fold; otherwise the fold was subtracted from the counts."""
        return self._require_held_out().refitted

    def _fold_of_rows(self) -> np.ndarray:
        """Return the fold of every row of this evaluation."""
        return self.fold[self._require_held_out().selected]

    def _row_metrics(self) -> dict[str, np.ndarray]:
        """Return the metrics that are means over rows, by name: the value of every evaluated row."""
        return {self.loss_column: self._row_losses()}

    @property
    def loss_column(self) -> str:
        """The name of the loss as a column of data frames."""
        return self.loss_name.replace("-", "_").replace(" ", "_")

    def by_fold(self) -> pd.DataFrame:
        """Return the weight and the mean loss of every fold, and the accuracy of class predictions.

        Returns
        -------
        pandas.DataFrame
            The index is the fold.
        """
        import pandas as pd

        fold = self._fold_of_rows()[self._rows]
        total = np.bincount(fold, self._size)
        used = np.flatnonzero(total > 0)
        means = {
            name: np.bincount(fold, self._size * values)[used] / total[used]
            for name, values in self._row_metrics().items()
        }
        weight = np.ldexp(total[used], self._exponent)
        return pd.DataFrame({"weight": weight} | means, index=pd.Index(used, name="fold"))

    # ---- Text and data frame -----------------------------------------------------------------------------------------

    def _metrics(self) -> dict[str, MetricEstimate]:
        """Return the metrics by name, without those that are None."""
        estimates = {name: getattr(self, name) for name in self._labels}
        return {name: estimate for name, estimate in estimates.items() if estimate is not None}

    def _records(self) -> list[tuple[object, ...]]:
        """Return the rows of the data frame, without groups."""
        metrics = [(name, *estimate) for name, estimate in self._metrics().items()]
        return [("rows", float(self.n_rows), np.nan, np.nan), *metrics]

    def _frame_data(self) -> FrameData:
        records = self._records()
        names = list(self._frame_columns)
        if self.by is not None:
            names = ["group", *names]
            records = [(ALL_GROUPS, *record) for record in records]
            records += [(label, *record) for label, part in self.groups.items() for record in part._records()]
        return {name: [record[k] for record in records] for k, name in enumerate(names)}

    def _title(self) -> str:
        """Return the number of rows as text."""
        raise NotImplementedError

    def _weight_note(self) -> str:
        """Return the effective sample size as text, if weights reduce it."""
        effective = self.effective_rows
        return f" (effective sample size {effective:.0f})" if effective < 0.995 * self.n_rows else ""

    def _text_metrics(self) -> dict[str, MetricEstimate]:
        """Return the metrics of the text by their labels."""
        return {self._labels[name]: estimate for name, estimate in self._metrics().items() if self._labels[name]}

    def _tables(self) -> list[ResultTable]:
        """Return the tables below the metrics."""
        raise NotImplementedError

    def _content(self) -> list[str | ResultTable]:
        title = f"{self._title()}; with {self.mass:.0%} credible intervals"
        metrics = [estimate_cells(*item) for item in self._text_metrics().items()]
        notes = [REFITTED] if self.held_out is not None and self.held_out.refitted else []
        return [title, ResultTable(metrics, align="lrl"), *self._tables(), *notes]

    def _group_table(self, labels: Mapping[str, str], unit: str = "rows") -> list[ResultTable]:
        """Return a table of the groups with some metrics, from their names to their labels; none without groups."""
        groups = self.groups
        if not groups:
            return []
        head = [printable(self.by_name), unit, *(cell for label in labels.values() for cell in (label, ""))]
        rows = [
            estimate_cells(short_label(label), str(part.n_rows), *(getattr(part, name) for name in labels))
            for label, part in groups.items()
        ]
        return [ResultTable(rows, head, align="lr" + "rl" * len(labels), max_rows=MOST_SHOWN)]


def estimate_cells(*cells: str | MetricEstimate) -> list[str]:
    """Return a row of a table: text, and two cells for the value and the interval of every estimate."""
    return [text for cell in cells for text in (cell.cells() if isinstance(cell, MetricEstimate) else (cell,))]


def check_density(log_density: npt.ArrayLike, n_rows: int) -> np.ndarray:
    """Return log densities as float64; raise DataError unless there is one for every row, finite or −inf."""
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
    return shortened(text, widest)

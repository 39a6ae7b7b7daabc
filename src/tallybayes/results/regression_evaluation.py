"""RegressionEvaluation: errors of predicted targets, and scores of their predictive distributions."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tallybayes.errors import DataError
from tallybayes.results.evaluation import HeldOut, RowEvaluation
from tallybayes.results.metric_intervals import MetricEstimate, average, proportion
from tallybayes.results.result import ResultTable
from tallybayes.typing import Labels

if TYPE_CHECKING:
    from tallybayes.models.regression.target_prediction import TargetPredictive

_LABELS = {
    "mean_absolute_error": "mean absolute error (L1)",
    "mean_squared_error": "mean squared error (L2)",
    "rmse": "root mean squared error",
    "r2": "R²",
    "log_loss": "log loss (nats)",
}
_COVERED = (0.5, 0.8, 0.95)


class RegressionEvaluation(RowEvaluation):
    """Errors of predicted targets with credible intervals; of predictive distributions also log loss and coverage.

    Parameters
    ----------
    target : array-like of shape (n,) or (n, targets)
        The true targets; missing ones (NaN) are left out.
    predicted : array-like of the same shape, or TargetPredictive
        The predicted targets, or their distributions from ``LinearRegression.predictive``.
    weight : array of shape (n,), optional
        The weight of every row.
    by : array-like of shape (n,), optional
        The group of every row: all metrics are computed by group too. Missing ones are the group None.
    by_name : str, default "group"
        The name of the groups in text.
    mass : float, default 0.95
        The probability of the intervals.
    held_out : HeldOut, optional
        How the rows were held out. Results of `cross_validate` and `leave_one_out` have it.

    Examples
    --------
    >>> import tallybayes as tb
    >>> result = tb.RegressionEvaluation([1.0, 2.0, 4.0], [1.0, 3.0, 2.0])
    >>> result.mean_absolute_error.value, round(result.mean_squared_error.value, 4)
    (1.0, 1.6667)
    """

    loss_name = "mean squared error"
    _labels = _LABELS
    _rows: np.ndarray

    def __init__(
        self,
        target: Labels,
        predicted: npt.ArrayLike | TargetPredictive,
        *,
        weight: npt.ArrayLike | None = None,
        by: Labels | None = None,
        by_name: str = "group",
        mass: float = 0.95,
        held_out: HeldOut | None = None,
    ) -> None:
        self.target = np.asarray(target, dtype=float)
        self.predictive: TargetPredictive | None = predicted if hasattr(predicted, "log_prob") else None  # type: ignore[assignment]
        self.predicted = np.asarray(predicted if self.predictive is None else self.predictive.mean(), dtype=float)
        if self.target.shape != self.predicted.shape or self.target.ndim not in (1, 2):
            raise DataError.wrong_shape("predicted", self.predicted.shape, f"{self.target.shape}, as the target")
        n_rows = len(self.target)
        super().__init__(n_rows, weight, by, by_name, mass, held_out)
        # A row has one or several targets: cells.
        width = self.target.size // max(n_rows, 1)
        weight_of_cells = np.repeat(self.weight, width)
        self._cells = np.flatnonzero(~np.isnan(self.target.ravel()) & (weight_of_cells > 0))
        if not len(self._cells):
            raise DataError(f"all {n_rows} rows have weight 0 or no target; expected at least one to evaluate.")
        self._rows = self._cells // width
        self._size = self._scaled(weight_of_cells[self._cells])

    def _known(self, cells: np.ndarray) -> np.ndarray:
        """Return the cells with a known target of an array like the target."""
        return cells.ravel()[self._cells]

    @cached_property
    def mean_absolute_error(self) -> MetricEstimate:
        """The mean of |y − ŷ|."""
        return average(np.abs(self._known(self.target - self.predicted)), self._size, self.mass)

    @cached_property
    def mean_squared_error(self) -> MetricEstimate:
        """The mean of (y − ŷ)²."""
        estimate = average(self._row_losses(), self._size, self.mass)
        return MetricEstimate(estimate.value, max(estimate.low, 0.0), estimate.high)

    @cached_property
    def rmse(self) -> MetricEstimate:
        """The root of the mean squared error, in units of the target."""
        return MetricEstimate(*(float(np.sqrt(part)) for part in self.mean_squared_error))

    @cached_property
    def r2(self) -> MetricEstimate:
        """1 − (mean squared error) / (variance of the targets); of several targets, with all their variances."""
        target = self._known(self.target)
        column = self._cells % (self.target.size // len(self.target))
        total = np.bincount(column, self._size)
        mean = np.bincount(column, self._size * target) / np.where(total > 0, total, 1.0)
        variance = float((self._size * (target - mean[column]) ** 2).sum() / total.sum())
        if not variance > 0:
            return MetricEstimate(np.nan, -np.inf, 1.0)
        value, low, high = self.mean_squared_error
        return MetricEstimate(1 - value / variance, 1 - high / variance, 1 - low / variance)

    @cached_property
    def log_loss(self) -> MetricEstimate | None:
        """The mean of −log p(y), in nats; None without predictive distributions."""
        if self.predictive is None:
            return None
        return average(-self._known(self.predictive.log_prob(self.target)), self._size, self.mass)

    @cached_property
    def coverage(self) -> dict[float, MetricEstimate]:
        """The proportion of targets inside central predictive intervals, by the probability of the intervals.

        Empty without predictive distributions.
        """
        coverage: dict[float, MetricEstimate] = {}
        if self.predictive is None:
            return coverage
        for mass in _COVERED:
            low, high = self.predictive.interval(mass)
            inside = self._known((self.target >= low) & (self.target <= high))
            coverage[mass] = proportion(inside, self._size, self.mass)
        return coverage

    @property
    def loss(self) -> MetricEstimate:
        """The mean loss, by which candidates are compared: the mean squared error."""
        return self.mean_squared_error

    def _row_losses(self) -> np.ndarray:
        return self._known(self.target - self.predicted) ** 2

    def _take(self, rows: np.ndarray) -> RegressionEvaluation:
        predicted = self.predicted[rows] if self.predictive is None else predictive_rows(self.predictive, rows)
        return RegressionEvaluation(self.target[rows], predicted, weight=self.weight[rows], mass=self.mass)

    def _records(self) -> list[tuple[object, ...]]:
        return [*super()._records(), *((f"coverage {mass:.0%}", *part) for mass, part in self.coverage.items())]

    def _title(self) -> str:
        return f"{self.n_rows} targets"

    def _text_metrics(self) -> dict[str, MetricEstimate]:
        coverage = {f"in {mass:.0%} intervals": estimate for mass, estimate in self.coverage.items()}
        return super()._text_metrics() | coverage

    def _tables(self) -> list[ResultTable]:
        return self._group_table({"mean_absolute_error": "L1", "mean_squared_error": "L2"})


def predictive_rows(predictive: TargetPredictive, rows: np.ndarray) -> TargetPredictive:
    """Return the predictive distributions of some rows."""
    return type(predictive)(*(part[rows] for part in predictive))

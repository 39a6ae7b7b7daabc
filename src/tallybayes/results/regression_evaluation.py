"""RegressionEvaluation: errors of predicted targets, and scores of their predictive distributions."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tallybayes.errors import DataError
from tallybayes.results.evaluation import RowEvaluation, metric_table
from tallybayes.results.metric_intervals import MetricEstimate, average, proportion_interval
from tallybayes.results.result import ResultTable
from tallybayes.typing import Labels

if TYPE_CHECKING:
    from tallybayes.models.regression.target_prediction import TargetPredictive

_LABELS = {
    "mean_absolute_error": "mean absolute error (L1)",
    "mean_squared_error": "mean squared error (L2)",
    "rmse": "root mean squared error",
    "r2": "R²",
    "log_loss": "log-loss (nats)",
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

    Examples
    --------
    >>> import tallybayes as tb
    >>> result = tb.RegressionEvaluation([1.0, 2.0, 4.0], [1.0, 3.0, 2.0])
    >>> result.mean_absolute_error.value, round(result.mean_squared_error.value, 4)
    (1.0, 1.6667)
    """

    loss_name = "mean squared error"
    _metrics = (*_LABELS,)
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
    ) -> None:
        self.target = np.asarray(target, dtype=float)
        self.predictive: TargetPredictive | None = predicted if hasattr(predicted, "log_prob") else None  # type: ignore[assignment]
        self.predicted = np.asarray(predicted if self.predictive is None else self.predictive.mean(), dtype=float)
        if self.target.shape != self.predicted.shape or self.target.ndim not in (1, 2):
            raise DataError.wrong_shape("predicted", self.predicted.shape, f"{self.target.shape}, as the target")
        n_rows = len(self.target)
        super().__init__(n_rows, weight, by, by_name, mass)
        size = np.ones(n_rows) if self.weight is None else self.weight
        # A row has one or several targets: cells.
        cell_size = np.broadcast_to(size if self.target.ndim == 1 else size[:, None], self.target.shape)
        known = ~np.isnan(self.target) & (cell_size > 0)
        self._cells = np.flatnonzero(known.ravel())
        self._rows = np.flatnonzero(known.reshape(n_rows, -1).any(axis=1))
        if not len(self._cells):
            raise DataError(f"all {n_rows} rows have weight 0 or no target; expected at least one to evaluate.")
        self._cell_weight = None if self.weight is None else cell_size.ravel()[self._cells]

    @property
    def n_rows(self) -> int:
        """The number of known targets with weight."""
        return len(self._cells)

    @property
    def _loss_rows(self) -> np.ndarray:
        return self._cells // (self.target.size // len(self.target))

    def _errors(self) -> np.ndarray:
        """Return y − ŷ of all known targets."""
        return (self.target - self.predicted).ravel()[self._cells]

    @cached_property
    def mean_absolute_error(self) -> MetricEstimate:
        """The mean of |y − ŷ|."""
        return average(np.abs(self._errors()), self._cell_weight, self.mass)

    @cached_property
    def mean_squared_error(self) -> MetricEstimate:
        """The mean of (y − ŷ)²."""
        estimate = average(*self.row_losses(), self.mass)
        return MetricEstimate(estimate.value, max(estimate.low, 0.0), estimate.high)

    @cached_property
    def rmse(self) -> MetricEstimate:
        """The root of the mean squared error, in units of the target."""
        return MetricEstimate(*(float(np.sqrt(part)) for part in self.mean_squared_error))

    @cached_property
    def r2(self) -> MetricEstimate:
        """1 − (mean squared error) / (variance of the targets); of several targets, with all their variances."""
        columns = self.target.reshape(len(self.target), -1)
        size = np.ones(len(columns)) if self.weight is None else self.weight
        known = ~np.isnan(columns)
        weight = known * size[:, None]
        total = weight.sum(axis=0)
        mean = (np.where(known, columns, 0.0) * weight).sum(axis=0) / np.where(total > 0, total, 1.0)
        scatter = float((weight * np.where(known, columns - mean, 0.0) ** 2).sum())
        variance = scatter / float(total.sum())
        if not variance > 0:
            return MetricEstimate(np.nan, -np.inf, 1.0)
        error = self.mean_squared_error
        return MetricEstimate(1 - error.value / variance, 1 - error.high / variance, 1 - error.low / variance)

    @cached_property
    def log_loss(self) -> MetricEstimate | None:
        """The mean of −log p(y), in nats; None without predictive distributions."""
        if self.predictive is None:
            return None
        return average(-self.predictive.log_prob(self.target).ravel()[self._cells], self._cell_weight, self.mass)

    @cached_property
    def coverage(self) -> dict[float, MetricEstimate]:
        """The proportion of targets inside central predictive intervals, by the probability of the intervals.

        Empty without predictive distributions.
        """
        if self.predictive is None:
            return {}
        size = np.ones(len(self._cells)) if self._cell_weight is None else self._cell_weight
        total = size.sum()[None]
        squares = (size**2).sum()[None]
        coverage = {}
        for mass in _COVERED:
            low, high = self.predictive.interval(mass)
            inside = ((self.target >= low) & (self.target <= high)).ravel()[self._cells]
            coverage[mass] = proportion_interval((size * inside).sum()[None], total, squares, self.mass).at(0)
        return coverage

    @property
    def loss(self) -> MetricEstimate:
        """The mean loss, by which candidates are compared: the mean squared error."""
        return self.mean_squared_error

    def row_losses(self) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the squared error of every known target, and its weight or None.

        Returns
        -------
        tuple of ndarray of shape (known targets,) and ndarray or None
        """
        return self._errors() ** 2, self._cell_weight

    @cached_property
    def groups(self) -> dict[object, RegressionEvaluation]:
        """A `RegressionEvaluation` of every group of `by`; empty without groups. Missing labels are the group None."""
        groups: dict[object, RegressionEvaluation] = {}
        for label, rows in self._group_rows():
            weight = None if self.weight is None else self.weight[rows]
            predicted = self.predicted[rows] if self.predictive is None else predictive_rows(self.predictive, rows)
            groups[label] = RegressionEvaluation(self.target[rows], predicted, weight=weight, mass=self.mass)
        return groups

    def _records(self) -> list[tuple[object, ...]]:
        return [*super()._records(), *((f"coverage {mass:.0%}", *part) for mass, part in self.coverage.items())]

    def _content(self) -> list[str | ResultTable]:
        estimates = {_LABELS[name]: estimate for name, estimate in self._estimates(_LABELS).items()}
        estimates |= {f"in {mass:.0%} intervals": estimate for mass, estimate in self.coverage.items()}
        return [
            f"{self.n_rows} targets; with {self.mass:.0%} credible intervals",
            metric_table(estimates),
            *self._group_table({"mean_absolute_error": "L1", "mean_squared_error": "L2"}),
        ]


def predictive_rows(predictive: TargetPredictive, rows: np.ndarray) -> TargetPredictive:
    """Return the predictive distributions of some rows."""
    return type(predictive)(*(part[rows] for part in predictive))

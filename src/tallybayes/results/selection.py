"""Selection: candidates compared on the same held-out rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, SupportsIndex

from tallybayes.results.evaluation import REFITTED, RowEvaluation
from tallybayes.results.metric_intervals import MetricEstimate, excess_loss
from tallybayes.results.result import FrameData, Result, ResultTable

_METRICS = (
    "log_loss",
    "accuracy",
    "brier_score",
    "calibration_error",
    "bits_per_step",
    "bits_per_row",
    "mean_absolute_error",
    "mean_squared_error",
    "rmse",
    "r2",
)


class Selection(Result, Sequence[Any]):
    """Candidates compared on the same held-out rows: a sequence of results such as `Evaluation`, in given order.

    Attributes
    ----------
    best : Evaluation, DensityEvaluation or RegressionEvaluation
        The candidate with the lowest loss.

    Examples
    --------
    >>> import tallybayes as tb
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> tb.leave_one_out(tb.GaussianDiscriminant(), X, y, candidates={"covariance": ["full", "tied"]})
    Selection: 2 candidates, best first
      covariance  log loss             excess loss              accuracy
      'full'      0.05 (0.02 to 0.10)                           0.980 (0.943 to 0.993)
      'tied'      0.05 (0.02 to 0.10)  0.002 (-0.009 to 0.013)  0.980 (0.943 to 0.993)
    """

    def __init__(self, results: Sequence[RowEvaluation]) -> None:
        self._results = list(results)
        self._ranked = sorted(self._results, key=lambda result: result.loss.value)

    def __getitem__(self, index: SupportsIndex | slice) -> Any:
        return self._results[index]

    def __len__(self) -> int:
        return len(self._results)

    @property
    def best(self) -> Any:
        """The candidate with the lowest loss."""
        return self._ranked[0]

    def excess_loss(self, result: RowEvaluation) -> MetricEstimate:
        """Return the mean difference of a candidate's loss to that of the best one.

        Its interval is that of paired differences, row by row: much shorter than the intervals of the two losses.

        Parameters
        ----------
        result : one of the candidates

        Returns
        -------
        MetricEstimate
        """
        best, weight = self.best.row_losses()
        return excess_loss(result.row_losses()[0], best, weight, self.best.mass)

    def _frame_data(self) -> FrameData:
        records = []
        for result in self._results:
            metrics = {name: getattr(result, name, None) for name in _METRICS}
            values = {name: metric.value for name, metric in metrics.items() if metric is not None}
            records.append(result.parameters | values)
        return records

    def _content(self) -> list[str | ResultTable]:
        names = list(dict.fromkeys(name for result in self._results for name in result.parameters))
        metrics = [self.best.loss_name, "excess loss", *(["accuracy"] if hasattr(self.best, "accuracy") else [])]
        rows = []
        for result in self._ranked:
            values = [f"{result.parameters[name]!r}" if name in result.parameters else "" for name in names]
            values = [text if len(text) <= 40 else text[:37] + "…" for text in values]
            excess = "" if result is self.best else self.excess_loss(result)
            estimates = (result.loss, excess, getattr(result, "accuracy", ""))
            rows.append([*values, *map(str, estimates[: len(metrics)])])
        notes = [REFITTED] if any(result.refitted for result in self._results) else []
        return [ResultTable(rows, [*names, *metrics], f"Selection: {len(self)} candidates, best first"), *notes]

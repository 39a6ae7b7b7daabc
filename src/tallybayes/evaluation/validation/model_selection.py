"""Selection: candidates compared on the same held-out rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes._utils.html import html_parts
from tallybayes._utils.text_table import text_table
from tallybayes.evaluation.metrics.metric_intervals import MetricEstimate, average
from tallybayes.evaluation.validation.cross_validation_results import REFITTED

if TYPE_CHECKING:
    import pandas as pd


class Selection(Sequence[Any]):
    """Candidates compared on the same held-out rows; a sequence of results such as `CrossValidation`, in order given.

    Attributes
    ----------
    best : CrossValidation, SequenceValidation or DensityValidation
        The candidate with the lowest loss: log-loss or, of models without classes, bits per row.

    Examples
    --------
    >>> import tallybayes as tb
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> found = tb.leave_one_out(tb.GaussianDiscriminant(), X, y, candidates={"covariance": ["full", "tied"]})
    >>> found
    Selection: 2 candidates, best first
      covariance  log-loss             behind the best          accuracy
      'full'      0.05 (0.02 to 0.10)                           0.980 (0.943 to 0.993)
      'tied'      0.05 (0.02 to 0.10)  0.002 (-0.009 to 0.013)  0.980 (0.943 to 0.993)
    """

    def __init__(self, results: Sequence[Any]) -> None:
        self._results = list(results)

    def __getitem__(self, index: Any) -> Any:
        return self._results[index]

    def __len__(self) -> int:
        return len(self._results)

    @property
    def best(self) -> Any:
        """The candidate with the lowest loss."""
        return self._ordered()[0]

    def _ordered(self) -> list[Any]:
        return sorted(self._results, key=lambda result: result.loss.value)

    def excess_loss(self, result: Any) -> MetricEstimate:
        """By how much a candidate's loss exceeds the best one's, row by row: far surer than two figures apart."""
        best = self.best
        losses, weight = best._losses()
        with np.errstate(invalid="ignore"):
            gap = result._losses()[0] - losses
        gap = np.where(np.isnan(gap), 0.0, gap)  # both found it impossible
        return average(gap, weight, best.mass)

    def to_frame(self) -> pd.DataFrame:
        """One row for every candidate, as a pandas DataFrame."""
        import pandas as pd

        names = (
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
        lines = []
        for result in self._results:
            found = {name: getattr(result, name, None) for name in names}
            lines.append(result.parameters | {name: m.value for name, m in found.items() if m is not None})
        return pd.DataFrame(lines)

    def _lines(self) -> list[list[str]]:
        """The table, its head first."""
        names = list(dict.fromkeys(name for result in self._results for name in result.parameters))
        ordered = self._ordered()
        lines = [[*names, ordered[0].loss_name, "behind the best", "accuracy"]]
        for result in ordered:
            shown = [f"{result.parameters[name]!r}" if name in result.parameters else "" for name in names]
            shown = [text if len(text) <= 40 else text[:37] + "…" for text in shown]
            behind = "" if result is ordered[0] else repr(self.excess_loss(result))
            lines.append([*shown, repr(result.loss), behind, repr(getattr(result, "accuracy", ""))])
        if not hasattr(ordered[0], "accuracy"):
            lines = [line[:-1] for line in lines]
        return lines

    def _title(self) -> str:
        return f"Selection: {len(self)} candidates, best first"

    def _notes(self) -> list[str]:
        return [REFITTED] if any(result.refitted for result in self._results) else []

    def _repr_html_(self) -> str:
        head, *rows = self._lines()
        return html_parts((self._title(), head, rows), *self._notes())

    def __repr__(self) -> str:
        return "\n".join([self._title(), *text_table(self._lines()), *self._notes()])

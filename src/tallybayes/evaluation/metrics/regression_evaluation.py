"""RegressionEvaluation: how far predicted numbers are from true ones, and how well their distributions foresaw them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tallybayes.data.counting import check_weight
from tallybayes.distributions.parameter_distribution import tail_probabilities
from tallybayes.errors import DataError
from tallybayes.evaluation.metrics.classification_evaluation import ALL_GROUPS, check_groups
from tallybayes.evaluation.metrics.evaluation_text import Part, as_html, as_text, measure_cells, short_label
from tallybayes.evaluation.metrics.metric_intervals import MetricEstimate, average, proportion_interval
from tallybayes.models.regression.target_prediction import TargetPredictive
from tallybayes.typing import Labels

if TYPE_CHECKING:
    import pandas as pd

    from tallybayes.models.regression.linear_regression import LinearRegression

_HEADLINES = {
    "mean_absolute_error": "mean absolute error (L1)",
    "mean_squared_error": "mean squared error (L2)",
    "rmse": "root mean squared error",
    "r2": "R²",
    "log_loss": "log-loss (nats)",
}
_COVERED = (0.5, 0.8, 0.95)


class RegressionEvaluation:
    """How good predicted numbers are: L1 and L2 losses, R², and of distributions log-loss and coverage.

    Parameters
    ----------
    target : array-like of shape (n,) or (n, targets)
        What is true; NaN where it is not known, which is left out.
    predicted : array-like of the same shape, or TargetPredictive
        Numbers, or the distributions that ``LinearRegression.predictive`` gives.
    weight : array of shape (n,), optional
    by : array-like of shape (n,), optional
        A label for every row, to measure each group by itself.
    mass : float, default 0.95
        The mass of the credible intervals of the measures.

    Examples
    --------
    >>> import tallybayes as tb
    >>> found = tb.RegressionEvaluation([1.0, 2.0, 4.0], [1.0, 3.0, 2.0])
    >>> found.mean_absolute_error.value, round(found.mean_squared_error.value, 4)
    (1.0, 1.6667)
    """

    def __init__(
        self,
        target: Labels,
        predicted: npt.ArrayLike | TargetPredictive,
        *,
        weight: npt.ArrayLike | None = None,
        by: Iterable[Any] | None = None,
        mass: float = 0.95,
    ) -> None:
        tail_probabilities(mass)  # refuses what is no mass
        self.mass = mass
        self.predictive = predicted if isinstance(predicted, TargetPredictive) else None
        self.target = np.asarray(target, dtype=float)
        told = predicted.mean() if isinstance(predicted, TargetPredictive) else predicted
        self.predicted = np.asarray(told, dtype=float)
        if self.target.shape != self.predicted.shape or self.target.ndim not in (1, 2):
            raise DataError.wrong_shape("predicted", self.predicted.shape, f"{self.target.shape}, as the target")
        n_rows = len(self.target)
        self.weight = check_weight(weight, n_rows, any_size=True)
        size = np.ones(n_rows) if self.weight is None else self.weight
        whole = np.broadcast_to(size if self.target.ndim == 1 else size[:, None], self.target.shape)
        self._here = np.flatnonzero((~np.isnan(self.target) & (whole > 0)).ravel())
        if not len(self._here):
            raise DataError(f"there are {n_rows} rows and none counts; expected at least one to evaluate.")
        self._size = None if self.weight is None else whole.ravel()[self._here]
        self.by, self._by_name = by, "group"
        self._group_codes = None if by is None else check_groups(by, n_rows)

    @property
    def n_rows(self) -> int:
        """How many targets are known, and count."""
        return len(self._here)

    def _errors(self) -> np.ndarray:
        return (self.target - self.predicted).ravel()[self._here]

    @cached_property
    def mean_absolute_error(self) -> MetricEstimate:
        """The mean of |y − ŷ|."""
        return average(np.abs(self._errors()), self._size, self.mass)

    @cached_property
    def mean_squared_error(self) -> MetricEstimate:
        """The mean of (y − ŷ)²."""
        found = average(self._errors() ** 2, self._size, self.mass)
        return MetricEstimate(found.value, max(found.low, 0.0), found.high)

    @cached_property
    def rmse(self) -> MetricEstimate:
        """The root of the mean squared error, in units of the target."""
        return MetricEstimate(*(float(np.sqrt(part)) for part in self.mean_squared_error))

    @cached_property
    def r2(self) -> MetricEstimate:
        """1 less the mean squared error over the variance of the targets; of several, over all their variances."""
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
        return MetricEstimate(
            *(
                1 - part / variance
                for part in (self.mean_squared_error.value, self.mean_squared_error.high, self.mean_squared_error.low)
            )
        )

    @cached_property
    def log_loss(self) -> MetricEstimate | None:
        """The mean of −log p(y), in nats; None where only numbers were predicted."""
        if self.predictive is None:
            return None
        return average(-self.predictive.log_prob(self.target).ravel()[self._here], self._size, self.mass)

    @cached_property
    def coverage(self) -> dict[float, MetricEstimate]:
        """Of central intervals that should hold a share of the targets, the share that they do; empty without any."""
        if self.predictive is None:
            return {}
        size = np.ones(len(self._here)) if self._size is None else self._size
        found = {}
        for mass in _COVERED:
            low, high = self.predictive.interval(mass)
            inside = ((self.target >= low) & (self.target <= high)).ravel()[self._here]
            part, total, squares = (np.array([one]) for one in ((size * inside).sum(), size.sum(), (size**2).sum()))
            found[mass] = proportion_interval(part, total, squares, self.mass).at(0)
        return found

    @property
    def loss(self) -> MetricEstimate:
        """What to compare candidates by: the mean squared error."""
        return self.mean_squared_error

    loss_name = "mean squared error"

    def _losses(self) -> tuple[np.ndarray, np.ndarray | None]:
        return self._errors() ** 2, self._size

    @cached_property
    def groups(self) -> dict[Any, RegressionEvaluation]:
        """A `RegressionEvaluation` of every group of `by`; empty without one."""
        if self._group_codes is None:
            return {}
        codes, levels = self._group_codes
        found = {}
        for code in [*range(len(levels)), -1]:
            mine = np.flatnonzero(codes == code)
            size = np.ones(len(mine)) if self.weight is None else self.weight[mine]
            if size.any() and not np.isnan(self.target[mine]).all():
                told: Any = self.predicted[mine]
                if self.predictive is not None:
                    told = TargetPredictive(*(part[mine] for part in self.predictive))
                weight = None if self.weight is None else size
                label = levels[code] if code >= 0 else None
                found[label] = RegressionEvaluation(self.target[mine], told, weight=weight, mass=self.mass)
        return found

    def to_frame(self) -> pd.DataFrame:
        """All measures as a pandas data frame: measure, value, low, high, and the group, if there are any."""
        import pandas as pd

        lines = self._lines()
        if self.by is None:
            return pd.DataFrame(lines, columns=["measure", "value", "low", "high"])
        whole = [(ALL_GROUPS, *line) for line in lines]
        parts = [(label, *line) for label, part in self.groups.items() for line in part._lines()]
        return pd.DataFrame(whole + parts, columns=["group", "measure", "value", "low", "high"])

    def _lines(self) -> list[tuple[Any, ...]]:
        lines: list[tuple[Any, ...]] = [("rows", float(self.n_rows), np.nan, np.nan)]
        lines += [(name, *getattr(self, name)) for name in _HEADLINES if getattr(self, name) is not None]
        return lines + [(f"coverage {mass:.0%}", *measure) for mass, measure in self.coverage.items()]

    def _shown(self) -> list[Part]:
        lines = []
        for name, text in _HEADLINES.items():
            found = getattr(self, name)
            lines += [[text, *measure_cells(found)]] if found is not None else []
        lines += [[f"in {mass:.0%} intervals", *measure_cells(found)] for mass, found in self.coverage.items()]
        parts: list[Part] = [f"{self.n_rows} targets; with {self.mass:.0%} credible intervals", (lines, (0, 2))]
        if self.groups:
            table = [[self._by_name, "rows", "L1", "", "L2", ""]]
            for label, part in list(self.groups.items())[:12]:
                table.append(
                    [
                        short_label(label),
                        str(part.n_rows),
                        *measure_cells(part.mean_absolute_error),
                        *measure_cells(part.mean_squared_error),
                    ]
                )
            parts.append((table, (0, 3, 5)))
        return parts

    def __repr__(self) -> str:
        return as_text(self._shown())

    def _repr_html_(self) -> str:
        return as_html(self._shown())


class RegressionValidation(RegressionEvaluation):
    """How well a regression tells rows it has not counted; made by `cross_validate` and `leave_one_out`.

    Attributes
    ----------
    model : Regression
        Of all rows.
    fold : ndarray of shape (n,)
        The fold every row was held out with; −1 for rows that were only learned from.
    parameters : dict
        Those of a candidate, by name; empty without candidates.

    Examples
    --------
    >>> import tallybayes as tb
    >>> x, y = [[-2.0], [-1.0], [0.0], [1.0], [2.0]], [5.0, 0.0, 1.0, 1.0, 4.0]
    >>> found = tb.leave_one_out(tb.LinearRegression(2, estimate="mle"), x, y, candidates={"degree": [1, 2]})
    >>> found.best.parameters, round(found.best.mean_squared_error.value, 2)
    ({'degree': 2}, 4.95)
    """

    refitted = False

    def __init__(
        self,
        model: LinearRegression,
        target: np.ndarray,
        told: TargetPredictive,
        weight: np.ndarray | None,
        fold: np.ndarray,
        parameters: dict[str, Any],
    ) -> None:
        scored = np.flatnonzero(fold >= 0)
        super().__init__(
            target[scored],
            TargetPredictive(*(part[scored] for part in told)),
            weight=None if weight is None else weight[scored],
        )
        self.model, self.fold, self.rows, self.parameters = model, fold, scored, parameters

"""DensityEvaluation: the code length of rows or sequences under a model without a target."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from tallybayes.errors import DataError
from tallybayes.results.evaluation import HeldOut, RowEvaluation, check_density
from tallybayes.results.metric_intervals import MetricEstimate, average
from tallybayes.results.result import ResultTable
from tallybayes.typing import Labels


class DensityEvaluation(RowEvaluation):
    """The code length of rows or sequences under a model, in bits, with credible intervals.

    Parameters
    ----------
    log_density : array of shape (n,)
        log p(row) or log p(sequence), in nats, of rows that the model was not fitted on.
    steps : array of int of shape (n,), optional
        The number of time steps of every sequence.
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
    >>> import numpy as np
    >>> import tallybayes as tb
    >>> tb.DensityEvaluation(np.log([0.5, 0.25, 0.25, 0.5])).bits_per_row
    1.50 (0.58 to 2.42)
    >>> tb.DensityEvaluation(np.log([0.5, 0.25, 0.25, 0.5]), steps=[1, 2, 2, 1]).bits_per_step.value
    1.0
    """

    _rows: np.ndarray

    def __init__(
        self,
        log_density: npt.ArrayLike,
        *,
        steps: npt.ArrayLike | None = None,
        weight: npt.ArrayLike | None = None,
        by: Labels | None = None,
        by_name: str = "group",
        mass: float = 0.95,
        held_out: HeldOut | None = None,
    ) -> None:
        n_rows = len(np.asarray(log_density))
        super().__init__(n_rows, weight, by, by_name, mass, held_out)
        self.log_density = check_density(log_density, n_rows)
        self.steps = None if steps is None else np.asarray(steps)
        if self.steps is not None and self.steps.shape != (n_rows,):
            raise DataError.wrong_shape("steps", self.steps.shape, f"({n_rows},), one for every sequence")
        size = self.weight if self.steps is None else self.weight * self.steps
        self._rows = np.flatnonzero(size)
        self._size = self._scaled(size[self._rows])
        if not len(self._rows):
            raise DataError(f"all {n_rows} rows have weight 0 or no steps; expected at least one row to evaluate.")
        self._unit = "row" if self.steps is None else "sequence"
        self.loss_name = "bits per row" if self.steps is None else "bits per step"
        self._labels = {"bits_per_row": f"bits per {self._unit}", "bits_per_step": "bits per step"}

    @cached_property
    def bits_per_row(self) -> MetricEstimate:
        """The mean of −log₂ p(row), or −log₂ p(sequence): the code length of each."""
        return average(-self.log_density[self._rows] / np.log(2), self._scaled(self.weight[self._rows]), self.mass)

    @property
    def bits_per_step(self) -> MetricEstimate | None:
        """The mean code length of a time step of all sequences; None for rows."""
        return None if self.steps is None else self.loss

    @cached_property
    def loss(self) -> MetricEstimate:
        """The mean loss, by which candidates are compared: bits per row, or per time step of sequences."""
        return average(self._row_losses(), self._size, self.mass)

    def _row_losses(self) -> np.ndarray:
        bits = -self.log_density[self._rows] / np.log(2)
        return bits if self.steps is None else bits / self.steps[self._rows]

    def _take(self, rows: np.ndarray) -> DensityEvaluation:
        steps = None if self.steps is None else self.steps[rows]
        return DensityEvaluation(self.log_density[rows], steps=steps, weight=self.weight[rows], mass=self.mass)

    def _title(self) -> str:
        return f"{self.n_rows} {self._unit}s{self._weight_note() if self.steps is None else ''}"

    def _tables(self) -> list[ResultTable]:
        return self._group_table({"loss": self.loss_name}, f"{self._unit}s")

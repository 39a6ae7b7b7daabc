"""DensityEvaluation: the code length of rows or sequences under a model without a target."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from tallybayes.errors import DataError
from tallybayes.results.evaluation import RowEvaluation, check_density, metric_table
from tallybayes.results.metric_intervals import MetricEstimate, average, effective_rows
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

    Examples
    --------
    >>> import numpy as np
    >>> import tallybayes as tb
    >>> tb.DensityEvaluation(np.log([0.5, 0.25, 0.25, 0.5])).bits_per_row
    1.50 (0.58 to 2.42)
    >>> tb.DensityEvaluation(np.log([0.5, 0.25, 0.25, 0.5]), steps=[1, 2, 2, 1]).bits_per_step.value
    1.0
    """

    _metrics = ("bits_per_row", "bits_per_step")
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
    ) -> None:
        n_rows = len(np.asarray(log_density))
        super().__init__(n_rows, weight, by, by_name, mass)
        density = check_density(log_density, n_rows)
        assert density is not None
        self.log_density = density
        self.steps = None if steps is None else np.asarray(steps)
        if self.steps is not None and self.steps.shape != (n_rows,):
            raise DataError.wrong_shape("steps", self.steps.shape, f"({n_rows},), one for every sequence")
        size = np.ones(n_rows) if self.weight is None else self.weight
        self._size = size if self.steps is None else size * self.steps
        self._rows = np.flatnonzero(self._size)
        if not len(self._rows):
            raise DataError(f"all {n_rows} rows have weight 0 or no steps; expected at least one row to evaluate.")
        self.loss_name = "bits per row" if self.steps is None else "bits per step"

    @property
    def n_rows(self) -> int:
        """The number of rows, or sequences, with weight."""
        return len(self._rows)

    @property
    def effective_rows(self) -> float:
        """The effective sample size (Σw)² / Σw²."""
        size = self._size[self._rows]
        return float(effective_rows(size.sum(), (size**2).sum()))

    @cached_property
    def bits_per_row(self) -> MetricEstimate:
        """The mean of −log₂ p(row), or −log₂ p(sequence): the code length of each."""
        weight = None if self.weight is None else self.weight[self._rows]
        return average(-self.log_density[self._rows] / np.log(2), weight, self.mass)

    @cached_property
    def bits_per_step(self) -> MetricEstimate | None:
        """The mean code length of a time step of all sequences; None for rows."""
        return None if self.steps is None else self.loss

    @cached_property
    def loss(self) -> MetricEstimate:
        """The mean loss, by which candidates are compared: bits per row, or per time step of sequences."""
        return average(*self.row_losses(), self.mass)

    def row_losses(self) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the loss of every evaluated row in bits, and its weight or None; of sequences, per time step.

        Returns
        -------
        tuple of ndarray of shape (rows,) and ndarray or None
        """
        bits = -self.log_density[self._rows] / np.log(2)
        if self.steps is not None:
            return bits / self.steps[self._rows], self._size[self._rows]
        return bits, None if self.weight is None else self.weight[self._rows]

    @cached_property
    def groups(self) -> dict[object, DensityEvaluation]:
        """A `DensityEvaluation` of every group of `by`; empty without groups. Missing labels are the group None."""
        return {
            label: DensityEvaluation(
                self.log_density[rows],
                steps=None if self.steps is None else self.steps[rows],
                weight=None if self.weight is None else self.weight[rows],
                mass=self.mass,
            )
            for label, rows in self._group_rows()
        }

    def _content(self) -> list[str | ResultTable]:
        unit = "rows" if self.steps is None else "sequences"
        rows = f"{self.n_rows} {unit}"
        if self.steps is None and self.effective_rows < 0.995 * self.n_rows:
            rows += f" (effective sample size {self.effective_rows:.0f})"
        metrics = {"bits per row" if self.steps is None else "bits per sequence": self.bits_per_row}
        if self.bits_per_step is not None:
            metrics["bits per step"] = self.bits_per_step
        return [
            f"{rows}; with {self.mass:.0%} credible intervals",
            metric_table(metrics),
            *self._group_table({"loss": self.loss_name}, unit),
        ]

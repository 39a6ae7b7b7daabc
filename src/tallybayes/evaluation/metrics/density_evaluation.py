"""DensityEvaluation: how well rows or sequences were foreseen by a model that tells no classes."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tallybayes.data.counting import check_weight
from tallybayes.distributions.parameter_distribution import tail_probabilities
from tallybayes.errors import DataError
from tallybayes.evaluation.metrics.classification_evaluation import ALL_GROUPS, check_density, check_groups
from tallybayes.evaluation.metrics.evaluation_text import Part, as_html, as_text, describe_density
from tallybayes.evaluation.metrics.metric_intervals import MetricEstimate, average, effective_rows

if TYPE_CHECKING:
    import pandas as pd


class DensityEvaluation:
    """How probable some rows or sequences were to a model: what they cost to encode, with a credible interval.

    Parameters
    ----------
    log_density : array of shape (n,)
        log p(row), or log p(sequence), in nats, of rows that were not learned from.
    steps : array of int of shape (n,), optional
        The steps of every sequence.
    weight : array of shape (n,), optional
        How much every row counts.
    by : array-like of shape (n,), optional
        A label for every row, to measure each group by itself. Rows without one are the group None.
    mass : float, default 0.95
        The mass of the intervals.

    Examples
    --------
    >>> import numpy as np
    >>> import tallybayes as tb
    >>> found = tb.DensityEvaluation(np.log([0.5, 0.25, 0.25, 0.5]))
    >>> found.bits_per_row
    1.50 (0.58 to 2.42)
    >>> tb.DensityEvaluation(np.log([0.5, 0.25, 0.25, 0.5]), steps=[1, 2, 2, 1]).bits_per_step.value
    1.0
    """

    def __init__(
        self,
        log_density: npt.ArrayLike,
        *,
        steps: npt.ArrayLike | None = None,
        weight: npt.ArrayLike | None = None,
        by: Iterable[Any] | None = None,
        mass: float = 0.95,
    ) -> None:
        tail_probabilities(mass)  # refuses what is no mass
        self.mass = mass
        values: Any = log_density
        found = check_density(values, len(values))
        assert found is not None
        self.log_density = found
        self.weight = check_weight(weight, len(found), any_size=True)
        self.steps = None if steps is None else np.asarray(steps)
        if self.steps is not None and self.steps.shape != found.shape:
            raise DataError.wrong_shape("steps", self.steps.shape, f"({len(found)},), one for every sequence")
        size = np.ones(len(found)) if self.weight is None else self.weight
        self._size = size if self.steps is None else size * self.steps
        self._counts = np.flatnonzero(self._size)
        if not len(self._counts):
            raise DataError(f"there are {len(found)} rows and none counts; expected at least one to evaluate.")
        self.by, self._by_name = by, "group"
        self._group_codes = None if by is None else check_groups(by, len(found))

    @property
    def n_rows(self) -> int:
        """The number of rows, or sequences, that count."""
        return len(self._counts)

    @property
    def effective_rows(self) -> float:
        """(Σw)² / Σw²: how many rows of equal weight would say as much."""
        size = self._size[self._counts]
        return float(effective_rows(size.sum(), (size**2).sum()))

    @cached_property
    def bits_per_row(self) -> MetricEstimate:
        """The mean of −log₂ p(row), or of −log₂ p(sequence): what each costs to encode."""
        here = self._counts
        bits = -self.log_density[here] / np.log(2)
        return average(bits, None if self.weight is None else self.weight[here], self.mass)

    @cached_property
    def bits_per_step(self) -> MetricEstimate | None:
        """What a step costs to encode: of all steps of all sequences the mean. None for rows."""
        return None if self.steps is None else average(*self._losses(), self.mass)

    @property
    def loss(self) -> MetricEstimate:
        """What to compare candidates by: bits per row, or per step of sequences. Less is better."""
        return self.bits_per_row if self.steps is None else average(*self._losses(), self.mass)

    @property
    def loss_name(self) -> str:
        """What `loss` is, in words."""
        return "bits per row" if self.steps is None else "bits per step"

    def _losses(self) -> tuple[np.ndarray, np.ndarray | None]:
        """The loss of every row that counts, and its weight."""
        here = self._counts
        bits = -self.log_density[here] / np.log(2)
        if self.steps is None:
            return bits, None if self.weight is None else self.weight[here]
        return bits / self.steps[here], self._size[here]

    @cached_property
    def groups(self) -> dict[Any, DensityEvaluation]:
        """A `DensityEvaluation` of every group of `by`; empty without one. Rows without a label are the group None."""
        if self._group_codes is None:
            return {}
        codes, levels = self._group_codes
        found = {}
        for code in [*range(len(levels)), -1]:
            mine = np.flatnonzero(codes == code)
            if self._size[mine].any():
                steps, weight = (None if part is None else part[mine] for part in (self.steps, self.weight))
                label = levels[code] if code >= 0 else None
                found[label] = DensityEvaluation(self.log_density[mine], steps=steps, weight=weight, mass=self.mass)
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
        for name in ("bits_per_row", "bits_per_step"):
            found = getattr(self, name)
            lines += [(name, *found)] if found is not None else []
        return lines

    def _shown(self) -> list[Part]:
        return describe_density(self)

    def __repr__(self) -> str:
        return as_text(self._shown())

    def _repr_html_(self) -> str:
        return as_html(self._shown())


def refuse_target(target: Any) -> None:
    """Refuse the classes of a mixture, which nobody named."""
    if target is not None:
        raise DataError(
            "a mixture tells no classes: its components are numbered by chance.\n"
            "    Leave target out to judge the density of rows, or use tb.NaiveBayes for classes."
        )

"""ONNX operators of log probabilities, for several columns at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import gammaln

from tallybayes.export.portable_scorer import IMPOSSIBLE, ColumnForm, bounded
from tallybayes.families._shared.log_prob_forms import LinearLogForm, NormalForm, StudentTForm

if TYPE_CHECKING:
    import numpy.typing as npt

_SHIFT = 8  # shift of the argument of Stirling's series
_LARGE = 50.0  # arguments from which the series is accurate without a shift


class OnnxGraph:
    """The nodes of a graph in order of application, and its constants."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, value: npt.ArrayLike) -> str:
        """Add a constant array and return its name."""
        from onnx import numpy_helper

        name = f"tally/constant {len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def apply(self, operator: str, *inputs: npt.ArrayLike, domain: str = "", **attributes: Any) -> str:
        """Add a node that applies an operator to names and arrays; return the name of its output."""
        from onnx import helper

        names = [value if isinstance(value, str) else self.constant(value) for value in inputs]
        out = f"tally/{operator} {len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, names, [out], domain=domain, **attributes))
        return out

    def sum(self, names: Sequence[str]) -> str:
        """Return the sum of several tensors."""
        return self.apply("Sum", *names) if len(names) > 1 else names[0]

    def over(self, name: str, axis: int, *, keep: bool = False) -> str:
        """Return the sum over an axis."""
        return self.apply("ReduceSum", name, np.array([axis]), keepdims=int(keep))

    def axis(self, name: str, axis: int) -> str:
        """Return the tensor with one more axis."""
        return self.apply("Unsqueeze", name, np.array([axis]))

    # ---- Forms -----------------------------------------------------------------------------------------------------

    def form(self, x: str, forms: Sequence[ColumnForm]) -> str:
        """Return the log probabilities of columns by class; all forms are of one kind.

        Parameters
        ----------
        x : str
            A tensor of shape (n, columns, 1).
        forms : sequence of forms
            One for every column.

        Returns
        -------
        str
            A tensor of shape (n, columns, classes).
        """

        def stacked(name: str) -> np.ndarray:
            return np.stack([getattr(form, name) for form in forms])

        match forms[0]:
            case LinearLogForm():
                return self._line(x, stacked("weight"), stacked("bias"))
            case NormalForm():
                return self.apply(
                    "Sub", stacked("log_norm"), self._square(x, stacked("mean"), 0.5 * stacked("precision"))
                )
            case StudentTForm():
                log_ratio = self.log1p(self._square(x, stacked("location"), stacked("inverse_spread")))
                return self.apply("Sub", stacked("log_norm"), self.apply("Mul", stacked("power"), log_ratio))
        line = self.apply("Add", stacked("at_zero"), self.apply("Mul", x, stacked("slope")))
        return self.apply("Add", line, self.rising(x, stacked("start")))

    def _line(self, x: str, weight: np.ndarray, bias: np.ndarray) -> str:
        """Return bias + weight · x, where bias or weight may be −∞."""
        slope = np.where(np.isneginf(weight), 0.0, weight)
        start = np.where(np.isneginf(weight), IMPOSSIBLE, np.where(np.isneginf(bias), 0.0, bias))
        other = self.apply("Add", start, self.apply("Mul", x, slope))
        return self.apply("Where", self.apply("Equal", x, np.array(0.0)), bounded(bias), other)

    def _square(self, x: str, at: np.ndarray, factor: np.ndarray) -> str:
        """Return factor · (x − at)²."""
        deviation = self.apply("Sub", x, at)
        return self.apply("Mul", self.apply("Mul", deviation, factor), deviation)

    def log1p(self, u: str) -> str:
        """Return log(1 + u), accurate for small u (Kahan)."""
        one = np.array(1.0)
        increased = self.apply("Add", u, one)
        difference = self.apply("Sub", increased, one)
        is_zero = self.apply("Equal", difference, np.array(0.0))
        corrected = self.apply(
            "Mul", self.apply("Log", increased), self.apply("Div", u, self.apply("Where", is_zero, one, difference))
        )
        return self.apply("Where", is_zero, u, corrected)

    def rising(self, x: str, start: np.ndarray) -> str:
        """Return log Γ(start + x) − log Γ(start), up to a term that depends only on x.

        Stirling's series of log Γ(x + 9) is subtracted without its correction. As in `Arithmetic.rising`, the series is
        used directly for large start, and shifted by 8 for small start.
        """
        common = self.apply("Add", x, np.array(_SHIFT + 1.0))
        log_common = self.apply("Log", common)
        large = np.where(start > _LARGE, start, _LARGE)
        small = np.where(start > _LARGE, 1.0, start)
        end = self.apply("Add", x, large)
        parts = [
            self.apply("Mul", large - 0.5, self.log1p(self.apply("Div", x, large))),
            self.apply("Mul", x, self.apply("Sub", self.apply("Log", end), np.array(1.0))),
            self._tail(end),
            self.constant(-(1 / 12 - (1 / 360 - (1 / 1260 - 1 / 1680 / large**2) / large**2) / large**2) / large),
        ]
        common_series = self.apply("Mul", self.apply("Sub", common, np.array(0.5)), log_common)
        common_series = self.apply("Add", self.apply("Sub", common_series, common), np.array(0.5 * np.log(2 * np.pi)))
        from_large = self.apply("Sub", self.sum(parts), common_series)
        end = self.apply("Add", x, small + _SHIFT)
        excess = small - 1
        steps = [self.apply("Log", self.apply("Add", x, small + i)) for i in range(_SHIFT)]
        log_ratio = self.log1p(self.apply("Div", excess, common))
        parts = [
            self.apply("Mul", self.apply("Sub", end, np.array(0.5)), log_ratio),
            self.apply("Mul", excess, log_common),
            self.constant(-excess - gammaln(small)),
            self._tail(end),
        ]
        from_small = self.apply("Sub", self.sum(parts), self.sum(steps))
        return self.apply("Where", start > _LARGE, from_large, from_small)

    def _tail(self, z: str) -> str:
        """Return the correction of Stirling's series: 1/(12 z) − 1/(360 z³) + 1/(1260 z⁵) − 1/(1680 z⁷)."""
        square = self.apply("Mul", z, z)
        out = self.apply("Div", np.array(1 / 1680), square)
        for number in (1 / 1260, 1 / 360):
            out = self.apply("Div", self.apply("Sub", np.array(number), out), square)
        return self.apply("Div", self.apply("Sub", np.array(1 / 12), out), z)

"""Arithmetic in ONNX: the forms of log probabilities in plain operators, for many columns at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import gammaln

from tallybayes.export.portable_scorer import IMPOSSIBLE, bounded
from tallybayes.families._shared.log_prob_forms import LinearLogForm, NormalForm, PolyaUrnForm, StudentTForm

_SHIFT = 8  # Stirling's series is asked this far up
_LARGE = 50.0  # starts from which the series serves as it is


class OnnxGraph:
    """Operators in the order in which they are applied, and the numbers they need."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, value: Any) -> str:
        """An array: of doubles, whole numbers, strings, yes and no."""
        from onnx import numpy_helper

        name = f"tally/constant {len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def apply(self, operator: str, *given: Any, domain: str = "", **attributes: Any) -> str:
        """An operator of names and arrays; the name of what it gives."""
        from onnx import helper

        names = [value if isinstance(value, str) else self.constant(value) for value in given]
        out = f"tally/{operator} {len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, names, [out], domain=domain, **attributes))
        return out

    def sum(self, names: Sequence[str]) -> str:
        """The sum of several."""
        return self.apply("Sum", *names) if len(names) > 1 else names[0]

    def over(self, name: str, axis: int, *, keep: bool = False) -> str:
        """A sum over an axis."""
        return self.apply("ReduceSum", name, np.array([axis]), keepdims=int(keep))

    def axis(self, name: str, axis: int) -> str:
        """The same with one more axis."""
        return self.apply("Unsqueeze", name, np.array([axis]))

    # ---- Forms -----------------------------------------------------------------------------------------------------

    def form(self, x: str, forms: Sequence[LinearLogForm | NormalForm | StudentTForm | PolyaUrnForm]) -> str:
        """What columns (n, columns, 1) add, by class: (n, columns, classes); the forms are of one kind."""

        def of(name: str) -> np.ndarray:
            return np.stack([getattr(form, name) for form in forms])

        match forms[0]:
            case LinearLogForm():
                return self._line(x, of("weight"), of("bias"))
            case NormalForm():
                return self.apply("Sub", of("log_norm"), self._square(x, of("mean"), 0.5 * of("precision")))
            case StudentTForm():
                bent = self.log1p(self._square(x, of("location"), of("inverse_spread")))
                return self.apply("Sub", of("log_norm"), self.apply("Mul", of("power"), bent))
        line = self.apply("Add", of("at_zero"), self.apply("Mul", x, of("slope")))
        return self.apply("Add", line, self.rising(x, of("start")))

    def _line(self, x: str, weight: np.ndarray, bias: np.ndarray) -> str:
        slope = np.where(np.isneginf(weight), 0.0, weight)
        start = np.where(np.isneginf(weight), IMPOSSIBLE, np.where(np.isneginf(bias), 0.0, bias))
        other = self.apply("Add", start, self.apply("Mul", x, slope))
        return self.apply("Where", self.apply("Equal", x, np.array(0.0)), bounded(bias), other)

    def _square(self, x: str, at: np.ndarray, factor: np.ndarray) -> str:
        gap = self.apply("Sub", x, at)
        return self.apply("Mul", self.apply("Mul", gap, factor), gap)

    def log1p(self, u: str) -> str:
        """log(1 + u), with what 1 + u lost of u put back (Kahan)."""
        one = np.array(1.0)
        more = self.apply("Add", u, one)
        rest = self.apply("Sub", more, one)
        same = self.apply("Equal", rest, np.array(0.0))
        mended = self.apply("Mul", self.apply("Log", more), self.apply("Div", u, self.apply("Where", same, one, rest)))
        return self.apply("Where", same, u, mended)

    def rising(self, x: str, start: np.ndarray) -> str:
        """log Γ(start + x) − log Γ(start), less log Γ(x + 9) but for the tail of its series, which all have in common.

        As `sql_terms` writes it: of a large start by Stirling's series as it is, of a small one from 8 further up.
        """
        common = self.apply("Add", x, np.array(_SHIFT + 1.0))
        log_common = self.apply("Log", common)
        large, small = np.where(start > _LARGE, start, _LARGE), np.where(start > _LARGE, 1.0, start)
        end = self.apply("Add", x, large)
        parts = [
            self.apply("Mul", large - 0.5, self.log1p(self.apply("Div", x, large))),
            self.apply("Mul", x, self.apply("Sub", self.apply("Log", end), np.array(1.0))),
            self._tail(end),
            self.constant(-(1 / 12 - (1 / 360 - (1 / 1260 - 1 / 1680 / large**2) / large**2) / large**2) / large),
        ]
        beside = self.apply("Mul", self.apply("Sub", common, np.array(0.5)), log_common)
        beside = self.apply("Add", self.apply("Sub", beside, common), np.array(0.5 * np.log(2 * np.pi)))
        from_large = self.apply("Sub", self.sum(parts), beside)
        end, gap = self.apply("Add", x, small + _SHIFT), small - 1
        steps = [self.apply("Log", self.apply("Add", x, small + i)) for i in range(_SHIFT)]
        grown = self.log1p(self.apply("Div", gap, common))
        parts = [
            self.apply("Mul", self.apply("Sub", end, np.array(0.5)), grown),
            self.apply("Mul", gap, log_common),
            self.constant(-gap - gammaln(small)),
            self._tail(end),
        ]
        from_small = self.apply("Sub", self.sum(parts), self.sum(steps))
        return self.apply("Where", start > _LARGE, from_large, from_small)

    def _tail(self, z: str) -> str:
        """What Stirling's series adds: 1/(12 z) − 1/(360 z³) + 1/(1260 z⁵) − 1/(1680 z⁷)."""
        square = self.apply("Mul", z, z)
        out = self.apply("Div", np.array(1 / 1680), square)
        for number in (1 / 1260, 1 / 360):
            out = self.apply("Div", self.apply("Sub", np.array(number), out), square)
        return self.apply("Div", self.apply("Sub", np.array(1 / 12), out), z)

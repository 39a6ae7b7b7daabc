"""Tensors of an ONNX graph with arithmetic operators, and the log probabilities of columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from scipy.special import gammaln

from tallybayes.export.portable_scorer import IMPOSSIBLE, ColumnForm, bounded
from tallybayes.families._shared.log_prob_forms import LinearLogForm, NormalForm, StudentTForm

if TYPE_CHECKING:
    import numpy.typing as npt

_SHIFT = 8  # shift of the argument of Stirling's series
_LARGE = 50.0  # arguments from which the series is accurate without a shift
_INT64 = 7  # codes of element types in ONNX
_DOUBLE = 11


class Tensor:
    """The output of a node of a graph; operators and methods add further nodes."""

    __array_ufunc__ = None  # array - tensor is computed by Tensor.__rsub__

    def __init__(self, graph: OnnxGraph, name: str) -> None:
        self.graph = graph
        self.name = name

    def __add__(self, other: Operand) -> Tensor:
        return self.graph.apply("Add", self, other)

    def __radd__(self, other: Operand) -> Tensor:
        return self.graph.apply("Add", other, self)

    def __sub__(self, other: Operand) -> Tensor:
        return self.graph.apply("Sub", self, other)

    def __rsub__(self, other: Operand) -> Tensor:
        return self.graph.apply("Sub", other, self)

    def __mul__(self, other: Operand) -> Tensor:
        return self.graph.apply("Mul", self, other)

    def __rmul__(self, other: Operand) -> Tensor:
        return self.graph.apply("Mul", other, self)

    def __truediv__(self, other: Operand) -> Tensor:
        return self.graph.apply("Div", self, other)

    def __rtruediv__(self, other: Operand) -> Tensor:
        return self.graph.apply("Div", other, self)

    def __matmul__(self, other: Operand) -> Tensor:
        return self.graph.apply("MatMul", self, other)

    def __neg__(self) -> Tensor:
        return self.graph.apply("Neg", self)

    def __lt__(self, other: Operand) -> Tensor:
        return self.graph.apply("Less", self, other)

    def __gt__(self, other: Operand) -> Tensor:
        return self.graph.apply("Greater", self, other)

    def __ge__(self, other: Operand) -> Tensor:
        return self.graph.apply("GreaterOrEqual", self, other)

    def __and__(self, other: Operand) -> Tensor:
        return self.graph.apply("And", self, other)

    def __or__(self, other: Operand) -> Tensor:
        return self.graph.apply("Or", self, other)

    def __invert__(self) -> Tensor:
        return self.graph.apply("Not", self)

    def equals(self, other: Operand) -> Tensor:
        """Return where the elements are equal to others."""
        return self.graph.apply("Equal", self, other)

    def log(self) -> Tensor:
        """Return the logarithm."""
        return self.graph.apply("Log", self)

    def exp(self) -> Tensor:
        """Return the exponential."""
        return self.graph.apply("Exp", self)

    def clip(self, low: Operand, high: Operand) -> Tensor:
        """Return the elements clipped to an interval."""
        return self.graph.apply("Min", self.graph.apply("Max", self, low), high)

    def as_int(self) -> Tensor:
        """Return the elements as integers."""
        return self.graph.apply("Cast", self, to=_INT64)

    def as_float(self) -> Tensor:
        """Return the elements as floating-point numbers."""
        return self.graph.apply("Cast", self, to=_DOUBLE)

    def expand(self, *axes: int) -> Tensor:
        """Return the tensor with more axes, at these positions of the result."""
        return self.graph.apply("Unsqueeze", self, axes)

    def squeeze(self, axis: int) -> Tensor:
        """Return the tensor without an axis of length 1."""
        return self.graph.apply("Squeeze", self, [axis])

    def sum(self, axis: int, *, keep: bool = False) -> Tensor:
        """Return the sum over an axis."""
        return self.graph.apply("ReduceSum", self, [axis], keepdims=int(keep))

    def max(self, axis: int) -> Tensor:
        """Return the maximum over an axis, which is kept."""
        return self.graph.apply("ReduceMax", self, axes=[axis], keepdims=1)

    def log_sum_exp(self, axis: int) -> Tensor:
        """Return the logarithm of the sum of exponentials over an axis."""
        largest = self.max(axis)
        return (self - largest).exp().sum(axis).log() + largest.squeeze(axis)

    def log1p(self) -> Tensor:
        """Return log(1 + u), accurate for small u (Kahan)."""
        increased = self + 1.0
        difference = increased - 1.0
        is_zero = difference.equals(0.0)
        corrected = increased.log() * (self / self.graph.where(is_zero, 1.0, difference))
        return self.graph.where(is_zero, self, corrected)


Operand: TypeAlias = "Tensor | npt.ArrayLike"


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

    def apply(self, operator: str, *operands: Operand, domain: str = "", **attributes: Any) -> Tensor:
        """Add a node that applies an operator, and return its output."""
        from onnx import helper

        names = [value.name if isinstance(value, Tensor) else self.constant(value) for value in operands]
        output = f"tally/{operator} {len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, names, [output], domain=domain, **attributes))
        return Tensor(self, output)

    def input(self, name: object) -> Tensor:
        """Return an input of the graph."""
        return Tensor(self, str(name))

    def where(self, condition: Tensor, then: Operand, otherwise: Operand) -> Tensor:
        """Return `then` where the condition holds, else `otherwise`."""
        return self.apply("Where", condition, then, otherwise)

    def gather(self, table: Operand, indices: Operand, axis: int = 0) -> Tensor:
        """Return the entries of a table at some indices of an axis."""
        return self.apply("Gather", table, indices, axis=axis)

    def total(self, tensors: Sequence[Tensor]) -> Tensor:
        """Return the sum of several tensors."""
        return self.apply("Sum", *tensors) if len(tensors) > 1 else tensors[0]

    def concatenated(self, tensors: Sequence[Tensor]) -> Tensor:
        """Return the columns of several tensors side by side."""
        return self.apply("Concat", *tensors, axis=1) if len(tensors) > 1 else tensors[0]


def column_log_prob(x: Tensor, forms: Sequence[ColumnForm]) -> Tensor:
    """Return the log probabilities of columns by class; all forms are of one kind.

    Parameters
    ----------
    x : Tensor of shape (n, columns, 1)
    forms : sequence of forms
        One for every column.

    Returns
    -------
    Tensor of shape (n, columns, classes)
    """

    def stacked(name: str) -> np.ndarray:
        return np.stack([getattr(form, name) for form in forms])

    match forms[0]:
        case LinearLogForm():
            return _linear(x, stacked("weight"), stacked("bias"))
        case NormalForm():
            deviation = x - stacked("mean")
            return stacked("log_norm") - deviation * (0.5 * stacked("precision")) * deviation
        case StudentTForm():
            deviation = x - stacked("location")
            ratio = deviation * stacked("inverse_spread") * deviation
            return stacked("log_norm") - stacked("power") * ratio.log1p()
    return stacked("at_zero") + x * stacked("slope") + log_rising(x, stacked("start"))


def _linear(x: Tensor, weight: np.ndarray, bias: np.ndarray) -> Tensor:
    """Return bias + weight · x, where bias or weight may be −∞."""
    slope = np.where(np.isneginf(weight), 0.0, weight)
    start = np.where(np.isneginf(weight), IMPOSSIBLE, np.where(np.isneginf(bias), 0.0, bias))
    return x.graph.where(x.equals(0.0), bounded(bias), start + x * slope)


def log_rising(x: Tensor, start: np.ndarray) -> Tensor:
    """Return log Γ(start + x) − log Γ(start), up to a term that depends only on x.

    Stirling's series of log Γ(x + 9) is subtracted without its correction. As in `Arithmetic.rising`, the series is
    used directly for large start, and shifted by 8 for small start.
    """
    graph = x.graph
    common = x + (_SHIFT + 1.0)
    log_common = common.log()
    large = np.where(start > _LARGE, start, _LARGE)
    end = x + large
    growth = (large - 0.5) * (x / large).log1p()
    series = [growth, x * (end.log() - 1.0), _correction(end), Tensor(graph, graph.constant(-_correction(large)))]
    common_series = (common - 0.5) * log_common - common + 0.5 * np.log(2 * np.pi)
    from_large = graph.total(series) - common_series
    small = np.where(start > _LARGE, 1.0, start)
    end = x + (small + _SHIFT)
    excess = small - 1
    growth = (end - 0.5) * (excess / common).log1p()
    constant = Tensor(graph, graph.constant(-excess - gammaln(small)))
    series = [growth, excess * log_common, constant, _correction(end)]
    from_small = graph.total(series) - graph.total([(x + (small + i)).log() for i in range(_SHIFT)])
    return graph.where(Tensor(graph, graph.constant(start > _LARGE)), from_large, from_small)


def _correction(z: Any) -> Any:
    """Return the correction of Stirling's series: 1/(12 z) − 1/(360 z³) + 1/(1260 z⁵) − 1/(1680 z⁷)."""
    square = z * z
    return (1 / 12 - (1 / 360 - (1 / 1260 - 1 / 1680 / square) / square) / square) / z

"""Arrays of unevaluated values for every row, which a query or a graph computes elsewhere."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tallybayes.families._shared.sql_aggregates import (
    BinIndex,
    Const,
    Expression,
    IfPresent,
    Log,
    Minus,
    Product,
    SqlColumn,
    Weight,
)

if TYPE_CHECKING:
    import numpy.typing as npt


MISSING = np.nan  # NULL in SQL, NaN in ONNX
_POWER = 1e4  # power from which the rounding error of log(1 + u) is visible


def _operator(name: str, *, reflected: bool = False) -> Callable[..., Array]:
    """Return the method of an operator; with `reflected`, the array is its second operand."""

    def method(array: Array, *others: Operand) -> Array:
        return array.engine.apply(name, *others, array) if reflected else array.engine.apply(name, array, *others)

    return method


class Array:
    """An array of values for every row; operators and methods return further arrays.

    Axes are those of one row, and are counted from the last. Operands may be NumPy arrays of constants, which are
    broadcast. Arithmetic with a missing value gives a missing value, and a comparison with one does not hold.
    """

    __array_ufunc__ = None  # constant - array is computed by Array.__rsub__

    def __init__(self, engine: Engine, value: Any) -> None:
        self.engine = engine
        self.value = value  # as the engine represents it

    __add__ = _operator("Add")
    __radd__ = _operator("Add", reflected=True)
    __sub__ = _operator("Sub")
    __rsub__ = _operator("Sub", reflected=True)
    __mul__ = _operator("Mul")
    __rmul__ = _operator("Mul", reflected=True)
    __truediv__ = _operator("Div")
    __rtruediv__ = _operator("Div", reflected=True)
    __matmul__ = _operator("MatMul")
    __rmatmul__ = _operator("MatMul", reflected=True)
    __lt__ = _operator("Less")
    __gt__ = _operator("Greater")
    __ge__ = _operator("GreaterOrEqual")
    __and__ = _operator("And")
    __or__ = _operator("Or")
    __invert__ = _operator("Not")

    def equals(self, other: Operand) -> Array:
        """Return where the elements are equal to others."""
        return self.engine.apply("Equal", self, other)

    def is_missing(self) -> Array:
        """Return where the elements are missing."""
        return self.engine.apply("IsNaN", self)

    def abs(self) -> Array:
        """Return the absolute values."""
        return self.engine.apply("Abs", self)

    def floor(self) -> Array:
        """Return the largest integers that are not larger."""
        return self.engine.apply("Floor", self)

    def log(self) -> Array:
        """Return the natural logarithms."""
        return self.engine.apply("Log", self)

    def exp(self) -> Array:
        """Return the exponentials."""
        return self.engine.apply("Exp", self)

    def log1p(self, power: float = np.inf) -> Array:
        """Return log(1 + u); accurate for small u if it is multiplied by a large power (Kahan)."""
        increased = self + 1.0
        if power < _POWER:
            return increased.log()
        corrected = increased.log() * (self / (increased - 1.0))
        return self.engine.where(increased.equals(1.0), self, corrected)

    def expand(self, *axes: int) -> Array:
        """Return the array with more axes, at these positions of the result."""
        return self.engine.apply("Unsqueeze", self, axes)

    def squeeze(self) -> Array:
        """Return the array without its last axis, of length 1."""
        return self.engine.apply("Squeeze", self, [-1])

    def sum(self, axis: int = -1, *, keep: bool = False) -> Array:
        """Return the sums over an axis."""
        return self.engine.apply("ReduceSum", self, [axis], keepdims=int(keep))

    def max(self) -> Array:
        """Return the maximum over the last axis, which is kept."""
        return self.engine.apply("ReduceMax", self, axes=[-1], keepdims=1)

    def pick(self, positions: Sequence[int]) -> Array:
        """Return the elements at some positions of the last axis."""
        return self.engine.apply("Gather", self, positions, axis=-1)


Operand: TypeAlias = "Array | npt.ArrayLike"


class Engine(ABC):
    """A language in which arrays are computed. Operators have the names of ONNX."""

    @abstractmethod
    def apply(self, operator: str, *operands: Operand, **attributes: Any) -> Array:
        """Return the result of an operator."""

    def where(self, condition: Operand, then: Operand, otherwise: Operand) -> Array:
        """Return `then` where the condition holds, else `otherwise`."""
        return self.apply("Where", condition, then, otherwise)

    def total(self, arrays: Sequence[Array]) -> Array:
        """Return the sum of several arrays."""
        return self.apply("Sum", *arrays) if len(arrays) > 1 else arrays[0]


def evaluate(expression: Expression, columns: Sequence[Array], weight: Operand = 1.0) -> Any:
    """Return the value of an expression over columns and the weight of the row.

    Parameters
    ----------
    expression : Expression
    columns : sequence of Arrays
        By their position.
    weight : Array, optional
    """

    def of(operand: Expression) -> Any:
        return evaluate(operand, columns, weight)

    where = columns[0].engine.where
    match expression:
        case SqlColumn(position):
            return columns[position]
        case Weight():
            return weight
        case Const(value):
            return value
        case Product(first, second):
            return of(first) * of(second)
        case Minus(first, second):
            return of(first) - of(second)
        case Log(number):
            return where(of(number) > 0.0, of(number), MISSING).log()
        case IfPresent(there, then):
            return where(of(there).is_missing(), MISSING, of(then))
        case BinIndex(number, cuts):
            x = of(number)
            index: Operand = where(x.is_missing(), MISSING, float(len(cuts)))
            for k in reversed(range(len(cuts))):
                index = where(x < cuts[k], float(k), index)
            return index
    raise TypeError(f"{expression!r} cannot be evaluated; expected a known expression.")

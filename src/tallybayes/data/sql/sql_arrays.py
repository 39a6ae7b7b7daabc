"""Arrays of SQL expressions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.data.sql.row_arrays import Array, Engine, Operand

if TYPE_CHECKING:
    from tallybayes.data.sql.dialects import Dialect

_ARGUMENTS = 90  # of a function: databases limit their number
_TEMPLATES = {
    "Add": "({} + {})",
    "Sub": "({} - {})",
    "Mul": "({} * {})",
    "Div": "({} / {})",
    "Less": "{} < {}",
    "Greater": "{} > {}",
    "GreaterOrEqual": "{} >= {}",
    "Equal": "{} = {}",
    "And": "({} AND {})",
    "Or": "({} OR {})",
    "Not": "NOT ({})",
    "IsNaN": "{} IS NULL",
    "Abs": "ABS({})",
    "Floor": "FLOOR({})",
    "Log": "LN({})",
    "Exp": "EXP({})",
    "Where": "CASE WHEN {} THEN {} ELSE {} END",
}


def balanced(parts: Sequence[str]) -> str:
    """Return a sum as a tree of small depth, since databases limit the depth of expressions."""
    if len(parts) <= 1:
        return parts[0] if parts else "0e0"
    half = len(parts) // 2
    return f"({balanced(parts[:half])} + {balanced(parts[half:])})"


class SqlArrays(Engine):
    """The expressions of one dialect. Arrays are NumPy arrays of texts, and of numbers where elements are constant."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect

    def array(self, expressions: Sequence[str]) -> Array:
        """Return an array of expressions."""
        return Array(self, np.array(expressions, dtype=object))

    def literal(self, value: float | bool | str) -> str:
        """Return an element as SQL; negative numbers are in parentheses, since -- begins a comment."""
        if isinstance(value, str):
            return value
        written = "NULL" if value != value else self.dialect.value(value)
        return f"({written})" if written.startswith("-") else written

    def apply(self, operator: str, *operands: Operand, **attributes: Any) -> Array:
        """Return the expressions of an operator."""
        values = [
            operand.value if isinstance(operand, Array) else np.asarray(operand).astype(object) for operand in operands
        ]
        match operator:
            case "Unsqueeze":
                result = np.expand_dims(values[0], tuple(values[1]))
            case "Squeeze":
                result = values[0][..., 0]
            case "Gather":
                result = values[0][..., values[1].astype(int)]
            case "MatMul":  # by a column
                return self.apply("Mul", Array(self, values[0]), Array(self, values[1].swapaxes(-1, -2))).sum(keep=True)
            case "Sum":
                result = self._summed(np.stack(np.broadcast_arrays(*values)), 0)
            case "ReduceSum":
                (axis,) = values[1]
                result = self._summed(values[0], axis)
                result = np.expand_dims(result, axis) if attributes["keepdims"] else result
            case "ReduceMax":
                result = np.array([self._greatest(list(map(self.literal, values[0])))], dtype=object)
            case _:
                values = list(np.broadcast_arrays(*values))
                elements = [
                    self._written(operator, cells) for cells in zip(*(part.flat for part in values), strict=True)
                ]
                result = np.array(elements, dtype=object).reshape(values[0].shape)
        return Array(self, np.asarray(result, dtype=object))

    def _written(self, operator: str, cells: tuple[Any, ...]) -> Any:
        """Return one element of the result of an operator."""
        if operator == "Where" and isinstance(cells[0], bool):
            return cells[1] if cells[0] else cells[2]
        if operator == "Mul" and not all(isinstance(cell, str) or cell for cell in cells):
            return 0.0
        if operator == "Mul" and any(not isinstance(cell, str) and cell == 1 for cell in cells):
            return cells[0] if cells[1] == 1 else cells[1]
        if operator == "Sub" and cells[1] == 0:
            return cells[0]
        return _TEMPLATES[operator].format(*map(self.literal, cells))

    def _summed(self, values: np.ndarray, axis: int) -> np.ndarray:
        """Return the sums over an axis, without zeros."""
        moved = np.moveaxis(values, axis, -1)
        sums = [
            balanced([self.literal(cell) for cell in cells if isinstance(cell, str) or cell])
            for cells in moved.reshape(-1, moved.shape[-1])
        ]
        return np.array(sums, dtype=object).reshape(moved.shape[:-1])

    def _greatest(self, parts: list[str]) -> str:
        """Return the maximum of expressions, nested because databases limit the number of arguments."""
        while len(parts) > 1:
            groups = [parts[start : start + _ARGUMENTS] for start in range(0, len(parts), _ARGUMENTS)]
            parts = [f"{self.dialect.greatest}({', '.join(g)})" if len(g) > 1 else g[0] for g in groups]
        return parts[0]

"""Nodes and constants of an ONNX graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallybayes.data.sql.row_arrays import Array, Engine, Operand


class OnnxGraph(Engine):
    """The nodes of a graph in order of application, and its constants. Arrays are the names of outputs of nodes."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def name_of(self, operand: Operand) -> str:
        """Return the name of an operand; constants are added to the graph."""
        from onnx import numpy_helper

        if isinstance(operand, Array):
            return str(operand.value)
        name = f"tally/constant {len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(operand), name))
        return name

    def constant(self, array: np.ndarray) -> Array:
        """Return a constant that several nodes read."""
        return Array(self, self.name_of(array))

    def apply(self, operator: str, *operands: Operand, domain: str = "", **attributes: Any) -> Array:
        """Add a node that applies an operator, and return its output."""
        from onnx import helper

        names = [self.name_of(operand) for operand in operands]
        output = f"tally/{operator} {len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, names, [output], domain=domain, **attributes))
        return Array(self, output)

    def input(self, name: object) -> Array:
        """Return an input of the graph."""
        return Array(self, str(name))

    def gather(self, table: Operand, indices: Operand, axis: int = 0) -> Array:
        """Return the entries of a table at some indices of an axis."""
        return self.apply("Gather", table, indices, axis=axis)

    def concatenated(self, arrays: list[Array]) -> Array:
        """Return the columns of several arrays side by side."""
        return self.apply("Concat", *arrays, axis=1) if len(arrays) > 1 else arrays[0]

    def as_int(self, array: Array) -> Array:
        """Return the elements as integers."""
        return self.apply("Cast", array, to=7)  # the code of the type in ONNX

    def log_sum_exp(self, array: Array, axis: int) -> Array:
        """Return the logarithm of the sum of exponentials over an axis."""
        largest = self.apply("ReduceMax", array, axes=[axis], keepdims=1)
        return (array - largest).exp().sum(axis).log() + self.apply("Squeeze", largest, [axis])

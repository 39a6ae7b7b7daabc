"""Export of a classifier to ONNX: a graph of plain operators that returns labels and class probabilities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes import __version__
from tallybayes.data.sql.row_arrays import MISSING, Array, Operand
from tallybayes.errors import ExportError
from tallybayes.export.class_probabilities import ClassProbabilities, RowEngine, class_probabilities
from tallybayes.export.onnx_graph import OnnxGraph
from tallybayes.export.output_names import free_names
from tallybayes.export.portable_scorer import IMPOSSIBLE, Cell, Derived, Leaves, Lookup, Parents, PortableScorer, Tree
from tallybayes.export.portable_trees import decisions_of

if TYPE_CHECKING:
    import onnx

    from tallybayes.tally.factor import Name

_OPSET = 17  # versions for runtimes since 2022
_LABEL_OPSET = 3
_FORMAT = 8
_NO_INTEGER = -(2**63)  # represents a missing value in integer columns; in string columns it is the empty string
_INT32, _DOUBLE = 6, 11  # the codes of types in ONNX
_TREES = 100  # that are followed at a time
_PATTERNS = 1_000_000  # size of a table of all patterns of missing cells; if larger, only complete rows have a result


def write_onnx(scores: PortableScorer, array: bool) -> onnx.ModelProto:
    """Return the graph of a classifier; with `array`, its input is one array of numbers, "X"."""
    try:
        import onnx  # noqa: F401
    except ImportError as error:
        raise ImportError("onnx is not installed; expected it to write a model.\n    pip install onnx") from error
    if scores.unseen == "error":
        raise ExportError(
            "unseen is 'error', and an ONNX graph cannot raise an error for an unseen level.\n"
            "    Use model.reestimate(unseen='missing')."
        )
    if date := next((name for cell in scores.cells if (name := scores.date_of(cell.source)) is not None), None):
        raise ExportError(
            f"column {date!r} is a date column, and ONNX has no parts of dates.\n"
            f"    Fit the model on columns of their parts, such as df[{date!r}].dt.month."
        )
    if not scores.cells:
        raise ExportError("the model reads no column; expected at least one.")
    return _Model(scores, array and all(_is_number(cell) for cell in scores.cells)).proto()


class _Model(OnnxGraph, RowEngine):
    """The graph of one model."""

    def __init__(self, scores: PortableScorer, array: bool) -> None:
        super().__init__()
        self.scores = scores
        self.array = array
        self.kinds: dict[Name, int] = {}  # the types of inputs

    def proto(self) -> onnx.ModelProto:
        """Return the ONNX model."""
        from onnx import helper

        inputs = self._inputs()
        probabilities = class_probabilities(self.scores, self, _PATTERNS)
        names = free_names(["label", "probabilities"], [value_info.name for value_info in inputs])
        outputs = self._outputs(probabilities, *names)
        graph = helper.make_graph(self.nodes, "tallybayes", inputs, outputs, self.constants)
        opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid("ai.onnx.ml", _LABEL_OPSET)]
        metadata = {"producer_name": "tallybayes", "producer_version": __version__}
        return helper.make_model(graph, opset_imports=opsets, ir_version=_FORMAT, **metadata)

    def _inputs(self) -> list[Any]:
        """Return the descriptions of the inputs: one array, or one vector for every column."""
        from onnx import TensorProto, helper

        if self.array:
            return [helper.make_tensor_value_info("X", TensorProto.DOUBLE, ["rows", None])]
        levels = self.scores.levels
        for cell in self.scores.cells:
            known = cell.column.levels if isinstance(cell.column, Derived) else levels.get(cell)
            kind = TensorProto.DOUBLE
            if not _is_number(cell) and known is not None:
                kind = TensorProto.STRING if _are_strings(known) else TensorProto.INT64
            if self.kinds.get(cell.source, TensorProto.DOUBLE) == TensorProto.DOUBLE:
                self.kinds[cell.source] = kind
        return [helper.make_tensor_value_info(str(name), kind, ["rows"]) for name, kind in self.kinds.items()]

    def _outputs(self, probabilities: ClassProbabilities, label: str, probability: str) -> list[Any]:
        """Add the nodes of the labels and probabilities, and return the descriptions of the outputs."""
        from onnx import TensorProto, helper

        first = self.apply("ArgMax", probabilities.ranked, axis=1, keepdims=0)
        labels = np.array(self.scores.classes)
        if labels.dtype.kind == "U":
            labels = labels.astype(object)
        onnx_types = {"O": TensorProto.STRING, "i": TensorProto.INT64, "b": TensorProto.BOOL, "f": TensorProto.DOUBLE}
        self.nodes.append(helper.make_node("Gather", [self.name_of(labels), first.value], [label], axis=0))
        self.nodes.append(helper.make_node("Identity", [probabilities.probability.value], [probability]))
        return [
            helper.make_tensor_value_info(label, onnx_types[labels.dtype.kind], ["rows"]),
            helper.make_tensor_value_info(probability, TensorProto.DOUBLE, ["rows", len(labels)]),
        ]

    def numbers(self, cells: Sequence[Cell]) -> Array:
        """Return numeric columns as they are."""
        if self.array and not any(isinstance(cell.column, Derived) for cell in cells):
            return self.gather(self.input("X"), [int(cell.source) for cell in cells], axis=1)
        return self.concatenated([self._number(cell.column).expand(1) for cell in cells])

    def _number(self, column: Name | Derived) -> Array:
        """Return one numeric column."""
        if isinstance(column, Derived):
            if column.value is None:
                return self.where(self._flag(column), 1.0, 0.0)
            number = self._number(column.source)
            return self.where(number.is_missing(), column.value, number)
        if self.array:
            return self.gather(self.input("X"), [int(column)], axis=1).squeeze()
        values = self.input(column)
        if self.kinds[column] == _DOUBLE:
            return values
        return self.where(values.equals(np.int64(_NO_INTEGER)), MISSING, self.apply("Cast", values, to=_DOUBLE))

    def _flag(self, column: Derived) -> Array:
        """Return whether cells have a level, or are missing."""
        if column.levels is None:
            return self._number(column.source).is_missing()
        missing_value: Any = "" if _are_strings(column.levels) else _NO_INTEGER
        if column.level is None and missing_value in column.levels:
            raise _level_is_missing(column.source, missing_value)
        level = missing_value if column.level is None else column.level
        return self._encoded(self.input(column.source), [level], [1], 0).equals(1)

    def _category(self, cell: Cell) -> Array:
        """Return the categories of a column; flags as integers."""
        if isinstance(cell.column, Derived):
            return self.as_int(self._flag(cell.column))
        return self.input(cell.column)

    def step(self, name: str, **arrays: Operand) -> list[Any]:
        """Return the same arrays: every node is computed once."""
        return list(arrays.values())

    def rows_at(self, codes: Sequence[int], tables: Sequence[np.ndarray], key: Array) -> list[Array]:
        """Return one row of each of some tables; the codes are their positions."""
        return [self.gather(table, key) for table in tables]

    # ---- Levels ----------------------------------------------------------------------------------------------------

    def look_up(self, lookup: Lookup, number: Array | None) -> tuple[Array, Array]:
        """Return the row of a table of levels, which ends in rows for unseen levels and missing cells."""
        n_levels = len(lookup.levels)
        if number is None:
            code = self._category_codes(lookup)
            is_missing = code.equals(n_levels + 1).expand(-1)
        else:  # small integers are codes
            is_missing = number.is_missing()
            number = number.squeeze()
            is_level = (number >= 0.0) & (number < float(n_levels)) & number.equals(number.floor())
            code = self.as_int(self.where(is_level, number, float(n_levels)))
        nothing = np.full((2, lookup.table.shape[1]), MISSING)
        return self.gather(np.concatenate([lookup.table, nothing]), code), is_missing

    def _category_codes(self, lookup: Lookup) -> Array:
        """Return the codes of a categorical column, (n,); n levels if unseen, n + 1 if missing."""
        n_levels = len(lookup.levels)
        missing_value: Any = "" if _are_strings(lookup.levels) else _NO_INTEGER
        if missing_value not in lookup.levels:
            keys = [*lookup.levels, missing_value]
            return self._encoded(self._category(lookup.cell), keys, [*range(n_levels), n_levels + 1], n_levels)
        # Otherwise unseen levels and missing cells must add the same.
        if lookup.unseen is not None or lookup.cell in self.scores.with_indicator:
            raise _level_is_missing(lookup.cell.source, missing_value)
        return self._encoded(self._category(lookup.cell), lookup.levels, range(n_levels), n_levels)

    def _encoded(self, values: Array, keys: Sequence[Any], codes: Sequence[int], default: int) -> Array:
        """Return the codes of categories."""
        attributes: dict[str, Any] = {"values_int64s": codes, "default_int64": default}
        attributes |= {"keys_strings": keys} if _are_strings(keys) else {"keys_int64s": list(map(int, keys))}
        return self.apply("LabelEncoder", values, domain="ai.onnx.ml", **attributes)

    # ---- Pairs of columns ------------------------------------------------------------------------------------------

    def pair_scores(self, pairs: Parents | Tree, numbers: dict[Cell, Array]) -> Callable[[], Array]:
        """Return a function that returns the log probabilities by class of a model of pairs of columns."""
        codes = []  # of each column, (n,), numbered over all columns; −1 where missing
        offset = 0
        for cell, levels in zip(pairs.cells, pairs.levels, strict=True):
            values = self._category(cell) if cell not in numbers else numbers[cell]
            if cell in numbers:
                number = numbers[cell].squeeze()
                values = self.as_int(self.where(number.is_missing(), -1.0, number))
            codes.append(self._encoded(values, levels, range(offset, offset + len(levels)), -1))
            offset += len(levels)
        if isinstance(pairs, Parents):
            return partial(self._average, pairs, codes)
        return partial(self._pass_messages, pairs, codes)

    def _pass_messages(self, tree: Tree, codes: list[Array]) -> Array:
        """Return the sum over a tree by message passing from the leaves; messages are (n, parent's levels, classes)."""
        first = np.searchsorted(tree.column, np.arange(len(tree.cells)))
        below: dict[int, list[Array]] = {j: [] for j in range(-1, len(codes))}
        for j in tree.order[::-1]:
            code = self.apply("Max", codes[j] - first[j], 0)
            message = self.gather(tree.tables[j].swapaxes(0, 1), code)
            if_missing: Operand = np.zeros((1, 1, 1))  # a missing leaf: its probabilities sum to 1
            if below[j]:
                incoming = self.total(below[j])
                message = message + self.apply("GatherND", incoming, code.expand(1), batch_dims=1).expand(1)
                if_missing = self.log_sum_exp(incoming.expand(1) + tree.tables[j][None], 2)
            below[tree.parents[j]].append(self.where((codes[j] < 0).expand(1, 2), if_missing, message))
        return self.apply("Squeeze", self.total(below[-1]), [1])

    def _average(self, parents: Parents, column_codes: list[Array]) -> Array:
        """Return the average over parents: the levels of a row, and all levels of columns with missing cells."""
        codes = self.concatenated([code.expand(1) for code in column_codes])
        given = self.gather(parents.given, self.apply("Max", codes, 0), axis=1)  # (levels, n, columns, classes)
        same_column = parents.column[:, None, None] == np.arange(len(parents.cells))
        is_excluded = (codes.equals(-1) | same_column).expand(3)
        score = self.where(is_excluded, 0.0, given).sum(2) + parents.own[:, None]  # (levels, n, classes)
        row_codes = codes.pick(parents.column.tolist())  # (n, levels)
        is_parent = row_codes.equals(np.arange(len(parents.column))[None]) | row_codes.equals(-1)
        is_parent = self.apply("Transpose", is_parent, perm=[1, 0]).expand(2)
        return self.log_sum_exp(self.where(is_parent, score, IMPOSSIBLE), 0)

    # ---- Trees -----------------------------------------------------------------------------------------------------

    def leaf_sums(self, leaves: Leaves, cells: Sequence[Array]) -> list[Array]:
        """Return the sums over each group of trees of the values of a row's leaves: it descends all trees at once."""
        coded = zip(cells, leaves.edges, leaves.levels, strict=True)
        codes = [self._bin_code(x, np.array(edges)) if levels is None else x for x, edges, levels in coded]
        columns = self.apply("Cast", self.concatenated(codes), to=_INT32)
        sums = []
        for first, last in pairwise(leaves.groups.tolist()):
            parts = [
                self._walk(leaves, start, min(start + _TREES, last), columns) for start in range(first, last, _TREES)
            ]
            sums.append(self.total(parts))
        return sums

    def _bin_code(self, x: Array, edges: np.ndarray) -> Array:
        """Return the code of numbers: 0 if missing, then the bins."""
        bins = self.where(x >= edges, 1.0, 0.0).sum(keep=True) + 1.0 if len(edges) else 1.0
        return self.where(x.is_missing(), 0.0, bins)

    def _walk(self, leaves: Leaves, first: int, last: int, codes: Array) -> Array:
        """Return the sums over some trees, (classes,)."""
        trees = decisions_of(leaves.trees, first, last)
        offset, rules = 256 * trees.rule, trees.goes_right.ravel()
        tables = (trees.column, offset, rules, trees.children.ravel(), trees.leaf)
        columns, offsets, goes_right, children, leaf = (self.constant(table.astype(np.int32)) for table in tables)
        node = self.apply("Add", codes.pick([0]) * np.int32(0), trees.roots.astype(np.int32))  # (n, trees)
        for _ in range(trees.depth):
            code = self.apply("GatherElements", codes, self.gather(columns, node), axis=1)
            right = self.gather(goes_right, self.gather(offsets, node) + code)
            node = self.gather(children, node + node + right)
        start, end = leaves.trees.leaf_starts[[first, last]].tolist()
        values = self.gather(self.constant(leaves.values[start:end]), self.gather(leaf, node))
        return self.apply("Cast", values, to=_DOUBLE).sum(-2)


def _is_number(cell: Cell) -> bool:
    """Return whether the column of a cell is numeric."""
    return cell.column.levels is None if isinstance(cell.column, Derived) else cell.reading is not None


def _level_is_missing(column: Name, level: Any) -> ExportError:
    """Return the error for a level that represents a missing cell."""
    return ExportError(
        f"column {column!r} has the level {level!r}, which represents a missing cell in "
        "ONNX; expected other levels.\n    Rename the level, for example to 'empty', and fit the model again."
    )


def _are_strings(levels: Sequence[Any]) -> bool:
    """Return whether levels are strings; without levels, they are read as strings."""
    return not levels or isinstance(levels[0], str)

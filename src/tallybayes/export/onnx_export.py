"""Export of a classifier to ONNX: a graph of plain operators that returns labels and class probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes import __version__
from tallybayes.errors import ExportError
from tallybayes.export.onnx_arithmetic import OnnxGraph
from tallybayes.export.output_names import free_names
from tallybayes.export.portable_scorer import (
    IMPOSSIBLE,
    LARGEST,
    Cell,
    Lookup,
    Parents,
    PortableScorer,
    RowDensity,
    Term,
    Tree,
)
from tallybayes.families._shared.sql_aggregates import BinIndex, Log

if TYPE_CHECKING:
    import onnx

_OPSET = 17  # versions for runtimes since 2022
_LABEL_OPSET = 3
_FORMAT = 8
MISSING = -(2**63)  # represents a missing value in integer columns; in string columns it is the empty string
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
    if date := next((name for cell in scores.cells if (name := scores.date_of(cell.column)) is not None), None):
        raise ExportError(
            f"column {date!r} is a date column, and ONNX has no parts of dates.\n"
            f"    Fit the model on columns of their parts, such as df[{date!r}].dt.month."
        )
    if not scores.cells:
        raise ExportError("the model reads no column; expected at least one.")
    return _Model(scores, array and all(cell.reading is not None for cell in scores.cells)).proto()


class _Model(OnnxGraph):
    """The graph of one model."""

    def __init__(self, scores: PortableScorer, array: bool) -> None:
        super().__init__()
        self.scores = scores
        self.array = array
        self.parts: list[str] = []  # terms of the score, (n, classes)
        self.no_result: list[str] = []  # NaN where a row has no result, else 0, (n, columns)
        self.codes: dict[Cell, tuple[str, int]] = {}  # codes of categorical cells, and the code of unseen levels

    def proto(self) -> onnx.ModelProto:
        """Return the ONNX model."""
        from onnx import TensorProto, helper

        cells = self.scores.cells
        scores = self.scores
        kinds = {look.cell: look.levels for look in scores.lookups if look.cell.reading is None}
        if scores.pairs is not None:
            pair_levels = zip(scores.pairs.cells, scores.pairs.levels, strict=True)
            kinds |= {cell: levels for cell, levels in pair_levels if cell.reading is None}
        inputs = []
        for name in dict.fromkeys(cell.column for cell in cells):
            levels = next((kinds[cell] for cell in cells if cell.column == name and cell in kinds), None)
            strings = levels is not None and (not levels or isinstance(levels[0], str))
            kind = TensorProto.DOUBLE if levels is None else TensorProto.STRING if strings else TensorProto.INT64
            inputs.append(helper.make_tensor_value_info(str(name), kind, ["rows"]))
        if self.array:
            inputs = [helper.make_tensor_value_info("X", TensorProto.DOUBLE, ["rows", None])]
        for lookup in scores.lookups:
            self._look_up(lookup)
        groups: dict[Any, list[Term]] = {}
        for term in scores.terms:
            reading = type(term.cell.reading)
            groups.setdefault((reading, term.cell.support, type(term.form), term.is_indicator), []).append(term)
        for terms in groups.values():
            self._add(terms)
        for total in scores.totals:
            x, _ = self._numbers(total.cells)
            rising = self.rising(self.axis(self.over(x, 1, keep=True), 2), total.start[None])
            self.parts.append(self.apply("Neg", self.over(rising, 1)))
        for rows in scores.rows:
            if rows.cells:
                self._add_density(rows)
        if isinstance(scores.pairs, Parents):
            self._average(scores.pairs)
        elif scores.pairs is not None:
            self._pass_messages(scores.pairs)
        outputs = self._normalized(free_names(["label", "probabilities"], [value_info.name for value_info in inputs]))
        graph = helper.make_graph(self.nodes, "tallybayes", inputs, outputs, self.constants)
        opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid("ai.onnx.ml", _LABEL_OPSET)]
        metadata = {"producer_name": "tallybayes", "producer_version": __version__}
        return helper.make_model(graph, opset_imports=opsets, ir_version=_FORMAT, **metadata)

    # ---- What is read ----------------------------------------------------------------------------------------------

    def _columns(self, cells: Sequence[Cell]) -> str:
        """Return numeric columns as they are, of shape (n, columns)."""
        if self.array:
            return self.apply("Gather", "X", np.array([cell.column for cell in cells], dtype=np.int64), axis=1)
        columns = [self.axis(str(cell.column), 1) for cell in cells]
        return self.apply("Concat", *columns, axis=1) if len(columns) > 1 else columns[0]

    def _numbers(self, cells: Sequence[Cell]) -> tuple[str, str]:
        """Return transformed numbers of one kind, of shape (n, columns), and a mask of missing and invalid ones."""
        raw = self._columns(cells)
        zero = np.array(0.0)
        is_infinite = self.apply("IsInf", raw)
        self.no_result.append(self.apply("Where", is_infinite, np.array(np.nan), zero))
        missing = self.apply("IsNaN", raw)
        reading = cells[0].reading
        support = cells[0].support
        is_valid = None
        if isinstance(reading, Log):
            is_valid = self.apply("Greater", raw, zero)
        elif support == "binary":
            is_valid = self.apply("Or", self.apply("Equal", raw, zero), self.apply("Equal", raw, np.array(1.0)))
        elif support is not None:
            is_valid = self.apply("GreaterOrEqual", raw, zero)
        if support == "count" and is_valid is not None:
            is_valid = self.apply("And", is_valid, self.apply("Equal", raw, self.apply("Floor", raw)))
        if is_valid is not None:
            missing = self.apply("Not", is_valid)  # NaN does not fit, either
        x = self.apply("Where", missing, np.array(1.0 if isinstance(reading, Log) else 0.0), raw)
        if support == "nonnegative":
            self.no_result.append(self.apply("Where", missing, np.array(np.nan), zero))
        if isinstance(reading, Log):
            return self.apply("Log", x), missing
        return self.apply("Clip", x, np.array(-LARGEST), np.array(LARGEST)), missing

    def _look_up(self, lookup: Lookup) -> None:
        """Add the log probabilities of levels, from a table that ends in those of unseen levels and missing cells."""
        n_levels = len(lookup.levels)
        cell = lookup.cell
        unseen = np.zeros(lookup.table.shape[1]) if lookup.unseen is None else lookup.unseen
        table = np.concatenate([lookup.table, unseen[None], np.zeros((1, len(unseen)))])
        if cell.reading is None:
            keys: list[Any] = list(lookup.levels)
            strings = not keys or isinstance(keys[0], str)
            missing_value: Any = "" if strings else MISSING
            is_distinct = lookup.unseen is not None or any(
                term.is_indicator and term.cell == cell for term in self.scores.terms
            )
            if missing_value in keys and is_distinct:  # otherwise unseen levels and missing cells add the same
                raise ExportError(
                    f"column {cell.column!r} has the level {missing_value!r}, which represents a missing cell in ONNX; "
                    "expected other levels.\n    Rename the level, for example to 'empty', and fit the model again."
                )
            positions = list(range(n_levels))
            if missing_value not in keys:
                keys = [*keys, missing_value]
                positions = [*positions, n_levels + 1]
            code = self._encoded(str(cell.column), keys, positions, n_levels)
            self.codes[cell] = code, n_levels
        else:
            x, missing = (self.apply("Squeeze", part, np.array([1])) for part in self._numbers([cell]))
            if isinstance(cell.reading, BinIndex):
                code = self._bins(x, cell.reading)
            else:  # small integers are codes
                code = self.apply("Cast", self.apply("Clip", x, np.array(-1.0), np.array(float(n_levels))), to=7)
                is_integer = self.apply("Equal", x, self.apply("Cast", code, to=11))
                low = np.array(0, dtype=np.int64)
                high = np.array(n_levels, dtype=np.int64)
                is_in_range = self.apply("And", self.apply("GreaterOrEqual", code, low), self.apply("Less", code, high))
                missing = self.apply("Or", missing, self.apply("Not", self.apply("And", is_integer, is_in_range)))
            code = self.apply("Where", missing, np.array(n_levels + 1, dtype=np.int64), code)
        self.parts.append(self.apply("Gather", table, code, axis=0))

    def _encoded(self, name: str, keys: Sequence[Any], positions: Sequence[int], default: int) -> str:
        """Return the codes of categories, of shape (n,)."""
        strings = not keys or isinstance(keys[0], str)
        attributes: dict[str, Any] = {"keys_strings": keys} if strings else {"keys_int64s": [int(key) for key in keys]}
        attributes |= {"values_int64s": positions, "default_int64": default}
        return self.apply("LabelEncoder", name, domain="ai.onnx.ml", **attributes)

    def _bins(self, x: str, bin_index: BinIndex) -> str:
        """Return the bins of numbers, both of shape (n,): the number of bin edges that are not larger."""
        reached = self.apply("GreaterOrEqual", self.axis(x, 1), np.array(bin_index.cuts)[None])
        return self.over(self.apply("Cast", reached, to=7), 1)

    def _codes(self, pairs: Parents | Tree) -> list[str]:
        """Return the codes of each column, of shape (n,), numbered over all columns; −1 where missing."""
        codes = []
        offset = 0
        missing_code = np.array(-1, dtype=np.int64)
        for cell, levels in zip(pairs.cells, pairs.levels, strict=True):
            positions = range(offset, offset + len(levels))
            if cell.reading is None:
                code = self._encoded(str(cell.column), levels, positions, -1)
            else:
                x, missing = (self.apply("Squeeze", part, np.array([1])) for part in self._numbers([cell]))
                assert isinstance(cell.reading, BinIndex)
                code = self._encoded(self._bins(x, cell.reading), levels, positions, -1)
                code = self.apply("Where", missing, missing_code, code)
            codes.append(code)
            offset += len(levels)
        return codes

    def _pass_messages(self, tree: Tree) -> None:
        """Add the sum over a tree by message passing from the leaves; messages are (n, parent's levels, classes)."""
        codes = self._codes(tree)
        first = np.searchsorted(tree.column, np.arange(len(tree.cells)))
        below: dict[int, list[str]] = {j: [] for j in range(-1, len(codes))}
        for j in tree.order[::-1]:
            table = tree.tables[j]
            zero = np.array(0, dtype=np.int64)
            code = self.apply("Max", self.apply("Sub", codes[j], np.array(first[j], dtype=np.int64)), zero)
            message = self.apply("Gather", table.swapaxes(0, 1), code, axis=0)
            if_missing: Any = np.zeros((1, 1, 1))  # a missing leaf: its probabilities sum to 1
            if below[j]:
                incoming = self.sum(below[j])
                selected = self.apply("GatherND", incoming, self.axis(code, 1), batch_dims=1)
                message = self.apply("Add", message, self.axis(selected, 1))
                if_missing = self.apply("Add", self.axis(incoming, 1), table[None])
                best = self.apply("ReduceMax", if_missing, axes=[2], keepdims=1)
                total = self.over(self.apply("Exp", self.apply("Sub", if_missing, best)), 2)
                if_missing = self.apply("Add", self.apply("Log", total), self.apply("Squeeze", best, np.array([2])))
            missing = self.axis(self.axis(self.apply("Less", codes[j], zero), 1), 2)
            below[tree.parents[j]].append(self.apply("Where", missing, if_missing, message))
        self.parts.append(self.apply("Squeeze", self.sum(below[-1]), np.array([1])))

    def _average(self, parents: Parents) -> None:
        """Add the average over parents: the levels of a row, and all levels of columns with missing cells."""
        missing_code = np.array(-1, dtype=np.int64)
        first = len(parents.column)
        codes = [self.axis(code, 1) for code in self._codes(parents)]
        code = self.apply("Concat", *codes, axis=1) if len(codes) > 1 else codes[0]
        missing = self.apply("Equal", code, missing_code)
        given = self.apply("Gather", parents.given, self.apply("Max", code, np.array(0, dtype=np.int64)), axis=1)
        same_column = parents.column[:, None, None] == np.arange(len(codes))
        is_excluded = self.axis(self.apply("Or", missing, same_column), 3)  # (levels, n, columns, 1)
        added = self.over(self.apply("Where", is_excluded, np.array(0.0), given), 2)  # (levels, n, classes)
        score = self.apply("Add", added, parents.own[:, None])
        row_codes = self.apply("Gather", code, parents.column, axis=1)  # (n, levels)
        parent = self.apply(
            "Or", self.apply("Equal", row_codes, np.arange(first)[None]), self.apply("Equal", row_codes, missing_code)
        )
        parent = self.axis(self.apply("Transpose", parent, perm=[1, 0]), 2)
        score = self.apply("Where", parent, score, np.array(IMPOSSIBLE))
        best = self.apply("ReduceMax", score, axes=[0], keepdims=1)
        total = self.over(self.apply("Exp", self.apply("Sub", score, best)), 0)
        self.parts.append(self.apply("Add", self.apply("Log", total), self.apply("Squeeze", best, np.array([0]))))

    def _add(self, terms: Sequence[Term]) -> None:
        """Add the log probabilities of columns of one kind; missing cells add 0."""
        cells = [term.cell for term in terms]
        if terms[0].is_indicator:
            x, missing = self._indicators(cells)
        else:
            x, missing = self._numbers(cells)
        log_prob = self.form(self.axis(x, 2), [term.form for term in terms])
        self.parts.append(self.over(self.apply("Where", self.axis(missing, 2), np.array(0.0), log_prob), 1))

    def _indicators(self, cells: Sequence[Cell]) -> tuple[str, str]:
        """Return missing-value indicators, and a mask of unknown ones, whose cells are invalid or unseen."""
        if cells[0].reading is not None:
            is_missing = self.apply("IsNaN", self._columns(cells))
            _, missing = self._numbers(cells)
            is_unknown = self.apply("And", missing, self.apply("Not", is_missing))
        else:
            missing_masks = []
            unknown_masks = []
            for cell in cells:
                code, n_levels = self.codes[cell]
                code = self.axis(code, 1)
                missing_masks.append(self.apply("Equal", code, np.array(n_levels + 1, dtype=np.int64)))
                unseen_code = n_levels if self.scores.unseen == "missing" else -1
                unknown_masks.append(self.apply("Equal", code, np.array(unseen_code, dtype=np.int64)))
            is_missing, is_unknown = (
                self.apply("Concat", *parts, axis=1) if len(parts) > 1 else parts[0]
                for parts in (missing_masks, unknown_masks)
            )
        return self.apply("Where", is_missing, np.array(0.0), np.array(1.0)), is_unknown

    def _add_density(self, rows: RowDensity) -> None:
        """Add the log densities of several columns, with the parameters of each row's pattern of missing cells."""
        x, missing = self._numbers(rows.cells)
        codes, patterns = rows.patterns(_PATTERNS)
        parts = [np.stack(values) for values in zip(*patterns, strict=True)]
        is_observed = self.apply("Cast", self.apply("Not", missing), to=7)
        bits = np.array([[1 << i for i in range(len(rows.cells))]], dtype=np.int64)
        code = self.over(self.apply("Mul", is_observed, bits), 1)
        if len(codes) == 1:  # only complete rows have a result
            self.no_result.append(self.apply("Where", missing, np.array(np.nan), np.array(0.0)))
            code = self.apply("Mul", code, np.array(0, dtype=np.int64))
        _, inverse, shift, scale, power, log_norm = (self.apply("Gather", part, code, axis=0) for part in parts)
        deviation = self.apply("Where", missing, np.array(0.0), self.apply("Sub", x, parts[0][-1][None]))
        product = self.apply("MatMul", inverse, self.axis(self.axis(deviation, 1), 3))  # (n, 1 or classes, d, 1)
        deviation = self.apply("Sub", self.apply("Squeeze", product, np.array([3])), shift)
        length = self.apply("Mul", scale, self.over(self.apply("Mul", deviation, deviation), 2))
        log_ratio = self.log1p(length) if rows.bent else length
        self.parts.append(self.apply("Sub", log_norm, self.apply("Mul", power, log_ratio)))

    # ---- What comes out --------------------------------------------------------------------------------------------

    def _calibrated(self, difference: str, weight: str, steps: Sequence[tuple[np.ndarray, np.ndarray]]) -> str:
        """Return class probabilities against the others, by linear interpolation at their log-odds: (n, classes)."""
        others = self.apply("MatMul", weight, 1.0 - np.eye(len(steps)))
        odds = self.apply("Sub", difference, self.apply("Log", others))
        columns = []
        for k, (corners, value) in enumerate(steps):
            excess = self.apply("Sub", self.apply("Gather", odds, np.array([k]), axis=1), corners[None, :-1])
            excess = self.apply("Min", self.apply("Max", excess, np.array(0.0)), np.diff(corners)[None])  # (n, lines)
            slopes = (np.diff(value) / np.diff(corners))[:, None]
            columns.append(self.apply("Add", self.apply("MatMul", excess, slopes), value[:1]))
        return self.apply("Concat", *columns, axis=1) if len(columns) > 1 else columns[0]

    def _normalized(self, names: Sequence[str]) -> list[Any]:
        """Add the nodes from scores to labels and normalized probabilities; return the output descriptions."""
        from onnx import TensorProto, helper

        scores = self.scores
        sharpness, contamination, base_rates, vertices = self.scores.calibration
        prior = scores.log_prior[None]
        no_result = [self.over(part, 1, keep=True) for part in self.no_result]
        score = self.apply("Add", self.sum([*self.parts, *no_result]), prior)
        best = self.apply("ReduceMax", score, axes=[1], keepdims=1)
        score = self.apply("Where", self.apply("Less", best, np.array(IMPOSSIBLE / 1e5)), prior, score)
        difference = self.apply("Sub", score, self.apply("ReduceMax", score, axes=[1], keepdims=1))
        probability = self.apply("Exp", self.apply("Mul", difference, np.array(sharpness)))
        if vertices:
            probability = self.sum([self._calibrated(difference, probability, vertices), *no_result])
        probability = self.apply("Div", probability, self.over(probability, 1, keep=True))
        if contamination:
            probability = self.apply(
                "Add", self.apply("Mul", probability, np.array(1 - contamination)), (contamination * base_rates)[None]
            )
        first = self.apply("ArgMax", probability if scores.calibration.reorders else score, axis=1, keepdims=0)
        labels = np.array(scores.classes)
        if labels.dtype.kind == "U":
            labels = labels.astype(object)
        onnx_types = {"O": TensorProto.STRING, "i": TensorProto.INT64, "b": TensorProto.BOOL, "f": TensorProto.DOUBLE}
        self.nodes.append(helper.make_node("Gather", [self.constant(labels), first], [names[0]], axis=0))
        self.nodes.append(helper.make_node("Identity", [probability], [names[1]]))
        return [
            helper.make_tensor_value_info(names[0], onnx_types[labels.dtype.kind], ["rows"]),
            helper.make_tensor_value_info(names[1], TensorProto.DOUBLE, ["rows", len(labels)]),
        ]

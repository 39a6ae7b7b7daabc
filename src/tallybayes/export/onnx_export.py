"""ONNX: the probabilities of a classifier's classes as a graph of plain operators, for whatever runs those."""

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

_OPSET, _LABEL_OPSET, _FORMAT = 17, 3, 8  # versions that runtimes of 2022 and later read
MISSING = -(2**63)  # among whole labels, of which none is NaN; among strings it is the empty one
_PATTERNS = 1_000_000  # numbers of a table of what rows may lack; beyond, rows that lack a cell have no answer


def write_onnx(scores: PortableScorer, array: bool) -> onnx.ModelProto:
    """The graph; `array` says whether the rows come as one array of numbers, "X"."""
    try:
        import onnx  # noqa: F401
    except ImportError as error:
        raise ImportError("onnx is not installed; expected it to write a model.\n    pip install onnx") from error
    if scores.unseen == "error":
        raise ExportError(
            "a graph of ONNX cannot refuse a level that nobody has seen, as unseen='error' asks for.\n"
            "    Use model.reestimate(unseen='missing')."
        )
    if date := next((name for cell in scores.cells if (name := scores.date_of(cell.column)) is not None), None):
        raise ExportError(
            f"column {date!r} is of dates, of which ONNX has no parts.\n"
            f"    Fit the model on their parts instead, as columns such as 'month' (df[{date!r}].dt.month)."
        )
    if not scores.cells:
        raise ExportError("the model reads no column, so there is nothing to put into a graph; expected one.")
    return _Model(scores, array and all(cell.reading is not None for cell in scores.cells)).proto()


class _Model(OnnxGraph):
    """The graph of one model."""

    def __init__(self, scores: PortableScorer, array: bool) -> None:
        super().__init__()
        self.scores, self.array = scores, array
        self.parts: list[str] = []  # what is added up, (n, classes)
        self.refused: list[str] = []  # NaN where a row has no answer, (n, columns)
        self.codes: dict[Cell, tuple[str, int]] = {}  # of labels: their places, and that of an unseen one

    def proto(self) -> onnx.ModelProto:
        from onnx import TensorProto, helper

        cells, scores = self.scores.cells, self.scores
        kinds = {look.cell: look.levels for look in scores.lookups if look.cell.reading is None}
        if scores.pairs is not None:
            every = zip(scores.pairs.cells, scores.pairs.levels, strict=True)
            kinds |= {cell: levels for cell, levels in every if cell.reading is None}
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
            groups.setdefault((reading, term.cell.support, type(term.form), term.there), []).append(term)
        for terms in groups.values():
            self._add(terms)
        for total in scores.totals:
            x, _ = self._numbers(total.cells)
            rising = self.rising(self.axis(self.over(x, 1, keep=True), 2), total.start[None])
            self.parts.append(self.apply("Neg", self.over(rising, 1)))
        for rows in scores.rows:
            if rows.cells:
                self._turn(rows)
        if isinstance(scores.pairs, Parents):
            self._average(scores.pairs)
        elif scores.pairs is not None:
            self._pass_messages(scores.pairs)
        outputs = self._weigh(free_names(["label", "probabilities"], [one.name for one in inputs]))
        graph = helper.make_graph(self.nodes, "tallybayes", inputs, outputs, self.constants)
        opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid("ai.onnx.ml", _LABEL_OPSET)]
        named = {"producer_name": "tallybayes", "producer_version": __version__}
        return helper.make_model(graph, opset_imports=opsets, ir_version=_FORMAT, **named)

    # ---- What is read ----------------------------------------------------------------------------------------------

    def _columns(self, cells: Sequence[Cell]) -> str:
        """Numbers as they come, (n, columns)."""
        if self.array:
            return self.apply("Gather", "X", np.array([cell.column for cell in cells], dtype=np.int64), axis=1)
        columns = [self.axis(str(cell.column), 1) for cell in cells]
        return self.apply("Concat", *columns, axis=1) if len(columns) > 1 else columns[0]

    def _numbers(self, cells: Sequence[Cell]) -> tuple[str, str]:
        """What is read of numbers of one kind, (n, columns), and which are missing, or cannot be what they are."""
        raw = self._columns(cells)
        zero, infinite = np.array(0.0), self.apply("IsInf", raw)
        self.refused.append(self.apply("Where", infinite, np.array(np.nan), zero))
        missing = self.apply("IsNaN", raw)
        reading, support = cells[0].reading, cells[0].support
        fits = None
        if isinstance(reading, Log):
            fits = self.apply("Greater", raw, zero)
        elif support == "binary":
            fits = self.apply("Or", self.apply("Equal", raw, zero), self.apply("Equal", raw, np.array(1.0)))
        elif support is not None:
            fits = self.apply("GreaterOrEqual", raw, zero)
        if support == "count":
            fits = self.apply("And", fits, self.apply("Equal", raw, self.apply("Floor", raw)))
        if fits is not None:
            missing = self.apply("Not", fits)  # NaN does not fit, either
        x = self.apply("Where", missing, np.array(1.0 if isinstance(reading, Log) else 0.0), raw)
        if support == "nonnegative":
            self.refused.append(self.apply("Where", missing, np.array(np.nan), zero))
        if isinstance(reading, Log):
            return self.apply("Log", x), missing
        return self.apply("Clip", x, np.array(-LARGEST), np.array(LARGEST)), missing

    def _look_up(self, lookup: Lookup) -> None:
        """Add the weights of levels: by their places in a table that ends in that of an unseen one and of none."""
        n_levels, cell = len(lookup.levels), lookup.cell
        unseen = np.zeros(lookup.table.shape[1]) if lookup.unseen is None else lookup.unseen
        table = np.concatenate([lookup.table, unseen[None], np.zeros((1, len(unseen)))])
        if cell.reading is None:
            keys: list[Any] = list(lookup.levels)
            strings = not keys or isinstance(keys[0], str)
            nothing: Any = "" if strings else MISSING
            apart = lookup.unseen is not None or any(term.there and term.cell == cell for term in self.scores.terms)
            if nothing in keys and apart:  # otherwise a level that is not known is as good as a missing cell
                raise ExportError(
                    f"column {cell.column!r} has the level {nothing!r}, which stands for a missing cell in ONNX; "
                    "expected other levels.\n    Fit the model with another name for it, such as 'empty'."
                )
            places = list(range(n_levels))
            if nothing not in keys:
                keys, places = [*keys, nothing], [*places, n_levels + 1]
            code = self._encoded(str(cell.column), keys, places, n_levels)
            self.codes[cell] = code, n_levels
        else:
            x, missing = (self.apply("Squeeze", part, np.array([1])) for part in self._numbers([cell]))
            if isinstance(cell.reading, BinIndex):
                code = self._bins(x, cell.reading)
            else:  # small whole numbers are places themselves
                code = self.apply("Cast", self.apply("Clip", x, np.array(-1.0), np.array(float(n_levels))), to=7)
                whole = self.apply("Equal", x, self.apply("Cast", code, to=11))
                low, high = np.array(0, dtype=np.int64), np.array(n_levels, dtype=np.int64)
                inside = self.apply("And", self.apply("GreaterOrEqual", code, low), self.apply("Less", code, high))
                missing = self.apply("Or", missing, self.apply("Not", self.apply("And", whole, inside)))
            code = self.apply("Where", missing, np.array(n_levels + 1, dtype=np.int64), code)
        self.parts.append(self.apply("Gather", table, code, axis=0))

    def _encoded(self, name: str, keys: Sequence[Any], places: Sequence[int], otherwise: int) -> str:
        """The places of labels, (n,)."""
        strings = not keys or isinstance(keys[0], str)
        named: dict[str, Any] = {"keys_strings": keys} if strings else {"keys_int64s": [int(key) for key in keys]}
        named |= {"values_int64s": places, "default_int64": otherwise}
        return self.apply("LabelEncoder", name, domain="ai.onnx.ml", **named)

    def _bins(self, x: str, steps: BinIndex) -> str:
        """How many cuts numbers (n,) have reached."""
        reached = self.apply("GreaterOrEqual", self.axis(x, 1), np.array(steps.cuts)[None])
        return self.over(self.apply("Cast", reached, to=7), 1)

    def _codes(self, pairs: Parents | Tree) -> list[str]:
        """The levels of all columns, each (n,), among those of all columns; −1 where there is none."""
        codes, first, none = [], 0, np.array(-1, dtype=np.int64)
        for cell, levels in zip(pairs.cells, pairs.levels, strict=True):
            places = range(first, first + len(levels))
            if cell.reading is None:
                code = self._encoded(str(cell.column), levels, places, -1)
            else:
                x, missing = (self.apply("Squeeze", part, np.array([1])) for part in self._numbers([cell]))
                assert isinstance(cell.reading, BinIndex)
                code = self._encoded(self._bins(x, cell.reading), levels, places, -1)
                code = self.apply("Where", missing, none, code)
            codes.append(code)
            first += len(levels)
        return codes

    def _pass_messages(self, tree: Tree) -> None:
        """What every column and those below it add to each level of its parent, (n, levels, classes), leaves first."""
        codes, first = self._codes(tree), np.searchsorted(tree.column, np.arange(len(tree.cells)))
        below: dict[int, list[str]] = {j: [] for j in range(-1, len(codes))}
        for j in tree.order[::-1]:
            table, zero = tree.tables[j], np.array(0, dtype=np.int64)
            code = self.apply("Max", self.apply("Sub", codes[j], np.array(first[j], dtype=np.int64)), zero)
            message = self.apply("Gather", table.swapaxes(0, 1), code, axis=0)
            lost: Any = np.zeros((1, 1, 1))  # a missing cell with nothing below it: its levels sum to 1
            if below[j]:
                said = self.sum(below[j])
                here = self.apply("GatherND", said, self.axis(code, 1), batch_dims=1)
                message = self.apply("Add", message, self.axis(here, 1))
                lost = self.apply("Add", self.axis(said, 1), table[None])
                best = self.apply("ReduceMax", lost, axes=[2], keepdims=1)
                total = self.over(self.apply("Exp", self.apply("Sub", lost, best)), 2)
                lost = self.apply("Add", self.apply("Log", total), self.apply("Squeeze", best, np.array([2])))
            missing = self.axis(self.axis(self.apply("Less", codes[j], zero), 1), 2)
            below[tree.parents[j]].append(self.apply("Where", missing, lost, message))
        self.parts.append(self.apply("Squeeze", self.sum(below[-1]), np.array([1])))

    def _average(self, parents: Parents) -> None:
        """Every level as a parent: of rows that have it, and of those that lack the column's cell."""
        none, first = np.array(-1, dtype=np.int64), len(parents.column)
        codes = [self.axis(code, 1) for code in self._codes(parents)]
        code = self.apply("Concat", *codes, axis=1) if len(codes) > 1 else codes[0]
        missing = self.apply("Equal", code, none)
        given = self.apply("Gather", parents.given, self.apply("Max", code, np.array(0, dtype=np.int64)), axis=1)
        same = parents.column[:, None, None] == np.arange(len(codes))
        silent = self.axis(self.apply("Or", missing, same), 3)  # (levels, n, columns, 1)
        added = self.over(self.apply("Where", silent, np.array(0.0), given), 2)  # (levels, n, classes)
        score = self.apply("Add", added, parents.own[:, None])
        here = self.apply("Gather", code, parents.column, axis=1)  # (n, levels)
        parent = self.apply("Or", self.apply("Equal", here, np.arange(first)[None]), self.apply("Equal", here, none))
        parent = self.axis(self.apply("Transpose", parent, perm=[1, 0]), 2)
        score = self.apply("Where", parent, score, np.array(IMPOSSIBLE))
        best = self.apply("ReduceMax", score, axes=[0], keepdims=1)
        total = self.over(self.apply("Exp", self.apply("Sub", score, best)), 0)
        self.parts.append(self.apply("Add", self.apply("Log", total), self.apply("Squeeze", best, np.array([0]))))

    def _add(self, terms: Sequence[Term]) -> None:
        """Add what columns of one kind say; nothing where a cell is missing."""
        cells = [term.cell for term in terms]
        if terms[0].there:
            x, missing = self._there(cells)
        else:
            x, missing = self._numbers(cells)
        added = self.form(self.axis(x, 2), [term.form for term in terms])
        self.parts.append(self.over(self.apply("Where", self.axis(missing, 2), np.array(0.0), added), 1))

    def _there(self, cells: Sequence[Cell]) -> tuple[str, str]:
        """Whether cells are there, 1 or 0, and where that is not known: they are none that could have been counted."""
        if cells[0].reading is not None:
            absent = self.apply("IsNaN", self._columns(cells))
            _, missing = self._numbers(cells)
            unknown = self.apply("And", missing, self.apply("Not", absent))
        else:
            absences, strange = [], []
            for cell in cells:
                code, n_levels = self.codes[cell]
                code = self.axis(code, 1)
                absences.append(self.apply("Equal", code, np.array(n_levels + 1, dtype=np.int64)))
                place = n_levels if self.scores.unseen == "missing" else -1
                strange.append(self.apply("Equal", code, np.array(place, dtype=np.int64)))
            absent, unknown = (
                self.apply("Concat", *parts, axis=1) if len(parts) > 1 else parts[0] for parts in (absences, strange)
            )
        return self.apply("Where", absent, np.array(0.0), np.array(1.0)), unknown

    def _turn(self, rows: RowDensity) -> None:
        """Whole rows: what each pattern of missing cells is scored by is looked up, and rows are turned by it."""
        x, missing = self._numbers(rows.cells)
        codes, patterns = rows.patterns(_PATTERNS)
        parts = [np.stack(some) for some in zip(*patterns, strict=True)]
        known = self.apply("Cast", self.apply("Not", missing), to=7)
        bits = np.array([[1 << i for i in range(len(rows.cells))]], dtype=np.int64)
        code = self.over(self.apply("Mul", known, bits), 1)
        if len(codes) == 1:  # rows that lack a cell have no answer
            self.refused.append(self.apply("Where", missing, np.array(np.nan), np.array(0.0)))
            code = self.apply("Mul", code, np.array(0, dtype=np.int64))
        _, inverse, shift, scale, power, log_norm = (self.apply("Gather", part, code, axis=0) for part in parts)
        gap = self.apply("Where", missing, np.array(0.0), self.apply("Sub", x, parts[0][-1][None]))
        turned = self.apply("MatMul", inverse, self.axis(self.axis(gap, 1), 3))  # (n, 1 or classes, d, 1)
        gap = self.apply("Sub", self.apply("Squeeze", turned, np.array([3])), shift)
        length = self.apply("Mul", scale, self.over(self.apply("Mul", gap, gap), 2))
        bent = self.log1p(length) if rows.bent else length
        self.parts.append(self.apply("Sub", log_norm, self.apply("Mul", power, bent)))

    # ---- What comes out --------------------------------------------------------------------------------------------

    def _mended(self, gap: str, share: str, steps: Sequence[tuple[np.ndarray, np.ndarray]]) -> str:
        """Every class's probability against the rest, by lines between steps at its log-odds: (n, classes)."""
        rest = self.apply("MatMul", share, 1.0 - np.eye(len(steps)))
        odds, columns = self.apply("Sub", gap, self.apply("Log", rest)), []
        for k, (at, value) in enumerate(steps):
            past = self.apply("Sub", self.apply("Gather", odds, np.array([k]), axis=1), at[None, :-1])
            past = self.apply("Min", self.apply("Max", past, np.array(0.0)), np.diff(at)[None])  # (n, lines)
            slopes = (np.diff(value) / np.diff(at))[:, None]
            columns.append(self.apply("Add", self.apply("MatMul", past, slopes), value[:1]))
        return self.apply("Concat", *columns, axis=1) if len(columns) > 1 else columns[0]

    def _weigh(self, names: Sequence[str]) -> list[Any]:
        """From the scores to labels, and to probabilities that sum to 1."""
        from onnx import TensorProto, helper

        scores, (sharpness, doubt, base, steps) = self.scores, self.scores.mended
        prior = scores.log_prior[None]
        refused = [self.over(part, 1, keep=True) for part in self.refused]
        score = self.apply("Add", self.sum([*self.parts, *refused]), prior)
        best = self.apply("ReduceMax", score, axes=[1], keepdims=1)
        score = self.apply("Where", self.apply("Less", best, np.array(IMPOSSIBLE / 1e5)), prior, score)
        gap = self.apply("Sub", score, self.apply("ReduceMax", score, axes=[1], keepdims=1))
        share = self.apply("Exp", self.apply("Mul", gap, np.array(sharpness)))
        if steps:
            share = self.sum([self._mended(gap, share, steps), *refused])
        share = self.apply("Div", share, self.over(share, 1, keep=True))
        if doubt:
            share = self.apply("Add", self.apply("Mul", share, np.array(1 - doubt)), (doubt * base)[None])
        first = self.apply("ArgMax", share if scores.mended.reorders else score, axis=1, keepdims=0)
        labels = np.array(scores.classes)
        if labels.dtype.kind == "U":
            labels = labels.astype(object)
        kinds = {"O": TensorProto.STRING, "i": TensorProto.INT64, "b": TensorProto.BOOL, "f": TensorProto.DOUBLE}
        self.nodes.append(helper.make_node("Gather", [self.constant(labels), first], [names[0]], axis=0))
        self.nodes.append(helper.make_node("Identity", [share], [names[1]]))
        return [
            helper.make_tensor_value_info(names[0], kinds[labels.dtype.kind], ["rows"]),
            helper.make_tensor_value_info(names[1], TensorProto.DOUBLE, ["rows", len(labels)]),
        ]

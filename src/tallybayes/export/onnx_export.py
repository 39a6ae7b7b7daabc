"""Export of a classifier to ONNX: a graph of plain operators that returns labels and class probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes import __version__
from tallybayes.errors import ExportError
from tallybayes.export.onnx_arithmetic import OnnxGraph, Tensor, column_log_prob, log_rising
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

    from tallybayes.tally.factor import Name

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
        self.parts: list[Tensor] = []  # terms of the score, (n, classes)
        self.no_result: list[Tensor] = []  # NaN where a row has no result, else 0, (n, columns)
        self.codes: dict[Cell, tuple[Tensor, int]] = {}  # codes of categorical cells, and the code of unseen levels

    def proto(self) -> onnx.ModelProto:
        """Return the ONNX model."""
        from onnx import helper

        inputs = self._inputs()
        self._add_terms()
        outputs = self._normalized(free_names(["label", "probabilities"], [value_info.name for value_info in inputs]))
        graph = helper.make_graph(self.nodes, "tallybayes", inputs, outputs, self.constants)
        opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid("ai.onnx.ml", _LABEL_OPSET)]
        metadata = {"producer_name": "tallybayes", "producer_version": __version__}
        return helper.make_model(graph, opset_imports=opsets, ir_version=_FORMAT, **metadata)

    def _inputs(self) -> list[Any]:
        """Return the descriptions of the inputs: one array, or one vector for every column."""
        from onnx import TensorProto, helper

        if self.array:
            return [helper.make_tensor_value_info("X", TensorProto.DOUBLE, ["rows", None])]
        levels = {lookup.cell: lookup.levels for lookup in self.scores.lookups}
        if self.scores.pairs is not None:
            levels |= dict(zip(self.scores.pairs.cells, self.scores.pairs.levels, strict=True))
        kinds: dict[Name, int] = {}
        for cell in self.scores.cells:
            kind = TensorProto.DOUBLE
            if cell.reading is None and cell in levels:
                kind = TensorProto.STRING if _are_strings(levels[cell]) else TensorProto.INT64
            if kinds.get(cell.column, TensorProto.DOUBLE) == TensorProto.DOUBLE:
                kinds[cell.column] = kind
        return [helper.make_tensor_value_info(str(name), kind, ["rows"]) for name, kind in kinds.items()]

    def _add_terms(self) -> None:
        """Add all terms of the score."""
        scores = self.scores
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
            self.parts.append(-log_rising(x.sum(1, keep=True).expand(2), total.start[None]).sum(1))
        for rows in scores.rows:
            if rows.cells:
                self._add_density(rows)
        if isinstance(scores.pairs, Parents):
            self._average(scores.pairs)
        elif scores.pairs is not None:
            self._pass_messages(scores.pairs)

    # ---- Inputs ----------------------------------------------------------------------------------------------------

    def _columns(self, cells: Sequence[Cell]) -> Tensor:
        """Return numeric columns as they are, of shape (n, columns)."""
        if self.array:
            return self.gather(self.input("X"), [int(cell.column) for cell in cells], axis=1)
        return self.concatenated([self.input(cell.column).expand(1) for cell in cells])

    def _numbers(self, cells: Sequence[Cell]) -> tuple[Tensor, Tensor]:
        """Return transformed numbers of one kind, of shape (n, columns), and a mask of missing and invalid ones."""
        raw = self._columns(cells)
        self.no_result.append(self.where(self.apply("IsInf", raw), np.nan, 0.0))
        reading = cells[0].reading
        support = cells[0].support
        if isinstance(reading, Log):
            missing = ~(raw > 0.0)  # NaN is invalid, too
        elif support == "binary":
            missing = ~(raw.equals(0.0) | raw.equals(1.0))
        elif support == "count":
            missing = ~((raw >= 0.0) & raw.equals(self.apply("Floor", raw)))
        elif support is not None:
            missing = ~(raw >= 0.0)
        else:
            missing = self.apply("IsNaN", raw)
        if support == "nonnegative":
            self.no_result.append(self.where(missing, np.nan, 0.0))
        if isinstance(reading, Log):
            return self.where(missing, 1.0, raw).log(), missing
        return self.where(missing, 0.0, raw).clip(-LARGEST, LARGEST), missing

    def _look_up(self, lookup: Lookup) -> None:
        """Add the log probabilities of levels, from a table that ends in those of unseen levels and missing cells."""
        n_levels = len(lookup.levels)
        unseen = np.zeros(lookup.table.shape[1]) if lookup.unseen is None else lookup.unseen
        table = np.concatenate([lookup.table, unseen[None], np.zeros((1, len(unseen)))])
        if lookup.cell.reading is None:
            code = self._category_codes(lookup)
            self.codes[lookup.cell] = code, n_levels
        else:
            x, missing = self._vector(lookup.cell)
            if isinstance(lookup.cell.reading, BinIndex):
                code = self._bins(x, lookup.cell.reading)
            else:  # small integers are codes
                code = x.clip(-1.0, float(n_levels)).as_int()
                missing = missing | ~(x.equals(code.as_float()) & (code >= 0) & (code < n_levels))
            code = self.where(missing, n_levels + 1, code)
        self.parts.append(self.gather(table, code))

    def _category_codes(self, lookup: Lookup) -> Tensor:
        """Return the codes of a categorical column; n levels if unseen, n + 1 if missing."""
        n_levels = len(lookup.levels)
        missing_value: Any = "" if _are_strings(lookup.levels) else MISSING
        if missing_value not in lookup.levels:
            keys = [*lookup.levels, missing_value]
            return self._encoded(lookup.cell, keys, [*range(n_levels), n_levels + 1], n_levels)
        # Otherwise unseen levels and missing cells must add the same.
        if lookup.unseen is not None or any(t.is_indicator and t.cell == lookup.cell for t in self.scores.terms):
            raise ExportError(
                f"column {lookup.cell.column!r} has the level {missing_value!r}, which represents a missing cell in "
                "ONNX; expected other levels.\n    Rename the level, for example to 'empty', and fit the model again."
            )
        return self._encoded(lookup.cell, lookup.levels, range(n_levels), n_levels)

    def _encoded(self, source: Cell | Tensor, keys: Sequence[Any], codes: Sequence[int], default: int) -> Tensor:
        """Return the codes of categories, of shape (n,)."""
        values = self.input(source.column) if isinstance(source, Cell) else source
        attributes: dict[str, Any] = {"values_int64s": codes, "default_int64": default}
        attributes |= {"keys_strings": keys} if _are_strings(keys) else {"keys_int64s": list(map(int, keys))}
        return self.apply("LabelEncoder", values, domain="ai.onnx.ml", **attributes)

    def _vector(self, cell: Cell) -> tuple[Tensor, Tensor]:
        """Return the numbers of one column and a mask of missing ones, of shape (n,)."""
        x, missing = self._numbers([cell])
        return x.squeeze(1), missing.squeeze(1)

    def _bins(self, x: Tensor, bin_index: BinIndex) -> Tensor:
        """Return the bins of numbers, both of shape (n,): the number of bin edges that are not larger."""
        return (x.expand(1) >= np.array(bin_index.cuts)[None]).as_int().sum(1)

    # ---- Pairs of columns ------------------------------------------------------------------------------------------

    def _codes(self, pairs: Parents | Tree) -> list[Tensor]:
        """Return the codes of each column, of shape (n,), numbered over all columns; −1 where missing."""
        codes = []
        offset = 0
        for cell, levels in zip(pairs.cells, pairs.levels, strict=True):
            numbers = range(offset, offset + len(levels))
            offset += len(levels)
            if cell.reading is None:
                codes.append(self._encoded(cell, levels, numbers, -1))
                continue
            x, missing = self._vector(cell)
            assert isinstance(cell.reading, BinIndex)
            codes.append(self.where(missing, -1, self._encoded(self._bins(x, cell.reading), levels, numbers, -1)))
        return codes

    def _pass_messages(self, tree: Tree) -> None:
        """Add the sum over a tree by message passing from the leaves; messages are (n, parent's levels, classes)."""
        codes = self._codes(tree)
        first = np.searchsorted(tree.column, np.arange(len(tree.cells)))
        below: dict[int, list[Tensor]] = {j: [] for j in range(-1, len(codes))}
        for j in tree.order[::-1]:
            code = self.apply("Max", codes[j] - first[j], 0)
            message = self.gather(tree.tables[j].swapaxes(0, 1), code)
            if_missing: Tensor | np.ndarray = np.zeros((1, 1, 1))  # a missing leaf: its probabilities sum to 1
            if below[j]:
                incoming = self.total(below[j])
                message = message + self.apply("GatherND", incoming, code.expand(1), batch_dims=1).expand(1)
                if_missing = (incoming.expand(1) + tree.tables[j][None]).log_sum_exp(2)
            below[tree.parents[j]].append(self.where((codes[j] < 0).expand(1, 2), if_missing, message))
        self.parts.append(self.total(below[-1]).squeeze(1))

    def _average(self, parents: Parents) -> None:
        """Add the average over parents: the levels of a row, and all levels of columns with missing cells."""
        codes = self.concatenated([code.expand(1) for code in self._codes(parents)])
        given = self.gather(parents.given, self.apply("Max", codes, 0), axis=1)  # (levels, n, columns, classes)
        same_column = parents.column[:, None, None] == np.arange(len(parents.cells))
        is_excluded = (codes.equals(-1) | same_column).expand(3)
        score = self.where(is_excluded, 0.0, given).sum(2) + parents.own[:, None]  # (levels, n, classes)
        row_codes = self.gather(codes, parents.column, axis=1)  # (n, levels)
        is_parent = row_codes.equals(np.arange(len(parents.column))[None]) | row_codes.equals(-1)
        is_parent = self.apply("Transpose", is_parent, perm=[1, 0]).expand(2)
        self.parts.append(self.where(is_parent, score, IMPOSSIBLE).log_sum_exp(0))

    # ---- Columns ---------------------------------------------------------------------------------------------------

    def _add(self, terms: Sequence[Term]) -> None:
        """Add the log probabilities of columns of one kind; missing cells add 0."""
        read = self._indicators if terms[0].is_indicator else self._numbers
        x, missing = read([term.cell for term in terms])
        log_prob = column_log_prob(x.expand(2), [term.form for term in terms])
        self.parts.append(self.where(missing.expand(2), 0.0, log_prob).sum(1))

    def _indicators(self, cells: Sequence[Cell]) -> tuple[Tensor, Tensor]:
        """Return missing-value indicators, and a mask of unknown ones, whose cells are invalid or unseen."""
        if cells[0].reading is not None:
            is_missing = self.apply("IsNaN", self._columns(cells))
            is_unknown = self._numbers(cells)[1] & ~is_missing
        else:
            codes = self.concatenated([self.codes[cell][0].expand(1) for cell in cells])
            n_levels = np.array([[self.codes[cell][1] for cell in cells]])
            is_missing = codes.equals(n_levels + 1)
            is_unknown = codes.equals(n_levels if self.scores.unseen == "missing" else np.full_like(n_levels, -1))
        return self.where(is_missing, 0.0, 1.0), is_unknown

    def _add_density(self, rows: RowDensity) -> None:
        """Add the log densities of several columns, with the parameters of each row's pattern of missing cells."""
        x, missing = self._numbers(rows.cells)
        codes, patterns = rows.patterns(_PATTERNS)
        parts = [np.stack(values) for values in zip(*patterns, strict=True)]
        pattern = ((~missing).as_int() * np.array([[1 << i for i in range(len(rows.cells))]])).sum(1)
        if len(codes) == 1:  # only complete rows have a result
            self.no_result.append(self.where(missing, np.nan, 0.0))
            pattern = pattern * 0
        _, inverse, shift, scale, power, log_norm = (self.gather(part, pattern) for part in parts)
        deviation = self.where(missing, 0.0, x - parts[0][-1][None])
        whitened = (inverse @ deviation.expand(1, 3)).squeeze(3) - shift  # (n, 1 or classes, d)
        length = scale * (whitened * whitened).sum(2)
        self.parts.append(log_norm - power * (length.log1p() if rows.bent else length))

    # ---- Outputs ---------------------------------------------------------------------------------------------------

    def _calibrated(self, difference: Tensor, weight: Tensor, steps: Sequence[tuple[np.ndarray, np.ndarray]]) -> Tensor:
        """Return class probabilities against the others, by linear interpolation at their log-odds: (n, classes)."""
        odds = difference - (weight @ (1.0 - np.eye(len(steps)))).log()
        columns = []
        for k, (corners, value) in enumerate(steps):
            widths = np.diff(corners)
            excess = (self.gather(odds, [k], axis=1) - corners[None, :-1]).clip(0.0, widths[None])  # (n, lines)
            columns.append(excess @ (np.diff(value) / widths)[:, None] + value[:1])
        return self.concatenated(columns)

    def _normalized(self, names: Sequence[str]) -> list[Any]:
        """Add the nodes from scores to labels and normalized probabilities; return the output descriptions."""
        from onnx import TensorProto, helper

        sharpness, contamination, base_rates, vertices = self.scores.calibration
        prior = self.scores.log_prior[None]
        no_result = [part.sum(1, keep=True) for part in self.no_result]
        score = self.total([*self.parts, *no_result]) + prior
        score = self.where(score.max(1) < IMPOSSIBLE / 1e5, prior, score)
        difference = score - score.max(1)
        probability = (difference * sharpness).exp()
        if vertices:
            probability = self.total([self._calibrated(difference, probability, vertices), *no_result])
        probability = probability / probability.sum(1, keep=True)
        if contamination:
            probability = probability * (1 - contamination) + (contamination * base_rates)[None]
        ranked = probability if self.scores.calibration.reorders else score
        first = self.apply("ArgMax", ranked, axis=1, keepdims=0)
        labels = np.array(self.scores.classes)
        if labels.dtype.kind == "U":
            labels = labels.astype(object)
        onnx_types = {"O": TensorProto.STRING, "i": TensorProto.INT64, "b": TensorProto.BOOL, "f": TensorProto.DOUBLE}
        self.nodes.append(helper.make_node("Gather", [self.constant(labels), first.name], [names[0]], axis=0))
        self.nodes.append(helper.make_node("Identity", [probability.name], [names[1]]))
        return [
            helper.make_tensor_value_info(names[0], onnx_types[labels.dtype.kind], ["rows"]),
            helper.make_tensor_value_info(names[1], TensorProto.DOUBLE, ["rows", len(labels)]),
        ]


def _are_strings(levels: Sequence[Any]) -> bool:
    """Return whether levels are strings; without levels, they are read as strings."""
    return not levels or isinstance(levels[0], str)

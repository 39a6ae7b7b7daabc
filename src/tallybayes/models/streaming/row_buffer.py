"""Rows, or sequences, that a window keeps, so that it can take them out again: in memory, and in a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, vstack

from tallybayes._utils import sealed_file
from tallybayes._utils.frozen_value import from_json, to_json
from tallybayes.data.array_input import as_array
from tallybayes.data.counting import check_weight
from tallybayes.data.dates import origins, with_parts_of_dates
from tallybayes.data.encoding import is_missing
from tallybayes.data.sparse_input import read_sparse
from tallybayes.data.table import Table
from tallybayes.errors import DataError, FileError, LabelError
from tallybayes.families._shared.blocks import SparseRows
from tallybayes.models.inputs.features import only_column, open_features
from tallybayes.models.inputs.input_format import with_weight
from tallybayes.models.inputs.sequences import open_labels, open_sequences, step_weights

_NUMBERS = "biuf"
_NOT_KEPT = ("date", "time", "duration", "list", "large_list", "struct", "map", "binary", "object")  # as Arrow has them


class BufferedRows(NamedTuple):
    """Some rows, or sequences of them: the columns, what is to be told, what each counts, and when it came."""

    table: Table
    y: Any  # the name of a column, an array, or None
    weight: np.ndarray | None
    times: np.ndarray
    offsets: np.ndarray | None = None  # where sequences begin among the rows, and their end; None of rows

    @classmethod
    def read(cls, X: Any, y: Any, sample_weight: Any) -> BufferedRows:
        """Rows as people have them; when they came is not said yet."""
        table, weight = with_weight(open_features(X), sample_weight)
        if not isinstance(y, str | None):
            y = as_array(only_column(y))
        return cls(table, y, check_weight(weight, table.n_rows), np.zeros(table.n_rows))

    @classmethod
    def read_sequences(cls, X: Any, y: Any, sample_weight: Any, how: Mapping[str, Any]) -> BufferedRows:
        """Sequences as people have them, the state of every step among them."""
        sequences = open_sequences(X, how.get("lengths"), how.get("sequence"), how.get("order"))
        if y is None:
            raise LabelError("a stream of sequences is counted by the state of every step.\n    Pass y, the states.")
        states = open_labels(y, sequences, X)
        table = sequences.table.without(y) if isinstance(y, str) else sequences.table
        unknown = np.flatnonzero([is_missing(state) for state in _cells(states)])
        if len(unknown):
            raise LabelError(
                f"step {unknown[0]} of all has no state, and a stream of sequences is counted by the state of every "
                "step.\n    Leave such sequences out; fit learns from all of them at once, by EM."
            )
        weight = step_weights(sample_weight, sequences)
        return cls(table, states, weight, np.zeros(sequences.n_sequences), sequences.offsets)

    @property
    def n(self) -> int:
        """How many rows there are, or sequences."""
        return len(self.times)

    def at(self, times: np.ndarray) -> BufferedRows:
        """In the order of these times, copied: what is taken out must be what was learned, whatever becomes of it."""
        return self._replace(times=times).some(np.argsort(times, kind="stable"))

    def some(self, part: Any) -> BufferedRows:
        """Some of them, copied."""
        if isinstance(part, slice):
            part = np.arange(*part.indices(self.n))
        rows = part
        offsets = None
        if self.offsets is not None:
            rows = np.concatenate([np.arange(0), *(np.arange(*self.offsets[k : k + 2]) for k in part)])
            offsets = np.concatenate([[0], np.cumsum(np.diff(self.offsets)[part])]).astype(np.int64)
        y = self.y if isinstance(self.y, str | None) else Table({"y": self.y}).rows(rows).columns["y"]
        weight = None if self.weight is None else self.weight[part]
        return BufferedRows(self.table.rows(rows), y, weight, self.times[part], offsets)

    def counted_by(self, model: Any) -> BufferedRows:
        """As a file of a window holds them: dates as the parts that the model reads; without others, and the like."""
        read = {name for wanted in model._required_columns for name in origins(wanted)}
        table = with_parts_of_dates(self.table, model._required_columns)
        odd = [n for n in table.columns if n not in read and table._type(n).startswith(_NOT_KEPT)]
        for name in odd if self.y is None or isinstance(self.y, str) else ():  # else all columns were fitted
            table = table.without(name)
        return self._replace(table=table)

    def arguments(self) -> dict[str, Any]:
        """What models learn from, and forget."""
        told = {} if self.y is None else {"y": self.y}
        told |= {} if self.offsets is None else {"lengths": np.diff(self.offsets)}
        return {"X": self.table, **told, "sample_weight": self.weight}


def concatenate_rows(parts: list[BufferedRows]) -> BufferedRows:
    """All rows together, in the order of their times; columns in plain forms, as a file has them."""
    both = _below_each_other(parts)
    return both.some(np.argsort(both.times, kind="stable"))


def _below_each_other(parts: list[BufferedRows]) -> BufferedRows:
    """All rows together, part after part."""
    times = np.concatenate([part.times for part in parts])
    tables = [part.table for part in parts]
    first = parts[0]
    if all(table.matrix is not None and table.matrix.shape[1] == len(table.columns) for table in tables):
        matrix = np.concatenate([table.matrix for table in tables])
        table = Table({name: matrix[:, k] for k, name in enumerate(first.table.columns)}, matrix)
    else:
        table = Table({name: _joined([table._column(name) for table in tables]) for name in first.table.columns})
    y = first.y if isinstance(first.y, str | None) else _joined([part.y for part in parts])
    weight = offsets = None
    if any(part.weight is not None for part in parts):
        weight = np.concatenate([np.ones(part.n) if part.weight is None else part.weight for part in parts])
    if first.offsets is not None:
        lengths = np.concatenate([np.diff(part.offsets) for part in parts if part.offsets is not None])
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return BufferedRows(table, y, weight, times, offsets)


def find_rows(asked: BufferedRows, kept: BufferedRows, *, timed: bool) -> np.ndarray:
    """Where rows are among those that are kept, the oldest of equal ones first; −1 of one that is not there.

    Rows are equal in all columns and in what is told of them; in their weights and times where these are said.
    """
    labels = [_told_of(part) for part in (kept, asked)]
    plain = [part._replace(table=_without_target(part), y=None) for part in (kept, asked)]
    both = _below_each_other(plain)
    columns = [] if both.table.matrix is None else [both.table.matrix]
    columns = columns or list(both.table.columns.values())
    codes = [_codes(column) for column in columns if _n_rows(column)]
    codes += [] if labels[0] is None else [_codes(_joined([_plain(part) for part in labels]))]
    keys: Any = np.unique(np.column_stack(codes), axis=0, return_inverse=True)[1].ravel() if codes else np.zeros(0, int)
    if both.offsets is not None:
        keys = [keys[a:b].tobytes() for a, b in zip(both.offsets, both.offsets[1:], strict=False)]
    told = [keys, *([both.times] if timed else []), *([both.weight] if asked.weight is not None else [])]
    where: dict[Any, list[int]] = {}
    whole = list(zip(*(part if isinstance(part, list) else part.tolist() for part in told), strict=True))
    for place, key in enumerate(whole[: kept.n]):
        where.setdefault(key, []).append(place)
    found = [where[key].pop(0) if where.get(key) else -1 for key in whole[kept.n :]]
    return np.array(found, dtype=np.intp)


def _told_of(kept: BufferedRows) -> Any:
    return kept.table._column(kept.y) if isinstance(kept.y, str) else kept.y


def _without_target(kept: BufferedRows) -> Table:
    return kept.table.without(kept.y) if isinstance(kept.y, str) else kept.table


def _n_rows(column: Any) -> int:
    return len(column.indptr) - 1 if isinstance(column, SparseRows) else len(column)


def _plain(column: Any) -> Any:
    return column if isinstance(column, np.ndarray) and column.dtype.kind in _NUMBERS else _cells(column)


def _codes(column: Any) -> np.ndarray:
    """A number for every different cell, or row of a block; missing ones are equal."""
    if isinstance(column, np.ndarray) and column.dtype.kind in _NUMBERS and column.ndim == 1:
        return np.unique(column, return_inverse=True)[1]
    if isinstance(column, SparseRows):
        cells: Any = [
            (column.indices[a:b].tobytes(), np.asarray(column.data[a:b], dtype=np.float64).tobytes())
            for a, b in zip(column.indptr, column.indptr[1:], strict=False)
        ]
        cells = cells if column.missing_rows is None else list(zip(cells, column.missing_rows.tolist(), strict=True))
    elif isinstance(column, np.ndarray) and column.ndim == 2:
        cells = [
            row.tobytes() for row in np.ascontiguousarray(column, dtype=np.float64) + 0.0
        ]  # −0 and 0 are one number
    else:
        cells = [None if is_missing(cell) else cell for cell in column]
    number: dict[Any, int] = {}
    return np.array([number.setdefault(cell, len(number)) for cell in cells], dtype=np.int64)


def _joined(columns: list[Any]) -> Any:
    """Columns below each other."""
    if isinstance(columns[0], SparseRows):
        stacked = read_sparse(vstack([_matrix(*column[:4]) for column in columns]))
        absent = [np.zeros(len(c.indptr) - 1, bool) if c.missing_rows is None else c.missing_rows for c in columns]
        return stacked._replace(missing_rows=np.concatenate(absent) if any(map(np.any, absent)) else None)
    if all(isinstance(column, np.ndarray) and column.dtype.kind in _NUMBERS for column in columns):
        return np.concatenate(columns)
    return [cell for column in columns for cell in _cells(column)]


def _matrix(indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, n_columns: int) -> csr_array:
    return csr_array((data, indices, indptr), shape=(len(indptr) - 1, n_columns))


def _cells(column: Any) -> list[Any]:
    """The cells of a column of labels or text."""
    if hasattr(column, "strings"):  # text
        column = column.strings
    return column.to_pylist() if hasattr(column, "to_pylist") else list(column)


# ---- In a file ---------------------------------------------------------------------------------------------------


def rows_to_parts(kept: BufferedRows) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Rows as JSON and arrays."""
    arrays: dict[str, np.ndarray] = {"rows/times": kept.times}
    if kept.weight is not None:
        arrays["rows/weight"] = np.asarray(kept.weight, dtype=np.float64)
    if kept.offsets is not None:
        arrays["rows/offsets"] = kept.offsets
    manifest: dict[str, Any] = {"names": [to_json(name) for name in kept.table.columns], "columns": []}
    if kept.table.matrix is not None:
        arrays["rows/matrix"] = kept.table.matrix
    else:
        for number, column in enumerate(kept.table.columns.values()):
            manifest["columns"].append(_column_to_parts(column, f"rows/{number}", arrays))
    if not isinstance(kept.y, str | None):
        return manifest | {"y": _column_to_parts(kept.y, "rows/y", arrays)}, arrays
    return manifest | {"target": kept.y}, arrays


def _column_to_parts(column: Any, prefix: str, arrays: dict[str, np.ndarray]) -> Any:
    if isinstance(column, SparseRows):
        arrays[f"{prefix}/indptr"], arrays[f"{prefix}/indices"], arrays[f"{prefix}/data"] = column[:3]
        if column.missing_rows is not None:
            arrays[f"{prefix}/absent"] = column.missing_rows
        return {"sparse": column.n_columns}
    if isinstance(column, np.ndarray) and column.dtype.kind in _NUMBERS:
        arrays[prefix] = column
        return "numbers"
    cells = [None if cell is None or cell != cell else cell for cell in _cells(column)]
    levels = list(dict.fromkeys(cell for cell in cells if cell is not None))
    place = {level: k for k, level in enumerate(levels)} | {None: -1}
    arrays[prefix] = np.array([place[cell] for cell in cells], dtype=np.int64)
    if all(isinstance(level, str) for level in levels):
        arrays[f"{prefix}/text"], arrays[f"{prefix}/offsets"] = sealed_file.pack_strings(levels)
        return "strings"
    return {"labels": [to_json(level) for level in levels]}


def rows_from_parts(manifest: dict[str, Any], arrays: dict[str, np.ndarray]) -> BufferedRows:
    """The rows that `rows_to_parts` told of, checked: a file may come from anyone."""
    times = arrays.pop("rows/times")
    weight = arrays.pop("rows/weight", None)
    offsets = arrays.pop("rows/offsets", None)
    n = len(times)
    if offsets is not None:
        fits = offsets.shape == (len(times) + 1,) and offsets.dtype == np.int64 and offsets[0] == 0
        _require(fits and bool((np.diff(offsets) >= 0).all()), "the rows fall into no sequences")
        n = int(offsets[-1])
    names = [from_json(name) for name in manifest.pop("names")]
    told = manifest.pop("columns")
    _require(len(set(names)) == len(names) > 0, "the rows' names are not one for every column")
    if "rows/matrix" in arrays:
        matrix = arrays.pop("rows/matrix")
        _require(matrix.shape == (n, len(names)) and not told, "the rows do not fit their names")
        table = Table({name: matrix[:, k] for k, name in enumerate(names)}, matrix)
    else:
        _require(len(told) == len(names), "the rows' columns do not fit their names")
        columns = [_column_from_parts(one, f"rows/{number}", arrays, n) for number, one in enumerate(told)]
        table = Table(dict(zip(names, columns, strict=True)))
    y = _column_from_parts(manifest.pop("y"), "rows/y", arrays, n) if "y" in manifest else manifest.pop("target")
    _require(y is None or not isinstance(y, str) or y in names, "the rows have no such target")
    fits = weight is None or (weight.shape == times.shape and weight.dtype == np.float64)
    _require(fits, "weights are not one a row")
    _require(weight is None or bool(((weight >= 0) & np.isfinite(weight)).all()), "a weight is no weight")
    sorted_times = times.ndim == 1 and times.dtype.kind in "if" and bool((np.diff(times) >= 0).all())
    _require(sorted_times, "the rows' times are not in order")
    sealed_file.check_no_unknown_entries("the rows", manifest)
    return BufferedRows(table, y, weight, times, offsets)


def _column_from_parts(told: Any, prefix: str, arrays: dict[str, np.ndarray], n_rows: int) -> Any:
    if isinstance(told, dict) and "sparse" in told:
        return _sparse_from_parts(told, prefix, arrays, n_rows)
    values = arrays.pop(prefix)
    if told == "numbers":
        _require(values.ndim in (1, 2) and len(values) == n_rows, f"{prefix} has not one value a row")
        return values
    if told == "strings":
        levels: list[Any] = list(
            sealed_file.unpack_strings(arrays.pop(f"{prefix}/text"), arrays.pop(f"{prefix}/offsets"))
        )
    else:
        _require(isinstance(told, dict) and list(told) == ["labels"], f"{prefix} is of a kind that is not known")
        levels = [from_json(level) for level in told["labels"]]
    fits = values.shape == (n_rows,) and values.dtype == np.int64
    _require(fits and bool(((values >= -1) & (values < len(levels))).all()), f"{prefix} has labels that are not there")
    return [None if code < 0 else levels[code] for code in values.tolist()]


def _sparse_from_parts(told: dict[str, Any], prefix: str, arrays: dict[str, np.ndarray], n_rows: int) -> SparseRows:
    indptr, indices, data = (arrays.pop(f"{prefix}/{name}") for name in ("indptr", "indices", "data"))
    width = told["sparse"]
    absent = arrays.pop(f"{prefix}/absent", None)
    fits = type(width) is int and 0 < width < 2**31 and indptr.shape == (n_rows + 1,) and data.dtype.kind in _NUMBERS
    fits = fits and indptr.dtype.kind == indices.dtype.kind == "i" and indices.shape == data.shape == (len(data),)
    _require(
        fits and (absent is None or (absent.shape == (n_rows,) and absent.dtype == bool)), f"{prefix} is no matrix"
    )
    try:
        return read_sparse(_matrix(indptr, indices, data, width))._replace(missing_rows=absent)
    except (DataError, ValueError) as error:
        raise FileError(f"{prefix} is no matrix: {error}") from error


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise FileError(f"{what}; expected the rows of a window.")

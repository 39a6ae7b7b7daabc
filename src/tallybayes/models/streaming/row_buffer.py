"""The rows or sequences of a sliding window, in memory and in a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array, vstack

from tallybayes._utils import sealed_file
from tallybayes._utils.frozen_value import from_json, to_json
from tallybayes.data.array_input import as_array, read_sparse
from tallybayes.data.counting import check_weight
from tallybayes.data.dates import origins, with_parts_of_dates
from tallybayes.data.encoding import is_missing
from tallybayes.data.table import Table
from tallybayes.errors import DataError, FileError, LabelError
from tallybayes.families._shared.blocks import SparseRows
from tallybayes.models.estimator import Estimator
from tallybayes.models.inputs.features import only_column, open_features
from tallybayes.models.inputs.input_format import with_weight
from tallybayes.models.inputs.sequences import open_labels, open_sequences, step_weights
from tallybayes.typing import Column, Labels, Rows, SampleWeights

_NUMBERS = "biuf"
_NOT_KEPT = ("date", "time", "duration", "list", "large_list", "struct", "map", "binary", "object")  # as Arrow has them


@dataclass(frozen=True, eq=False)
class BufferedRows:
    """Rows, or sequences of rows, with their targets, weights and times."""

    table: Table
    y: Any  # a column name, an array, or None
    weight: np.ndarray | None
    times: np.ndarray
    offsets: np.ndarray | None = None  # boundaries of the sequences; None for rows

    @classmethod
    def read(cls, X: Rows, y: Labels | None, sample_weight: SampleWeights) -> BufferedRows:
        """Return rows as a buffer, with times of 0."""
        table, weight = with_weight(open_features(X), sample_weight)
        if not isinstance(y, str | None):
            y = as_array(only_column(y))
        return cls(table, y, check_weight(weight, table.n_rows), np.zeros(table.n_rows))

    @classmethod
    def read_sequences(
        cls, X: Rows, y: Labels | None, sample_weight: SampleWeights, arguments: Mapping[str, Any]
    ) -> BufferedRows:
        """Return sequences with the state of every step as a buffer, with times of 0."""
        sequences = open_sequences(X, arguments.get("lengths"), arguments.get("sequence"), arguments.get("order"))
        if y is None:
            raise LabelError(
                "y is missing: a stream of sequences needs the state of every step.\n    Pass y, the states."
            )
        states = open_labels(y, sequences, X)
        table = sequences.table.without(y) if isinstance(y, str) else sequences.table
        unknown = np.flatnonzero([is_missing(state) for state in _cells(states)])
        if len(unknown):
            raise LabelError(
                f"step {unknown[0]} of all has no state, and a stream of sequences needs the state of every "
                "step.\n    Drop such sequences; fit uses all of them at once, by EM."
            )
        weight = step_weights(sample_weight, sequences)
        return cls(table, states, weight, np.zeros(sequences.n_sequences), sequences.offsets)

    @property
    def n(self) -> int:
        """The number of rows or sequences."""
        return len(self.times)

    def at(self, times: np.ndarray) -> BufferedRows:
        """Return a copy in the order of these times; later changes of the user's data do not affect it."""
        return replace(self, times=times).take(np.argsort(times, kind="stable"))

    def take(self, positions: slice | np.ndarray) -> BufferedRows:
        """Return a copy of some of the rows or sequences."""
        if isinstance(positions, slice):
            positions = np.arange(*positions.indices(self.n))
        rows = positions
        offsets = None
        if self.offsets is not None:
            rows = np.concatenate([np.arange(0), *(np.arange(*self.offsets[k : k + 2]) for k in positions)])
            offsets = np.concatenate([[0], np.cumsum(np.diff(self.offsets)[positions])]).astype(np.int64)
        y = self.y if isinstance(self.y, str | None) else Table({"y": self.y}).rows(rows).columns["y"]
        weight = None if self.weight is None else self.weight[positions]
        return BufferedRows(self.table.rows(rows), y, weight, self.times[positions], offsets)

    def counted_by(self, model: Estimator) -> BufferedRows:
        """Return the rows as a file stores them: dates are replaced by the parts that the model reads."""
        read = {name for wanted in model._required_columns for name in origins(wanted)}
        table = with_parts_of_dates(self.table, model._required_columns)
        unsupported = [n for n in table.columns if n not in read and table.type_name(n).startswith(_NOT_KEPT)]
        for name in (
            unsupported if self.y is None or isinstance(self.y, str) else ()
        ):  # with a separate y, every column of X was fitted
            table = table.without(name)
        return replace(self, table=table)

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `partial_fit` and `forget`."""
        arguments = {} if self.y is None else {"y": self.y}
        arguments |= {} if self.offsets is None else {"lengths": np.diff(self.offsets)}
        return {"X": self.table, **arguments, "sample_weight": self.weight}


def concatenate_rows(buffers: list[BufferedRows]) -> BufferedRows:
    """Return all rows in the order of their times, with columns in the plain forms of a file."""
    stacked = _stack_rows(buffers)
    return stacked.take(np.argsort(stacked.times, kind="stable"))


def _stack_rows(buffers: list[BufferedRows]) -> BufferedRows:
    """Return all rows, one part after another."""
    times = np.concatenate([rows.times for rows in buffers])
    tables = [rows.table for rows in buffers]
    first = buffers[0]
    if all(table.matrix is not None and table.matrix.shape[1] == len(table.columns) for table in tables):
        matrix = np.concatenate([table.matrix for table in tables])
        table = Table({name: matrix[:, k] for k, name in enumerate(first.table.columns)}, matrix)
    else:
        table = Table({name: _joined([table.column(name) for table in tables]) for name in first.table.columns})
    y = first.y if isinstance(first.y, str | None) else _joined([rows.y for rows in buffers])
    weight = offsets = None
    if any(rows.weight is not None for rows in buffers):
        weight = np.concatenate([np.ones(rows.n) if rows.weight is None else rows.weight for rows in buffers])
    if first.offsets is not None:
        lengths = np.concatenate([np.diff(rows.offsets) for rows in buffers if rows.offsets is not None])
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return BufferedRows(table, y, weight, times, offsets)


def find_rows(requested: BufferedRows, buffered: BufferedRows, *, timed: bool) -> np.ndarray:
    """Return the position of each requested row in a buffer, −1 if it is absent; of equal rows the oldest comes first.

    Rows are equal if all columns and the targets are equal; also the weights and times, if requested.
    """
    labels = [_target_values(part) for part in (buffered, requested)]
    features = [replace(part, table=_without_target(part), y=None) for part in (buffered, requested)]
    stacked = _stack_rows(features)
    columns = [] if stacked.table.matrix is None else [stacked.table.matrix]
    columns = columns or list(stacked.table.columns.values())
    codes = [_codes(column) for column in columns if _n_rows(column)]
    codes += [] if labels[0] is None else [_codes(_joined([_plain(part) for part in labels]))]
    keys: Any = np.unique(np.column_stack(codes), axis=0, return_inverse=True)[1].ravel() if codes else np.zeros(0, int)
    if stacked.offsets is not None:
        keys = [keys[a:b].tobytes() for a, b in zip(stacked.offsets, stacked.offsets[1:], strict=False)]
    keys_of_rows = [
        keys,
        *([stacked.times] if timed else []),
        *([stacked.weight] if requested.weight is not None else []),
    ]
    positions: dict[Any, list[int]] = {}
    row_keys = list(zip(*(part if isinstance(part, list) else part.tolist() for part in keys_of_rows), strict=True))
    for position, key in enumerate(row_keys[: buffered.n]):
        positions.setdefault(key, []).append(position)
    matches = [positions[key].pop(0) if positions.get(key) else -1 for key in row_keys[buffered.n :]]
    return np.array(matches, dtype=np.intp)


def _target_values(rows: BufferedRows) -> Any:
    """Return the target values."""
    return rows.table.column(rows.y) if isinstance(rows.y, str) else rows.y


def _without_target(rows: BufferedRows) -> Table:
    """Return the table without the target column."""
    return rows.table.without(rows.y) if isinstance(rows.y, str) else rows.table


def _n_rows(column: Column) -> int:
    """Return the number of rows of a column or a sparse block."""
    return len(column.indptr) - 1 if isinstance(column, SparseRows) else len(column)


def _plain(column: Column) -> Any:
    """Return a numeric column unchanged, else a list of its cells."""
    return column if isinstance(column, np.ndarray) and column.dtype.kind in _NUMBERS else _cells(column)


def _codes(column: Column) -> np.ndarray:
    """Return an integer code for every distinct cell, or row of a block; missing cells are equal."""
    if isinstance(column, np.ndarray) and column.dtype.kind in _NUMBERS and column.ndim == 1:
        return np.unique(column, return_inverse=True)[1]
    if isinstance(column, SparseRows):
        cells: Any = [
            (column.indices[a:b].tobytes(), np.asarray(column.data[a:b], dtype=np.float64).tobytes())
            for a, b in zip(column.indptr, column.indptr[1:], strict=False)
        ]
        cells = cells if column.missing_rows is None else list(zip(cells, column.missing_rows.tolist(), strict=True))
    elif isinstance(column, np.ndarray) and column.ndim == 2:
        cells = [row.tobytes() for row in np.ascontiguousarray(column, dtype=np.float64) + 0.0]  # −0 equals 0
    else:
        cells = [None if is_missing(cell) else cell for cell in column]
    number: dict[Any, int] = {}
    return np.array([number.setdefault(cell, len(number)) for cell in cells], dtype=np.int64)


def _joined(columns: list[Any]) -> Any:
    """Return the concatenation of columns."""
    if isinstance(columns[0], SparseRows):
        stacked = read_sparse(vstack([_matrix(*column[:4]) for column in columns]))
        absent = [np.zeros(len(c.indptr) - 1, bool) if c.missing_rows is None else c.missing_rows for c in columns]
        return stacked._replace(missing_rows=np.concatenate(absent) if any(map(np.any, absent)) else None)
    if all(isinstance(column, np.ndarray) and column.dtype.kind in _NUMBERS for column in columns):
        return np.concatenate(columns)
    return [cell for column in columns for cell in _cells(column)]


def _matrix(indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, n_columns: int) -> csr_array:
    """Return a SciPy sparse array from its parts."""
    return csr_array((data, indices, indptr), shape=(len(indptr) - 1, n_columns))


def _cells(column: Column) -> list[Any]:
    """Return the cells of a categorical or text column as a list."""
    if hasattr(column, "strings"):  # text
        column = column.strings
    return column.to_pylist() if hasattr(column, "to_pylist") else list(column)


# ---- In a file ---------------------------------------------------------------------------------------------------


def rows_to_parts(rows: BufferedRows) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the rows as JSON and arrays."""
    arrays: dict[str, np.ndarray] = {"rows/times": rows.times}
    if rows.weight is not None:
        arrays["rows/weight"] = np.asarray(rows.weight, dtype=np.float64)
    if rows.offsets is not None:
        arrays["rows/offsets"] = rows.offsets
    manifest: dict[str, Any] = {"names": [to_json(name) for name in rows.table.columns], "columns": []}
    if rows.table.matrix is not None:
        arrays["rows/matrix"] = rows.table.matrix
    else:
        for number, column in enumerate(rows.table.columns.values()):
            manifest["columns"].append(_column_to_parts(column, f"rows/{number}", arrays))
    if not isinstance(rows.y, str | None):
        return manifest | {"y": _column_to_parts(rows.y, "rows/y", arrays)}, arrays
    return manifest | {"target": rows.y}, arrays


def _column_to_parts(column: Column, prefix: str, arrays: dict[str, np.ndarray]) -> Any:
    """Return the JSON of a column and add its arrays."""
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
    code_of = {level: k for k, level in enumerate(levels)} | {None: -1}
    arrays[prefix] = np.array([code_of[cell] for cell in cells], dtype=np.int64)
    if all(isinstance(level, str) for level in levels):
        arrays[f"{prefix}/text"], arrays[f"{prefix}/offsets"] = sealed_file.pack_strings(levels)
        return "strings"
    return {"labels": [to_json(level) for level in levels]}


def rows_from_parts(manifest: dict[str, Any], arrays: dict[str, np.ndarray]) -> BufferedRows:
    """Return the rows from JSON and arrays, after validation, since files are untrusted."""
    times = arrays.pop("rows/times")
    weight = arrays.pop("rows/weight", None)
    offsets = arrays.pop("rows/offsets", None)
    n = len(times)
    if offsets is not None:
        fits = offsets.shape == (len(times) + 1,) and offsets.dtype == np.int64 and offsets[0] == 0
        _require(fits and bool((np.diff(offsets) >= 0).all()), "the boundaries of the sequences are invalid")
        n = int(offsets[-1])
    names = [from_json(name) for name in manifest.pop("names")]
    column_states = manifest.pop("columns")
    _require(len(set(names)) == len(names) > 0, "the column names are not unique")
    if "rows/matrix" in arrays:
        matrix = arrays.pop("rows/matrix")
        _require(matrix.shape == (n, len(names)) and not column_states, "the matrix does not fit the column names")
        table = Table({name: matrix[:, k] for k, name in enumerate(names)}, matrix)
    else:
        _require(len(column_states) == len(names), "the columns do not fit the column names")
        columns = [_column_from_parts(state, f"rows/{number}", arrays, n) for number, state in enumerate(column_states)]
        table = Table(dict(zip(names, columns, strict=True)))
    y = _column_from_parts(manifest.pop("y"), "rows/y", arrays, n) if "y" in manifest else manifest.pop("target")
    _require(y is None or not isinstance(y, str) or y in names, "the target is not a column")
    fits = weight is None or (weight.shape == times.shape and weight.dtype == np.float64)
    _require(fits, "the weights are not one float64 per row")
    _require(weight is None or bool(((weight >= 0) & np.isfinite(weight)).all()), "a weight is negative or not finite")
    sorted_times = times.ndim == 1 and times.dtype.kind in "if" and bool((np.diff(times) >= 0).all())
    _require(sorted_times, "the times are not sorted")
    sealed_file.check_no_unknown_entries("the rows", manifest)
    return BufferedRows(table, y, weight, times, offsets)


def _column_from_parts(state: Any, prefix: str, arrays: dict[str, np.ndarray], n_rows: int) -> Any:
    """Return a column from its JSON and arrays, after validation."""
    if isinstance(state, dict) and "sparse" in state:
        return _sparse_from_parts(state, prefix, arrays, n_rows)
    values = arrays.pop(prefix)
    if state == "numbers":
        _require(values.ndim in (1, 2) and len(values) == n_rows, f"{prefix} does not have one value per row")
        return values
    if state == "strings":
        levels: list[Any] = list(
            sealed_file.unpack_strings(arrays.pop(f"{prefix}/text"), arrays.pop(f"{prefix}/offsets"))
        )
    else:
        _require(isinstance(state, dict) and list(state) == ["labels"], f"{prefix} has an unknown kind")
        levels = [from_json(level) for level in state["labels"]]
    fits = values.shape == (n_rows,) and values.dtype == np.int64
    _require(fits and bool(((values >= -1) & (values < len(levels))).all()), f"{prefix} has invalid level codes")
    return [None if code < 0 else levels[code] for code in values.tolist()]


def _sparse_from_parts(state: dict[str, Any], prefix: str, arrays: dict[str, np.ndarray], n_rows: int) -> SparseRows:
    """Return a sparse block from its JSON and arrays, after validation."""
    indptr, indices, data = (arrays.pop(f"{prefix}/{name}") for name in ("indptr", "indices", "data"))
    width = state["sparse"]
    missing_rows = arrays.pop(f"{prefix}/absent", None)
    fits = type(width) is int and 0 < width < 2**31 and indptr.shape == (n_rows + 1,) and data.dtype.kind in _NUMBERS
    fits = fits and indptr.dtype.kind == indices.dtype.kind == "i" and indices.shape == data.shape == (len(data),)
    _require(
        fits and (missing_rows is None or (missing_rows.shape == (n_rows,) and missing_rows.dtype == bool)),
        f"{prefix} is not a sparse matrix",
    )
    try:
        return read_sparse(_matrix(indptr, indices, data, width))._replace(missing_rows=missing_rows)
    except (DataError, ValueError) as error:
        raise FileError(f"{prefix} is not a sparse matrix: {error}") from error


def _require(holds: bool, what: str) -> None:
    """Raise FileError unless a condition holds."""
    if not holds:
        raise FileError(f"{what}; expected the rows of a window.")

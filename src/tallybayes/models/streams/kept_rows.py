"""Rows that a window keeps, so that it can take them out again: in memory, and in a file."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, vstack

from tallybayes import store
from tallybayes.errors import DataError, FileError
from tallybayes.families.block import Sparse
from tallybayes.models.inputs.features import only_column, open_features
from tallybayes.models.inputs.shape import with_weight
from tallybayes.sources.arrays import as_array
from tallybayes.sources.collect import check_weight
from tallybayes.sources.sparse import read_sparse
from tallybayes.sources.table import Table
from tallybayes.value import from_json, to_json

_NUMBERS = "biuf"


class Kept(NamedTuple):
    """Some rows in the order of their times: the columns, what is to be told of them, and what each counts."""

    table: Table
    y: Any  # the name of a column, an array, or None
    weight: np.ndarray | None
    times: np.ndarray

    @classmethod
    def read(cls, X: Any, y: Any, sample_weight: Any, times: np.ndarray) -> Kept:
        """Rows as people have them, copied: what was learned must be what is taken out, whatever becomes of theirs."""
        table, weight = with_weight(open_features(X), sample_weight)
        if not isinstance(y, str | None):
            y = as_array(only_column(y))
        order = np.argsort(times, kind="stable")
        return cls(table, y, check_weight(weight, table.n_rows), times).rows(order)

    def rows(self, part: Any) -> Kept:
        """Some of them."""
        if isinstance(part, slice):
            part = np.arange(*part.indices(len(self.times)))
        y = self.y if isinstance(self.y, str | None) else self.y[part]
        weight = None if self.weight is None else self.weight[part]
        return Kept(self.table.rows(part), y, weight, self.times[part])

    def arguments(self) -> dict[str, Any]:
        """What models learn from, and forget."""
        told = {} if self.y is None else {"y": self.y}
        return {"X": self.table, **told, "sample_weight": self.weight}


def joined(parts: list[Kept]) -> Kept:
    """All rows together, in the order of their times; columns in plain forms, as a file has them."""
    times = np.concatenate([part.times for part in parts])
    tables, first = [part.table for part in parts], parts[0]
    if all(table.matrix is not None and table.matrix.shape[1] == len(table.columns) for table in tables):
        matrix = np.concatenate([table.matrix for table in tables])
        table = Table({name: matrix[:, k] for k, name in enumerate(first.table.columns)}, matrix)
    else:
        table = Table({name: _joined([table.columns[name] for table in tables]) for name in first.table.columns})
    y = first.y if isinstance(first.y, str | None) else _joined([part.y for part in parts])
    weight = None
    if any(part.weight is not None for part in parts):
        weight = np.concatenate([np.ones(len(p.times)) if p.weight is None else p.weight for p in parts])
    return Kept(table, y, weight, times).rows(np.argsort(times, kind="stable"))


def _joined(columns: list[Any]) -> Any:
    """Columns below each other."""
    if isinstance(columns[0], Sparse):
        stacked = read_sparse(vstack([_matrix(*column[:4]) for column in columns]))
        absent = [np.zeros(len(c.indptr) - 1, bool) if c.absent is None else c.absent for c in columns]
        return stacked._replace(absent=np.concatenate(absent) if any(map(np.any, absent)) else None)
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


def rows_to_parts(kept: Kept) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Rows as JSON and arrays."""
    arrays: dict[str, np.ndarray] = {"rows/times": kept.times}
    if kept.weight is not None:
        arrays["rows/weight"] = np.asarray(kept.weight, dtype=np.float64)
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
    if isinstance(column, Sparse):
        arrays[f"{prefix}/indptr"], arrays[f"{prefix}/indices"], arrays[f"{prefix}/data"] = column[:3]
        if column.absent is not None:
            arrays[f"{prefix}/absent"] = column.absent
        return {"sparse": column.n_columns}
    if isinstance(column, np.ndarray) and column.dtype.kind in _NUMBERS:
        arrays[prefix] = column
        return "numbers"
    cells = [None if cell is None or cell != cell else cell for cell in _cells(column)]
    levels = list(dict.fromkeys(cell for cell in cells if cell is not None))
    place = {level: k for k, level in enumerate(levels)} | {None: -1}
    arrays[prefix] = np.array([place[cell] for cell in cells], dtype=np.int64)
    if all(isinstance(level, str) for level in levels):
        arrays[f"{prefix}/text"], arrays[f"{prefix}/offsets"] = store.pack_strings(levels)
        return "strings"
    return {"labels": [to_json(level) for level in levels]}


def rows_from_parts(manifest: dict[str, Any], arrays: dict[str, np.ndarray]) -> Kept:
    """The rows that `rows_to_parts` told of, checked: a file may come from anyone."""
    times, weight = arrays.pop("rows/times"), arrays.pop("rows/weight", None)
    names = [from_json(name) for name in manifest.pop("names")]
    told, n = manifest.pop("columns"), len(times)
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
    _require(weight is None or (weight.shape == (n,) and weight.dtype == np.float64), "weights are not one a row")
    _require(weight is None or bool(((weight >= 0) & np.isfinite(weight)).all()), "a weight is no weight")
    sorted_times = times.ndim == 1 and times.dtype.kind in "if" and bool((np.diff(times) >= 0).all())
    _require(sorted_times, "the rows' times are not in order")
    store.refuse_rest("the rows", manifest)
    return Kept(table, y, weight, times)


def _column_from_parts(told: Any, prefix: str, arrays: dict[str, np.ndarray], n_rows: int) -> Any:
    if isinstance(told, dict) and "sparse" in told:
        return _sparse_from_parts(told, prefix, arrays, n_rows)
    values = arrays.pop(prefix)
    if told == "numbers":
        _require(values.ndim in (1, 2) and len(values) == n_rows, f"{prefix} has not one value a row")
        return values
    if told == "strings":
        levels: list[Any] = list(store.unpack_strings(arrays.pop(f"{prefix}/text"), arrays.pop(f"{prefix}/offsets")))
    else:
        _require(isinstance(told, dict) and list(told) == ["labels"], f"{prefix} is of a kind that is not known")
        levels = [from_json(level) for level in told["labels"]]
    fits = values.shape == (n_rows,) and values.dtype == np.int64
    _require(fits and bool(((values >= -1) & (values < len(levels))).all()), f"{prefix} has labels that are not there")
    return [None if code < 0 else levels[code] for code in values.tolist()]


def _sparse_from_parts(told: dict[str, Any], prefix: str, arrays: dict[str, np.ndarray], n_rows: int) -> Sparse:
    indptr, indices, data = (arrays.pop(f"{prefix}/{name}") for name in ("indptr", "indices", "data"))
    width, absent = told["sparse"], arrays.pop(f"{prefix}/absent", None)
    fits = type(width) is int and 0 < width < 2**31 and indptr.shape == (n_rows + 1,) and data.dtype.kind in _NUMBERS
    fits = fits and indptr.dtype.kind == indices.dtype.kind == "i" and indices.shape == data.shape == (len(data),)
    _require(
        fits and (absent is None or (absent.shape == (n_rows,) and absent.dtype == bool)), f"{prefix} is no matrix"
    )
    try:
        return read_sparse(_matrix(indptr, indices, data, width))._replace(absent=absent)
    except (DataError, ValueError) as error:
        raise FileError(f"{prefix} is no matrix: {error}") from error


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise FileError(f"{what}; expected the rows of a window.")

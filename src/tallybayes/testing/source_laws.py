"""The law of sources: one table counts alike in every form it can take."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from tallybayes.data.counting import count
from tallybayes.tally.factor import Factor, Name
from tallybayes.testing.assert_close import assert_statistics_close

Columns = Mapping[str, Sequence[Any]]


class Form(NamedTuple):
    """One form of a table: what it is called, the data, and the names its columns have there."""

    title: str
    data: Any
    names: tuple[Name, ...]


def forms(columns: Columns) -> Iterator[Form]:
    """Every form that a table of Python values can take with the libraries that are installed.

    Parameters
    ----------
    columns : mapping from name to list of bool, int, float, str or None
        Each column of one kind; None is missing.

    Yields
    ------
    Form

    Examples
    --------
    >>> from tallybayes.testing import forms
    >>> [form.title for form in forms({"x": [1, 2]})][:3]
    ['mapping of lists', 'mapping of arrays', 'list of dicts']
    """
    names = tuple(columns)
    positions = tuple(range(len(names)))
    rows = [list(row) for row in zip(*columns.values(), strict=True)]
    yield Form("mapping of lists", {name: list(column) for name, column in columns.items()}, names)
    yield Form("mapping of arrays", {name: _array(column) for name, column in columns.items()}, names)
    if rows:
        yield Form("list of dicts", [dict(zip(names, row, strict=True)) for row in rows], names)
        sparse = [{k: v for k, v in zip(names, row, strict=True) if v is not None} for row in rows]
        if set().union(*sparse) == set(names):  # a missing cell may be left out, as long as some row names the column
            yield Form("list of dicts without the missing cells", sparse, names)
        yield Form("list of rows", rows, positions)
        yield Form("list of tuples", [tuple(row) for row in rows], positions)
    for form in _matrices(columns):
        yield Form(*form, positions)
    for library, make in (("pandas", _pandas), ("polars", _polars), ("pyarrow", _arrow)):
        module = _optional(library)
        if module is not None:
            for title, frame in make(module, columns):
                yield Form(f"{library}{title}", frame, names)


def check_sources(
    columns: Columns, factors: Callable[[Mapping[str, Name]], Iterable[Factor]], *, weight: np.ndarray | None = None
) -> None:
    """A table gives the same tally as a list, array, frame, or rows of any kind.

    Parameters
    ----------
    columns : mapping from name to list of bool, int, float, str or None
    factors : callable
        Makes the factors from the names that the columns have in a form (arrays know only positions).
    weight : array of shape (n,), optional

    Examples
    --------
    >>> import tallybayes as tb
    >>> from tallybayes.testing import check_sources
    >>> table = {"sex": ["f", "m", None], "age": [31, None, 4]}
    >>> check_sources(table, lambda name: [tb.Factor(name["age"], name["sex"], tb.Gaussian())])
    """
    expected: dict[tuple[Name, ...], Any] = {}
    for form in forms(columns):
        made = list(factors(dict(zip(columns, form.names, strict=True))))
        if form.names not in expected:
            arrays = {name: _array(column) for name, column in zip(form.names, columns.values(), strict=True)}
            expected[form.names] = count(arrays, made, weight=weight)
        whole = weight is None or bool((np.asarray(weight) % 1 == 0).all())
        found = count(form.data, made, weight=weight)
        assert_statistics_close(found, expected[form.names], exact=whole, law=f"{form.title} = arrays")


def _array(column: Sequence[Any]) -> np.ndarray:
    """Numbers as floats with NaN for None, all else as objects."""
    if _kind(column) in (int, float):
        return np.array([np.nan if value is None else value for value in column], dtype=np.float64)
    out = np.empty(len(column), dtype=object)
    out[:] = list(column)
    return out


def _kind(column: Sequence[Any]) -> type | None:
    kinds = {type(value) for value in column if value is not None}
    return float if kinds == {int, float} else next(iter(kinds), None)


def _matrices(columns: Columns) -> Iterator[tuple[str, np.ndarray]]:
    """Arrays of two axes, where all columns are numbers."""
    kinds = {_kind(column) for column in columns.values()}
    if not columns or not kinds <= {int, float, bool} or (bool in kinds and kinds != {bool}):
        return
    complete = all(value is not None for column in columns.values() for value in column)
    if kinds == {bool}:
        if complete:
            yield "array of bool", np.array(list(columns.values())).T
        return
    matrix = np.stack([_array(column) for column in columns.values()], axis=1)
    yield "array, row-major", np.ascontiguousarray(matrix)
    yield "array, column-major", np.asfortranarray(matrix)
    yield "array, strided", np.repeat(np.repeat(matrix, 2, axis=0), 2, axis=1)[::2, ::2]
    frozen = matrix.copy()
    frozen.setflags(write=False)
    yield "array, read-only", frozen
    single = matrix.astype(np.float32)
    if np.array_equal(single, matrix, equal_nan=True):
        yield "array of float32", single
    if kinds == {int} and complete:
        largest, least = int(matrix.max(initial=0)), int(matrix.min(initial=0))
        for dtype in (np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64, np.uint64):
            if np.iinfo(dtype).min <= least and largest <= np.iinfo(dtype).max:
                yield f"array of {np.dtype(dtype).name}", matrix.astype(dtype)


def _pandas(pandas: ModuleType, columns: Columns) -> Iterator[tuple[str, Any]]:
    frame = pandas.DataFrame({name: list(column) for name, column in columns.items()})
    yield "", frame
    yield ", index out of order", frame.iloc[::-1].iloc[::-1].set_axis(range(len(frame), 0, -1))
    nullable = {
        name: pandas.array(list(column), dtype=dtype) if dtype else list(column)
        for name, column in columns.items()
        for dtype in [{bool: "boolean", int: "Int64", float: "Float64", str: "string"}.get(_kind(column) or object)]
    }
    yield ", nullable types", pandas.DataFrame(nullable)
    labels = [name for name, column in columns.items() if _kind(column) in (str, bool)]
    if labels:
        categories = {name: [*dict.fromkeys(v for v in columns[name] if v is not None)][::-1] for name in labels}
        unused = {str: "never", bool: None}
        typed = {
            name: pandas.CategoricalDtype([*levels, *([extra] if (extra := unused[_kind(columns[name])]) else [])])  # type: ignore[index]
            for name, levels in categories.items()
        }
        yield ", categories with an unused one", frame.astype(typed)


def _polars(polars: ModuleType, columns: Columns) -> Iterator[tuple[str, Any]]:
    frame = polars.DataFrame({name: list(column) for name, column in columns.items()}, strict=False)
    yield "", frame
    yield ", in two chunks", polars.concat([frame[:1], frame[1:]], rechunk=False)
    labels = [name for name, column in columns.items() if _kind(column) is str]
    if labels:
        yield ", categories", frame.with_columns(polars.col(name).cast(polars.Categorical) for name in labels)


def _arrow(pyarrow: ModuleType, columns: Columns) -> Iterator[tuple[str, Any]]:
    table = pyarrow.table({name: list(column) for name, column in columns.items()})
    yield "", table
    yield ", in two chunks", pyarrow.concat_tables([table[:1], table[1:]])
    labels = [name for name, column in columns.items() if _kind(column) is str]
    if labels:
        yield (
            ", dictionaries",
            table.set_column(table.column_names.index(labels[0]), labels[0], table[labels[0]].dictionary_encode()),
        )


def _optional(library: str) -> ModuleType | None:
    try:
        return import_module(library)
    except ImportError:
        return None

"""The law of data sources: a table gives the same tally in every form."""

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
    """One form of a table: its title, the data, and its column names."""

    title: str
    data: Any
    names: tuple[Name, ...]


def forms(columns: Columns) -> Iterator[Form]:
    """Yield every form of a table of Python values that the installed libraries support.

    Parameters
    ----------
    columns : mapping from name to list of bool, int, float, str or None
        Columns with values of one type; None is missing.

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
        if set().union(*sparse) == set(names):  # missing cells may be omitted if some row has the column
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
    """Check that a table gives the same tally as a list, array, frame or rows of any kind.

    Parameters
    ----------
    columns : mapping from name to list of bool, int, float, str or None
    factors : callable
        Maps column names to their names in a form (positions for arrays) and returns the factors.
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
        form_factors = list(factors(dict(zip(columns, form.names, strict=True))))
        if form.names not in expected:
            arrays = {name: _array(column) for name, column in zip(form.names, columns.values(), strict=True)}
            expected[form.names] = count(arrays, form_factors, weight=weight)
        is_integer = weight is None or bool((np.asarray(weight) % 1 == 0).all())
        tally = count(form.data, form_factors, weight=weight)
        assert_statistics_close(tally, expected[form.names], exact=is_integer, law=f"{form.title} = arrays")


def _array(column: Sequence[Any]) -> np.ndarray:
    """Return numbers as floats with NaN for None, and other values as objects."""
    if _kind(column) in (int, float):
        return np.array([np.nan if value is None else value for value in column], dtype=np.float64)
    out = np.empty(len(column), dtype=object)
    out[:] = list(column)
    return out


def _kind(column: Sequence[Any]) -> type | None:
    """Return the type of a column's values; float for mixed numbers."""
    kinds = {type(value) for value in column if value is not None}
    return float if kinds == {int, float} else next(iter(kinds), None)


def _matrices(columns: Columns) -> Iterator[tuple[str, np.ndarray]]:
    """Yield two-dimensional arrays if all columns are numeric."""
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
    read_only = matrix.copy()
    read_only.setflags(write=False)
    yield "array, read-only", read_only
    single = matrix.astype(np.float32)
    if np.array_equal(single, matrix, equal_nan=True):
        yield "array of float32", single
    if kinds == {int} and complete:
        largest, least = int(matrix.max(initial=0)), int(matrix.min(initial=0))
        for dtype in (np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64, np.uint64):
            if np.iinfo(dtype).min <= least and largest <= np.iinfo(dtype).max:
                yield f"array of {np.dtype(dtype).name}", matrix.astype(dtype)


def _pandas(pandas: ModuleType, columns: Columns) -> Iterator[tuple[str, Any]]:
    """Yield pandas data frames with several index and column types."""
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
    """Yield polars data frames."""
    frame = polars.DataFrame({name: list(column) for name, column in columns.items()}, strict=False)
    yield "", frame
    yield ", in two chunks", polars.concat([frame[:1], frame[1:]], rechunk=False)
    labels = [name for name, column in columns.items() if _kind(column) is str]
    if labels:
        yield ", categories", frame.with_columns(polars.col(name).cast(polars.Categorical) for name in labels)


def _arrow(pyarrow: ModuleType, columns: Columns) -> Iterator[tuple[str, Any]]:
    """Yield pyarrow tables."""
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
    """Return a module, or None if it is not installed."""
    try:
        return import_module(library)
    except ImportError:
        return None

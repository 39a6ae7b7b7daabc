"""Data frames as columns, and columns as a data frame."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from tallybayes.data.sql.sql_types import is_opaque
from tallybayes.data.string_columns import shared_labels
from tallybayes.tally.factor import Name

KINDS = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "Table"}


def frame_kind(data: Any) -> str | None:
    """The library that a data frame is of, or None for anything else; nothing is imported to know."""
    kind = type(data)
    library = kind.__module__.partition(".")[0]
    return library if KINDS.get(library) == kind.__name__ else None


def as_frame(columns: Mapping[Name, Any], kind: str | None, like: Any = None, changed: Collection[Name] = ()) -> Any:
    """Columns as a data frame; as a dictionary where there is no kind, its library is not there, or one is a block.

    Parameters
    ----------
    columns : mapping from name to an array of shape (n,)
    kind : {"pandas", "polars", "pyarrow"} or None
    like : data frame of that kind, optional
        The same rows: its index, and its own columns but for those that have `changed`.
    """
    if kind is None or any(getattr(column, "ndim", 1) != 1 for column in columns.values()):
        return dict(columns)
    own = [] if like is None else [name for name in columns if name in _names(like) and name not in changed]
    try:
        if kind == "pandas":
            import pandas as pd

            parts = {name: like[name].array if name in own else column for name, column in columns.items()}
            return pd.DataFrame(parts, index=None if like is None else like.index, copy=True)
        import pyarrow as pa

        if kind == "pyarrow":
            parts = {str(name): like.column(name) if name in own else _arrow(c) for name, c in columns.items()}
            return pa.table(parts)
        import polars as pl
    except ImportError:
        return dict(columns)
    return pl.DataFrame(
        {str(name): like[name] if name in own else pl.from_arrow(_arrow(c)) for name, c in columns.items()}
    )


def _names(frame: Any) -> list[Name]:
    return list(frame.column_names) if hasattr(frame, "column_names") else list(frame.columns)


def _arrow(column: Any) -> Any:
    import pyarrow as pa

    return pa.array(np.asarray(column).tolist() if np.asarray(column).dtype.kind in "OU" else np.asarray(column))


def columns_of_frame(data: Any) -> dict[Name, Any]:
    """Return the columns of a data frame by name, without a copy where that can be."""
    import narwhals as nw

    frame = nw.from_native(data, eager_only=True)
    if not frame.implementation.is_pyarrow():
        return {series.name: column_of_series(series) for series in frame.iter_columns()}
    found: dict[Name, Any] = {}
    for name, column in zip(data.column_names, data.columns, strict=True):
        plain = _as_it_lies(column)
        found[name] = column_of_series(nw.from_native(column, series_only=True)) if plain is None else plain
    return found


def _as_it_lies(column: Any) -> Any:
    """Return numbers without nulls, and labels in one piece, of Arrow; None for any other column.

    A column in one piece is not copied. narwhals would take some 50 µs for each, which tables of many columns feel.
    """
    import pyarrow as pa

    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return None if column.null_count else column.to_numpy()
    one = column.num_chunks == 1 and (pa.types.is_dictionary(kind) or pa.types.is_string(kind))
    return column.chunk(0) if one else None


def column_of_series(series: Any) -> Any:
    """A frame's column: numbers as an array (null is NaN), categories and labels for `encode`."""
    import narwhals as nw

    dtype = series.dtype  # of pandas' objects it is found by looking at them, again and again
    if dtype in (nw.Int128, nw.UInt128):  # sums of a database: NumPy has no such numbers
        small = len(series) > series.null_count() and -(2**63) <= series.min() <= series.max() < 2**63
        series = series.cast(nw.Int64 if small else nw.Float64)
        dtype = series.dtype
    whole = dtype.is_integer() or dtype == nw.Boolean
    if dtype.is_float() or (whole and series.null_count() == 0):
        array = series.to_numpy()
        if array.dtype.kind in "biuf":
            return array
    if dtype.is_decimal():
        return series.cast(nw.Float64).to_numpy()
    native = series.to_native()
    if hasattr(getattr(native, "cat", None), "codes"):  # pandas'
        return native
    if dtype == nw.Object and series.implementation.is_polars():  # of which Arrow would get the addresses
        return series.to_numpy()
    if getattr(native, "dtype", None) == np.dtype(object):  # pandas'
        labels = shared_labels(series.to_numpy())
        if labels is not None:
            return labels
    try:
        array = series.to_arrow()
    except (ValueError, TypeError, OverflowError, NotImplementedError):  # not one type of Arrow's: `encode` says why
        return series.to_numpy()
    own = hasattr(array.type, "extension_name") and not is_opaque(array.type)  # pandas' periods are no numbers
    return series.to_numpy() if own else array

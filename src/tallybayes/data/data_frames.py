"""Data frames as columns, and columns as a data frame."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.data.sql.sql_types import is_opaque
from tallybayes.data.string_columns import shared_labels
from tallybayes.tally.factor import Name

if TYPE_CHECKING:
    import narwhals as nw
    import numpy.typing as npt
    import pandas as pd
    import pyarrow as pa

KINDS = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "Table"}


def frame_kind(data: object) -> str | None:
    """Return the library of a data frame, or None for other data. Nothing is imported."""
    kind = type(data)
    library = kind.__module__.partition(".")[0]
    return library if KINDS.get(library) == kind.__name__ else None


def as_frame(
    columns: Mapping[Name, Any], kind: str | None, like: pd.DataFrame = None, changed: Collection[Name] = ()
) -> Any:
    """Convert columns to a data frame, or to a dictionary.

    A dictionary is returned if `kind` is None, its library is not installed, or a column is a block.

    Parameters
    ----------
    columns : mapping from name to an array of shape (n,)
    kind : {"pandas", "polars", "pyarrow"} or None
    like : data frame of that kind, optional
        A frame of the same rows. Its index is used, and its columns except those in `changed`.
    changed : collection of names, optional
        Columns of `like` that are replaced.
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

        parts = {str(name): like[name] if name in own else _arrow(column) for name, column in columns.items()}
        if kind == "pyarrow":
            return pa.table(parts)
        import polars as pl
    except ImportError:
        return dict(columns)
    return pl.DataFrame(parts)


def _names(frame: pd.DataFrame) -> list[Name]:
    """Return the column names of a data frame."""
    return list(frame.column_names) if hasattr(frame, "column_names") else list(frame.columns)


def _arrow(column: npt.ArrayLike) -> Any:
    """Convert an array to an Arrow array."""
    import pyarrow as pa

    return pa.array(np.asarray(column).tolist() if np.asarray(column).dtype.kind in "OU" else np.asarray(column))


def columns_of_frame(data: pd.DataFrame) -> dict[Name, Any]:
    """Return the columns of a data frame by name, without copies where possible."""
    import narwhals as nw

    frame = nw.from_native(data, eager_only=True)
    if not frame.implementation.is_pyarrow():
        return {series.name: column_of_series(series) for series in frame.iter_columns()}
    columns: dict[Name, Any] = {}
    for name, column in zip(data.column_names, data.columns, strict=True):
        plain = _as_it_lies(column)
        columns[name] = column_of_series(nw.from_native(column, series_only=True)) if plain is None else plain
    return columns


def _as_it_lies(column: pa.ChunkedArray) -> Any:
    """Return numbers without nulls, and strings or dictionaries in one chunk, of Arrow; None for any other column.

    This avoids narwhals, which takes about 50 µs per column.
    """
    import pyarrow as pa

    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return None if column.null_count else column.to_numpy()
    is_one_chunk = column.num_chunks == 1 and (pa.types.is_dictionary(kind) or pa.types.is_string(kind))
    return column.chunk(0) if is_one_chunk else None


def column_of_series(series: nw.Series[Any]) -> Any:
    """Convert a column of a data frame: numbers to an array (null is NaN), other values to what `encode` reads."""
    import narwhals as nw

    dtype = series.dtype  # of pandas objects it is computed from the values at each access
    if dtype in (nw.Int128, nw.UInt128):  # sums of a database; NumPy has no such type
        small = len(series) > series.null_count() and -(2**63) <= series.min() <= series.max() < 2**63
        series = series.cast(nw.Int64 if small else nw.Float64)
        dtype = series.dtype
    is_integer = dtype.is_integer() or dtype == nw.Boolean
    if dtype.is_float() or (is_integer and series.null_count() == 0):
        array = series.to_numpy()
        if array.dtype.kind in "biuf":
            return array
    if dtype.is_decimal():
        return series.cast(nw.Float64).to_numpy()
    native = series.to_native()
    if hasattr(getattr(native, "cat", None), "codes"):  # pandas
        return native
    if dtype == nw.Object and series.implementation.is_polars():  # to_arrow would give their addresses
        return series.to_numpy()
    if getattr(native, "dtype", None) == np.dtype(object):  # pandas
        labels = shared_labels(series.to_numpy())
        if labels is not None:
            return labels
    try:
        array = series.to_arrow()
    except (
        ValueError,
        TypeError,
        OverflowError,
        NotImplementedError,
    ):  # no common type: `encode` raises
        return series.to_numpy()
    is_extension = hasattr(array.type, "extension_name") and not is_opaque(array.type)  # such as pandas periods
    return series.to_numpy() if is_extension else array

"""Data frames out: columns as a frame of the kind that came in."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

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

"""Columns that say whether the cells of others are there."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Any

import numpy as np

from tallybayes.data.missing_indicators import indicator_name, sources_of
from tallybayes.data.table import Table
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Name


def is_presence(name: Any, columns: Container[Any]) -> bool:
    """Whether a column says whether the cells of another one of these columns are there."""
    return any(source in columns for source in sources_of(name))


def hidden(table: Table, names: Iterable[Name]) -> Table:
    """Return the rows with every cell of some columns unknown: missing, but not by itself informative."""
    columns, unknown = dict(table.columns), dict(table.invalid_cells)
    for name in names:
        columns[name] = np.full(table.n_rows, *((np.nan,) if table.kind(name) == "number" else (None, object)))
        unknown[name] = np.ones(table.n_rows, dtype=bool)
    found = Table(columns)
    found.invalid_cells = unknown
    return found


def with_unknown(table: Table, names: Iterable[Name], levels: Mapping[Name, Domain]) -> Table:
    """The rows, where cells that are there but not known are neither there nor absent.

    Parameters
    ----------
    table : Table
        It knows which cells could not be what their columns were counted as.
    names : iterable of names
        The columns that say whether others are there.
    levels : mapping
        The levels that are known, of columns of which others are not.
    """
    for name in names:
        source = table.source_of(name)
        if source is None:
            continue
        there = np.array(table.numbers([name])[0])
        unknown = table.invalid_cells.get(source, np.zeros(len(there), dtype=bool))
        if source in levels:
            found, (local,) = table.levels([source], lambda _: False)
            strange = np.append(levels[source].positions_of(local.levels) < 0, False)
            unknown = unknown | strange[np.asarray(found.columns[0]).astype(np.intp)]
        if unknown.any():
            there[unknown] = np.nan
            table = table.with_column(name, there)
    return table


def with_absences(columns: dict[Name, Any]) -> dict[Name, Any]:
    """Columns that were drawn, without the cells that were drawn to be absent."""
    out = {}
    for name, column in columns.items():
        if is_presence(name, columns):
            continue
        there = columns.get(indicator_name(name))
        if there is not None and not np.all(there == 1):
            absent = np.asarray(there) == 0
            nothing = np.nan if column.dtype.kind == "f" else None
            column = np.where(absent, nothing, column if nothing is not None else column.astype(object))
        out[name] = column
    return out

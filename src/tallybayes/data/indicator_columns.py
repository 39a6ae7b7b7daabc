"""Missing-value indicators as columns of a table."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Any

import numpy as np

from tallybayes.data.missing_indicators import indicator_name, sources_of
from tallybayes.data.table import Table
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Name


def is_presence(name: object, columns: Container[Any]) -> bool:
    """Return whether a name is the missing-value indicator of one of these columns."""
    return any(source in columns for source in sources_of(name))


def hidden(table: Table, names: Iterable[Name]) -> Table:
    """Return the table with every cell of some columns unknown: missing, but not counted as missing by an indicator."""
    columns = dict(table.columns)
    unknown = dict(table.invalid_cells)
    for name in names:
        columns[name] = np.full(table.n_rows, *((np.nan,) if table.kind(name) == "number" else (None, object)))
        unknown[name] = np.ones(table.n_rows, dtype=bool)
    hidden_table = Table(columns)
    hidden_table.invalid_cells = unknown
    return hidden_table


def with_unknown(table: Table, names: Iterable[Name], levels: Mapping[Name, Domain]) -> Table:
    """Return the table with indicators missing where the cell of their column is unknown.

    A cell is unknown if it is invalid, or its level was not seen during fitting.

    Parameters
    ----------
    table : Table
        Its `invalid_cells` are unknown.
    names : iterable of names
        The indicators.
    levels : mapping from name to Domain
        The levels seen during fitting, for categorical columns where other levels are unknown.
    """
    for name in names:
        source = table.source_of(name)
        if source is None:
            continue
        indicator = np.array(table.numbers([name])[0])
        unknown = table.invalid_cells.get(source, np.zeros(len(indicator), dtype=bool))
        if source in levels:
            codes, local = table.encoded(source)
            is_unseen = np.append(levels[source].positions_of(local.levels) < 0, False)
            unknown = unknown | is_unseen[codes.astype(np.intp)]
        if unknown.any():
            indicator[unknown] = np.nan
            table = table.with_column(name, indicator)
    return table


def with_absences(columns: dict[Name, Any]) -> dict[Name, Any]:
    """Return sampled columns with missing cells where the sampled indicator is 0; indicators are removed."""
    out = {}
    for name, column in columns.items():
        if is_presence(name, columns):
            continue
        indicator = columns.get(indicator_name(name))
        if indicator is not None and not np.all(indicator == 1):
            is_missing = np.asarray(indicator) == 0
            missing_value = np.nan if column.dtype.kind == "f" else None
            column = np.where(is_missing, missing_value, column if missing_value is not None else column.astype(object))
        out[name] = column
    return out

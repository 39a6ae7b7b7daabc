"""Missing-value indicators: columns that are 1 where another column has a value, and missing as a level."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.errors import DataError
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Name

if TYPE_CHECKING:
    from tallybayes.data.table import Table

_SUFFIX = " (there)"  # of the name of an indicator column


def indicator_name(name: Any) -> str:
    """Return the name of the missing-value indicator of a column."""
    return f"{name}{_SUFFIX}"


def sources_of(name: Any) -> list[Name]:
    """Return the columns of which a name may be the missing-value indicator."""
    if not isinstance(name, str) or not name.endswith(_SUFFIX):
        return []
    source = name.removesuffix(_SUFFIX)
    return [source, int(source)] if source.isdecimal() else [source]


def is_indicator(name: Any, columns: Container[Any]) -> bool:
    """Return whether a name is the missing-value indicator of one of the columns."""
    return any(source in columns for source in sources_of(name))


def check_can_be_missing(table: Table, name: Name) -> None:
    """Raise DataError if a column can have no indicator: it is a block, or the indicator's name is taken."""
    if table.is_block(name) or indicator_name(name) in table.columns:
        what = "a block of columns" if table.is_block(name) else f"beside a column {indicator_name(name)!r}"
        raise DataError.wrong_type(f"{name!r}, WithMissing(...),", what, "one column, whose name leaves that one free")


def with_missing_level(table: Table, names: Iterable[Name], ordered: Callable[[Name], bool] = lambda _: False) -> Table:
    """Return the rows with "missing" as a level of some categorical columns; invalid cells stay missing."""
    recoded: dict[tuple[Name, bool], tuple[np.ndarray, Domain]] = {}
    for name in names:
        codes, domain = table._encode(name, ordered(name))
        if not domain.has_missing_level:
            codes = codes.astype(np.int32)
            missing = (codes < 0) & ~table.invalid_cells.get(name, np.zeros(len(codes), dtype=bool))
            domain = Domain(domain.levels, domain.name, is_sorted=domain.is_sorted, has_missing_level=True)
            codes[missing] = domain.index[None]
            recoded[name, ordered(name)] = codes, domain
    return table.recoded(recoded) if recoded else table


def hide_columns(table: Table, names: Iterable[Name]) -> Table:
    """Return the rows with every cell of some columns invalid: missing, and not informative."""
    from tallybayes.data.table import Table  # table.py imports this module

    columns, invalid = dict(table.columns), dict(table.invalid_cells)
    for name in names:
        columns[name] = np.full(table.n_rows, *((np.nan,) if table.kind(name) == "number" else (None, object)))
        invalid[name] = np.ones(table.n_rows, dtype=bool)
    hidden = Table(columns)
    hidden.invalid_cells = invalid
    return hidden


def with_invalid_indicators(table: Table, names: Iterable[Name], levels: Mapping[Name, Domain]) -> Table:
    """Return the rows with indicators set to NaN where the cell of their column is invalid.

    An invalid cell has a value, but not a known one: it counts neither as present nor as missing.

    Parameters
    ----------
    table : Table
        The rows. `invalid_cells` marks the cells that are out of support.
    names : iterable of names
        The names of columns. Those that are no indicators are skipped.
    levels : mapping
        The known levels of categorical columns. Cells with other levels are invalid.
    """
    for name in names:
        source = table.source_of(name)
        if source is None:
            continue
        indicator = np.array(table.numbers([name])[0])
        invalid = table.invalid_cells.get(source, np.zeros(len(indicator), dtype=bool))
        if source in levels:
            codes, (local,) = table.levels([source], lambda _: False)
            is_unseen = np.append(levels[source].positions_of(local.levels) < 0, False)
            invalid = invalid | is_unseen[np.asarray(codes.columns[0]).astype(np.intp)]
        if invalid.any():
            indicator[invalid] = np.nan
            table = table.with_column(name, indicator)
    return table


def apply_indicators(columns: dict[Name, Any]) -> dict[Name, Any]:
    """Return sampled columns without their indicators, and with missing cells where an indicator is 0."""
    out = {}
    for name, column in columns.items():
        if is_indicator(name, columns):
            continue
        indicator = columns.get(indicator_name(name))
        if indicator is not None and not np.all(indicator == 1):
            missing = np.asarray(indicator) == 0
            fill = np.nan if column.dtype.kind == "f" else None
            column = np.where(missing, fill, column if fill is not None else column.astype(object))
        out[name] = column
    return out

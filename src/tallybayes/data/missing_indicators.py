"""Informative missingness: names of missing-value indicators, and missing values as a level."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

import numpy as np

from tallybayes.errors import DataError
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Name

if TYPE_CHECKING:
    from tallybayes.data.table import Table

_PRESENT = " (present)"  # suffix of the name of a missing-value indicator


def indicator_name(name: object) -> str:
    """Return the name of the indicator column that is 1 where another column has a value."""
    return f"{name}{_PRESENT}"


def sources_of(name: object) -> list[Name]:
    """Return the columns of which a name may be the indicator."""
    return columns_named(name.removesuffix(_PRESENT)) if isinstance(name, str) and name.endswith(_PRESENT) else []


def columns_named(text: str) -> list[Name]:
    """Return the columns that a name may denote in the name of a derived column, where numbers are text."""
    return [text, int(text)] if text.isdecimal() else [text]


def check_absence(table: Table, name: Name) -> None:
    """Raise DataError if a column with `WithMissing` is a block, or another column has the name of its indicator."""
    if table.is_block(name) or indicator_name(name) in table.columns:
        found = "a block of columns" if table.is_block(name) else f"beside a column {indicator_name(name)!r}"
        raise DataError.wrong_type(f"{name!r}, WithMissing(...),", found, "one column without a column of that name")


def with_missing_level(table: Table, names: Iterable[Name], ordered: Collection[Name] = ()) -> Table:
    """Return the table with missing values as a level of some categorical columns; invalid cells stay missing."""
    encoded: dict[tuple[Name, bool], tuple[np.ndarray, Domain]] = {}
    for name in names:
        codes, domain = table.encoded(name, name in ordered)
        if not domain.has_missing_level:
            codes = codes.astype(np.int32)
            is_missing = (codes < 0) & ~table.invalid_cells.get(name, np.zeros(len(codes), dtype=bool))
            domain = Domain(domain.levels, domain.name, is_sorted=domain.is_sorted, has_missing_level=True)
            codes[is_missing] = domain.index[None]
            encoded[name, name in ordered] = codes, domain
    return table.recoded(encoded) if encoded else table

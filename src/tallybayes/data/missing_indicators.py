"""Absence as a value: columns that say whether the cells of others are there, and a level of cells that are not."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.errors import DataError
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Name

if TYPE_CHECKING:
    from tallybayes.data.table import Table

_THERE = " (there)"  # after the name of a column: whether its cells are


def indicator_name(name: Any) -> str:
    """What the column is called that says whether the cells of another are there."""
    return f"{name}{_THERE}"


def sources_of(name: Any) -> list[Name]:
    """The columns whose presence a name may stand for."""
    if not isinstance(name, str) or not name.endswith(_THERE):
        return []
    source = name.removesuffix(_THERE)
    return [source, int(source)] if source.isdecimal() else [source]


def check_absence(table: Table, name: Name) -> None:
    """Refuse to ask of a block whether its cells are there, or of a column beside which another is called so."""
    if table.is_block(name) or indicator_name(name) in table.columns:
        what = "a block of columns" if table.is_block(name) else f"beside a column {indicator_name(name)!r}"
        raise DataError.wrong_type(f"{name!r}, WithMissing(...),", what, "one column, whose name leaves that one free")


def with_missing_level(table: Table, names: Iterable[Name], ordered: Callable[[Name], bool] = lambda _: False) -> Table:
    """The rows, where absence is a level of some columns of labels; cells that are not known stay missing."""
    found: dict[tuple[Name, bool], tuple[np.ndarray, Domain]] = {}
    for name in names:
        codes, domain = table._encode(name, ordered(name))
        if not domain.has_missing_level:
            codes = codes.astype(np.int32)
            absent = (codes < 0) & ~table.invalid_cells.get(name, np.zeros(len(codes), dtype=bool))
            domain = Domain(domain.levels, domain.name, is_sorted=domain.is_sorted, has_missing_level=True)
            codes[absent] = domain.index[None]
            found[name, ordered(name)] = codes, domain
    return table.recoded(found) if found else table

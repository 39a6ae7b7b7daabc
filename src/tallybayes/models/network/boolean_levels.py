"""Booleans where levels are words, as files of networks have them: True is the level that spells true or yes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from tallybayes.data.table import Table
from tallybayes.tally.domain import boolean_levels
from tallybayes.tally.factor import Name


def booleans_to_levels(table: Table, levels: Mapping[Name, Iterable[Any]]) -> Table:
    """The rows, with the words of their nodes in columns of booleans.

    Parameters
    ----------
    table : Table
    levels : mapping from node to its levels
        Nodes whose levels spell no booleans keep their columns as they are.

    Returns
    -------
    Table
    """
    import pyarrow as pa

    columns = dict(table.columns)
    for name, known in levels.items():
        words = boolean_levels(known) if name in columns and not table.is_block(name) else {}
        if not words or not _may_be_boolean(table, name):
            continue
        block, (domain,) = table.levels([name], lambda _: False)
        if domain.kind == "bool":
            codes = np.asarray(block.columns[0]).astype(np.int32)
            dictionary = pa.array([words[level] for level in domain.levels], pa.string())
            columns[name] = pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), dictionary)
    if all(columns[name] is column for name, column in table.columns.items()):
        return table
    kept = Table(columns)
    kept.invalid_cells, kept.file_location = table.invalid_cells, table.file_location
    return kept


def _may_be_boolean(table: Table, name: Name) -> bool:
    """Whether a column's type leaves room for booleans: strings and numbers are looked at no further."""
    column = table.columns[name]
    return not (isinstance(column, np.ndarray) and column.dtype.kind in "iufUS") and "string" not in table._type(name)

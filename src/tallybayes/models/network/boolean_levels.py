"""Booleans for levels that are words, as in network files: True is the level that reads true or yes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from tallybayes.data.table import Table
from tallybayes.tally.domain import boolean_levels
from tallybayes.tally.factor import Name


def booleans_to_levels(table: Table, levels: Mapping[Name, Iterable[Any]]) -> Table:
    """Return the rows with boolean columns replaced by the levels of their nodes.

    Parameters
    ----------
    table : Table
    levels : mapping from node to its levels
        Nodes whose levels do not read as booleans keep their columns.

    Returns
    -------
    Table
    """
    import pyarrow as pa

    columns = dict(table.columns)
    for name, node_levels in levels.items():
        words = boolean_levels(node_levels) if name in columns and not table.is_block(name) else {}
        if words and _may_be_boolean(table, name):
            column, domain = table.encoded(name)
            if domain.kind == "bool":
                codes = column.astype(np.int32)
                dictionary = pa.array([words[level] for level in domain.levels], pa.string())
                columns[name] = pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), dictionary)
    if all(columns[name] is column for name, column in table.columns.items()):
        return table
    replaced = Table(columns)
    replaced.invalid_cells = table.invalid_cells
    replaced.file_location = table.file_location
    return replaced


def _may_be_boolean(table: Table, name: Name) -> bool:
    """Return whether the type of a column allows booleans; strings and numbers are not read."""
    column = table.columns[name]
    return not (isinstance(column, np.ndarray) and column.dtype.kind in "iufUS") and "string" not in table.type_name(
        name
    )

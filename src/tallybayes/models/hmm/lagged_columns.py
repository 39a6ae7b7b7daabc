"""Columns of steps that depend on those before them: the last values are laid beside every step."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tallybayes.errors import DataError
from tallybayes.families.family import Family
from tallybayes.models.inputs.sequences import Sequences
from tallybayes.tally.factor import Factor, Name


def own_factors(blocks: Iterable[tuple[tuple[Name, ...], Family]], given: tuple[str, ...]) -> list[Factor]:
    """A factor for every block of columns; every column that depends on its past is one by itself."""
    found = []
    for columns, family in blocks:
        apart = [(name,) for name in columns] if family.order else [columns]
        found += [Factor(names, given, family) for names in apart]
    return found


def orders_of(factors: Iterable[Factor]) -> dict[Name, int]:
    """How many steps back every column looks that does."""
    return {f.columns[0]: f.family.order for f in factors if f.family.order}


def with_lags(sequences: Sequences, factors: Iterable[Factor]) -> Sequences:
    """The sequences, whose columns that depend on their past are blocks: values before, the last first, and its own.

    NaN where there are none; sequences that are so already stay as they are.
    """
    orders = orders_of(factors)
    if not orders or not sequences.table.n_rows:
        return sequences
    if sequences.gaps is not None:
        raise DataError(
            f"column {next(iter(orders))!r} depends on the steps before it (Autoregressive), and silent steps lie "
            "between these, of which nobody knows the values.\n    Leave gaps= out: put them in as missing."
        )
    table, when = sequences.table, np.arange(int(sequences.offsets[-1]))
    when = when - np.repeat(sequences.offsets[:-1], sequences.lengths)
    blocks: dict[Name, Any] = {}
    for name, order in orders.items():
        if table.is_block(name):
            if table.width(name) == order + 1:
                continue
            raise DataError.wrong_type(f"column {name!r}, Autoregressive(...),", "a block of columns", "one column")
        (column,) = (np.asarray(part, dtype=float) for part in _single(table.numbers([name])))
        block = np.full((len(column), order + 1), np.nan)
        block[:, order] = column
        for back in range(1, order + 1):
            there = np.flatnonzero(when >= back)
            block[there, back - 1] = column[there - back]
        blocks[name] = block
    return sequences._replace(table=table.replaced({**table.columns, **blocks})) if blocks else sequences


def _single(numbers: Any) -> list[np.ndarray]:
    return [numbers[:, 0]] if isinstance(numbers, np.ndarray) else list(numbers)


def check_no_lags(factors: Iterable[Factor], what: str, why: str) -> None:
    """Refuse what would need values that are not known, where columns depend on them."""
    for name in orders_of(factors):
        raise DataError(f"{what} is not told of column {name!r}, which is Autoregressive: {why}")

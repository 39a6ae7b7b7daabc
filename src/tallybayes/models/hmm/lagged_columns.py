"""Autoregressive columns: the values of the previous time steps become lagged columns beside every time step."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tallybayes.errors import DataError
from tallybayes.estimation.scoring.factor_scorer import chunk_of
from tallybayes.families.family import Family
from tallybayes.models.inputs.sequences import Sequences
from tallybayes.tally.factor import Factor, Name


def emission_factors(blocks: Iterable[tuple[tuple[Name, ...], Family]], given: tuple[str, ...]) -> list[Factor]:
    """Return one factor for every block of columns, and one for every autoregressive column."""
    factors = []
    for columns, family in blocks:
        groups = [(name,) for name in columns] if family.order else [columns]
        factors += [Factor(names, given, family) for names in groups]
    return factors


def orders_of(factors: Iterable[Factor]) -> dict[Name, int]:
    """Return the autoregressive order of every autoregressive column."""
    return {f.columns[0]: f.family.order for f in factors if f.family.order}


def with_lags(sequences: Sequences, factors: Iterable[Factor]) -> Sequences:
    """Return the sequences with autoregressive columns as blocks: the lags, most recent first, then the value.

    Lags before the first time step are NaN. Columns that are blocks already are unchanged.
    """
    orders = orders_of(factors)
    if not orders or not sequences.table.n_rows:
        return sequences
    if sequences.gaps is not None:
        raise DataError(
            f"column {next(iter(orders))!r} is autoregressive and needs the values of unobserved time steps (gaps=).\n"
            "    Leave gaps= out and insert these time steps as missing values."
        )
    table = sequences.table
    when = sequences.positions
    blocks: dict[Name, Any] = {}
    for name, order in orders.items():
        if table.is_block(name):
            if table.width(name) == order + 1:
                continue
            raise DataError.wrong_type(f"column {name!r}, Autoregressive(...),", "a block of columns", "one column")
        column = chunk_of(table.numbers([name]), slice(None))[:, 0]
        block = np.full((len(column), order + 1), np.nan)
        block[:, order] = column
        for back in range(1, order + 1):
            steps = np.flatnonzero(when >= back)
            block[steps, back - 1] = column[steps - back]
        blocks[name] = block
    return sequences.with_table(table.replaced({**table.columns, **blocks})) if blocks else sequences


def check_no_lags(factors: Iterable[Factor], what: str, why: str, instead: str) -> None:
    """Raise DataError if a column is autoregressive, for methods that would need unknown lags."""
    for name in orders_of(factors):
        raise DataError(f"{what} does not support the autoregressive column {name!r}: {why}.\n    {instead}")

"""Frequency tables: values with their numbers of occurrences."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Real
from typing import Any

from tallybayes.errors import DataError, short_repr
from tallybayes.families.family import Family


def expand_frequency_table(counts: Mapping[Any, Any], family: Family) -> tuple[Any, Any, Any, list[Any]]:
    """Expand a frequency table.

    Parameters
    ----------
    counts : mapping from value to its number of occurrences, or from group to such a mapping
    family : Family

    Returns
    -------
    values, weights, groups, empty
        The values with their weights and groups (None without groups), and the values with count 0.
    """
    if not hasattr(counts, "items"):
        raise DataError.wrong_type("counts", short_repr(counts), "a mapping from value to its number of occurrences")
    if len(counts) and all(isinstance(table, Mapping) for _, table in counts.items()):
        values: list[Any] = []
        weights: list[float] = []
        groups: list[Any] = []
        empty: list[Any] = []
        for name, table in counts.items():
            own_values, own_weights, _, own_empty = expand_frequency_table(table, family)
            values += own_values
            weights += own_weights or [1.0] * len(own_values)
            groups += [name] * len(own_values)
            empty += own_empty
        return values, weights, groups, list(dict.fromkeys(empty))
    amounts = {value: _amount(value, number) for value, number in counts.items()}
    if family.columnwise or all(isinstance(value, tuple) for value in amounts):
        return list(amounts), list(amounts.values()), None, [value for value, number in amounts.items() if not number]
    if not family.nonnegative_cells:
        expected = f"rows, as tuples, because {family!r} describes whole rows"
        raise DataError.wrong_type("counts", short_repr(counts), expected)
    return [amounts], None, None, []  # one text, with the count of each word


def _amount(value: object, number: object) -> float:
    """Return a number of occurrences as a float; raise DataError if it is negative or not a number."""
    amount = -1.0 if isinstance(number, bool) or not isinstance(number, Real) else float(number)
    if not 0 <= amount < math.inf:
        raise DataError(f"counts has {short_repr(number)} for {value!r}; expected a number of at least 0.")
    return amount

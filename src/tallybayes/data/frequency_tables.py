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
    by_group = {name: table for name, table in counts.items() if isinstance(table, Mapping)}
    if by_group and len(by_group) == len(counts):
        parts = {name: expand_frequency_table(table, family) for name, table in by_group.items()}
        rows = [(value, name) for name, (values, *_) in parts.items() for value in values]
        weights = [w for values, group_weights, *_ in parts.values() for w in (group_weights or [1.0] * len(values))]
        empty = list(dict.fromkeys(value for *_, unobserved in parts.values() for value in unobserved))
        return [value for value, _ in rows], weights, [name for _, name in rows], empty
    amounts = {value: _amount(value, number) for value, number in counts.items()}
    if family.columnwise or all(isinstance(value, tuple) for value in amounts):
        values = list(amounts)
        return values, list(amounts.values()), None, [value for value, number in amounts.items() if not number]
    if not family.nonnegative_cells:
        raise DataError.wrong_type(
            "counts", short_repr(counts), f"rows, as tuples, because {family!r} describes whole rows"
        )
    return [amounts], None, None, []  # one text, with the count of each word


def _amount(value: object, number: object) -> float:
    """Return a number of occurrences as a float; raise DataError if it is negative or not a number."""
    amount = -1.0 if isinstance(number, bool) or not isinstance(number, Real) else float(number)
    if not 0 <= amount < math.inf:
        raise DataError(f"counts has {short_repr(number)} for {value!r}; expected a number of at least 0.")
    return amount

"""Values as how often each of them occurred: what stands in tables of textbooks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Real
from typing import Any

from tallybayes.errors import DataError, short_repr
from tallybayes.families.family import Family


def expand_frequency_table(counts: Any, family: Family) -> tuple[Any, Any, Any, list[Any]]:
    """Values, their weights, their groups (or None), and the values that never occurred, from how often each did."""
    if not hasattr(counts, "items"):
        raise DataError.wrong_type("counts", short_repr(counts), "a mapping from value to how often it occurred")
    by_group = {name: found for name, found in counts.items() if isinstance(found, Mapping)}
    if by_group and len(by_group) == len(counts):
        parts = {name: expand_frequency_table(found, family) for name, found in by_group.items()}
        rows = [(value, name) for name, (values, *_) in parts.items() for value in values]
        weights = [w for values, found, *_ in parts.values() for w in (found or [1.0] * len(values))]
        empty = list(dict.fromkeys(value for *_, never in parts.values() for value in never))
        return [value for value, _ in rows], weights, [name for _, name in rows], empty
    amounts = {value: _amount(value, number) for value, number in counts.items()}
    if family.columnwise or all(isinstance(value, tuple) for value in amounts):
        values = list(amounts)
        return values, list(amounts.values()), None, [value for value, number in amounts.items() if not number]
    if not family.nonnegative_cells:
        raise DataError.wrong_type(
            "counts", short_repr(counts), f"rows, as tuples, because {family!r} describes whole rows"
        )
    return [amounts], None, None, []  # one text, and how often it has each word


def _amount(value: Any, number: Any) -> float:
    found = -1.0 if isinstance(number, bool) or not isinstance(number, Real) else float(number)
    if not 0 <= found < math.inf:
        raise DataError(f"counts has {short_repr(number)} for {value!r}; expected how often it occurred, from 0 on.")
    return found

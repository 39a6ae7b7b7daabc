"""Cells that cannot be what their column was counted as: missing where something is asked, with one warning."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from typing import Any, ParamSpec, TypeVar

import numpy as np

from tallybayes.data.encoding import is_missing
from tallybayes.data.numeric_columns import is_number, numeric
from tallybayes.data.table import Table
from tallybayes.errors import DataError, LabelError, printable, short_repr
from tallybayes.families._shared.blocks import SparseRows
from tallybayes.families.family import Family, out_of_support_cells
from tallybayes.tally.domain import Domain, is_text
from tallybayes.tally.factor import Name
from tallybayes.warnings import InvalidValueWarning, warn

Parameters = ParamSpec("Parameters")
Answer = TypeVar("Answer")
Found = dict[Name, dict[str, int]]  # the strange cells of every column, as shown, and how often each is there
_ASKED: ContextVar[Found | None] = ContextVar("asked", default=None)  # of the call that is being answered
_FIRST: Found = {}  # stands for a call that has met no such cell yet
_SHOWN = 3  # different values of a column, and columns, in a warning


def answering(method: Callable[Parameters, Answer]) -> Callable[Parameters, Answer]:
    """A method that answers about rows, made to take cells that could not have been counted for missing.

    Nothing is looked for beforehand. Where the method fails, it is asked once more, and whoever opens the rows then
    leaves such cells out (`tolerated`). What it calls on its way is part of one question: there is one warning.
    """

    @functools.wraps(method)
    def answer(*given: Parameters.args, **named: Parameters.kwargs) -> Answer:
        if _ASKED.get() is not None:
            return method(*given, **named)
        token = _ASKED.set(_FIRST)
        try:
            return method(*given, **named)
        except (DataError, LabelError):
            if getattr(given[0], "unseen", "missing") == "error":
                raise
        finally:
            _ASKED.reset(token)
        found: Found = {}
        token = _ASKED.set(found)
        try:
            result = method(*given, **named)
        finally:
            _ASKED.reset(token)
        if found:
            _warn(found, can_refuse="unseen" in vars(given[0]))
        return result

    return answer


def looking() -> bool:
    """Whether strange cells are being left out."""
    found = _ASKED.get()
    return found is not None and found is not _FIRST


def tolerated(table: Table, parts: Callable[[], Iterable[tuple[Sequence[Name], Family, Sequence[Domain]]]]) -> Table:
    """The rows that something is asked of: where that failed before, without the cells that cannot be what they are.

    ``parts`` gives the columns, the family and the domains of every factor. A column in which no known cell of several
    rows fits is of another kind, not strange in places, and stays as it is, to be refused.
    """
    found = _ASKED.get()
    if found is None or found is _FIRST:
        return table
    columns, unknown = dict(table.columns), dict(table.invalid_cells)
    for names, family, domains in parts():
        for place, name in enumerate(names):
            if name in columns:
                domain = domains[place] if family.cell_type == "codes" else None
                columns[name] = _mended(columns[name], name, family, domain, found, unknown)
    kept = Table(columns)
    kept.invalid_cells = unknown
    return kept


def invalid_cells(
    table: Table, parts: Callable[[], Iterable[tuple[Sequence[Name], Family, Sequence[Domain]]]]
) -> dict[Name, np.ndarray]:
    """Which cells cannot be what their columns were counted as, by column; `parts` as for `tolerated`."""
    token = _ASKED.set({})
    try:
        return tolerated(table, parts).invalid_cells
    finally:
        _ASKED.reset(token)


def _mended(
    column: Any, name: Name, family: Family, domain: Domain | None, found: Found, unknown: dict[Name, np.ndarray]
) -> Any:
    """A column without its strange cells, which are noted as unknown; the same where it has none, or others too few."""
    if isinstance(column, SparseRows):
        strange = out_of_support_cells(family, column.data)
        if not strange.any() or not family.accepts_missing:
            return column
        _note(found, name, column.data[strange].tolist())
        return column._replace(data=np.where(strange, np.nan, column.data))
    cells, known, strange = _labels(column, domain) if domain is not None else _numbers(column, name, family)
    if not strange.any() or (len(cells) > 1 and not (known & ~strange).any()):
        return column
    _note(found, name, cells[strange].tolist())
    kept = cells.copy()
    kept[strange] = None if kept.dtype == object else np.nan
    unknown[name] = strange
    return kept


def _labels(column: Any, domain: Domain) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The cells of a column of labels, which are known, and which are of another kind than its levels."""
    if hasattr(column, "dictionary") and all(_fits(value, domain.kind) for value in column.dictionary.to_pylist()):
        none = np.zeros(len(column), dtype=bool)
        return np.empty(0, dtype=object), none, none
    listed = column.to_pylist() if hasattr(column, "to_pylist") else np.asarray(column, dtype=object).tolist()
    cells = np.empty(len(listed), dtype=object)
    cells[:] = listed
    known = np.array([not is_missing(value) for value in listed], dtype=bool)
    strange = [there and not _fits(value, domain.kind) for value, there in zip(listed, known.tolist(), strict=True)]
    return cells, known, np.array(strange, dtype=bool)


def _fits(value: Any, kind: str | None) -> bool:
    """Whether a label is of a domain's kind; infinities are none, but no mistake to pass over either."""
    if isinstance(value, bool | np.bool_):
        return kind in ("bool", None)
    if isinstance(value, str):
        return kind in ("string", None) and is_text(value)
    if not is_number(value):
        return False
    if not math.isfinite(value):
        return True
    if kind not in ("int", None):
        return False
    return isinstance(value, int | np.integer) or (value == int(value) and abs(value) < 2**53)


def _numbers(column: Any, name: Name, family: Family) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The cells of a column of numbers, which are known, and which are none or lie outside of what a family counts."""
    try:
        numbers = np.asarray(numeric(column, name), dtype=np.float64)
    except DataError:
        cells = np.asarray(column, dtype=object)
        numbers = np.array([float(v) if is_number(v) else np.nan for v in cells.ravel().tolist()]).reshape(cells.shape)
        missing = np.array([is_missing(value) for value in cells.ravel().tolist()], dtype=bool).reshape(cells.shape)
        strange = np.isnan(numbers) & ~missing
        return cells, ~missing, strange | out_of_support_cells(family, numbers)
    known = ~np.isnan(numbers)
    strange = out_of_support_cells(family, numbers) if family.accepts_missing else np.zeros(numbers.shape, dtype=bool)
    return numbers, known, strange


def _note(found: Found, name: Name, values: list[Any]) -> None:
    """Remember what was left out; the same rows may be opened several times."""
    counts: dict[str, int] = {}
    for value in values:
        shown = f"{value:.6g}" if isinstance(value, float) else short_repr(value)
        counts[shown] = counts.get(shown, 0) + 1
    found[name] = counts


def _warn(found: Found, *, can_refuse: bool) -> None:
    """One warning for all columns."""
    parts = []
    for name, counts in list(found.items())[:_SHOWN]:
        more = f" and {len(counts) - _SHOWN} others" if len(counts) > _SHOWN else ""
        n_cells = sum(counts.values())
        cells = "1 cell" if n_cells == 1 else f"{n_cells} cells"
        parts.append(f"{', '.join(list(counts)[:_SHOWN])}{more} in column {name!r} ({cells})")
    if len(found) > _SHOWN:
        parts.append(f"and in {len(found) - _SHOWN} more columns")
    refuse = " Pass unseen='error' to refuse them." if can_refuse else ""
    said = f"cells that cannot be what their columns were counted as are taken for missing: {'; '.join(parts)}.{refuse}"
    warn(printable(said), InvalidValueWarning)

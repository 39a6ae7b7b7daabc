"""Invalid cells: values that the family of their column cannot have, found once, when rows are read."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from tallybayes.data.encoding import is_missing, is_number, numeric
from tallybayes.data.table import Table
from tallybayes.data.text_columns import Texts
from tallybayes.errors import DataError, LabelError, printable, short_repr
from tallybayes.families._shared.blocks import SparseRows
from tallybayes.families.family import Family
from tallybayes.families.protocols.cell_checks import first_invalid_cell, out_of_support, out_of_support_cells
from tallybayes.tally.domain import Domain, is_text
from tallybayes.tally.factor import Name
from tallybayes.warnings import InvalidValueWarning, warn

ColumnSpec: TypeAlias = tuple[Sequence[Name], Family, Sequence[Domain]]  # columns of a factor, family, levels
_Cells: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray]  # the cells, which are not missing, which are invalid
_MAX_SHOWN = 3  # values of a column, and columns, in a warning
_CHUNK = 65_536  # cells that are checked at a time, so that temporary arrays stay in the cache
_LEVEL_DTYPES = {"int": "iu", "bool": "b", "string": "U"}  # kinds of NumPy's types whose cells all fit a kind of level


def mask_invalid_cells(table: Table, specs: Iterable[ColumnSpec], unseen: str | None = "missing") -> Table:
    """Return the rows with invalid cells as missing values, and warn once about them.

    A cell is invalid if the family of its column cannot have it, such as −1 in a Poisson column or 0.5 in a column of
    integer levels. A column of several rows without any valid cell is of another type: it stays, and scoring raises.

    Parameters
    ----------
    table : Table
    specs : iterable of (columns, family, domains)
        The columns, the family and the known levels of every factor.
    unseen : {"missing", "error", ...} or None
        With "error" nothing is masked, and scoring raises. None: the model has no such parameter.
    """
    if unseen == "error":
        return table
    masks: dict[Name, np.ndarray] = {}
    columns: dict[Name, Any] = {}
    counts: dict[Name, Counter[str]] = {}
    read: list[Name] = []
    for names, family, domains in specs:
        for index, name in enumerate(names):
            if name not in table.columns or isinstance(table.columns[name], Texts):
                continue
            read.append(name)
            if isinstance(block := table.columns[name], SparseRows):
                if (invalid := _invalid_entries(family, block.data)) is not None:
                    columns[name] = block._replace(data=np.where(invalid, np.nan, block.data))
                    counts[name] = _count_values(block.data[invalid])
                continue
            is_categorical = family.cell_type == "codes"
            found = (
                _check_levels(table, name, domains[index]) if is_categorical else _check_numbers(table, name, family)
            )
            if found is None:
                continue
            cells, present, invalid = found
            if invalid.any() and (len(cells) == 1 or (present & ~invalid).any()):
                masks[name] = invalid
                columns[name] = _with_missing(cells, invalid)
                counts[name] = _count_values(cells[invalid])
    if not columns or any(_has_infinity(table.columns[name]) for name in read):
        return table  # scoring raises an error for infinity
    _warn(counts, has_option=unseen is not None)
    masked = Table({**table.columns, **columns})
    masked.invalid_cells = {**table.invalid_cells, **masks}
    return masked


def _with_missing(cells: np.ndarray, invalid: np.ndarray) -> np.ndarray:
    """Return a copy of the cells with missing values in place of invalid ones."""
    masked = cells.copy()
    masked[invalid] = None if masked.dtype == object else np.nan
    return masked


def _check_levels(table: Table, name: Name, domain: Domain) -> _Cells | None:
    """Return the cells of a categorical column, which are present and which are invalid; None if all are valid."""
    column = table.columns[name]
    if isinstance(column, np.ndarray) and domain.kind and column.dtype.kind in _LEVEL_DTYPES[domain.kind]:
        return None
    try:  # the codes are kept by the table, and scoring uses them
        table.encoded(name)[1].in_kind_of(domain)
        return None
    except LabelError:
        pass
    values = column.to_pylist() if hasattr(column, "to_pylist") else np.asarray(column, dtype=object).tolist()
    cells = np.empty(len(values), dtype=object)
    cells[:] = values
    present = np.array([not is_missing(value) for value in values], dtype=bool)
    fits = np.array([_fits(value, domain.kind) for value in values], dtype=bool)
    return cells, present, present & ~fits


def _fits(value: object, kind: str | None) -> bool:
    """Return whether a value can be a level of a domain of this kind. Infinity passes here; scoring raises for it."""
    if isinstance(value, bool | np.bool_):
        return kind in ("bool", None)
    if isinstance(value, str):
        return kind in ("string", None) and is_text(value)
    if not is_number(value):
        return False
    number: Any = value
    if not math.isfinite(number):
        return True
    is_integer = isinstance(number, int | np.integer) or (number == int(number) and abs(number) < 2**53)
    return kind in ("int", None) and is_integer


def _check_numbers(table: Table, name: Name, family: Family) -> _Cells | None:
    """Return the cells of a numeric column, which are present and which are invalid; None if all are valid."""
    column = table.columns[name]
    if not isinstance(column, np.ndarray) or column.dtype.kind not in "biuf":
        try:
            column = np.asarray(numeric(column, name), dtype=np.float64)
        except DataError:
            return _check_objects(column, family)
    if _invalid_entries(family, column) is None:
        return None
    numbers = np.asarray(column, dtype=np.float64)
    return numbers, ~np.isnan(numbers), out_of_support_cells(family, numbers)


def _check_objects(column: Any, family: Family) -> _Cells:
    """As `_check_numbers`, for a column in which some cell is not a number."""
    cells = np.asarray(column, dtype=object)
    values = cells.ravel().tolist()
    numbers = np.array([float(v) if is_number(v) else np.nan for v in values]).reshape(cells.shape)
    present = ~np.array([is_missing(value) for value in values], dtype=bool).reshape(cells.shape)
    return cells, present, (np.isnan(numbers) & present) | out_of_support_cells(family, numbers)


def _invalid_entries(family: Family, values: np.ndarray) -> np.ndarray | None:
    """Return which finite values a family cannot have; None if there is none, or if it accepts no missing values.

    Values are checked in chunks. Families whose support is the real line are not checked.
    """
    if not family.accepts_missing or not values.size:
        return None
    no_rule = out_of_support(family, np.zeros(0)) is None
    if no_rule and (family.is_continuous or first_invalid_cell(family, np.atleast_2d(values.T).T) is None):
        return None
    step = max(1, _CHUNK // max(1, math.prod(values.shape[1:])))
    chunks = (values[start : start + step] for start in range(0, len(values), step))
    if no_rule or any(out_of_support_cells(family, chunk).any() for chunk in chunks):
        invalid = out_of_support_cells(family, np.asarray(values, dtype=np.float64))
        return invalid if invalid.any() else None
    return None


def _has_infinity(column: Any) -> bool:
    """Return whether a column has an infinite number."""
    if isinstance(column, np.ndarray) and column.dtype.kind == "f":
        return bool(np.isinf(column).any())
    if isinstance(column, SparseRows):
        return _has_infinity(column.data)
    values = column.to_pylist() if hasattr(column, "to_pylist") else np.asarray(column, dtype=object).ravel()
    return any(isinstance(value, float) and math.isinf(value) for value in values)


def _count_values(values: np.ndarray) -> Counter[str]:
    """Return how often each invalid value occurs, as it is displayed."""
    return Counter(f"{value:.6g}" if isinstance(value, float) else short_repr(value) for value in values.tolist())


def _warn(counts: dict[Name, Counter[str]], *, has_option: bool) -> None:
    """Warn once about the invalid cells of all columns."""
    parts = []
    for name, by_value in list(counts.items())[:_MAX_SHOWN]:
        more = f" and {len(by_value) - _MAX_SHOWN} others" if len(by_value) > _MAX_SHOWN else ""
        n_cells = by_value.total()
        cells = "1 cell" if n_cells == 1 else f"{n_cells} cells"
        parts.append(f"{', '.join(list(by_value)[:_MAX_SHOWN])}{more} in column {name!r} ({cells})")
    if len(counts) > _MAX_SHOWN:
        parts.append(f"and in {len(counts) - _MAX_SHOWN} more columns")
    hint = ", or pass unseen='error' to raise an error" if has_option else ""
    warn(
        f"Invalid values are treated as missing: {printable('; '.join(parts))}.\n    Correct them{hint}.",
        InvalidValueWarning,
    )

"""The labels of rows, some of which may be missing, and names for classes without labeled rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Any

import numpy as np

from tallybayes.data.encoding import count_levels, is_missing
from tallybayes.data.table import Table
from tallybayes.errors import DataError, LabelError
from tallybayes.models.inputs.features import continuous_target
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Name

_MOST_NUMBERS = 20  # distinct integers that are accepted as classes for any number of rows


@dataclass(frozen=True, eq=False)
class Labels:
    """The labels of rows: codes (−1 if missing), and their levels."""

    codes: np.ndarray
    domain: Domain

    @cached_property
    def rows(self) -> np.ndarray:
        """The number of rows of each level."""
        return count_levels(self.codes, len(self.domain.levels))

    @cached_property
    def n_missing(self) -> int:
        """The number of rows without a label."""
        is_complete = self.codes.min(initial=0) >= 0  # mostly; it needs no copy
        return 0 if is_complete else int(np.count_nonzero(self.codes < 0))

    def check_complete(self, hint: str, marker: Any = None) -> None:
        """Raise LabelError with the first row without a label, if there is one."""
        if self.n_missing:
            missing = np.flatnonzero(self.codes < 0)
            shown = "" if marker is None else f", or {marker!r}"
            raise LabelError(
                f"Input y contains NaN{shown}: the label of row {int(missing[0])} is missing ({len(missing)} of "
                f"{len(self.codes)} are); expected a label for every row.\n    {hint}"
            )

    def check_categorical(self, target: Name) -> None:
        """Raise LabelError if most labels are distinct integers, so that folds would lack classes."""
        n = int((self.rows > 0).sum())  # codes of a range of integers may include levels without rows
        if self.domain.kind == "int" and n > _MOST_NUMBERS and n > len(self.codes) / 2:
            raise LabelError(
                f"y (column {target!r}) has {n} distinct integers in {len(self.codes)} rows; expected classes.\n"
                "    To predict numbers use tb.LinearRegression; for classes bin them, pd.qcut(y, 4).astype(str), "
                "or use y.astype(str)."
            )


def read_labels(table: Table, target: Name, marker: Any = None) -> Labels:
    """Return the labels of the rows; the table encodes them once.

    Parameters
    ----------
    table : Table
    target : name of the column of the labels
    marker : label, optional
        The value of a missing label, besides None and NaN.
    """
    column = table.columns.get(target)
    if isinstance(column, np.ndarray) and column.strides == (0,) and len(column):  # one label for all rows
        first = read_labels(Table({target: column[:1].copy()}), target, marker)
        return Labels(np.full(len(column), first.codes[0], dtype=np.int8), first.domain)
    if marker is not None:
        table = _without_marker(table, target, marker)
    try:
        codes, domain = table.encoded(target, True)
    except LabelError as error:
        raise continuous_target(error) from None
    marked = [] if marker is None else [k for k, level in enumerate(domain.levels) if _is_same(level, marker)]
    return Labels(np.where(np.isin(codes, marked), -1, codes.astype(np.intp)) if marked else codes, domain)


def _without_marker(table: Table, target: Name, marker: Any) -> Table:
    """Return the table without the value of a missing label in labels of objects, where it may have another type."""
    if not is_missing(marker) and not isinstance(marker, bool | int | float | str | np.generic):
        raise DataError(f"missing_label is {marker!r}; expected a label, such as -1 or '?', or None.")
    column = table.column(target)
    if is_missing(marker) or not isinstance(column, np.ndarray) or column.dtype != object:
        return table
    shown = [None if _is_same(label, marker) else label for label in column]
    return Table({target: np.array([*shown, None], dtype=object)[:-1]})


def new_names(levels: list[Any], n_more: int, taken: Any = None) -> list[Any]:
    """Return names for new classes: the next integers or, among strings, "new 1", "new 2" and so on.

    No name is `taken`, the value of a missing label.
    """
    names: Iterator[Any]
    if levels and isinstance(levels[0], bool):
        if len(levels) + isinstance(taken, bool | np.bool_) + n_more > 2:
            raise DataError("there are no classes besides False and True.\n    Label the rows with numbers or strings.")
        names = iter([False, True])
    elif levels and isinstance(levels[0], str):
        names = (f"new {k}" for k in count(1))
    else:
        names = count(max(levels, default=-1) + 1)
    free = (name for name in names if name not in levels and (taken is None or not _is_same(name, taken)))
    return [next(free) for _ in range(n_more)]


def _is_same(label: Any, marker: Any) -> bool:
    """Return whether a label is the marker; True differs from 1."""
    if isinstance(label, bool | np.bool_) != isinstance(marker, bool | np.bool_):
        return False
    return not is_missing(label) and not is_missing(marker) and bool(label == marker)

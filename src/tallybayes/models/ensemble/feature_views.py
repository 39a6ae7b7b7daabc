"""Feature views: the columns of a table as one kind of candidate reads them. Frozen values, stored in files."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes._utils.frozen_value import FrozenValue
from tallybayes.data.dates import origins
from tallybayes.data.indicator_columns import hidden
from tallybayes.data.table import Table
from tallybayes.data.text_columns import Texts
from tallybayes.errors import DataError
from tallybayes.models.classification.estimated_classifier import estimates_of
from tallybayes.models.inputs.features import free_name
from tallybayes.tally.factor import Name
from tallybayes.typing import Labels

if TYPE_CHECKING:
    from tallybayes.models.classification.class_conditional import ClassConditionalModel

BLOCK = "columns as numbers"  # the name of the block of a NumericBlock


@dataclass(frozen=True, eq=False, repr=False)
class RawColumns(FrozenValue):
    """Columns as they are, plus missing-value indicators.

    Parameters
    ----------
    names : tuple of names
    indicator_columns : tuple of names
        Columns with a missing-value indicator.
    """

    names: tuple[Name, ...]
    indicator_columns: tuple[Name, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.names, tuple | list) or not isinstance(self.indicator_columns, tuple | list):
            raise DataError.wrong_type("the columns of a view", f"{self!r:.60}", "their names")

    def apply(self, table: Table, *more: Name) -> Table:
        """Return the table of this view, with `more` columns that are not features."""
        columns = {name: table.column(name) for name in (*more, *self.names)}
        out = Table(columns)
        out._encoded = {key: encoded for key, encoded in table._encoded.items() if key[0] in columns}
        for name in self.indicator_columns:
            flags = is_missing(table, name)
            out = Table({**out.columns, absent_name(name, table): flags})
            out._encoded = {key: encoded for key, encoded in table._encoded.items() if key[0] in columns}
        return out

    def hide(self, table: Table, name: Name) -> Table:
        """Return a table made by `apply` with all cells of one feature missing."""
        flags = list(table.columns)[len(table.columns) - len(self.indicator_columns) :]
        indicators = [flag for flag, source in zip(flags, self.indicator_columns, strict=True) if source == name]
        return hidden(table, [*indicators, *([name] if name in self.names else [])])

    def read_names(self) -> list[Name]:
        """Return the columns that rows must have."""
        return list(dict.fromkeys([*self.names, *self.indicator_columns]))

    def describes(self, model: ClassConditionalModel) -> bool:
        """Return whether a model from a file has the columns of this view."""
        known = set(self.names)
        more = {name for name in model._required_columns if known.isdisjoint(origins(name))}
        return len(more) <= len(self.indicator_columns)

    def column_names(self) -> dict[Any, Any]:
        """Return the display names of columns that differ from their names: none here."""
        return {}

    def owners(self, table: Table) -> dict[Any, Name]:
        """Return the feature that each column of a table made by `apply` belongs to, where the names differ."""
        flags = list(table.columns)[len(table.columns) - len(self.indicator_columns) :]
        return dict(zip(flags, self.indicator_columns, strict=True))


@dataclass(frozen=True, eq=False, repr=False)
class NumericBlock(FrozenValue):
    """All columns as one numeric block: numbers without missing cells, and indicators of missing cells and levels.

    Parameters
    ----------
    numbers : tuple of (name, value)
        The value replaces missing cells.
    indicator_columns : tuple of names
        Columns with a missing-value indicator.
    levels : tuple of (name, levels)
        Each level gets an indicator.
    """

    numbers: tuple[tuple[Name, float], ...] = ()
    indicator_columns: tuple[Name, ...] = ()
    levels: tuple[tuple[Name, tuple[object, ...]], ...] = ()

    def __post_init__(self) -> None:
        pairs: list[tuple[Any, Any]] = [(pair, float) for pair in self.numbers]
        pairs += [(pair, tuple | list) for pair in self.levels]
        for pair, kind in pairs:
            if len(pair) != 2 or not isinstance(pair[1], kind) or (kind is float and not math.isfinite(pair[1])):
                raise DataError.wrong_type("a column as numbers", f"{pair!r:.60}", "a name with a number, or levels")
        if not isinstance(self.indicator_columns, tuple | list):
            raise DataError.wrong_type(
                "columns with missing-value indicators", f"{self.indicator_columns!r:.60}", "names"
            )

    @property
    def width(self) -> int:
        """The number of columns of the block."""
        return len(self.numbers) + len(self.indicator_columns) + sum(len(levels) for _, levels in self.levels)

    def hide(self, table: Table, name: Name) -> Table:
        """Return a block made by `apply` with all cells of one feature missing."""
        block = np.array(table.columns[BLOCK])
        block[:, [index for (_, index), owner in self.owners(table).items() if owner == name]] = np.nan
        return Table({**table.columns, BLOCK: block})

    def owners(self, _: Table) -> dict[Any, Name]:
        """Return the feature that each column of the block belongs to."""
        owners = [*(owner for owner, _ in self.numbers), *self.indicator_columns]
        owners += [owner for owner, levels in self.levels for _ in levels]
        return {(BLOCK, index): owner for index, owner in enumerate(owners)}

    def read_names(self) -> list[Name]:
        """Return the columns that rows must have."""
        return [*(name for name, _ in self.numbers), *self.indicator_columns, *(name for name, _ in self.levels)]

    def describes(self, model: ClassConditionalModel) -> bool:
        """Return whether a model from a file has the block of this view."""
        factors = estimates_of(model).feature_factors
        blocks = [(factor.columns, statistics.n_columns) for factor, statistics in factors]
        return blocks == [((BLOCK,), self.width)]

    def column_names(self) -> dict[Any, Any]:
        """Return the display names of the columns of the block."""
        names: list[Any] = [name for name, _ in self.numbers]
        names += [f"{name} is missing" for name in self.indicator_columns]
        names += [f"{name} = {level}" for name, levels in self.levels for level in levels]
        return {(BLOCK, index): name for index, name in enumerate(names)}

    def apply(self, table: Table, *more: Name) -> Table:
        """Return the table of this view, with `more` columns that are not features."""
        block = np.zeros((table.n_rows, self.width))
        index = 0
        for name, value in self.numbers:
            column = numbers_of(table, name)
            check_finite(column, name)
            block[:, index] = np.where(np.isnan(column), value, column)
            index += 1
        for name in self.indicator_columns:
            block[:, index] = is_missing(table, name)
            index += 1
        for name, levels in self.levels:
            column, domain = table.encoded(name)
            code_of = {level: number for number, level in enumerate(domain.levels)}
            for level in levels:
                block[:, index] = column == code_of[level] if level in code_of else 0.0
                index += 1
        columns = {name: table.columns[name] for name in more}
        out = Table({**columns, BLOCK: block})
        out._encoded = {key: encoded for key, encoded in table._encoded.items() if key[0] in columns}
        return out


def numbers_of(table: Table, name: Name) -> np.ndarray:
    """A column of numbers."""
    cells = table.numbers([name])
    return np.asarray(cells[:, 0] if isinstance(cells, np.ndarray) else cells[0], dtype=np.float64)


def check_finite(column: np.ndarray, name: Name) -> None:
    """Raise DataError if a column has an infinite number."""
    lost = np.isinf(column)
    if lost.any():
        row = int(lost.argmax())
        raise DataError.bad_cell(float(column[row]), row, name, "a finite number (or missing)")


def is_missing(table: Table, name: Name) -> np.ndarray:
    """Return which cells of a column are missing."""
    if table.kind(name) == "number":
        return np.isnan(numbers_of(table, name))
    if isinstance(texts := table.columns[name], Texts):
        return np.zeros(table.n_rows, dtype=bool) if texts.missing is None else texts.missing
    return table.encoded(name)[0].astype(np.int64) < 0


def absent_name(name: Name, table: Table) -> str:
    """Return the name of a column's missing-value indicator."""
    return free_name(f"{name} is missing", table.columns)


def check_columns(table: Table, target: Labels) -> None:
    """Raise DataError for columns that no candidate reads: blocks and infinite numbers."""
    for name in table.columns:
        if name != target and table.is_block(name) and table.kind(name) != "text":
            what = "a sparse block" if table.kind(name) == "sparse" else "a block of columns"
            hint = "tb.NaiveBayes takes sparse blocks of words."
            raise DataError.wrong_type(f"column {name!r}", what, "one dense column", hint)
        if name != target and table.kind(name) == "number":
            check_finite(numbers_of(table, name), name)

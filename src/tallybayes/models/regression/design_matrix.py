"""Design: which columns are inputs and targets, and what is made of the inputs: powers, products, indicators."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations_with_replacement
from typing import Any, NamedTuple, Self

import numpy as np

from tallybayes._utils.frozen_value import from_json, to_json
from tallybayes._utils.memory import require_memory
from tallybayes.data.dates import dates_of, with_dates_whole
from tallybayes.data.numeric_columns import numeric
from tallybayes.data.table import Table
from tallybayes.errors import DataError, FileError, LabelError
from tallybayes.models.inputs.labels import read_labels
from tallybayes.tally.factor import Name

Levels = Mapping[Name, tuple[Any, ...]]
_DEFAULT_TARGET = re.compile(r"y\d*_*")


class MissingInputError(DataError):
    """A cell of an input is missing."""


class Design(NamedTuple):
    """The inputs of a regression as its first rows had them, and the highest degree that is counted."""

    targets: tuple[Name, ...]
    numbers: tuple[Name, ...]
    labels: tuple[Name, ...]
    by: Name | None
    degree: int
    by_name: bool  # whether targets are columns of X
    single: bool  # whether y was one column by itself
    n_features: int | None
    feature_names: tuple[str, ...] | None
    dates: tuple[Name, ...] = ()  # the columns of dates, which are read as their parts

    @property
    def unnamed(self) -> bool:
        """Whether the targets have default names, because y had none."""
        return not self.by_name and all(_DEFAULT_TARGET.fullmatch(str(name)) for name in self.targets)

    @property
    def inputs(self) -> list[Name]:
        """The columns that rows must have."""
        return [*self.numbers, *self.labels, *(() if self.by is None else (self.by,))]

    @property
    def columns_in(self) -> list[Name]:
        """The columns that rows must have, dates whole."""
        return list(with_dates_whole(dict.fromkeys(self.inputs, 1), self.dates))

    def terms(self, degree: int) -> Iterator[tuple[int, ...]]:
        """The monomials of the numbers, as places of their factors; those of lower degree come first."""
        for power in range(1, degree + 1):
            yield from combinations_with_replacement(range(len(self.numbers)), power)

    def n_terms(self, degree: int) -> int:
        """How many monomials there are."""
        return math.comb(len(self.numbers) + degree, degree) - 1

    def check_size(self, n_groups: int = 1) -> None:
        """Refuse more terms than memory holds the products of, before any of them is made."""
        n = self.n_terms(self.degree) + len(self.targets)
        require_memory(
            8 * 32 * n_groups * n * n,
            f"Regression: products of the {n:,} terms of degree {self.degree} of {len(self.numbers)} columns",
            "Use a lower degree, or fewer columns.",
        )

    def term_names(self, degree: int) -> list[Name]:
        """What monomials are called: a, b, a^2, a b, b^2 and so on."""
        return [_called([self.numbers[place] for place in term]) for term in self.terms(degree)]

    def indicators(self, levels: Levels) -> list[str]:
        """What the columns are called that say whether a label is of a level."""
        return [indicator(name, level) for name in self.labels for level in levels[name]]

    def columns(self, levels: Levels) -> list[Name]:
        """All that is counted of the inputs."""
        names = [*self.term_names(self.degree), *self.indicators(levels)]
        twice = next((name for name in {*names} & {*self.targets}), None) or _first_twice(names)
        if twice is not None:
            raise DataError(f"two columns would be called {twice!r}; expected a name for every one.\n    Rename one.")
        return names

    def read_columns(self, levels: Levels, degree: int, *, intercept: bool) -> list[Name]:
        """Those that have a weight: of a lower degree, and without the first level of labels, from which others differ.

        Without an intercept the first column of labels keeps all its levels.
        """
        names = self.term_names(degree)
        for place, name in enumerate(self.labels):
            kept = levels[name] if not intercept and place == 0 else levels[name][1:]
            names += [indicator(name, level) for level in kept]
        return names

    def missing(self, table: Table, levels: Levels | None = None) -> np.ndarray:
        """Which cells of the inputs are missing, (n, inputs): parts of dates also where their `levels` are others."""
        out = np.zeros((table.n_rows, len(self.numbers) + len(self.labels)), dtype=bool)
        for place, name in enumerate(self.numbers):
            if not table.is_block(name):
                cells = np.asarray(numeric(table._column(name), name))
                out[:, place] = np.isnan(cells) if cells.dtype.kind == "f" else False
        for place, name in enumerate(self.labels, len(self.numbers)):
            labels = read_labels(table, name)
            codes = np.asarray(labels.codes).astype(np.int64)
            out[:, place] = codes < 0
            if levels is not None and any(date in self.dates for date in dates_of(name)):
                strange = np.array([level not in levels[name] for level in labels.domain.levels] + [True])
                out[:, place] = strange[codes]
        return out

    def without(self, names: Collection[Name]) -> Self:
        """The design without some of the inputs."""
        numbers, labels = (tuple(n for n in one if n not in names) for one in (self.numbers, self.labels))
        return self._replace(numbers=numbers, labels=labels)

    def expand(self, table: Table, levels: Levels) -> dict[Name, np.ndarray]:
        """The columns of some rows; what is missing is refused by name."""
        made: dict[tuple[int, ...], np.ndarray] = {}
        for place, name in enumerate(self.numbers):
            made[place,] = self._numbers(table, name)
        for term in self.terms(self.degree):
            if len(term) > 1:
                with np.errstate(over="ignore"):
                    made[term] = made[term[:-1]] * made[term[-1:]]
                self._check_power(made[term], term)
        out: dict[Name, np.ndarray] = dict(zip(self.term_names(self.degree), made.values(), strict=True))
        for name in self.labels:
            codes, known = codes_of(table, name, levels[name])
            for level in levels[name]:
                out[indicator(name, level)] = (codes == known[level]).astype(np.float64)
        return out

    def _numbers(self, table: Table, name: Name) -> np.ndarray:
        column = table._column(name)
        if table.is_block(name):
            raise DataError.wrong_type(f"column {name!r}", "a block of columns", "one number in every row")
        if table.kind(name) == "label":
            table.require_numbers([name])
        cells = np.asarray(numeric(column, name), dtype=np.float64)
        if not np.isfinite(cells).all():
            row = int(np.flatnonzero(~np.isfinite(cells))[0])
            what = "NaN: column" if np.isnan(cells[row]) else "infinity: column"
            raise (MissingInputError if np.isnan(cells).any() else DataError)(
                f"Input X contains {what} {name!r} has {'no number' if np.isnan(cells[row]) else cells[row]} in row "
                f"{row}; expected a finite number in every row of a regression.\n"
                "    Leave such rows out, or fill them in: tb.GaussianDiscriminant().fill, sklearn's SimpleImputer."
            )
        return cells

    def _check_power(self, cells: np.ndarray, term: tuple[int, ...]) -> None:
        if not np.isfinite(cells).all():
            name = _called([self.numbers[place] for place in term])
            raise DataError(f"{name!r} is too large for a number in some row.\n    Use a lower degree, or other units.")

    def to_json(self) -> dict[str, Any]:
        """What a file keeps of it."""
        return {name: to_json(value) for name, value in self._asdict().items()}

    @classmethod
    def from_json(cls, state: dict[str, Any]) -> Self:
        """What `to_json` gave, checked: a file may come from anyone."""
        found = cls(*(from_json(state.pop(name)) for name in cls._fields))
        names = (*found.targets, *found.numbers, *found.labels)
        plain = all(isinstance(name, str | int) for name in names) and isinstance(found.degree, int)
        if not plain or not found.targets or found.degree < 1:
            raise FileError("the file's columns of a regression are none; expected names, a target and a degree.")
        return found


def indicator(name: Name, level: Any) -> str:
    """What the column is called that says whether a label is of a level."""
    return f"{name}={level}"


def codes_of(table: Table, name: Name, levels: Sequence[Any]) -> tuple[np.ndarray, dict[Any, int]]:
    """The codes of a column of labels, and the code of every level; labels that are missing or unknown are refused."""
    labels = read_labels(table, name)
    codes = np.asarray(labels.codes).astype(np.int64)
    if (codes < 0).any():
        row = int(np.flatnonzero(codes < 0)[0])
        raise MissingInputError(
            f"Input X contains NaN: column {name!r} has no label in row {row}; expected one in every row.\n"
            "    Leave such rows out, or give absence a label of its own: column.fillna('none')."
        )
    found = labels.domain.levels
    known = {level: place for place, level in enumerate(found)}
    strange = sorted({*np.unique(codes).tolist()} - {known[level] for level in levels if level in known})
    if strange:
        raise LabelError.unseen(found[strange[0]], str(name), levels)
    return codes, {level: known.get(level, -2) for level in levels}


def _called(names: Sequence[Name]) -> Name:
    """The name of a product, as scikit-learn has it."""
    counts = {name: names.count(name) for name in names}
    if len(names) == 1:
        return names[0]
    return " ".join(str(name) if n == 1 else f"{name}^{n}" for name, n in counts.items())


def _first_twice(names: Sequence[Name]) -> Name | None:
    seen: set[Name] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None

"""Design: the input and target columns of a regression, and the terms of the design matrix."""

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
from tallybayes.data.encoding import numeric
from tallybayes.data.table import Table
from tallybayes.errors import DataError, FileError, LabelError
from tallybayes.models.inputs.labels import read_labels
from tallybayes.tally.factor import Name

Levels = Mapping[Name, tuple[Any, ...]]
_DEFAULT_TARGET = re.compile(r"y\d*_*")


class MissingInputError(DataError):
    """An input cell is missing."""


class Design(NamedTuple):
    """The columns of a regression, as the first rows had them, and the highest degree that is counted."""

    targets: tuple[Name, ...]
    numbers: tuple[Name, ...]
    labels: tuple[Name, ...]
    by: Name | None
    degree: int
    by_name: bool  # whether targets are columns of X
    single: bool  # whether y was one-dimensional
    n_features: int | None
    feature_names: tuple[str, ...] | None
    dates: tuple[Name, ...] = ()  # date columns, which are split into parts

    @property
    def unnamed(self) -> bool:
        """Whether the targets have default names because y had none."""
        return not self.by_name and all(_DEFAULT_TARGET.fullmatch(str(name)) for name in self.targets)

    @property
    def given(self) -> tuple[Name, ...]:
        """The column of the groups, if there is one."""
        return () if self.by is None else (self.by,)

    @property
    def inputs(self) -> list[Name]:
        """The columns that rows must have."""
        return [*self.numbers, *self.labels, *self.given]

    @property
    def columns_in(self) -> list[Name]:
        """The columns that rows must have, with dates as one column each."""
        return list(with_dates_whole(dict.fromkeys(self.inputs, 1), self.dates))

    def terms(self, degree: int) -> Iterator[tuple[int, ...]]:
        """Yield the monomials of the numeric columns, as tuples of column positions, in order of degree."""
        for power in range(1, degree + 1):
            yield from combinations_with_replacement(range(len(self.numbers)), power)

    def n_terms(self, degree: int) -> int:
        """Return the number of monomials up to a degree."""
        return math.comb(len(self.numbers) + degree, degree) - 1

    def check_size(self, n_groups: int = 1) -> None:
        """Raise MemoryError if the moments of all terms do not fit into memory."""
        n = self.n_terms(self.degree) + len(self.targets)
        require_memory(
            8 * 32 * n_groups * n * n,
            f"Regression: products of the {n:,} terms of degree {self.degree} of {len(self.numbers)} columns",
            "Use a lower degree, or fewer columns.",
        )

    def term_names(self, degree: int) -> list[Name]:
        """Return the names of the monomials: a, b, a^2, a b, b^2 and so on."""
        return [_called([self.numbers[place] for place in term]) for term in self.terms(degree)]

    def indicators(self, levels: Levels) -> list[str]:
        """Return the names of the indicator columns of all levels."""
        return [indicator(name, level) for name in self.labels for level in levels[name]]

    def columns(self, levels: Levels) -> list[Name]:
        """Return the names of all terms that are counted."""
        names = [*self.term_names(self.degree), *self.indicators(levels)]
        duplicate = next((name for name in {*names} & {*self.targets}), None) or _first_twice(names)
        if duplicate is not None:
            raise DataError(f"two columns would be called {duplicate!r}; expected unique names.\n    Rename one.")
        return names

    def read_columns(self, levels: Levels, degree: int, *, intercept: bool) -> list[Name]:
        """Return the names of the terms with a coefficient at this degree.

        The first level of a categorical column is the reference level and has no indicator. Without an intercept the
        first categorical column keeps all its levels.
        """
        names = self.term_names(degree)
        for index, name in enumerate(self.labels):
            kept = levels[name] if not intercept and index == 0 else levels[name][1:]
            names += [indicator(name, level) for level in kept]
        return names

    def missing(self, table: Table, levels: Levels | None = None) -> np.ndarray:
        """Return which input cells are missing, (n, inputs). Parts of dates outside `levels` count as missing."""
        out = np.zeros((table.n_rows, len(self.numbers) + len(self.labels)), dtype=bool)
        for index, name in enumerate(self.numbers):
            if not table.is_block(name):
                cells = np.asarray(numeric(table.column(name), name))
                out[:, index] = np.isnan(cells) if cells.dtype.kind == "f" else False
        for index, name in enumerate(self.labels, len(self.numbers)):
            labels = read_labels(table, name)
            codes = np.asarray(labels.codes).astype(np.int64)
            out[:, index] = codes < 0
            if levels is not None and any(date in self.dates for date in dates_of(name)):
                unseen = np.array([level not in levels[name] for level in labels.domain.levels] + [True])
                out[:, index] = unseen[codes]
        return out

    def without(self, names: Collection[Name]) -> Self:
        """Return the design without some of the inputs."""
        numbers, labels = (tuple(n for n in one if n not in names) for one in (self.numbers, self.labels))
        return self._replace(numbers=numbers, labels=labels)

    def expand(self, table: Table, levels: Levels) -> dict[Name, np.ndarray]:
        """Return the terms of some rows by name. Raise MissingInputError if a cell is missing."""
        made: dict[tuple[int, ...], np.ndarray] = {}
        for index, name in enumerate(self.numbers):
            made[index,] = self._numbers(table, name)
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
        """Return a numeric column as floats; raise if a cell is not finite."""
        column = table.column(name)
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
                "    Drop such rows, or impute them: tb.GaussianDiscriminant().impute, sklearn's SimpleImputer."
            )
        return cells

    def _check_power(self, cells: np.ndarray, term: tuple[int, ...]) -> None:
        """Raise DataError if a product has overflowed."""
        if not np.isfinite(cells).all():
            name = _called([self.numbers[index] for index in term])
            raise DataError(f"{name!r} overflows in some row.\n    Use a lower degree, or other units.")

    def shape(self, parts: Sequence[np.ndarray]) -> np.ndarray:
        """Return the arrays of all targets as one: (n,) if y was one-dimensional, else (n, targets)."""
        return parts[0] if self.single else np.stack(parts, axis=1)

    def to_json(self) -> dict[str, Any]:
        """Return the design as JSON."""
        return {name: to_json(value) for name, value in self._asdict().items()}

    @classmethod
    def from_json(cls, state: dict[str, Any]) -> Self:
        """Return the design from JSON, after validation, since files are untrusted."""
        design = cls(*(from_json(state.pop(name)) for name in cls._fields))
        names = (*design.targets, *design.numbers, *design.labels)
        plain = all(isinstance(name, str | int) for name in names) and isinstance(design.degree, int)
        if not plain or not design.targets or design.degree < 1:
            raise FileError("the file's regression columns are invalid; expected names, a target and a degree.")
        return design


def indicator(name: Name, level: object) -> str:
    """Return the name of the indicator column of a level."""
    return f"{name}={level}"


def codes_of(table: Table, name: Name, levels: Sequence[Any]) -> tuple[np.ndarray, dict[Any, int]]:
    """Return the codes of a categorical column, and the code of every level. Raise for missing or unseen levels."""
    labels = read_labels(table, name)
    codes = np.asarray(labels.codes).astype(np.int64)
    if (codes < 0).any():
        row = int(np.flatnonzero(codes < 0)[0])
        raise MissingInputError(
            f"Input X contains NaN: column {name!r} is missing in row {row}; expected a level in every row.\n"
            "    Drop such rows, or make missing a level: column.fillna('none')."
        )
    observed = labels.domain.levels
    known = {level: code for code, level in enumerate(observed)}
    unseen = sorted({*np.unique(codes).tolist()} - {known[level] for level in levels if level in known})
    if unseen:
        raise LabelError.unseen(observed[unseen[0]], str(name), levels)
    return codes, {level: known.get(level, -2) for level in levels}


def _called(names: Sequence[Name]) -> Name:
    """Return the name of a product of columns, as scikit-learn writes it."""
    counts = {name: names.count(name) for name in names}
    if len(names) == 1:
        return names[0]
    return " ".join(str(name) if n == 1 else f"{name}^{n}" for name, n in counts.items())


def _first_twice(names: Sequence[Name]) -> Name | None:
    """Return the first name that occurs twice, or None."""
    seen: set[Name] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None

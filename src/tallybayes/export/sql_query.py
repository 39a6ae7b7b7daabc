"""The SQL query of a classifier, step by step."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from tallybayes.data.sql.dialects import Dialect
from tallybayes.data.sql.row_arrays import Array, Operand
from tallybayes.data.sql.sql_arrays import SqlArrays
from tallybayes.export.class_probabilities import RowEngine, class_probabilities
from tallybayes.export.output_names import free_names
from tallybayes.export.portable_scorer import (
    Cell,
    Derived,
    Leaves,
    Lookup,
    Parents,
    PortableScorer,
    Tree,
    has_leaves,
)

_PATTERNS = 100_000  # size of a table of all patterns of missing cells; if larger, only complete rows have a result


class SqlQuery(SqlArrays, RowEngine):
    """The steps of the query of a classifier, each a WITH query over the previous one."""

    def __init__(self, scores: PortableScorer, dialect: Dialect) -> None:
        super().__init__(dialect)
        self.scores = scores
        self.number_of: dict[Cell, int] = {cell: number for number, cell in enumerate(scores.cells)}
        self.weights = [f"w{k}" for k in range(len(scores.classes))]
        self.steps: list[tuple[str, str]] = []
        self.last = "tally_cells"  # the step that has the rows and all columns so far
        self.tables: list[tuple[str, str]] = []
        self.joins: list[str] = []  # of the next step
        self.used = {"k", "l", "v", "r"}  # names of tables and prefixes of columns
        self.is_numbered = has_leaves(scores)  # whether rows have numbers, in the column r0

    def text(self, source: str, keep: Sequence[str], proba: bool) -> str:
        """Return the whole query."""
        dialect = self.dialect
        scores = self.scores
        self._read(source, keep)
        probability, ranked = class_probabilities(scores, self, _PATTERNS)
        largest = "0e0"
        if scores.reorders:
            largest = self.step("largest", top=ranked.max())[0].value[0]
        labels = [dialect.value(label) for label in scores.classes]
        if isinstance(scores.classes[0], float):
            labels = [dialect.cast(label) for label in labels]
        cases = " ".join(
            f"WHEN {rank} = {largest} THEN {label}" for rank, label in zip(ranked.value, labels, strict=True)
        )
        output_names = ["prediction", *(f"p({label})" for label in (scores.classes if proba else ()))]
        names = [*keep, *free_names(output_names, keep, dialect.most_bytes)]
        values = [*(f"k{number}" for number in range(len(keep))), f"CASE {cases} END"]
        values += probability.value[: len(output_names) - 1].tolist()
        columns = ",\n  ".join(f"{value} AS {dialect.quote(name)}" for value, name in zip(values, names, strict=True))
        steps = [f"{name} AS (\n  {text}\n)" for name, text in self.tables]
        steps += [f"{name} AS {dialect.materialized}(\n  {text}\n)" for name, text in self.steps]
        order = f"ORDER BY {self.last}.r0\n" if self.is_numbered else ""
        return (
            f"WITH {'RECURSIVE ' * (self.is_numbered and dialect.recursive)}"
            + ",\n".join(steps)
            + f"\nSELECT\n  {columns}\nFROM {self.last}\n{order}"
        )

    def _read(self, source: str, keep: Sequence[str]) -> None:
        """Add the first step: the columns to keep, categories and numbers, under internal names. NaN is missing."""
        dialect = self.dialect
        columns = [f"{dialect.quote(name)} AS k{number}" for number, name in enumerate(keep)]
        levels = self.scores.levels
        for cell, number in self.number_of.items():
            columns.append(f"{self._cell(cell, levels.get(cell))} AS {'l' if cell.reading is None else 'v'}{number}")
        if self.is_numbered:
            columns.append(f"{dialect.row_number} AS r0")
        self.steps.append((self.last, f"SELECT {', '.join(columns) or '1 AS l0'}\n  FROM {source}"))

    def _cell(self, cell: Cell, levels: tuple[Any, ...] | None) -> str:
        """Return an expression of a category or number; NULL if it is missing."""
        dialect, derived = self.dialect, cell.column if isinstance(cell.column, Derived) else None
        date = self.scores.date_of(cell.source)
        name = dialect.quote(cell.source) if date is None else dialect.part_of_date(str(cell.source), date)
        is_number = cell.reading is not None if derived is None else derived.levels is None
        kind = type(next(iter((levels if derived is None else derived.levels) or ()), None))
        if is_number:
            is_binary = derived is None and cell.support == "binary"
            name = dialect.bool_as_number(name) if is_binary else dialect.number(name)
        elif kind is str:
            name = f"CAST({name} AS {dialect.label}){self.collation}"
        elif kind is int:
            name = f"CASE WHEN {dialect.number(name)} IS NOT NULL THEN {name} END"
        if derived is None:
            return name
        if derived.value is not None:
            return f"COALESCE({name}, {self.literal(derived.value)})"
        flag = f"{name} IS NULL" if derived.level is None else f"{name} = {dialect.value(derived.level)}"
        return f"({flag})" if cell.reading is None else f"CASE WHEN {flag} THEN 1e0 ELSE 0e0 END"

    @property
    def collation(self) -> str:
        """The collation of text, by which upper and lower case differ."""
        return " COLLATE BINARY" if self.dialect.greatest == "MAX" else ""

    def free(self, name: str) -> str:
        """Return a name that no step, table or prefix of columns has: members of a pool have the same steps."""
        free, number = name, 1
        while free in self.used:
            number += 1
            free = f"{name.rstrip('_')}_{number}_"
        self.used.add(free)
        return free

    def numbers(self, cells: Sequence[Cell]) -> Array:
        """Return numeric columns as they are."""
        return self.array([f"v{self.number_of[cell]}" for cell in cells])

    def step(self, name: str, **arrays: Operand) -> list[Any]:
        """Add a step that computes arrays; its columns are added to those of the previous step."""
        columns = []
        computed = []
        for column, array in arrays.items():
            values = np.array(array.value if isinstance(array, Array) else array, dtype=object)
            prefix = self.free(column)
            for position, value in enumerate(values.flat):
                if isinstance(value, str):
                    values.flat[position] = f"{prefix}{position}"
                    columns.append(f"{value} AS {prefix}{position}")
            computed.append(Array(self, values))
        if columns:
            self.add_step(self.free(name), columns)
        return computed

    def add_step(self, name: str, columns: Sequence[str]) -> None:
        """Add a step with further columns, and with the joins of tables."""
        before = f"{self.last} AS a{''.join(self.joins)}"
        self.joins = []
        self.last = f"tally_{name}"
        self.steps.append((self.last, f"SELECT a.*, {', '.join(columns)}\n  FROM {before}"))

    def add_branch(self, name: str, text: str) -> str:
        """Add a query that is no step of the rows, and return its name; "{}" in its text is the name."""
        free = self.free(f"tally_{name}_")
        self.steps.append((free, text.replace("{}", free)))
        return free

    def add_table(
        self, name: str, columns: Sequence[str], rows: Iterable[tuple[str, Sequence[Any]]], whole: int = 0
    ) -> None:
        """Add a table of numbers by key; the first `whole` columns are integers."""
        lines: list[str] = []
        for key, numbers in rows:
            written = [self.literal(float(value)) for value in numbers[whole:]]
            if not lines:  # the first row determines the types
                written = [self.dialect.cast(value) for value in written]
            lines.append(f"({', '.join([key, *map(str, numbers[:whole]), *written])})")
        listed = ",\n    ".join(lines)
        self.tables.append((f"{name}(level, {', '.join(columns)})", f"VALUES\n    {listed}"))

    def add_rows(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[int | float | str]]) -> str:
        """Add a table of integers, floats and texts; return its name, which is free."""
        dialect, name = self.dialect, self.free(f"tally_{name}_")
        if dialect.json_rows:
            read = ", ".join(f"JSON_EXTRACT(value, '$[{place}]') AS {column}" for place, column in enumerate(columns))
            self.steps.append((name, dialect.json_rows.format(read, json.dumps(rows, separators=(",", ":")))))
            return name
        first, *others = ([dialect.value(cell) for cell in row] for row in rows)
        typed = [  # the first row determines the types
            dialect.cast(cell) if isinstance(value, float) else cell for value, cell in zip(rows[0], first, strict=True)
        ]
        listed = ",\n    ".join(f"({', '.join(row)})" for row in (typed, *others))
        self.tables.append((f"{name}({', '.join(columns)})", f"VALUES\n    {listed}"))
        return name

    def join_table(self, table: str, alias: str, key: str) -> None:
        """Join a table to the next step."""
        self.joins.append(f"\n  LEFT JOIN {table} AS {alias} ON {alias}.level = {key}")

    def level_of(self, cell: Cell, number: Array | None) -> str:
        """Return the expression of the level of a cell; text is compared with case."""
        if number is not None:
            return str(number.value[0])
        return f"l{self.number_of[cell]}{self.collation}"

    def look_up(self, lookup: Lookup, number: Array | None) -> tuple[Array, Array]:
        """Join a table of levels; of its row, the columns of the next step can be computed."""
        position = self.number_of[lookup.cell]
        value = self.array([f"l{position}"]) if number is None else number
        is_missing = value.is_missing()
        if not lookup.levels:
            return self.array(["NULL"]), is_missing
        weights = [f"w{k}" for k in range(lookup.table.shape[1])]
        rows = zip(map(self.dialect.value, lookup.levels), lookup.table.tolist(), strict=True)
        table = self.free(f"tally_levels_{position}")
        self.add_table(table, weights, rows)
        self.join_table(table, f"b{position}", self.level_of(lookup.cell, number))
        if lookup.unseen is not None and number is None and type(lookup.levels[0]) is int:  # fractions are missing
            whole = self.array([self.dialect.number(f"l{position}")])
            is_missing = is_missing | ~whole.equals(whole.floor())
        return self.array([f"b{position}.{weight}" for weight in weights]), is_missing

    def rows_at(self, codes: Sequence[int], tables: Sequence[np.ndarray], key: Array) -> list[Array]:
        """Join a table of the elements that differ between its rows."""
        number = len(self.tables)
        rows = np.concatenate([table.reshape(len(codes), -1) for table in tables], axis=1)
        differ = np.flatnonzero(np.ptp(rows, axis=0))
        names = [f"e{column}" for column in differ]
        self.add_table(f"tally_rows_{number}", names, zip(map(str, codes), rows[:, differ].tolist(), strict=True))
        self.join_table(f"tally_rows_{number}", f"b{number}", str(key.value))
        values = rows[0].astype(object)
        values[differ] = [f"b{number}.{name}" for name in names]
        parts = np.split(values, np.cumsum([table[0].size for table in tables])[:-1])
        return [Array(self, part.reshape(table.shape[1:])) for part, table in zip(parts, tables, strict=True)]

    def pair_scores(self, pairs: Parents | Tree, numbers: dict[Cell, Array]) -> Callable[[], Array]:
        """Return a function that returns the log probabilities by class of a model of pairs of columns."""
        from tallybayes.export.sql_one_dependence import ParentsQuery, TreeQuery

        part = TreeQuery(self, pairs) if isinstance(pairs, Tree) else ParentsQuery(self, pairs)
        part.rank(numbers)
        return part.scores

    def leaf_sums(self, leaves: Leaves, cells: Sequence[Array]) -> list[Array]:
        """Return the sums over each group of trees of the values of the row's leaves."""
        from tallybayes.export.sql_trees import LeavesQuery

        return LeavesQuery(self, leaves, cells).sums()

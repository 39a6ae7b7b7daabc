"""Queries: rows that lie in a database, which counts them where they are; only statistics travel."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.data.dates import dates_of, origins
from tallybayes.data.missing_indicators import sources_of
from tallybayes.data.sampling import SAMPLE, hashed
from tallybayes.data.source import BATCH, Source
from tallybayes.data.sql.dialects import Dialect
from tallybayes.data.table import Table, open_table
from tallybayes.errors import DataError
from tallybayes.families._shared.sql_aggregates import SqlColumn
from tallybayes.families.family import Family
from tallybayes.tally.factor import Factor, Name
from tallybayes.tally.schema import Schema
from tallybayes.tally.tally import Tally

if TYPE_CHECKING:
    import pyarrow as pa

FIRST = 20_000  # rows by which it is decided what there is to count
TOGETHER = 30  # columns in one query
_BEFORE = r"(\s|\(|--[^\n]*\n|/\*.*?\*/)*"  # what may stand before a query
QUERY = re.compile(_BEFORE + r"(select|with|values|from|table)\b[\s(\"*]+\S", re.IGNORECASE | re.DOTALL)


class Query(Source):
    """A table, a view or the answer to a query, in a database.

    Parameters
    ----------
    dialect : Dialect
    query : str
        The name of a table, which may have a schema before it, or a query.
    """

    counts, in_threads = True, False

    def __init__(self, dialect: Dialect, query: str) -> None:
        super().__init__(f"the table {query}" if not QUERY.match(query) else "the query")
        self.dialect, self._asked = dialect, query
        self._query_cache: dict[str, list[tuple[Any, ...]]] | None = None  # answers, while a snapshot lasts

    @cached_property
    def table(self) -> str:
        """What stands after FROM."""
        return as_rows(self.dialect, self._asked) if QUERY.match(self._asked) else self.dialect.find(self._asked)

    @cached_property
    def names(self) -> list[str]:
        """The names of its columns."""
        return self._checked(list(self._declared.names))

    def _checked(self, names: list[str]) -> list[str]:
        """The names of columns, if each occurs once."""
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise DataError(f"{self.name} has two columns {twice!r}; expected a name for every column.")
        return names

    @cached_property
    def _declared(self) -> pa.Schema:
        """The columns and their types as the database declares them; null where it does not."""
        return self.dialect.schema(self.table)

    @property
    def schema(self) -> pa.Schema:
        """The columns and their types."""
        return self.first_batch().schema if self.dialect.dynamic_types else self._declared

    def exact(self, columns: Sequence[Name]) -> Query:
        """The same rows, with every digit of some columns that are otherwise read as doubles."""
        other = copy.copy(self)
        with self.dialect.snapshot():
            other._declared = self.dialect.exact(self.table, self._declared, list(map(str, columns)))
        return other

    def keeping(self, columns: Sequence[Name], to: Any = None) -> tuple[Source, list[str], pa.Schema]:
        """The same rows with what is written of some columns, unchanged.

        A table of the same kind of database gets the types of the database. Values that Arrow does not have unchanged
        are read as text, in columns beside the others: a model may read these columns as well.
        """
        import pyarrow as pa

        if not columns:
            return self, [], pa.schema([])
        names, dialect = list(map(str, columns)), self.dialect
        own: dict[str, str] = {}
        with dialect.snapshot():
            if to is not None and isinstance(dialect, type(to)):
                own = to.known_types(dialect.types(self.table))
                native = to.native([self._declared.field(name) for name in names], own)
                as_text = [name for name in names if name in own and name not in native]
            else:
                as_text = dialect.without_arrow_type(self.table, self._declared, names)
        prefix, found = "kept", self
        while any(name.lower().startswith(prefix) for name in self.names):
            prefix += "_"
        beside = {name: f"{prefix} {place}" for place, name in enumerate(as_text)}
        if beside:
            written = {name: dialect.quote(name) for name in self.names}
            casts = {other: f"CAST({written[name]} AS {dialect.label})" for name, other in beside.items()}
            found = self.selecting(written | casts)
        found = found.exact([name for name in names if name not in beside])
        fields = [
            pa.field(name, pa.string() if name in beside else found.schema.field(name).type).with_metadata(
                {dialect.own_type: own[name]} if name in own else None
            )
            for name in names
        ]
        return found, [beside.get(name, name) for name in names], pa.schema(fields)

    def first_batch(self) -> pa.Table:
        """The first rows."""
        import pyarrow as pa

        if self._first is None:
            declared = self._declared
            with self.dialect.snapshot():
                found = self._read(declared, f"LIMIT {FIRST}")
                for place, field in enumerate(found.schema):
                    if pa.types.is_null(field.type):  # no value is among them, but there may be one further on
                        name = self.dialect.quote(field.name)
                        alone = pa.schema([field])
                        kind = self._read(alone, f"WHERE {name} IS NOT NULL LIMIT {FIRST}").schema.field(0).type
                        found = found.set_column(place, pa.field(field.name, kind), pa.nulls(len(found), kind))
            self._first = found
        return self._first

    def sample(self, n: int = SAMPLE) -> tuple[pa.Table, int]:
        """A random sample of the rows, and their number: rows are numbered as they are read, and numbers are hashed."""
        quote, names = self.dialect.quote, self.names
        number = "row number"
        while number.lower() in {name.lower() for name in names}:
            number += "_"
        inner = f"SELECT {', '.join(map(quote, names))}, ROW_NUMBER() OVER () AS {quote(number)} FROM {self.table}"
        with self.dialect.snapshot():
            n_rows = int(self.dialect.run(f"SELECT COUNT(*) FROM {self.table}")[0][0])
            some = f"({inner}) AS {quote('numbered rows')}", f"WHERE {hashed(quote(number), n / max(1, n_rows))}"
            table, rest = (self.table, f"LIMIT {n}") if n_rows <= n else some
            return self._read(self.schema, rest, table), n_rows

    def _read(self, schema: pa.Schema, rest: str, table: str = "") -> pa.Table:
        """A few rows, whose values may tell other types than the schema."""
        import pyarrow as pa

        found = list(self.dialect.rows(table or self.table, schema, self.name, rest))
        return pa.concat_tables(found, promote_options="permissive") if found else schema.empty_table()

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """The rows, some at a time, for what the database cannot do."""
        wanted = list(self.names if columns is None else columns)
        self.check_columns(wanted)
        import pyarrow as pa

        known = self.schema
        schema = pa.schema([known.field(name) for name in wanted])
        for rows in self.dialect.rows(self.table, schema, self.name):
            for start in range(0, len(rows), BATCH):
                yield rows.slice(start, BATCH)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """A transaction that reads."""
        with self.dialect.snapshot():
            self._query_cache = {}
            try:
                yield
            finally:
                self._query_cache = None

    # ---- Counting where the rows are --------------------------------------------------------------------------------

    def count(
        self, factors: Sequence[Factor], weight: str | None, schema: Schema | None, like: Tally | None
    ) -> Tally | None:
        """The tally of factors, or None where one of them cannot be counted by the database alone."""
        from tallybayes.data.counting import TallyBuilder
        from tallybayes.data.sql.moment_queries import tally_from_sql_sums

        total: Tally | None = None
        with self.dialect.snapshot():
            if weight is not None:
                self._check_weights(weight)
            for factor in factors:
                found: Tally | None
                if factor.family.aggregates(1, np.zeros(1)) is None:
                    table, times = self._values(factor, weight)
                    found = TallyBuilder(table, (factor,), times, schema, None).collect()
                else:
                    found = tally_from_sql_sums(self, factor, weight, schema or Schema())
                if found is None:
                    return None
                total = found if total is None else total | found
        return None if total is None else Tally(tuple(factors), total.statistics, total.domains, schema or Schema())

    def n_missing(self, column: str, weight: str | None) -> int:
        """How many rows lack the cell of a column."""
        if weight is None:  # what is asked of the column anyway
            return sum(
                int(row[-1]) for row in self._cached_query(self._counts([self.written(column)])) if row[0] is None
            )
        counted = f"CASE WHEN {self.dialect.quote(weight)} > 0 THEN 1 ELSE 0 END"
        query = f"SELECT COALESCE(SUM({counted}), 0) FROM {self.table} WHERE {self.written(column)} IS NULL"
        return int(self.dialect.run(query)[0][0])

    def _counts(self, columns: list[str], counted: str = "COUNT(*)") -> str:
        by = ", ".join(columns)
        return f"SELECT {by}, {counted} FROM {self.table} GROUP BY {by}"

    def _cached_query(self, query: str) -> list[tuple[Any, ...]]:
        """The answer to a query, which within a snapshot is asked once."""
        told = {} if self._query_cache is None else self._query_cache
        if query not in told:
            told[query] = self.dialect.run(query)
        return told[query]

    def binned(self, families: Mapping[Name, Family]) -> Query:
        """The same rows with the numbers of some columns by their bins."""
        written = self._grouping(families)
        columns = {name: self.dialect.quote(name) for name in self.names}
        return self.selecting(columns | {str(name): text for name, text in zip(families, written, strict=True)})

    def select(self, columns: Sequence[str]) -> Query:
        """The same rows with some of the columns."""
        absent = [name for name in columns if name not in self.names]
        if absent:
            raise DataError.unknown_column(absent, self.names)
        return self.selecting({name: self.dialect.quote(name) for name in columns})

    def _grouping(self, families: Mapping[Name, Family]) -> list[str]:
        """What the values of columns are counted by: themselves, or their bins, of which infinity has none."""
        texts = {name: self.written(name) for name in families}
        bins = {name: family.sql_group_expression(SqlColumn(0)) for name, family in families.items()}
        cut = [name for name, binned in bins.items() if binned is not None]
        if cut:
            ends = self.ends([self.dialect.number(texts[name]) for name in cut])
            self.check_ends(Factor(cut, (), families[cut[0]]), ends)
        for name, binned in bins.items():
            if binned is not None:
                texts[name] = self.dialect.write(binned, [self.dialect.number(texts[name])], None)
        return list(texts.values())

    # ---- Steps of sequences -----------------------------------------------------------------------------------------

    def in_sequences(self, state: str, sequence: str, order: str, names: dict[str, str]) -> tuple[Query, Query]:
        """What precedes and follows every step, and its columns: two tables, whose own columns have these names."""
        quote = self.dialect.quote
        label, over = quote(state), f"OVER (PARTITION BY {quote(sequence)} ORDER BY {quote(order)})"
        columns = {
            names["state"]: label,
            names["start"]: f"CASE WHEN LAG(1) {over} IS NULL THEN {label} END",
            names["from"]: f"LAG({label}) {over}",
            names["to"]: f"CASE WHEN LAG(1) {over} IS NOT NULL THEN {label} END",
            names["end"]: f"CASE WHEN LEAD(1) {over} IS NULL THEN 1 ELSE 0 END",
        }
        others = {name: quote(name) for name in self.names if name not in (state, sequence, order)}
        others = {name: text for name, text in others.items() if name.lower() != names["state"].lower()}
        return self.selecting(columns), self.selecting({**others, names["state"]: label})

    def selecting(self, columns: dict[str, str]) -> Query:
        """The same rows with other columns, as they are written."""
        other = Query(self.dialect, self._selected(columns))
        other.name, other.names = self.name, list(columns)
        return other

    def _selected(self, columns: dict[str, str]) -> str:
        asked = ", ".join(f"{text} AS {self.dialect.quote(name)}" for name, text in columns.items())
        return f"SELECT {asked} FROM {self.table}"

    def count_complete_steps(self, state: str, sequence: str, order: str) -> tuple[int, int, int, int, bool]:
        """How many steps there are, how many have a sequence, a place in it and a state; whether places are text."""
        import pyarrow as pa

        texts = ", ".join(f"COUNT({self.dialect.quote(name)})" for name in (sequence, order, state))
        n_rows, *known = map(int, self.dialect.run(f"SELECT COUNT(*), {texts} FROM {self.table}")[0])
        kind = self.schema.field(order).type
        return n_rows, known[0], known[1], known[2], pa.types.is_string(kind) or pa.types.is_large_string(kind)

    def first_duplicate_step(self, sequence: str, order: str) -> tuple[Any, ...] | None:
        """A sequence and a place in it that several steps have."""
        by = ", ".join(map(self.dialect.quote, (sequence, order)))
        query = f"SELECT {by} FROM {self.table} GROUP BY {by} HAVING COUNT(*) > 1 LIMIT 1"
        return next(iter(self.dialect.run(query)), None)

    def written(self, name: Name) -> str:
        """A column, a part of the dates of one, or whether the cells of one are there."""
        if name in self.names:
            return self.dialect.quote(name)
        for date in dates_of(name):
            if date in self.names:
                return self.dialect.part_of_date(str(name), date)
        known = (other for other in sources_of(name) if any(origin in self.names for origin in origins(other)))
        if (source := next(known, None)) is None:
            raise DataError.unknown_column([name], self.names)
        return f"CASE WHEN {self.written(source)} IS NULL THEN 0 ELSE 1 END"

    def _check_weights(self, weight: str) -> None:
        name = self.dialect.quote(weight)
        lowest, nulls = self.dialect.run(
            f"SELECT MIN({name}), SUM(CASE WHEN {name} IS NULL THEN 1 ELSE 0 END) FROM {self.table}"
        )[0]
        if nulls or (lowest is not None and not lowest >= 0):
            found = "missing in some rows" if nulls else f"{lowest} in some row"
            raise DataError.wrong_type(f"the weight {weight!r}", found, "finite numbers of at least 0")

    def _values(self, factor: Factor, weight: str | None) -> tuple[Table, np.ndarray]:
        """How often every value of each column occurs in every group, as rows with weights: other cells are missing."""
        import pyarrow as pa

        dialect, given = self.dialect, [self.written(name) for name in factor.given]
        counted = "COUNT(*)" if weight is None else f"SUM({dialect.number(dialect.quote(weight))})"
        written = self._grouping(dict.fromkeys(factor.columns, factor.family))
        parts: list[tuple[int, list[tuple[Any, ...]]]] = []
        for start in range(0, len(written), TOGETHER):
            for place, rows in self._grouped(given, written[start : start + TOGETHER], counted):
                parts.append((start + place, rows))
        n_rows = sum(len(rows) for _, rows in parts)
        columns: dict[Name, Any] = {}
        for axis, name in enumerate(factor.given):
            columns[name] = _values_of([row[axis] for _, rows in parts for row in rows])
        first, others = 0, {}
        for place, rows in parts:
            name, values = factor.columns[place], _values_of([row[len(given)] for row in rows])
            if factor.family.sql_group_expression(SqlColumn(0)) is not None:
                codes = values.to_numpy(zero_copy_only=False).astype(float)
                known = ~np.isnan(codes)
                codes[known] = factor.family.sql_group_value(codes[known])
                values = pa.array(codes, from_pandas=True)
            gaps = pa.nulls(first, values.type), pa.nulls(n_rows - first - len(values), values.type)
            columns[name] = pa.concat_arrays([gaps[0], values, gaps[1]])
            others[name] = ~((first <= np.arange(n_rows)) & (np.arange(n_rows) < first + len(values)))
            first += len(values)
        times = np.array([row[-1] or 0 for _, rows in parts for row in rows], dtype=float)
        table = open_table(
            pa.table({str(k): v for k, v in enumerate(columns.values())}).rename_columns(
                [str(name) for name in columns]
            )
        )
        table.invalid_cells = others  # what is not asked of a row is not absent in it
        return table, times

    def _grouped(
        self, given: list[str], columns: list[str], counted: str
    ) -> Iterator[tuple[int, list[tuple[Any, ...]]]]:
        """By column: (*given, value, how often) of every combination that there is."""
        if not self.dialect.grouping_sets or len(columns) == 1:
            for place, column in enumerate(columns):
                yield place, self._cached_query(self._counts([*given, column], counted))
            return
        inner = ", ".join(
            [f"{text} AS g{k}" for k, text in enumerate(given)]
            + [f"{text} AS c{k}" for k, text in enumerate(columns)]
            + ([] if counted == "COUNT(*)" else [f"{counted[4:-1]} AS w"])
        )
        groups, cells = [f"g{k}" for k in range(len(given))], [f"c{k}" for k in range(len(columns))]
        sets = ", ".join(f"({', '.join([*groups, cell])})" for cell in cells)
        which = " ".join(f"WHEN GROUPING({cell}) = 0 THEN {k}" for k, cell in enumerate(cells))
        n = counted if counted == "COUNT(*)" else "SUM(w)"
        found = self.dialect.run(
            f"SELECT CASE {which} END, {', '.join([*groups, *cells])}, {n} "
            f"FROM (SELECT {inner} FROM {self.table}) AS t GROUP BY GROUPING SETS ({sets})"
        )
        by_place: dict[int, list[tuple[Any, ...]]] = {place: [] for place in range(len(columns))}
        for row in found:
            place = int(row[0])
            by_place[place].append((*row[1 : 1 + len(given)], row[1 + len(given) + place], row[-1]))
        yield from by_place.items()

    def ends(self, numbers: list[str]) -> np.ndarray:
        """The smallest and the largest number of every column, (2, columns)."""
        asked = ", ".join(f"MIN({text}), MAX({text})" for text in numbers)
        return np.array(self.dialect.run(f"SELECT {asked} FROM {self.table}")[0], dtype=float).reshape(-1, 2).T

    def check_ends(self, factor: Factor, ends: np.ndarray) -> None:
        """Refuse numbers that cannot be counted."""
        outside = factor.family.out_of_support(ends)
        wrong = np.isinf(ends) if outside is None else np.isinf(ends) | outside
        for name, cells, is_wrong in zip(factor.columns, ends.T, wrong.T, strict=True):
            if is_wrong.any():
                found = f"found {float(cells[is_wrong][0])!r} in column {name!r} of {self.name}"
                raise DataError(f"{found}; expected {factor.family.allowed_values}.")


def as_rows(dialect: Dialect, query: str) -> str:
    """A query as it stands after FROM."""
    return f"({query.strip().rstrip(';')}\n) AS {dialect.quote('rows of it')}"


def _values_of(values: list[Any]) -> Any:
    """Values of a database as an Arrow array; those of several kinds are refused when they are encoded."""
    import pyarrow as pa

    try:
        found = pa.array(values, from_pandas=True)
        if not isinstance(found, pa.ExtensionArray):  # as UUIDs are, which are read as text
            return found
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        pass
    return pa.array([None if value is None else str(value) for value in values])

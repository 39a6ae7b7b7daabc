"""Queries as data sources: the database counts its rows and sends statistics only."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.data.dates import dates_of, origins
from tallybayes.data.missing_indicators import sources_of
from tallybayes.data.named_matrix import check_unique_names
from tallybayes.data.sampling import SAMPLE, hashed
from tallybayes.data.source import BATCH, Source
from tallybayes.data.sql.dialects import Dialect
from tallybayes.data.table import Table, open_table
from tallybayes.errors import DataError
from tallybayes.families._shared.sql_aggregates import SqlColumn
from tallybayes.families.family import Family
from tallybayes.families.protocols.cell_checks import out_of_support
from tallybayes.families.protocols.counting import aggregates, sql_group_expression, sql_group_value
from tallybayes.tally.domain import Schema
from tallybayes.tally.factor import Factor, Name
from tallybayes.tally.tally import Tally

if TYPE_CHECKING:
    import pyarrow as pa

FIRST = 20_000  # rows of the first batch
TOGETHER = 30  # columns per query
_BEFORE = r"(\s|\(|--[^\n]*\n|/\*.*?\*/)*"  # parentheses and comments before a query
QUERY = re.compile(_BEFORE + r"(select|with|values|from|table)\b[\s(\"*]+\S", re.IGNORECASE | re.DOTALL)


class Query(Source):
    """A table, a view or the result of a query in a database.

    Parameters
    ----------
    dialect : Dialect
    query : str
        A query, or the name of a table, with or without its schema.
    """

    counts = True
    in_threads = False

    def __init__(self, dialect: Dialect, query: str) -> None:
        super().__init__(f"the table {query}" if not QUERY.match(query) else "the query")
        self.dialect = dialect
        self._given_query = query
        self._query_cache: dict[str, list[tuple[Any, ...]]] | None = None  # results within a snapshot

    @cached_property
    def table(self) -> str:
        """The text that follows FROM."""
        return (
            as_rows(self.dialect, self._given_query)
            if QUERY.match(self._given_query)
            else self.dialect.find(self._given_query)
        )

    @cached_property
    def names(self) -> list[str]:
        """The names of the columns."""
        check_unique_names(self._declared.names, self.name)
        return list(self._declared.names)

    @cached_property
    def _declared(self) -> pa.Schema:
        """The columns and their types as the database declares them; null where it does not."""
        return self.dialect.schema(self.table)

    @property
    def schema(self) -> pa.Schema:
        """The columns and their types."""
        return self.first_batch().schema if self.dialect.dynamic_types else self._declared

    def exact(self, columns: Sequence[Name]) -> Query:
        """Return the same rows with all digits of some columns that are read as doubles otherwise."""
        other = copy.copy(self)
        with self.dialect.snapshot():
            other._declared = self.dialect.exact(self.table, self._declared, list(map(str, columns)))
        return other

    def keeping(self, columns: Sequence[Name], to: Dialect | None = None) -> tuple[Source, list[str], pa.Schema]:
        """Return the same rows with some columns in the form in which they are written unchanged.

        A table in the same kind of database gets the types of the database. Values that Arrow does not preserve are
        read as text, in additional columns, since a model may read the columns as well.
        """
        import pyarrow as pa

        if not columns:
            return self, [], pa.schema([])
        names = list(map(str, columns))
        own_types, as_text = self._written_types(names, to)
        prefix = "kept"
        while any(name.lower().startswith(prefix) for name in self.names):
            prefix += "_"
        text_columns = {name: f"{prefix} {position}" for position, name in enumerate(as_text)}
        source = self
        if text_columns:
            quoted = {name: self.dialect.quote(name) for name in self.names}
            casts = {other: f"CAST({quoted[name]} AS {self.dialect.label})" for name, other in text_columns.items()}
            source = self.selecting(quoted | casts)
        source = source.exact([name for name in names if name not in text_columns])
        fields = []
        for name in names:
            kind = pa.string() if name in text_columns else source.schema.field(name).type
            metadata = {self.dialect.own_type: own_types[name]} if name in own_types else None
            fields.append(pa.field(name, kind, metadata=metadata))
        return source, [text_columns.get(name, name) for name in names], pa.schema(fields)

    def _written_types(self, names: list[str], to: Dialect | None) -> tuple[dict[str, str], list[str]]:
        """Return the types of the database that a table written to `to` has, and the columns to be read as text."""
        with self.dialect.snapshot():
            if to is None or not isinstance(self.dialect, type(to)):
                return {}, self.dialect.without_arrow_type(self.table, self._declared, names)
            own_types = to.known_types(self.dialect.types(self.table))
            native = to.native([self._declared.field(name) for name in names], own_types)
            return own_types, [name for name in names if name in own_types and name not in native]

    def first_batch(self) -> pa.Table:
        """Return the first rows."""
        import pyarrow as pa

        if self._first is None:
            declared = self._declared
            with self.dialect.snapshot():
                batch = self._read(declared, f"LIMIT {FIRST}")
                for position, field in enumerate(batch.schema):
                    if pa.types.is_null(field.type):  # later rows may have values
                        name = self.dialect.quote(field.name)
                        column_schema = pa.schema([field])
                        kind = self._read(column_schema, f"WHERE {name} IS NOT NULL LIMIT {FIRST}").schema.field(0).type
                        batch = batch.set_column(position, pa.field(field.name, kind), pa.nulls(len(batch), kind))
            self._first = batch
        return self._first

    def sample(self, n: int = SAMPLE) -> tuple[pa.Table, int]:
        """Return a random sample of the rows, and their number; rows are numbered, and the numbers are hashed."""
        quote = self.dialect.quote
        names = self.names
        number = "row number"
        while number.lower() in {name.lower() for name in names}:
            number += "_"
        inner = f"SELECT {', '.join(map(quote, names))}, ROW_NUMBER() OVER () AS {quote(number)} FROM {self.table}"
        with self.dialect.snapshot():
            n_rows = int(self.dialect.run(f"SELECT COUNT(*) FROM {self.table}")[0][0])
            sampled = f"({inner}) AS {quote('numbered rows')}", f"WHERE {hashed(quote(number), n / max(1, n_rows))}"
            table, rest = (self.table, f"LIMIT {n}") if n_rows <= n else sampled
            return self._read(self.schema, rest, table), n_rows

    def _read(self, schema: pa.Schema, rest: str, table: str = "") -> pa.Table:
        """Return a few rows, whose values may determine other types than those of the schema."""
        import pyarrow as pa

        batches = list(self.dialect.rows(table or self.table, schema, self.name, rest))
        return pa.concat_tables(batches, promote_options="permissive") if batches else schema.empty_table()

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Yield the rows in batches, for computations that the database cannot do."""
        requested = list(self.names if columns is None else columns)
        self.check_columns(requested)
        import pyarrow as pa

        full_schema = self.schema
        schema = pa.schema([full_schema.field(name) for name in requested])
        for rows in self.dialect.rows(self.table, schema, self.name):
            for start in range(0, len(rows), BATCH):
                yield rows.slice(start, BATCH)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Return a context with a read-only transaction, in which results of queries are cached."""
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
        """Return the tally of the factors; None if the database cannot count one of them."""
        from tallybayes.data.counting import TallyBuilder
        from tallybayes.data.sql.moment_queries import tally_from_sql_sums

        total: Tally | None = None
        with self.dialect.snapshot():
            if weight is not None:
                self._check_weights(weight)
            for factor in factors:
                part: Tally | None
                if aggregates(factor.family, 1, np.zeros(1)) is None:
                    table, weights = self._values(factor, weight)
                    part = TallyBuilder(table, (factor,), weights, schema, None).collect()
                else:
                    part = tally_from_sql_sums(self, factor, weight, schema or Schema())
                if part is None:
                    return None
                total = part if total is None else total | part
        return None if total is None else Tally(tuple(factors), total.statistics, total.domains, schema or Schema())

    def n_missing(self, column: str, weight: str | None) -> int:
        """Return the number of rows in which a column is missing."""
        if weight is None:  # the query is also used for counting
            return sum(
                int(row[-1]) for row in self._cached_query(self._counts([self.written(column)])) if row[0] is None
            )
        counted = f"CASE WHEN {self.dialect.quote(weight)} > 0 THEN 1 ELSE 0 END"
        query = f"SELECT COALESCE(SUM({counted}), 0) FROM {self.table} WHERE {self.written(column)} IS NULL"
        return int(self.dialect.run(query)[0][0])

    def _counts(self, columns: list[str], counted: str = "COUNT(*)") -> str:
        """Return the query that counts rows by some columns."""
        by = ", ".join(columns)
        return f"SELECT {by}, {counted} FROM {self.table} GROUP BY {by}"

    def _cached_query(self, query: str) -> list[tuple[Any, ...]]:
        """Return the result of a query; within a snapshot it runs once."""
        cache = {} if self._query_cache is None else self._query_cache
        if query not in cache:
            cache[query] = self.dialect.run(query)
        return cache[query]

    def binned(self, families: Mapping[Name, Family]) -> Query:
        """Return the same rows with some numeric columns discretized."""
        expressions = self._grouping(families)
        columns = {name: self.dialect.quote(name) for name in self.names}
        return self.selecting(columns | {str(name): text for name, text in zip(families, expressions, strict=True)})

    def select(self, columns: Sequence[str]) -> Query:
        """Return the same rows with some of the columns."""
        unknown = [name for name in columns if name not in self.names]
        if unknown:
            raise DataError.unknown_column(unknown, self.names)
        return self.selecting({name: self.dialect.quote(name) for name in columns})

    def _grouping(self, families: Mapping[Name, Family]) -> list[str]:
        """Return the expressions by which columns are grouped: the columns, or their bins."""
        texts = {name: self.written(name) for name in families}
        bins = {name: sql_group_expression(family, SqlColumn(0)) for name, family in families.items()}
        binned_names = [name for name, binned in bins.items() if binned is not None]
        if binned_names:
            ends = self.ends([self.dialect.number(texts[name]) for name in binned_names])
            self.check_ends(Factor(binned_names, (), families[binned_names[0]]), ends)
        for name, binned in bins.items():
            if binned is not None:
                texts[name] = self.dialect.write(binned, [self.dialect.number(texts[name])], None)
        return list(texts.values())

    # ---- Steps of sequences -----------------------------------------------------------------------------------------

    def in_sequences(self, state: str, sequence: str, order: str, names: dict[str, str]) -> tuple[Query, Query]:
        """Return the transitions and the columns of sequences as two sources, with these names of their own columns."""
        quote = self.dialect.quote
        label = quote(state)
        over = f"OVER (PARTITION BY {quote(sequence)} ORDER BY {quote(order)})"
        columns = {
            names["state"]: label,
            names["start"]: f"CASE WHEN LAG(1) {over} IS NULL THEN {label} END",
            names["from"]: f"LAG({label}) {over}",
            names["to"]: f"CASE WHEN LAG(1) {over} IS NOT NULL THEN {label} END",
            names["end"]: f"CASE WHEN LEAD(1) {over} IS NULL THEN 1 ELSE 0 END",
        }
        others = {
            name: quote(name)
            for name in self.names
            if name not in (state, sequence, order) and name.lower() != names["state"].lower()
        }
        return self.selecting(columns), self.selecting({**others, names["state"]: label})

    def selecting(self, columns: dict[str, str]) -> Query:
        """Return the same rows with other columns, given as SQL expressions."""
        other = Query(self.dialect, self._selected(columns))
        other.name = self.name
        other.names = list(columns)
        return other

    def _selected(self, columns: dict[str, str]) -> str:
        """Return the query that selects expressions by name."""
        expressions = ", ".join(f"{text} AS {self.dialect.quote(name)}" for name, text in columns.items())
        return f"SELECT {expressions} FROM {self.table}"

    def count_complete_steps(self, state: str, sequence: str, order: str) -> tuple[int, int, int, int, bool]:
        """Return the number of steps, the numbers with a sequence, order and state, and whether orders are text."""
        import pyarrow as pa

        texts = ", ".join(f"COUNT({self.dialect.quote(name)})" for name in (sequence, order, state))
        n_rows, *n_known = map(int, self.dialect.run(f"SELECT COUNT(*), {texts} FROM {self.table}")[0])
        kind = self.schema.field(order).type
        return n_rows, n_known[0], n_known[1], n_known[2], pa.types.is_string(kind) or pa.types.is_large_string(kind)

    def first_duplicate_step(self, sequence: str, order: str) -> tuple[Any, ...] | None:
        """Return a sequence and an order that several steps have, or None."""
        by = ", ".join(map(self.dialect.quote, (sequence, order)))
        query = f"SELECT {by} FROM {self.table} GROUP BY {by} HAVING COUNT(*) > 1 LIMIT 1"
        return next(iter(self.dialect.run(query)), None)

    def written(self, name: Name) -> str:
        """Return the SQL of a column, of a part of a date column, or of a missing-value indicator."""
        if name in self.names:
            return self.dialect.quote(name)
        for date in dates_of(name):
            if date in self.names:
                return self.dialect.part_of_date(str(name), date)
        candidates = (other for other in sources_of(name) if any(origin in self.names for origin in origins(other)))
        if (source := next(candidates, None)) is None:
            raise DataError.unknown_column([name], self.names)
        return f"CASE WHEN {self.written(source)} IS NULL THEN 0 ELSE 1 END"

    def _check_weights(self, weight: str) -> None:
        """Raise DataError if a weight is missing or negative."""
        name = self.dialect.quote(weight)
        lowest, nulls = self.dialect.run(
            f"SELECT MIN({name}), SUM(CASE WHEN {name} IS NULL THEN 1 ELSE 0 END) FROM {self.table}"
        )[0]
        if nulls or (lowest is not None and not lowest >= 0):
            problem = "missing in some rows" if nulls else f"{lowest} in some row"
            raise DataError.wrong_type(f"the weight {weight!r}", problem, "finite numbers of at least 0")

    def _values(self, factor: Factor, weight: str | None) -> tuple[Table, np.ndarray]:
        """Return the frequencies of the values of each column by group, as weighted rows with other cells missing."""
        import pyarrow as pa

        dialect = self.dialect
        given = [self.written(name) for name in factor.given]
        weight_expression = None if weight is None else dialect.number(dialect.quote(weight))
        expressions = self._grouping(dict.fromkeys(factor.columns, factor.family))
        counts: list[list[tuple[Any, ...]]] = []
        for start in range(0, len(expressions), TOGETHER):
            counts += self._grouped(given, expressions[start : start + TOGETHER], weight_expression)
        all_rows = list(chain.from_iterable(counts))
        columns = {str(name): _values_of([row[axis] for row in all_rows]) for axis, name in enumerate(factor.given)}
        owner = np.repeat(np.arange(len(counts)), list(map(len, counts)))
        is_padding = {}  # it is not counted as missing by indicators
        for number, (name, rows) in enumerate(zip(factor.columns, counts, strict=True)):
            is_padding[name] = owner != number
            values = _grouped_values(factor.family, _values_of([row[len(given)] for row in rows]))
            indices = np.where(is_padding[name], 0, np.cumsum(~is_padding[name]) - 1)
            columns[str(name)] = values.take(pa.array(indices, mask=is_padding[name]))
        table = open_table(pa.table(columns))
        table.invalid_cells = is_padding
        return table, np.array([row[-1] or 0 for row in all_rows], dtype=float)

    def _grouped(self, given: list[str], columns: list[str], weight: str | None) -> list[list[tuple[Any, ...]]]:
        """Return, for every column, the rows (*given, value, count or weight) of all combinations."""
        if not self.dialect.grouping_sets or len(columns) == 1:
            counted = "COUNT(*)" if weight is None else f"SUM({weight})"
            return [self._cached_query(self._counts([*given, column], counted)) for column in columns]
        groups = [f"g{k}" for k in range(len(given))]
        cells = [f"c{k}" for k in range(len(columns))]
        sets = ", ".join(f"({', '.join([*groups, cell])})" for cell in cells)
        position = " ".join(f"WHEN GROUPING({cell}) = 0 THEN {k}" for k, cell in enumerate(cells))
        inner = ", ".join([*aliases("g", given), *aliases("c", columns), *aliases("w", [weight] if weight else [])])
        rows = self.dialect.run(
            f"SELECT CASE {position} END, {', '.join([*groups, *cells])}, {'SUM(w0)' if weight else 'COUNT(*)'} "
            f"FROM (SELECT {inner} FROM {self.table}) AS t GROUP BY GROUPING SETS ({sets})"
        )
        return rows_by_column(rows, len(given), range(len(columns)))

    def ends(self, numbers: list[str]) -> np.ndarray:
        """Return the minimum and the maximum of every column, of shape (2, columns)."""
        expressions = ", ".join(f"MIN({text}), MAX({text})" for text in numbers)
        return np.array(self.dialect.run(f"SELECT {expressions} FROM {self.table}")[0], dtype=float).reshape(-1, 2).T

    def check_ends(self, factor: Factor, ends: np.ndarray) -> None:
        """Raise DataError if a number is infinite or out of support."""
        is_outside = out_of_support(factor.family, ends)
        is_invalid = np.isinf(ends) if is_outside is None else np.isinf(ends) | is_outside
        for name, cells, is_bad in zip(factor.columns, ends.T, is_invalid.T, strict=True):
            if is_bad.any():
                problem = f"found {float(cells[is_bad][0])!r} in column {name!r} of {self.name}"
                raise DataError(f"{problem}; expected {factor.family.allowed_values}.")


def as_rows(dialect: Dialect, query: str) -> str:
    """Return a query in the form in which it follows FROM."""
    return f"({query.strip().rstrip(';')}\n) AS {dialect.quote('rows of it')}"


def aliases(prefix: str, expressions: Sequence[str]) -> list[str]:
    """Return numbered columns of a SELECT clause."""
    return [f"{text} AS {prefix}{k}" for k, text in enumerate(expressions)]


def rows_by_column(rows: list[tuple[Any, ...]], n_given: int, slots: Sequence[int]) -> list[list[tuple[Any, ...]]]:
    """Return rows (*given, value, count) by column, from rows (column, *given, *cells, count).

    Parameters
    ----------
    rows : list of tuples
    n_given : int
    slots : sequence of int
        For every column, the position of its cell.
    """
    by_column: list[list[tuple[Any, ...]]] = [[] for _ in slots]
    for column, *row in rows:
        by_column[int(column)].append((*row[:n_given], row[n_given + slots[int(column)]], row[-1]))
    return by_column


def _grouped_values(family: Family, values: pa.Array) -> pa.Array:
    """Return the values by which a family groups a column: those that stand for its bins, or the values themselves."""
    import pyarrow as pa

    if sql_group_expression(family, SqlColumn(0)) is None:
        return values
    codes = values.to_numpy(zero_copy_only=False).astype(float)
    is_known = ~np.isnan(codes)
    codes[is_known] = sql_group_value(family, codes[is_known])
    return pa.array(codes, from_pandas=True)


def _values_of(values: list[Any]) -> Any:
    """Convert values of a database to an Arrow array; values of several types become strings."""
    import pyarrow as pa

    try:
        array = pa.array(values, from_pandas=True)
        if not isinstance(array, pa.ExtensionArray):  # such as UUIDs, which are read as text
            return array
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        pass
    return pa.array([None if value is None else str(value) for value in values])

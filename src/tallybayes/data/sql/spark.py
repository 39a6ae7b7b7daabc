"""Spark: data frames that Spark counts, wherever their rows lie; the one file that asks PySpark for rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tallybayes.data.sampling import SAMPLE
from tallybayes.data.source import Source, in_batches
from tallybayes.data.sql.dialects import Dialect, first_line
from tallybayes.data.sql.query_source import FIRST, QUERY, Query
from tallybayes.errors import DataError
from tallybayes.tally.factor import Name

if TYPE_CHECKING:
    import pyarrow as pa

_ALONE = re.compile(r"\binterval( year| month|[,>]|$)")  # types that Arrow does not have
_FRAME = "{rows}"  # PySpark puts a view of the frame there while a query is read, and drops it, also after an error


class SparkText(Dialect):
    """Spark's SQL, to be read by whoever has it."""

    double = "DOUBLE"
    label = "STRING"

    def quote(self, name: Any) -> str:
        """A name of the user's, whatever it holds."""
        return _quoted(str(name))

    def number(self, column: str) -> str:
        """A column as a number; NaN is missing."""
        return f"NANVL(CAST({column} AS DOUBLE), NULL)"

    def part_of_date(self, name: str, date: Any) -> str:
        """A part of the dates of a column, by its name."""
        part, column = name.rpartition(".")[2], self.quote(date)
        return f"{'WEEKDAY' if part == 'day_of_week' else part.upper()}({column})"

    def text(self, value: str) -> str:
        """A string; one that a setting of Spark's could read in another way by its bytes."""
        written = super().text(value)
        return f"CAST(X'{value.encode().hex()}' AS STRING)" if set(value) & set("'\\$") else written


class SparkSql(SparkText):
    """Spark's SQL over one frame.

    Parameters
    ----------
    connection : pyspark.sql.DataFrame
    """

    def quote(self, name: Any) -> str:
        """A name of the user's, in a text in which PySpark puts frames between braces."""
        return super().quote(name).replace("{", "{{").replace("}", "}}")

    def ask(self, query: str) -> Any:
        """The frame that answers a query; nothing is computed yet."""
        return self.connection.sparkSession.sql(query, rows=self.connection)

    def run(self, query: str) -> list[tuple[Any, ...]]:
        """All rows of an answer."""
        return [tuple(row) for row in self.ask(query).collect()]

    def columns(self, table: str) -> list[str]:
        """The names of its columns."""
        return list(self.connection.columns)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """A frame is a plan over files or tables, not a transaction: it is as steady as what it reads."""
        yield


class SparkFrame(Query):
    """A data frame of PySpark.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
    name : str
        What messages call it.
    """

    dialect: SparkSql

    def __init__(self, frame: Any, name: str = "the Spark frame") -> None:
        super().__init__(SparkSql(frame), _FRAME)
        self.name, self.table = name, _FRAME

    @cached_property
    def names(self) -> list[str]:
        """The names of its columns."""
        return self._checked(self.dialect.columns(self.table))

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns and their types, which a frame knows."""
        import pyarrow as pa

        found = self._select(self.names).limit(0).toArrow().schema  # where times have the zone of the session
        alone = {name: pa.opaque(pa.string(), kind, "Spark") for name, kind in self._alone.items()}
        return pa.schema([(field.name, alone.get(field.name, field.type)) for field in found])

    @cached_property
    def _alone(self) -> dict[str, str]:
        """The columns of types that Arrow does not have, such as intervals of months: they are read as text."""
        kinds = {field.name: field.dataType.simpleString() for field in self.dialect.connection.schema}
        return {name: kind for name, kind in kinds.items() if _ALONE.search(kind)}

    def _rows(self, frame: Any) -> pa.Table:
        """The rows of a selection, in memory."""
        found = frame.toArrow()
        return found.cast(self.schema) if self._alone else found

    def exact(self, columns: Sequence[Name]) -> SparkFrame:
        """The same rows: decimals have every digit already."""
        return self

    def keeping(self, columns: Sequence[Name], to: Any = None) -> tuple[Source, list[str], pa.Schema]:
        """The same rows, whose columns have the types of Arrow wherever they are written."""
        return Source.keeping(self, columns, to)

    def first_batch(self) -> pa.Table:
        """The first rows, of as few partitions as have them."""
        if self._first is None:
            self._first = self._rows(self._select(self.names).limit(FIRST))
        return self._first

    def sample(self, n: int = SAMPLE) -> tuple[pa.Table, int]:
        """A random sample of the rows, as Spark draws it, and the number of all rows."""
        frame = self._select(self.names)
        n_rows = frame.count()
        return self._rows(frame if n_rows <= n else frame.sample(n / n_rows, seed=0)), n_rows

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """The rows, a partition at a time: each arrives as a few cells of bytes, which hold Arrow's batches."""
        import pyarrow as pa

        schema = pa.schema([("rows", pa.binary())])

        def pack(rows: pa.Table) -> pa.Table:
            import pyarrow

            sink = pyarrow.BufferOutputStream()
            with pyarrow.ipc.new_stream(sink, rows.schema) as stream:
                stream.write_table(rows)
            return pyarrow.table({"rows": [sink.getvalue().to_pybytes()]}, schema)

        packed = self.map(pack, columns, schema)
        yield from in_batches(pa.ipc.open_stream(row[0]).read_all() for row in packed.toLocalIterator())

    def map(self, function: Callable[[pa.Table], pa.Table], columns: Sequence[str] | None, schema: pa.Schema) -> Any:
        """The frame that a function makes of some rows at a time, where they are.

        Parameters
        ----------
        function : callable
            From an Arrow table to one of the schema. It travels, so it is to be small.
        columns : sequence of str, optional
            Those that it is given; all by default.
        schema : pyarrow.Schema
        """
        from pyspark.sql.pandas.types import from_arrow_schema

        wanted = list(self.names if columns is None else columns)
        self.check_columns(wanted)

        def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:  # pickled by value: it is in no module
            import pyarrow

            for batch in batches:
                rows = pyarrow.Table.from_arrays(batch.columns, names=wanted)
                yield from function(rows).to_batches()

        names = [f"c{place}" for place in range(len(wanted))]  # PySpark quotes none of those of a mapped frame
        plain = self._select(wanted).toDF(*names)
        return plain.mapInArrow(work, from_arrow_schema(schema))

    def selecting(self, columns: dict[str, str]) -> Query:
        """The same rows with other columns, as they are written."""
        return SparkFrame(self.dialect.ask(self._selected(columns)), self.name)

    def _select(self, names: Sequence[str]) -> Any:
        frame, alone = self.dialect.connection, self._alone
        columns = [
            frame[_quoted(name)].cast("string").alias(name) if name in alone else _quoted(name) for name in names
        ]
        return frame.select(*columns)

    def _grouped(
        self, given: list[str], columns: list[str], counted: str
    ) -> Iterator[tuple[int, list[tuple[Any, ...]]]]:
        """By column: (*given, value, how often) of every combination that there is.

        Cells of a row are laid below one another, those of each type in a column of their own, and counted: Spark
        is two to three times as fast at that as at GROUPING SETS, which keep a column for every cell.
        """
        if len(columns) == 1:
            yield from super()._grouped(given, columns, counted)
            return
        names = [f"c{k}" for k in range(len(columns))]
        asked = ", ".join(f"{text} AS {name}" for text, name in zip(columns, names, strict=True))
        of = [field.dataType.simpleString() for field in self.dialect.ask(f"SELECT {asked} FROM {self.table}").schema]
        kinds = list(dict.fromkeys(of))
        cells = [
            ", ".join([str(place), *(text if kind == mine else "NULL" for kind in kinds)])
            for place, (text, mine) in enumerate(zip(columns, of, strict=True))
        ]
        groups, slots = [f"g{k}" for k in range(len(given))], [f"v{k}" for k in range(len(kinds))]
        weight = [] if counted == "COUNT(*)" else [f"{counted[4:-1]} AS w"]
        inner = ", ".join([f"{text} AS {group}" for text, group in zip(given, groups, strict=True)] + weight)
        stacked = f"stack({len(columns)}, {', '.join(cells)}) AS (place, {', '.join(slots)})"
        by = ", ".join(["place", *groups, *slots])
        found = self.dialect.run(
            f"SELECT {by}, {'SUM(w)' if weight else counted} FROM "
            f"(SELECT {', '.join(filter(None, [inner, stacked]))} FROM {self.table}) GROUP BY {by}"
        )
        by_place: dict[int, list[tuple[Any, ...]]] = {place: [] for place in range(len(columns))}
        for place, *row in found:
            value = row[len(given) + kinds.index(of[place])]
            by_place[place].append((*row[: len(given)], value, row[-1]))
        yield from by_place.items()


def open_session(session: Any, query: str) -> SparkFrame:
    """A table that a session knows, or the answer to a query, which can only read: it is asked inside another."""
    if QUERY.match(query):
        try:
            return SparkFrame(session.sql(f"SELECT * FROM ({query.strip().rstrip(';')}\n)"), "the query")
        except Exception as error:
            raise DataError(f"the query cannot be asked: {first_line(error)}.") from error
    errors = []
    for name in dict.fromkeys((_quoted(query), ".".join(map(_quoted, query.split("."))))):
        try:
            return SparkFrame(session.table(name), f"the table {query}")
        except Exception as error:
            errors.append(first_line(error))
    raise DataError(f"there is no table {query!r} to be read: {errors[-1]}.")


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"

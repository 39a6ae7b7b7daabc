"""Sources made of an iterator of batches, or of another source."""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

from tallybayes.data.source import BATCH, Source, in_batches, reading
from tallybayes.errors import DataError, short_repr
from tallybayes.typing import Column

if TYPE_CHECKING:
    from typing import IO

    import polars as pl
    import pyarrow as pa
    import pyarrow.compute as pc


_IN_MEMORY = 1 << 26  # bytes of an iterator's rows that are stored in memory, not in a file


class Batches(Source):
    """Rows that come as data frames or Arrow batches, from an iterator or a function that makes one.

    Parameters
    ----------
    make : callable
        Returns the parts in order, at every call.
    name : str
    once : bool, default False
        Whether `make` may be called only once, as for an iterator.
    """

    def __init__(self, make: Callable[[], Iterator[Any]], name: str, *, once: bool = False) -> None:
        super().__init__(name)
        self._make = make
        self._once = once
        self._parts: Iterator[Any] | None = None

    @property
    def schema(self) -> pa.Schema:
        """The columns and their types in the first batch."""
        return self.first_batch().schema

    def first_batch(self) -> pa.Table:
        """Return the first batch; `batches` yields it again."""
        if self._first is None:
            parts = self._tables()
            self._first = next(parts, None)
            if self._first is None:
                raise DataError(f"{self.name} has no rows; expected at least one batch.")
            self._parts = parts
        return self._first

    def keep(self) -> None:
        """Copy the rows of an iterator to a temporary file, from which they are read afterwards."""
        import pyarrow as pa

        if not self._once:
            return
        file = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 (it is closed with the source)
        weakref.finalize(self, file.close)
        for part in self.batches():  # streams of their own, since dictionaries may differ
            with pa.ipc.new_stream(pa.PythonFile(file, "w"), part.schema) as writer:
                writer.write_table(part)
        size = file.tell()
        self._make = lambda: _kept_parts(file, size)
        self._once = False

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Yield the rows in batches."""
        first = self.first_batch()
        if self._once and self._parts is None:
            raise DataError(
                f"{self.name} was read before, and an iterator can be read only once.\n"
                "    Pass a function that returns it, tb.table(lambda: ...), or write the rows to a file."
            )
        parts = chain([first], self._parts) if self._parts is not None else self._tables()
        self._parts = None
        wanted = None if columns is None else list(columns)
        if wanted is not None:
            self.check_columns(wanted)
        for table in in_batches(parts):
            yield table if wanted is None else table.select(wanted)

    def _tables(self) -> Iterator[pa.Table]:
        """Yield every part as an Arrow table with the columns of the first."""
        schema = None
        for number, part in enumerate(self._make()):
            table = _as_arrow(part, number)
            if schema is None:
                schema = table.schema
            elif set(table.schema.names) != set(schema.names):
                differing = sorted(set(schema.names) ^ set(table.schema.names))[0]
                raise DataError(
                    f"batch {number} of {self.name} and the first have different columns, such as column {differing!r};"
                    " expected the same columns in all."
                )
            elif table.schema != schema:
                table = _as_first(table.select(schema.names), schema, number)
            yield table


def _kept_parts(file: IO[bytes], size: int) -> Iterator[pa.Table]:
    """Yield the parts of a temporary file, each an Arrow stream."""
    import pyarrow as pa

    position = 0
    while position < size:
        file.seek(position)
        part = pa.ipc.open_stream(pa.PythonFile(file, "r")).read_all()
        position = file.tell()
        yield part


def _as_first(table: pa.Table, schema: pa.Schema, number: int) -> pa.Table:
    """Convert a batch to the types of the first."""
    import pyarrow as pa

    columns = []
    for field in schema:
        column = table.column(field.name)
        if column.type != field.type:
            is_compatible = pa.types.is_null(field.type) or any(map(pa.types.is_dictionary, (column.type, field.type)))
            try:
                column = column if is_compatible else column.cast(field.type)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                raise DataError(
                    f"column {field.name!r} is {field.type} in the first batch and {column.type} in batch {number}; "
                    "expected one type."
                ) from None
        columns.append(column)
    return pa.Table.from_arrays(columns, names=schema.names)


def _as_arrow(part: object, number: int) -> pa.Table:
    """Convert a batch to an Arrow table; raise DataError if it is not a table."""
    import narwhals as nw
    import pyarrow as pa

    if isinstance(part, pa.RecordBatch):
        return pa.Table.from_batches([part])
    if isinstance(part, pa.Table):
        return part
    if isinstance(part, Mapping) and all(
        hasattr(column, "__len__") and type(column) is not str for column in part.values()
    ):
        with reading(f"batch {number}"):
            return pa.table({name: _as_column(cells) for name, cells in part.items()})
    frame = nw.from_native(part, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        expected = "a data frame, an Arrow batch, or a dictionary of columns"
        hint = "Pass rows as a list: list(rows)." if isinstance(part, Mapping) else ""
        raise DataError.wrong_type(f"batch {number}", short_repr(part), expected, hint)
    if not all(isinstance(name, str) for name in frame.columns):
        names = f"columns named {', '.join(map(repr, frame.columns[:3]))}"
        hint = "Rename them: frame.columns = frame.columns.map(str)."
        raise DataError.wrong_type(f"batch {number}", f"a frame with {names}", "strings as names", hint)
    with reading(f"batch {number}"):
        return frame.to_arrow()


def _as_column(values: Column) -> Any:
    """Convert an array to an Arrow array; the rows of an array of several axes become lists."""
    import pyarrow as pa

    return pa.array(values if getattr(values, "ndim", 1) == 1 else list(values), from_pandas=True)


def lazy_frame(frame: pl.LazyFrame) -> Source:
    """Return the rows of a Polars LazyFrame as a source."""
    if hasattr(frame, "collect_batches"):
        return Batches(lambda: iter(frame.collect_batches(chunk_size=BATCH)), "the lazy frame")
    return Batches(lambda: iter([frame.collect()]), "the lazy frame")


class View(Source):
    """A source with fewer columns or rows, or columns of other types.

    Parameters
    ----------
    source : Source
    columns : sequence of names, optional
    where : pyarrow Expression, optional
        Rows for which it holds.
    types : mapping from name to an Arrow type
    null_values : sequence of str, optional
        Strings that represent a missing value.
    """

    def __init__(
        self,
        source: Source,
        columns: Sequence[str] | None,
        where: pc.Expression | None,
        types: Mapping[str, Any],
        null_values: Sequence[str] | None,
    ) -> None:
        super().__init__(source.name)
        self.source = source
        self.columns = columns
        self.where = where
        self.types = dict(types)
        self.null_values = null_values
        if columns is not None:
            source.check_columns(columns)
        source.check_columns(types)

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns and their types."""
        import pyarrow as pa

        schema = self.source.schema
        names = schema.names if self.columns is None else self.columns
        return pa.schema([pa.field(name, self.types.get(name, schema.field(name).type)) for name in names])

    @property
    def n_rows(self) -> int | None:
        """The number of rows, if it is known."""
        return self.source.n_rows if self.where is None else None

    def keep(self) -> None:
        """Copy rows that can be read only once to a temporary file."""
        self.source.keep()

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Yield the rows in batches."""
        names = list(self.schema.names if columns is None else columns)
        self.check_columns(names)
        for batch in self.source.batches(names if self.where is None else None):
            with reading(self.name):
                table = batch if self.where is None else batch.filter(self.where)
                table = self._typed(table.select(names))
            yield table

    def _typed(self, table: pa.Table) -> pa.Table:
        """Convert columns to their types, and null values to missing ones."""
        import pyarrow as pa
        import pyarrow.compute as pc

        columns = []
        for name, column in zip(table.column_names, table.columns, strict=True):
            kind = self.types.get(name)
            if pa.types.is_dictionary(column.type) and (self.null_values or kind is not None):
                column = column.cast(column.type.value_type)
            if self.null_values and str(column.type) in ("string", "large_string"):
                is_null = pc.is_in(column, pa.array(self.null_values, column.type))
                column = pc.if_else(is_null, pa.scalar(None, column.type), column)
            if kind is not None and column.type != kind:
                try:
                    column = column.cast(kind)
                except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                    raise DataError(
                        f"column {name!r} of {self.name} cannot be read as {kind}: {error}.\n"
                        "    Correct these cells, or change the type of the column in types=."
                    ) from None
            columns.append(column)
        return pa.table(columns, names=table.column_names).replace_schema_metadata(table.schema.metadata)

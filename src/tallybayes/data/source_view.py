"""View: some columns and rows of a source, with their types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tallybayes.data.source import Source, reading
from tallybayes.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa


class View(Source):
    """A source with fewer columns or rows, or columns of other types.

    Parameters
    ----------
    source : Source
    columns : sequence of names, optional
    where : pyarrow Expression, optional
    types : mapping from name to an Arrow type
    null_values : sequence, optional
        Labels that stand for a missing cell.
    """

    def __init__(
        self,
        source: Source,
        columns: Sequence[str] | None,
        where: Any,
        types: Mapping[str, Any],
        null_values: Sequence[str] | None,
    ) -> None:
        super().__init__(source.name)
        self.source, self.columns, self.where = source, columns, where
        self.types, self.null_values = dict(types), null_values
        if columns is not None:
            source.check_columns(columns)
        source.check_columns(types)

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns and their types."""
        import pyarrow as pa

        known = self.source.schema
        names = known.names if self.columns is None else self.columns
        return pa.schema([pa.field(name, self.types.get(name, known.field(name).type)) for name in names])

    @property
    def n_rows(self) -> int | None:
        """How many rows there are, if that is known."""
        return self.source.n_rows if self.where is None else None

    def keep(self) -> None:
        """Make rows that come once readable again."""
        self.source.keep()

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """The rows, some at a time."""
        names = list(self.schema.names if columns is None else columns)
        self.check_columns(names)
        for batch in self.source.batches(names if self.where is None else None):
            with reading(self.name):
                table = batch if self.where is None else batch.filter(self.where)
                table = self._typed(table.select(names))
            yield table

    def _typed(self, table: pa.Table) -> pa.Table:
        import pyarrow as pa
        import pyarrow.compute as pc

        names, columns = table.column_names, []
        for place, name in enumerate(names):
            column, kind = table.column(place), self.types.get(name)
            if pa.types.is_dictionary(column.type) and (self.null_values or kind is not None):
                column = column.cast(column.type.value_type)
            if self.null_values and (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
                gone = pc.is_in(column, pa.array(self.null_values, column.type))
                column = pc.if_else(gone, pa.scalar(None, column.type), column)
            if kind is not None and column.type != kind:
                try:
                    column = column.cast(kind)
                except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                    raise DataError(f"column {name!r} of {self.name} cannot be {kind}: {error}.") from None
            columns.append(column)
        return pa.table(columns, names=names).replace_schema_metadata(table.schema.metadata)

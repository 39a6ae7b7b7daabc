"""Files of Arrow's own: Parquet and Arrow IPC (Feather), one or many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from tallybayes.errors import DataError
from tallybayes.sources.parquet_pages import row_groups
from tallybayes.sources.source import Source, in_batches, placed, reading, rows_of

if TYPE_CHECKING:
    import pyarrow as pa


class ArrowFiles(Source):
    """Rows of Parquet or IPC files that have the same columns, in the order of the files.

    Parameters
    ----------
    paths : sequence of str
    format : {"parquet", "ipc"}
    """

    def __init__(self, paths: Sequence[str], format: str) -> None:
        super().__init__(paths[0] if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more")
        self.paths, self.format = list(paths), format

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns and their types; labels of Parquet are read as the codes that the file has for them."""
        import pyarrow as pa
        import pyarrow.dataset as ds

        schemas: dict[str, pa.Schema] = {}
        for path in self.paths:
            with reading(path, f"as {self.format}"):
                if self._is_stream(path):
                    with pa.ipc.open_stream(path) as stream:
                        schemas[path] = stream.schema.remove_metadata()
                else:
                    schemas[path] = ds.dataset(path, format=self.format).schema.remove_metadata()
        schema = united(schemas)
        for place, field in enumerate(schema if self.format == "parquet" else ()):
            if pa.types.is_string(field.type):
                schema = schema.set(place, pa.field(field.name, pa.dictionary(pa.int32(), pa.string())))
        return schema

    @cached_property
    def n_rows(self) -> int | None:
        """How many rows there are, as the files say; streams do not say it."""
        import pyarrow.dataset as ds

        if any(map(self._is_stream, self.paths)):
            return None
        with reading(self.name, f"as {self.format}"):
            return int(ds.dataset(self.paths, schema=self.schema, format=self.format).count_rows())

    def _is_stream(self, path: str) -> bool:
        """Whether a file is in Arrow's streaming format, which has no mark at its beginning."""
        if self.format != "ipc":
            return False
        with open(path, "rb") as file:
            return file.read(6) not in (b"ARROW1", b"")

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """The rows, some at a time."""
        wanted = self.schema.names if columns is None else list(columns)
        self.check_columns(wanted)
        schema = self._selected(wanted)
        read, n_rows = self._parquet if self.format == "parquet" else self._ipc, rows_of(schema)
        for path in self.paths:
            with reading(path, f"as {self.format}"):
                yield from placed(in_batches(map(_checked, read(path, schema, n_rows)), n_rows), path, "row", 0)

    def _selected(self, names: Sequence[str]) -> pa.Schema:
        import pyarrow as pa

        return pa.schema([self.schema.field(name) for name in names])

    def _parquet(self, path: str, schema: pa.Schema, n_rows: int) -> Iterator[pa.Table]:
        """The columns of a row group are decoded on all cores."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        labels = [field.name for field in schema if pa.types.is_dictionary(field.type)]
        with pq.ParquetFile(path, read_dictionary=labels, pre_buffer=False) as file:
            for part in row_groups(file, path, schema.names, n_rows):
                table = part.replace_schema_metadata(None)
                yield table if table.schema == schema else table.cast(schema)

    def _ipc(self, path: str, schema: pa.Schema, n_rows: int) -> Iterator[pa.RecordBatch | pa.Table]:
        import pyarrow as pa
        import pyarrow.dataset as ds

        if self._is_stream(path):
            with pa.ipc.open_stream(path) as stream:
                for batch in stream:
                    yield pa.table(batch.select(schema.names)).cast(schema)
            return
        found = ds.dataset(path, schema=self.schema, format="ipc")
        yield from found.to_batches(columns=schema.names, batch_size=n_rows, batch_readahead=2)


def _checked(part: pa.RecordBatch | pa.Table) -> pa.RecordBatch | pa.Table:
    """The same rows; raise ArrowInvalid if a string is not UTF-8, which Arrow does not check when it reads."""
    import pyarrow as pa

    for column in part.columns:
        for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
            array = chunk.dictionary if pa.types.is_dictionary(chunk.type) else chunk
            if not pa.types.is_primitive(array.type):
                array.validate(full=True)
    return part


def united(schemas: dict[str, pa.Schema]) -> pa.Schema:
    """One schema for all files; a column that one of them lacks, or has as another kind, is refused by name."""
    import pyarrow as pa

    first_path, first = next(iter(schemas.items()))
    for path, schema in schemas.items():
        absent = [name for name in first.names if name not in schema.names]
        more = [name for name in schema.names if name not in first.names]
        if absent or more:
            lacking, having = (path, first_path) if absent else (first_path, path)
            raise DataError(
                f"{lacking} has no column {(absent or more)[0]!r}, which {having} has; expected the same columns in "
                "all files.\n    Name those to be read: tb.table(files, columns=[...])."
            )
        for name in first.names:
            types = [one.field(name).type for one in (first, schema)]
            numbers = all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in types)
            if types[0] != types[1] and not numbers and not any(map(pa.types.is_null, types)):
                raise DataError(
                    f"column {name!r} is {types[0]} in {first_path} and {types[1]} in {path}; expected one type.\n"
                    f"    Say which: tb.table(files, types={{{name!r}: 'string'}})."
                )
    return pa.unify_schemas(list(schemas.values()), promote_options="permissive")

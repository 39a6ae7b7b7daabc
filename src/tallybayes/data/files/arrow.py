"""Parquet and Arrow IPC (Feather) files."""

from __future__ import annotations

import mmap
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cached_property
from typing import TYPE_CHECKING

from tallybayes.data.named_matrix import check_unique_names
from tallybayes.data.source import Files, in_batches, reading, rows_of, with_location
from tallybayes.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_BATCH_BYTES = 2 << 20  # of a batch of a Parquet file; some batches are in memory at a time
_BATCH_ROWS = 1 << 14  # its rows, at least, unless columns are many
_LARGEST = 1 << 25  # bytes of the largest row group whose column chunks are read whole
_BUFFER = 1 << 16  # bytes of a larger column chunk that are read at a time
_MOST_ROWS = 1 << 22  # rows of a row group of small pages that is read through buffers
_MOST_CELLS = 10**8  # its cells
_GIVE_BACK: int | None = getattr(mmap, "MADV_DONTNEED", None)  # None on Windows


class ArrowFiles(Files):
    """Rows of Parquet or Arrow IPC files with the same columns, in the order of the files.

    Parameters
    ----------
    paths : sequence of str
    format : {"parquet", "ipc"}
    """

    def __init__(self, paths: Sequence[str], format: str) -> None:
        super().__init__(paths)
        self.format = format

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns and their types; strings in Parquet files are read as dictionaries."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        schemas: dict[str, pa.Schema] = {}
        for path in self.paths:
            with reading(path, f"as {self.format}"):
                with pa.OSFile(path) as file:  # a path would be mapped into memory
                    if self.format == "parquet":
                        schema = pq.read_schema(file)
                    else:
                        schema = (pa.ipc.open_stream if self._is_stream(path) else pa.ipc.open_file)(file).schema
                    schemas[path] = schema.remove_metadata()
                check_unique_names(schemas[path].names, path)  # decodes the names, which may not be UTF-8
        schema = united(schemas)
        if self.format != "parquet":
            return schema
        codes = pa.dictionary(pa.int32(), pa.string())
        return pa.schema([pa.field(f.name, codes) if pa.types.is_string(f.type) else f for f in schema])

    @cached_property
    def n_rows(self) -> int | None:
        """The number of rows according to the files; None for streams, which do not contain it."""
        import pyarrow.dataset as ds

        if any(map(self._is_stream, self.paths)):
            return None
        with reading(self.name, f"as {self.format}"):
            return int(ds.dataset(self.paths, schema=self.schema, format=self.format).count_rows())

    def _is_stream(self, path: str) -> bool:
        """Return whether a file is in the Arrow streaming format, which has no mark at its beginning."""
        if self.format != "ipc":
            return False
        with open(path, "rb") as file:
            return file.read(6) not in (b"ARROW1", b"")

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Yield the rows in batches."""
        import pyarrow as pa

        wanted = self.schema.names if columns is None else list(columns)
        self.check_columns(wanted)
        schema = pa.schema([self.schema.field(name) for name in wanted])
        n_rows = rows_of(schema)
        parquet = self.format == "parquet"
        if parquet:
            n_rows = min(n_rows, rows_of(schema, _BATCH_BYTES, _BATCH_ROWS))
        for path in self.paths:
            with reading(path, f"as {self.format}"):
                parts = self._parquet(path, schema, n_rows) if parquet else self._ipc(path, schema)
                yield from with_location(in_batches(map(_checked, parts), n_rows), path, "row", 0)

    def _parquet(self, path: str, schema: pa.Schema, n_rows: int) -> Iterator[pa.Table]:
        """Yield batches of a Parquet file in bounded memory, whatever the size of row groups."""
        import pyarrow as pa

        file = _ParquetFile(path)
        wanted = [position for name in schema.names for position in file.positions[name]]
        # Strings encoded by differences (DELTA_BYTE_ARRAY, …) cannot be read as dictionaries. This is tried, since
        # pyarrow ends the process on reading the encodings from damaged metadata of columns.
        as_codes = [name for name in schema.names if pa.types.is_dictionary(schema.field(name).type)]
        n_read = 0
        while True:
            n_to_skip = n_read
            try:
                for batch in file.batches(wanted, as_codes, n_rows):
                    if n_to_skip < len(batch):
                        table = pa.Table.from_batches([batch.slice(n_to_skip)]).select(schema.names)
                        table = table.replace_schema_metadata(None)
                        n_read += len(table)
                        yield table if table.schema == schema else table.cast(schema)
                    n_to_skip = max(0, n_to_skip - len(batch))
                break
            except OSError:
                if not as_codes:
                    raise
                readable = list(filter(file.has_codes, as_codes))
                as_codes = readable if len(readable) < len(as_codes) else []
        if wanted and n_read < file.metadata.num_rows:  # Arrow 18 ends silently where a file was truncated
            raise OSError(f"it has {n_read} of the {file.metadata.num_rows} rows that its footer lists")

    def _ipc(self, path: str, schema: pa.Schema) -> Iterator[pa.RecordBatch | pa.Table]:
        """Yield the batches of an Arrow IPC file or stream, one in memory at a time."""
        import pyarrow as pa

        def converted(batch: pa.RecordBatch) -> pa.RecordBatch | pa.Table:
            batch = batch.select(schema.names).replace_schema_metadata(None)
            return batch if batch.schema == schema else pa.table(batch).cast(schema)

        with pa.OSFile(path) as file:  # a path would be mapped into memory
            if self._is_stream(path):
                with pa.ipc.open_stream(file) as stream:
                    yield from map(converted, stream)
                if os.path.getsize(path) < file.tell():  # Arrow takes the end of the file for that of the stream
                    raise pa.ArrowInvalid("it was truncated while it was read")
                return
            with pa.ipc.open_file(file) as reader:
                wanted = [reader.schema.get_field_index(name) for name in schema.names]
            with pa.ipc.open_file(file, options=pa.ipc.IpcReadOptions(included_fields=wanted)) as reader:
                yield from (converted(reader.get_batch(k)) for k in range(reader.num_record_batches))


class _ParquetFile:
    """A Parquet file that is decoded in bounded memory.

    Attributes
    ----------
    metadata : pyarrow.parquet.FileMetaData
    positions : dict from column to the positions of its parts in the file
    """

    def __init__(self, path: str) -> None:
        import pyarrow.parquet as pq

        self.path = path
        self.metadata = pq.read_metadata(path)
        self.positions = _leaf_places(self.metadata.schema.to_arrow_schema())
        # Arrow keeps the column chunks of a row group until all of its rows are decoded, unless it reads through
        # buffers. A buffer grows to the size of its chunk where pages have less than 16 kB (Arrow 26).
        groups = range(self.metadata.num_row_groups)
        largest = max((self.metadata.row_group(k).total_byte_size for k in groups), default=0)
        self._copied = _GIVE_BACK is not None and any(_has_small_pages(self.metadata, k) for k in groups)
        self._buffer = _BUFFER if largest > _LARGEST and not self._copied else 0  # then one thread decodes

    def batches(self, columns: Sequence[int], as_codes: Iterable[str], n_rows: int) -> Iterator[pa.RecordBatch]:
        """Yield batches of some columns, by position; the strings of some columns are read as dictionaries."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        # Arrow's default allocator mimalloc keeps up to 100 MB of freed memory of the decoding threads. Arrow uses it
        # for pages whatever the pool: 1 MB for every column (Arrow 26).
        jemalloc = "jemalloc" in pa.supported_memory_backends()
        pool = pa.jemalloc_memory_pool() if jemalloc else pa.default_memory_pool()
        with closing(pq.core.ParquetReader(pool)) as reader, _mapped_copy(self.path, self._copied) as copy:
            reader.open(
                self.path if copy is None else pa.py_buffer(copy),
                metadata=self.metadata,
                read_dictionary=[self.metadata.schema.column(self.positions[name][0]).path for name in as_codes],
                pre_buffer=False,
                buffer_size=self._buffer,
            )
            groups = range(self.metadata.num_row_groups)
            batches = reader.iter_batches(
                n_rows, row_groups=groups, column_indices=columns, use_threads=not self._buffer
            )
            for batch in batches:
                yield batch
                _give_back_memory(copy, buffered=self._buffer > 0)

    def has_codes(self, name: str) -> bool:
        """Return whether the strings of a column can be read as dictionaries."""
        try:
            next(self.batches(self.positions[name], [name], 1), None)
            return True
        except OSError:
            return False


def _checked(part: pa.RecordBatch | pa.Table) -> pa.RecordBatch | pa.Table:
    """Return the same rows; raise ArrowInvalid if a string is not UTF-8, which Arrow does not check during reading."""
    import pyarrow as pa

    for column in part.columns:
        for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
            array = chunk.dictionary if pa.types.is_dictionary(chunk.type) else chunk
            if not pa.types.is_primitive(array.type):
                array.validate(full=True)
    return part


def _has_small_pages(metadata: pq.FileMetaData, group: int) -> bool:
    """Return whether a row group has many cells of few bits, whose pages of 20,000 rows are small."""
    rows = metadata.row_group(group).num_rows
    n_bytes = metadata.row_group(group).total_byte_size
    n_cells = rows * metadata.num_columns
    return rows > _MOST_ROWS and n_cells > _MOST_CELLS and n_bytes < 2 * n_cells


@contextmanager
def _mapped_copy(path: str, copied: bool) -> Iterator[mmap.mmap | None]:
    """Map a temporary copy of a file into memory, if it is to be copied.

    The file itself is never mapped: if another program truncates it, reading a mapped page ends the process.
    """
    if not copied:
        yield None
        return
    with open(path, "rb") as file, tempfile.TemporaryFile() as copy:
        shutil.copyfileobj(file, copy, 1 << 20)
        copy.flush()
        yield mmap.mmap(copy.fileno(), 0, access=mmap.ACCESS_READ)


def _give_back_memory(copy: mmap.mmap | None, *, buffered: bool) -> None:
    """Return the memory of the pages that were read to the system."""
    import pyarrow as pa

    if copy is not None and _GIVE_BACK is not None:
        copy.madvise(_GIVE_BACK)
    if buffered:
        pa.default_memory_pool().release_unused()


def _leaf_places(schema: pa.Schema) -> dict[str, range]:
    """Return the positions of the leaf columns of every column of a Parquet file.

    Names of leaf columns are ambiguous: "a.b" is a column, or field b of a column a.
    """
    positions = {}
    n = 0
    for field in schema:
        positions[field.name] = range(n, n + _n_leaves(field.type))
        n = positions[field.name].stop
    return positions


def _n_leaves(kind: pa.DataType) -> int:
    """Return the number of leaf columns of a Parquet file for a column of this type."""
    import pyarrow as pa

    if isinstance(kind, pa.BaseExtensionType):
        return _n_leaves(kind.storage_type)
    if not pa.types.is_nested(kind):
        return 1
    return sum(_n_leaves(kind.field(k).type) for k in range(kind.num_fields))


def known_types(schema: pa.Schema) -> pa.Schema:
    """Return the schema with strings in place of columns without any value."""
    import pyarrow as pa

    return pa.schema([pa.field(f.name, pa.string()) if pa.types.is_null(f.type) else f for f in schema])


def united(schemas: dict[str, pa.Schema]) -> pa.Schema:
    """Return one schema for all files; raise DataError if a file lacks a column or has it in another type."""
    import pyarrow as pa

    first_path, first = next(iter(schemas.items()))
    expected = first.names
    for path, schema in schemas.items():
        names = schema.names  # a new list at every access
        in_one = frozenset(expected).symmetric_difference(names)
        differing = next((name for name in (*expected, *names) if name in in_one), None)
        if differing is not None:
            incomplete, complete = (path, first_path) if differing in expected else (first_path, path)
            raise DataError(
                f"{incomplete} has no column {differing!r}, which {complete} has; expected the same "
                "columns in all files.\n    Select the columns to read: tb.table(files, columns=[...])."
            )
        for name in expected:
            check_same_type(name, first_path, first.field(name).type, path, schema.field(name).type)
    return pa.unify_schemas(list(schemas.values()), promote_options="permissive")


def check_same_type(name: str, first_path: str, first: pa.DataType, path: str, kind: pa.DataType) -> None:
    """Raise DataError if the types of a column in two files have no common type."""
    import pyarrow as pa

    are_numbers = all(pa.types.is_integer(one) or pa.types.is_floating(one) for one in (first, kind))
    are_times = all(map(pa.types.is_timestamp, (first, kind))) and first.tz == kind.tz
    if first != kind and not are_numbers and not are_times and not any(map(pa.types.is_null, (first, kind))):
        raise DataError(
            f"column {name!r} is {first} in {first_path} and {kind} in {path}; expected one type.\n"
            f"    Set the type: tb.table(files, types={{{name!r}: 'string'}})."
        )

"""Writing of tables to files and databases, completely or not at all."""

from __future__ import annotations

import base64
import contextlib
import decimal
import json
import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import IO, TYPE_CHECKING, Any, TypeAlias, cast

from tallybayes._utils.atomic_write import atomic_write
from tallybayes.data.open_source import kind_of_file
from tallybayes.data.sql.databases import FEW, Relation, dialect_of
from tallybayes.data.sql.sql_types import without_opaque
from tallybayes.errors import DataError, short_repr
from tallybayes.export.output_names import free_names

if TYPE_CHECKING:
    import pyarrow as pa

    from tallybayes.data.sql.dialects import Dialect

_PACKERS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2", ".lz4": "lz4"}


# A path, an open file, or a connection with the name of a table and its schema.
Output: TypeAlias = "str | os.PathLike[str] | IO[bytes] | Sequence[Any]"
Writer = AbstractContextManager[Callable[["pa.Table"], None]]


def writing_rows(to: Output, schema: pa.Schema, format: str | None = None) -> Writer:
    """Return a context with a function that writes tables to a file or database; after an error nothing is written."""
    import pyarrow as pa

    if hasattr(to, "write"):
        formats = ("csv", "json", "parquet", "ipc")
        if format not in formats:
            raise DataError(f"format is {format!r} and `to` is an open file; expected one of {list(formats)}.")
        file = cast("IO[bytes]", to)
        return _writing_stream(file, schema, format, getattr(file, "name", "the file"))
    if format is not None:
        raise DataError(f"format={format!r} is an option of open files.\n    The format follows from the file name.")
    if isinstance(to, str | os.PathLike):
        return _writing_file(to, schema)
    dialect = database_of(to)
    if dialect is None or isinstance(dialect, Relation) or not all(isinstance(name, str) for name in to[1:]):
        expected = "a path, (connection, name of a table), an open file, or 'pandas', 'polars', 'pyarrow' or 'spark'"
        raise DataError.wrong_type("to", short_repr(to), expected)
    most = dialect.most_bytes
    names = schema.names
    if most is not None and any(len(name.encode()) > most for name in names):
        names = free_names(names, (), most)
    fields = [field.with_name(name) for field, name in zip(schema, names, strict=True)]
    return dialect.writing(to[1:], pa.schema(fields))  # rows are written by position


def database_of(to: Output) -> Dialect | None:
    """Return the dialect of the database to which rows are written, or None."""
    return dialect_of(to[0]) if isinstance(to, tuple | list) and len(to) > 1 else None


@contextlib.contextmanager
def _writing_file(path: str | os.PathLike[str], schema: pa.Schema) -> Iterator[Callable[[pa.Table], None]]:
    """Write tables to a file in the format of its ending; it appears when all tables are written."""
    name = os.fspath(path).lower()
    kind = kind_of_file(name, "Write to a name such as predictions.parquet.")
    packer = _PACKERS.get(os.path.splitext(name)[1])
    if kind in ("parquet", "ipc") and packer:
        raise DataError(f"{path} would be compressed twice; expected a name that ends in .parquet or .arrow.")
    delimiter = "\t" if ".tsv" in name[-8:] else ","
    with (
        atomic_write(os.path.expanduser(path)) as file,
        _writing_stream(file, schema, kind, path, delimiter, packer) as write,
    ):
        yield write


@contextlib.contextmanager
def _writing_stream(
    file: IO[bytes], schema: pa.Schema, kind: str, path: object, delimiter: str = ",", packer: str | None = None
) -> Iterator[Callable[[pa.Table], None]]:
    """Write tables to an open file, which stays open; values of database types are written as text."""
    import pyarrow as pa

    empty = without_opaque(schema.empty_table())
    writers: list[Any] = []
    with contextlib.ExitStack() as stack:
        out: Any = pa.PythonFile(_KeptOpen(file), "w")
        if packer is not None:
            out = stack.enter_context(pa.CompressedOutputStream(out, packer))

        def write(table: pa.Table) -> None:
            try:
                if not writers:  # created late, so that an early error leaves no header line
                    writers.append(_writer(kind, out, empty.schema, delimiter))
                    stack.callback(writers[0].close)
                writers[0].write_table(without_opaque(table))
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:  # types and cells a format does not have
                hint = "Convert or remove the columns, or write to a file of another format."
                raise DataError(f"the columns cannot be written to {path}: {error}.\n    {hint}") from None

        yield write
        write(empty)
    file.flush()


class _KeptOpen:
    """A file that writers do not close, since it is moved to its place when it is complete."""

    closed = False

    def __init__(self, file: IO[bytes]) -> None:
        self.write = file.write
        self.flush = file.flush
        self.tell = file.tell

    def close(self) -> None:
        """Do nothing."""


def _writer(kind: str, out: pa.NativeFile, schema: pa.Schema, delimiter: str) -> Any:
    """Return the Arrow writer for a format."""
    if kind == "json":
        return _JsonLines(out)
    if kind == "parquet":
        import pyarrow.parquet as pq

        return pq.ParquetWriter(out, schema)
    if kind == "ipc":
        import pyarrow as pa

        return pa.ipc.new_file(out, schema)
    import pyarrow.csv as text

    return text.CSVWriter(out, schema, write_options=text.WriteOptions(delimiter=delimiter))


class _JsonLines:
    """A writer of JSON lines."""

    def __init__(self, out: pa.NativeFile) -> None:
        self.out = out

    def write_table(self, table: pa.Table) -> None:
        """Write one line for every row."""
        names = [json.dumps(name, ensure_ascii=False) for name in table.column_names]
        for part in table.to_batches(max_chunksize=FEW):
            for row in zip(*(column.to_pylist() for column in part.columns), strict=True):
                cells = ", ".join(f"{name}: {_json(cell)}" for name, cell in zip(names, row, strict=True))
                self.out.write(f"{{{cells}}}\n".encode())

    def close(self) -> None:
        """Do nothing: every line is complete."""


def _json(cell: object) -> str:
    """Return a cell as JSON: decimals with all digits, bytes in base64, NaN and infinity as null."""
    if isinstance(cell, decimal.Decimal):
        return format(cell, "f")
    if isinstance(cell, float) and not math.isfinite(cell):
        return "null"
    return json.dumps(cell, ensure_ascii=False, default=_as_text)


def _as_text(cell: object) -> str:
    """Return bytes in base64, and other values as strings."""
    return base64.b64encode(cell).decode() if isinstance(cell, bytes) else str(cell)

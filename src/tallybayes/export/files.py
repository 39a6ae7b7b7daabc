"""Files of rows that are written table by table, whole or not at all."""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Callable, Iterator
from io import BufferedWriter
from typing import TYPE_CHECKING, Any

from tallybayes.errors import DataError
from tallybayes.replacing import replacing
from tallybayes.sources.dialects import FEW
from tallybayes.sources.opening import kind_of_file

if TYPE_CHECKING:
    import pyarrow as pa

_PACKERS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2", ".lz4": "lz4"}


@contextlib.contextmanager
def writing_file(path: str | os.PathLike[str], schema: pa.Schema) -> Iterator[Callable[[pa.Table], None]]:
    """What writes tables of a schema to a file, whose kind its ending says; it is there when all are written."""
    import pyarrow as pa

    name = os.fspath(path).lower()
    kind, ending = kind_of_file(name, "Name what is to be written: told.parquet."), os.path.splitext(name)[1]
    if kind in ("parquet", "ipc") and ending in _PACKERS:
        raise DataError(f"{path} would be packed twice; expected a name that ends in .parquet or .arrow.")
    with replacing(os.path.expanduser(path)) as file, contextlib.ExitStack() as stack:
        out: Any = pa.PythonFile(_KeptOpen(file), "w")
        if ending in _PACKERS:
            out = stack.enter_context(pa.CompressedOutputStream(out, _PACKERS[ending]))
        if kind == "json":
            yield lambda table: _write_lines(table, out)
            return
        try:
            writer: Any = _writer(kind, out, schema, "\t" if ".tsv" in name[-8:] else ",")
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise DataError(f"these columns cannot be written to {path}: {error}.\n    Write .parquet.") from None
        with writer:
            yield writer.write_table


class _KeptOpen:
    """A file that writers do not close: it takes its place when it is whole."""

    closed = False

    def __init__(self, file: BufferedWriter) -> None:
        self.write, self.flush, self.tell = file.write, file.flush, file.tell

    def close(self) -> None:
        """Leave it open."""


def _writer(kind: str, out: Any, schema: pa.Schema, delimiter: str) -> Any:
    if kind == "parquet":
        import pyarrow.parquet as pq

        return pq.ParquetWriter(out, schema)
    if kind == "ipc":
        import pyarrow as pa

        return pa.ipc.new_file(out, schema)
    import pyarrow.csv as text

    return text.CSVWriter(out, schema, write_options=text.WriteOptions(delimiter=delimiter))


def _write_lines(table: pa.Table, out: Any) -> None:
    for row in (row for part in table.to_batches(max_chunksize=FEW) for row in part.to_pylist()):
        cells = {name: None if isinstance(v, float) and not math.isfinite(v) else v for name, v in row.items()}
        out.write((json.dumps(cells, ensure_ascii=False, default=str) + "\n").encode())

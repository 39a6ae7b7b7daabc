"""Columns of Parquet that the kernels read themselves: few whole numbers or labels, by the codes that the file has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.kernels import parquet
from tallybayes.sources.source import n_threads

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

LARGEST = 2**26  # bytes that a row group may have: it is read at once, and larger ones by Arrow, in parts
_LENGTHS = {"INT32": 4, "INT64": 8, "BYTE_ARRAY": 0}


def row_groups(file: pq.ParquetFile, path: str, names: Sequence[str], n_rows: int) -> Iterator[pa.Table]:
    """The row groups of a file, of some columns: by the kernels what they understand, by Arrow what they do not.

    Parameters
    ----------
    file : ParquetFile
        Whose strings are read as dictionaries.
    path : str
    names : sequence of str
    n_rows : int
        How many rows Arrow reads at once of a group that is large.
    """
    import pyarrow as pa

    places = {file.metadata.schema.column(k).path: k for k in range(file.metadata.num_columns)}
    types = {name: file.schema_arrow.field(name).type for name in names}
    few = [
        (name, places[name])
        for name in (names if parquet.reads_pages() else ())
        if name in places and _understood(file.metadata.schema.column(places[name]), types[name])
    ]
    with ThreadPoolExecutor(n_threads()) as pool, pa.OSFile(path) as raw:

        def one(group: Any, name: str, place: int) -> pa.Array | None:
            return _column(raw, group.column(place), types[name], file.metadata.schema.column(place))

        for k in range(file.num_row_groups):
            group = file.metadata.row_group(k)
            small = few if group.total_byte_size <= LARGEST else []
            columns = pool.map(partial(one, group), *zip(*small, strict=True)) if small else ()
            read = {name: column for (name, _), column in zip(small, columns, strict=True) if column is not None}
            rest = [name for name in names if name not in read]
            if not read:
                for batch in file.iter_batches(n_rows, row_groups=[k], columns=rest):
                    yield pa.Table.from_batches([batch]).select(names)
                continue
            found: Any = file.read_row_group(k, columns=rest) if rest else {}
            yield pa.table([read[name] if name in read else found[name] for name in names], names=list(names))


def _understood(column: Any, kind: pa.DataType) -> bool:
    """Whether a column is one of whole numbers or strings, and not part of another one."""
    import pyarrow as pa

    if column.max_repetition_level or column.max_definition_level > 1:
        return False
    if pa.types.is_integer(kind):
        return column.physical_type in ("INT32", "INT64")
    return pa.types.is_dictionary(kind) and pa.types.is_string(kind.value_type) and column.physical_type == "BYTE_ARRAY"


def _column(file: pa.NativeFile, chunk: Any, kind: pa.DataType, column: Any) -> pa.Array | None:
    """A column of a row group; None where Arrow has to read it."""
    import pyarrow as pa

    said = chunk.statistics
    if not chunk.has_dictionary_page or chunk.compression not in ("SNAPPY", "UNCOMPRESSED"):
        return None
    if said is None or not said.has_null_count or said.null_count:
        return None
    start, size, n = chunk.dictionary_page_offset, chunk.total_compressed_size, chunk.num_values
    if not 0 < size <= LARGEST or start < 0 or n > 8 * LARGEST:
        return None
    pages = np.frombuffer(file.read_at(size, start), np.uint8)
    how = (chunk.compression == "SNAPPY", column.max_definition_level == 1)
    if not pa.types.is_dictionary(kind):
        numbers = np.empty(n, kind.to_pandas_dtype())
        good = parquet.page_numbers(pages, *how, _LENGTHS[chunk.physical_type], numbers)
        return pa.array(numbers) if good else None
    codes = np.empty(n, np.int32)
    labels = parquet.page_labels(pages, *how, codes)
    if labels is None:
        return None
    offsets, letters = (pa.py_buffer(part) for part in labels)
    strings = pa.StringArray.from_buffers(len(labels[0]) - 1, offsets, letters)
    try:
        strings.validate(full=True)
    except pa.ArrowInvalid:
        return None
    return pa.DictionaryArray.from_arrays(pa.array(codes), strings, safe=False)

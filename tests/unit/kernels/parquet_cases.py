"""Small Parquet files of every kind that the kernels read, and what they read of them."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tallybayes.sources import parquet_pages

TYPES = [pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64()]


def cells(kind: pa.DataType, n: int, n_levels: int, seed: int = 0) -> pa.Array:
    """Cells of few values, in stretches and mixed; both ends of the type are among them."""
    rng = np.random.default_rng(seed)
    mixed, stretches = rng.integers(0, n_levels, n), np.repeat(rng.integers(0, n_levels, n // 50 + 1), 50)[:n]
    codes = np.where(np.repeat(rng.random(n // 50 + 1) < 0.5, 50)[:n], mixed, stretches)
    if pa.types.is_string(kind):
        return pa.array([f"{'é' * (k % 5)}label {k}" if k else "" for k in codes], kind)
    low, high = int(np.iinfo(kind.to_pandas_dtype()).min), int(np.iinfo(kind.to_pandas_dtype()).max)
    levels = [low, high, *range(max(0, n_levels - 2))]
    return pa.array([min(levels[k], high) for k in codes], kind)


def write(path: Path, n: int = 300, n_levels: int = 9, nullable: bool = True, **how: Any) -> Path:
    """A file of a column of every type."""
    kinds = [*TYPES, pa.string()]
    schema = pa.schema([pa.field(str(kind), kind, nullable=nullable) for kind in kinds])
    columns = [cells(kind, n, n_levels, seed) for seed, kind in enumerate(kinds)]
    pq.write_table(pa.table(columns, schema=schema), path, **{"row_group_size": 200, **how})
    return path


FILES: dict[str, Callable[[Path], Path]] = {
    "snappy": write,
    "plain": partial(write, compression="none"),
    "second version": partial(write, data_page_version="2.0"),
    "second version, plain, required": partial(write, data_page_version="2.0", compression="none", nullable=False),
    "many levels": partial(write, n=900, n_levels=600, row_group_size=900, compression="none"),
    "small pages": partial(write, data_page_size=64, write_batch_size=16, nullable=False),
    "two values": partial(write, n_levels=2, compression="none"),
    "a dictionary that overflows": partial(write, n_levels=200, dictionary_pagesize_limit=64, write_batch_size=16),
}


def pages_read(path: Path) -> dict[str, pa.ChunkedArray]:
    """The columns of a file that the kernels read in all row groups."""
    metadata = pq.read_metadata(path)
    found = {}
    labels = [field.name for field in pq.read_schema(path) if pa.types.is_string(field.type)]
    with pq.ParquetFile(path, read_dictionary=labels) as file, pa.OSFile(str(path)) as raw:
        for place in range(metadata.num_columns):
            column = metadata.schema.column(place)
            kind = file.schema_arrow.field(column.path.split(".")[0]).type
            if parquet_pages._understood(column, kind):
                groups = (metadata.row_group(k).column(place) for k in range(metadata.num_row_groups))
                parts = [parquet_pages._column(raw, chunk, kind, column) for chunk in groups]
                if all(part is not None for part in parts):
                    found[column.path] = pa.chunked_array(parts)
    return found

"""The time of a fit and of a prediction grows in proportion to the number of columns, whatever the source."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import tallybayes as tb

FEW, TIMES = 1500, 4


def _csv(table: pa.Table, path: Path) -> Any:
    csv.write_csv(table, path / "rows.csv")
    return path / "rows.csv"


def _parquet(table: pa.Table, path: Path) -> Any:
    pq.write_table(table, path / "rows.parquet")
    return path / "rows.parquet"


def _ipc(table: pa.Table, path: Path) -> Any:
    feather.write_feather(table, path / "rows.arrow")
    return path / "rows.arrow"


def _json(table: pa.Table, path: Path) -> Any:
    pl.from_arrow(table).write_ndjson(path / "rows.jsonl")  # type: ignore[union-attr]
    return path / "rows.jsonl"


def _typed(table: pa.Table, path: Path) -> Any:
    return tb.table(_csv(table, path), types=dict.fromkeys(table.column_names[:-2], "float64"), null_values=["?"])


SOURCES: dict[str, Callable[[pa.Table, Path], Any]] = {
    "csv": _csv,
    "parquet": _parquet,
    "ipc": _ipc,
    "jsonl": _json,
    "types": _typed,
    "pandas": lambda table, _: table.to_pandas(),
    "polars": lambda table, _: pl.from_arrow(table),
    "pyarrow": lambda table, _: table,
    "dict": lambda table, _: {name: table[name].to_numpy() for name in table.column_names},
    "batches": lambda table, _: iter([table.slice(0, 4), table.slice(4)]),
}


def seconds(source: str, n_columns: int, path: Path) -> float:
    """The processor time of a fit and a prediction, the best of three."""
    rng = np.random.default_rng(0)
    columns: dict[str, Any] = {f"number {k}": rng.random(8).round(2) for k in range(n_columns)}
    table = pa.table({**columns, "text": list("uvuvuvvv"), "y": list("abababab")})
    best = np.inf
    for _ in range(3):
        rows = SOURCES[source](table, path)
        start = time.process_time()
        model = tb.NaiveBayes().fit(rows, "y")
        model.predict(SOURCES[source](table, path) if source == "batches" else rows)
        best = min(best, time.process_time() - start)
    return best


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("source", SOURCES)
def test_time_grows_as_the_number_of_columns(source: str, tmp_path: Path) -> None:
    seconds(source, 10, tmp_path)  # what is imported and cached
    growth = seconds(source, TIMES * FEW, tmp_path) / seconds(source, FEW, tmp_path)
    assert growth < 2 * TIMES  # their square would be TIMES ** 2

"""Floors of fitting from files: against merely reading them, so that what is done beside shows."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from floor_cases import case, codes, labels

import tallybayes as tb

N, D = 1_000_000, 10


@cache
def folder() -> Path:
    """A folder for the files, until Python ends."""
    path = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, path)
    return path


def rows() -> Any:
    import pyarrow as pa

    return pa.table({"y": labels(N), **{f"c{k}": codes(N, D)[:, k].copy() for k in range(D)}})


@case("file: fit of Parquet, against decoding it")
def _() -> Any:
    import pyarrow.parquet as pq

    path = folder() / "rows.parquet"
    pq.write_table(rows(), path)

    def decode() -> None:
        for _ in pq.ParquetFile(path, pre_buffer=False).iter_batches(1 << 20):
            pass

    return lambda: tb.NaiveBayes(tb.Categorical()).fit(path, "y"), decode


@case("file: fit of CSV, against parsing it")
def _() -> Any:
    import pyarrow.csv as csv

    path = folder() / "rows.csv"
    csv.write_csv(rows(), path)
    return lambda: tb.NaiveBayes(tb.Categorical()).fit(path, "y"), lambda: csv.read_csv(path)

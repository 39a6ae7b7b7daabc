"""Fitting from files: labels in Parquet and CSV against the same counts by DuckDB's own SQL, and the memory it takes.

Run it with ``python benchmarks/sources.py [scale]``. A scale below 1 takes that share of the rows. Every contender runs
in a process of its own, which says its time and its peak memory; the contenders take turns.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

N_ROWS, N_COLUMNS, N_CLASSES, N_LEVELS, ROUNDS = 20_000_000, 10, 5, 10, 3
COLUMNS = [f"c{k}" for k in range(N_COLUMNS)]


def write(folder: Path, n: int, kind: str) -> Path:
    """Rows of labels, a million at a time."""
    import pyarrow as pa
    import pyarrow.csv as csv
    import pyarrow.parquet as pq

    path, rng = folder / f"rows-{n}.{kind}", np.random.default_rng(0)
    schema = pa.schema([("y", pa.uint8()), *((name, pa.uint8()) for name in COLUMNS)])
    writer = pq.ParquetWriter(path, schema) if kind == "parquet" else csv.CSVWriter(path, schema)
    with writer:
        for start in range(0, n, 1 << 20):
            size = min(1 << 20, n - start)
            y = rng.integers(0, N_CLASSES, size).astype(np.uint8)
            cells = [((rng.random(size) ** (1 + 0.3 * y)) * N_LEVELS).astype(np.uint8) for _ in COLUMNS]
            writer.write_table(pa.table([y, *cells], schema=schema))
    return path


def by_union(path: str) -> float:
    """DuckDB, one grouping after the other."""
    import duckdb

    parts = (f"SELECT {k}, y, {name}, COUNT(*) FROM '{path}' GROUP BY y, {name}" for k, name in enumerate(COLUMNS))
    return float(sum(row[-1] for row in duckdb.connect().execute(" UNION ALL ".join(parts)).fetchall()))


def by_sets(path: str) -> float:
    """DuckDB, all groupings in one pass."""
    import duckdb

    sets = ", ".join(f"(y, {name})" for name in COLUMNS)
    query = f"SELECT y, {', '.join(COLUMNS)}, COUNT(*) FROM '{path}' GROUP BY GROUPING SETS ({sets})"
    return float(sum(row[-1] for row in duckdb.connect().execute(query).fetchall()))


def by_fit(path: str) -> float:
    """Naive Bayes of the file, batch by batch."""
    import tallybayes as tb

    model = tb.NaiveBayes(tb.Categorical()).fit(path, "y")
    return float(model.tally_.statistics[1].table.sum())


def by_fit_there(path: str) -> float:
    """Naive Bayes, counted by DuckDB."""
    import duckdb

    import tallybayes as tb

    model = tb.NaiveBayes(tb.Categorical()).fit(tb.table(duckdb.connect(), f"SELECT * FROM '{path}'"), "y")
    return float(model.tally_.statistics[1].table.sum())


CONTENDERS = {
    "DuckDB, UNION ALL": by_union,
    "DuckDB, GROUPING SETS": by_sets,
    "fit": by_fit,
    "fit in DuckDB": by_fit_there,
}


def one(name: str, path: str) -> None:
    """What a process of its own does: import, warm up on nothing, run, tell."""
    import duckdb  # noqa: F401 - what importing takes is not counted
    import pyarrow.dataset  # noqa: F401
    import sklearn.base  # noqa: F401

    import tallybayes as tb

    tb.NaiveBayes(tb.Categorical()).fit({"x": [0, 1]}, [0, 1])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    total = CONTENDERS[name](path)
    took = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    sys.stdout.write(json.dumps({"seconds": took, "total": total, "peak": peak / 1024, "more": (peak - before) / 1024}))


def main() -> None:
    """Every contender in turn, on Parquet, CSV, and a tenth of the rows."""
    scale = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    n = int(N_ROWS * scale)
    with tempfile.TemporaryDirectory() as folder:
        for kind, rows in (("parquet", n), ("parquet", n // 10), ("csv", n)):
            path = write(Path(folder), rows, kind)
            names = [name for name in CONTENDERS if kind == "parquet" or name != "DuckDB, UNION ALL"]
            times: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
            for _ in range(ROUNDS):
                for name in names:
                    done = subprocess.run(
                        [sys.executable, __file__, "--one", name, str(path)], capture_output=True, text=True, check=True
                    )
                    times[name].append(json.loads(done.stdout))
                    assert times[name][-1]["total"] == rows * N_COLUMNS
            middle = {name: statistics.median(run["seconds"] for run in runs) for name, runs in times.items()}
            fastest = min(value for name, value in middle.items() if name.startswith("DuckDB"))
            size = path.stat().st_size / 1e6
            sys.stdout.write(f"\n{kind}, {rows:,} × {N_COLUMNS}, {size:,.0f} MB\n\n")
            sys.stdout.write("| | seconds | × DuckDB's best | peak, MB | above imports, MB |\n|---|---|---|---|---|\n")
            for name, runs in times.items():
                peak, more = (max(run[key] for run in runs) for key in ("peak", "more"))
                ratio = fastest / middle[name]
                sys.stdout.write(f"| {name} | {middle[name]:.2f} | {ratio:.2f} | {peak:,.0f} | {more:,.0f} |\n")
            path.unlink()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        one(*sys.argv[2:])
    else:
        main()

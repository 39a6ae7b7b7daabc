"""Fitting from files: labels in Parquet and CSV against the same counts by DuckDB's own SQL, and the memory it takes; a
packed CSV of numbers and labels (KDD Cup 99, in ``../shared/data``) beside pandas and scikit-learn.

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
KDD = Path(__file__).resolve().parents[2] / "shared" / "data" / "kddcup99" / "kddcup.data_10_percent.gz"
KDD_ROWS, KDD_COLUMNS = 494_021, [f"c{k}" for k in range(41)]


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


def by_fit_mixed(path: str) -> float:
    """Naive Bayes of numbers and labels as they come, unpacked as it is read."""
    import tallybayes as tb

    rows = tb.table(path, format="csv", names=[*KDD_COLUMNS, "y"])
    return float(tb.NaiveBayes().fit(rows, "y").tally_["y"].table.sum())


def by_sklearn(path: str) -> float:
    """Numbers as they are and labels one-hot, all of them Gaussian: scikit-learn has no naive Bayes of both."""
    import pandas as pd
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.naive_bayes import GaussianNB
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    rows = pd.read_csv(path, header=None, names=[*KDD_COLUMNS, "y"])
    one_hot = (OneHotEncoder(sparse_output=False), make_column_selector(dtype_exclude="number"))
    model = make_pipeline(make_column_transformer(one_hot, remainder="passthrough"), GaussianNB())
    return float(model.fit(rows[KDD_COLUMNS], rows["y"])[-1].class_count_.sum())


CONTENDERS = {
    "DuckDB, UNION ALL": by_union,
    "DuckDB, GROUPING SETS": by_sets,
    "fit": by_fit,
    "fit in DuckDB": by_fit_there,
}
MIXED = {"pandas, scikit-learn": by_sklearn, "fit": by_fit_mixed}


def one(kind: str, name: str, path: str) -> None:
    """What a process of its own does: import, warm up on nothing, run, tell."""
    import duckdb  # noqa: F401 - what importing takes is not counted
    import pandas as pd  # noqa: F401
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.dataset
    import pyarrow.parquet
    import sklearn.compose
    import sklearn.naive_bayes
    import sklearn.pipeline
    import sklearn.preprocessing  # noqa: F401

    import tallybayes as tb

    tb.NaiveBayes(tb.Categorical()).fit(iter([pa.table({"x": [0, 1], "y": [0, 1]})]), "y")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start, work = time.perf_counter(), time.process_time()
    total = (MIXED if kind == "mixed" else CONTENDERS)[name](path)
    took = {"seconds": time.perf_counter() - start, "work": time.process_time() - work}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    sys.stdout.write(json.dumps({**took, "total": total, "peak": peak / 1024, "more": (peak - before) / 1024}))


def in_turn(kind: str, path: Path, names: list[str], total: int) -> dict[str, dict[str, float]]:
    """The medians of every contender, and the most memory it took."""
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for _ in range(ROUNDS):
        for name in names:
            command = [sys.executable, __file__, "--one", kind, name, str(path)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            runs[name].append(json.loads(done.stdout))
            assert runs[name][-1]["total"] == total
    best = {"seconds": statistics.median, "work": statistics.median, "peak": max, "more": max}
    return {name: {key: best[key](run[key] for run in found) for key in best} for name, found in runs.items()}


def tell(title: str, yardstick: str, found: dict[str, dict[str, float]]) -> None:
    """A table of all contenders; the yardstick is the fastest whose name begins so."""
    fastest = min(one["seconds"] for name, one in found.items() if name.startswith(yardstick))
    sys.stdout.write(f"\n| {title} | seconds | on all cores | × {yardstick} | peak, MB | above imports, MB |\n")
    sys.stdout.write("|---|---|---|---|---|---|\n")
    for name, one in found.items():
        times = f"{one['seconds']:.2f} | {one['work']:.2f} | {fastest / one['seconds']:.2f}"
        sys.stdout.write(f"| {name} | {times} | {one['peak']:,.0f} | {one['more']:,.0f} |\n")
    sys.stdout.flush()


def main() -> None:
    """Every contender in turn, on Parquet and CSV, of a tenth of the rows and of all; then the packed file."""
    scale = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    n = int(N_ROWS * scale)
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("parquet", "csv"):
            names = [name for name in CONTENDERS if kind == "parquet" or name != "DuckDB, UNION ALL"]
            fits = []
            for rows in (n // 10, n):
                path = write(Path(folder), rows, kind)
                size = path.stat().st_size / 1e6
                found = in_turn(kind, path, names, rows * N_COLUMNS)
                tell(f"{kind}, {rows:,} × {N_COLUMNS}, {size:,.0f} MB", "DuckDB", found)
                fits.append(found["fit"])
                path.unlink()
            few, many = fits
            sys.stdout.write(
                f"\nTen times the rows, {kind}: a fit takes {many['seconds'] / few['seconds']:.1f} times as long, and "
                f"{many['peak']:,.0f} MB instead of {few['peak']:,.0f}.\n"
            )
    if KDD.exists():
        found = in_turn("mixed", KDD, list(MIXED), KDD_ROWS)
        tell(f"csv.gz, {KDD_ROWS:,} × {len(KDD_COLUMNS)} numbers and labels", "pandas", found)
    else:
        sys.stdout.write(f"\nKDD Cup 99 is left out: there is no {KDD}.\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        one(*sys.argv[2:])
    else:
        main()

"""Fitting inside databases: naive Bayes of labels and numbers against the same counts and sums as plain SQL.

Run it with ``python benchmarks/databases.py [scale]``: DuckDB, SQLite, and PostgreSQL and Spark where they are there.
The plain queries are what one would write by hand: the rows of every class, its labels, its sums and sums of squares.
"""

from __future__ import annotations

import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import tallybayes as tb

sys.path.append(str(Path(__file__).parents[1] / "tests" / "unit" / "sources"))
N_ROWS, ROUNDS = 1_000_000, 5
LABELS, NUMBERS = [f"a{k}" for k in range(5)], [f"x{k}" for k in range(5)]


def rows(n: int) -> pd.DataFrame:
    """Labels and numbers of four classes."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, n)
    columns: dict[str, Any] = {
        name: np.array(list("abcdefgh"))[(rng.random(n) ** (1 + 0.3 * y) * 8).astype(int)] for name in LABELS
    }
    columns |= {name: rng.normal(y, 1.0) for name in NUMBERS}
    return pd.DataFrame({"y": np.array(list("pqrs"))[y], **columns})


def plain(sets: bool) -> list[str]:
    """The queries by hand."""
    sums = ", ".join(f"SUM({x}), SUM({x} * {x})" for x in NUMBERS)
    if not sets:
        labels = [f"SELECT y, {a}, COUNT(*) FROM t GROUP BY y, {a}" for a in LABELS]
    else:
        groups = ", ".join(f"(y, {a})" for a in LABELS)
        labels = [f"SELECT y, {', '.join(LABELS)}, COUNT(*) FROM t GROUP BY GROUPING SETS ({groups})"]
    return ["SELECT y, COUNT(*) FROM t GROUP BY y", *labels, f"SELECT y, {sums} FROM t GROUP BY y"]


@contextmanager
def duckdb_database(frame: pd.DataFrame) -> Iterator[tuple[Any, Callable[[str], Any], bool]]:
    """DuckDB, in memory."""
    import duckdb

    connection = duckdb.connect()
    connection.register("given", frame)
    connection.execute("CREATE TABLE t AS SELECT * FROM given")
    yield tb.table(connection, "t"), lambda query: connection.execute(query).fetchall(), True


@contextmanager
def sqlite_database(frame: pd.DataFrame) -> Iterator[tuple[Any, Callable[[str], Any], bool]]:
    """SQLite, in memory."""
    connection = sqlite3.connect(":memory:")
    frame.to_sql("t", connection, index=False)
    yield tb.table(connection, "t"), lambda query: connection.execute(query).fetchall(), False


@contextmanager
def postgresql_database(frame: pd.DataFrame) -> Iterator[tuple[Any, Callable[[str], Any], bool]]:
    """A PostgreSQL server of its own."""
    import postgresql as server
    import psycopg

    with server.running() as address, psycopg.connect(address, autocommit=True) as connection:
        types = ", ".join(["y text", *(f"{a} text" for a in LABELS), *(f"{x} double precision" for x in NUMBERS)])
        connection.execute(f"CREATE TABLE t ({types})")
        with connection.cursor().copy("COPY t FROM STDIN (FORMAT csv)") as copy:
            for start in range(0, len(frame), 100_000):
                copy.write(frame[start : start + 100_000].to_csv(index=False, header=False))
        connection.execute("VACUUM ANALYZE t")
        yield tb.table(connection, "t"), lambda query: connection.execute(query).fetchall(), True


@contextmanager
def spark_database(frame: pd.DataFrame) -> Iterator[tuple[Any, Callable[[str], Any], bool]]:
    """Spark in local mode, over a Parquet file."""
    from pyspark.sql import SparkSession

    with tempfile.TemporaryDirectory() as folder:
        frame.to_parquet(Path(folder) / "t.parquet", index=False)
        session = (
            SparkSession.builder.master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.shuffle.partitions", "2")
            .getOrCreate()
        )
        session.read.parquet(str(Path(folder) / "t.parquet")).createOrReplaceTempView("t")
        yield tb.table(session, "t"), lambda query: session.sql(query).collect(), True
        session.stop()


DATABASES = {
    "DuckDB": duckdb_database,
    "SQLite": sqlite_database,
    "PostgreSQL": postgresql_database,
    "Spark": spark_database,
}


def main() -> None:
    """Fit and plain SQL in turn, on every database that is here."""
    scale = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    wanted = sys.argv[2:] or list(DATABASES)
    n = int(N_ROWS * scale)
    frame = rows(n)
    sys.stdout.write(f"{n:,} rows: {len(LABELS)} columns categorical, {len(NUMBERS)} numeric, 4 classes\n\n")
    sys.stdout.write("| | fit, s | the same counts by hand, s | overhead |\n|---|---|---|---|\n")
    for name in wanted:
        try:
            database = DATABASES[name](frame)
            with database as (table, ask, sets):
                times: dict[str, list[float]] = {"fit": [], "plain": []}
                for number in range(ROUNDS + 1):
                    for who in times:
                        start = time.perf_counter()
                        if who == "fit":
                            table._first = None
                            model = tb.NaiveBayes().fit(table, "y")
                        else:
                            _ = [ask(query) for query in plain(sets)]
                        if number:  # the first warms up
                            times[who].append(time.perf_counter() - start)
                assert model.tally_["y"].table.sum() == n
        except ImportError as error:
            sys.stdout.write(f"| {name} | {error} | | |\n")
            continue
        fit, plainly = (statistics.median(found) for found in times.values())
        sys.stdout.write(f"| {name} | {fit:.2f} | {plainly:.2f} | {fit / plainly - 1:+.0%} |\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()

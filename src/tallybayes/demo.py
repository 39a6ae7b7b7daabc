"""The main job in a terminal: a mixed table with gaps, learned, explained, merged and forgotten: ``make demo``."""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

Columns = dict[str, Any]


def penguins(n: int, seed: int = 0) -> Columns:
    """A table of penguins, made up after the real ones: labels, measurements, counts, and one cell in twenty missing.

    Parameters
    ----------
    n : int
    seed : int, default 0

    Returns
    -------
    dict from column to array
    """
    rng = np.random.default_rng(seed)
    kind = rng.choice(3, n, p=[0.44, 0.2, 0.36])
    male = rng.random(n) < 0.5
    share = np.array([[0.29, 0.37, 0.34], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])[kind]
    island = np.array(["Biscoe", "Dream", "Torgersen"], dtype=object)[(rng.random((n, 1)) > share.cumsum(1)).sum(1)]
    bill = rng.normal(np.array([38.8, 48.8, 47.5])[kind] + np.where(male, 1.6, -1.6), 2.4)
    mass = rng.normal(np.array([3700, 3730, 5080])[kind] + np.where(male, 330, -330), 300)
    sex = np.where(male, "male", "female").astype(object)
    for column in (island, sex):
        column[rng.random(n) < 0.05] = None
    for column in (bill, mass):
        column[rng.random(n) < 0.05] = np.nan
    return {
        "island": island,
        "bill_mm": bill.round(1),
        "mass_g": mass.round(),
        "sex": sex,
        "eggs": rng.poisson(np.array([1.9, 1.6, 1.8])[kind]),
        "species": np.array(["Adelie", "Chinstrap", "Gentoo"])[kind],
    }


def main() -> None:
    """Fit, evaluate, explain a row, merge two halves, forget rows."""
    start = time.perf_counter()
    import tallybayes as tb
    from tallybayes.errors import StatisticsError

    show = sys.stdout.write
    n = 20_000
    table = penguins(n)
    train, test = _rows(table, slice(0, n // 2)), _rows(table, slice(n // 2, n))
    show("Tallybayes: count once; add, subtract and re-estimate for ever.\n\n")
    show(f"{n // 2:,} penguins, one cell in twenty missing. Which species?\n\n")
    columns = {("island", "sex"): tb.Categorical(), ("bill_mm", "mass_g"): tb.Gaussian(), "eggs": tb.Poisson()}
    model = tb.NaiveBayes(columns)
    clock = time.perf_counter()
    model.fit(train, "species")
    show(f"model = tb.NaiveBayes({{...}}).fit(train, 'species')   # {1e3 * (time.perf_counter() - clock):.0f} ms\n")
    show("  " + repr(model.tally_).replace("\n", "\n  ") + "\n\n")
    proba = model.predict_proba(test)
    truth = np.asarray(np.searchsorted(model.classes_, test["species"]))
    loss = -np.log(proba[np.arange(len(truth)), truth]).mean()
    show(f"on {n // 2:,} others: {np.mean(proba.argmax(1) == truth):.1%} right, log-loss {loss:.3f}\n\n")
    row = int(np.flatnonzero(proba.max(axis=1) < 0.9)[0])
    show("Why? print(model.explain(row)):\n")
    show(repr(model.explain(_rows(test, slice(row, row + 1)))) + "\n\n")
    _show_database(show, columns, train, model)
    halves = [tb.NaiveBayes(columns).fit(_rows(train, part), "species") for part in _halves(n // 2)]
    show("Models fitted apart add up, and rows can be forgotten, exactly:\n")
    show(f"  first half + second half is the whole       {(halves[0] + halves[1]).tally_.isclose(model.tally_)}\n")
    rest = model.reestimate().forget(_rows(train, _halves(n // 2)[1]), "species")
    show(f"  the whole, its second half forgotten        {rest.tally_.isclose(halves[0].tally_)}\n")
    try:
        halves[0].forget(train, "species")
    except StatisticsError as error:
        show("  more forgotten than was learned: refused    " + str(error).splitlines()[0] + "\n")
    show(f"\nDone in {time.perf_counter() - start:.1f} s. The handbook in docs/ goes on from here.\n")


def _show_database(show: Any, columns: Any, train: Columns, model: Any) -> None:
    """The same rows in a file that DuckDB counts, if it is there."""
    try:
        import duckdb
    except ImportError:
        return
    import os
    import tempfile

    import pyarrow as pa
    import pyarrow.parquet as pq

    import tallybayes as tb

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "penguins.parquet")
        pq.write_table(pa.table({name: pa.array(column, from_pandas=True) for name, column in train.items()}), path)
        clock = time.perf_counter()
        rows = tb.table(duckdb.connect(), f"SELECT * FROM '{path}'")
        there = tb.NaiveBayes(columns).fit(rows, "species")
        took = 1e3 * (time.perf_counter() - clock)
    show(f"The same rows in a Parquet file, counted by DuckDB, none of them read    # {took:.0f} ms\n")
    show(f"  the same tally                              {there.tally_.isclose(model.tally_, 1e-9)}\n\n")


def _rows(table: Columns, part: slice) -> Columns:
    return {name: column[part] for name, column in table.items()}


def _halves(n: int) -> list[slice]:
    return [slice(0, n // 2), slice(n // 2, n)]


if __name__ == "__main__":
    main()

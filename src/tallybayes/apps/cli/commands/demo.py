"""`tally demo`: the main job, on a table that it makes up."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from tallybayes.apps.cli.console import File, print_result

_N = 20_000


def demo(*, output: Annotated[File, Parameter(name=["--output", "-o"], show_default=True)] = "report.html") -> None:
    """Show the main job on a made-up table: a mixed one, with missing cells.

    Rows are counted inside DuckDB, where they lie; the model is measured and
    explained; halves add up to the whole, rows are forgotten as if never
    seen; and a page about it all is written.

      tally demo -o penguins.html
      tally demo --output penguins.html

    Parameters
    ----------
    output
        The page.
    """
    start = time.perf_counter()
    import tallybayes as tb
    from tallybayes.datasets import make_penguins

    table = make_penguins(_N)
    train, test = ({name: column[part] for name, column in table.items()} for part in _halves(_N))
    columns: Any = {("island", "sex"): tb.Categorical(), ("bill_mm", "mass_g"): tb.Gaussian(), "eggs": tb.Poisson()}
    model = tb.NaiveBayes(columns)
    clock = time.perf_counter()
    model.fit(train, "species")
    took = 1e3 * (time.perf_counter() - clock)
    model.report(test, "species", title="Penguins").save(output)  # before anything is printed: its reader may be gone
    print_result("Tallybayes: count once; add, subtract and re-estimate for ever.\n")
    print_result(f"{_N // 2:,} penguins, one cell in twenty missing. Which species?\n")
    print_result(f"model = tb.NaiveBayes({{...}}).fit(train, 'species')   # {took:.0f} ms")
    print_result("  " + repr(model.tally_).replace("\n", "\n  ") + "\n")
    _show_database(columns, train, model)
    found = tb.evaluate(model, test, "species")
    print_result(f"On {_N // 2:,} others: {found.accuracy.value:.1%} right, log-loss {found.log_loss.value:.3f}\n")
    doubtful = next(row for row, share in enumerate(model.predict_proba(test).max(axis=1)) if share < 0.9)
    print_result("Why? print(model.explain(row)):")
    print_result(repr(model.explain({name: column[doubtful : doubtful + 1] for name, column in test.items()})) + "\n")
    _show_sums(columns, train, model)
    print_result(f"A page about it: {Path(output).resolve()}")
    print_result(f"Done in {time.perf_counter() - start:.1f} s. The handbook in docs/ goes on from here.")


def _show_database(columns: Any, train: dict[str, Any], model: Any) -> None:
    """The same rows in a file that DuckDB counts, if it is there."""
    try:
        import duckdb
    except ImportError:
        print_result("DuckDB is not installed: pip install 'tallybayes[duckdb]' to see it count.\n")
        return
    import pyarrow as pa
    import pyarrow.parquet as pq

    import tallybayes as tb

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "penguins.parquet"
        pq.write_table(pa.table({name: pa.array(column, from_pandas=True) for name, column in train.items()}), path)
        clock = time.perf_counter()
        there = tb.NaiveBayes(columns).fit(tb.table(duckdb.connect(), f"SELECT * FROM '{path}'"), "species")
        took = 1e3 * (time.perf_counter() - clock)
    print_result(f"The same rows in a Parquet file, counted by DuckDB, none of them read    # {took:.0f} ms")
    print_result(f"  the same tally                              {there.tally_.isclose(model.tally_, 1e-9)}\n")


def _show_sums(columns: Any, train: dict[str, Any], model: Any) -> None:
    """Halves that add up, rows that are forgotten, and more than were learned."""
    import tallybayes as tb

    parts = [{name: column[part] for name, column in train.items()} for part in _halves(_N // 2)]
    first, second = (tb.NaiveBayes(columns).fit(part, "species") for part in parts)
    print_result("Models fitted apart add up, and rows can be forgotten, exactly:")
    print_result(f"  first half + second half is the whole       {(first + second).tally_.isclose(model.tally_)}")
    rest = model.reestimate().forget(parts[1], "species")
    print_result(f"  the whole, its second half forgotten        {rest.tally_.isclose(first.tally_)}")
    try:
        first.forget(train, "species")
    except tb.StatisticsError as error:
        print_result("  more forgotten than was learned: refused    " + str(error).splitlines()[0] + "\n")


def _halves(n: int) -> list[slice]:
    return [slice(0, n // 2), slice(n // 2, n)]

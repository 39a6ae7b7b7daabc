"""`tally demo`: demonstrate the library on a synthetic table."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from tallybayes.apps.cli.console import File, print_result

if TYPE_CHECKING:
    import tallybayes as tb
    from tallybayes.typing import Columns

_N = 20_000


def demo(*, output: Annotated[File, Parameter(name=["--output", "-o"], show_default=True)] = "report.html") -> None:
    """Demonstrate the library on a synthetic table.

    Fit a classifier to mixed columns with missing values, count the same rows
    inside DuckDB, evaluate and explain predictions, merge models, forget rows,
    and write an HTML report.

      tally demo -o penguins.html
      tally demo --output penguins.html

    Parameters
    ----------
    output
        The HTML file to write.
    """
    start = time.perf_counter()
    import tallybayes as tb
    from tallybayes.datasets import make_penguins

    table = make_penguins(_N)
    train, test = ({name: column[half] for name, column in table.items()} for half in _halves(_N))
    columns: Any = {("island", "sex"): tb.Categorical(), ("bill_mm", "mass_g"): tb.Gaussian(), "eggs": tb.Poisson()}
    model = tb.NaiveBayes(columns)
    fit_start = time.perf_counter()
    model.fit(train, "species")
    milliseconds = 1e3 * (time.perf_counter() - fit_start)
    model.report(test, "species", title="Penguins").save(output)  # before printing: the output pipe may be closed
    print_result("Tallybayes: count once; add, subtract and re-estimate at any time.\n")
    print_result(f"{_N // 2:,} penguins, 5 % missing values. Target: the species.\n")
    print_result(f"model = tb.NaiveBayes({{...}}).fit(train, 'species')   # {milliseconds:.0f} ms")
    print_result("  " + repr(model.tally_).replace("\n", "\n  ") + "\n")
    _show_database(columns, train, model)
    evaluation = tb.evaluate(model, test, "species")
    print_result(
        f"On {_N // 2:,} test rows: accuracy {evaluation.accuracy.value:.1%}, "
        f"log loss {evaluation.log_loss.value:.3f}\n"
    )
    uncertain = next(row for row, probability in enumerate(model.predict_proba(test).max(axis=1)) if probability < 0.9)
    print_result("Explanation of a prediction, print(model.explain(row)):")
    print_result(repr(model.explain({name: column[uncertain : uncertain + 1] for name, column in test.items()})) + "\n")
    _show_sums(columns, train, model)
    print_result(f"HTML report: {Path(output).resolve()}")
    print_result(f"Done in {time.perf_counter() - start:.1f} s. See the handbook in docs/ for more.")


def _show_database(columns: Columns, train: dict[str, Any], model: tb.NaiveBayes) -> None:
    """Count the same rows of a Parquet file inside DuckDB, if it is installed."""
    try:
        import duckdb
    except ImportError:
        print_result("DuckDB is not installed: pip install 'tallybayes[duckdb]' to count in a database.\n")
        return
    import pyarrow as pa
    import pyarrow.parquet as pq

    import tallybayes as tb

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "penguins.parquet"
        pq.write_table(pa.table({name: pa.array(column, from_pandas=True) for name, column in train.items()}), path)
        fit_start = time.perf_counter()
        model_of_database = tb.NaiveBayes(columns).fit(tb.table(duckdb.connect(), f"SELECT * FROM '{path}'"), "species")
        milliseconds = 1e3 * (time.perf_counter() - fit_start)
    print_result(f"The same rows in a Parquet file, counted inside DuckDB    # {milliseconds:.0f} ms")
    print_result(
        f"  equal tallies                               {model_of_database.tally_.isclose(model.tally_, 1e-9)}\n"
    )


def _show_sums(columns: Columns, train: dict[str, Any], model: tb.NaiveBayes) -> None:
    """Merge two models, forget rows, and try to forget rows that were never counted."""
    import tallybayes as tb

    halves = [{name: column[half] for name, column in train.items()} for half in _halves(_N // 2)]
    first, second = (tb.NaiveBayes(columns).fit(half, "species") for half in halves)
    print_result("Models can be merged and rows can be forgotten, exactly:")
    print_result(f"  first half + second half = all rows         {(first + second).tally_.isclose(model.tally_)}")
    remaining = model.reestimate().forget(halves[1], "species")
    print_result(f"  all rows - second half = first half         {remaining.tally_.isclose(first.tally_)}")
    try:
        first.forget(train, "species")
    except tb.StatisticsError as error:
        print_result("  rows that were never counted: an error      " + str(error).splitlines()[0] + "\n")


def _halves(n: int) -> list[slice]:
    """Return the slices of the first and the second half of n rows."""
    return [slice(0, n // 2), slice(n // 2, n)]

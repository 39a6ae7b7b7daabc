"""`tally demo`: demonstrate the library on a data set of scikit-learn."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from tallybayes.apps.cli.console import File, print_result

if TYPE_CHECKING:
    import tallybayes as tb

_TARGET = "diagnosis"


def demo(*, output: Annotated[File, Parameter(name=["--output", "-o"], show_default=True)] = "report.html") -> None:
    """Demonstrate the library on the breast cancer data of scikit-learn.

    Fit a classifier, count the same rows inside DuckDB, evaluate and explain
    predictions, also with missing values, merge models, forget rows, and write
    an HTML report.

      tally demo -o report.html
      tally demo --output report.html

    Parameters
    ----------
    output
        The HTML file to write.
    """
    start = time.perf_counter()
    from sklearn.datasets import load_breast_cancer

    import tallybayes as tb

    data = load_breast_cancer()
    names = [name.replace(" ", "_") for name in data.feature_names]
    table = dict(zip(names, data.data.T, strict=True)) | {_TARGET: data.target_names[data.target]}
    train, test = _halves(table)
    n_train, n_test = len(train[_TARGET]), len(test[_TARGET])
    model = tb.NaiveBayes(calibration="temperature")
    fit_start = time.perf_counter()
    model.fit(train, _TARGET)
    milliseconds = 1e3 * (time.perf_counter() - fit_start)
    model.report(test, _TARGET, title="Breast cancer").save(output)  # before printing: the output pipe may be closed
    print_result("Tallybayes: count once; add, subtract and re-estimate at any time.\n")
    print_result(f"{len(data.target)} tumors, {len(names)} columns (Wolberg et al. 1995). Target: the diagnosis.\n")
    print_result(f"model = tb.NaiveBayes(...).fit(train, {_TARGET!r})   # {n_train} rows, {milliseconds:.0f} ms")
    print_result("  " + repr(model.tally_).replace("\n", "\n  ") + "\n")
    _show_database(train, model)
    evaluation = tb.evaluate(model, test, _TARGET)
    print_result(
        f"On {n_test} test rows: accuracy {evaluation.accuracy.value:.1%}, log loss {evaluation.log_loss.value:.3f}\n"
    )
    probability = model.predict_proba(test).max(axis=1)
    uncertain = int(probability.argmin())
    print_result("Explanation of the most uncertain prediction, print(model.explain(row)):")
    row = {name: column[uncertain] for name, column in test.items()}
    print_result(repr(model.explain(row)) + "\n")
    unobserved = model.predict_proba(row | dict.fromkeys(names[10:]))  # 20 of 30 values
    print_result(f"With 20 of 30 values missing: p({model.classes_[0]}) = {unobserved[0, 0]:.3f}\n")
    _show_sums(train, model)
    print_result(f"HTML report: {Path(output).resolve()}")
    print_result(f"Done in {time.perf_counter() - start:.1f} s. See the handbook in docs/ for more.")


def _show_database(train: dict[str, Any], model: tb.NaiveBayes) -> None:
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
        path = Path(folder) / "rows.parquet"
        pq.write_table(pa.table({name: pa.array(column, from_pandas=True) for name, column in train.items()}), path)
        fit_start = time.perf_counter()
        model_of_database = tb.NaiveBayes().fit(tb.table(duckdb.connect(), f"SELECT * FROM '{path}'"), _TARGET)
        milliseconds = 1e3 * (time.perf_counter() - fit_start)
    print_result(f"The same rows in a Parquet file, counted inside DuckDB    # {milliseconds:.0f} ms")
    print_result(
        f"  equal tallies                               {model_of_database.tally_.isclose(model.tally_, 1e-9)}\n"
    )


def _show_sums(train: dict[str, Any], model: tb.NaiveBayes) -> None:
    """Merge two models, forget rows, and try to forget rows that were never counted."""
    import tallybayes as tb

    halves = _halves(train)
    first, second = (tb.NaiveBayes().fit(half, _TARGET) for half in halves)
    print_result("Models can be merged and rows can be forgotten, exactly:")
    print_result(f"  first half + second half = all rows         {(first + second).tally_.isclose(model.tally_)}")
    remaining = model.reestimate().forget(halves[1], _TARGET)
    print_result(f"  all rows - second half = first half         {remaining.tally_.isclose(first.tally_)}")
    try:
        first.forget(train, _TARGET)
    except tb.StatisticsError as error:
        print_result("  rows that were never counted: an error      " + str(error).splitlines()[0] + "\n")


def _halves(table: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the even and the odd rows of a table."""
    return [{name: column[start::2] for name, column in table.items()} for start in (0, 1)]

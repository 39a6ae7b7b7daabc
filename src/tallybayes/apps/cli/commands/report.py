"""`tally report`: a page about a model and what it says of some rows."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter

from tallybayes.apps.cli.cli_errors import UsageError
from tallybayes.apps.cli.console import File, print_status
from tallybayes.apps.cli.data_argument import DEFAULT_READ_OPTIONS, OpenResources, Read
from tallybayes.apps.cli.model_files import load


def report(
    model: File,
    /,
    *,
    data: Annotated[File, Parameter(name=["--data", "-d"])],
    target: Annotated[str | None, Parameter(name=["--target", "-t"])] = None,
    output: Annotated[File, Parameter(name=["--output", "-o"], show_default=True)] = "report.html",
    by: str | None = None,
    title: str | None = None,
    held_out: Annotated[bool, Parameter(negative=())] = False,
    reading: Read = DEFAULT_READ_OPTIONS,
) -> None:
    """Write a page about a classifier: what it counted, how good it is, and why.

    One file of HTML that needs no network, with a part to try out: other cells,
    other shares of the classes, other costs; and with what 'tally audit' tells.
    Rows that the model has learned from flatter it: take others.

      tally report penguins-auto.tally --data test.csv
      tally report model.tally --data test.parquet -o page.html --title Penguins

    Parameters
    ----------
    model
        A file that `tally fit` wrote.
    data
        Rows with labels: a file, a pattern in quotes, - or the address of a database.
    target
        The true classes, if not called as when fitting.
    output
        The page.
    by
        The column that tells groups, to see how they fare.
    title
        What stands above it.
    held_out
        The model was not fitted on these rows: give advice on columns and calibration.
    reading
        How DATA is read.
    """
    found: Any = load(model)
    if not hasattr(found, "report"):
        raise UsageError(f"{model} is a {type(found).__name__}; expected a classifier, which pages are about.")
    with OpenResources() as places:
        source = places.source(data, reading, needed=(target, by))
        labels = target or getattr(found, "target_", None)
        found.report(source, labels, by=by, title=title, held_out=held_out).save(output)
    print_status(f"{output}: open it in a browser")

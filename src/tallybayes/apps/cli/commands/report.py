"""`tally report`: write an HTML report on a classifier and its predictions."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter

from tallybayes.apps.cli.cli_errors import UsageError
from tallybayes.apps.cli.console import File, print_status
from tallybayes.apps.cli.data_argument import DEFAULT_READ_OPTIONS, OpenResources, Read
from tallybayes.apps.cli.model_files import load
from tallybayes.messages import with_article


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
    """Write an HTML report on a classifier and its predictions.

    The page is one HTML file that needs no network. It has the training data,
    feature importance, metrics, the data checks of 'tally audit', explanations,
    and predictions under changed cells, class frequencies and costs. The metrics
    of training rows are too optimistic: pass held-out rows.

      tally report penguins-auto.tally --data test.csv
      tally report model.tally --data test.parquet -o page.html --title Penguins

    Parameters
    ----------
    model
        A file that `tally fit` wrote.
    data
        Rows with class labels: a file, a pattern in quotes, - or the address of a database.
    target
        The column with the true classes; by default the target of the fit.
    output
        The HTML file to write.
    by
        The column with the subgroups whose performance is reported.
    title
        The title of the page.
    held_out
        The model was fitted without these rows: give advice on columns and calibration.
    reading
        Options for reading DATA.
    """
    fitted: Any = load(model)
    if not hasattr(fitted, "report"):
        raise UsageError(f"{model} is {with_article(type(fitted).__name__)}; expected a classifier.")
    with OpenResources() as resources:
        source = resources.source(data, reading, needed=(target, by))
        labels = target or getattr(fitted, "target_", None)
        fitted.report(source, labels, by=by, title=title, held_out=held_out).save(output)
    print_status(f"{output}: open it in a browser")

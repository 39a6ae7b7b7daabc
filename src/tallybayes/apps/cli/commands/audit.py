"""`tally audit`: outliers, unseen values, drift, label errors and subgroup performance of some rows."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from tallybayes.apps.cli.cli_errors import CommandError
from tallybayes.apps.cli.console import File, answer_json, print_result
from tallybayes.apps.cli.data_argument import DEFAULT_READ_OPTIONS, OpenResources, Read
from tallybayes.apps.cli.model_files import load, read_by
from tallybayes.messages import with_article


def audit(
    model: File,
    data: File,
    /,
    *,
    target: Annotated[str | None, Parameter(name=["--target", "-t"])] = None,
    by: str | None = None,
    in_training_data: bool = False,
    json: bool = False,
    reading: Read = DEFAULT_READ_OPTIONS,
) -> int:
    """Check rows against a fitted model.

    Report outliers with the most responsible column, unseen values and
    drifted columns; with --target, suspected label errors; with --by,
    subgroups with a higher loss. The number of findings expected by chance
    is printed. Rows are numbered from 1. Exit codes, for pipelines:
    0 no finding, 1 at least one finding, or an error.

      tally audit penguins-auto.tally july.csv
      tally audit penguins-auto.tally july.csv --target species --by island
      tally audit model.tally train.csv --target species --in-training-data

    Parameters
    ----------
    model
        A file that `tally fit` wrote.
    data
        A file, a pattern in quotes, - or the address of a database.
    target
        The column with the class labels; for a network, a node.
    by
        The column with the subgroups.
    in_training_data
        The model was fitted to these rows: compute leave-one-out predictions of their labels.
    json
        Write the findings as JSON.
    reading
        Options for reading DATA.
    """
    import tallybayes as tb

    fitted = load(model)
    if isinstance(fitted, tb.LinearRegression | tb.HiddenMarkovModel | tb.NearestClassMean):
        raise CommandError(
            f"{model} is {with_article(type(fitted).__name__)}; expected a model with a density of rows.\n"
            "    'tally evaluate --by COLUMN' computes its metrics by group."
        )
    with OpenResources() as resources:
        rows = read_by(fitted, resources.source(data, reading, needed=(target, by)))
        result = tb.audit(fitted, rows, target, by=by, in_training_data=in_training_data, first_row=1)
    if json:
        tables = {name: getattr(result, name) for name in ("rows", "cells", "columns", "labels", "groups")}
        expected = {"expected_rows": result.expected_rows, "expected_labels": result.expected_labels}
        answer_json(
            {
                "n_rows": result.n_rows,
                "first_row": 1,
                "findings": result.findings,
                "notes": result.notes,
                **expected,
                **tables,
            }
        )
    else:
        print_result(repr(result))
    return 0 if result.ok else 1

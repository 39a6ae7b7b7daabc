"""`tally audit`: what is wrong with some rows, by what a model has counted."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from tallybayes.apps.cli.cli_errors import CommandError
from tallybayes.apps.cli.console import File, answer_json, print_result
from tallybayes.apps.cli.data_argument import DEFAULT_READ_OPTIONS, OpenResources, Read
from tallybayes.apps.cli.model_files import load, read_by


def audit(
    model: File,
    data: File,
    /,
    *,
    target: Annotated[str | None, Parameter(name=["--target", "-t"])] = None,
    by: str | None = None,
    learned: bool = False,
    json: bool = False,
    reading: Read = DEFAULT_READ_OPTIONS,
) -> int:
    """Say what is wrong with some rows, by what a model has counted.

    Rows that are all but impossible, and by which column; values that were
    never counted; columns that moved; with --target, labels that disagree
    with the rest of their row; with --by, groups that fare worse. How much
    would be found by chance is said. Rows are numbered from 1. Exit codes,
    for pipelines: 0 nothing was found, 1 something was (or the data were
    refused).

      tally audit penguins-choose.tally july.csv
      tally audit penguins-choose.tally july.csv --target species --by island
      tally audit model.tally train.csv --target species --learned

    Parameters
    ----------
    model
        A file that `tally fit` wrote.
    data
        A file, a pattern in quotes, - or the address of a database.
    target
        The column of the labels; of a network, a node.
    by
        The column that tells groups.
    learned
        The model has counted these rows: judge labels by models without their row.
    json
        Write all that was found as JSON.
    reading
        How DATA is read.
    """
    import tallybayes as tb

    found = load(model)
    if isinstance(found, tb.LinearRegression | tb.HiddenMarkovModel | tb.NearestClassMean):
        raise CommandError(
            f"{model} is a {type(found).__name__}; expected a model that describes whole rows.\n"
            "    'tally evaluate' measures what it predicts, --by group."
        )
    with OpenResources() as places:
        rows = read_by(found, places.source(data, reading, needed=(target, by)))
        result = tb.audit(found, rows, target, by=by, in_training_data=learned, first_row=1)
    if json:
        parts = {name: getattr(result, name) for name in ("rows", "cells", "columns", "labels", "groups")}
        told = {name: [one._asdict() for one in part] for name, part in parts.items()}
        expected = {"expected_rows": result.expected_rows, "expected_labels": result.expected_labels}
        answer_json(
            {
                "n_rows": result.n_rows,
                "first_row": 1,
                "findings": result.findings,
                "notes": result.notes,
                **expected,
                **told,
            }
        )
    else:
        print_result(repr(result))
    return 0 if result.ok else 1

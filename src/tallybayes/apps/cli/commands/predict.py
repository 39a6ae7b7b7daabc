"""`tally predict`: predict the target of every row."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from tallybayes.apps.cli.cli_errors import UsageError
from tallybayes.apps.cli.console import File, print_status
from tallybayes.apps.cli.data_argument import DEFAULT_READ_OPTIONS, OpenResources, Read
from tallybayes.apps.cli.model_files import load
from tallybayes.apps.cli.row_columns import SEQUENCE_COLUMNS, SequenceColumns
from tallybayes.messages import with_article


def predict(
    model: File,
    data: File,
    /,
    *,
    out: Annotated[File | None, Parameter(name=["--out", "-o"])] = None,
    to_table: str | None = None,
    proba: bool = False,
    keep: tuple[str, ...] = (),
    columns: SequenceColumns = SEQUENCE_COLUMNS,
    json: bool = False,
    reading: Read = DEFAULT_READ_OPTIONS,
) -> None:
    """Predict the target of every row, in the order of the rows.

    The columns are those of --keep, `prediction`, and with --proba `p(class)`
    of every class. An existing file is replaced atomically; an existing table
    is an error.

      tally predict penguins-auto.tally new.csv --proba
      tally predict model.tally new.parquet --keep id -o predicted.parquet
      tally predict model.tally - < new.csv | head
      tally predict model.tally sqlite:a.db --table x -o sqlite:a.db --to-table y
      tally predict network.tally days.csv --target rain
      tally predict tagger.tally words.csv --sequence sentence --order time

    Parameters
    ----------
    model
        A file that `tally fit` wrote.
    data
        A file, a pattern in quotes, - or the address of a database.
    out
        The file to write, in the format of its suffix (.csv, .jsonl, .parquet …), or a database; by default CSV on
        standard output.
    to_table
        For a database: the table to create.
    proba
        Write the probability of every class, too.
    keep
        Columns of DATA to copy to the result, such as a key.
    columns
        Columns of DATA by role; for a network, --target is the node to predict.
    json
        Write JSON lines to standard output instead of CSV.
    reading
        Options for reading DATA.
    """
    import tallybayes as tb
    from tallybayes.apps.cli.sequence_rows import predicted_steps

    fitted = load(model)
    with OpenResources(writes=out) as resources:
        output, file_format = resources.target(out, to_table, json)
        source = resources.source(data, reading, needed=(*keep, columns.sequence, columns.order))
        if isinstance(fitted, tb.HiddenMarkovModel):
            predictions = predicted_steps(fitted, source, columns.require_sequence(), columns.order, proba, keep)
            n = tb.write_rows(predictions, output, format=file_format)
        else:
            columns.check_no_sequence(fitted)
            if proba and not hasattr(fitted, "predict_proba") and not isinstance(fitted, tb.BayesianNetwork):
                raise UsageError(
                    f"--proba applies to classifiers; found {with_article(type(fitted).__name__)}.\n    Omit --proba."
                )
            n = tb.write_predictions(
                fitted, source, output, columns.target, proba=proba, keep=list(keep), format=file_format
            )
    if file_format is None:
        print_status(f"wrote {n:,} rows to {out}")

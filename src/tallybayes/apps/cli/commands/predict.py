"""`tally predict`: predict the target of every row."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter

from tallybayes.apps.cli.cli_errors import UsageError
from tallybayes.apps.cli.console import File, print_status
from tallybayes.apps.cli.data_argument import DEFAULT_READ_OPTIONS, OpenResources, Read
from tallybayes.apps.cli.model_files import load


def predict(
    model: File,
    data: File,
    /,
    *,
    out: Annotated[File | None, Parameter(name=["--out", "-o"])] = None,
    to_table: str | None = None,
    proba: bool = False,
    keep: tuple[str, ...] = (),
    target: Annotated[str | None, Parameter(name=["--target", "-t"])] = None,
    sequence: str | None = None,
    order: str | None = None,
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
    target
        For a network: the node to predict.
    sequence
        The column with the sequence identifier, for hidden-markov.
    order
        The column with the time order within a sequence, for hidden-markov.
    json
        Write JSON lines to standard output instead of CSV.
    reading
        Options for reading DATA.
    """
    import tallybayes as tb
    from tallybayes.apps.cli.sequence_rows import predicted_steps

    if json and out is not None:
        raise UsageError(
            "--json applies to standard output.\n    The suffix of a file sets its format: -o predicted.jsonl."
        )
    fitted: Any = load(model)
    with OpenResources(writes=out) as resources:
        output, kind = resources.target(out, to_table)
        file_format = None if kind is None else "json" if json else kind
        source = resources.source(data, reading, needed=(*keep, sequence, order))
        if isinstance(fitted, tb.HiddenMarkovModel):
            if sequence is None:
                raise UsageError("missing option --sequence COL: the column with the sequence identifier.")
            predictions = predicted_steps(fitted, source, sequence, order, proba, keep)
            n = tb.write_rows(predictions, output, format=file_format)
        else:
            if sequence or order:
                raise UsageError(
                    f"--sequence and --order apply to hidden Markov models; found a {type(fitted).__name__}."
                )
            if proba and not hasattr(fitted, "predict_proba") and not hasattr(fitted, "graph_"):
                raise UsageError(f"--proba applies to classifiers; found a {type(fitted).__name__}.")
            n = tb.write_predictions(fitted, source, output, target, proba=proba, keep=list(keep), format=file_format)
    if kind is None:
        print_status(f"wrote {n:,} rows to {out}")

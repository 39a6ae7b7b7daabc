"""`tally predict`: what a model says of every row."""

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
    """Say what a model predicts of every row, in the order of the rows.

    The columns are those of --keep, `prediction`, and with --proba `p(class)`
    of every class. A file that is there is replaced once the new one is whole;
    a table that is there is refused.

      tally predict penguins-auto.tally new.csv --proba
      tally predict model.tally new.parquet --keep id -o told.parquet
      tally predict model.tally - < new.csv | head
      tally predict model.tally sqlite:a.db --table x -o sqlite:a.db --to-table told
      tally predict network.tally days.csv --target rain
      tally predict tagger.tally words.csv --sequence sentence --order place

    Parameters
    ----------
    model
        A file that `tally fit` wrote.
    data
        A file, a pattern in quotes, - or the address of a database.
    out
        The file to write, by its ending (.csv, .jsonl, .parquet …), or a database; else CSV on standard output.
    to_table
        Of a database: the table to make.
    proba
        Write the probability of every class, too.
    keep
        Columns of DATA to be written first: what tells which row it is.
    target
        Of a network: the column to predict.
    sequence
        Of hidden-markov: the column that says which sequence a step belongs to.
    order
        Of hidden-markov: the column that says where in it.
    json
        JSON lines on standard output instead of CSV.
    reading
        How DATA is read.
    """
    import tallybayes as tb
    from tallybayes.apps.cli.sequence_rows import predicted_steps

    if json and out is not None:
        raise UsageError("--json is of standard output.\n    A file says by its ending what it holds: -o told.jsonl.")
    found: Any = load(model)
    with OpenResources(writes=out) as places:
        to, kind = places.target(out, to_table)
        form = None if kind is None else "json" if json else kind
        source = places.source(data, reading, needed=(*keep, sequence, order))
        if isinstance(found, tb.HiddenMarkovModel):
            if sequence is None:
                raise UsageError("which sequence a step belongs to is not said; expected --sequence COL.")
            told = predicted_steps(found, source, sequence, order, proba, keep)
            n = tb.write_rows(told, to, format=form)
        else:
            if sequence or order:
                raise UsageError(
                    f"--sequence and --order are of hidden Markov models; this is a {type(found).__name__}."
                )
            if proba and not hasattr(found, "predict_proba") and not hasattr(found, "graph_"):
                raise UsageError(f"--proba is of classes; this is a {type(found).__name__}.")
            n = tb.write_predictions(found, source, to, target, proba=proba, keep=list(keep), format=form)
    if kind is None:
        print_status(f"wrote {n:,} rows to {out}")

"""`tally update`: count more rows into a model."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from tallybayes.apps.cli.console import File
from tallybayes.apps.cli.data_argument import DEFAULT_READ_OPTIONS, Read
from tallybayes.apps.cli.modify_model import modify_model


def update(
    model: File,
    data: File,
    /,
    *,
    out: Annotated[File | None, Parameter(name=["--out", "-o"])] = None,
    force: bool = False,
    target: Annotated[str | None, Parameter(name=["--target", "-t"])] = None,
    weight: str | None = None,
    sequence: str | None = None,
    order: str | None = None,
    time: str | None = None,
    json: bool = False,
    reading: Read = DEFAULT_READ_OPTIONS,
) -> None:
    """Count more rows into a model.

    It is then what a fit of all rows would have made, under the same choices:
    what was chosen from the first rows (families, bins, the mixture's weights)
    and the calibration are kept. The file is replaced once the new one is
    whole; several at once wait for each other. A window forgets what is too
    old by then.

      tally update penguins-auto.tally monday.csv
      tally update model.tally 'june-*.parquet' -o july.tally

    Parameters
    ----------
    model
        A file that `tally fit` or `tally window` wrote.
    data
        A file, a pattern in quotes, - or the address of a database.
    out
        The file to write; by default MODEL itself.
    force
        Replace the file of --out that is there.
    target
        The column of the classes, if it is not called as when fitting.
    weight
        The column that says how often a row counts.
    sequence
        Of hidden-markov: the column that says which sequence a step belongs to.
    order
        Of hidden-markov: the column that says where in it.
    time
        Of a window: the column that says when a row came, if it is not called as before.
    json
        Write what changed as JSON.
    reading
        How DATA is read.
    """
    modify_model("partial_fit", model, data, out, force, target, weight, sequence, order, json, reading, time)

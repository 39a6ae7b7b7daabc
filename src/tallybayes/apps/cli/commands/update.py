"""`tally update`: add rows to a model."""

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
    """Add rows to a model.

    The counts become those of a fit to all rows. Model choices made from the
    first rows (families, bins, ensemble weights) and the calibration remain. The
    file is replaced atomically; concurrent updates wait for each other. A window
    removes the rows that are too old.

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
        Replace an existing file of --out.
    target
        The column with the class labels; by default the target of the fit.
    weight
        The column with the sample weights.
    sequence
        The column with the sequence identifier, for hidden-markov.
    order
        The column with the time order within a sequence, for hidden-markov.
    time
        The column with the times of the rows, for a window; by default the one of its first rows.
    json
        Write the numbers of rows as JSON.
    reading
        Options for reading DATA.
    """
    modify_model("partial_fit", model, data, out, force, target, weight, sequence, order, json, reading, time)

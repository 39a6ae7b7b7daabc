"""`tally forget`: remove rows from a model."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from tallybayes.apps.cli.console import File
from tallybayes.apps.cli.data_argument import DEFAULT_READ_OPTIONS, Read
from tallybayes.apps.cli.modify_model import modify_model


def forget(
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
    receipt: File | None = None,
    json: bool = False,
    reading: Read = DEFAULT_READ_OPTIONS,
) -> None:
    """Remove rows from a model exactly.

    The counts become those of a fit without the rows. Model choices made from
    the rows (families, bins, ensemble weights) and the calibration remain; fit
    a new model to revise them. If a count would become negative, an error is
    raised and nothing is changed. A window raises an error for rows that it
    does not contain.

      tally forget penguins-auto.tally withdrawn.csv
      tally forget penguins.tally withdrawn.csv --receipt withdrawn.json
      tally forget model.tally sqlite:shop.db --table withdrawn

    Parameters
    ----------
    model
        A file that `tally fit` or `tally window` wrote.
    data
        The rows with their class labels: a file, a pattern in quotes, - or the address of a database.
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
    receipt
        Write a receipt to this new file: counts and digests, which 'tally receipt' verifies.
    json
        Write the numbers of rows as JSON.
    reading
        Options for reading DATA.
    """
    modify_model("forget", model, data, out, force, target, weight, sequence, order, json, reading, time, receipt)

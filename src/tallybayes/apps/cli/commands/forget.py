"""`tally forget`: take rows out of a model again."""

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
    """Take rows out of a model again, exactly.

    Its counts are as if they had never been seen. What they had a part in
    choosing (families, bins, the mixture's weights) and the calibration are
    kept; fit again to choose anew. Rows that were never learned are refused
    where a count would turn negative, and nothing is changed then. A window
    knows its rows: what is not in it is refused.

      tally forget penguins-auto.tally withdrawn.csv
      tally forget penguins.tally withdrawn.csv --receipt withdrawn.json
      tally forget model.tally sqlite:shop.db --table withdrawn

    Parameters
    ----------
    model
        A file that `tally fit` or `tally window` wrote.
    data
        The rows, with their classes: a file, a pattern in quotes, - or the address of a database.
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
    receipt
        Write a receipt to this new file: counts and digests, for 'tally receipt' to check.
    json
        Write what changed as JSON.
    reading
        How DATA is read.
    """
    modify_model("forget", model, data, out, force, target, weight, sequence, order, json, reading, time, receipt)

"""`tally forget`: remove rows from a model."""

from __future__ import annotations

from tallybayes.apps.cli.console import File
from tallybayes.apps.cli.data_argument import DEFAULT_READ_OPTIONS, Read
from tallybayes.apps.cli.modify_model import MODIFY_OPTIONS, ModifyOptions, modify_model
from tallybayes.apps.cli.row_columns import TIMED_ROW_COLUMNS, TimedRowColumns


def forget(
    model: File,
    data: File,
    /,
    *,
    options: ModifyOptions = MODIFY_OPTIONS,
    columns: TimedRowColumns = TIMED_ROW_COLUMNS,
    receipt: File | None = None,
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
    options
        Options for writing the model.
    columns
        Columns of DATA by role.
    receipt
        Write a receipt to this new file: counts and digests, which 'tally receipt' verifies.
    reading
        Options for reading DATA.
    """
    modify_model("forget", model, data, options, columns, reading, receipt)

"""`tally update`: add rows to a model."""

from __future__ import annotations

from tallybayes.apps.cli.console import File
from tallybayes.apps.cli.data_argument import DEFAULT_READ_OPTIONS, Read
from tallybayes.apps.cli.modify_model import MODIFY_OPTIONS, ModifyOptions, modify_model
from tallybayes.apps.cli.row_columns import TIMED_ROW_COLUMNS, TimedRowColumns


def update(
    model: File,
    data: File,
    /,
    *,
    options: ModifyOptions = MODIFY_OPTIONS,
    columns: TimedRowColumns = TIMED_ROW_COLUMNS,
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
    options
        Options for writing the model.
    columns
        Columns of DATA by role.
    reading
        Options for reading DATA.
    """
    modify_model("partial_fit", model, data, options, columns, reading)

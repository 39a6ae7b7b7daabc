"""`tally window`: a model of a sliding window, or with exponential decay."""

from __future__ import annotations

import os
from typing import Annotated

from cyclopts import Parameter

from tallybayes.apps.cli.cli_errors import UsageError
from tallybayes.apps.cli.console import File, answer_json, print_result
from tallybayes.apps.cli.data_argument import DEFAULT_READ_OPTIONS, OpenResources, Read
from tallybayes.apps.cli.model_files import check_free, load, save
from tallybayes.apps.cli.model_options import read_span
from tallybayes.apps.cli.row_columns import TIMED_ROW_COLUMNS, TimedRowColumns
from tallybayes.apps.cli.stream_models import format_stream, stream_state


def window(
    model: File,
    data: File,
    /,
    *,
    rows: int | None = None,
    duration: str | None = None,
    half_life: str | None = None,
    columns: TimedRowColumns = TIMED_ROW_COLUMNS,
    out: Annotated[File | None, Parameter(name=["--out", "-o"])] = None,
    force: bool = False,
    json: bool = False,
    reading: Read = DEFAULT_READ_OPTIONS,
) -> None:
    """Create a model of a sliding window, or with exponential decay.

    The window has the kind, parameters and model choices of MODEL, and the rows
    of DATA. Its file is used like a model file: 'tally update' adds rows and
    removes those that are too old; predict, evaluate, audit, explain and show
    use the model of the current rows. The file contains these rows, so that
    they can be removed; with --half-life it contains no rows.

      tally window penguins.tally june.csv --rows 1000
      tally window shop.tally visits.csv --duration 30d --time at -o last.tally
      tally window shop.tally visits.csv --half-life 7d --time at
      tally update last.tally monday.csv
      tally predict last.tally new.csv

    A SPAN is a number with the unit s, min, h, d or w (90min, 30d), or a plain
    number if times are numbers.

    Parameters
    ----------
    model
        A file that `tally fit` wrote.
    data
        A file, a pattern in quotes, - or the address of a database; rows in the order of time.
    rows
        The number of rows of the window, or of sequences for hidden-markov.
    duration
        The duration of the window by --time, a SPAN.
    half_life
        Exponential decay: the half-life of the weight, in rows or as a SPAN of --time.
    columns
        Columns of DATA by role.
    out
        The file to write; by default MODEL-window.tally in this folder. An existing file is replaced only with --force.
    force
        Replace an existing file.
    json
        Write the state of the window as JSON.
    reading
        Options for reading DATA.
    """
    import tallybayes as tb

    if sum(value is not None for value in (rows, duration, half_life)) != 1:
        raise UsageError("missing option: pass one of --rows, --duration and --half-life.")
    if rows is not None and rows < 1:
        raise UsageError(f"--rows is {rows}; expected at least 1.")
    if rows is not None and columns.time is not None:
        raise UsageError("--rows and --time exclude each other; pass --duration with --time.")
    if duration is not None and columns.time is None:
        raise UsageError("missing option --time COLUMN, which --duration requires; or pass --rows.")
    template = load(model).without_rows()
    path = out or f"{os.path.splitext(os.path.basename(model))[0]}-window.tally"
    check_free(path, force)  # before counting
    stream: tb.Window | tb.Decayed
    if half_life is not None:
        stream = tb.Decayed(template, half_life=read_span(half_life, "half-life"))
    else:
        span = None if duration is None else read_span(duration, "duration")
        stream = tb.Window(template, rows=rows, duration=span)
    with OpenResources() as resources:
        source = resources.source(data, reading, needed=columns.names)
        columns.call(stream, "partial_fit", source, time=columns.time)
    save(stream, path, force=force)
    if json:
        answer_json({"file": path, **stream_state(stream)})
    else:
        print_result(format_stream(stream))

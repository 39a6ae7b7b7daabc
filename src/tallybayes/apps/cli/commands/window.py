"""`tally window`: a model of the last rows alone, or of all rows with the old ones fading."""

from __future__ import annotations

import os
from typing import Annotated, Any

from cyclopts import Parameter

from tallybayes.apps.cli.cli_errors import UsageError
from tallybayes.apps.cli.console import File, answer_json, print_result
from tallybayes.apps.cli.data_argument import DEFAULT_READ_OPTIONS, OpenResources, Read
from tallybayes.apps.cli.model_files import check_free, load, save
from tallybayes.apps.cli.model_options import read_span
from tallybayes.apps.cli.stream_models import came, shown, told


def window(
    model: File,
    data: File,
    /,
    *,
    rows: int | None = None,
    duration: str | None = None,
    half_life: str | None = None,
    time: str | None = None,
    out: Annotated[File | None, Parameter(name=["--out", "-o"])] = None,
    force: bool = False,
    target: Annotated[str | None, Parameter(name=["--target", "-t"])] = None,
    weight: str | None = None,
    sequence: str | None = None,
    order: str | None = None,
    json: bool = False,
    reading: Read = DEFAULT_READ_OPTIONS,
) -> None:
    """Keep a model of the last rows alone, or let old rows fade.

    MODEL lends its kind, settings and choices, none of its rows. The window
    begins with the rows of DATA, and is a file like that of a model: 'tally
    update' counts what comes and forgets what is old by then, and predict,
    evaluate, audit, explain and show ask the model of the rows in it. Its file
    holds these rows, so that they can be forgotten; that of --half-life does not.

      tally window penguins.tally june.csv --rows 1000
      tally window shop.tally visits.csv --duration 30d --time at -o last.tally
      tally window shop.tally visits.csv --half-life 7d --time at
      tally update last.tally monday.csv
      tally predict last.tally new.csv

    A SPAN is a number with s, min, h, d or w behind it (90min, 30d), or a number
    alone where times are numbers.

    Parameters
    ----------
    model
        A file that `tally fit` wrote.
    data
        A file, a pattern in quotes, - or the address of a database; rows in the order in which they came.
    rows
        Hold so many rows; of hidden-markov, so many sequences.
    duration
        Hold the rows of so long, a SPAN, by their --time.
    half_life
        Hold no rows: they count half after so many rows, or after a SPAN of their --time.
    time
        The column that says when a row came: a date or a number. It is not learned from.
    out
        The file to write; by default MODEL-window.tally, here. One that is there is never replaced without --force.
    force
        Replace the file that is there.
    target
        The column of the classes, if it is not called as when fitting.
    weight
        The column that says how often a row counts.
    sequence
        Of hidden-markov: the column that says which sequence a step belongs to.
    order
        Of hidden-markov: the column that says where in it.
    json
        Write its state as JSON.
    reading
        How DATA is read.
    """
    said = {"rows": rows, "duration": duration, "half_life": half_life}
    if sum(value is not None for value in said.values()) != 1:
        raise UsageError("how long rows count is not said; expected one of --rows, --duration and --half-life.")
    if rows is not None and (time is not None or rows < 1):
        raise UsageError(
            f"--rows is {rows}; expected at least 1."
            if rows < 1
            else "--rows goes by the order of the rows, and --time was given; expected --duration with it."
        )
    if duration is not None and time is None:
        raise UsageError("when rows came is not said; expected --time COLUMN with --duration, or --rows.")
    other: Any = load(model)
    path = out or f"{os.path.basename(model).rpartition('.')[0] or os.path.basename(model)}-window.tally"
    check_free(path, force)  # before the work, not after it
    stream = _begun(other.without_rows(), rows, duration, half_life)
    with OpenResources() as places:
        came(
            stream,
            "partial_fit",
            places.source(data, reading, needed=(target, weight, sequence, order, time)),
            target,
            weight,
            sequence,
            order,
            time,
        )
    save(stream, path, force=force)
    if json:
        answer_json({"file": path, **told(stream)})
    else:
        print_result(shown(stream))


def _begun(fresh: Any, rows: int | None, duration: str | None, half_life: str | None) -> Any:
    import tallybayes as tb

    if rows is not None:
        return tb.Window(fresh, rows=rows)
    if duration is not None:
        return tb.Window(fresh, duration=read_span(duration, "duration"))
    return tb.Decayed(fresh, half_life=read_span(str(half_life), "half-life"))

"""`tally window`: a model of a sliding window, or with exponential decay."""

from __future__ import annotations

import os
from typing import Annotated, Any

from cyclopts import Parameter

from tallybayes.apps.cli.cli_errors import UsageError
from tallybayes.apps.cli.console import File, answer_json, print_result
from tallybayes.apps.cli.data_argument import DEFAULT_READ_OPTIONS, OpenResources, Read
from tallybayes.apps.cli.model_files import check_free, load, save
from tallybayes.apps.cli.model_options import read_span
from tallybayes.apps.cli.stream_models import change_stream, format_stream, stream_state


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
    time
        The column with the times of the rows, dates or numbers. It is not a feature.
    out
        The file to write; by default MODEL-window.tally in this folder. An existing file is replaced only with --force.
    force
        Replace an existing file.
    target
        The column with the class labels; by default the target of the fit.
    weight
        The column with the sample weights.
    sequence
        The column with the sequence identifier, for hidden-markov.
    order
        The column with the time order within a sequence, for hidden-markov.
    json
        Write the state of the window as JSON.
    reading
        Options for reading DATA.
    """
    spans = {"rows": rows, "duration": duration, "half_life": half_life}
    if sum(value is not None for value in spans.values()) != 1:
        raise UsageError("missing option: pass one of --rows, --duration and --half-life.")
    if rows is not None and (time is not None or rows < 1):
        raise UsageError(
            f"--rows is {rows}; expected at least 1."
            if rows < 1
            else "--rows and --time exclude each other; pass --duration with --time."
        )
    if duration is not None and time is None:
        raise UsageError("missing option --time COLUMN, which --duration requires; or pass --rows.")
    template: Any = load(model)
    path = out or f"{os.path.basename(model).rpartition('.')[0] or os.path.basename(model)}-window.tally"
    check_free(path, force)  # before counting
    stream = _make_stream(template.without_rows(), rows, duration, half_life)
    with OpenResources() as resources:
        change_stream(
            stream,
            "partial_fit",
            resources.source(data, reading, needed=(target, weight, sequence, order, time)),
            target,
            weight,
            sequence,
            order,
            time,
        )
    save(stream, path, force=force)
    if json:
        answer_json({"file": path, **stream_state(stream)})
    else:
        print_result(format_stream(stream))


def _make_stream(unfitted: Any, rows: int | None, duration: str | None, half_life: str | None) -> Any:
    """Return the empty window or decayed model."""
    import tallybayes as tb

    if rows is not None:
        return tb.Window(unfitted, rows=rows)
    if duration is not None:
        return tb.Window(unfitted, duration=read_span(duration, "duration"))
    return tb.Decayed(unfitted, half_life=read_span(str(half_life), "half-life"))

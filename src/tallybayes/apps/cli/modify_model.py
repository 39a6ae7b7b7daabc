"""Add rows to a model file or remove them. The old file remains until the new one is complete."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from tallybayes.apps.cli.cli_errors import UsageError
from tallybayes.apps.cli.console import File, answer_json, print_result, print_status, rows
from tallybayes.apps.cli.data_argument import OpenResources, ReadOptions
from tallybayes.apps.cli.model_files import check_free, load, locked, require, save
from tallybayes.apps.cli.row_columns import TimedRowColumns
from tallybayes.apps.cli.stream_models import format_stream, is_stream, stream_state
from tallybayes.messages import with_article

if TYPE_CHECKING:
    from tallybayes.models.base import Model
    from tallybayes.models.streaming.stream_model import StreamModel


@Parameter(name="*")
@dataclass(frozen=True)
class ModifyOptions:
    """Options of the commands that modify a model file."""

    out: Annotated[File | None, Parameter(name=["--out", "-o"])] = None
    "The file to write; by default MODEL itself."
    force: bool = False
    "Replace an existing file of --out."
    json: bool = False
    "Write the numbers of rows as JSON."


MODIFY_OPTIONS = ModifyOptions()


def modify_model(
    method: Literal["partial_fit", "forget"],
    path: str,
    data: str,
    options: ModifyOptions,
    columns: TimedRowColumns,
    reading: ReadOptions,
    receipt: str | None = None,
) -> None:
    """Add rows to a model or remove them, write the model, and write a receipt if requested."""
    if receipt is not None:
        check_free(receipt, force=False)
    with OpenResources() as resources:
        require(path)
        source = resources.source(data, reading, needed=columns.names)
        # Locked from reading to writing: else a concurrent change would be lost.
        with locked(path) if options.out is None else contextlib.nullcontext():
            model = load(path, keep_stream=True)
            before = model.n_rows_
            if columns.time is not None and not is_stream(model):
                kind = type(model).__name__
                raise UsageError(
                    f"--time applies to windows; found {with_article(kind)}.\n    'tally window' creates a window."
                )
            more = ({"time": columns.time} if is_stream(model) else {}) | ({"receipt": True} if receipt else {})
            document = columns.call(model, method, source, **more)
            after = model.n_rows_
            if options.out is None:
                model.save(path)
    out = options.out or path
    if options.out is not None:
        save(model, out, force=options.force)
    if receipt is not None:
        document.save(receipt)
        print_status(f"wrote {receipt}")
    kept = _kept(model)
    if options.json:
        state = stream_state(model) if is_stream(model) else {}
        answer_json({"file": out, "rows_before": before, "rows": after, "kept": kept, **state})
    elif is_stream(model) and method == "partial_fit":
        print_result(f"{out}: {format_stream(model)}")
    else:
        verb = "added" if method == "partial_fit" else "forgot"
        print_result(f"{verb} {rows(abs(after - before))} rows: {out} now has {rows(after)}, {rows(before)} before")
        if kept:
            print_status(f"unchanged model choices: {', '.join(kept)}; 'tally fit' revises them")


def _kept(model: Model | StreamModel) -> list[str]:
    """Return the names of the model choices that remain as they were before the change."""
    fitted = model.model_ if is_stream(model) else model
    families = dict(getattr(fitted, "columns_", None) or {}).values()
    is_ensemble = hasattr(fitted, "spec_")
    suggests = getattr(fitted, "columns", None) == "suggest"
    choices = {
        "ensemble members, weights, families and bins": is_ensemble,
        "suggested families": suggests and not is_ensemble,
        "bins": any(getattr(family, "bins", ()) for family in families) and not (is_ensemble or suggests),
        "calibration": is_ensemble or getattr(fitted, "calibration_", None) is not None,
        "metric": getattr(fitted, "metric", None) == "learned",
    }
    return [name for name, is_kept in choices.items() if is_kept]

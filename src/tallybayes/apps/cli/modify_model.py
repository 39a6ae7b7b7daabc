"""Add rows to a model file or remove them. The old file remains until the new one is complete."""

from __future__ import annotations

import contextlib
from typing import Any, Literal

from tallybayes.apps.cli import stream_models
from tallybayes.apps.cli.cli_errors import CommandError, UsageError
from tallybayes.apps.cli.console import answer_json, print_result, print_status, rows
from tallybayes.apps.cli.data_argument import OpenResources, ReadOptions
from tallybayes.apps.cli.model_files import check_free, load, locked, require, save, target_of


def modify_model(
    method: Literal["partial_fit", "forget"],
    path: str,
    data: str,
    out: str | None,
    force: bool,
    target: str | None,
    weight: str | None,
    sequence: str | None,
    order: str | None,
    json: bool,
    reading: ReadOptions,
    time: str | None = None,
    receipt: str | None = None,
) -> None:
    """Add rows to a model or remove them, write the model, and write a receipt if requested."""
    if receipt is not None:
        check_free(receipt, force=False)
    with OpenResources() as resources:
        require(path)
        source = resources.source(data, reading, needed=(target, weight, sequence, order, time))
        # Locked from reading to writing: else a concurrent change would be lost.
        with locked(path) if out is None else contextlib.nullcontext():
            model = load(path, keep_stream=True)
            before = model.n_rows_
            receipt_document = _count(model, method, source, target, weight, sequence, order, time, receipt is not None)
            after = model.n_rows_
            if out is None:
                model.save(path)
    if out is not None:
        save(model, out, force=force)
    if receipt is not None:
        receipt_document.save(receipt)
        print_status(f"wrote {receipt}")
    kept = _kept(model)
    if json:
        stream_state = stream_models.stream_state(model) if stream_models.is_stream(model) else {}
        answer_json({"file": out or path, "rows_before": before, "rows": after, "kept": kept, **stream_state})
        return
    if stream_models.is_stream(model) and method == "partial_fit":
        print_result(f"{out or path}: {stream_models.format_stream(model)}")
        return
    verb = "added" if method == "partial_fit" else "forgot"
    print_result(f"{verb} {rows(abs(after - before))} rows: {out or path} now has {rows(after)}, {rows(before)} before")
    if kept:
        print_status(f"unchanged model choices: {', '.join(kept)}; 'tally fit' revises them")


def _count(
    model: Any,
    method: Literal["partial_fit", "forget"],
    source: Any,
    target: str | None,
    weight: str | None,
    sequence: str | None,
    order: str | None,
    time: str | None,
    with_receipt: bool,
) -> Any:
    """Add the rows to the model or remove them. Return the receipt if requested."""
    import tallybayes as tb

    receipt_option = {"receipt": True} if with_receipt else {}
    kind = type(model).__name__
    if stream_models.is_stream(model):
        return stream_models.change_stream(
            model, method, source, target, weight, sequence, order, time, **receipt_option
        )
    if time is not None:
        raise UsageError(f"--time applies to windows; found a {kind}.\n    'tally window' creates a window.")
    if isinstance(model, tb.HiddenMarkovModel):
        if sequence is None or target is None:
            raise UsageError(
                "a hidden Markov model requires --target (the states) and --sequence (and --order for the time order)."
            )
        return getattr(model, method)(source, target, sequence=sequence, order=order, **receipt_option)
    if sequence or order:
        raise UsageError(f"--sequence and --order apply to hidden Markov models; found a {kind}.")
    if isinstance(model, tb.BayesianNetwork):
        return getattr(model, method)(source, sample_weight=weight, **receipt_option)
    if not hasattr(model, method):
        raise CommandError(
            f"rows cannot be {'added to' if method == 'partial_fit' else 'removed from'} a {kind}: its EM counts "
            "depend on the parameters.\n    Fit a new model with 'tally fit'."
        )
    weights = {} if weight is None else {"sample_weight": weight}
    return getattr(model, method)(source, target or target_of(model), **weights, **receipt_option)


def _kept(model: Any) -> list[str]:
    """Return the names of the model choices that remain as they were before the change."""
    model = model.model_ if stream_models.is_stream(model) else model
    choices = []
    if hasattr(model, "spec_"):
        choices += ["ensemble members, weights, families and bins", "calibration"]
    elif getattr(model, "columns", None) == "suggest":
        choices.append("suggested families")
    elif any(getattr(family, "bins", ()) for family in dict(getattr(model, "columns_", None) or {}).values()):
        choices.append("bins")
    if getattr(model, "calibration_", None) is not None:
        choices.append("calibration")
    if getattr(model, "metric", None) == "learned":
        choices.append("metric")
    return choices

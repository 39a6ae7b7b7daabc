"""Models that are changed: more rows, or fewer; the old file stays until the new one is whole."""

from __future__ import annotations

import contextlib
from typing import Any, Literal

from tallybayes.apps.cli import stream_models
from tallybayes.apps.cli.cli_errors import CommandError, UsageError
from tallybayes.apps.cli.console import answer_json, print_result, print_status, rows
from tallybayes.apps.cli.data_argument import OpenResources, ReadOptions
from tallybayes.apps.cli.model_files import check_free, load, locked, require, save, target_of


def modify_model(
    how: Literal["partial_fit", "forget"],
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
    """Count rows into a model or out of it, and write it; of what is taken out, a receipt where one is asked for."""
    if receipt is not None:
        check_free(receipt, force=False)
    with OpenResources() as places:
        require(path)
        source = places.source(data, reading, needed=(target, weight, sequence, order, time))
        # Nobody else changes the model between reading and writing it, or one of the two changes would be lost.
        with locked(path) if out is None else contextlib.nullcontext():
            model = load(path, whole=True)
            before = model.n_rows_
            given = _count(model, how, source, target, weight, sequence, order, time, receipt is not None)
            after = model.n_rows_
            if out is None:
                model.save(path)
    if out is not None:
        save(model, out, force=force)
    if receipt is not None:
        given.save(receipt)
        print_status(f"wrote {receipt}")
    kept = _kept(model)
    if json:
        more = stream_models.told(model) if stream_models.is_stream(model) else {}
        answer_json({"file": out or path, "rows_before": before, "rows": after, "kept": kept, **more})
        return
    if stream_models.is_stream(model) and how == "partial_fit":
        print_result(f"{out or path} is of {stream_models.shown(model)}")
        return
    word, steps = ("counted", after - before) if how == "partial_fit" else ("forgot", before - after)
    print_result(f"{word} {rows(steps)} rows: {out or path} has {rows(after)} now, {rows(before)} before")
    if kept:
        print_status(f"kept as chosen before: {', '.join(kept)}; 'tally fit' chooses anew")


def _count(
    model: Any,
    how: str,
    source: Any,
    target: str | None,
    weight: str | None,
    sequence: str | None,
    order: str | None,
    time: str | None,
    receipted: bool,
) -> Any:
    """Change the model; the receipt where one is asked for."""
    import tallybayes as tb

    asked = {"receipt": True} if receipted else {}
    kind = type(model).__name__
    if stream_models.is_stream(model):
        return stream_models.came(model, how, source, target, weight, sequence, order, time, **asked)  # type: ignore[arg-type]
    if time is not None:
        raise UsageError(f"--time is of windows; this is a {kind}.\n    'tally window' makes one of it.")
    if isinstance(model, tb.HiddenMarkovModel):
        if sequence is None or target is None:
            raise UsageError("a hidden Markov model needs --target, the states, and --sequence (and --order).")
        return getattr(model, how)(source, target, sequence=sequence, order=order, **asked)
    if sequence or order:
        raise UsageError(f"--sequence and --order are of hidden Markov models; this is a {kind}.")
    if isinstance(model, tb.BayesianNetwork):
        return getattr(model, how)(source, sample_weight=weight, **asked)
    if not hasattr(model, how):
        raise CommandError(
            f"this is a {kind}, of which rows cannot be {'added' if how == 'partial_fit' else 'forgotten'}: EM counts "
            "depend on the parameters.\n    Fit it again: tally fit."
        )
    more = {} if weight is None else {"sample_weight": weight}
    return getattr(model, how)(source, target or target_of(model), **more, **asked)


def _kept(model: Any) -> list[str]:
    """What was chosen from the rows of before, and stays."""
    model, found = model.model_ if stream_models.is_stream(model) else model, []
    if hasattr(model, "spec_"):
        found += ["the models that are mixed, their weights, families and bins", "calibration"]
    elif getattr(model, "columns", None) == "suggest":
        found.append("the families that were suggested")
    elif any(getattr(family, "bins", ()) for family in dict(getattr(model, "columns_", None) or {}).values()):
        found.append("bins")
    if getattr(model, "calibration_", None) is not None:
        found.append("calibration")
    if getattr(model, "metric", None) == "learned":
        found.append("the metric")
    return found

"""Windows and decayed models: add or remove rows, and describe their state."""

from __future__ import annotations

from typing import Any, Literal

from tallybayes.apps.cli.cli_errors import UsageError
from tallybayes.apps.cli.console import printable, rows


def is_stream(model: Any) -> bool:
    """Return whether a model is a window or a decayed model."""
    return hasattr(model, "model_") and hasattr(model, "now_")


def change_stream(
    stream: Any,
    method: Literal["partial_fit", "forget"],
    source: Any,
    target: str | None,
    weight: str | None,
    sequence: str | None,
    order: str | None,
    time: str | None,
    **options: Any,
) -> Any:
    """Add rows to a stream model or remove them. Return the result of its method."""
    import tallybayes as tb
    from tallybayes.apps.cli.model_files import target_of

    inner = getattr(stream, "model_", stream.model)
    arguments: dict[str, Any] = {"sample_weight": weight, "time": time, **options}
    if isinstance(inner, tb.HiddenMarkovModel):
        if sequence is None or target is None:
            raise UsageError(
                "a hidden Markov model requires --target (the states) and --sequence (and --order for the time order)."
            )
        if weight is not None:
            raise UsageError("--weight applies to rows; a hidden Markov model is fitted to sequences.")
        arguments |= {"sequence": sequence, "order": order}
    elif sequence or order:
        raise UsageError(f"--sequence and --order apply to hidden Markov models; found a {type(inner).__name__}.")
    return getattr(stream, method)(source, target or target_of(inner), **arguments)


def stream_state(stream: Any) -> dict[str, Any]:
    """Return the state of a stream model as a JSON document."""
    state: dict[str, Any] = {"stream": type(stream).__name__, "model": type(stream.model_).__name__}
    state |= {name: value for name, value in stream.get_params(deep=False).items() if name != "model"}
    state |= {"now": stream.now_, "time": stream.time_, "weight": stream.n_rows_}
    if hasattr(stream, "n_kept_"):
        state |= {"kept": stream.n_kept_, "late": getattr(stream, "n_late_", 0)}
    return {name: value for name, value in state.items() if value is not None}


def format_stream(stream: Any) -> str:
    """Describe the state of a stream model in one line."""
    state = stream_state(stream)
    unit_name = "sequences" if hasattr(stream.model_, "states_") else "rows"
    until = f" until {printable(state['now'])[:19]}" if "duration" in state or "time" in state else ""
    if "half_life" in state:
        unit = "" if hasattr(stream.half_life, "dtype") or "time" in state else f" {unit_name}"
        weight = rows(round(state["weight"], 3))
        return f"a half-life of {_format_span(stream.half_life)}{unit}{until}: total weight {weight} rows"
    span = f"{stream.rows:,} {unit_name}" if stream.rows is not None else _format_span(stream.duration)
    late = f", {state['late']:,} arrived too late" if state["late"] else ""
    return f"the last {span}{until}: {state['kept']:,} {unit_name}{late}"


def _format_span(span: Any) -> str:
    """Format a span of time as it is typed."""
    if not hasattr(span, "dtype"):
        return f"{float(span):.12g}"
    seconds = int(span.astype("m8[ns]").astype(int)) / 1e9
    for unit, size in {"d": 86400, "h": 3600, "min": 60}.items():
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:.12g}{unit}"
    return f"{seconds:.12g}s"

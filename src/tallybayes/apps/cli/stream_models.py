"""Windows and fading models: what comes into them or is taken out, and how they stand."""

from __future__ import annotations

from typing import Any, Literal

from tallybayes.apps.cli.cli_errors import UsageError
from tallybayes.apps.cli.console import printable, rows


def is_stream(model: Any) -> bool:
    """Whether this is a model of the last rows, or one that fades."""
    return hasattr(model, "model_") and hasattr(model, "now_")


def came(
    stream: Any,
    how: Literal["partial_fit", "forget"],
    source: Any,
    target: str | None,
    weight: str | None,
    sequence: str | None,
    order: str | None,
    time: str | None,
    **more: Any,
) -> Any:
    """Count rows into a stream or out of it; what its method gives."""
    import tallybayes as tb
    from tallybayes.apps.cli.model_files import target_of

    inside = getattr(stream, "model_", stream.model)
    given: dict[str, Any] = {"sample_weight": weight, "time": time, **more}
    if isinstance(inside, tb.HiddenMarkovModel):
        if sequence is None or target is None:
            raise UsageError("a hidden Markov model needs --target, the states, and --sequence (and --order).")
        if weight is not None:
            raise UsageError("--weight is of rows; hidden-markov learns from sequences.")
        given |= {"sequence": sequence, "order": order}
    elif sequence or order:
        raise UsageError(f"--sequence and --order are of hidden Markov models; this is a {type(inside).__name__}.")
    return getattr(stream, how)(source, target or target_of(inside), **given)


def told(stream: Any) -> dict[str, Any]:
    """How a stream stands, for programs."""
    found: dict[str, Any] = {"stream": type(stream).__name__, "model": type(stream.model_).__name__}
    found |= {name: value for name, value in stream.get_params(deep=False).items() if name != "model"}
    found |= {"now": stream.now_, "time": stream.time_, "weight": stream.n_rows_}
    if hasattr(stream, "n_kept_"):
        found |= {"kept": stream.n_kept_, "late": getattr(stream, "n_late_", 0)}
    return {name: value for name, value in found.items() if value is not None}


def shown(stream: Any) -> str:
    """How a stream stands, in a line for people."""
    state = told(stream)
    what = "sequences" if hasattr(stream.model_, "states_") else "rows"
    until = f" until {printable(state['now'])[:19]}" if "duration" in state or "time" in state else ""
    if "half_life" in state:
        unit = "" if hasattr(stream.half_life, "dtype") or "time" in state else f" {what}"
        return f"a half-life of {_long(stream.half_life)}{unit}{until}: worth {rows(round(state['weight'], 3))} rows"
    span = f"{stream.rows:,} {what}" if stream.rows is not None else _long(stream.duration)
    late = f", {state['late']:,} arrived too late" if state["late"] else ""
    return f"the last {span}{until}: {state['kept']:,} {what}{late}"


def _long(span: Any) -> str:
    """A span as it is typed."""
    if not hasattr(span, "dtype"):
        return f"{float(span):.12g}"
    seconds = int(span.astype("m8[ns]").astype(int)) / 1e9
    for unit, size in {"d": 86400, "h": 3600, "min": 60}.items():
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:.12g}{unit}"
    return f"{seconds:.12g}s"

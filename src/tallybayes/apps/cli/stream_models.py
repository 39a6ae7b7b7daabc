"""Windows and decayed models: their state as a document and as a line of text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeGuard

from tallybayes.apps.cli.console import printable, rows

if TYPE_CHECKING:
    import numpy as np

    from tallybayes.models.streaming.stream_model import StreamModel


def is_stream(model: object) -> TypeGuard[StreamModel]:
    """Return whether a model is a window or a decayed model."""
    import tallybayes as tb

    return isinstance(model, tb.Window | tb.Decayed)


def stream_state(stream: StreamModel) -> dict[str, Any]:
    """Return the state of a stream model as a JSON document."""
    state: dict[str, Any] = {"stream": type(stream).__name__, "model": type(stream.model_).__name__}
    state |= {name: value for name, value in stream.get_params(deep=False).items() if name != "model"}
    state |= {"now": stream.now_, "time": stream.time_, "weight": stream.n_rows_}
    if hasattr(stream, "n_kept_"):
        state |= {"kept": stream.n_kept_, "late": getattr(stream, "n_late_", 0)}
    return {name: value for name, value in state.items() if value is not None}


def format_stream(stream: StreamModel) -> str:
    """Describe the state of a stream model in one line."""
    state = stream_state(stream)
    unit = "sequences" if hasattr(stream.model_, "states_") else "rows"
    until = f" until {printable(state['now'])[:19]}" if {"duration", "time"} & set(state) else ""
    if "half_life" in state:
        half_life = state["half_life"]
        of_rows = "" if hasattr(half_life, "dtype") or "time" in state else f" {unit}"
        weight = rows(round(state["weight"], 3))
        return f"a half-life of {_format_span(half_life)}{of_rows}{until}: total weight {weight} rows"
    span = f"{state['rows']:,} {unit}" if "rows" in state else _format_span(state["duration"])
    late = f", {state['late']:,} arrived too late" if state["late"] else ""
    return f"the last {span}{until}: {state['kept']:,} {unit}{late}"


def _format_span(span: float | np.timedelta64) -> str:
    """Format a span of time as it is typed."""
    if isinstance(span, int | float):
        return f"{span:.12g}"
    seconds = int(span.astype("m8[ns]").astype(int)) / 1e9
    sizes = {"d": 86400, "h": 3600, "min": 60, "s": 1}
    unit = next((unit for unit, size in sizes.items() if seconds >= size and seconds % size == 0), "s")
    return f"{seconds / sizes[unit]:.12g}{unit}"

"""Pictures of what comes after a sequence: its last steps, and those ahead with their intervals."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallybayes.plotting.hmm.states_and_transitions import _as_numbers, _draw_proba
from tallybayes.plotting.plot import Plot
from tallybayes.plotting.style import (
    COLORS,
    NOTE,
    WIDEST,
    group_styles,
    hide_top_right_spines,
    legend_beside,
    name_of,
    new_axes,
)

_MOST = 5  # columns above each other


def plot_forecast(found: Any, ax: Any = None) -> Plot:
    """A panel for every column, numbers as a line in a band, labels stacked by their probability; the states below.

    Parameters
    ----------
    found : Forecast
    ax : matplotlib Axes, optional
        One for every column, and one more.
    """
    columns = [*found.mean, *found.labels]
    most = _MOST if ax is None else max(1, np.size(ax) - 1)
    shown = columns[:most]
    heights = [2.0] * len(shown) + [1.0]
    options = {"figsize": (9, 1.4 * sum(heights) + 0.8), "layout": "constrained", "height_ratios": heights}
    axes = np.ravel(new_axes(ax, nrows=len(shown) + 1, sharex=True, **options))
    past, ahead = found._n_steps, found._n_steps + np.arange(len(found))
    for panel, name in zip(axes, shown, strict=False):
        if name in found.mean:
            _draw_numbers(panel, found, name, ahead)
        else:
            table = found.labels[name]
            p = np.stack(list(table.values()), axis=-1)
            look = group_styles(list(table), np.nansum(p, axis=0), "labels")
            _draw_proba(panel, ahead, p, look)
            _name_areas(panel, look, "label")
            panel.set_xlabel("")
        panel.set_ylabel("step" if name == 0 and len(columns) == 1 else name_of(name, WIDEST))
    states = found.states.tolist()
    look = group_styles(states, np.nansum(found.proba, axis=0), "states")
    _draw_proba(axes[-1], ahead, found.proba, look)
    _name_areas(axes[-1], look, "state")
    first = past - max((len(column) for column in found._past.values()), default=0)
    axes[-1].set_xlim(first - 0.5, ahead[-1] + 0.5)
    for each in axes:
        hide_top_right_spines(each)
        if past and first < past:
            each.axvline(past - 0.5, color=NOTE, linewidth=0.8, linestyle=":")
    if len(shown) < len(columns):
        axes[0].set_title(f"showing {len(shown)} of {len(columns)} columns", fontsize=10, color=NOTE)
    return Plot(axes, *_parts(found, states))


def _draw_numbers(panel: Any, found: Any, name: Any, ahead: np.ndarray) -> None:
    """The last steps, then the mean in its band."""
    mean, low, high = found.mean[name], found.low[name], found.high[name]
    if name in found._past:
        values, _ = _as_numbers(np.asarray(found._past[name]))
        time = ahead[0] - len(values) + np.arange(len(values))
        panel.plot(time, values, color="#777777", linewidth=1.0, marker="o", markersize=2.5)
    color = COLORS[0]
    panel.fill_between(
        ahead, low, high, color=color, alpha=0.25, linewidth=0, label=f"{100 * found.mass:.4g} % interval"
    )
    panel.plot(ahead, mean, color=color, linewidth=1.8, marker="o" if len(ahead) < 30 else None, markersize=3)
    panel.plot([], [], color=color, linewidth=1.8, label="mean")
    if len(ahead) == 1:  # a band of one step has no area
        panel.vlines(ahead, low, high, color=color, alpha=0.6, linewidth=3)
    legend_beside(panel)


def _name_areas(panel: Any, look: list[Any], what: str) -> None:
    """What the areas stand for, in the order in which they are stacked."""
    for one in look:
        if one.label is not None and not str(one.label).startswith("_"):
            panel.scatter([], [], color=one.color, label=one.label, marker="s")
    legend_beside(panel, what)


def _parts(found: Any, states: list[Any]) -> list[dict[str, Any]]:
    """What is drawn, as a table."""
    steps = list(range(1, len(found) + 1))
    parts: list[dict[str, Any]] = []
    for name in found.mean:
        for what, values in (("mean", found.mean), ("low", found.low), ("high", found.high)):
            parts.append({"step": steps, "column": name_of(name, 60), "what": what, "value": values[name].tolist()})
    for name, table in found.labels.items():
        for label, p in table.items():
            parts.append({"step": steps, "column": name_of(name, 60), "what": f"p({label})", "value": p.tolist()})
    for place, state in enumerate(states):
        parts.append({"step": steps, "column": "state", "what": f"p({state})", "value": found.proba[:, place].tolist()})
    return parts

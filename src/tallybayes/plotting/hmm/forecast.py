"""Plot of a forecast: the last time steps of a sequence and the predicted ones with their intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.plotting.hmm.states import as_numbers, draw_probabilities
from tallybayes.plotting.plot import Plot
from tallybayes.plotting.style import (
    COLORS,
    NOTE,
    WIDEST,
    GroupStyle,
    all_axes,
    group_styles,
    hide_top_right_spines,
    legend_beside,
    name_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tallybayes.models.hmm.inference.forecast import Column, Forecast

_MAX_PANELS = 5  # columns above each other


def plot_forecast(forecast: Forecast, ax: Axes | np.ndarray | None = None) -> Plot:
    """Plot a forecast: one panel for each column, and the state probabilities below.

    Numbers are drawn as a line with an interval band, categorical columns as stacked probabilities.

    Parameters
    ----------
    forecast : Forecast
    ax : matplotlib Axes, optional
        One for each column, and one more for the states.
    """
    columns = [*forecast.mean, *forecast.labels]
    n_panels = _MAX_PANELS if ax is None else max(1, np.asarray(ax, dtype=object).size - 1)
    shown = columns[:n_panels]
    heights = [2.0] * len(shown) + [1.0]
    options = {"figsize": (9, 1.4 * sum(heights) + 0.8), "layout": "constrained", "height_ratios": heights}
    axes = all_axes(ax, nrows=len(shown) + 1, sharex=True, **options)
    past = forecast.history.n_steps
    ahead = forecast.history.n_steps + np.arange(len(forecast))
    for panel, name in zip(axes, shown, strict=False):
        if name in forecast.mean:
            _draw_numbers(panel, forecast, name, ahead)
        else:
            table = forecast.labels[name]
            p = np.stack(list(table.values()), axis=-1)
            styles = group_styles(list(table), np.nansum(p, axis=0), "labels")
            draw_probabilities(panel, ahead, p, styles)
            _add_area_legend(panel, styles, "label")
            panel.set_xlabel("")
        panel.set_ylabel("step" if name == 0 and len(columns) == 1 else name_of(name, WIDEST))
    states = forecast.states.tolist()
    styles = group_styles(states, np.nansum(forecast.proba, axis=0), "states")
    draw_probabilities(axes[-1], ahead, forecast.proba, styles)
    _add_area_legend(axes[-1], styles, "state")
    first = past - max((len(column) for column in forecast.history.cells.values()), default=0)
    axes[-1].set_xlim(first - 0.5, ahead[-1] + 0.5)
    for each in axes:
        hide_top_right_spines(each)
        if past and first < past:
            each.axvline(past - 0.5, color=NOTE, linewidth=0.8, linestyle=":")
    if len(shown) < len(columns):
        axes[0].set_title(f"showing {len(shown)} of {len(columns)} columns", fontsize=10, color=NOTE)
    return Plot(axes, *_plotted_tables(forecast, states))


def _draw_numbers(panel: Axes, forecast: Forecast, name: Column, ahead: np.ndarray) -> None:
    """Draw the last time steps of a column, then its mean within the interval band."""
    mean, low, high = forecast.mean[name], forecast.low[name], forecast.high[name]
    if name in forecast.history.cells:
        values, _ = as_numbers(np.asarray(forecast.history.cells[name]))
        time = ahead[0] - len(values) + np.arange(len(values))
        panel.plot(time, values, color="#777777", linewidth=1.0, marker="o", markersize=2.5)
    color = COLORS[0]
    panel.fill_between(
        ahead, low, high, color=color, alpha=0.25, linewidth=0, label=f"{100 * forecast.mass:.4g} % interval"
    )
    panel.plot(ahead, mean, color=color, linewidth=1.8, marker="o" if len(ahead) < 30 else None, markersize=3)
    panel.plot([], [], color=color, linewidth=1.8, label="mean")
    if len(ahead) == 1:  # a band of one step has no area
        panel.vlines(ahead, low, high, color=color, alpha=0.6, linewidth=3)
    legend_beside(panel)


def _add_area_legend(panel: Axes, styles: list[GroupStyle], what: str) -> None:
    """Add a legend of the stacked areas, in the order of the stack."""
    for style in styles:
        if style.label is not None and not str(style.label).startswith("_"):
            panel.scatter([], [], color=style.color, label=style.label, marker="s")
    legend_beside(panel, what)


def _plotted_tables(forecast: Forecast, states: list[Any]) -> list[dict[str, Any]]:
    """Return the plotted numbers as tables."""
    steps = list(range(1, len(forecast) + 1))
    parts: list[dict[str, Any]] = []
    for name in forecast.mean:
        for what, values in (("mean", forecast.mean), ("low", forecast.low), ("high", forecast.high)):
            parts.append({"step": steps, "column": name_of(name, 60), "what": what, "value": values[name].tolist()})
    for name, table in forecast.labels.items():
        for label, p in table.items():
            parts.append({"step": steps, "column": name_of(name, 60), "what": f"p({label})", "value": p.tolist()})
    for index, state in enumerate(states):
        parts.append(
            {"step": steps, "column": "state", "what": f"p({state})", "value": forecast.proba[:, index].tolist()}
        )
    return parts

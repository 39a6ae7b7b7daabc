"""Plot of a forecast: the last time steps of a sequence and the predicted ones with their intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.plotting.charts import curve_with_band
from tallybayes.plotting.hmm.states import as_numbers, column_label, column_panels, draw_areas
from tallybayes.plotting.plot import Plot, PlotAxes
from tallybayes.plotting.style import COLORS, DOTS, NOTE, group_styles, legend_beside, name_of, shown_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tallybayes.models.hmm.inference.forecast import Column, Forecast


def plot_forecast(forecast: Forecast, ax: PlotAxes = None) -> Plot:
    """Plot a forecast: one panel for each column, and the state probabilities below.

    Numbers are drawn as a line with an interval band, categorical columns as stacked probabilities.

    Parameters
    ----------
    forecast : Forecast
    ax : matplotlib Axes, optional
        One for each column, and one more for the states.
    """
    names = [*forecast.mean, *forecast.labels]
    axes = column_panels(ax, len(names))
    past = forecast.history.n_steps
    ahead = past + np.arange(len(forecast))
    parts: list[tuple[str, str, np.ndarray]] = []  # column, what, values
    for name in forecast.mean:
        series = {"mean": forecast.mean, "low": forecast.low, "high": forecast.high}
        parts += [(name_of(name, 60), what, values[name]) for what, values in series.items()]
    stacks = {name: (name_of(name, 60), "label", proba) for name, proba in forecast.labels.items()}
    states = ("state", "state", dict(zip(forecast.states.tolist(), forecast.proba.T, strict=True)))
    for column, _, proba_of in (*stacks.values(), states):
        parts += [(column, f"p({label})", proba) for label, proba in proba_of.items()]
    for panel, name in zip(axes[:-1], names, strict=False):
        if name in stacks:
            _draw_probabilities(panel, ahead, *stacks[name][1:])
        else:
            _draw_numbers(panel, forecast, name, ahead)
        panel.set_ylabel(column_label(name, names))
    _draw_probabilities(axes[-1], ahead, *states[1:])
    first = past - max((len(column) for column in forecast.history.cells.values()), default=0)
    axes[-1].set(xlim=(first - 0.5, ahead[-1] + 0.5), ylabel="p(state)", xlabel="time")
    if first < past:
        for panel in axes:
            panel.axvline(past - 0.5, color=NOTE, linewidth=0.8, linestyle=":")
    axes[0].set_title(shown_of(len(axes) - 1, len(names), "columns"), fontsize=10, color=NOTE)
    steps = range(1, len(forecast) + 1)
    return Plot(axes, *({"step": steps, "column": column, "what": what, "value": v} for column, what, v in parts))


def _draw_numbers(panel: Axes, forecast: Forecast, name: Column, ahead: np.ndarray) -> None:
    """Draw the last time steps of a column, then its mean within the interval band."""
    mean, low, high = forecast.mean[name], forecast.low[name], forecast.high[name]
    if name in forecast.history.cells:
        values, _ = as_numbers(np.asarray(forecast.history.cells[name]))
        time = ahead[0] - len(values) + np.arange(len(values))
        panel.plot(time, values, color="#777777", linewidth=1.0, marker="o", markersize=2.5)
    marker = "o" if len(ahead) < 30 else None
    line: dict[str, Any] = {"color": COLORS[0], "linewidth": 1.8, "marker": marker, "markersize": 3}
    interval = f"{100 * forecast.mass:.4g} % interval"
    curve_with_band(panel, ahead, mean, low, high, interval=interval, label="mean", **line)
    if len(ahead) == 1:  # a band of one step has no area
        panel.vlines(ahead, low, high, color=COLORS[0], alpha=0.6, linewidth=3)
    legend_beside(panel)


def _draw_probabilities(panel: Axes, ahead: np.ndarray, noun: str, proba_of: dict[object, np.ndarray]) -> None:
    """Draw the probabilities of labels or states as stacked areas."""
    proba = np.stack(list(proba_of.values()), axis=-1)
    styles = group_styles(list(proba_of), np.nansum(proba, axis=0), f"{noun}s")
    draw_areas(panel, ahead, proba, styles)
    legend_beside(panel, noun, styles, **{**DOTS, "marker": "s"})

"""Plot of learning curves."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.plotting.charts import curve_with_band
from tallybayes.plotting.plot import Plot, PlotAxes
from tallybayes.plotting.style import NOTE, WIDEST, group_styles, legend_beside, note_above, panels, set_title, words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tallybayes.results.model_curves import LearningCurves


def plot_learning_curves(curves: LearningCurves, metrics: Sequence[str], ax: PlotAxes = None) -> Plot:
    """Plot each metric in a panel: a curve with a band of one standard error for each model, and their crossings."""
    panel_width = {1: 6.4, 3: 4.0}.get(len(metrics), 4.6)  # inches
    axes = panels(len(metrics), 3, panel_width, 3.9, ax)
    frame = curves.to_frame()[["model", "rows", *(part for metric in metrics for part in (metric, f"{metric}_se"))]]
    styles = group_styles(curves.names, noun="models")
    labeled = curves.sizes[::-1][:: -(-len(curves.sizes) // 9)]
    for panel, metric in zip(axes, metrics, strict=True):
        means, errors = (
            np.nan_to_num(frame[name]).reshape(len(curves.names), len(curves.sizes))
            for name in (metric, f"{metric}_se")
        )
        for mean, error, style in zip(means, errors, styles, strict=True):
            line: dict[str, Any] = {"color": style.color, "marker": "o", "markersize": 4}
            curve_with_band(panel, curves.sizes, mean, mean - error, mean + error, **line)
        panel.set(xscale="log", xlabel="training rows")
        panel.set_xticks(labeled, [f"{size:,}" for size in labeled], fontsize=8, rotation=45, ha="right")
        if metric == "fit_seconds":
            _plain_log_scale(panel)
        else:
            panel.set_ylim(*_limits(metric, means, errors))
        panel.minorticks_off()
        crossings = _mark_crossings(panel, curves, metric, means) if len(curves.names) > 1 else []
        set_title(panel, curves.LABELS[metric], *crossings, size=10)
    legend_beside(axes[1 if len(axes) == 4 else -1], styles=styles, marker="o", markersize=4)
    if ax is None:
        note_above(axes[0].figure, *(words(note).replace(" = ", "\u00a0=\u00a0") for note in curves.notes()))
    return Plot(axes, frame)


def _limits(metric: str, means: np.ndarray, errors: np.ndarray) -> tuple[float, float]:
    """Return the limits of the y axis. A high log loss at few rows shall not hide later differences."""
    highest = (means + errors).max()
    typical = max(4 * np.median(means), 2 * means[:, -1].max())
    high = 1.04 * (typical if metric == "log_loss" and highest > 2 * typical else highest) or 1.0
    low = (means - errors).min()
    return max(0.0, float(low - 0.1 * (high - low))), float(high)


def _plain_log_scale(panel: Axes) -> None:
    """Set a logarithmic y axis with plain numbers."""
    from matplotlib.ticker import LogLocator, StrMethodFormatter

    panel.set_yscale("log")
    panel.yaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
    panel.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))


def _mark_crossings(panel: Axes, curves: LearningCurves, metric: str, means: np.ndarray) -> list[str]:
    """Mark the sizes at which the best model changes, and return their descriptions."""
    leaders = [(size, words(name, WIDEST), means[curves.names.index(name)]) for size, name in curves.crossings(metric)]
    descriptions = []
    for (_, _, before), (size, name, after) in pairwise(leaders):
        gap = before - after
        k = int(np.searchsorted(curves.sizes, size))
        while k > 1 and gap[k - 1] > 0:  # better already, within the noise
            k -= 1
        fraction = np.clip(gap[k - 1] / (gap[k - 1] - gap[k]), 0, 1)
        position = curves.sizes[k - 1] * (curves.sizes[k] / curves.sizes[k - 1]) ** fraction
        panel.axvline(position, color=NOTE, linestyle=":", linewidth=1)
        descriptions.append(f"{name} better from about {float(f'{position:.2g}'):,.0f} rows")
    return descriptions or [f"{leaders[0][1]} better at every size"]

"""Plot of learning curves."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from tallybayes.plotting.plot import Plot, PlotAxes
from tallybayes.plotting.style import (
    NOTE,
    WIDEST,
    all_axes,
    group_styles,
    hide_top_right_spines,
    legend_beside,
    note_above,
    panels,
    words,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tallybayes.results.model_curves import LearningCurves


def plot_learning_curves(curves: LearningCurves, metrics: Sequence[str], ax: PlotAxes = None) -> Plot:
    """Plot each metric in a panel: a curve with a band of one standard error for each model, and their crossings."""
    panel_width = {1: 6.4, 3: 4.0}.get(len(metrics), 4.6)  # inches
    axes = panels(len(metrics), 3, panel_width, 3.9) if ax is None else all_axes(ax)
    frame = curves.to_frame()
    styles = group_styles(curves.names, noun="models")
    for panel, metric in zip(axes, metrics, strict=True):
        for name, style in zip(curves.names, styles, strict=True):
            of_model = frame[frame["model"] == name]
            value = of_model[metric].to_numpy()
            error = np.nan_to_num(of_model[f"{metric}_se"].to_numpy())
            panel.fill_between(curves.sizes, value - error, value + error, color=style.color, alpha=0.2, linewidth=0)
            panel.plot(curves.sizes, value, "o-", color=style.color, label=style.label, markersize=4)
        panel.set_xscale("log")
        labeled = curves.sizes[::-1][:: -(-len(curves.sizes) // 9)][::-1]
        panel.set_xticks(labeled, [f"{size:,}" for size in labeled], fontsize=8, rotation=45, ha="right")
        if metric == "fit_seconds":
            _plain_log_scale(panel)
        else:
            panel.set_ylim(*_limits(curves, metric))
        panel.minorticks_off()
        panel.set_xlabel("training rows")
        crossings = _mark_crossings(panel, curves, metric) if len(curves.names) > 1 else []
        panel.set_title(curves.LABELS[metric], fontsize=11, pad=6 + 11 * len(crossings))
        panel.annotate(
            "\n".join(crossings),
            (0.5, 1.0),
            xycoords="axes fraction",
            xytext=(0, 3),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize=8,
            color=NOTE,
        )
        hide_top_right_spines(panel)
    legend_beside(axes[1 if len(axes) == 4 else -1])
    if ax is None:
        note_above(axes[0].figure, *(words(note).replace(" = ", "\u00a0=\u00a0") for note in curves.notes()))
    columns = ["model", "rows", *(part for metric in metrics for part in (metric, f"{metric}_se"))]
    return Plot(axes, {name: frame[name].tolist() for name in columns})


def _limits(curves: LearningCurves, metric: str) -> tuple[float, float]:
    """Return the limits of the y axis. A high log loss at few rows shall not hide later differences."""
    frame = curves.to_frame()
    mean = frame[metric].to_numpy()
    error = np.nan_to_num(frame[f"{metric}_se"].to_numpy())
    last = frame["rows"].to_numpy() == curves.sizes[-1]
    highest = (mean + error).max()
    typical = max(4 * np.median(mean), 2 * mean[last].max())
    high = 1.04 * (typical if metric == "log_loss" and highest > 2 * typical else highest) or 1.0
    low = (mean - error).min()
    return max(0.0, float(low - 0.1 * (high - low))), float(high)


def _plain_log_scale(panel: Axes) -> None:
    """Set a logarithmic y axis with plain numbers."""
    from matplotlib.ticker import LogLocator, StrMethodFormatter

    panel.set_yscale("log")
    panel.yaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
    panel.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))


def _mark_crossings(panel: Axes, curves: LearningCurves, metric: str) -> list[str]:
    """Mark the sizes at which the best model changes, and return their descriptions."""
    mean = getattr(curves, metric).mean(axis=-1)
    descriptions = []
    for (_, before), (size, after) in pairwise(curves.crossings(metric)):
        gap = mean[curves.names.index(before)] - mean[curves.names.index(after)]
        k = int(np.searchsorted(curves.sizes, size))
        while k > 1 and gap[k - 1] > 0:  # better already, within the noise
            k -= 1
        fraction = np.clip(gap[k - 1] / (gap[k - 1] - gap[k]), 0, 1)
        position = float(curves.sizes[k - 1] * (curves.sizes[k] / curves.sizes[k - 1]) ** fraction)
        panel.axvline(position, color=NOTE, linestyle=":", linewidth=1)
        descriptions.append(f"{words(after, WIDEST)} better from about {float(f'{position:.2g}'):,.0f} rows")
    return descriptions or [f"{words(curves.crossings(metric)[0][1], WIDEST)} better at every size"]

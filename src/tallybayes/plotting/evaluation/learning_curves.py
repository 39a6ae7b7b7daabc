"""The picture of learning curves."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.evaluation.validation.learning_curves import MEASURES
from tallybayes.plotting.plot import Plot
from tallybayes.plotting.style import (
    NOTE,
    WIDEST,
    group_styles,
    hide_top_right_spines,
    legend_beside,
    note_above,
    panels,
    words,
)

if TYPE_CHECKING:
    from tallybayes.evaluation.validation.learning_curves import LearningCurves


def plot_learning_curves(curves: LearningCurves, wanted: Sequence[str], ax: Any = None) -> Plot:
    """A panel for every measure, a line for every model with a band of one standard error, and where they cross."""
    across = {1: 6.4, 3: 4.0}.get(len(wanted), 4.6)  # inches for each
    axes = panels(len(wanted), 3, across, 3.9) if ax is None else np.ravel(ax)
    frame = curves.to_frame()
    shown = group_styles(curves.names, what="models")
    for panel, what in zip(axes, wanted, strict=True):
        for name, look in zip(curves.names, shown, strict=True):
            mine = frame[frame["model"] == name]
            value, spread = mine[what].to_numpy(), np.nan_to_num(mine[f"{what}_se"].to_numpy())
            panel.fill_between(curves.sizes, value - spread, value + spread, color=look.color, alpha=0.2, linewidth=0)
            panel.plot(curves.sizes, value, "o-", color=look.color, label=look.label, markersize=4)
        panel.set_xscale("log")
        some = curves.sizes[::-1][:: -(-len(curves.sizes) // 9)][::-1]
        panel.set_xticks(some, [f"{size:,}" for size in some], fontsize=8, rotation=45, ha="right")
        if what == "fit_seconds":
            _plain_log_scale(panel)
        else:
            panel.set_ylim(*_limits(curves, what))
        panel.minorticks_off()
        panel.set_xlabel("rows learned from")
        said = _mark_crossings(panel, curves, what) if len(curves.names) > 1 else []
        panel.set_title(MEASURES[what], fontsize=11, pad=6 + 11 * len(said))
        panel.annotate(
            "\n".join(said),
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
    columns = ["model", "rows", *(part for what in wanted for part in (what, f"{what}_se"))]
    return Plot(axes, {name: frame[name].tolist() for name in columns})


def _limits(curves: LearningCurves, what: str) -> tuple[float, float]:
    """Where a panel begins and ends: a log-loss that few rows drive far up shall not hide where models differ later."""
    frame = curves.to_frame()
    mean, spread = frame[what].to_numpy(), np.nan_to_num(frame[f"{what}_se"].to_numpy())
    last = frame["rows"].to_numpy() == curves.sizes[-1]
    most, typical = (mean + spread).max(), max(4 * np.median(mean), 2 * mean[last].max())
    high = 1.04 * (typical if what == "log_loss" and most > 2 * typical else most) or 1.0
    low = (mean - spread).min()
    return max(0.0, float(low - 0.1 * (high - low))), float(high)


def _plain_log_scale(panel: Any) -> None:
    from matplotlib.ticker import LogLocator, StrMethodFormatter

    panel.set_yscale("log")
    panel.yaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
    panel.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))


def _mark_crossings(panel: Any, curves: LearningCurves, what: str) -> list[str]:
    """A line where a model is overtaken: where the mean curves meet, between two sizes. And what it says, in words."""
    mean = getattr(curves, what).mean(axis=-1)
    said = []
    for (_, before), (size, after) in pairwise(curves.crossings(what)):
        gap = mean[curves.names.index(before)] - mean[curves.names.index(after)]
        k = int(np.searchsorted(curves.sizes, size))
        while k > 1 and gap[k - 1] > 0:  # ahead already, but by less than noise
            k -= 1
        share = np.clip(gap[k - 1] / (gap[k - 1] - gap[k]), 0, 1)
        place = float(curves.sizes[k - 1] * (curves.sizes[k] / curves.sizes[k - 1]) ** share)
        panel.axvline(place, color=NOTE, linestyle=":", linewidth=1)
        said.append(f"{words(after, WIDEST)} ahead from about {float(f'{place:.2g}'):,.0f} rows on")
    return said or [f"{words(curves.crossings(what)[0][1], WIDEST)} ahead at every size"]

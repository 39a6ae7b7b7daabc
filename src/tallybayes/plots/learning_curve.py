"""The picture of learning curves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.plots.picture import Picture
from tallybayes.plots.style import legend_beside, looks, new_axes, quiet

if TYPE_CHECKING:
    from tallybayes.insight.learning_curve import LearningCurve


def plot_learning_curve(curve: LearningCurve, ax: Any = None) -> Picture:
    """Error and log-loss side by side, a line for every model."""
    axes = np.ravel(new_axes(ax, ncols=2, figsize=(9.5, 4), layout="constrained"))
    frame = curve.to_frame()
    for panel, what, label in zip(axes, ("error", "log_loss"), ("error", "log-loss in nats"), strict=True):
        for name, look in zip(curve.names, looks(curve.names, what="models"), strict=True):
            mine = frame[frame["model"] == name]
            value, spread = mine[what].to_numpy(), np.nan_to_num(mine[f"{what}_se"].to_numpy())
            panel.fill_between(curve.sizes, value - spread, value + spread, color=look.colour, alpha=0.2, linewidth=0)
            panel.plot(curve.sizes, value, "o-", color=look.colour, label=look.label, markersize=4)
        panel.set_xscale("log")
        panel.set_xticks(curve.sizes, [f"{size:,}" for size in curve.sizes], fontsize=8, rotation=45, ha="right")
        panel.minorticks_off()
        panel.set_xlabel("rows learned from")
        panel.set_title(label, fontsize=11)
        panel.set_ylim(bottom=0)
        quiet(panel)
    legend_beside(axes[-1])
    return Picture(axes, {name: frame[name].tolist() for name in frame})

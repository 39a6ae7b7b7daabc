"""Plot of the prior strength."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tallybayes.plotting.charts import curve_with_band
from tallybayes.plotting.plot import Plot, PlotAxes
from tallybayes.plotting.style import COLORS, all_axes

if TYPE_CHECKING:
    from tallybayes.results.prior_path import PriorPath


def plot_prior_path(path: PriorPath, ax: PlotAxes = None) -> Plot:
    """Plot the log evidence, the held-out loss and the accuracy by the prior strength."""
    labels = {"loss": f"{path.results[0].loss_name}, held-out rows", "accuracy": "accuracy, held-out rows"}
    table = {"strength": path.strengths}
    best = {"loss": path.by_log_loss}
    if path.has_evidence:
        labels = {"log2_evidence": "log₂ evidence", **labels}
        table["log2_evidence"] = path.log2_evidence
        best["log2_evidence"] = path.by_evidence
    for metric in ("loss", "accuracy"):
        if hasattr(path.results[0], metric):
            value, low, high = np.array([tuple(getattr(result, metric)) for result in path.results]).T
            table |= {metric: value, f"{metric}_low": low, f"{metric}_high": high}
    metrics = [name for name in labels if name in table]
    axes = all_axes(ax, 7, 7, nrows=len(metrics), sharex=True)
    for panel, metric, color in zip(axes, metrics, COLORS, strict=False):
        value = table[metric]
        low, high = (table.get(f"{metric}_{end}", value) for end in ("low", "high"))
        curve_with_band(panel, path.strengths, value, low, high, color=color, marker="o")
        panel.set_ylabel(labels[metric])
        if metric in best:
            panel.axvline(best[metric], color="black", linewidth=0.8, linestyle=":")
            panel.annotate(
                f"best: {best[metric]:.3g} ×",
                (best[metric], 0),
                xycoords=("data", "axes fraction"),
                xytext=(4, 6),
                textcoords="offset points",
                fontsize=9,
            )
    axes[-1].set(xscale="log", xlabel="prior strength, as a multiple of that of the model")
    axes[0].set_title("Prior strength")
    return Plot(axes, table)

"""Plot of the prior strength."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.plotting.plot import Plot, PlotAxes
from tallybayes.plotting.style import COLORS, all_axes, hide_top_right_spines

if TYPE_CHECKING:
    from tallybayes.results.prior_path import PriorPath


def plot_prior_path(path: PriorPath, ax: PlotAxes = None) -> Plot:
    """Plot the log evidence, the held-out loss and the accuracy by the prior strength."""
    metrics = [("loss", f"{path.results[0].loss_name}, held-out rows")]
    if hasattr(path.results[0], "accuracy"):
        metrics.append(("accuracy", "accuracy, held-out rows"))
    first = int(path.has_evidence)
    axes = all_axes(ax, nrows=first + len(metrics), sharex=True, figsize=(7, 7))
    if path.has_evidence:
        axes[0].plot(path.strengths, path.log2_evidence, "o-", color=COLORS[0])
        axes[0].set_ylabel("log₂ evidence")
    for row, (name, label) in enumerate(metrics, first):
        value, low, high = np.array([tuple(getattr(result, name)) for result in path.results]).T
        axes[row].fill_between(path.strengths, low, high, color=COLORS[row], alpha=0.2, linewidth=0)
        axes[row].plot(path.strengths, value, "o-", color=COLORS[row])
        axes[row].set_ylabel(label)
    best = [path.by_evidence, path.by_log_loss] if path.has_evidence else [path.by_log_loss]
    for row, strength in enumerate(best):
        axes[row].axvline(strength, color="black", linewidth=0.8, linestyle=":")
        axes[row].annotate(
            f"best: {strength:.3g} ×",
            (strength, 0),
            xycoords=("data", "axes fraction"),
            xytext=(4, 6),
            textcoords="offset points",
            va="bottom",
            fontsize=9,
        )
    axes[-1].set_xscale("log")
    axes[-1].set_xlabel("prior strength, as a multiple of that of the model")
    axes[0].set_title("Prior strength")
    for panel in axes:
        hide_top_right_spines(panel)
    table: dict[str, Any] = {"strength": path.strengths}
    if path.has_evidence:
        table["log2_evidence"] = path.log2_evidence
    for name, _ in metrics:
        value, low, high = np.array([tuple(getattr(result, name)) for result in path.results]).T
        table |= {name: value, f"{name}_low": low, f"{name}_high": high}
    return Plot(axes, table)

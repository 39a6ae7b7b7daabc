"""The picture of a prior's strength."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.plotting.plot import Plot
from tallybayes.plotting.style import COLORS, hide_top_right_spines, new_axes

if TYPE_CHECKING:
    from tallybayes.evaluation.validation.prior_path import PriorPath


def plot_prior_path(path: PriorPath, ax: Any = None) -> Plot:
    """Evidence, loss and accuracy, one above the other, against the strength of the prior."""
    shown = [("loss", f"{path.results[0].loss_name}, rows left out")]
    if hasattr(path.results[0], "accuracy"):
        shown.append(("accuracy", "accuracy, rows left out"))
    first = int(path.has_evidence)
    axes = new_axes(ax, nrows=first + len(shown), sharex=True, figsize=(7, 7), layout="constrained", squeeze=False)
    axes = np.ravel(axes)
    if path.has_evidence:
        axes[0].plot(path.strengths, path.log2_evidence, "o-", color=COLORS[0])
        axes[0].set_ylabel("log₂ evidence")
    for place, (name, label) in enumerate(shown, first):
        value, low, high = np.array([tuple(getattr(result, name)) for result in path.results]).T
        axes[place].fill_between(path.strengths, low, high, color=COLORS[place], alpha=0.2, linewidth=0)
        axes[place].plot(path.strengths, value, "o-", color=COLORS[place])
        axes[place].set_ylabel(label)
    best = [path.by_evidence, path.by_log_loss] if path.has_evidence else [path.by_log_loss]
    for place, strength in enumerate(best):
        axes[place].axvline(strength, color="black", linewidth=0.8, linestyle=":")
        axes[place].annotate(
            f"best: {strength:.3g} ×",
            (strength, 0),
            xycoords=("data", "axes fraction"),
            xytext=(4, 6),
            textcoords="offset points",
            va="bottom",
            fontsize=9,
        )
    axes[-1].set_xscale("log")
    axes[-1].set_xlabel("strength of the prior, as a multiple of the model's own")
    axes[0].set_title("What the prior is worth")
    for each in axes:
        hide_top_right_spines(each)
    drawn: dict[str, Any] = {"strength": path.strengths}
    if path.has_evidence:
        drawn["log2_evidence"] = path.log2_evidence
    for name, _ in shown:
        value, low, high = np.array([tuple(getattr(result, name)) for result in path.results]).T
        drawn |= {name: value, f"{name}_low": low, f"{name}_high": high}
    return Plot(axes, drawn)

"""Tornado plot of a sensitivity analysis: the range of a probability for each entry of the CPTs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tallybayes._utils.parameter_checks import check_count
from tallybayes.plotting.charts import horizontal_bars
from tallybayes.plotting.plot import Plot
from tallybayes.plotting.style import COLORS, set_title, words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tallybayes.models.network.analysis.sensitivity import Sensitivity

_LABEL_WIDTH, _TITLE_WIDTH = 56, 100  # characters


def plot_sensitivity(sensitivity: Sensitivity, ax: Axes | None = None, *, most: int = 15) -> Plot:
    """Plot a bar for every entry, from the lowest to the highest probability, around the current one.

    Parameters
    ----------
    sensitivity : Sensitivity
    ax : matplotlib Axes, optional
    most : int, default 15
        Number of entries shown.
    """
    entries = sensitivity[: check_count("most", most)]
    table = {name: [getattr(entry, name) for entry in entries] for name in ("name", "value", "low", "high", "slope")}
    current = sensitivity.probability
    ends = np.array([table["low"], table["high"]])
    falls = np.array(table["slope"]) < 0
    smaller, larger = np.where(falls, ends[::-1], ends) - current  # by a smaller or larger value of the entry
    labels = [_label(name) for name in table["name"]]
    ax = horizontal_bars(ax, labels, larger, COLORS[0], left=current)
    ax.barh(range(len(entries)), smaller, 0.7, left=current, color=COLORS[1])
    low, high = (limit(ends, initial=current) for limit in (np.min, np.max))
    margin = 0.04 * (high - low) or 0.01
    ax.set(xlim=(low - margin, high + margin), xlabel="probability")
    ax.figure.canvas.figure.draw_without_rendering()  # the width of the axes depends on the labels
    legend = f"if {sensitivity.perturbation} (blue: larger, orange: smaller)"
    set_title(ax, f"{words(sensitivity.title, _TITLE_WIDTH)} = {current:.4g}", legend, size=9)
    return Plot(ax, {"entry": table.pop("name"), **table})


def _label(entry: str) -> str:
    """Return the name of an entry, and the levels of the parents on a second line."""
    name, _, parents = entry.removesuffix(")").partition(" | ")
    return "\n".join(words(line, _LABEL_WIDTH) for line in (f"{name})", f"given {parents}")[: 1 + bool(parents)])

"""Tornado plot of a sensitivity analysis: the range of a probability for each entry of the CPTs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.errors import DataError
from tallybayes.plotting.plot import Plot
from tallybayes.plotting.style import COLORS, hide_top_right_spines, new_axes, set_title, words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tallybayes.models.network.analysis.sensitivity import Entry, Sensitivity

_LABEL_WIDTH, _TITLE_WIDTH = 56, 100  # characters
_COLUMNS = ("value", "low", "high", "slope")


def plot_sensitivity(sensitivity: Sensitivity, ax: Axes | None = None, *, most: int = 15) -> Plot:
    """Plot a bar for every entry, from the lowest to the highest probability, around the current one.

    Parameters
    ----------
    sensitivity : Sensitivity
    ax : matplotlib Axes, optional
    most : int, default 15
        Number of entries shown.
    """
    if not isinstance(most, int | np.integer) or most < 1:
        raise DataError.wrong_type("most", repr(most), "a whole number of at least 1")
    entries = sensitivity[: int(most)]
    axes: Any = new_axes(ax, figsize=(8.0, 1.3 + 0.36 * max(len(entries), 1)), layout="constrained")
    current = sensitivity.probability
    for row, entry in enumerate(entries):
        rises = entry.slope >= 0  # blue for a larger value of the entry, orange for a smaller one
        for end, is_larger in ((entry.low, not rises), (entry.high, rises)):
            axes.barh(row, end - current, 0.7, left=current, color=COLORS[0] if is_larger else COLORS[1])
    axes.axvline(current, color="#444444", linewidth=1)
    axes.set_yticks(range(len(entries)), [_label(entry) for entry in entries], fontsize=8)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(max(len(entries), 1) - 0.4, -0.6)
    ends = [current, *(end for entry in entries for end in (entry.low, entry.high))]
    margin = 0.04 * (max(ends) - min(ends)) or 0.01
    axes.set_xlim(min(ends) - margin, max(ends) + margin)
    axes.set_xlabel("probability")
    hide_top_right_spines(axes)
    axes.figure.canvas.figure.draw_without_rendering()  # the width of the axes depends on the labels
    legend = f"if {sensitivity.perturbation} (blue: larger, orange: smaller)"
    set_title(axes, f"{words(sensitivity.title, _TITLE_WIDTH)} = {current:.4g}", legend, size=9)
    columns = {name: [getattr(entry, name) for entry in entries] for name in _COLUMNS}
    return Plot(axes, {"entry": [entry.name for entry in entries], **columns})


def _label(entry: Entry) -> str:
    """Return the entry, and the levels of the parents on a second line."""
    name, _, parents = entry.name.removesuffix(")").partition(" | ")
    return "\n".join([words(f"{name})", _LABEL_WIDTH), *([words(f"given {parents}", _LABEL_WIDTH)] if parents else [])])

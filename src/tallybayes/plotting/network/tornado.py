"""The picture of how far the entries of a network's tables move an answer."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallybayes.errors import DataError
from tallybayes.plotting.plot import Plot
from tallybayes.plotting.style import COLORS, hide_top_right_spines, new_axes, set_title, words

_WIDEST, _TITLE = 56, 100


def plot_sensitivity(found: Any, ax: Any = None, *, most: int = 15) -> Plot:
    """A bar for every entry, from the lowest answer to the highest, about the answer as it is.

    Parameters
    ----------
    found : Sensitivity
    ax : matplotlib Axes, optional
    most : int, default 15
        How many entries are drawn.
    """
    if not isinstance(most, int | np.integer) or most < 1:
        raise DataError.wrong_type("most", repr(most), "a whole number of at least 1")
    entries = found[: int(most)]
    ax = new_axes(ax, figsize=(8.0, 1.3 + 0.36 * max(len(entries), 1)), layout="constrained")
    here = found.probability
    for place, entry in enumerate(entries):
        rises = entry.slope >= 0  # blue where a larger entry gives it, orange where a smaller one does
        for end, larger in ((entry.low, not rises), (entry.high, rises)):
            ax.barh(place, end - here, 0.7, left=here, color=COLORS[0] if larger else COLORS[1])
    ax.axvline(here, color="#444444", linewidth=1)
    ax.set_yticks(range(len(entries)), [_label(entry) for entry in entries], fontsize=8)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(max(len(entries), 1) - 0.4, -0.6)
    low, high = min([here, *(e.low for e in entries)]), max([here, *(e.high for e in entries)])
    room = 0.04 * (high - low) or 0.01
    ax.set_xlim(low - room, high + room)
    ax.set_xlabel("probability")
    hide_top_right_spines(ax)
    ax.figure.draw_without_rendering()  # how wide the axes are depends on the names beside them
    moved = f"where {found.perturbation} (blue: larger, orange: smaller)"
    set_title(ax, f"{words(found.title, _TITLE)} = {here:.4g}", moved, size=9)
    return Plot(
        ax,
        {
            "entry": [entry.name for entry in entries],
            "value": [entry.value for entry in entries],
            "low": [entry.low for entry in entries],
            "high": [entry.high for entry in entries],
            "slope": [entry.slope for entry in entries],
        },
    )


def _label(entry: Any) -> str:
    """The entry above the levels of the parents, of which there may be many."""
    name, _, parents = entry.name.removesuffix(")").partition(" | ")
    return "\n".join([words(f"{name})", _WIDEST), *([words(f"given {parents}", _WIDEST)] if parents else [])])

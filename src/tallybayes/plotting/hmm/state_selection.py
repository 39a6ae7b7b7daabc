"""Plot of the selection of the number of states."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.plotting.charts import error_bars
from tallybayes.plotting.plot import Plot
from tallybayes.plotting.style import COLORS, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tallybayes.results.state_selection import StateSelection


def plot_choice(selection: StateSelection, ax: Axes | None = None) -> Plot:
    """Plot the criterion against the number of states; for held-out sequences, with 95 % intervals.

    Parameters
    ----------
    selection : StateSelection
    ax : matplotlib Axes, optional
    """
    order = np.argsort(selection.candidates, kind="stable")
    numbers = np.array(selection.candidates)[order]
    value, low, high = np.array([tuple(selection.scores[k]) for k in order]).T
    is_best = numbers == selection.n_states
    ax = new_axes(ax, 6.5, 4)
    shown = np.isfinite(value)
    errors = error_bars(value, low, high)[:, shown] if selection.by == "held_out" else None
    ax.errorbar(numbers[shown], value[shown], errors, color=COLORS[0], marker="o", capsize=3)
    best: dict[str, Any] = {"markersize": 9, "zorder": 3, "label": f"best: {selection.n_states}"}
    ax.plot(numbers[is_best], value[is_best], "o", color=COLORS[1], **best)
    ax.legend(frameon=False)
    ax.set(xlabel="states", ylabel=selection.criterion)
    if len(numbers) <= 20:
        ax.set_xticks(numbers)
    return Plot(ax, {"n_states": numbers, "value": value, "low": low, "high": high, "best": is_best})

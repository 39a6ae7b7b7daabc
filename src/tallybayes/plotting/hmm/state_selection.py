"""Plot of the selection of the number of states."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tallybayes.plotting.plot import Plot
from tallybayes.plotting.style import COLORS, hide_top_right_spines, new_axes

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
    ax = new_axes(ax, figsize=(6.5, 4), layout="constrained")
    shown = np.isfinite(value)
    if selection.by == "held_out":
        ends = [np.where(np.isfinite(end), end, value) for end in (low, high)]
        errors = np.abs(np.stack([value - ends[0], ends[1] - value]))[:, shown]
        ax.errorbar(numbers[shown], value[shown], yerr=errors, color=COLORS[0], marker="o", capsize=3, linewidth=1.4)
    else:
        ax.plot(numbers[shown], value[shown], "o-", color=COLORS[0], linewidth=1.4)
    best = selection.scores[selection.candidates.index(selection.n_states)].value
    ax.plot(
        [selection.n_states], [best], "o", color=COLORS[1], markersize=9, zorder=3, label=f"best: {selection.n_states}"
    )
    ax.legend(frameon=False)
    ax.set_xlabel("states")
    ax.set_ylabel(selection.criterion)
    if len(numbers) <= 20:
        ax.set_xticks(numbers.tolist())
    hide_top_right_spines(ax)
    table = {"n_states": numbers.tolist(), "value": value.tolist(), "low": low.tolist(), "high": high.tolist()}
    return Plot(ax, {**table, "best": (numbers == selection.n_states).tolist()})

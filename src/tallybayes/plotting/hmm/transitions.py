"""Plot of the transition probabilities between states: a graph, or a heat map if there are many states."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.plotting.charts import draw_arrow, heat_map, short_number
from tallybayes.plotting.plot import Plot, PlotTable, table_of
from tallybayes.plotting.style import COLORS, MOST_COLORS, new_axes, words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tallybayes.models.hmm.hidden_markov_model import HiddenMarkovModel

_NUMBERS = 14  # a heat map of at most so many states shows numbers
_BEND = 0.18  # curvature of the edges
_LONG = 300  # time steps of the average occupancy


def plot_transitions(
    model: HiddenMarkovModel, allowed: np.ndarray | None, ax: Axes | None = None, least: float = 0.01
) -> Plot:
    """Plot the transition probabilities: a graph of up to eight states, a heat map of more.

    Parameters
    ----------
    model : HiddenMarkovModel
    allowed : ndarray of bool of shape (states, states), optional
        The allowed transitions.
    ax : matplotlib Axes, optional
    least : float, default 0.01
        Transitions with a smaller probability have no edge.
    """
    states = model.states_.tolist()
    transition = model.transition_
    table: PlotTable = table_of(("state", "next", "probability"), states, states, transition)
    if allowed is not None:  # forbidden transitions are neither in the table nor colored
        table = {name: [column[k] for k in np.flatnonzero(allowed)] for name, column in table.items()}
    if len(states) <= MOST_COLORS:
        ax = _draw_graph(states, model.start_, transition, ax, least)
        ax.set_title("p(next state | state); in the circles, p(stay)")
        return Plot(ax, table)
    from matplotlib.colors import PowerNorm

    shown = transition if allowed is None else np.where(allowed, transition, np.nan)
    texts = [[short_number(p) for p in row] for row in shown] if len(states) <= _NUMBERS else []
    norm = PowerNorm(0.5, 0.0, 1.0)  # square roots, so that rare transitions are visible
    ax = heat_map(ax, shown, states, states, norm, texts=texts, ticks=[0, 0.01, 0.1, 0.5, 1])
    ax.set(xlabel="next state", ylabel="state", title="p(next state | state)")
    return Plot(ax, table)


def _draw_graph(states: list[object], start: np.ndarray, transition: np.ndarray, ax: Axes | None, least: float) -> Axes:
    """Draw the states as circles on a ring, the larger the more time steps are spent in them, and edges between."""
    from matplotlib.patches import Circle

    n = len(states)
    ax = new_axes(ax, 6.5, 6)
    angle = np.pi / 2 - 2 * np.pi * np.arange(n) / n
    position = np.stack([np.cos(angle), np.sin(angle)], axis=-1) * (n > 1)
    occupancy = start
    for _ in range(_LONG - 1):
        occupancy = start + occupancy @ transition
    radius = np.clip(0.16 + 0.22 * np.sqrt(np.nan_to_num(occupancy / _LONG)), 0.16, 0.34) * min(1.0, 5 / n)
    circles = [
        Circle(center, size, facecolor="white", edgecolor=color, linewidth=2.5, zorder=3)
        for center, size, color in zip(position, radius, COLORS, strict=False)
    ]
    for k, (state, circle) in enumerate(zip(states, circles, strict=True)):
        ax.add_patch(circle)
        x, y = position[k]
        name = words(state, 14)
        stay = f"{transition[k, k]:.2f}" if transition[k, k] >= least else ""
        is_inside = bool(len(name) <= 30 * radius[k])
        inside = "\n".join([name] * is_inside + [stay] * bool(stay))
        ax.text(x, y, inside, ha="center", va="center", zorder=4, fontsize=10)
        if not is_inside:
            up = 1 if y >= -1e-9 else -1
            va = "bottom" if up > 0 else "top"
            ax.text(x, y + up * (radius[k] + 0.03), name, ha="center", va=va, zorder=4, fontsize=10)
    for i, j in np.argwhere((transition >= least) & ~np.eye(n, dtype=bool)):
        p = transition[i, j]
        draw_arrow(ax, circles[i], circles[j], bend=_BEND, color=COLORS[i], linewidth=0.8 + 4 * p)
        gap = position[j] - position[i]
        x, y = position[i] + 0.42 * gap + _BEND / 2 * np.array([-gap[1], gap[0]])  # on the arc
        behind: dict[str, Any] = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
        label: dict[str, Any] = {"color": COLORS[i], "fontsize": 9, "ha": "center", "va": "center", "zorder": 5}
        ax.text(x, y, f"{p:.2f}", bbox=behind, **label)
    low, high = np.minimum(position.min(axis=0) - 0.5, -1.0), np.maximum(position.max(axis=0) + 0.5, 1.0)
    ax.set(aspect="equal", xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    ax.axis("off")
    return ax

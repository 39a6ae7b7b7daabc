"""Plot of the transition probabilities between states: a graph, or a heat map if there are many states."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.plotting.plot import Plot, PlotTable, table_of
from tallybayes.plotting.style import COLORS, MOST_COLORS, hide_spines, new_axes, ticks, words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tallybayes.models.hmm.hidden_markov_model import HiddenMarkovModel

_NUMBERS = 14  # a heat map of at most so many states shows numbers
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
    if len(states) > MOST_COLORS:
        return Plot(
            _draw_heat_map(states, transition if allowed is None else np.where(allowed, transition, np.nan), ax), table
        )
    ax = new_axes(ax, figsize=(6.5, 6), layout="constrained")
    occupancy = _average_occupancy(model.start_, transition)
    angle = np.pi / 2 - 2 * np.pi * np.arange(len(states)) / max(len(states), 1)
    position = np.stack([np.cos(angle), np.sin(angle)], axis=-1) if len(states) > 1 else np.zeros((1, 2))
    radius = np.clip(0.16 + 0.22 * np.sqrt(occupancy), 0.16, 0.34) * min(1.0, 5 / max(len(states), 1))
    for i in range(len(states)):
        for j in range(len(states)):
            p = transition[i, j]
            if p >= least and i != j:  # p(stay) is written inside the circle
                _draw_edge(ax, position[i], position[j], radius[i], radius[j], float(p), COLORS[i % len(COLORS)])
    from matplotlib.patches import Circle

    for i, state in enumerate(states):
        color = COLORS[i % len(COLORS)]
        ax.add_patch(Circle(position[i], radius[i], facecolor="white", edgecolor=color, linewidth=2.5, zorder=3))
        name = words(state, 14)
        stay = f"\n{transition[i, i]:.2f}" if transition[i, i] >= least else ""
        # The name is inside the circle if it fits, otherwise outside.
        if len(name) <= 30 * radius[i]:
            ax.text(position[i][0], position[i][1], name + stay, ha="center", va="center", zorder=4, fontsize=10)
        else:
            ax.text(position[i][0], position[i][1], stay.strip(), ha="center", va="center", zorder=4, fontsize=10)
            up = position[i][1] >= -1e-9 or len(states) == 1
            edge = position[i][1] + (radius[i] + 0.03) * (1 if up else -1)
            va = "bottom" if up else "top"
            ax.text(position[i][0], edge, name, ha="center", va=va, zorder=4, fontsize=10)
    ax.set_aspect("equal")
    low, high = np.minimum(position.min(axis=0) - 0.5, -1.0), np.maximum(position.max(axis=0) + 0.5, 1.0)
    ax.set_xlim(low[0], high[0])
    ax.set_ylim(low[1], high[1])
    ax.axis("off")
    ax.set_title("p(next state | state); in the circles, p(stay)")
    return Plot(ax, table)


def _average_occupancy(start: np.ndarray, transition: np.ndarray) -> np.ndarray:
    """Return the proportion of time steps spent in each state during the first 300 steps."""
    proba = start
    total = np.zeros(len(start))
    for _ in range(_LONG):
        total = total + proba
        proba = proba @ transition
    return np.nan_to_num(total / _LONG)


def _draw_heat_map(states: list[Any], transition: np.ndarray, ax: Axes | None) -> Axes:
    """Draw the transition matrix as a heat map, with numbers if they fit."""
    n = len(states)
    side = min(max(0.34 * n, 4.0), 11.0)
    ax = new_axes(ax, figsize=(side + 2.2, side + 1.2), layout="constrained")
    # Square-root color scale, so that rare transitions are visible.
    from matplotlib.colors import PowerNorm

    image = ax.imshow(transition, cmap="Blues", norm=PowerNorm(0.5, 0.0, 1.0))
    ticks(ax, "x", states, 9.0, 16)
    ticks(ax, "y", states, 9.0, 16)
    if n <= _NUMBERS:
        for i, j in np.argwhere(transition >= 0.005):
            color = "white" if transition[i, j] > 0.3 else "black"
            shown = f"{transition[i, j]:.2f}"
            ax.text(j, i, shown, ha="center", va="center", fontsize=7, color=color)
    ax.set_xlabel("next state")
    ax.set_ylabel("state")
    ax.set_title("p(next state | state)")
    hide_spines(ax)
    ax.figure.colorbar(image, ax=ax, shrink=0.8, ticks=[0, 0.01, 0.1, 0.5, 1]).outline.set_visible(False)
    return ax


def _draw_edge(ax: Axes, a: np.ndarray, b: np.ndarray, ra: float, rb: float, p: float, color: str) -> None:
    """Draw a curved edge between two states, labeled with its probability."""
    gap = b - a
    length = float(np.hypot(*gap))
    unit = gap / length
    normal = np.array([-gap[1], gap[0]]) / length
    start, end = a + unit * ra + normal * 0.05, b - unit * rb + normal * 0.05
    ax.annotate(
        "",
        end,
        start,
        arrowprops={
            "arrowstyle": "-|>",
            "color": color,
            "linewidth": 0.8 + 4 * p,
            "connectionstyle": "arc3,rad=-0.12",
            "shrinkA": 1,
            "shrinkB": 1,
        },
        zorder=2,
    )
    middle = a + gap * 0.42 + normal * (0.05 + 0.06 * length)  # on the edge, whose arc has this height
    behind = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
    ax.text(middle[0], middle[1], f"{p:.2f}", color=color, fontsize=9, ha="center", va="center", zorder=5, bbox=behind)

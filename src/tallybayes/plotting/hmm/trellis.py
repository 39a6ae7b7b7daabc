"""Plot of a Viterbi trellis: the most probable path to each state of each time step, and the best path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.plotting.plot import Plot
from tallybayes.plotting.style import COLORS, OTHERS, hide_top_right_spines, new_axes, set_title, ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tallybayes.models.hmm.inference.forward_backward import Trellis

_NUMBERS = (12, 6)  # at most so many steps and states show their probabilities
_MAX_INCHES = 24.0  # maximum width and height of a figure


def plot_trellis(trellis: Trellis, ax: Axes | None = None) -> Plot:
    """Plot states against time steps: back-pointers as lines, the Viterbi path in color.

    The circles show the probability of the most probable path to each state.

    Parameters
    ----------
    trellis : Trellis
    ax : matplotlib Axes, optional
    """
    from matplotlib.collections import LineCollection

    n_steps, n_states = trellis.log_delta.shape
    written = n_steps <= _NUMBERS[0] and n_states <= _NUMBERS[1]
    height = min(1.5 + (0.95 if written else 0.34) * n_states, _MAX_INCHES)
    # With few steps and many states, steps are far apart, so that lines between distant states are distinguishable.
    wide = 1.25 if written else float(np.clip(0.6 * height / max(n_steps, 1), 0.42, 1.6))
    size = (min(2.4 + wide * n_steps, _MAX_INCHES), height)
    ax = new_axes(ax, figsize=size, layout="constrained")
    step, state = np.indices((n_steps, n_states))
    reached = np.isfinite(trellis.log_delta)
    has_pointer = (trellis.pointers >= 0) & reached
    ends = np.stack(
        [np.stack([step - 1, trellis.pointers], -1)[has_pointer], np.stack([step, state], -1)[has_pointer]], axis=1
    )
    ax.add_collection(LineCollection(ends.astype(float).tolist(), colors=OTHERS, linewidths=1.0, zorder=1))
    possible = np.isfinite(trellis.log_prob)
    path = trellis.path_indices if possible else np.zeros(0, dtype=int)
    ax.plot(np.arange(len(path)), path, color=COLORS[0], linewidth=3, zorder=2, label="the best path")
    # Shade: probability of the best path to the state, relative to the best state of the same step.
    best = np.max(np.where(reached, trellis.log_delta, -np.inf), axis=1, keepdims=True)
    relative_prob = np.where(
        reached, np.exp(np.where(reached, trellis.log_delta - np.where(np.isfinite(best), best, 0), 0)), 0
    )
    edge = np.full((n_steps, n_states), OTHERS, dtype=object)
    edge[np.arange(len(path)), path] = COLORS[0]
    area = 1500 if written else 70
    style: dict[str, Any] = {
        "cmap": "Blues",
        "vmin": 0,
        "vmax": 2,
        "edgecolors": edge.ravel().tolist(),
        "linewidths": 1.6,
        "zorder": 3,
    }
    ax.scatter(step.ravel(), state.ravel(), s=area, c=relative_prob.ravel(), **style)
    if written:
        small = float(trellis.log_delta[reached].min(initial=0.0)) < np.log(1e-4)
        for t, k in np.ndindex(n_steps, n_states):
            value = trellis.log_delta[t, k]
            shown = "0" if not reached[t, k] else f"{value:.1f}" if small else f"{np.exp(value):.2g}"
            ax.text(t, k, shown, ha="center", va="center", fontsize=8, zorder=4)
        quantity = "log p" if small else "p"
        set_title(ax, f"{quantity}(steps so far, the best path to the state)")
    else:
        set_title(ax, "gray: most probable path to each state; blue: Viterbi path")
    if not possible:
        set_title(ax, "impossible sequence: all paths have probability 0")
    ax.set_xlim(-0.6, n_steps - 0.4)
    ax.set_ylim(n_states - 0.4, -0.6)
    ticks(ax, "y", trellis.states.tolist(), 9.0, 16)
    ax.set_xlabel("step")
    ax.locator_params(axis="x", integer=True)
    hide_top_right_spines(ax)
    frame = trellis.to_frame()
    return Plot(ax, {name: frame[name].tolist() for name in frame})

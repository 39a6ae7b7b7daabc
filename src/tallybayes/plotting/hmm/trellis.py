"""Plot of a Viterbi trellis: the most probable path to each state of each time step, and the best path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.plotting.plot import Plot
from tallybayes.plotting.style import COLORS, OTHERS, new_axes, set_title, ticks

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

    log_delta = trellis.log_delta
    n_steps, n_states = log_delta.shape
    written = n_steps <= _NUMBERS[0] and n_states <= _NUMBERS[1]
    height = min(1.5 + (0.95 if written else 0.34) * n_states, _MAX_INCHES)
    # With few steps and many states, steps are far apart, so that lines between distant states are distinguishable.
    wide = 1.25 if written else np.clip(0.6 * height / max(n_steps, 1), 0.42, 1.6)
    ax = new_axes(ax, min(2.4 + wide * n_steps, _MAX_INCHES), height)
    step, state = np.indices((n_steps, n_states))
    reached = np.isfinite(log_delta)
    points = [(step - 1, trellis.pointers), (step, state)]
    ends = np.stack([np.stack(point, axis=-1) for point in points], axis=-2)[(trellis.pointers >= 0) & reached]
    ax.add_collection(LineCollection(ends.astype(float).tolist(), colors=OTHERS, linewidths=1.0, zorder=1))
    possible = np.isfinite(trellis.log_prob)
    path = trellis.path_indices if possible else np.zeros(0, dtype=int)
    ax.plot(path, color=COLORS[0], linewidth=3, zorder=2)
    # Shade: probability of the best path to the state, relative to the best state of the same step.
    best = log_delta.max(axis=1, keepdims=True)
    shade = np.exp(log_delta - np.where(np.isfinite(best), best, 0))
    edge = np.full(log_delta.shape, OTHERS, dtype=object)
    edge[np.arange(len(path)), path] = COLORS[0]
    circles: dict[str, Any] = {"edgecolors": edge.ravel().tolist(), "linewidths": 1.6, "zorder": 3}
    ax.scatter(step, state, s=1500 if written else 70, c=shade, cmap="Blues", vmin=0, vmax=2, **circles)
    title = "gray: most probable path to each state; blue: Viterbi path"
    if written:
        small = log_delta[reached].min(initial=0.0) < np.log(1e-4)
        for (t, k), value in np.ndenumerate(log_delta):
            shown = "0" if not reached[t, k] else f"{value:.1f}" if small else f"{np.exp(value):.2g}"
            ax.text(t, k, shown, ha="center", va="center", fontsize=8, zorder=4)
        title = f"{'log p' if small else 'p'}(steps so far, the best path to the state)"
    set_title(ax, title if possible else "impossible sequence: all paths have probability 0")
    ax.set(xlim=(-0.6, n_steps - 0.4), ylim=(n_states - 0.4, -0.6), xlabel="step")
    ticks(ax, "y", trellis.states.tolist(), 9.0, 16)
    ax.locator_params(axis="x", integer=True)
    return Plot(ax, trellis.to_frame())

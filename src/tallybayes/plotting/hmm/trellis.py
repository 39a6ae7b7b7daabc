"""The trellis of a hidden Markov model: the best path to every state of every step, and the best of all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.plotting.plot import Plot
from tallybayes.plotting.style import COLORS, OTHERS, hide_top_right_spines, new_axes, set_title, ticks

if TYPE_CHECKING:
    from tallybayes.models.hmm.inference.forward_backward import Trellis

_NUMBERS = (12, 6)  # steps and states whose probabilities are written out
_INCHES = 24.0  # a figure is not made wider


def plot_trellis(trellis: Trellis, ax: Any = None) -> Plot:
    """States against steps: back-pointers as lines, the best path in color; in the circles its probability so far.

    Parameters
    ----------
    trellis : Trellis
    ax : matplotlib Axes, optional
    """
    from matplotlib.collections import LineCollection

    n_steps, n_states = trellis.log_delta.shape
    written = n_steps <= _NUMBERS[0] and n_states <= _NUMBERS[1]
    height = min(1.5 + (0.95 if written else 0.34) * n_states, _INCHES)
    # Few steps of many states stand far apart, so that lines between distant states can be told from each other.
    wide = 1.25 if written else float(np.clip(0.6 * height / max(n_steps, 1), 0.42, 1.6))
    size = (min(2.4 + wide * n_steps, _INCHES), height)
    ax = new_axes(ax, figsize=size, layout="constrained")
    step, state = np.indices((n_steps, n_states))
    reached = np.isfinite(trellis.log_delta)
    some = (trellis.pointers >= 0) & reached
    ends = np.stack([np.stack([step - 1, trellis.pointers], -1)[some], np.stack([step, state], -1)[some]], axis=1)
    ax.add_collection(LineCollection(ends.astype(float).tolist(), colors=OTHERS, linewidths=1.0, zorder=1))
    possible = np.isfinite(trellis.log_prob)
    places = trellis._places if possible else np.zeros(0, dtype=int)
    ax.plot(np.arange(len(places)), places, color=COLORS[0], linewidth=3, zorder=2, label="the best path")
    # How the best path to a state compares with the best to any state of its step: dark is as good.
    best = np.max(np.where(reached, trellis.log_delta, -np.inf), axis=1, keepdims=True)
    share = np.where(reached, np.exp(np.where(reached, trellis.log_delta - np.where(np.isfinite(best), best, 0), 0)), 0)
    edge = np.full((n_steps, n_states), OTHERS, dtype=object)
    edge[np.arange(len(places)), places] = COLORS[0]
    area = 1500 if written else 70
    looks = {"cmap": "Blues", "vmin": 0, "vmax": 2, "edgecolors": edge.ravel().tolist(), "linewidths": 1.6, "zorder": 3}
    ax.scatter(step.ravel(), state.ravel(), s=area, c=share.ravel(), **looks)
    if written:
        small = float(trellis.log_delta[reached].min(initial=0.0)) < np.log(1e-4)
        for t, k in np.ndindex(n_steps, n_states):
            value = trellis.log_delta[t, k]
            shown = "0" if not reached[t, k] else f"{value:.1f}" if small else f"{np.exp(value):.2g}"
            ax.text(t, k, shown, ha="center", va="center", fontsize=8, zorder=4)
        what = "log p" if small else "p"
        set_title(ax, f"{what}(steps so far, the best path to the state)")
    else:
        set_title(ax, "gray: the best way to every state; blue: the best path of all")
    if not possible:
        set_title(ax, "the sequence is impossible: no path leads to its end")
    ax.set_xlim(-0.6, n_steps - 0.4)
    ax.set_ylim(n_states - 0.4, -0.6)
    ticks(ax, "y", trellis.states.tolist(), 9.0, 16)
    ax.set_xlabel("step")
    ax.xaxis.get_major_locator().set_params(integer=True)
    hide_top_right_spines(ax)
    frame = trellis.to_frame()
    return Plot(ax, {name: frame[name].tolist() for name in frame})

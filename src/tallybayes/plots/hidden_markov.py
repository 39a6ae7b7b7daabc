"""Pictures of hidden Markov models: a sequence with its states, and the states with their transitions."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallybayes.plots.style import COLOURS, new_axes, quiet, words


def plot_states(model: Any, steps: Any, ax: Any = None) -> Any:
    """One sequence: what was observed above, the probabilities of the states below.

    Parameters
    ----------
    model : HiddenMarkovModel
    steps : one sequence
    ax : two matplotlib Axes, optional
    """
    axes = new_axes(ax, nrows=2, sharex=True, figsize=(9, 4.5), layout="constrained", height_ratios=[3, 1])
    (proba,), (path,) = model.predict_proba([steps]), model.predict([steps])
    time = np.arange(len(proba))
    states = model.states_.tolist()
    columns = _columns(steps)
    for number, column in enumerate(columns.values()):
        values, ticks = _as_numbers(column)
        axes[0].plot(time, values, color="#999999", linewidth=0.9, zorder=1, marker="none")
        for k, state in enumerate(states):
            here = np.array([found == state for found in path], dtype=bool)
            label = words(state) if number == 0 else None
            axes[0].scatter(time[here], values[here], s=16, color=COLOURS[k % len(COLOURS)], label=label, zorder=2)
        if ticks is not None and len(columns) == 1:
            axes[0].set_yticks(range(len(ticks)), ticks)
        if column.dtype.kind in "iu":
            axes[0].yaxis.get_major_locator().set_params(integer=True)
    axes[0].set_ylabel(", ".join(words(name) for name in columns) if list(columns) != [0] else "step")
    axes[0].legend(title="state", frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
    bottom = np.zeros(len(proba))
    for k in range(len(states)):
        colour = COLOURS[k % len(COLOURS)]
        axes[1].bar(time, proba[:, k], bottom=bottom, width=1.0, color=colour, linewidth=0)
        bottom += proba[:, k]
    axes[1].set_ylim(0, 1)
    axes[1].set_xlim(-0.5, len(proba) - 0.5)
    axes[1].set_ylabel("p(state)")
    axes[1].set_xlabel("time")
    axes[1].xaxis.get_major_locator().set_params(integer=True)
    for each in axes:
        quiet(each)
    return axes


def plot_transitions(model: Any, ax: Any = None, least: float = 0.01) -> Any:
    """The states as circles, as large as they are frequent, and the transitions between them as arrows.

    Parameters
    ----------
    model : HiddenMarkovModel
    ax : matplotlib Axes, optional
    least : float, default 0.01
        Transitions less probable than this are not drawn.
    """
    ax = new_axes(ax, figsize=(6.5, 6), layout="constrained")
    states, transition = model.states_.tolist(), model.transition_
    weight = np.asarray(model.tally_[model._names["to"]].table).sum(axis=1)
    share = weight / weight.sum() if weight.sum() > 0 else np.full(len(states), 1 / len(states))
    angle = np.pi / 2 - 2 * np.pi * np.arange(len(states)) / max(len(states), 1)
    place = np.stack([np.cos(angle), np.sin(angle)], axis=-1) if len(states) > 1 else np.zeros((1, 2))
    radius = np.clip(0.16 + 0.22 * np.sqrt(share), 0.16, 0.34) * min(1.0, 5 / max(len(states), 1))
    for i in range(len(states)):
        for j in range(len(states)):
            p = transition[i, j]
            if p < least:
                continue
            _arrow(ax, place[i], place[j], radius[i], radius[j], float(p), COLOURS[i % len(COLOURS)], loop=i == j)
    from matplotlib.patches import Circle

    for i, state in enumerate(states):
        colour = COLOURS[i % len(COLOURS)]
        ax.add_patch(Circle(place[i], radius[i], facecolor="white", edgecolor=colour, linewidth=2.5, zorder=3))
        text = f"{words(state)}\n{transition[i, i]:.2f}" if transition[i, i] >= least else words(state)
        ax.text(*place[i], text, ha="center", va="center", zorder=4, fontsize=10)
    ax.set_aspect("equal")
    low, high = np.minimum(place.min(axis=0) - 0.45, -1.0), np.maximum(place.max(axis=0) + 0.45, 1.0)
    ax.set_xlim(low[0], high[0])
    ax.set_ylim(low[1], high[1])
    ax.axis("off")
    ax.set_title("p(next state | state); in the circles, p(stay)")
    return ax


def _arrow(ax: Any, a: Any, b: Any, ra: float, rb: float, p: float, colour: str, *, loop: bool) -> None:
    if loop:  # staying is written into the circle
        return
    gap = b - a
    length = float(np.hypot(*gap))
    unit, normal = gap / length, np.array([-gap[1], gap[0]]) / length
    start, end = a + unit * ra + normal * 0.05, b - unit * rb + normal * 0.05
    ax.annotate(
        "",
        end,
        start,
        arrowprops={
            "arrowstyle": "-|>",
            "color": colour,
            "linewidth": 0.8 + 4 * p,
            "connectionstyle": "arc3,rad=-0.12",
            "shrinkA": 1,
            "shrinkB": 1,
        },
        zorder=2,
    )
    middle = a + gap * 0.42 + normal * (0.05 + 0.06 * length)  # on the arrow, which bends by that much
    behind = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
    ax.text(*middle, f"{p:.2f}", color=colour, fontsize=9, ha="center", va="center", zorder=5, bbox=behind)


def _columns(steps: Any) -> dict[Any, Any]:
    from tallybayes.models.inputs.sequences import open_sequences

    return {name: np.asarray(column) for name, column in open_sequences([steps]).table.columns.items()}


def _as_numbers(values: np.ndarray) -> tuple[np.ndarray, list[str] | None]:
    """Numbers as they are, labels by their places."""
    if values.dtype.kind in "biuf":
        return values.astype(float), None
    known = sorted({value for value in values.tolist() if value is not None}, key=str)
    index = {value: place for place, value in enumerate(known)}
    return np.array([index.get(value, np.nan) for value in values.tolist()], dtype=float), [words(v) for v in known]

"""Pictures of hidden Markov models: a sequence with its states, and the states with their transitions."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from tallybayes.data.dates import with_parts_of_dates
from tallybayes.errors import DataError
from tallybayes.models.inputs.sequences import Sequences, open_sequences
from tallybayes.plotting.plot import Plot, PlotTable, table_of
from tallybayes.plotting.style import (
    COLORS,
    MOST_COLORS,
    NOTE,
    OTHERS,
    WIDEST,
    GroupStyle,
    group_styles,
    hide_spines,
    hide_top_right_spines,
    legend_beside,
    name_of,
    new_axes,
    ticks,
    words,
)

_SEQUENCES = 8  # one after another
_MOST = 6  # columns above each other
_NUMBERS = 14  # states whose transitions are written out
_LONG = 300  # steps
_LEVELS = 30  # labels of a column with a tick of their own


def plot_states(model: Any, X: Any, where: dict[str, Any], ax: Any = None) -> Plot:
    """Draw sequences one after another: the observations above, the probabilities of the states below.

    Parameters
    ----------
    model : HiddenMarkovModel
    X : as for `predict`
    where : dict
        ``lengths``, ``sequence`` and ``order``, as for `predict`.
    ax : matplotlib Axes, optional
        One for every column, and one more.
    """
    sequences = open_sequences(X, **where, asked=True)
    offsets = sequences.offsets[: _SEQUENCES + 1]
    columns = _columns(model, sequences, int(offsets[-1]))
    shares, paths = model.predict_proba(X, **where), model.predict(X, **where)
    n = len(offsets) - 1
    if not offsets[-1]:
        raise DataError("X has no time steps; expected one or more.")
    proba, path = np.concatenate(shares[:n]), np.concatenate(paths[:n])
    most = _MOST if ax is None else max(1, np.size(ax) - 1)
    shown = _that_tell(columns, proba, most)
    heights = [3.0 if len(shown) == 1 else 1.6] * len(shown) + [1.0]
    size = (9, 1.5 * sum(heights) if len(shown) > 1 else 4.5)
    options = {"figsize": size, "layout": "constrained", "height_ratios": heights}
    axes = np.ravel(new_axes(ax, nrows=len(shown) + 1, sharex=True, **options))
    time, states = np.arange(len(proba)), model.states_.tolist()
    look = group_styles(states, proba.sum(axis=0), "states")
    of_step = [states.index(found) for found in path.tolist()]
    ends = offsets[1:-1] - 0.5  # between sequences
    for panel, (name, column) in zip(axes, shown.items(), strict=False):
        _draw_column(panel, time, column, look, np.array(of_step), offsets)
        panel.set_ylabel("step" if name == 0 and len(columns) == 1 else name_of(name, WIDEST))
    _draw_proba(axes[-1], time, proba, look)
    legend_beside(axes[0], "state", markerscale=1.5)
    notes = []
    if len(shown) < len(columns):
        notes.append(f"showing {len(shown)} of {len(columns)} columns, those that tell most of the state")
    if n < sequences.n_sequences:
        notes.append(f"the first {n} of {sequences.n_sequences:,} sequences")
    if notes:
        axes[0].set_title("; ".join(notes), fontsize=10, color=NOTE)
    for each in axes:
        hide_top_right_spines(each)
        for end in ends:
            each.axvline(end, color="#444444", linewidth=0.8, linestyle="--")
    if len(ends):
        axes[-1].set_xlabel("time step; dashed lines are between sequences")
    lines = table_of(("time", "state", "probability"), time.tolist(), states, proba)
    of_sequence = np.repeat(np.arange(n), np.diff(offsets) * len(states)).tolist()
    part = {**lines, "predicted": [states[k] for k in of_step for _ in states]}
    return Plot(axes, {"sequence": of_sequence, **part} if n > 1 else part)


def _draw_column(
    panel: Any, time: np.ndarray, column: np.ndarray, look: list[GroupStyle], of_step: np.ndarray, offsets: np.ndarray
) -> None:
    """The cells of a column over time, colored by the states of the most probable path."""
    values, levels = _as_numbers(column)
    for first, last in pairwise(offsets.tolist()):
        line = {"color": "#999999", "linewidth": 0.9, "zorder": 1, "marker": "none"}
        panel.plot(time[first:last], values[first:last], **line)
    for k in sorted(range(len(look)), key=lambda k: look[k].own):
        here = of_step == k
        label = look[k].label
        panel.scatter(time[here], values[here], s=16, color=look[k].color, label=label, zorder=2)
    if levels is not None:
        if len(levels) <= _LEVELS:
            panel.set_ylim(len(levels) - 0.5, -0.5)
            ticks(panel, "y", levels, 8.0, 16)
        else:
            panel.set_yticks([])
    elif column.dtype.kind in "iu":
        panel.yaxis.get_major_locator().set_params(integer=True)


def _draw_proba(panel: Any, time: np.ndarray, proba: np.ndarray, look: list[GroupStyle]) -> None:
    order = [k for k, one in enumerate(look) if one.own]
    colors = [look[k].color for k in order]
    heights = [proba[:, k] for k in order]
    if len(order) < len(look):  # all in gray together
        colors.append(OTHERS)
        heights.append(proba.sum(axis=1) - np.sum(heights, axis=0))
    edges = np.repeat(np.append(time - 0.5, time[-1] + 0.5), 2)[1:-1]  # steps, in one piece for every state
    panel.stackplot(edges, [np.repeat(height, 2) for height in heights], colors=colors, linewidth=0)
    panel.set_ylim(0, 1)
    panel.set_xlim(-0.5, len(proba) - 0.5)
    panel.set_ylabel("p(state)")
    panel.set_xlabel("time")
    panel.xaxis.get_major_locator().set_params(integer=True)


def plot_transitions(model: Any, ax: Any = None, least: float = 0.01) -> Plot:
    """The transitions between states: circles and arrows of a few, a square of colors of more than eight.

    Parameters
    ----------
    model : HiddenMarkovModel
    ax : matplotlib Axes, optional
    least : float, default 0.01
        Transitions less probable than this have no arrow.
    """
    states, transition = model.states_.tolist(), model.transition_
    part: PlotTable = table_of(("state", "next", "probability"), states, states, transition)
    allowed = model._estimated_hmm.structure.allowed
    if allowed is not None:  # what never happens is not shown, neither as a line nor as a color
        part = {name: [column[k] for k in np.flatnonzero(allowed)] for name, column in part.items()}
    if len(states) > MOST_COLORS:
        return Plot(
            _draw_square(states, transition if allowed is None else np.where(allowed, transition, np.nan), ax), part
        )
    ax = new_axes(ax, figsize=(6.5, 6), layout="constrained")
    share = _in_the_long_run(model.start_, transition)
    angle = np.pi / 2 - 2 * np.pi * np.arange(len(states)) / max(len(states), 1)
    place = np.stack([np.cos(angle), np.sin(angle)], axis=-1) if len(states) > 1 else np.zeros((1, 2))
    radius = np.clip(0.16 + 0.22 * np.sqrt(share), 0.16, 0.34) * min(1.0, 5 / max(len(states), 1))
    for i in range(len(states)):
        for j in range(len(states)):
            p = transition[i, j]
            if p >= least and i != j:  # staying is written into the circle
                _arrow(ax, place[i], place[j], radius[i], radius[j], float(p), COLORS[i % len(COLORS)])
    from matplotlib.patches import Circle

    for i, state in enumerate(states):
        color = COLORS[i % len(COLORS)]
        ax.add_patch(Circle(place[i], radius[i], facecolor="white", edgecolor=color, linewidth=2.5, zorder=3))
        name = words(state, 14)
        stay = f"\n{transition[i, i]:.2f}" if transition[i, i] >= least else ""
        # Inside the circle where it fits; else outside, away from the middle.
        if len(name) <= 30 * radius[i]:
            ax.text(*place[i], name + stay, ha="center", va="center", zorder=4, fontsize=10)
        else:
            ax.text(*place[i], stay.strip(), ha="center", va="center", zorder=4, fontsize=10)
            up = place[i][1] >= -1e-9 or len(states) == 1
            edge = place[i][1] + (radius[i] + 0.03) * (1 if up else -1)
            va = "bottom" if up else "top"
            ax.text(place[i][0], edge, name, ha="center", va=va, zorder=4, fontsize=10)
    ax.set_aspect("equal")
    low, high = np.minimum(place.min(axis=0) - 0.5, -1.0), np.maximum(place.max(axis=0) + 0.5, 1.0)
    ax.set_xlim(low[0], high[0])
    ax.set_ylim(low[1], high[1])
    ax.axis("off")
    ax.set_title("p(next state | state); in the circles, p(stay)")
    return Plot(ax, part)


def _in_the_long_run(start: np.ndarray, transition: np.ndarray) -> np.ndarray:
    """How much of a long sequence is spent in every state."""
    now, spent = start, np.zeros(len(start))
    for _ in range(_LONG):
        spent = spent + now
        now = now @ transition
    return np.nan_to_num(spent / _LONG)


def _draw_square(states: list[Any], transition: np.ndarray, ax: Any) -> Any:
    """p(next | state) as a square of colors; numbers where they fit."""
    n = len(states)
    side = min(max(0.34 * n, 4.0), 11.0)
    ax = new_axes(ax, figsize=(side + 2.2, side + 1.2), layout="constrained")
    # Colors by the square root, so that rare transitions are seen beside staying.
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


def _arrow(ax: Any, a: Any, b: Any, ra: float, rb: float, p: float, color: str) -> None:
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
            "color": color,
            "linewidth": 0.8 + 4 * p,
            "connectionstyle": "arc3,rad=-0.12",
            "shrinkA": 1,
            "shrinkB": 1,
        },
        zorder=2,
    )
    middle = a + gap * 0.42 + normal * (0.05 + 0.06 * length)  # on the arrow, which bends by that much
    behind = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
    ax.text(*middle, f"{p:.2f}", color=color, fontsize=9, ha="center", va="center", zorder=5, bbox=behind)


def _columns(model: Any, sequences: Sequences, n: int) -> dict[Any, np.ndarray]:
    """The columns of the first steps that the model knows."""
    known = [name for scored in model._estimated_hmm.chain.scored for name in scored.factor.columns]
    table = with_parts_of_dates(sequences.table, known).columns
    found: dict[Any, np.ndarray] = {}
    for name, column in table.items():
        if name not in known:
            continue
        cells = np.asarray(column)[:n]
        blocks = {name: cells} if cells.ndim == 1 else {(name, k): cells[:, k] for k in range(cells.shape[1])}
        found |= blocks
    return found


def _that_tell(columns: dict[Any, np.ndarray], proba: np.ndarray, most: int) -> dict[Any, np.ndarray]:
    """At most so many columns, those that tell most of the states of these steps: by how much a state explains."""
    if len(columns) <= most:
        return columns
    told = {name: _explained(_as_numbers(column)[0], proba) for name, column in columns.items()}
    kept = sorted(columns, key=lambda name: -told[name])[:most]
    return {name: column for name, column in columns.items() if name in kept}


def _explained(values: np.ndarray, proba: np.ndarray) -> float:
    """The share of a column's variance that lies between the states."""
    known = np.isfinite(values)
    values, weight = values[known], proba[known]
    total = values.var() if len(values) else 0.0
    if not total > 0:
        return 0.0
    share = weight.sum(axis=0)
    mean = weight.T @ values / np.where(share > 0, share, 1.0)
    return float((share * (mean - values.mean()) ** 2).sum() / len(values) / total)


def _as_numbers(values: np.ndarray) -> tuple[np.ndarray, list[Any] | None]:
    """Numbers as they are, labels by their places."""
    if values.dtype.kind in "biuf":
        return values.astype(float), None
    known = sorted({value for value in values.tolist() if not _missing(value)}, key=str)
    index = {value: place for place, value in enumerate(known)}
    found = [np.nan if _missing(value) else index[value] for value in values.tolist()]
    return np.array(found, dtype=float), known


def _missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and np.isnan(value))

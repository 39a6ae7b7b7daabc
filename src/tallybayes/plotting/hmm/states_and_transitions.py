"""Plots of hidden Markov models: a sequence with its states, and the state transitions."""

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

_SEQUENCES = 8  # sequences shown
_MAX_PANELS = 6  # columns shown
_NUMBERS = 14  # a heat map of at most so many states shows numbers
_LONG = 300  # time steps of the average occupancy
_LEVELS = 30  # a column of at most so many levels has tick labels


def plot_states(model: Any, X: Any, where: dict[str, Any], ax: Any = None) -> Plot:
    """Plot sequences one after another: the observations above, the state probabilities below.

    Parameters
    ----------
    model : HiddenMarkovModel
    X : sequences, as for `predict`
    where : dict
        ``lengths``, ``sequence`` and ``order``, as for `predict`.
    ax : matplotlib Axes, optional
        One for each column, and one more for the states.
    """
    sequences = open_sequences(X, **where, requested=True)
    offsets = sequences.offsets[: _SEQUENCES + 1]
    columns = _columns(model, sequences, int(offsets[-1]))
    probabilities, paths = model.predict_proba(X, **where), model.predict(X, **where)
    n = len(offsets) - 1
    if not offsets[-1]:
        raise DataError("X has no time steps; expected one or more.")
    proba, path = np.concatenate(probabilities[:n]), np.concatenate(paths[:n])
    n_panels = _MAX_PANELS if ax is None else max(1, np.size(ax) - 1)
    shown = _most_informative(columns, proba, n_panels)
    heights = [3.0 if len(shown) == 1 else 1.6] * len(shown) + [1.0]
    size = (9, 1.5 * sum(heights) if len(shown) > 1 else 4.5)
    options = {"figsize": size, "layout": "constrained", "height_ratios": heights}
    axes = np.ravel(new_axes(ax, nrows=len(shown) + 1, sharex=True, **options))
    time, states = np.arange(len(proba)), model.states_.tolist()
    styles = group_styles(states, proba.sum(axis=0), "states")
    of_step = [states.index(state) for state in path.tolist()]
    ends = offsets[1:-1] - 0.5  # between sequences
    for panel, (name, column) in zip(axes, shown.items(), strict=False):
        _draw_column(panel, time, column, styles, np.array(of_step), offsets)
        panel.set_ylabel("step" if name == 0 and len(columns) == 1 else name_of(name, WIDEST))
    draw_probabilities(axes[-1], time, proba, styles)
    legend_beside(axes[0], "state", markerscale=1.5)
    notes = []
    if len(shown) < len(columns):
        notes.append(f"showing {len(shown)} of {len(columns)} columns, those most related to the state")
    if n < sequences.n_sequences:
        notes.append(f"the first {n} of {sequences.n_sequences:,} sequences")
    if notes:
        axes[0].set_title("; ".join(notes), fontsize=10, color=NOTE)
    for panel in axes:
        hide_top_right_spines(panel)
        for end in ends:
            panel.axvline(end, color="#444444", linewidth=0.8, linestyle="--")
    if len(ends):
        axes[-1].set_xlabel("time step; dashed lines are between sequences")
    columns_of_table = table_of(("time", "state", "probability"), time.tolist(), states, proba)
    of_sequence = np.repeat(np.arange(n), np.diff(offsets) * len(states)).tolist()
    table = {**columns_of_table, "predicted": [states[k] for k in of_step for _ in states]}
    return Plot(axes, {"sequence": of_sequence, **table} if n > 1 else table)


def _draw_column(
    panel: Any, time: np.ndarray, column: np.ndarray, styles: list[GroupStyle], of_step: np.ndarray, offsets: np.ndarray
) -> None:
    """Draw the cells of a column over time, colored by the Viterbi path."""
    values, levels = as_numbers(column)
    for first, last in pairwise(offsets.tolist()):
        line = {"color": "#999999", "linewidth": 0.9, "zorder": 1, "marker": "none"}
        panel.plot(time[first:last], values[first:last], **line)
    for k in sorted(range(len(styles)), key=lambda k: styles[k].own):
        here = of_step == k
        label = styles[k].label
        panel.scatter(time[here], values[here], s=16, color=styles[k].color, label=label, zorder=2)
    if levels is not None:
        if len(levels) <= _LEVELS:
            panel.set_ylim(len(levels) - 0.5, -0.5)
            ticks(panel, "y", levels, 8.0, 16)
        else:
            panel.set_yticks([])
    elif column.dtype.kind in "iu":
        panel.yaxis.get_major_locator().set_params(integer=True)


def draw_probabilities(panel: Any, time: np.ndarray, proba: np.ndarray, styles: list[GroupStyle]) -> None:
    """Draw probabilities over time as stacked areas."""
    order = [k for k, style in enumerate(styles) if style.own]
    colors = [styles[k].color for k in order]
    heights = [proba[:, k] for k in order]
    if len(order) < len(styles):  # the remaining states as one gray area
        colors.append(OTHERS)
        heights.append(proba.sum(axis=1) - np.sum(heights, axis=0))
    edges = np.repeat(np.append(time - 0.5, time[-1] + 0.5), 2)[1:-1]  # piecewise constant over time
    panel.stackplot(edges, [np.repeat(height, 2) for height in heights], colors=colors, linewidth=0)
    panel.set_ylim(0, 1)
    panel.set_xlim(-0.5, len(proba) - 0.5)
    panel.set_ylabel("p(state)")
    panel.set_xlabel("time")
    panel.xaxis.get_major_locator().set_params(integer=True)


def plot_transitions(model: Any, ax: Any = None, least: float = 0.01) -> Plot:
    """Plot the transition probabilities: a graph of up to eight states, a heat map of more.

    Parameters
    ----------
    model : HiddenMarkovModel
    ax : matplotlib Axes, optional
    least : float, default 0.01
        Transitions with a smaller probability have no edge.
    """
    states, transition = model.states_.tolist(), model.transition_
    table: PlotTable = table_of(("state", "next", "probability"), states, states, transition)
    allowed = model._estimated_hmm.topology.allowed
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
            ax.text(*position[i], name + stay, ha="center", va="center", zorder=4, fontsize=10)
        else:
            ax.text(*position[i], stay.strip(), ha="center", va="center", zorder=4, fontsize=10)
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
    proba, total = start, np.zeros(len(start))
    for _ in range(_LONG):
        total = total + proba
        proba = proba @ transition
    return np.nan_to_num(total / _LONG)


def _draw_heat_map(states: list[Any], transition: np.ndarray, ax: Any) -> Any:
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


def _draw_edge(ax: Any, a: Any, b: Any, ra: float, rb: float, p: float, color: str) -> None:
    """Draw a curved edge between two states, labeled with its probability."""
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
    middle = a + gap * 0.42 + normal * (0.05 + 0.06 * length)  # on the edge, whose arc has this height
    behind = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
    ax.text(*middle, f"{p:.2f}", color=color, fontsize=9, ha="center", va="center", zorder=5, bbox=behind)


def _columns(model: Any, sequences: Sequences, n: int) -> dict[Any, np.ndarray]:
    """Return the columns of the first n time steps that the model uses."""
    known = [name for scored in model._estimated_hmm.parameters.scored for name in scored.factor.columns]
    table = with_parts_of_dates(sequences.table, known).columns
    arrays: dict[Any, np.ndarray] = {}
    for name, column in table.items():
        if name not in known:
            continue
        cells = np.asarray(column)[:n]
        blocks = {name: cells} if cells.ndim == 1 else {(name, k): cells[:, k] for k in range(cells.shape[1])}
        arrays |= blocks
    return arrays


def _most_informative(columns: dict[Any, np.ndarray], proba: np.ndarray, n_columns: int) -> dict[Any, np.ndarray]:
    """Return at most `n_columns` columns: those with the largest proportion of variance between states."""
    if len(columns) <= n_columns:
        return columns
    scores = {name: _explained_variance(as_numbers(column)[0], proba) for name, column in columns.items()}
    kept = sorted(columns, key=lambda name: -scores[name])[:n_columns]
    return {name: column for name, column in columns.items() if name in kept}


def _explained_variance(values: np.ndarray, proba: np.ndarray) -> float:
    """Return the proportion of the variance of a column that lies between states (R²)."""
    known = np.isfinite(values)
    values, weight = values[known], proba[known]
    total = values.var() if len(values) else 0.0
    if not total > 0:
        return 0.0
    state_weight = weight.sum(axis=0)
    mean = weight.T @ values / np.where(state_weight > 0, state_weight, 1.0)
    return float((state_weight * (mean - values.mean()) ** 2).sum() / len(values) / total)


def as_numbers(values: np.ndarray) -> tuple[np.ndarray, list[Any] | None]:
    """Return numeric columns unchanged, and categorical ones as indices of their sorted levels."""
    if values.dtype.kind in "biuf":
        return values.astype(float), None
    levels = sorted({value for value in values.tolist() if not _missing(value)}, key=str)
    index = {value: position for position, value in enumerate(levels)}
    codes = [np.nan if _missing(value) else index[value] for value in values.tolist()]
    return np.array(codes, dtype=float), levels


def _missing(value: Any) -> bool:
    """Return whether a cell is None or NaN."""
    return value is None or (isinstance(value, float) and np.isnan(value))

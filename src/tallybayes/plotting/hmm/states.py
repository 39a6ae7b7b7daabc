"""Plot of sequences with the probabilities of their states."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tallybayes.data.dates import with_parts_of_dates
from tallybayes.data.encoding import is_missing
from tallybayes.errors import DataError
from tallybayes.models.inputs.sequences import Sequences, open_sequences
from tallybayes.plotting.plot import Plot, table_of
from tallybayes.plotting.style import (
    NOTE,
    OTHERS,
    WIDEST,
    GroupStyle,
    all_axes,
    group_styles,
    hide_top_right_spines,
    legend_beside,
    name_of,
    ticks,
)
from tallybayes.typing import Rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tallybayes.models.hmm.hidden_markov_model import HiddenMarkovModel

_SEQUENCES = 8  # sequences shown
_MAX_PANELS = 6  # columns shown
_LEVELS = 30  # a column of at most so many levels has tick labels


def plot_states(
    model: HiddenMarkovModel,
    X: Rows,
    lengths: npt.ArrayLike | None,
    sequence: str | None,
    order: str | None,
    ax: Axes | np.ndarray | None = None,
) -> Plot:
    """Plot sequences one after another: the observations above, the state probabilities below.

    Parameters
    ----------
    model : HiddenMarkovModel
    X, lengths, sequence, order
        As for `predict`.
    ax : matplotlib Axes, optional
        One for each column, and one more for the states.
    """
    sequences = open_sequences(X, lengths, sequence, order, requested=True)
    offsets = sequences.offsets[: _SEQUENCES + 1]
    columns = _columns(model, sequences, int(offsets[-1]))
    probabilities = model.predict_proba(X, lengths, sequence=sequence, order=order)
    paths = model.predict(X, lengths, sequence=sequence, order=order)
    n = len(offsets) - 1
    if not offsets[-1]:
        raise DataError("X has no time steps; expected one or more.")
    proba, path = np.concatenate(probabilities[:n]), np.concatenate(paths[:n])
    n_panels = _MAX_PANELS if ax is None else max(1, np.asarray(ax, dtype=object).size - 1)
    shown = _most_informative(columns, proba, n_panels)
    heights = [3.0 if len(shown) == 1 else 1.6] * len(shown) + [1.0]
    size = (9, 1.5 * sum(heights) if len(shown) > 1 else 4.5)
    options = {"figsize": size, "layout": "constrained", "height_ratios": heights}
    axes = all_axes(ax, nrows=len(shown) + 1, sharex=True, **options)
    time = np.arange(len(proba))
    states = model.states_.tolist()
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
    panel: Axes,
    time: np.ndarray,
    column: np.ndarray,
    styles: list[GroupStyle],
    of_step: np.ndarray,
    offsets: np.ndarray,
) -> None:
    """Draw the cells of a column over time, colored by the Viterbi path."""
    values, levels = as_numbers(column)
    for first, last in pairwise(offsets.tolist()):
        line: dict[str, Any] = {"color": "#999999", "linewidth": 0.9, "zorder": 1, "marker": "none"}
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
        panel.locator_params(axis="y", integer=True)


def draw_probabilities(panel: Axes, time: np.ndarray, proba: np.ndarray, styles: list[GroupStyle]) -> None:
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
    panel.locator_params(axis="x", integer=True)


def _columns(model: HiddenMarkovModel, sequences: Sequences, n: int) -> dict[Any, np.ndarray]:
    """Return the columns of the first n time steps that the model uses."""
    known = [name for key in model.columns_ for name in (key if isinstance(key, tuple) else (key,))]
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
    values = values[known]
    weight = proba[known]
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
    levels = sorted({value for value in values.tolist() if not is_missing(value)}, key=str)
    index = {value: position for position, value in enumerate(levels)}
    codes = [np.nan if is_missing(value) else index[value] for value in values.tolist()]
    return np.array(codes, dtype=float), levels

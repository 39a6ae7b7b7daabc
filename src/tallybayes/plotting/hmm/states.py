"""Plot of sequences with the probabilities of their states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tallybayes.data.dates import with_parts_of_dates
from tallybayes.data.encoding import encode
from tallybayes.errors import DataError
from tallybayes.models.inputs.sequences import Sequences, open_sequences
from tallybayes.plotting.plot import Plot, PlotAxes, table_of
from tallybayes.plotting.style import (
    DARK,
    DOTS,
    NOTE,
    OTHERS,
    WIDEST,
    GroupStyle,
    all_axes,
    gray_first,
    group_styles,
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
    ax: PlotAxes = None,
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
    n = len(offsets) - 1
    n_steps = int(offsets[-1])
    columns = _columns(model, sequences, n_steps)
    probabilities = model.predict_proba(X, lengths, sequence=sequence, order=order)
    paths = model.predict(X, lengths, sequence=sequence, order=order)
    if not n_steps:
        raise DataError("X has no time steps; expected one or more.")
    proba = np.concatenate(probabilities[:n])
    path = np.concatenate(paths[:n])
    axes = column_panels(ax, len(columns))
    shown = _most_informative(columns, proba, len(axes) - 1)
    states = model.states_.tolist()
    styles = group_styles(states, proba.sum(axis=0), "states")
    in_state = path == model.states_[:, None]
    for panel, (name, column) in zip(axes, shown.items(), strict=False):
        _draw_column(panel, column, styles, in_state, offsets)
        panel.set_ylabel(column_label(name, columns))
    draw_areas(axes[-1], np.arange(n_steps), proba, styles)
    axes[-1].set(ylabel="p(state)", xlabel="time")
    legend_beside(axes[0], "state", styles, markersize=6, **DOTS)
    notes = []
    if len(shown) < len(columns):
        notes.append(f"showing {len(shown)} of {len(columns)} columns, those most related to the state")
    if n < sequences.n_sequences:
        notes.append(f"the first {n} of {sequences.n_sequences:,} sequences")
    axes[0].set_title("; ".join(notes), fontsize=10, color=NOTE)
    for panel in axes:
        for end in offsets[1:-1] - 0.5:
            panel.axvline(end, color=DARK, linewidth=0.8, linestyle="--")
    table = table_of(("time", "state", "probability"), range(n_steps), states, proba)
    table = {**table, "predicted": np.repeat(path, len(states))}
    if n > 1:
        axes[-1].set_xlabel("time step; dashed lines are between sequences")
        table = {"sequence": np.repeat(np.arange(n), np.diff(offsets) * len(states)), **table}
    return Plot(axes, table)


def column_panels(ax: PlotAxes, n_columns: int) -> np.ndarray:
    """Return axes below each other: one for each of at most six columns, and a lower one for the states."""
    n = min(n_columns, _MAX_PANELS)
    return all_axes(ax, 9, 2.2 + 2.6 * n, nrows=n + 1, sharex=True, height_ratios=[1.8] * n + [1.0])


def column_label(name: Any, columns: Sequence[Any] | Mapping[Any, Any]) -> str:
    """Return the label of a column; "step" for the only one of an array."""
    return "step" if name == 0 and len(columns) == 1 else name_of(name, WIDEST)


def _draw_column(
    panel: Axes, column: np.ndarray, styles: Sequence[GroupStyle], in_state: np.ndarray, offsets: np.ndarray
) -> None:
    """Draw the cells of a column over time, colored by the Viterbi path."""
    values, levels = as_numbers(column)
    time = np.arange(len(values))
    for first, last in pairwise(offsets.tolist()):
        panel.plot(time[first:last], values[first:last], color="#999999", linewidth=0.9, zorder=1)
    for k in gray_first(styles):
        panel.scatter(time[in_state[k]], values[in_state[k]], s=16, color=styles[k].color, zorder=2)
    if len(levels) > _LEVELS:
        panel.set_yticks([])
    elif levels:
        panel.set_ylim(len(levels) - 0.5, -0.5)
        ticks(panel, "y", levels, 8.0, 16)
    elif column.dtype.kind in "iu":
        panel.locator_params(axis="y", integer=True)


def draw_areas(panel: Axes, time: np.ndarray, proba: np.ndarray, styles: Sequence[GroupStyle]) -> None:
    """Draw probabilities over time as stacked areas; those of the gray groups are one area above the others."""
    own = np.array([style.own for style in styles])
    heights = np.column_stack([proba[:, own], proba[:, ~own].sum(axis=1)])
    colors = [*(style.color for style in styles if style.own), OTHERS][: heights.shape[1] - own.all()]
    edges = np.repeat(np.append(time - 0.5, time[-1] + 0.5), 2)[1:-1]  # piecewise constant over time
    panel.stackplot(edges, np.repeat(heights.T[: len(colors)], 2, axis=1), colors=colors, linewidth=0)
    panel.set(ylim=(0, 1), xlim=(time[0] - 0.5, time[-1] + 0.5))
    panel.locator_params(axis="x", integer=True)


def _columns(model: HiddenMarkovModel, sequences: Sequences, n: int) -> dict[Any, np.ndarray]:
    """Return the columns of the first n time steps that the model uses; the columns of a block one by one."""
    known = [name for key in model.columns_ for name in (key if isinstance(key, tuple) else (key,))]
    table = with_parts_of_dates(sequences.table, known).columns
    arrays = {name: np.asarray(column)[:n] for name, column in table.items() if name in known}
    return {
        key: cells
        for name, array in arrays.items()
        for key, cells in ([(name, array)] if array.ndim == 1 else [((name, k), row) for k, row in enumerate(array.T)])
    }


def _most_informative(columns: dict[Any, np.ndarray], proba: np.ndarray, n_columns: int) -> dict[Any, np.ndarray]:
    """Return at most `n_columns` columns: those with the largest proportion of variance between states."""
    if len(columns) <= n_columns:
        return columns
    ranked = sorted(columns, key=lambda name: -_explained_variance(as_numbers(columns[name])[0], proba))
    return {name: column for name, column in columns.items() if name in ranked[:n_columns]}


def _explained_variance(values: np.ndarray, proba: np.ndarray) -> float:
    """Return the proportion of the variance of a column that lies between states (R²)."""
    known = np.isfinite(values)
    weight = proba[known]
    deviation = values[known] - values[known].mean() if known.any() else np.zeros(0)
    total = deviation @ deviation
    state_weight = np.maximum(weight.sum(axis=0), 1e-300)
    return float(((weight.T @ deviation) ** 2 / state_weight).sum() / total) if total > 0 else 0.0


def as_numbers(values: np.ndarray) -> tuple[np.ndarray, list[Any]]:
    """Return numeric columns unchanged, and categorical ones as indices of their sorted levels."""
    if values.dtype.kind in "biuf":
        return values.astype(float), []
    codes, domain = encode(values, "column", ordered=True)
    return np.where(codes < 0, np.nan, codes), list(domain.levels)

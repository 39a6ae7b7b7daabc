"""The columns of a model: the distribution of each in every class, with data where they are given."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallybayes.data.array_input import as_array
from tallybayes.errors import DataError
from tallybayes.estimation.scoring.factor_scorer import chunk_of
from tallybayes.models.inputs.input_format import open_rows, read_more_rows
from tallybayes.plotting.classifier.marginals import (
    Marginal,
    PlotColumn,
    columns_in,
    marginal,
    most_informative_columns,
    most_informative_levels,
    picked,
)
from tallybayes.plotting.plot import Plot, PlotTable
from tallybayes.plotting.style import (
    MOST_COLORS,
    NOTE,
    GroupStyle,
    group_styles,
    hide_spines,
    hide_top_right_spines,
    name_of,
    panels,
    set_log_ticks,
    set_title,
    ticks,
    words,
)

_MOST = 12  # columns in a picture
_LEVELS = 16  # levels with bars of their own
_CLASSES = 40  # lines of a square of colors


def plot_columns(model: Any, columns: Any = None, X: Any = None, y: Any = None) -> Plot:
    """The class-conditional distribution of every column: densities for numbers, bars for labels.

    Parameters
    ----------
    model : a fitted classifier
    columns : name, or list of names, optional
        Which to draw; if left out, all, or the twelve that tell most of the class.
    X, y : as for `fit`, optional
        Rows whose histograms are drawn behind the densities.
    """
    found = columns_in(model)
    shown, note = most_informative_columns(model, found, _MOST) if columns is None else (_pick(found, columns), "")
    axes = panels(len(shown), 3, 4.0, 2.8)
    prior = np.exp(model.class_log_prior_)
    look = group_styles(model.classes_.tolist(), prior, model._group_word)
    data = None if X is None else _Rows(model, X, y)
    parts: list[PlotTable] = []
    colors = False
    for ax, column in zip(axes, shown, strict=False):
        found_here = marginal(column)
        parts.append(_as_part(found_here, model.classes_.tolist()))
        ax.set_title(name_of(column.name), fontsize=11)
        if found_here.constant or not len(found_here.at):
            why = "the same in every row" if len(found_here.at) else "nothing was seen"
            ax.text(0.5, 0.5, why, ha="center", transform=ax.transAxes, color=NOTE)
            ax.set(xticks=[], yticks=[])
        elif column.scored.family.is_binary:
            _draw_shares(ax, model, found_here.density[-1], prior, look)
        elif found_here.levels:
            colors |= _draw_levels(ax, model, found_here, prior, look)
        else:
            colors = True
            _draw_curves(ax, found_here, look, data.cells(column) if data else {})
        if not ax.images:
            hide_top_right_spines(ax)
    figure = axes[0].figure
    if not shown:
        axes[0].set_axis_off()
        axes[0].text(0.5, 0.5, "no columns", ha="center", color=NOTE)
    if colors:
        _legend(figure, model, look)
    if note:
        figure.suptitle(note, fontsize=10, color=NOTE)
    return Plot(axes, *parts)


def _pick(found: list[PlotColumn], columns: Any) -> list[PlotColumn]:
    """Those of these names: their own, or as rows call them."""
    return picked({name: one for one in found for name in (one.key, one.name)}, columns)


def _legend(figure: Any, model: Any, look: list[GroupStyle]) -> None:
    """One legend for all panels, to the right of them."""
    from matplotlib.lines import Line2D

    named = sorted((one for one in look if one.label is not None), key=lambda one: not one.own)
    handles = [Line2D([], [], color=one.color, linewidth=4, label=one.label) for one in named]
    title = words(model._target, 24)
    figure.legend(handles=handles, title=title, loc="outside right upper", frameon=False, fontsize=9)


def _draw_curves(ax: Any, found: Marginal, look: list[GroupStyle], cells: dict[int, np.ndarray]) -> None:
    """A line for every class; those in gray lie behind."""
    ax.set_xscale(found.scale)
    style = {} if found.measured else {"marker": "o", "markersize": 3}
    low, high = float(found.at.min()), float(found.at.max())
    every = np.concatenate(list(cells.values())) if cells else np.zeros(0)
    every = every[(every >= low) & (every <= high)]
    reach = _draw_histograms(ax, found, look, cells, every) if len(every) else 0.0
    for k, one in enumerate(look):
        line = {"linewidth": 1.6, "zorder": 3} if one.own else {"linewidth": 0.7, "zorder": 2}
        ax.plot(found.at, found.density[:, k], color=one.color, **line, **style)
    ax.set_ylabel("density" if found.measured else "probability")
    ax.set_ylim(0, max(_top(found.density), min(1.05 * reach, 2 * _top(found.density))))
    if not found.measured and len(found.at) <= 3:
        ax.set_xticks(found.at)
    if found.scale == "log":
        set_log_ticks(ax, low, high)


def _draw_shares(ax: Any, model: Any, share: np.ndarray, prior: np.ndarray, look: list[GroupStyle]) -> None:
    """The probability of a 1 in every class, by name; of very many classes, the most frequent."""
    most = np.sort(np.argsort(-prior, kind="stable")[:_CLASSES])
    ax.bar(range(len(most)), np.nan_to_num(share[most]), 0.8, color=[look[k].color for k in most])
    ticks(ax, "x", [model.classes_.tolist()[k] for k in most], 8.0 if len(most) <= 10 else 7.0, 14)
    ax.set(ylim=(0, 1), ylabel="probability of 1")
    if len(most) < len(share):
        _add_to_title(ax, [f"{len(most)} of {len(share)} {model._group_word}"])


def _draw_histograms(
    ax: Any, found: Marginal, look: list[GroupStyle], cells: dict[int, np.ndarray], every: Any
) -> float:
    """The cells of every class that has a color, as a density or as shares; how high they reach."""
    if found.measured:
        ends = np.log([every.min(), every.max()]) if found.scale == "log" else np.array([every.min(), every.max()])
        ends = ends if ends[1] > ends[0] else ends + np.array([-0.5, 0.5])
        edges = np.linspace(ends[0], ends[1], int(np.clip(np.sqrt(len(every)), 8, 40)) + 1)
        edges = np.exp(edges) if found.scale == "log" else edges
    else:
        edges = np.append(found.at, found.at[-1] + 1) - 0.5
    top = 0.0
    for k, mine in cells.items():
        if look[k].own and len(mine):
            height = np.histogram(mine, edges)[0] / len(mine) / np.diff(edges)
            ax.stairs(height, edges, fill=True, color=look[k].color, alpha=0.2, zorder=1)
            top = max(top, float(height.max()))
    return top


def _top(density: np.ndarray) -> float:
    """Where the picture ends: an infinite density does not flatten all others."""
    finite = density[np.isfinite(density)]
    return 1.05 * float(finite.max(initial=0.0)) or 1.0


def _draw_levels(ax: Any, model: Any, found: Marginal, prior: np.ndarray, look: list[GroupStyle]) -> bool:
    """Bars for every level and class; a square of colors where the classes are many. Whether colors are classes."""
    kept = most_informative_levels(found.density, prior, _LEVELS)
    density, labels = found.density[kept], [found.levels[k] for k in kept]
    notes = [f"{len(kept)} of {len(found.levels)} levels"] if len(kept) < len(found.levels) else []
    classes = model.classes_.tolist()
    if len(classes) > MOST_COLORS:
        most = np.sort(np.argsort(-prior, kind="stable")[:_CLASSES])
        image = ax.imshow(density[:, most].T, cmap="Blues", vmin=0, vmax=_top(density), aspect="auto")
        ticks(ax, "x", labels, 7.0, 14)
        ticks(ax, "y", [classes[k] for k in most], 7.0, 14)
        ax.figure.colorbar(image, ax=ax, label="probability", pad=0.02)
        if len(most) < len(classes):
            notes.append(f"{len(most)} of {len(classes)} {model._group_word}")
        hide_spines(ax)
        _add_to_title(ax, notes)
        return False
    _add_to_title(ax, notes)
    width = 0.8 / len(classes)
    for k, one in enumerate(look):
        left = np.arange(len(labels)) + (k - (len(classes) - 1) / 2) * width
        ax.bar(left, np.nan_to_num(density[:, k]), width, color=one.color)
    ticks(ax, "x", labels, 9.0 if len(labels) <= 6 else 7.0, 14)
    ax.set_ylabel("probability")
    return True


def _add_to_title(ax: Any, notes: list[str]) -> None:
    """Of how many levels and classes those that are drawn are the first: those that tell most, the most frequent."""
    if notes:
        set_title(ax, ax.get_title(), f"({', '.join(notes)})", size=9)


def _as_part(found: Marginal, classes: list[Any]) -> PlotTable:
    places = list(found.levels) if found.levels else found.at.tolist()
    kind = "density" if found.measured else "probability"
    n = len(classes)
    return {
        "column": [found.name] * (n * len(places)),
        "class": [label for label in classes for _ in places],
        "value": places * n,
        "what": [kind] * (n * len(places)),
        "height": np.asarray(found.density, dtype=float).T.ravel(),
    }


class _Rows:
    """Rows to be drawn, and their classes."""

    def __init__(self, model: Any, X: Any, y: Any) -> None:
        if y is None:
            raise DataError("X is given and y is not; expected the class of every row, or neither.")
        labels = as_array(read_more_rows(model, X, y, None)[0].columns[model._target])
        self.model, self.table = model, open_rows(model, X)
        self.masks = [labels == label for label in model.classes_]

    def cells(self, column: PlotColumn) -> dict[int, np.ndarray]:
        """The known cells of a column by class."""
        rows = chunk_of(self.model._factor_cells(self.table, column.scored), slice(None))[:, column.place].astype(float)
        return {k: rows[mask & np.isfinite(rows)] for k, mask in enumerate(self.masks)}

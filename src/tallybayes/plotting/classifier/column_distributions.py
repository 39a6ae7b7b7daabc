"""Plots of the class-conditional distributions of the columns, with histograms of rows."""

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
    select,
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

_MAX_COLUMNS = 12  # maximum number of columns
_MAX_LEVELS = 16  # maximum number of levels
_MAX_CLASSES = 40  # maximum number of classes


def plot_columns(model: Any, columns: Any = None, X: Any = None, y: Any = None) -> Plot:
    """Plot the class-conditional distribution of each column: densities of continuous, bars of categorical columns.

    Parameters
    ----------
    model : a fitted classifier
    columns : name, or list of names, optional
        Columns to plot; by default all, or the twelve with the largest mutual information with the class.
    X, y : as for `fit`, optional
        Rows whose histograms are plotted behind the densities.
    """
    all_columns = columns_in(model)
    shown, note = (
        most_informative_columns(model, all_columns, _MAX_COLUMNS)
        if columns is None
        else (_select_columns(all_columns, columns), "")
    )
    axes = panels(len(shown), 3, 4.0, 2.8)
    prior = np.exp(model.class_log_prior_)
    styles = group_styles(model.classes_.tolist(), prior, model._group_word)
    data = None if X is None else _PlotRows(model, X, y)
    tables: list[PlotTable] = []
    has_class_colors = False
    for ax, column in zip(axes, shown, strict=False):
        distribution = marginal(column)
        tables.append(_to_table(distribution, model.classes_.tolist()))
        ax.set_title(name_of(column.name), fontsize=11)
        if distribution.constant or not len(distribution.at):
            reason = "constant" if len(distribution.at) else "no data"
            ax.text(0.5, 0.5, reason, ha="center", transform=ax.transAxes, color=NOTE)
            ax.set(xticks=[], yticks=[])
        elif column.scored.family.is_binary:
            _draw_probabilities(ax, model, distribution.density[-1], prior, styles)
        elif distribution.levels:
            has_class_colors |= _draw_levels(ax, model, distribution, prior, styles)
        else:
            has_class_colors = True
            _draw_curves(ax, distribution, styles, data.cells(column) if data else {})
        if not ax.images:
            hide_top_right_spines(ax)
    figure = axes[0].figure
    if not shown:
        axes[0].set_axis_off()
        axes[0].text(0.5, 0.5, "no columns", ha="center", color=NOTE)
    if has_class_colors:
        _legend(figure, model, styles)
    if note:
        figure.suptitle(note, fontsize=10, color=NOTE)
    return Plot(axes, *tables)


def _select_columns(columns_of_model: list[PlotColumn], columns: Any) -> list[PlotColumn]:
    """Return the columns of these names, as in the model or as in the rows."""
    return select({name: column for column in columns_of_model for name in (column.key, column.name)}, columns)


def _legend(figure: Any, model: Any, styles: list[GroupStyle]) -> None:
    """Add one legend for all panels on the right."""
    from matplotlib.lines import Line2D

    entries = sorted((style for style in styles if style.label is not None), key=lambda style: not style.own)
    handles = [Line2D([], [], color=style.color, linewidth=4, label=style.label) for style in entries]
    title = words(model._target, 24)
    figure.legend(handles=handles, title=title, loc="outside right upper", frameon=False, fontsize=9)


def _draw_curves(ax: Any, distribution: Marginal, styles: list[GroupStyle], cells: dict[int, np.ndarray]) -> None:
    """Plot the density of each class; gray ones are behind."""
    ax.set_xscale(distribution.scale)
    markers = {} if distribution.is_continuous else {"marker": "o", "markersize": 3}
    low = float(distribution.at.min())
    high = float(distribution.at.max())
    values = np.concatenate(list(cells.values())) if cells else np.zeros(0)
    values = values[(values >= low) & (values <= high)]
    height = _draw_histograms(ax, distribution, styles, cells, values) if len(values) else 0.0
    for k, style in enumerate(styles):
        line = {"linewidth": 1.6, "zorder": 3} if style.own else {"linewidth": 0.7, "zorder": 2}
        ax.plot(distribution.at, distribution.density[:, k], color=style.color, **line, **markers)
    ax.set_ylabel("density" if distribution.is_continuous else "probability")
    ax.set_ylim(0, max(_upper_limit(distribution.density), min(1.05 * height, 2 * _upper_limit(distribution.density))))
    if not distribution.is_continuous and len(distribution.at) <= 3:
        ax.set_xticks(distribution.at)
    if distribution.scale == "log":
        set_log_ticks(ax, low, high)


def _draw_probabilities(
    ax: Any, model: Any, probability: np.ndarray, prior: np.ndarray, styles: list[GroupStyle]
) -> None:
    """Plot the probability of 1 in each class as bars; of many classes, the most frequent."""
    kept = np.sort(np.argsort(-prior, kind="stable")[:_MAX_CLASSES])
    ax.bar(range(len(kept)), np.nan_to_num(probability[kept]), 0.8, color=[styles[k].color for k in kept])
    ticks(ax, "x", [model.classes_.tolist()[k] for k in kept], 8.0 if len(kept) <= 10 else 7.0, 14)
    ax.set(ylim=(0, 1), ylabel="probability of 1")
    if len(kept) < len(probability):
        _add_to_title(ax, [f"{len(kept)} of {len(probability)} {model._group_word}"])


def _draw_histograms(
    ax: Any, distribution: Marginal, styles: list[GroupStyle], cells: dict[int, np.ndarray], values: Any
) -> float:
    """Plot the histogram of each class with a color. Return the largest height."""
    if distribution.is_continuous:
        limits = (
            np.log([values.min(), values.max()])
            if distribution.scale == "log"
            else np.array([values.min(), values.max()])
        )
        limits = limits if limits[1] > limits[0] else limits + np.array([-0.5, 0.5])
        edges = np.linspace(limits[0], limits[1], int(np.clip(np.sqrt(len(values)), 8, 40)) + 1)
        edges = np.exp(edges) if distribution.scale == "log" else edges
    else:
        edges = np.append(distribution.at, distribution.at[-1] + 1) - 0.5
    highest = 0.0
    for k, values_of_class in cells.items():
        if styles[k].own and len(values_of_class):
            height = np.histogram(values_of_class, edges)[0] / len(values_of_class) / np.diff(edges)
            ax.stairs(height, edges, fill=True, color=styles[k].color, alpha=0.2, zorder=1)
            highest = max(highest, float(height.max()))
    return highest


def _upper_limit(density: np.ndarray) -> float:
    """Return the limit of the y axis, ignoring infinite densities."""
    finite = density[np.isfinite(density)]
    return 1.05 * float(finite.max(initial=0.0)) or 1.0


def _draw_levels(ax: Any, model: Any, distribution: Marginal, prior: np.ndarray, styles: list[GroupStyle]) -> bool:
    """Plot bars for each level and class, or a heat map for many classes. Return whether colors are classes."""
    kept = most_informative_levels(distribution.density, prior, _MAX_LEVELS)
    density = distribution.density[kept]
    labels = [distribution.levels[k] for k in kept]
    notes = [f"{len(kept)} of {len(distribution.levels)} levels"] if len(kept) < len(distribution.levels) else []
    classes = model.classes_.tolist()
    if len(classes) > MOST_COLORS:
        kept_classes = np.sort(np.argsort(-prior, kind="stable")[:_MAX_CLASSES])
        image = ax.imshow(density[:, kept_classes].T, cmap="Blues", vmin=0, vmax=_upper_limit(density), aspect="auto")
        ticks(ax, "x", labels, 7.0, 14)
        ticks(ax, "y", [classes[k] for k in kept_classes], 7.0, 14)
        ax.figure.colorbar(image, ax=ax, label="probability", pad=0.02)
        if len(kept_classes) < len(classes):
            notes.append(f"{len(kept_classes)} of {len(classes)} {model._group_word}")
        hide_spines(ax)
        _add_to_title(ax, notes)
        return False
    _add_to_title(ax, notes)
    width = 0.8 / len(classes)
    for k, style in enumerate(styles):
        left = np.arange(len(labels)) + (k - (len(classes) - 1) / 2) * width
        ax.bar(left, np.nan_to_num(density[:, k]), width, color=style.color)
    ticks(ax, "x", labels, 9.0 if len(labels) <= 6 else 7.0, 14)
    ax.set_ylabel("probability")
    return True


def _add_to_title(ax: Any, notes: list[str]) -> None:
    """Add the numbers of shown levels and classes to the title."""
    if notes:
        set_title(ax, ax.get_title(), f"({', '.join(notes)})", size=9)


def _to_table(distribution: Marginal, classes: list[Any]) -> PlotTable:
    """Return the distribution of a column as a table."""
    values = list(distribution.levels) if distribution.levels else distribution.at.tolist()
    kind = "density" if distribution.is_continuous else "probability"
    n = len(classes)
    return {
        "column": [distribution.name] * (n * len(values)),
        "class": [label for label in classes for _ in values],
        "value": values * n,
        "what": [kind] * (n * len(values)),
        "height": np.asarray(distribution.density, dtype=float).T.ravel(),
    }


class _PlotRows:
    """Rows to plot as histograms, with their classes."""

    def __init__(self, model: Any, X: Any, y: Any) -> None:
        if y is None:
            raise DataError("y is missing; expected the class of each row of X.")
        labels = as_array(read_more_rows(model, X, y, None)[0].columns[model._target])
        self.model = model
        self.table = open_rows(model, X)
        self.masks = [labels == label for label in model.classes_]

    def cells(self, column: PlotColumn) -> dict[int, np.ndarray]:
        """Return the known cells of a column by class."""
        rows = chunk_of(self.model._factor_cells(self.table, column.scored), slice(None))[:, column.position].astype(
            float
        )
        return {k: rows[mask & np.isfinite(rows)] for k, mask in enumerate(self.masks)}

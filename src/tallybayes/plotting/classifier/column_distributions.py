"""Plots of the class-conditional distributions of the columns, with histograms of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.errors import DataError
from tallybayes.models.inputs.input_format import open_rows
from tallybayes.plotting.charts import heat_map
from tallybayes.plotting.classifier.groups import Groups, groups_of, labels_of
from tallybayes.plotting.classifier.marginals import (
    PlotColumn,
    cells_of,
    columns_in,
    most_informative_columns,
    most_informative_levels,
    select,
)
from tallybayes.plotting.plot import Plot, PlotTable, table_of
from tallybayes.plotting.style import (
    MOST_COLORS,
    NOTE,
    GroupStyle,
    group_handles,
    name_of,
    note_above,
    panels,
    set_log_ticks,
    set_title,
    ticks,
    words,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tallybayes.models.classification.class_conditional import ClassConditionalModel
    from tallybayes.typing import Labels, Names, Rows

_MAX_COLUMNS = 12  # maximum number of columns
_MAX_LEVELS = 16  # maximum number of levels
_MAX_CLASSES = 40  # maximum number of classes


def plot_columns(
    model: ClassConditionalModel, columns: Names | None = None, X: Rows | None = None, y: Labels | None = None
) -> Plot:
    """Plot the class-conditional distribution of each column: densities of continuous, bars of categorical columns.

    Parameters
    ----------
    model : a fitted classifier
    columns : name, or list of names, optional
        Columns to plot; by default all, or the twelve with the largest mutual information with the class.
    X, y : as for `fit`, optional
        Rows whose histograms are plotted behind the densities.
    """
    groups = groups_of(model)
    shown = columns_in(model)
    note = ""
    if columns is None:
        shown, note = most_informative_columns(groups.log_prior, shown, _MAX_COLUMNS)
    else:
        shown = select({name: column for column in shown for name in (column.key, column.name)}, columns)
    axes = panels(len(shown), 3, 4.0, 2.8)
    cells = _cells_by_class(model, groups, shown, X, y)
    tables: list[PlotTable] = []
    has_class_colors = False
    for ax, column, known in zip(axes, shown, cells, strict=False):
        density = column.density()
        tables.append(_to_table(column, density, groups.labels))
        set_title(ax, name_of(column.name))
        reason = "no data" if not len(density) else "constant" if column.position in column.scored.constant else ""
        if reason and not column.family.is_bag_of_words:
            ax.text(0.5, 0.5, reason, ha="center", transform=ax.transAxes, color=NOTE)
            ax.set(xticks=[], yticks=[])
        elif column.family.is_binary:
            _draw_probabilities(ax, density[-1], groups)
        elif column.levels:
            _draw_levels(ax, column, density, groups)
            has_class_colors |= not ax.images
        else:
            _draw_curves(ax, column, density, groups.styles(), known)
            has_class_colors = True
    figure = axes[0].figure
    if not shown:
        axes[0].set_axis_off()
        axes[0].text(0.5, 0.5, "no columns", ha="center", color=NOTE)
    if has_class_colors:
        handles = group_handles(groups.styles(), linewidth=4)
        title = words(groups.target, 24)
        figure.legend(handles=handles, title=title, loc="outside right upper", frameon=False, fontsize=9)
    note_above(figure, note)
    return Plot(axes, *tables)


def _cells_by_class(
    model: ClassConditionalModel, groups: Groups, columns: list[PlotColumn], X: Rows | None, y: Labels | None
) -> list[list[np.ndarray]]:
    """Return the known cells of each continuous column by class; empty lists without rows."""
    if X is None:
        return [[] for _ in columns]
    if y is None:
        raise DataError("y is missing; expected the class of each row of X.")
    table = open_rows(model, X)
    masks = groups.of_labels(labels_of(model, X, y))
    cells = [np.zeros(0) if column.levels else cells_of(model, table, column) for column in columns]
    return [[known[mask & np.isfinite(known)] for mask in masks] if len(known) else [] for known in cells]


def _draw_curves(
    ax: Axes, column: PlotColumn, density: np.ndarray, styles: list[GroupStyle], cells: list[np.ndarray]
) -> None:
    """Plot the density of each class over the histogram of its rows; gray ones are behind."""
    grid = column.grid
    is_continuous = column.family.is_continuous
    ax.set(xscale=column.scale, ylabel="density" if is_continuous else "probability")
    highest = _draw_histograms(ax, column, styles, cells)
    for style, of_class in zip(styles, density.T, strict=True):
        ax.plot(grid, of_class, marker=None if is_continuous else "o", markersize=3, **style.line)
    top = _upper_limit(density)
    ax.set_ylim(0, max(top, min(1.05 * highest, 2 * top)))
    if not is_continuous and len(grid) <= 3:
        ax.set_xticks(grid)
    if column.scale == "log":
        set_log_ticks(ax, grid.min(), grid.max())


def _draw_histograms(ax: Axes, column: PlotColumn, styles: list[GroupStyle], cells: list[np.ndarray]) -> float:
    """Plot the histogram of each class with a color. Return the largest height."""
    grid = column.grid
    values = np.concatenate([*cells, np.zeros(0)])
    values = values[(values >= grid.min()) & (values <= grid.max())]
    if not len(values):
        return 0.0
    edges = np.append(grid, grid[-1] + 1) - 0.5
    if column.family.is_continuous:
        is_log = column.scale == "log"
        n_bins = int(np.clip(np.sqrt(len(values)), 8, 40))
        edges = np.histogram_bin_edges(np.log(values) if is_log else values, n_bins)
        edges = np.exp(edges) if is_log else edges
    highest = 0.0
    for style, of_class in zip(styles, cells, strict=True):
        if style.own and len(of_class):
            height = np.histogram(of_class, edges)[0] / len(of_class) / np.diff(edges)
            ax.stairs(height, edges, fill=True, color=style.color, alpha=0.2, zorder=1)
            highest = max(highest, height.max())
    return highest


def _upper_limit(density: np.ndarray) -> float:
    """Return the limit of the y axis, ignoring infinite densities."""
    return 1.05 * float(density[np.isfinite(density)].max(initial=0.0)) or 1.0


def _draw_probabilities(ax: Axes, probability: np.ndarray, groups: Groups) -> None:
    """Plot the probability of 1 in each class as bars; of many classes, the most frequent."""
    kept = groups.most_frequent(_MAX_CLASSES)
    styles = groups.styles()
    ax.bar(range(len(kept)), np.nan_to_num(probability[kept]), 0.8, color=[styles[k].color for k in kept])
    ticks(ax, "x", [groups.labels[k] for k in kept], 8.0 if len(kept) <= 10 else 7.0, 14)
    ax.set(ylim=(0, 1), ylabel="probability of 1")
    _add_to_title(ax, (len(kept), len(probability), groups.noun))


def _draw_levels(ax: Axes, column: PlotColumn, density: np.ndarray, groups: Groups) -> None:
    """Plot bars for each level and class, or a heat map for many classes."""
    from matplotlib.colors import Normalize

    kept = most_informative_levels(density, groups.prior, _MAX_LEVELS)
    labels = [column.levels[k] for k in kept]
    n_classes = len(groups.labels)
    classes = groups.most_frequent(_MAX_CLASSES)
    shown = density[kept][:, classes]
    _add_to_title(ax, (len(kept), len(density), "levels"), (len(classes), n_classes, groups.noun))
    if n_classes > MOST_COLORS:
        names = [groups.labels[k] for k in classes]
        norm = Normalize(0, _upper_limit(shown))
        layout: dict[str, Any] = {"size": 7.0, "widest": 14, "aspect": "auto"}
        heat_map(ax, shown.T, names, labels, norm, label="probability", pad=0.02, shrink=1.0, **layout)
        return
    width = 0.8 / n_classes
    for k, style in enumerate(groups.styles()):
        center = np.arange(len(labels)) + (k - (n_classes - 1) / 2) * width
        ax.bar(center, np.nan_to_num(shown[:, k]), width, color=style.color)
    ticks(ax, "x", labels, 9.0 if len(labels) <= 6 else 7.0, 14)
    ax.set_ylabel("probability")


def _add_to_title(ax: Axes, *numbers: tuple[int, int, str]) -> None:
    """Add how many levels or classes are shown to the title, if not all are."""
    notes = [f"{shown} of {n} {noun}" for shown, n, noun in numbers if shown < n]
    if notes:
        set_title(ax, ax.get_title(), f"({', '.join(notes)})", size=9)


def _to_table(column: PlotColumn, density: np.ndarray, classes: list[object]) -> PlotTable:
    """Return the distribution of a column as a table."""
    values = list(column.levels) or column.grid.tolist()
    table = table_of(("class", "value", "height"), classes, values, density.T)
    heights = table.pop("height")
    kind = "density" if column.family.is_continuous else "probability"
    return {"column": [column.name] * len(heights), **table, "what": kind, "height": heights}

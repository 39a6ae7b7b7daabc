"""Plots of the class-conditional distributions of the columns, with histograms of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.errors import DataError
from tallybayes.models.inputs.input_format import open_rows
from tallybayes.plotting.classifier.groups import Groups, groups_of, labels_of
from tallybayes.plotting.classifier.marginals import (
    Marginal,
    PlotColumn,
    cells_of,
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
    group_handles,
    hide_spines,
    hide_top_right_spines,
    name_of,
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
    data = None if X is None else _PlotRows(model, X, y)
    tables: list[PlotTable] = []
    has_class_colors = False
    for ax, column in zip(axes, shown, strict=False):
        distribution = marginal(column)
        tables.append(_to_table(distribution, groups.labels))
        ax.set_title(name_of(column.name), fontsize=11)
        if distribution.constant or not len(distribution.at):
            reason = "constant" if len(distribution.at) else "no data"
            ax.text(0.5, 0.5, reason, ha="center", transform=ax.transAxes, color=NOTE)
            ax.set(xticks=[], yticks=[])
        elif column.scored.family.is_binary:
            _draw_probabilities(ax, distribution.density[-1], groups)
        elif distribution.levels:
            has_class_colors |= _draw_levels(ax, distribution, groups)
        else:
            has_class_colors = True
            _draw_curves(ax, distribution, groups.styles(), data.cells(column) if data else {})
        if not ax.images:
            hide_top_right_spines(ax)
    figure = axes[0].figure
    if not shown:
        axes[0].set_axis_off()
        axes[0].text(0.5, 0.5, "no columns", ha="center", color=NOTE)
    if has_class_colors:
        handles = group_handles(groups.styles(), linewidth=4)
        title = words(groups.target, 24)
        figure.legend(handles=handles, title=title, loc="outside right upper", frameon=False, fontsize=9)
    if note:
        figure.suptitle(note, fontsize=10, color=NOTE)
    return Plot(axes, *tables)


def _draw_curves(ax: Axes, distribution: Marginal, styles: list[GroupStyle], cells: dict[int, np.ndarray]) -> None:
    """Plot the density of each class; gray ones are behind."""
    ax.set_xscale(distribution.scale)
    markers: dict[str, Any] = {} if distribution.is_continuous else {"marker": "o", "markersize": 3}
    low = float(distribution.at.min())
    high = float(distribution.at.max())
    values = np.concatenate(list(cells.values())) if cells else np.zeros(0)
    values = values[(values >= low) & (values <= high)]
    height = _draw_histograms(ax, distribution, styles, cells, values) if len(values) else 0.0
    for k, style in enumerate(styles):
        line: dict[str, Any] = {"linewidth": 1.6, "zorder": 3} if style.own else {"linewidth": 0.7, "zorder": 2}
        ax.plot(distribution.at, distribution.density[:, k], color=style.color, **line, **markers)
    ax.set_ylabel("density" if distribution.is_continuous else "probability")
    ax.set_ylim(0, max(_upper_limit(distribution.density), min(1.05 * height, 2 * _upper_limit(distribution.density))))
    if not distribution.is_continuous and len(distribution.at) <= 3:
        ax.set_xticks(distribution.at)
    if distribution.scale == "log":
        set_log_ticks(ax, low, high)


def _draw_probabilities(ax: Axes, probability: np.ndarray, groups: Groups) -> None:
    """Plot the probability of 1 in each class as bars; of many classes, the most frequent."""
    kept = groups.most_frequent(_MAX_CLASSES)
    styles = groups.styles()
    ax.bar(range(len(kept)), np.nan_to_num(probability[kept]), 0.8, color=[styles[k].color for k in kept])
    ticks(ax, "x", [groups.labels[k] for k in kept], 8.0 if len(kept) <= 10 else 7.0, 14)
    ax.set(ylim=(0, 1), ylabel="probability of 1")
    if len(kept) < len(probability):
        _add_to_title(ax, [f"{len(kept)} of {len(probability)} {groups.noun}"])


def _draw_histograms(
    ax: Axes, distribution: Marginal, styles: list[GroupStyle], cells: dict[int, np.ndarray], values: np.ndarray
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


def _draw_levels(ax: Axes, distribution: Marginal, groups: Groups) -> bool:
    """Plot bars for each level and class, or a heat map for many classes. Return whether colors are classes."""
    kept = most_informative_levels(distribution.density, groups.prior, _MAX_LEVELS)
    density = distribution.density[kept]
    labels = [distribution.levels[k] for k in kept]
    notes = [f"{len(kept)} of {len(distribution.levels)} levels"] if len(kept) < len(distribution.levels) else []
    classes = groups.labels
    if len(classes) > MOST_COLORS:
        kept_classes = groups.most_frequent(_MAX_CLASSES)
        image = ax.imshow(density[:, kept_classes].T, cmap="Blues", vmin=0, vmax=_upper_limit(density), aspect="auto")
        ticks(ax, "x", labels, 7.0, 14)
        ticks(ax, "y", [classes[k] for k in kept_classes], 7.0, 14)
        ax.figure.colorbar(image, ax=ax, label="probability", pad=0.02)
        if len(kept_classes) < len(classes):
            notes.append(f"{len(kept_classes)} of {len(classes)} {groups.noun}")
        hide_spines(ax)
        _add_to_title(ax, notes)
        return False
    _add_to_title(ax, notes)
    width = 0.8 / len(classes)
    for k, style in enumerate(groups.styles()):
        left = np.arange(len(labels)) + (k - (len(classes) - 1) / 2) * width
        ax.bar(left, np.nan_to_num(density[:, k]), width, color=style.color)
    ticks(ax, "x", labels, 9.0 if len(labels) <= 6 else 7.0, 14)
    ax.set_ylabel("probability")
    return True


def _add_to_title(ax: Axes, notes: list[str]) -> None:
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

    def __init__(self, model: ClassConditionalModel, X: Rows, y: Labels | None) -> None:
        if y is None:
            raise DataError("y is missing; expected the class of each row of X.")
        self.model = model
        self.table = open_rows(model, X)
        self.masks = groups_of(model).of_labels(labels_of(model, X, y))

    def cells(self, column: PlotColumn) -> dict[int, np.ndarray]:
        """Return the known cells of a column by class."""
        cells = cells_of(self.model, self.table, column)
        return {k: cells[mask & np.isfinite(cells)] for k, mask in enumerate(self.masks)}

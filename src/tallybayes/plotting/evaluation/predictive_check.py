"""Plot of a posterior predictive check of one column."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.plotting.plot import Plot, PlotAxes, PlotTable
from tallybayes.plotting.style import (
    COLORS,
    NOTE,
    all_axes,
    hide_top_right_spines,
    name_of,
    panels,
    set_title,
    ticks,
    words,
)

if TYPE_CHECKING:
    from tallybayes.results.predictive_check import PredictiveCheck

_MOST = 12  # maximum number of classes


def plot_predictive_check(check: PredictiveCheck, column: Any, ax: PlotAxes = None, n_draws: int = 100) -> Plot:
    """Plot the histogram of a column in each class over the 95 % range of replicated histograms."""
    observed, drawn, labels, levels = check.replicates(column, n_draws)
    rows_of = Counter(labels.tolist())
    frequent = {label for label, _ in rows_of.most_common(_MOST)}
    classes = [label for label in rows_of if label in frequent]
    axes = all_axes(ax) if ax is not None else panels(len(classes), 3, 4.5, 3.2)
    tables: list[PlotTable] = []
    for panel, label in zip(axes, classes, strict=False):
        in_class = labels == label
        cells = observed[in_class]
        rows = drawn[:, in_class]
        edges = _edges(cells, rows, levels)
        observed_counts = np.histogram(cells[~np.isnan(cells)], edges)[0]
        counts = np.array([np.histogram(row[~np.isnan(row)], edges)[0] for row in rows])
        low, middle, high = np.quantile(counts, [0.025, 0.5, 0.975], axis=0)
        center = (edges[:-1] + edges[1:]) / 2
        width = np.diff(edges)
        panel.bar(center, high - low, width, low, color=COLORS[1], alpha=0.45, label="95 % of the draws")
        panel.hlines(middle, edges[:-1], edges[1:], color=COLORS[1], linewidth=1)
        panel.stairs(observed_counts, edges, color=COLORS[0], linewidth=1.6, label="data")
        set_title(panel, f"{name_of(column, 20)} in class {words(label, 20)}")
        bins = {"low": edges[:-1], "high": edges[1:]}
        counts_of_bins = {"rows": observed_counts, "drawn_low": low, "drawn": middle, "drawn_high": high}
        tables.append({"class": label, **bins, **counts_of_bins})
        panel.set_ylim(bottom=0)
        if levels:
            ticks(panel, "x", levels, 8.0, 16)
        hide_top_right_spines(panel)
    axes[0].set_ylabel("rows")
    if ax is None:  # beside the panels
        axes[0].figure.legend(
            *axes[0].get_legend_handles_labels(), loc="outside right upper", frameon=False, fontsize=9
        )
    else:
        axes[0].legend(frameon=False)
    if len(classes) < len(rows_of) and ax is None:
        note = f"showing {len(classes)} of {len(rows_of)} classes, the most frequent"
        axes[0].figure.suptitle(note, fontsize=10, color=NOTE)
    return Plot(axes, *tables)


def _edges(cells: np.ndarray, rows: np.ndarray, levels: tuple[Any, ...]) -> np.ndarray:
    """Return bin edges: one bin per level; equal integer widths for integers; else 30 bins."""
    if levels:
        return np.arange(len(levels) + 1) - 0.5
    values = np.concatenate([cells, rows.ravel()])
    values = values[~np.isnan(values)]
    if not len(values):
        return np.array([-0.5, 0.5])
    low, high = np.nanquantile(values, [0.0005, 0.9995])
    known = cells[~np.isnan(cells)]
    low = min(low, known.min(initial=low))
    high = max(high, known.max(initial=high))
    if (known == np.floor(known)).all() and high - low > 1:
        step = max(1.0, np.ceil((high - low + 1) / 40))
        return np.arange(np.floor(low), high + step + 0.5, step) - 0.5
    return np.linspace(low, high if high > low else low + 1.0, 31)

"""Plot of a posterior predictive check of one column."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from tallybayes.plotting.plot import Plot, PlotAxes, PlotTable
from tallybayes.plotting.style import (
    COLORS,
    legend_beside,
    name_of,
    note_above,
    panels,
    set_title,
    shown_of,
    ticks,
    words,
)

if TYPE_CHECKING:
    from tallybayes.results.predictive_check import PredictiveCheck
    from tallybayes.typing import Name

_MOST = 12  # maximum number of classes
_DRAWS = 100


def plot_predictive_check(check: PredictiveCheck, column: Name, ax: PlotAxes = None) -> Plot:
    """Plot the histogram of a column in each class over the 95 % range of replicated histograms."""
    observed, drawn, labels, levels = check.replicates(column, _DRAWS)
    rows_of = Counter(labels.tolist())
    frequent = {label for label, _ in rows_of.most_common(_MOST)}
    classes = [label for label in rows_of if label in frequent]
    axes = panels(len(classes), 3, 4.5, 3.2, ax)
    tables: list[PlotTable] = []
    for panel, label in zip(axes, classes, strict=False):
        in_class = labels == label
        samples = np.concatenate([observed[None, in_class], drawn[:, in_class]])
        edges = _edges(samples, has_levels=bool(levels))
        rows, *counts = (np.histogram(sample[~np.isnan(sample)], edges)[0] for sample in samples)
        low, middle, high = np.quantile(counts, [0.025, 0.5, 0.975], axis=0)
        bins = {"align": "edge", "color": COLORS[1], "alpha": 0.45, "label": "95 % of the draws"}
        panel.bar(edges[:-1], high - low, np.diff(edges), low, **bins)
        panel.hlines(middle, edges[:-1], edges[1:], color=COLORS[1], linewidth=1)
        panel.stairs(rows, edges, color=COLORS[0], label="data")
        set_title(panel, f"{name_of(column, 20)} in class {words(label, 20)}")
        heights = {"rows": rows, "drawn_low": low, "drawn": middle, "drawn_high": high}
        tables.append({"class": label, "low": edges[:-1], "high": edges[1:], **heights})
        panel.set_ylim(bottom=0)
        if levels:
            ticks(panel, "x", levels, 8.0, 16)
    axes[0].set_ylabel("rows")
    legend_beside(axes[min(len(axes), 2 if len(axes) == 4 else 3) - 1])
    if ax is None:
        note_above(axes[0].figure, shown_of(len(classes), len(rows_of), "classes", ", the most frequent"))
    return Plot(axes, *tables)


def _edges(samples: np.ndarray, *, has_levels: bool) -> np.ndarray:
    """Return bin edges of samples, the first of which is observed.

    Levels have one bin each, whole numbers bins of equal whole widths, other numbers 30 bins.
    """
    known = samples[~np.isnan(samples)]
    observed = samples[0][~np.isnan(samples[0])]
    if not len(known):
        return np.array([-0.5, 0.5])
    low, high = np.quantile(known, [0.0005, 0.9995])
    low = min(low, observed.min(initial=low))
    high = max(high, observed.max(initial=high))
    if (observed == np.floor(observed)).all() and high - low > 1:
        step = max(1.0, np.ceil((high - low + 1) / 40))
        return np.arange(np.floor(low), high + step + 0.5, step) - 0.5
    return np.linspace(low, high if high > low else low + 1.0, 31)

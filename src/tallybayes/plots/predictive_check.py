"""A picture of one column beside data drawn from the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.plots.style import COLOURS, quiet, words

if TYPE_CHECKING:
    from tallybayes.insight.predictive_check import PredictiveCheck


def plot_predictive_check(check: PredictiveCheck, column: Any, ax: Any = None, n_draws: int = 100) -> Any:
    """The histogram of a column in every class, over what 95 % of the draws look like."""
    observed, drawn, labels, levels = check.replicates(column, n_draws)
    classes = list(dict.fromkeys(labels.tolist()))[:12]
    axes = np.atleast_1d(ax) if ax is not None else _panels(len(classes))
    for panel, label in zip(axes.ravel(), classes, strict=False):
        mine = labels == label
        cells, rows = observed[mine], drawn[:, mine]
        edges = _edges(cells, rows, levels)
        real = np.histogram(cells[~np.isnan(cells)], edges)[0]
        counts = np.array([np.histogram(row[~np.isnan(row)], edges)[0] for row in rows])
        low, middle, high = np.quantile(counts, [0.025, 0.5, 0.975], axis=0)
        centre, width = (edges[:-1] + edges[1:]) / 2, np.diff(edges)
        panel.bar(centre, high - low, width, low, color=COLOURS[1], alpha=0.45, label="95 % of the draws")
        panel.hlines(middle, edges[:-1], edges[1:], color=COLOURS[1], linewidth=1)
        panel.stairs(real, edges, color=COLOURS[0], linewidth=1.6, label="data")
        panel.set_title(words(f"{column} in class {label}"))
        panel.set_ylim(bottom=0)
        if levels:
            long = len(levels) > 5 or max(len(str(level)) for level in levels) > 8
            turned = {"rotation": 60, "ha": "right", "rotation_mode": "anchor"} if long else {}
            panel.set_xticks(range(len(levels)), [words(level) for level in levels], **turned)
        quiet(panel)
    axes.ravel()[0].set_ylabel("rows")
    axes.ravel()[0].legend(frameon=False)
    return axes


def _panels(n: int) -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("pictures need matplotlib.\n    Install it with pip install 'tallybayes[plot]'.") from None
    across = min(n, 3)
    down = -(-n // across)
    _, axes = plt.subplots(down, across, figsize=(4.5 * across, 3.2 * down), layout="constrained", squeeze=False)
    for panel in axes.ravel()[n:]:
        panel.set_visible(False)
    return axes.ravel()[:n]


def _edges(cells: np.ndarray, rows: np.ndarray, levels: tuple[Any, ...]) -> np.ndarray:
    """Bins: one per level; for whole data of whole widths, so that all hold equally many values; else 30."""
    if levels:
        return np.arange(len(levels) + 1) - 0.5
    every = np.concatenate([cells, rows.ravel()])
    every = every[~np.isnan(every)]
    if not len(every):
        return np.array([-0.5, 0.5])
    low, high = np.nanquantile(every, [0.0005, 0.9995])
    known = cells[~np.isnan(cells)]
    low, high = min(low, known.min(initial=low)), max(high, known.max(initial=high))
    if (known == np.floor(known)).all() and high - low > 1:
        step = max(1.0, np.ceil((high - low + 1) / 40))
        return np.arange(np.floor(low), high + step + 0.5, step) - 0.5
    return np.linspace(low, high if high > low else low + 1.0, 31)

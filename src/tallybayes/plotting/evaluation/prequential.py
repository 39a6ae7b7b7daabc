"""Plots of a prequential evaluation: metrics and drift by the number of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tallybayes.plotting.plot import Plot, PlotAxes, table_of
from tallybayes.plotting.style import (
    WIDEST,
    group_styles,
    hide_spines,
    legend_beside,
    new_axes,
    note_above,
    panels,
    set_title,
    words,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tallybayes.results.model_curves import Prequential

_MOST_COLUMNS = 30


def plot_prequential(result: Prequential, metrics: Sequence[str], ax: PlotAxes = None) -> Plot:
    """Plot each metric in a panel: batches as points and exponentially weighted means as curves, by model."""
    axes = panels(len(metrics), 2, 5.6, 3.9, ax)
    ends = np.cumsum(result.rows)
    styles = group_styles(result.names, noun="models")
    tables = []
    for panel, metric in zip(axes, metrics, strict=True):
        batches = getattr(result, metric)
        curves = result.decayed_mean(metric)
        for name, style, batch, curve in zip(result.names, styles, batches, curves, strict=True):
            panel.plot(ends, batch, ".", color=style.color, alpha=0.25, markersize=4)
            panel.plot(ends, curve, color=style.color, linewidth=1.8)
            tables.append({"model": name, "what": metric, "rows": ends, "batch": batch, "decayed_mean": curve})
        shown = curves[~np.isnan(curves)]
        top = max(1.6 * np.quantile(shown, 0.98), 1.05 * shown.max()) if len(shown) else 1.0
        panel.set(ylim=(0, min(top, np.nanmax(batches, initial=1e-9) * 1.05) or 1.0), xlim=(0, ends[-1]), xlabel="rows")
        set_title(panel, result.LABELS[metric])
    legend_beside(axes[-1], styles=styles)
    if ax is None:
        size = f"{int(np.median(result.rows)):,} rows"
        note_above(axes[0].figure, f"points: batches of {size}; curves: exponentially weighted means")
    return Plot(axes, *tables)


def plot_drift(result: Prequential, drift: np.ndarray, name: str, ax: Axes | None = None) -> Plot:
    """Plot the drift of each column by batch as a heat map, the columns with the most drift first.

    Gray cells are undefined: no rows were counted before, or all values of the column were equal.

    Parameters
    ----------
    result : Prequential
    drift : ndarray of shape (batches, columns)
        The drift of one model in bits.
    name : str
        Name of the model.
    ax : matplotlib Axes, optional
    """
    finite = drift[np.isfinite(drift)]
    # The darkest color is not that of a few outliers, which would make all other cells white.
    typical = max(3 * np.quantile(finite, 0.95), 0.1) if len(finite) else 1.0
    top = max(min(finite.max(initial=0.0), typical), 1e-9)
    clipped = np.where(np.isfinite(drift), np.minimum(drift, top), -1.0)
    order = np.lexsort((-clipped.sum(axis=0), -clipped.max(axis=0, initial=-1.0)))[:_MOST_COLUMNS]
    columns = [result.columns[c] for c in order]
    n = len(columns)
    bits = drift[:, order].T
    ends = np.cumsum(result.rows)
    ax = new_axes(ax, 8.0, 1.4 + 0.24 * max(4, n))
    cells = np.ma.masked_where(~np.isfinite(bits), bits)
    mesh = ax.pcolormesh([0, *ends], np.arange(n + 1) - 0.5, cells, cmap="Blues", vmin=0, vmax=top)
    ax.set_facecolor("0.9")
    ax.set_yticks(range(n), [words(column, WIDEST) for column in columns], fontsize=8)
    ax.set(ylim=(n - 0.5, -0.5), xlabel="rows")
    hide_spines(ax)
    n_columns = len(result.columns)
    subset = f"the {n} of {n_columns} columns with the most drift" if n < n_columns else "by column"
    set_title(ax, f"drift of {words(name, WIDEST)}, {subset}")
    extend = "max" if (finite > top).any() else "neither"
    ax.figure.colorbar(mesh, ax=ax, label="bits per cell", shrink=0.9, extend=extend)
    return Plot(ax, table_of(("column", "rows", "bits"), columns, ends.tolist(), bits))

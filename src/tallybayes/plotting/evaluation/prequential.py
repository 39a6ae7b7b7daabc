"""Plots of a prequential evaluation: metrics and drift by the number of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tallybayes.plotting.plot import Plot, PlotAxes, table_of
from tallybayes.plotting.style import (
    WIDEST,
    all_axes,
    group_styles,
    hide_top_right_spines,
    legend_beside,
    note_above,
    panels,
    words,
)

if TYPE_CHECKING:
    from tallybayes.results.model_curves import Prequential

_MOST_COLUMNS = 30


def plot_prequential(result: Prequential, metrics: Sequence[str], ax: PlotAxes = None) -> Plot:
    """Plot each metric in a panel: batches as points and exponentially weighted means as curves, by model."""
    axes = panels(len(metrics), 2, 5.6, 3.9) if ax is None else all_axes(ax)
    ends = np.cumsum(result.rows)
    tables = []
    for panel, metric in zip(axes, metrics, strict=True):
        values = getattr(result, metric)
        curves = result.decayed_mean(metric)
        for m, style in enumerate(group_styles(result.names, noun="models")):
            panel.plot(ends, values[m], ".", color=style.color, alpha=0.25, markersize=4)
            panel.plot(ends, curves[m], color=style.color, label=style.label, linewidth=1.8)
            name = result.names[m]
            tables.append({"model": name, "what": metric, "rows": ends, "batch": values[m], "decayed_mean": curves[m]})
        shown = curves[~np.isnan(curves)]
        top = max(1.6 * np.quantile(shown, 0.98), 1.05 * shown.max()) if len(shown) else 1.0
        panel.set_ylim(0, min(top, np.nanmax(values, initial=1e-9) * 1.05) or 1.0)
        panel.set_xlim(0, ends[-1])
        panel.set_xlabel("rows")
        panel.set_title(result.LABELS[metric], fontsize=11)
        hide_top_right_spines(panel)
    legend_beside(axes[-1])
    if ax is None:
        size = f"{int(np.median(result.rows)):,} rows"
        note_above(axes[0].figure, f"points: batches of {size}; curves: exponentially weighted means")
    return Plot(axes, *tables)


def plot_drift(result: Prequential, m: int, ax: PlotAxes = None) -> Plot:
    """Plot the drift of each column by batch as a heat map, the columns with the most drift first.

    Gray cells are undefined: no rows were counted before, or all values of the column were equal.
    """
    assert result.drift is not None
    bits = result.drift[m]
    ends = np.cumsum(result.rows)
    top = _darkest(bits)
    clipped = np.where(np.isfinite(bits), np.minimum(bits, top), -1.0)
    order = np.lexsort((-clipped.sum(axis=0), -clipped.max(axis=0, initial=-1.0)))[:_MOST_COLUMNS]
    names = [words(result.columns[c], WIDEST) for c in order]
    height = 1.4 + 0.24 * max(4, len(order))
    panel = all_axes(ax, figsize=(8.0, height))[0]
    shown = np.ma.masked_where(~np.isfinite(bits[:, order].T), clipped[:, order].T)
    edges = np.concatenate([[0], ends])
    mesh = panel.pcolormesh(edges, np.arange(len(order) + 1), shown, cmap="Blues", vmin=0, vmax=top, shading="flat")
    panel.set_facecolor("0.9")
    panel.set_yticks(np.arange(len(order)) + 0.5, names, fontsize=8)
    panel.invert_yaxis()
    panel.set_xlabel("rows")
    subset = (
        f"the {len(order)} of {len(result.columns)} columns with the most drift"
        if len(order) < len(result.columns)
        else "by column"
    )
    panel.set_title(f"drift of {words(result.names[m], WIDEST)}, {subset}", fontsize=11)
    extend = "max" if (bits[np.isfinite(bits)] > top).any() else "neither"
    panel.figure.colorbar(mesh, ax=panel, label="bits per cell", shrink=0.9, extend=extend)
    return Plot(
        panel, table_of(("column", "rows", "bits"), [result.columns[c] for c in order], ends.tolist(), bits[:, order].T)
    )


def _darkest(bits: np.ndarray) -> float:
    """Return the value of the darkest color, so that a few outliers do not make all other cells white."""
    finite = bits[np.isfinite(bits)]
    if not len(finite):
        return 1.0
    typical = 3 * float(np.quantile(finite, 0.95))
    return max(min(float(finite.max()), max(typical, 0.1)), 1e-9)

"""Pictures of streams: errors as rows came, and how far columns moved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.evaluation.validation.prequential_result import MEASURES
from tallybayes.plotting.plot import Plot, table_of
from tallybayes.plotting.style import (
    WIDEST,
    group_styles,
    hide_top_right_spines,
    legend_beside,
    new_axes,
    note_above,
    panels,
    words,
)

if TYPE_CHECKING:
    from tallybayes.evaluation.validation.prequential_result import Prequential

_MOST_COLUMNS = 30


def plot_prequential(found: Prequential, wanted: Sequence[str], ax: Any = None) -> Plot:
    """A panel for every measure: batches as points, faded means as lines, a color for every model."""
    axes = panels(len(wanted), 2, 5.6, 3.9) if ax is None else np.ravel(ax)
    ends, parts = np.cumsum(found.rows), []
    for panel, what in zip(axes, wanted, strict=True):
        values, curves = getattr(found, what), found.decayed_mean(what)
        for m, look in enumerate(group_styles(found.names, what="models")):
            panel.plot(ends, values[m], ".", color=look.color, alpha=0.25, markersize=4)
            panel.plot(ends, curves[m], color=look.color, label=look.label, linewidth=1.8)
            name = found.names[m]
            parts.append({"model": name, "what": what, "rows": ends, "batch": values[m], "decayed_mean": curves[m]})
        shown = curves[~np.isnan(curves)]
        top = max(1.6 * np.quantile(shown, 0.98), 1.05 * shown.max()) if len(shown) else 1.0
        panel.set_ylim(0, min(top, np.nanmax(values, initial=1e-9) * 1.05) or 1.0)
        panel.set_xlim(0, ends[-1])
        panel.set_xlabel("rows that came")
        panel.set_title(MEASURES[what], fontsize=11)
        hide_top_right_spines(panel)
    legend_beside(axes[-1])
    if ax is None:
        size = f"{int(np.median(found.rows)):,} rows"
        note_above(axes[0].figure, f"Points are batches of {size}, lines are means in which the rows before fade")
    return Plot(axes, *parts)


def plot_drift(found: Prequential, m: int, ax: Any = None) -> Plot:
    """A row for every column, those that moved most at the top; the darker, the farther a batch was.

    Gray is what cannot be told: nothing was counted before, or all numbers of the column were the same.
    """
    assert found.drift is not None
    bits, ends = found.drift[m], np.cumsum(found.rows)
    top = _darkest(bits)
    told = np.where(np.isfinite(bits), np.minimum(bits, top), -1.0)
    order = np.lexsort((-told.sum(axis=0), -told.max(axis=0, initial=-1.0)))[:_MOST_COLUMNS]
    names = [words(found.columns[c], WIDEST) for c in order]
    height = 1.4 + 0.24 * max(4, len(order))
    panel = new_axes(ax, figsize=(8.0, height), layout="constrained")
    panel = np.ravel(panel)[0]
    shown = np.ma.masked_where(~np.isfinite(bits[:, order].T), told[:, order].T)
    edges = np.concatenate([[0], ends])
    mesh = panel.pcolormesh(edges, np.arange(len(order) + 1), shown, cmap="Blues", vmin=0, vmax=top, shading="flat")
    panel.set_facecolor("0.9")
    panel.set_yticks(np.arange(len(order)) + 0.5, names, fontsize=8)
    panel.invert_yaxis()
    panel.set_xlabel("rows that came")
    some = (
        f"the {len(order)} of {len(found.columns)} that moved most" if len(order) < len(found.columns) else "by column"
    )
    panel.set_title(f"drift of {words(found.names[m], WIDEST)}, {some}", fontsize=11)
    more = "max" if (bits[np.isfinite(bits)] > top).any() else "neither"
    panel.figure.colorbar(mesh, ax=panel, label="bits a cell", shrink=0.9, extend=more)
    return Plot(
        panel, table_of(("column", "rows", "bits"), [found.columns[c] for c in order], ends.tolist(), bits[:, order].T)
    )


def _darkest(bits: np.ndarray) -> float:
    """The bits that are drawn darkest: a few batches that are off by orders of magnitude would leave others white."""
    finite = bits[np.isfinite(bits)]
    if not len(finite):
        return 1.0
    often = 3 * float(np.quantile(finite, 0.95))
    return max(min(float(finite.max()), max(often, 0.1)), 1e-9)

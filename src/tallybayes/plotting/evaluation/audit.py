"""Plot of the column drift of an audit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.plotting.plot import Plot
from tallybayes.plotting.style import COLORS, NOTE, OTHERS, WIDEST, hide_top_right_spines, new_axes, words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tallybayes.results.audit import Audit

_MOST_COLUMNS = 30


def plot_audit(audit: Audit, ax: Axes | None = None) -> Plot:
    """Plot the drift of each column with its interval; drifted columns are in color."""
    shown = audit.columns[:_MOST_COLUMNS]
    names = [
        ", ".join(map(str, column.column)) if isinstance(column.column, tuple) else column.column
        for column in audit.columns
    ]
    drifted = [column.column in audit.drifted for column in audit.columns]
    ax = new_axes(ax, figsize=(7.2, 1.5 + 0.28 * max(2, len(shown))))
    bits = np.array([column.bits for column in shown])
    errors = np.array([[column.bits - column.low, column.high - column.bits] for column in shown]).T
    colors = [COLORS[5] if is_drifted else OTHERS for is_drifted in drifted[: len(shown)]]
    ax.barh(range(len(shown)), bits, xerr=errors, color=colors, ecolor=NOTE, error_kw={"elinewidth": 1.2, "capsize": 2})
    ax.set_yticks(range(len(shown)), [words(name, WIDEST) for name in names[: len(shown)]], fontsize=8)
    ax.invert_yaxis()
    ax.axvline(0, color="black", linewidth=0.8)
    n_hidden = len(audit.columns) - len(shown)
    ax.set_xlabel(
        "bits per cell, with 99 % intervals" + (f"; {n_hidden} more columns with less drift" if n_hidden else "")
    )
    note = "color: more than expected by chance" if any(drifted) else "none more than expected by chance"
    ax.set_title(f"Drift by column ({note})", fontsize=11)
    hide_top_right_spines(ax)
    columns: dict[str, Any] = {"column": names, "drifted": drifted}
    columns |= {name: [getattr(column, name) for column in audit.columns] for name in ("bits", "low", "high", "chance")}
    return Plot(ax, columns)

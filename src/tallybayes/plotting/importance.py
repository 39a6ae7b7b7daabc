"""The plot of feature importance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tallybayes.plotting.plot import Plot
from tallybayes.plotting.style import COLORS, hide_top_right_spines, name_of, new_axes, set_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tallybayes.estimation.importance import FeatureImportance


def plot_importance(importance: FeatureImportance, ax: Axes | None = None, most: int = 20) -> Plot:
    """Plot the importance of the most important columns as bars with intervals.

    Parameters
    ----------
    importance : FeatureImportance
    ax : matplotlib Axes, optional
    most : int, default 20
        Maximum number of columns.
    """
    n = min(most, len(importance.columns))
    ax = new_axes(ax, figsize=(6.6, 1.2 + 0.3 * max(n, 1)))
    errors = np.stack([importance.increase - importance.low, importance.high - importance.increase])[:, :n]
    ax.barh(range(n), importance.increase[:n], 0.7, color=COLORS[0])
    ax.errorbar(importance.increase[:n], range(n), xerr=errors, fmt="none", ecolor="#444444", elinewidth=1)
    ax.axvline(0, color="#444444", linewidth=0.8)
    ax.set_yticks(range(n), [name_of(name) for name in importance.columns[:n]], fontsize=9)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(n - 0.4, -0.6)
    ax.set_xlabel("increase of the log loss without the column, nats")
    hide_top_right_spines(ax)
    subset = f"the first {n} of {len(importance.columns)} columns; " if n < len(importance.columns) else ""
    set_title(ax, "Feature importance", f"{subset}{importance.n_rows:,} rows, 95 % intervals")
    return Plot(ax, {name: list(column)[:n] for name, column in importance.to_frame().items()})

"""The plot of feature importance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tallybayes.plotting.charts import horizontal_bars
from tallybayes.plotting.plot import Plot
from tallybayes.plotting.style import COLORS, name_of, set_title

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
    names = [name_of(name) for name in importance.columns[:most]]
    n = len(names)
    ends = importance.low[:n], importance.high[:n]
    ax = horizontal_bars(ax, names, importance.increase[:n], COLORS[0], ends=ends)
    ax.set_xlabel("increase of the log loss without the column, nats")
    subset = f"the first {n} of {len(importance.columns)} columns; " if n < len(importance.columns) else ""
    set_title(ax, "Feature importance", f"{subset}{importance.n_rows:,} rows, 95 % intervals")
    return Plot(ax, importance.to_frame()[:n])

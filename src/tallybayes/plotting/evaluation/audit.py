"""Plot of the column drift of an audit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tallybayes.plotting.charts import horizontal_bars
from tallybayes.plotting.plot import Plot
from tallybayes.plotting.style import COLORS, OTHERS, WIDEST, set_title, words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tallybayes.results.audit import Audit

_MOST_COLUMNS = 30


def plot_audit(audit: Audit, ax: Axes | None = None) -> Plot:
    """Plot the drift of each column with its interval; drifted columns are in color."""
    table: dict[str, list[Any]] = {
        "column": [", ".join(map(str, c.column)) if isinstance(c.column, tuple) else c.column for c in audit.columns],
        "drifted": [column.column in audit.drifted for column in audit.columns],
    }
    table |= {name: [getattr(column, name) for column in audit.columns] for name in ("bits", "low", "high", "chance")}
    names, drifted, bits, low, high, _ = (values[:_MOST_COLUMNS] for values in table.values())
    colors = [COLORS[5] if is_drifted else OTHERS for is_drifted in drifted]
    ax = horizontal_bars(ax, [words(name, WIDEST) for name in names], bits, colors, ends=(low, high))
    n_hidden = len(audit.columns) - len(names)
    more = f"; {n_hidden} more columns with less drift" if n_hidden else ""
    ax.set_xlabel(f"bits per cell, with 99 % intervals{more}")
    note = "color: more than expected by chance" if audit.drifted else "none more than expected by chance"
    set_title(ax, f"Drift by column ({note})")
    return Plot(ax, table)

"""Plot of an explanation: the weights of evidence of one row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tallybayes.plotting.charts import horizontal_bars
from tallybayes.plotting.plot import Plot
from tallybayes.plotting.style import COLORS, WIDEST, in_lines, set_title, words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tallybayes.models.classification.methods.explanation import Explanation

_MOST = 12  # bars, and one more for all other columns


def plot_explanation(explanation: Explanation, row: int = 0, ax: Axes | None = None) -> Plot:
    """Plot the weights of evidence of one row as bars, by absolute value."""
    weight_of = explanation.to_dict(row)
    cells = dict(zip(explanation.columns, explanation.values[row], strict=True))
    values = [cells.get(column) for column in weight_of]
    labels = []
    for column, value in list(zip(weight_of, values, strict=True))[:_MOST]:
        text = f"{value:.4g}" if isinstance(value, float) else f"{value}"
        labels.append(words(column if value is None else f"{column} = {text}", 40))
    weights = np.nan_to_num(list(weight_of.values()), posinf=np.inf, neginf=-np.inf)
    bars = weights[:_MOST]
    if len(weights) > _MOST:
        labels.append(f"{len(weights) - _MOST} more")
        bars = np.append(bars, np.nan_to_num(weights[_MOST:].sum(), posinf=np.inf, neginf=-np.inf))
    infinite = np.isinf(bars)
    limit = 1.25 * np.abs(bars[~infinite]).max(initial=0.0) or 1.0
    bars = np.clip(bars, -limit, limit)
    ax = horizontal_bars(ax, labels, bars, [COLORS[0] if bar >= 0 else COLORS[5] for bar in bars])
    for k in np.flatnonzero(infinite):
        ax.annotate("∞", (bars[k], k), ha="center", va="center")
    predicted = words(explanation.classes[row], WIDEST)
    other = words(explanation.against[row], WIDEST)
    ax.figure.canvas.figure.draw_without_rendering()  # the width of the axes depends on the labels
    ax.set_xlabel(in_lines(ax, f"weight of evidence (nats)   ← {other}   |   {predicted} →", 10))
    set_title(ax, f"{predicted} against {other}: log-odds {explanation.log_odds[row]:+.2f}", explanation.note)
    return Plot(ax, {"column": [str(column) for column in weight_of], "value": values, "weight": [*weight_of.values()]})

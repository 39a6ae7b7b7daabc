"""Plot of an explanation: the weights of evidence of one row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tallybayes.plotting.plot import Plot
from tallybayes.plotting.style import COLORS, WIDEST, hide_top_right_spines, in_lines, new_axes, set_title, words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tallybayes.models.classification.methods.explanation import Explanation


def plot_explanation(explanation: Explanation, row: int = 0, ax: Axes | None = None, most: int = 12) -> Plot:
    """Plot the weights of evidence of one row as bars, by absolute value."""
    weights_by_column = list(explanation.to_dict(row).items())
    remaining = sum(weight for _, weight in weights_by_column[most:])
    shown = weights_by_column[:most] + (
        [(f"{len(weights_by_column) - most} more", remaining)] if len(weights_by_column) > most else []
    )
    cells = dict(zip(explanation.columns, explanation.values[row], strict=True))
    labels = []
    for column, _ in shown:
        value = cells.get(column)
        text = f"{value:.4g}" if isinstance(value, float) else f"{value}"
        labels.append(words(column if value is None else f"{column} = {text}", 40))
    longest = max(map(len, labels))
    ax = new_axes(ax, figsize=(4.6 + 0.085 * longest, 1.3 + 0.32 * len(shown)))
    weights = np.nan_to_num([weight for _, weight in shown], posinf=np.inf, neginf=-np.inf)
    infinite = np.isinf(weights)
    limit = 1.25 * float(np.abs(weights[~infinite]).max(initial=0.0)) or 1.0
    for row_of_bar in np.flatnonzero(infinite):  # bars to the limit of the axis, marked ∞
        weights[row_of_bar] = np.copysign(limit, weights[row_of_bar])
        ax.annotate("∞", (weights[row_of_bar], row_of_bar), ha="center", va="center")
    ax.barh(range(len(shown)), weights, color=[COLORS[0] if w >= 0 else COLORS[5] for w in weights])
    ax.set_yticks(range(len(shown)), labels)
    ax.invert_yaxis()
    ax.axvline(0, color="black", linewidth=0.8)
    predicted = words(explanation.classes[row], WIDEST)
    other = words(explanation.against[row], WIDEST)
    ax.figure.canvas.figure.draw_without_rendering()  # the width of the axes depends on the labels
    ax.set_xlabel(in_lines(ax, f"weight of evidence (nats)   ← {other}   |   {predicted} →", 10))
    set_title(ax, f"{predicted} against {other}: log-odds {explanation.log_odds[row]:+.2f}", explanation.note)
    hide_top_right_spines(ax)
    values = [cells.get(column) for column, _ in weights_by_column]
    names = [str(column) for column, _ in weights_by_column]
    return Plot(ax, {"column": names, "value": values, "weight": [weight for _, weight in weights_by_column]})

"""One row's evidence, column by column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.plotting.plot import Plot
from tallybayes.plotting.style import COLORS, WIDEST, hide_top_right_spines, in_lines, new_axes, set_title, words

if TYPE_CHECKING:
    from tallybayes.models.classification.methods.explanation import Explanation


def plot_explanation(explanation: Explanation, row: int = 0, ax: Any = None, most: int = 12) -> Plot:
    """One row's weights of evidence as bars, the largest first."""
    found = list(explanation.to_dict(row).items())
    rest = sum(weight for _, weight in found[most:])
    shown = found[:most] + ([(f"{len(found) - most} more", rest)] if len(found) > most else [])
    cells = dict(zip(explanation.columns, explanation.values[row], strict=True))
    labels = []
    for column, _ in shown:
        value = cells.get(column)
        text = f"{value:.4g}" if isinstance(value, float) else f"{value}"
        labels.append(words(column if value is None else f"{column} = {text}", 40))
    longest = max(map(len, labels))
    ax = new_axes(ax, figsize=(4.6 + 0.085 * longest, 1.3 + 0.32 * len(shown)), layout="constrained")
    weights = np.nan_to_num([weight for _, weight in shown], posinf=np.inf, neginf=-np.inf)
    infinite = np.isinf(weights)
    reach = 1.25 * float(np.abs(weights[~infinite]).max(initial=0.0)) or 1.0
    for place in np.flatnonzero(infinite):  # as far as the picture goes, and said so
        weights[place] = np.copysign(reach, weights[place])
        ax.annotate("∞", (weights[place], place), ha="center", va="center")
    ax.barh(range(len(shown)), weights, color=[COLORS[0] if w >= 0 else COLORS[5] for w in weights])
    ax.set_yticks(range(len(shown)), labels)
    ax.invert_yaxis()
    ax.axvline(0, color="black", linewidth=0.8)
    top, other = words(explanation.classes[row], WIDEST), words(explanation.against[row], WIDEST)
    ax.figure.canvas.figure.draw_without_rendering()  # how wide the axes are beside such labels
    ax.set_xlabel(in_lines(ax, f"weight of evidence (nats)   ← {other}   |   {top} →", 10))
    set_title(ax, f"{top} against {other}: log-odds {explanation.log_odds[row]:+.2f}", explanation.note)
    hide_top_right_spines(ax)
    found_cells = [cells.get(column) for column, _ in found]
    names = [str(column) for column, _ in found]
    return Plot(ax, {"column": names, "value": found_cells, "weight": [weight for _, weight in found]})

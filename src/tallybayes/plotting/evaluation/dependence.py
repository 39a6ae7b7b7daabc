"""A picture of what the columns have in common given the class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.plotting.plot import Plot, table_of
from tallybayes.plotting.style import WIDEST, hide_spines, new_axes, words

if TYPE_CHECKING:
    from tallybayes.evaluation.checks.dependence import Dependence


def plot_dependence(found: Dependence, ax: Any = None, most: int = 30) -> Plot:
    """The information of every pair as a square of colors; of many columns, those of the strongest pairs."""
    places = list(range(len(found.columns)))
    if len(found.columns) > most:
        pairs = np.stack([found.first, found.second], axis=1).ravel().tolist()
        places = sorted(list(dict.fromkeys(pairs))[:most])
    n = len(places)
    side = 2.5 + 0.32 * n
    ax = new_axes(ax, figsize=(side + 0.8, side), layout="constrained")
    matrix = found.matrix[np.ix_(places, places)]
    # Colors by the square root, so that pairs that share little do not all look alike beside one that shares much.
    from matplotlib.colors import PowerNorm

    largest = float(np.nanmax(matrix)) if np.isfinite(matrix).any() else 0.0
    norm = PowerNorm(0.5, 0.0, largest or 1.0)
    image = ax.imshow(np.ma.masked_invalid(matrix), cmap="Blues", norm=norm)
    names = [words(found.columns[place], WIDEST) for place in places]
    ax.set_xticks(range(n), names, rotation=90)
    ax.set_yticks(range(n), names)
    hide_spines(ax)
    if n <= 16:
        for i, j in np.argwhere(np.isfinite(matrix)):
            text = _short(matrix[i, j])
            dark = norm(matrix[i, j]) > 0.55
            ax.text(j, i, text, ha="center", va="center", fontsize=7, color="white" if dark else "black")
    ax.figure.colorbar(image, ax=ax, label="information (bits)", shrink=0.8)
    shown = "" if n == len(found.columns) else f" (the {n} of {len(found.columns)} columns that share most)"
    ax.set_title(f"What columns share given {words(found.target, WIDEST)}{shown}", fontsize=11)
    every = [found.columns[place] for place in places]
    return Plot(ax, table_of(("first", "second", "information"), every, every, matrix))


def _short(value: float) -> str:
    """Two digits, without the zero before the point; nothing for next to nothing."""
    if value < 0.005:
        return ""
    return f"{value:.2g}" if value >= 1 else f"{value:.2f}"[1:] if value < 0.995 else "1"

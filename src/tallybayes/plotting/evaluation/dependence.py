"""Plot of the dependence of columns given the class."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tallybayes.plotting.plot import Plot, table_of
from tallybayes.plotting.style import WIDEST, hide_spines, new_axes, set_title, words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tallybayes.results.dependence import Dependence


def plot_dependence(dependence: Dependence, ax: Axes | None = None, most: int = 30) -> Plot:
    """Plot the conditional mutual information of pairs of columns as a heat map; of many columns, the strongest."""
    kept = list(range(len(dependence.columns)))
    if len(dependence.columns) > most:
        pairs = np.stack([dependence.first, dependence.second], axis=1).ravel().tolist()
        kept = sorted(list(dict.fromkeys(pairs))[:most])
    n = len(kept)
    side = 2.5 + 0.32 * n
    ax = new_axes(ax, figsize=(side + 0.8, side))
    matrix = dependence.matrix[np.ix_(kept, kept)]
    # Square-root color scale, so that small values remain distinguishable.
    from matplotlib.colors import PowerNorm

    largest = float(np.nanmax(matrix)) if np.isfinite(matrix).any() else 0.0
    norm = PowerNorm(0.5, 0.0, largest or 1.0)
    image = ax.imshow(np.ma.masked_invalid(matrix), cmap="Blues", norm=norm)
    names = [words(dependence.columns[column], WIDEST) for column in kept]
    ax.set_xticks(range(n), names, rotation=90)
    ax.set_yticks(range(n), names)
    hide_spines(ax)
    if n <= 16:
        for i, j in np.argwhere(np.isfinite(matrix)):
            text = _short(matrix[i, j])
            dark = norm(matrix[i, j]) > 0.55
            ax.text(j, i, text, ha="center", va="center", fontsize=7, color="white" if dark else "black")
    ax.figure.colorbar(image, ax=ax, label="information (bits)", shrink=0.8)
    shown = (
        ""
        if n == len(dependence.columns)
        else f" (the {n} of {len(dependence.columns)} columns with the strongest pairs)"
    )
    set_title(ax, f"Mutual information of columns given {words(dependence.target, WIDEST)}{shown}")
    columns = [dependence.columns[column] for column in kept]
    return Plot(ax, table_of(("first", "second", "information"), columns, columns, matrix))


def _short(value: float) -> str:
    """Format with two digits, without the leading zero; an empty text below 0.005."""
    if value < 0.005:
        return ""
    return f"{value:.2g}" if value >= 1 else f"{value:.2f}"[1:] if value < 0.995 else "1"

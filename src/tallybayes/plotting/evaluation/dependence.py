"""Plot of the dependence of columns given the class."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tallybayes.plotting.charts import heat_map, short_number
from tallybayes.plotting.plot import Plot, table_of
from tallybayes.plotting.style import WIDEST, set_title, words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tallybayes.results.dependence import Dependence


def plot_dependence(dependence: Dependence, ax: Axes | None = None, most: int = 30) -> Plot:
    """Plot the conditional mutual information of pairs of columns as a heat map; of many columns, the strongest."""
    from matplotlib.colors import PowerNorm

    n_columns = len(dependence.columns)
    strongest = np.stack([dependence.first, dependence.second], axis=1).ravel().tolist()
    kept = sorted([*dict.fromkeys([*strongest, *range(n_columns)])][:most])
    matrix = dependence.matrix[np.ix_(kept, kept)]
    columns = [dependence.columns[k] for k in kept]
    largest = np.nanmax(matrix, initial=0.0)
    norm = PowerNorm(0.5, 0.0, largest or 1.0)  # square roots, so that small values remain distinguishable
    texts = [[short_number(value) for value in row] for row in matrix]
    ax = heat_map(ax, matrix, columns, columns, norm, texts=texts, label="information (bits)")
    shown = f" (the {len(kept)} of {n_columns} columns with the strongest pairs)" if len(kept) < n_columns else ""
    set_title(ax, f"Mutual information of columns given {words(dependence.target, WIDEST)}{shown}")
    return Plot(ax, table_of(("first", "second", "information"), columns, columns, matrix))

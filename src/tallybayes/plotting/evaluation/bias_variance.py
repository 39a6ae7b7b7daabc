"""Plot of the bias-variance decomposition."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tallybayes.plotting.plot import Plot
from tallybayes.plotting.style import COLORS, NOTE, OTHERS, legend_beside, new_axes, set_title, ticks, words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tallybayes.results.bias_variance import BiasVariance


def plot_bias_variance(result: BiasVariance, ax: Axes | None = None) -> Plot:
    """Plot squared bias, variance and their sum by candidate, and mark the smallest sum."""
    ax = new_axes(ax, 6.4, 3.9)
    total = result.bias + result.variance
    ax.plot(total, "-", color=OTHERS, label="sum", linewidth=5, solid_capstyle="round")
    for name, values, color in (("bias²", result.bias, COLORS[0]), ("variance", result.variance, COLORS[5])):
        ax.plot(values, "o-", color=color, label=name, markersize=5)
    ax.axvline(int(total.argmin()), color=NOTE, linestyle=":", linewidth=1)
    parameters = {name for candidate in result.candidates for name in candidate}
    if len(parameters) == 1 and all(result.candidates):
        ticks(ax, "x", [f"{value!r}" for candidate in result.candidates for value in candidate.values()])
        ax.set_xlabel(words(parameters.pop(), 24))
    else:
        ticks(ax, "x", result.names)
    # Limit the axis if one candidate is far above the others.
    usual = 4 * np.median(total)
    if total.max() > 3 * usual > 0:
        ax.set_ylim(-0.03 * usual, 1.05 * usual)
    ax.set_ylabel("squared error")
    set_title(ax, f"Bias and variance in {result.n_draws:,} draws")
    legend_beside(ax)
    return Plot(ax, {"candidate": result.names, "bias": result.bias, "variance": result.variance, "sum": total})

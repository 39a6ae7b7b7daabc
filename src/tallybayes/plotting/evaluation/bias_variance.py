"""Plot of the bias-variance decomposition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.plotting.plot import Plot
from tallybayes.plotting.style import (
    COLORS,
    NOTE,
    OTHERS,
    hide_top_right_spines,
    legend_beside,
    new_axes,
    set_title,
    words,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tallybayes.results.bias_variance import BiasVariance


def plot_bias_variance(result: BiasVariance, ax: Axes | None = None) -> Plot:
    """Plot squared bias, variance and their sum by candidate, and mark the smallest sum."""
    axes = new_axes(ax, figsize=(6.4, 3.9))
    total = result.bias + result.variance
    positions = np.arange(len(total))
    axes.plot(positions, total, "-", color=OTHERS, label="sum", linewidth=5, solid_capstyle="round")
    for name, values, color in (("bias²", result.bias, COLORS[0]), ("variance", result.variance, COLORS[5])):
        axes.plot(positions, values, "o-", color=color, label=name, linewidth=1.6, markersize=5)
    axes.axvline(int(total.argmin()), color=NOTE, linestyle=":", linewidth=1)
    single_parameter = (
        len({tuple(candidate) for candidate in result.candidates}) == 1 and len(result.candidates[0]) == 1
    )
    labels = (
        [f"{value!r}" for candidate in result.candidates for value in candidate.values()]
        if single_parameter
        else result.names
    )
    shown = positions[:: -(-len(positions) // 20)]
    rotation: dict[str, Any] = {} if max(map(len, labels)) * len(shown) < 60 else {"rotation": 45, "ha": "right"}
    axes.set_xticks(shown, [words(labels[position], 24) for position in shown], fontsize=9, **rotation)
    if single_parameter:
        axes.set_xlabel(words(next(iter(result.candidates[0])), 24))
    # Limit the axis if one candidate is far above the others.
    usual = 4 * float(np.median(total))
    if total.max() > 3 * usual > 0:
        axes.set_ylim(-0.03 * usual, 1.05 * usual)
    axes.set_ylabel("squared error")
    set_title(axes, f"Bias and variance in {result.n_draws:,} draws")
    legend_beside(axes)
    hide_top_right_spines(axes)
    drawn = {"candidate": result.names, "bias": result.bias, "variance": result.variance, "sum": total}
    return Plot(axes, drawn)

"""The picture of bias and variance."""

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
    from tallybayes.evaluation.validation.bias_variance import BiasVariance


def plot_bias_variance(found: BiasVariance, ax: Any = None) -> Plot:
    """Bias², variance and their sum over the candidates, in their order; the least sum is marked."""
    axes = new_axes(ax, figsize=(6.4, 3.9), layout="constrained")
    both = found.bias + found.variance
    places = np.arange(len(both))
    axes.plot(places, both, "-", color=OTHERS, label="their sum", linewidth=5, solid_capstyle="round")
    for name, values, color in (("bias²", found.bias, COLORS[0]), ("variance", found.variance, COLORS[5])):
        axes.plot(places, values, "o-", color=color, label=name, linewidth=1.6, markersize=5)
    axes.axvline(int(both.argmin()), color=NOTE, linestyle=":", linewidth=1)
    one = len({tuple(each) for each in found.candidates}) == 1 and len(found.candidates[0]) == 1
    labels = [f"{value!r}" for each in found.candidates for value in each.values()] if one else found.names
    shown = places[:: -(-len(places) // 20)]
    turned = {} if max(map(len, labels)) * len(shown) < 60 else {"rotation": 45, "ha": "right"}
    axes.set_xticks(shown, [words(labels[place], 24) for place in shown], fontsize=9, **turned)
    if one:
        axes.set_xlabel(words(next(iter(found.candidates[0])), 24))
    # A wild candidate shall not press all others onto the axis.
    usual = 4 * float(np.median(both))
    if both.max() > 3 * usual > 0:
        axes.set_ylim(-0.03 * usual, 1.05 * usual)
    axes.set_ylabel("squared error")
    set_title(axes, f"Wrong the same way, and another way, in {found.n_draws:,} draws")
    legend_beside(axes)
    hide_top_right_spines(axes)
    drawn = {"candidate": found.names, "bias": found.bias, "variance": found.variance, "sum": both}
    return Plot(axes, drawn)

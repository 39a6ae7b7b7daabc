"""The picture of EM: what it climbed to from every start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tallybayes.plotting.plot import Plot
from tallybayes.plotting.style import COLORS, amount, hide_top_right_spines, new_axes, set_title

if TYPE_CHECKING:
    from tallybayes.estimation.em.em_loop import EMSummary

_AS_HIGH = 0.1  # nats: who ends less than this below the highest has found the same hill


def plot_convergence(climbed: EMSummary, ax: Any = None) -> Plot:
    """The objective after every step of every start; those that end on the highest hill in color.

    Parameters
    ----------
    climbed : Climbed
    ax : matplotlib Axes, optional
    """
    ax = new_axes(ax, figsize=(6.4, 4), layout="constrained")
    starts = climbed.starts or (climbed.history,)
    ends = [history[-1] for history in starts]
    top, lowest = max(ends), min(ends)
    reached = [end > top - _AS_HIGH for end in ends]
    for k in sorted(range(len(starts)), key=ends.__getitem__):
        look: dict[str, Any] = {"color": COLORS[0], "linewidth": 1.8} if reached[k] else {"color": "#999999"}
        ax.plot(range(1, len(starts[k]) + 1), starts[k], alpha=0.8, **look)
        ax.plot(len(starts[k]), ends[k], "o", markersize=5, **look)
    # The first steps rise from far below, and would leave no room for where the hills differ.
    low, third = min(map(min, starts)), min(history[min(2, len(history) - 1)] for history in starts)
    bottom = max(low, min(third, lowest - (top - lowest)))
    ax.set_ylim(bottom - 0.04 * (top - bottom), top + 0.06 * (top - bottom) if top > bottom else None)
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter("{x:,.0f}")
    ax.set_xlabel("steps of EM")
    ax.set_ylabel(f"{climbed.objective}, nats")
    height = f"{top:,.2f}".replace("-", "−")
    if len(starts) == 1:
        set_title(ax, f"EM climbs to {height} in {amount(len(climbed.history), 'steps')}")
    else:
        set_title(ax, f"{sum(reached)} of {len(starts)} climbs end at {height}")
    hide_top_right_spines(ax)
    parts = [
        {"climb": k, "step": range(1, len(history) + 1), "objective": list(history)} for k, history in enumerate(starts)
    ]
    return Plot(ax, *parts)

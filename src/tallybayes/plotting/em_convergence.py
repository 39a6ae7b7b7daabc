"""Plot of the convergence of EM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tallybayes.plotting.plot import Plot
from tallybayes.plotting.style import COLORS, amount, hide_top_right_spines, new_axes, set_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tallybayes.estimation.em.em_loop import EMSummary

_SAME_MAXIMUM = 0.1  # nats: runs within this distance of the highest value have reached the same maximum


def plot_convergence(summary: EMSummary, ax: Axes | None = None) -> Plot:
    """Plot the objective by iteration for every initialization; runs that reach the highest value are in color.

    Parameters
    ----------
    summary : EMSummary
    ax : matplotlib Axes, optional
    """
    ax = new_axes(ax, figsize=(6.4, 4))
    runs = summary.starts or (summary.history,)
    ends = [history[-1] for history in runs]
    top = max(ends)
    lowest = min(ends)
    reached = [end > top - _SAME_MAXIMUM for end in ends]
    for k in sorted(range(len(runs)), key=ends.__getitem__):
        style: dict[str, Any] = {"color": COLORS[0], "linewidth": 1.8} if reached[k] else {"color": "#999999"}
        ax.plot(range(1, len(runs[k]) + 1), runs[k], alpha=0.8, **style)
        ax.plot(len(runs[k]), ends[k], "o", markersize=5, **style)
    # The first iterations are far below, and would hide the differences between the maxima.
    low = min(map(min, runs))
    early = min(history[min(2, len(history) - 1)] for history in runs)
    bottom = max(low, min(early, lowest - (top - lowest)))
    ax.set_ylim(bottom - 0.04 * (top - bottom), top + 0.06 * (top - bottom) if top > bottom else None)
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter("{x:,.0f}")
    ax.set_xlabel("EM iteration")
    ax.set_ylabel(f"{summary.objective}, nats")
    maximum = f"{top:,.2f}".replace("-", "−")
    if len(runs) == 1:
        set_title(ax, f"EM reaches {maximum} in {amount(len(summary.history), 'iterations')}")
    else:
        set_title(ax, f"{sum(reached)} of {len(runs)} initializations reach {maximum}")
    hide_top_right_spines(ax)
    parts = [
        {"initialization": k, "iteration": range(1, len(history) + 1), "objective": list(history)}
        for k, history in enumerate(runs)
    ]
    return Plot(ax, *parts)

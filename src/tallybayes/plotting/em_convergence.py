"""Plot of the convergence of EM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tallybayes.plotting.plot import Plot
from tallybayes.plotting.style import COLORS, amount, new_axes, set_title

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
    ax = new_axes(ax, 6.4, 4)
    runs = summary.starts or (summary.history,)
    ends = [history[-1] for history in runs]
    top = max(ends)
    n_best = 0
    for history in sorted(runs, key=lambda history: history[-1]):
        is_best = history[-1] > top - _SAME_MAXIMUM
        style: dict[str, Any] = {"color": COLORS[0], "linewidth": 1.8} if is_best else {"color": "#999999"}
        last = [len(history) - 1]
        ax.plot(range(1, len(history) + 1), history, "-o", markevery=last, markersize=5, alpha=0.8, **style)
        n_best += is_best
    # The first iterations are far below, and would hide the differences between the maxima.
    early = min(history[:3][-1] for history in runs)
    bottom = max(min(map(min, runs)), min(early, 2 * min(ends) - top))
    if top > bottom:
        ax.set_ylim(bottom - 0.04 * (top - bottom), top + 0.06 * (top - bottom))
    ax.set(xscale="log", xlabel="EM iteration", ylabel=f"{summary.objective}, nats")
    ax.xaxis.set_major_formatter("{x:,.0f}")
    maximum = f"{top:,.2f}".replace("-", "−")
    if len(runs) == 1:
        set_title(ax, f"EM reaches {maximum} in {amount(len(summary.history), 'iterations')}")
    else:
        set_title(ax, f"{n_best} of {len(runs)} initializations reach {maximum}")
    parts = [
        {"initialization": k, "iteration": range(1, len(history) + 1), "objective": history}
        for k, history in enumerate(runs)
    ]
    return Plot(ax, *parts)

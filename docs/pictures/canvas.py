"""What all pictures share: colours, panels and the words around them."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

# Okabe and Ito's colours, which colour-blind readers can tell apart; line styles differ as well.
BLUE, ORANGE, GREEN, RED, GREY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#666666"
STYLE = {
    "font.size": 12,
    "axes.titlesize": 13,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#E4E4E4",
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.fontsize": 11,
    "lines.linewidth": 2.2,
    "figure.facecolor": "white",
}


def new_figure(n_panels: int) -> tuple[Figure, list[Axes]]:
    """A figure with one panel, or some side by side."""
    figure = Figure(figsize=(6.6, 4.0) if n_panels == 1 else (10.6, 4.0), layout="constrained")
    return figure, [figure.add_subplot(1, n_panels, place + 1) for place in range(n_panels)]


def label(
    axes: Axes,
    title: str,
    x: str,
    y: str,
    *,
    bottom: float = 0.0,
    top: float | None = None,
    span: tuple[float, float] | None = None,
) -> None:
    """The words around a panel, and how far it reaches."""
    axes.set_title(title)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    if top is not None:
        axes.set_ylim(bottom, top)
    if span is not None:
        axes.set_xlim(*span)

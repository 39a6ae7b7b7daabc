"""Parts of several plots: heat maps, horizontal bars with intervals, curves with bands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from tallybayes.plotting.style import DARK, WIDEST, hide_spines, new_axes, ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Normalize
    from matplotlib.patches import Circle

_MOST_TEXTS = 25  # rows of a heat map whose cells have texts
_LINES = 12  # rows of a heat map with wide lines between cells


def heat_map(
    ax: Axes | None,
    values: np.ndarray,
    rows: Sequence[Any],
    columns: Sequence[Any],
    norm: Normalize,
    *,
    texts: Sequence[Sequence[str]] = (),
    size: float = 9.0,
    widest: int = WIDEST,
    aspect: Literal["equal", "auto"] = "equal",
    **bar: Any,
) -> Axes:
    """Draw a matrix as a heat map with row and column labels, and texts in its cells if they fit.

    Parameters
    ----------
    ax : matplotlib Axes, optional
    values : ndarray of shape (rows, columns)
        Undefined values have no color.
    rows, columns : sequences of labels
    norm : matplotlib Normalize
        Maps values to shades.
    texts : sequence of sequences of str, optional
    size : float
        Size of the labels in points.
    widest : int
        Maximum length of the labels in characters.
    aspect : str
        Shape of the cells, as for `imshow`.
    **bar : parameters of the color bar
    """
    n_rows, n_columns = values.shape
    side = min(max(0.4 * n_rows, 2.6), 11.0)
    ax = new_axes(ax, side + 3.4, side + 2.2)
    image = ax.imshow(np.ma.masked_invalid(values), cmap="Blues", norm=norm, aspect=aspect)
    ax.apply_aspect()  # the room for labels is that of the cells
    ticks(ax, "x", columns, size, widest)
    ticks(ax, "y", rows, size, widest)
    ax.set_xticks(np.arange(1, n_columns) - 0.5, minor=True)
    ax.set_yticks(np.arange(1, n_rows) - 0.5, minor=True)
    ax.grid(which="minor", color="white", linewidth=1.5 if n_rows <= _LINES else 0.6)
    hide_spines(ax)
    for i, row in enumerate(texts if n_rows <= _MOST_TEXTS else ()):
        for j, text in enumerate(row):
            color = "white" if norm(values[i, j]) > 0.55 else "black"
            fitting = min(10, 75 * side / n_rows / max(len(text), 3))
            ax.text(j, i, text, ha="center", va="center", color=color, fontsize=fitting)
    ax.figure.colorbar(image, ax=ax, **{"shrink": 0.8, **bar}).outline.set_visible(False)
    return ax


def short_number(value: float) -> str:
    """Format with two digits, without the leading zero; an empty text below 0.005 or if undefined."""
    if not value >= 0.005:
        return ""
    return f"{value:.2g}" if value >= 1 else f"{value:.2f}"[1:] if value < 0.995 else "1"


def horizontal_bars(
    ax: Axes | None,
    labels: Sequence[str],
    values: npt.ArrayLike,
    color: str | Sequence[str],
    *,
    ends: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    left: float = 0.0,
) -> Axes:
    """Draw labeled bars below each other, with intervals between two `ends`; all bars begin at `left`."""
    n = len(labels)
    longest = max((len(line) for label in labels for line in label.splitlines()), default=0)
    ax = new_axes(ax, 4.8 + 0.075 * longest, 1.4 + 0.32 * max(n, 1))
    errors = None if ends is None else error_bars(values, *ends)
    ax.barh(range(n), values, 0.7, left=left, color=color, xerr=errors, ecolor=DARK, error_kw={"elinewidth": 1.2})
    ax.axvline(left, color=DARK, linewidth=0.8)
    ax.set_yticks(range(n), labels, fontsize=9)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(max(n, 1) - 0.4, -0.6)
    return ax


def error_bars(value: npt.ArrayLike, low: npt.ArrayLike, high: npt.ArrayLike) -> np.ndarray:
    """Return the lengths of error bars below and above; 0 for infinite ends."""
    lengths = np.abs(np.stack([np.subtract(value, low), np.subtract(high, value)]))
    return np.where(np.isfinite(lengths), lengths, 0.0)


def curve_with_band(
    ax: Axes,
    x: np.ndarray,
    value: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    alpha: float = 0.2,
    interval: str | None = None,
    **line: Any,
) -> None:
    """Draw a curve within a band; `interval` is the legend entry of the band."""
    ax.fill_between(x, low, high, color=line["color"], alpha=alpha, linewidth=0, label=interval)
    ax.plot(x, value, **line)


def draw_arrow(ax: Axes, start: Circle, end: Circle, bend: float = 0.0, **line: Any) -> None:
    """Draw an arrow between two circles, as an arc to the left if `bend` is positive."""
    from matplotlib.patches import FancyArrowPatch

    ends: dict[str, Any] = {"patchA": start, "patchB": end, "shrinkA": 0, "shrinkB": 1}
    shape: dict[str, Any] = {"arrowstyle": "-|>", "mutation_scale": 11, "connectionstyle": f"arc3,rad={-bend}"}
    ax.add_patch(FancyArrowPatch(start.center, end.center, zorder=2, **shape, **ends, **line))

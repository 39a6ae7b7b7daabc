"""Shared helpers of all plots: colors, axes, legends, ticks and labels that fit."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tallybayes.errors import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tallybayes.plotting.plot import Plot

# Palette of Okabe and Ito (2008), distinguishable with any color vision.
COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
OTHERS = "#BBBBBB"  # groups without a color of their own
NOTE = "#666666"
MOST_COLORS = len(COLORS)  # number of groups with distinct colors
WIDEST = 24  # maximum length of a label in characters


def words(value: object, widest: int | None = None) -> str:
    """Return a label as one printable line for a figure, with dollar signs escaped.

    Matplotlib typesets text between two dollar signs as a formula, and omits labels that start with "_" from legends.
    The middle of a long label is replaced by an ellipsis, since labels mostly differ at their ends.
    """
    text = "(missing)" if value is None else printable(value)
    if widest is not None and len(text) > widest:
        tail = (widest - 1) // 2
        text = f"{text[: widest - 1 - tail]}…{text[-tail:]}"
    text = text.replace("$", r"\$") or "''"
    return f" {text}" if text.startswith("_") else text


def name_of(column: object, widest: int = 32) -> str:
    """Return the name of a column for a figure; "column 3" for an unnamed column of an array."""
    if isinstance(column, tuple):  # a column of a block
        return words(f"{column[0]}, {column[1]}", widest)
    return words(column if isinstance(column, str) else f"column {column}", widest)


def new_axes(ax: Axes | None, **options: Any) -> Axes:
    """Return `ax`, or new axes if it is None."""
    axes: Axes = _subplots(**options) if ax is None else ax
    return axes


def all_axes(ax: Axes | Iterable[Axes] | np.ndarray | None, **options: Any) -> np.ndarray:
    """Return an array of `ax`, or of new axes if it is None."""
    return np.ravel(np.asarray(_subplots(**options) if ax is None else ax, dtype=object))


def panels(n: int, across: int, width: float, height: float, **options: Any) -> np.ndarray:
    """Return an array of `n` axes of the given size, in rows of at most `across`."""
    across = 2 if n == 4 else max(1, min(n, across))
    n_rows = max(1, -(-n // across))
    axes = all_axes(None, nrows=n_rows, ncols=across, figsize=(width * across, height * n_rows), **options)
    for ax in axes[n:]:
        ax.remove()
    return axes[: max(n, 1)]


def _subplots(**options: Any) -> Any:
    """Return the axes of a new figure."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("plots require matplotlib.\n    Install it with pip install matplotlib.") from None
    return plt.subplots(**{"layout": "constrained", **options})[1]


def hide_top_right_spines(ax: Axes) -> None:
    """Hide the spines at the top and on the right."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def hide_spines(ax: Axes) -> None:
    """Hide all spines."""
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.tick_params(length=0)


def in_lines(ax: Axes, text: str, size: float) -> str:
    """Wrap text to the width of the axes."""
    inches = ax.get_window_extent().width / ax.figure.dpi
    return textwrap.fill(text, max(24, int(inches * 72 / (0.58 * size))), break_long_words=False)


def set_title(ax: Axes, *lines: str, size: float = 11.0) -> None:
    """Set a title that fits above the axes; long lines are wrapped."""
    ax.set_title("\n".join(in_lines(ax, line, size) for line in lines if line), fontsize=size)


def note_above(figure: Figure, *notes: str) -> None:
    """Add notes above all panels, below existing notes. The height of the figure grows by their height."""
    widest = max(24, int(figure.get_figwidth() * 72 / 5.8))
    lines = [line for note in notes for line in textwrap.wrap(note, widest)]
    if lines:
        before = figure.get_suptitle()
        figure.set_figheight(figure.get_figheight() + 0.17 * len(lines))
        figure.suptitle("\n".join([before, *lines] if before else lines), fontsize=10, color=NOTE)


def add_note(plot: Plot, note: str, *, above: bool) -> None:
    """Add a note above all panels, or to the title of the first panel."""
    if above:
        note_above(plot.figure, note)
    else:
        set_title(plot.axes[0], *plot.axes[0].get_title().splitlines(), note)


class GroupStyle(NamedTuple):
    """Style of one group; `label` is None if another group has the shared legend entry."""

    color: str
    label: str | None
    own: bool  # whether no other group has the color


def group_styles(labels: Sequence[Any], weight: np.ndarray | None = None, noun: str = "classes") -> list[GroupStyle]:
    """Return a style for every group. Beyond eight groups, the heaviest seven have colors, the others are gray."""
    n = len(labels)
    if n <= MOST_COLORS:
        return [GroupStyle(COLORS[k], words(label, WIDEST), own=True) for k, label in enumerate(labels)]
    heaviest = np.argsort(-np.nan_to_num(np.ones(n) if weight is None else weight), kind="stable")[: MOST_COLORS - 1]
    color_index = {int(k): position for position, k in enumerate(sorted(heaviest))}
    first = next(k for k in range(n) if k not in color_index)
    styles = []
    for k, label in enumerate(labels):
        if k in color_index:
            styles.append(GroupStyle(COLORS[color_index[k]], words(label, WIDEST), own=True))
        else:
            name = f"{n - len(heaviest)} other {noun}" if k == first else None
            styles.append(GroupStyle(OTHERS, name, own=False))
    return styles


def gray_first(styles: Sequence[GroupStyle]) -> list[int]:
    """Return the indices of the groups, gray ones first, so that those with colors are drawn above them."""
    return sorted(range(len(styles)), key=lambda k: styles[k].own)


def group_handles(styles: Sequence[GroupStyle], **options: Any) -> list[Any]:
    """Return the legend handles of the groups; the entry of the gray groups is last."""
    from matplotlib.lines import Line2D

    entries = sorted((style for style in styles if style.label is not None), key=lambda style: not style.own)
    return [Line2D([], [], color=style.color, label=style.label, **options) for style in entries]


def legend_beside(ax: Axes, title: object = None, **options: Any) -> None:
    """Add a legend to the right of the axes. The entry of the gray groups is last."""
    handles, names = ax.get_legend_handles_labels()
    if not handles:
        return
    order = sorted(range(len(names)), key=lambda k: " other " in names[k] and names[k].split(" ")[0].isdigit())
    position = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "frameon": False, "fontsize": 9, **options}
    legend = ax.legend([handles[k] for k in order], [names[k] for k in order], **position)
    if title is not None:
        legend.set_title(words(title, WIDEST))


def ticks(ax: Axes, axis: str, labels: Sequence[Any], size: float = 9.0, widest: int = WIDEST) -> None:
    """Set labels at the positions 0, 1, 2, …, or at every k-th position if they do not all fit.

    The number of labels follows from the size of the axes. Long labels of the x axis are rotated.
    """
    n = len(labels)
    shown = [words(label, widest) for label in labels]
    inches = ax.get_window_extent().transformed(ax.figure.dpi_scale_trans.inverted())
    # Points per label; the axes shrink when all labels around them are drawn.
    room = (0.85 * inches.width if axis == "x" else 0.6 * inches.height) * 72 / max(n, 1)
    rotated = axis == "x" and max((len(text) for text in shown), default=0) * 0.62 * size + 4 > room
    needed = 1.25 * size if rotated or axis == "y" else 0.0
    step = max(1, int(np.ceil(needed / max(room, 1e-9)))) if needed else 1
    rotation = {"rotation": 90, "ha": "center", "va": "top"} if rotated else {}
    getattr(ax, f"set_{axis}ticks")(range(0, n, step), shown[::step], fontsize=size, **rotation)


def amount(n: float, noun: str) -> str:
    """Format a number of items; without a number, return the noun alone."""
    singular = {"classes": "class"}.get(noun, noun.removesuffix("s"))
    return noun if not n else f"1 {singular}" if n == 1 else f"{n:.6g} {noun}"


def set_log_ticks(ax: Axes, low: float, high: float) -> None:
    """Set a few ticks on a logarithmic axis. Matplotlib's own labels overlap within one decade."""
    from matplotlib.ticker import LogLocator, MaxNLocator

    decades = np.log10(high / low)
    if decades < 1:
        candidates = MaxNLocator(4, steps=[1, 2, 5, 10]).tick_values(low, high)
    else:
        candidates = LogLocator(subs=(1.0, 3.0) if decades < 3 else (1.0,), numticks=6).tick_values(low, high)
    chosen: list[float] = []
    for x in map(float, candidates):
        if low <= x <= high and (not chosen or np.log10(x / chosen[-1]) > decades / 7):
            chosen.append(x)
    ax.set_xticks(chosen, [f"{x:g}" for x in chosen])
    ax.set_xticks([], minor=True)

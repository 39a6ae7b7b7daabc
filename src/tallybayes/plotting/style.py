"""Shared helpers of all plots: colors, axes, legends, ticks and labels that fit."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tallybayes.errors import printable
from tallybayes.results.result import shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    from tallybayes.plotting.plot import Plot, PlotAxes

# Palette of Okabe and Ito (2008), distinguishable with any color vision.
COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
OTHERS = "#BBBBBB"  # groups without a color of their own
NOTE = "#666666"
DARK = "#444444"  # lines at 0, edges and error bars
MOST_COLORS = len(COLORS)  # number of groups with distinct colors
WIDEST = 24  # maximum length of a label in characters
DOTS = {"marker": "o", "linestyle": ""}  # legend entries of points


def words(value: object, widest: int | None = None) -> str:
    """Return a label as one printable line for a figure, with dollar signs escaped.

    Matplotlib typesets text between two dollar signs as a formula, and omits labels that start with "_" from legends.
    The middle of a long label is replaced by an ellipsis, since labels mostly differ at their ends.
    """
    text = "(missing)" if value is None else printable(value)
    text = text if widest is None else shortened(text, widest)
    text = text.replace("$", r"\$") or "''"
    return f" {text}" if text.startswith("_") else text


def name_of(column: object, widest: int = 32) -> str:
    """Return the name of a column for a figure; "column 3" for an unnamed column of an array."""
    if isinstance(column, tuple):  # a column of a block
        return words(f"{column[0]}, {column[1]}", widest)
    return words(column if isinstance(column, str) else f"column {column}", widest)


# ---- Axes ------------------------------------------------------------------------------------------------------------


def new_axes(ax: Axes | None, width: float, height: float) -> Axes:
    """Return `ax`, or axes of a new figure of this size, without spines at the top and on the right."""
    axes: Axes = all_axes(ax, width, height)[0]
    return axes


def all_axes(ax: PlotAxes, width: float, height: float, **options: Any) -> np.ndarray:
    """Return an array of `ax`, or of the axes of a new figure of this size, without spines at the top and right."""
    if ax is None:
        try:
            import matplotlib.pyplot as plt
        except ImportError:
            raise ImportError("plots require matplotlib.\n    Install it with pip install matplotlib.") from None
        ax = plt.subplots(figsize=(width, height), layout="constrained", **options)[1]
    axes = np.ravel(np.asarray(ax, dtype=object))
    for each in axes:
        each.spines[["top", "right"]].set_visible(False)
    return axes


def panels(n: int, across: int, width: float, height: float, ax: PlotAxes = None, **options: Any) -> np.ndarray:
    """Return an array of `ax`, or of `n` new axes of the given size, in rows of at most `across`."""
    across = 2 if n == 4 else max(1, min(n, across))
    n_rows = max(1, -(-n // across))
    axes = all_axes(ax, width * across, height * n_rows, nrows=n_rows, ncols=across, **options)
    for unused in axes[max(n, 1) :] if ax is None else ():
        unused.remove()
    return axes[: max(n, 1)]


def hide_spines(ax: Axes) -> None:
    """Hide all spines and the marks of the ticks."""
    ax.spines[:].set_visible(False)
    ax.tick_params(which="both", length=0)


# ---- Titles and notes ------------------------------------------------------------------------------------------------


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
        figure.set_figheight(figure.get_figheight() + 0.17 * len(lines))
        figure.suptitle("\n".join(filter(None, [figure.get_suptitle(), *lines])), fontsize=10, color=NOTE)


def add_note(plot: Plot, note: str, *, above: bool) -> None:
    """Add a note above all panels, or to the title of the first panel."""
    if above:
        note_above(plot.figure, note)
    else:
        set_title(plot.axes[0], *plot.axes[0].get_title().splitlines(), note)


def shown_of(n_shown: int, n: int, noun: str, reason: str = "") -> str:
    """Return a note if not all of `n` items are shown; else an empty text."""
    return f"showing {n_shown} of {n} {noun}{reason}" if n_shown < n else ""


def amount(n: float, noun: str) -> str:
    """Format a number of items; without a number, return the noun alone."""
    singular = {"classes": "class"}.get(noun, noun.removesuffix("s"))
    return noun if not n else f"1 {singular}" if n == 1 else f"{n:.6g} {noun}"


# ---- Groups and legends ----------------------------------------------------------------------------------------------


class GroupStyle(NamedTuple):
    """Style of one group; `label` is None if another group has the shared legend entry."""

    color: str
    label: str | None = None
    own: bool = True  # whether no other group has the color

    @property
    def line(self) -> dict[str, Any]:
        """The style of a curve; curves of gray groups are thin, and behind the others."""
        return {"color": self.color, "linewidth": 1.8 if self.own else 0.7, "zorder": 3 if self.own else 2}


def group_styles(labels: Sequence[Any], weight: np.ndarray | None = None, noun: str = "classes") -> list[GroupStyle]:
    """Return a style for every group. Beyond eight groups, the heaviest seven have colors, the others are gray."""
    n = len(labels)
    heaviest = np.argsort(-np.nan_to_num(np.ones(n) if weight is None else weight), kind="stable")
    colored = sorted(heaviest[: n if n <= MOST_COLORS else MOST_COLORS - 1].tolist())
    gray = [k for k in range(n) if k not in colored]
    entries = [f"{len(gray)} other {noun}", *[None] * n]
    styles = {k: GroupStyle(OTHERS, entry, own=False) for k, entry in zip(gray, entries, strict=False)}
    styles |= {k: GroupStyle(color, words(labels[k], WIDEST)) for color, k in zip(COLORS, colored, strict=False)}
    return [styles[k] for k in range(n)]


def gray_first(styles: Sequence[GroupStyle]) -> list[int]:
    """Return the indices of the groups, gray ones first, so that those with colors are drawn above them."""
    return sorted(range(len(styles)), key=lambda k: styles[k].own)


def group_handles(styles: Iterable[GroupStyle], **options: Any) -> list[Line2D]:
    """Return the legend handles of the groups; the entry of the gray groups is last."""
    from matplotlib.lines import Line2D

    entries = sorted((style for style in styles if style.label), key=lambda style: not style.own)
    return [Line2D([], [], color=style.color, label=style.label, **options) for style in entries]


def legend_beside(ax: Axes, title: object = None, styles: Iterable[GroupStyle] | None = None, **options: Any) -> None:
    """Add a legend to the right of the axes: of the labeled artists, or of groups."""
    handles = ax.get_legend_handles_labels()[0] if styles is None else group_handles(styles, **options)
    if handles:
        heading = None if title is None else words(title, WIDEST)
        ax.legend(
            handles=handles, title=heading, loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=9
        )


def legend_above(ax: Axes, colors: Mapping[str, tuple[Any, Any]]) -> None:
    """Add a legend of areas above the axes, with the fill color and the edge color of each."""
    from matplotlib.patches import Patch

    if colors:
        handles = [Patch(facecolor=face, edgecolor=edge, label=label) for label, (face, edge) in colors.items()]
        position: dict[str, Any] = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "borderaxespad": 0.2}
        ax.legend(handles=handles, ncols=len(handles), frameon=False, **position)


# ---- Ticks -----------------------------------------------------------------------------------------------------------


def ticks(ax: Axes, axis: str, labels: Sequence[Any], size: float = 9.0, widest: int = WIDEST) -> None:
    """Set labels at the positions 0, 1, 2, …, or at every k-th position if they do not all fit.

    The number of labels follows from the size of the axes. Long labels of the x axis are rotated.
    """
    n = len(labels)
    shown = [words(label, widest) for label in labels]
    inches = ax.get_window_extent().transformed(ax.figure.dpi_scale_trans.inverted())
    # Points per label; the axes shrink when all labels around them are drawn.
    room = (0.85 * inches.width if axis == "x" else 0.6 * inches.height) * 72 / max(n, 1)
    rotated = axis == "x" and max(map(len, shown), default=0) * 0.62 * size + 4 > room
    step = max(1, int(np.ceil(1.25 * size / max(room, 1e-9)))) if rotated or axis == "y" else 1
    rotation = {"rotation": 90, "ha": "center", "va": "top"} if rotated else {}
    getattr(ax, f"set_{axis}ticks")(range(0, n, step), shown[::step], fontsize=size, **rotation)


def set_log_ticks(ax: Axes, low: float, high: float) -> None:
    """Set a few ticks on a logarithmic axis. Matplotlib's own labels overlap within one decade."""
    digits = 1 if high > 10 * low else 2
    candidates = sorted({float(f"{x:.{digits}g}") for x in np.geomspace(low, high, 5)})
    chosen = [x for x in candidates if low <= x <= high]
    ax.set_xticks(chosen, [f"{x:g}" for x in chosen])
    ax.set_xticks([], minor=True)

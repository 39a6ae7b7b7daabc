"""What all pictures share: colors, axes, few lines, labels that fit."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tallybayes.errors import printable

# Okabe and Ito's colors, which people with any color vision can tell apart.
COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
OTHERS = "#BBBBBB"  # what has no color of its own
NOTE = "#666666"
MOST_COLORS = len(COLORS)  # of more groups the most frequent have a color, and all others are gray
WIDEST = 24  # a label is cut here, so that a few of them fit beside a picture


def words(value: object, widest: int | None = None) -> str:
    """A label or a name for a picture: one line, as it is. A dollar is no mathematics, and none is hidden or empty.

    matplotlib sets what stands between two dollars as a formula, and leaves labels that begin with "_" out of legends.
    A long one loses its middle, since the ends tell labels apart.
    """
    text = "(missing)" if value is None else printable(value)
    if widest is not None and len(text) > widest:
        tail = (widest - 1) // 2
        text = f"{text[: widest - 1 - tail]}…{text[-tail:]}"
    text = text.replace("$", r"\$") or "''"
    return f" {text}" if text.startswith("_") else text


def name_of(column: Any, widest: int = 32) -> str:
    """The name of a column; one of an array that has none is "column 3"."""
    if isinstance(column, tuple):  # one of a block
        return words(f"{column[0]}, {column[1]}", widest)
    return words(column if isinstance(column, str) else f"column {column}", widest)


def new_axes(ax: Any, **options: Any) -> Any:
    """The axes given, or new ones."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("pictures need matplotlib.\n    Install it with pip install 'tallybayes[plot]'.") from None
    return plt.subplots(**options)[1]


def panels(n: int, across: int, width: float, height: float, **options: Any) -> np.ndarray:
    """So many axes in rows of at most `across`, each of this size."""
    across = 2 if n == 4 else max(1, min(n, across))
    down = max(1, -(-n // across))
    size = (width * across, height * down)
    axes = np.ravel(new_axes(None, nrows=down, ncols=across, figsize=size, layout="constrained", **options))
    for ax in axes[n:]:
        ax.remove()
    return axes[: max(n, 1)]


def hide_top_right_spines(ax: Any) -> None:
    """Without the lines at the top and on the right."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def hide_spines(ax: Any) -> None:
    """Without any lines around it."""
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.tick_params(length=0)


def in_lines(ax: Any, text: str, size: float) -> str:
    """Words in as many lines as it takes to stay over the axes."""
    inches = ax.get_window_extent().width / ax.figure.dpi
    return textwrap.fill(text, max(24, int(inches * 72 / (0.58 * size))), break_long_words=False)


def set_title(ax: Any, *lines: str, size: float = 11.0) -> None:
    """A title that stays over its axes; each of the lines in as many as it takes."""
    ax.set_title("\n".join(in_lines(ax, line, size) for line in lines if line), fontsize=size)


def note_above(figure: Any, *notes: str) -> None:
    """Lines of words above all panels, below those that are there; the figure grows by as much as they take."""
    widest = max(24, int(figure.get_figwidth() * 72 / 5.8))
    lines = [line for note in notes for line in textwrap.wrap(note, widest)]
    if lines:
        before = figure.get_suptitle()
        figure.set_figheight(figure.get_figheight() + 0.17 * len(lines))
        figure.suptitle("\n".join([before, *lines] if before else lines), fontsize=10, color=NOTE)


def add_note(picture: Any, note: str, *, above: bool) -> None:
    """One more line of words: above all panels, or in the title of the first."""
    if above:
        note_above(picture.figure, note)
    else:
        set_title(picture.axes[0], *picture.axes[0].get_title().splitlines(), note)


class GroupStyle(NamedTuple):
    """How one of some groups is drawn; `label` is for a legend, None where another one speaks for it."""

    color: str
    label: str | None
    own: bool  # whether the color is its own


def group_styles(labels: Sequence[Any], weight: Any = None, what: str = "classes") -> list[GroupStyle]:
    """A color for every group; of more than there are colors, for the heaviest, and gray for all others."""
    n = len(labels)
    if n <= MOST_COLORS:
        return [GroupStyle(COLORS[k], words(label, WIDEST), own=True) for k, label in enumerate(labels)]
    heavy = np.argsort(-np.nan_to_num(np.ones(n) if weight is None else weight), kind="stable")[: MOST_COLORS - 1]
    places = {int(k): place for place, k in enumerate(sorted(heavy))}
    first = next(k for k in range(n) if k not in places)
    found = []
    for k, label in enumerate(labels):
        if k in places:
            found.append(GroupStyle(COLORS[places[k]], words(label, WIDEST), own=True))
        else:
            name = f"{n - len(heavy)} other {what}" if k == first else None
            found.append(GroupStyle(OTHERS, name, own=False))
    return found


def legend_beside(ax: Any, title: Any = None, **options: Any) -> None:
    """A legend to the right of the axes, where it hides nothing; those in gray come last."""
    handles, names = ax.get_legend_handles_labels()
    if not handles:
        return
    order = sorted(range(len(names)), key=lambda k: " other " in names[k] and names[k].split(" ")[0].isdigit())
    place = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "frameon": False, "fontsize": 9, **options}
    found = ax.legend([handles[k] for k in order], [names[k] for k in order], **place)
    if title is not None:
        found.set_title(words(title, WIDEST))


def ticks(ax: Any, axis: str, labels: Sequence[Any], size: float = 9.0, widest: int = WIDEST) -> None:
    """A label at every place from 0 on, as many as fit: every second, third … of more; upright where they are long.

    How many fit follows from the size of the axes.
    """
    n = len(labels)
    shown = [words(label, widest) for label in labels]
    inches = ax.get_window_extent().transformed(ax.figure.dpi_scale_trans.inverted())
    # Points for each; the axes become smaller when all labels around them are known.
    room = (0.85 * inches.width if axis == "x" else 0.6 * inches.height) * 72 / max(n, 1)
    turned = axis == "x" and max((len(text) for text in shown), default=0) * 0.62 * size + 4 > room
    each = 1.25 * size if turned or axis == "y" else 0.0
    step = max(1, int(np.ceil(each / max(room, 1e-9)))) if each else 1
    looks_of = {"rotation": 90, "ha": "center", "va": "top"} if turned else {}
    getattr(ax, f"set_{axis}ticks")(range(0, n, step), shown[::step], fontsize=size, **looks_of)


def amount(n: float, what: str) -> str:
    """So many of something, in words; where the number is not known, the word alone."""
    one = {"classes": "class"}.get(what, what.removesuffix("s"))
    return what if not n else f"1 {one}" if n == 1 else f"{n:.6g} {what}"


def set_log_ticks(ax: Any, low: float, high: float) -> None:
    """A few plain numbers; matplotlib labels all of one decade, one over the other."""
    from matplotlib.ticker import LogLocator, MaxNLocator

    decades = np.log10(high / low)
    if decades < 1:
        at = MaxNLocator(4, steps=[1, 2, 5, 10]).tick_values(low, high)
    else:
        at = LogLocator(subs=(1.0, 3.0) if decades < 3 else (1.0,), numticks=6).tick_values(low, high)
    inside: list[float] = []
    for x in map(float, at):
        if low <= x <= high and (not inside or np.log10(x / inside[-1]) > decades / 7):
            inside.append(x)
    ax.set_xticks(inside, [f"{x:g}" for x in inside])
    ax.set_xticks([], minor=True)

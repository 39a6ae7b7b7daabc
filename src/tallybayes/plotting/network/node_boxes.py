"""Boxes and arrows of a network's picture: what is in a box, how large that is, and how it is drawn."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from tallybayes.plotting.network.layered_layout import Point
from tallybayes.plotting.style import COLORS

AFTER, BEFORE = COLORS[0], "#B5D3E7"
NOTE = "#666666"
_EDGE, _ARROW = "#444444", "#777777"
_KINDS = {"free": (_EDGE, "white", 1.0), "observed": (COLORS[1], "#FFF4DD", 2.2), "set": (COLORS[3], "#FAEBF3", 2.2)}


class TypeSizes(NamedTuple):
    """The sizes of what is in a box, in points."""

    name: float
    small: float
    bar: float
    pad: float
    decimals: int

    @property
    def line(self) -> float:
        """The height of a small line."""
        return 1.5 * self.small


ROOMY, TIGHT = TypeSizes(10.0, 7.5, 56.0, 6.0, 3), TypeSizes(8.5, 6.5, 36.0, 4.0, 0)


class Bars(NamedTuple):
    """The probabilities of some levels before and after something is known; None where they are not known."""

    labels: list[str]
    before: np.ndarray | None
    after: np.ndarray | None


class Box(NamedTuple):
    """What is written into the box of a node.

    Attributes
    ----------
    title : str
    kind : {"free", "observed", "set"}, or a color
    table : list of lines, the first of them the head
    shares : ndarray of shape (lines, levels)
        The probabilities among the table's cells, for their color.
    note : str
    bars : Bars, optional
    """

    title: str
    kind: str = "free"
    table: list[list[str]] = []  # noqa: RUF012 - never changed
    shares: np.ndarray = np.zeros((0, 0))
    note: str = ""
    bars: Bars | None = None


class BoxDrawer:
    """Draws boxes, words and arrows in points, onto axes that may show them smaller or larger.

    The limits of the axes are set before, so shapes are added as artists: as patches they would look for new ones.
    """

    def __init__(self, ax: Any, scale: float) -> None:
        self.ax, self.scale = ax, scale

    def text(self, x: float, y: float, text: str, size: float, ha: str = "left", **looks: Any) -> None:
        """Words, centered on the line at y."""
        looks = {"va": "center_baseline", "zorder": 5, "parse_math": False, **looks}
        self.ax.text(x, y, text, fontsize=size * self.scale, ha=ha, **looks)

    def rectangle(self, x: float, y: float, width: float, height: float, **looks: Any) -> None:
        """A rectangle without an edge, from its upper left corner."""
        from matplotlib.patches import Rectangle

        self.ax.add_artist(Rectangle((x, y), width, height, **{"linewidth": 0, "zorder": 4, **looks}))

    def box(self, x: float, y: float, width: float, height: float, kind: str) -> None:
        """A rounded box, from its upper left corner."""
        from matplotlib.patches import FancyBboxPatch

        edge, face, line = _KINDS[kind] if kind in _KINDS else (kind, pale(kind), 2.2)
        shape = "round,pad=0,rounding_size=5"
        patch = FancyBboxPatch((x, y), width, height, boxstyle=shape)
        patch.set(edgecolor=edge, facecolor=face, linewidth=line * self.scale, zorder=3)
        self.ax.add_artist(patch)

    def arrow(
        self, route: list[Point], *, cut: bool = False, width: float = 1.0, head: bool = True, color: str = _ARROW
    ) -> None:
        """An arrow along a route; dashed where the child does not listen, a mere line without a head."""
        from matplotlib.patches import FancyArrowPatch
        from matplotlib.path import Path

        points, codes = [route[0]], [Path.MOVETO]
        for place, (start, end) in enumerate(pairwise(route)):
            if abs(end[1] - start[1]) < 1e-6:
                continue
            if place % 2 == 0:  # straight down, beside boxes
                points.append(end)
                codes.append(Path.LINETO)
            else:  # it leaves and arrives vertically
                half = (start[1] + end[1]) / 2
                points += [(start[0], half), (end[0], half), end]
                codes += [Path.CURVE4] * 3
        size = self.scale * (0.7 + 0.3 * width)
        style = f"-|>,head_length={4.5 * size},head_width={2.2 * size}" if head else "-"
        arrow = FancyArrowPatch(path=Path(points, codes), arrowstyle=style, mutation_scale=1.0, shrinkA=0, shrinkB=0)
        arrow.set(color="#BBBBBB" if cut else color, linewidth=width * self.scale, joinstyle="miter", zorder=2)
        arrow.set_linestyle((0, (2, 2)) if cut else "-")
        self.ax.add_artist(arrow)


def pale(color: str) -> str:
    """The same color, with four parts of white."""
    from matplotlib.colors import to_hex, to_rgb

    red, green, blue = (0.8 + 0.2 * part for part in to_rgb(color))
    return to_hex((red, green, blue))


def text_width(text: str, size: float, weight: str = "normal") -> float:
    """The width of words in points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=size, weight=weight)
    return float(text_to_path.get_text_width_height_descent(text, font, ismath=False)[0])


def _columns(box: Box, style: TypeSizes) -> list[float]:
    """The widths of the columns of a table."""
    return [max(text_width(cell, style.small) for cell in column) + 8.0 for column in zip(*box.table, strict=True)]


def _label_width(bars: Bars, style: TypeSizes) -> float:
    return max(text_width(label, style.small) for label in bars.labels)


def _number_width(style: TypeSizes) -> float:
    return text_width("0.000", style.small) + 6.0 if style.decimals else 0.0


def box_size(box: Box, style: TypeSizes) -> tuple[float, float]:
    """Width and height of a box."""
    widths = [text_width(box.title, style.name, "bold")]
    n_lines = len(box.table)
    if box.table:
        widths.append(sum(_columns(box, style)))
    if box.note:
        widths.append(text_width(box.note, style.small))
        n_lines += 1
    if box.bars is not None:
        widths.append(_label_width(box.bars, style) + 4.0 + style.bar + _number_width(style))
        n_lines += len(box.bars.labels)
    return max(widths) + 2 * style.pad, 1.4 * style.name + n_lines * style.line + style.pad


def draw_box(brush: BoxDrawer, box: Box, center: Point, size: tuple[float, float], style: TypeSizes) -> None:
    """A node's box and what is in it."""
    left, top = center[0] - size[0] / 2, center[1] - size[1] / 2
    brush.box(left, top, *size, box.kind)
    brush.text(center[0], top + style.pad / 2 + 0.7 * style.name, box.title, style.name, "center", weight="bold")
    down = top + style.pad / 2 + 1.4 * style.name
    if box.note:
        brush.text(center[0], down + style.line / 2, box.note, style.small, "center", color=NOTE)
        down += style.line
    if box.table:
        _draw_table(brush, box, center[0], down, style)
    if box.bars is not None:
        _draw_bars(brush, box.bars, left + style.pad, down, size[0] - 2 * style.pad, style)


def _draw_table(brush: BoxDrawer, box: Box, middle: float, down: float, style: TypeSizes) -> None:
    widths = _columns(box, style)
    n_given = len(widths) - (box.shares.shape[1] or len(widths))
    start = middle - sum(widths) / 2
    edges = start + np.concatenate([[0.0], np.cumsum(widths)])
    for number, line in enumerate(box.table):
        y = down + number * style.line
        for column, cell in enumerate(line):
            x = (edges[column] + edges[column + 1]) / 2
            if number and box.shares.size and column >= n_given:
                p = box.shares[number - 1, column - n_given]
                shade = 0.0 if np.isnan(p) else 0.45 * float(p)
                brush.rectangle(edges[column], y, widths[column], style.line, color=AFTER, alpha=shade)
            brush.text(x, y + style.line / 2, cell, style.small, "center", color=NOTE if number == 0 else "black")
    brush.rectangle(start, down + style.line, sum(widths), 0.5, color="#AAAAAA")


def _draw_bars(brush: BoxDrawer, bars: Bars, left: float, down: float, width: float, style: TypeSizes) -> None:
    label, number = _label_width(bars, style), _number_width(style)
    start, length = left + label + 4.0, width - label - 4.0 - number
    for place, name in enumerate(bars.labels):
        y = down + (place + 0.5) * style.line
        brush.text(start - 4.0, y, name, style.small, "right")
        brush.rectangle(start, y - 0.42 * style.line, length, 0.84 * style.line, color="#F0F0F0", zorder=3.5)
        for side, height, color in ((bars.before, 0.84, BEFORE), (bars.after, 0.4, AFTER)):
            if side is not None:
                tall = height * style.line
                brush.rectangle(start, y - tall / 2, length * float(side[place]), tall, color=color)
        if style.decimals and bars.after is not None:
            shown = f"{bars.after[place]:.{style.decimals}f}"
            brush.text(left + width, y, shown, style.small, "right", color=NOTE)

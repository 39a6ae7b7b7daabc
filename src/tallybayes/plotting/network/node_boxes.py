"""Boxes and edges of network plots: contents, sizes and drawing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tallybayes.errors import printable
from tallybayes.plotting.network.layered_layout import Point
from tallybayes.plotting.style import COLORS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

AFTER, BEFORE = COLORS[0], "#B5D3E7"
NOTE = "#666666"
_EDGE, _ARROW = "#444444", "#777777"
_KINDS = {"free": (_EDGE, "white", 1.0), "observed": (COLORS[1], "#FFF4DD", 2.2), "set": (COLORS[3], "#FAEBF3", 2.2)}
_MANY_NODES = 16  # above this number, nodes are small, without tables
_MAX_BARS = 6


class TypeSizes(NamedTuple):
    """Sizes of the contents of a box, in points, and the number of decimals of probabilities."""

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


def style_for(n_nodes: int) -> TypeSizes:
    """Return the sizes for a number of nodes."""
    return ROOMY if n_nodes <= _MANY_NODES else TIGHT


class Bars(NamedTuple):
    """Probabilities of levels before and after evidence; None if they are undefined."""

    labels: list[str]
    before: np.ndarray | None
    after: np.ndarray | None

    @classmethod
    def of_levels(cls, levels: Sequence[Any], before: np.ndarray | None, after: np.ndarray | None) -> Bars:
        """Return a bar for every level, or for the most probable ones and all others; none if both are undefined."""
        labels = [shorten(level, 16) for level in levels]
        defined = [side for side in (before, after) if side is not None]
        if len(labels) <= _MAX_BARS or not defined:
            return cls(labels if defined else [], before, after)
        kept = np.sort(np.argsort(-np.max(defined, axis=0), kind="stable")[: _MAX_BARS - 1])
        rest = np.delete(np.arange(len(labels)), kept)
        sides = [None if side is None else np.append(side[kept], side[rest].sum()) for side in (before, after)]
        return cls([*(labels[k] for k in kept), f"{len(rest)} others"], *sides)


class Box(NamedTuple):
    """The contents of a node's box.

    Attributes
    ----------
    title : str
    kind : {"free", "observed", "set"}, or a color
    table : list of rows, the first of which is the head
    shades : ndarray of shape (rows, levels)
        The probabilities among the table's cells, as shades of color.
    note : str
    bars : Bars, optional
    """

    title: str
    kind: str = "free"
    table: list[list[str]] = []  # noqa: RUF012 - never changed
    shades: np.ndarray = np.zeros((0, 0))
    note: str = ""
    bars: Bars | None = None

    def size(self, style: TypeSizes) -> tuple[float, float]:
        """Return width and height in points."""
        widths = [text_width(self.title, style.name, "bold")]
        n_lines = len(self.table)
        if self.table:
            widths.append(sum(_column_widths(self, style)))
        if self.note:
            widths.append(text_width(self.note, style.small))
            n_lines += 1
        if self.bars is not None:
            widths.append(_label_width(self.bars, style) + 4.0 + style.bar + _number_width(style))
            n_lines += len(self.bars.labels)
        return max(widths) + 2 * style.pad, 1.4 * style.name + n_lines * style.line + style.pad


@dataclass(frozen=True)
class BoxDrawer:
    """Draws boxes, text and edges in points, onto axes that may show them smaller or larger.

    The limits of the axes are set before, so that shapes are added as artists: patches would change the limits.
    """

    ax: Axes
    scale: float

    def text(self, x: float, y: float, text: str, size: float, ha: str = "left", **style: Any) -> None:
        """Draw text, vertically centered at y."""
        style = {"va": "center_baseline", "zorder": 5, "parse_math": False, **style}
        self.ax.text(x, y, text, fontsize=size * self.scale, ha=ha, **style)

    def rectangle(self, x: float, y: float, width: float, height: float, **style: Any) -> None:
        """Draw a rectangle without an outline, from its upper left corner."""
        from matplotlib.patches import Rectangle

        self.ax.add_artist(Rectangle((x, y), width, height, **{"linewidth": 0, "zorder": 4, **style}))

    def box(self, x: float, y: float, width: float, height: float, kind: str) -> None:
        """Draw a rounded box, from its upper left corner."""
        from matplotlib.patches import FancyBboxPatch

        edge, face, line = _KINDS[kind] if kind in _KINDS else (kind, pale(kind), 2.2)
        patch = FancyBboxPatch((x, y), width, height, boxstyle="round,pad=0,rounding_size=5")
        patch.set(edgecolor=edge, facecolor=face, linewidth=line * self.scale, zorder=3)
        self.ax.add_artist(patch)

    def arrow(
        self, route: list[Point], *, cut: bool = False, width: float = 1.0, head: bool = True, color: str = _ARROW
    ) -> None:
        """Draw an edge along a route: dashed if an intervention cuts it, a plain line without a head."""
        from matplotlib.patches import FancyArrowPatch
        from matplotlib.path import Path

        points, codes = [route[0]], [Path.MOVETO]
        for segment, (start, end) in enumerate(pairwise(route)):
            if abs(end[1] - start[1]) < 1e-6:
                continue
            if segment % 2 == 0:  # straight down, beside boxes
                points.append(end)
                codes.append(Path.LINETO)
            else:  # a curve with vertical ends
                middle = (start[1] + end[1]) / 2
                points += [(start[0], middle), (end[0], middle), end]
                codes += [Path.CURVE4] * 3
        size = self.scale * (0.7 + 0.3 * width)
        arrowstyle = f"-|>,head_length={4.5 * size},head_width={2.2 * size}" if head else "-"
        path = Path(points, codes)
        arrow = FancyArrowPatch(path=path, arrowstyle=arrowstyle, mutation_scale=1.0, shrinkA=0, shrinkB=0)
        arrow.set(color="#BBBBBB" if cut else color, linewidth=width * self.scale, joinstyle="miter", zorder=2)
        arrow.set_linestyle((0, (2, 2)) if cut else "-")
        self.ax.add_artist(arrow)

    def draw_box(self, box: Box, center: Point, size: tuple[float, float], style: TypeSizes) -> None:
        """Draw a node's box with its contents."""
        left, top = center[0] - size[0] / 2, center[1] - size[1] / 2
        self.box(left, top, *size, box.kind)
        self.text(center[0], top + style.pad / 2 + 0.7 * style.name, box.title, style.name, "center", weight="bold")
        y = top + style.pad / 2 + 1.4 * style.name
        if box.note:
            self.text(center[0], y + style.line / 2, box.note, style.small, "center", color=NOTE)
            y += style.line
        if box.table:
            self._draw_table(box, center[0], y, style)
        if box.bars is not None:
            self._draw_bars(box.bars, left + style.pad, y, size[0] - 2 * style.pad, style)

    def _draw_table(self, box: Box, center: float, top: float, style: TypeSizes) -> None:
        widths = _column_widths(box, style)
        n_given = len(widths) - (box.shades.shape[1] or len(widths))
        start = center - sum(widths) / 2
        edges = start + np.concatenate([[0.0], np.cumsum(widths)])
        for row, cells in enumerate(box.table):
            y = top + row * style.line
            for column, cell in enumerate(cells):
                if row and box.shades.size and column >= n_given:
                    p = box.shades[row - 1, column - n_given]
                    alpha = 0.0 if np.isnan(p) else 0.45 * float(p)
                    self.rectangle(edges[column], y, widths[column], style.line, color=AFTER, alpha=alpha)
                x = (edges[column] + edges[column + 1]) / 2
                self.text(x, y + style.line / 2, cell, style.small, "center", color=NOTE if row == 0 else "black")
        self.rectangle(start, top + style.line, sum(widths), 0.5, color="#AAAAAA")

    def _draw_bars(self, bars: Bars, left: float, top: float, width: float, style: TypeSizes) -> None:
        start = left + _label_width(bars, style) + 4.0
        length = left + width - _number_width(style) - start
        for k, label in enumerate(bars.labels):
            y = top + (k + 0.5) * style.line
            self.text(start - 4.0, y, label, style.small, "right")
            self.rectangle(start, y - 0.42 * style.line, length, 0.84 * style.line, color="#F0F0F0", zorder=3.5)
            for side, relative_height, color in ((bars.before, 0.84, BEFORE), (bars.after, 0.4, AFTER)):
                if side is not None:
                    height = relative_height * style.line
                    self.rectangle(start, y - height / 2, length * float(side[k]), height, color=color)
            if style.decimals and bars.after is not None:
                number = f"{bars.after[k]:.{style.decimals}f}"
                self.text(left + width, y, number, style.small, "right", color=NOTE)


def shorten(value: object, most: int) -> str:
    """Return a name, truncated to a number of characters."""
    text = printable(value)  # plots draw all text without mathematics
    return text if len(text) <= most else text[: most - 1] + "…"


def pale(color: str) -> str:
    """Return the color mixed with four parts of white."""
    from matplotlib.colors import to_hex, to_rgb

    red, green, blue = (0.8 + 0.2 * part for part in to_rgb(color))
    return to_hex((red, green, blue))


def text_width(text: str, size: float, weight: str = "normal") -> float:
    """Return the width of text in points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=size, weight=weight)
    return float(text_to_path.get_text_width_height_descent(text, font, ismath=False)[0])


def _column_widths(box: Box, style: TypeSizes) -> list[float]:
    """Return the widths of the columns of a table."""
    return [max(text_width(cell, style.small) for cell in column) + 8.0 for column in zip(*box.table, strict=True)]


def _label_width(bars: Bars, style: TypeSizes) -> float:
    return max(text_width(label, style.small) for label in bars.labels)


def _number_width(style: TypeSizes) -> float:
    return text_width("0.000", style.small) + 6.0 if style.decimals else 0.0

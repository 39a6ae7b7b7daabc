"""Boxes and edges of network plots: contents, sizes and drawing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tallybayes.plotting.network.layered_layout import Point
from tallybayes.plotting.style import COLORS, DARK, NOTE, OTHERS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

AFTER, BEFORE = COLORS[0], "#B5D3E7"
_ARROW = "#777777"
_KINDS = {"free": (DARK, "white", 1.0), "observed": (COLORS[1], "#FFF4DD", 2.2), "set": (COLORS[3], "#FAEBF3", 2.2)}
_MANY_NODES = 16  # above this number, nodes are small, without tables


class TypeSizes(NamedTuple):
    """Sizes of the contents of a box, in points, and whether there is room for tables and numbers."""

    name: float
    small: float
    bar: float
    pad: float
    has_numbers: bool

    @property
    def line(self) -> float:
        """The height of a small line."""
        return 1.5 * self.small


ROOMY, TIGHT = TypeSizes(10.0, 7.5, 56.0, 6.0, True), TypeSizes(8.5, 6.5, 36.0, 4.0, False)


def style_for(n_nodes: int) -> TypeSizes:
    """Return the sizes for a number of nodes."""
    return ROOMY if n_nodes <= _MANY_NODES else TIGHT


class Cell(NamedTuple):
    """A cell of a table in a box: text, shaded by a probability, or bars of two probabilities."""

    text: str = ""
    color: str = "black"
    shade: float | None = None
    bars: tuple[float | None, float | None] | None = None  # before and after

    def width(self, style: TypeSizes) -> float:
        """Return the width in points."""
        return style.bar if self.bars else text_width(self.text, style.small) + 8.0


@dataclass(frozen=True)
class Box:
    """The contents of a node's box.

    Attributes
    ----------
    title : str
    kind : {"free", "observed", "set"}, or a color
    note : str
    rows : sequence of sequences of Cell
        All rows have the same number of cells.
    has_head : bool
        Whether the first row is a head, with a line below.
    """

    title: str
    kind: str = "free"
    note: str = ""
    rows: Sequence[Sequence[Cell]] = ()
    has_head: bool = False

    def widths(self, style: TypeSizes) -> np.ndarray:
        """Return the widths of the columns in points."""
        return np.array([[cell.width(style) for cell in row] for row in self.rows or [[]]]).max(axis=0)

    def size(self, style: TypeSizes) -> tuple[float, float]:
        """Return width and height in points."""
        heading = text_width(self.title, style.name, "bold")
        width = max(heading, text_width(self.note, style.small), self.widths(style).sum())
        n_lines = len(self.rows) + bool(self.note)
        return width + 2 * style.pad, 1.4 * style.name + n_lines * style.line + style.pad


@dataclass(frozen=True)
class BoxDrawer:
    """Draws boxes, text and edges in points, onto axes that may show them smaller or larger.

    The limits of the axes are set before, so that shapes are added as artists: patches would change the limits.
    """

    ax: Axes
    scale: float

    def text(self, x: float, y: float, text: str, size: float, **style: Any) -> None:
        """Draw text, centered at x and y."""
        self.ax.text(x, y, text, fontsize=size * self.scale, ha="center", va="center_baseline", zorder=5, **style)

    def rectangle(self, x: float, y: float, width: float, height: float, **style: Any) -> None:
        """Draw a rectangle without an outline, from the middle of its left side."""
        from matplotlib.patches import Rectangle

        self.ax.add_artist(Rectangle((x, y - height / 2), width, height, linewidth=0, **{"zorder": 4, **style}))

    def arrow(
        self, route: list[Point], *, cut: bool = False, width: float = 1.0, head: bool = True, color: str = _ARROW
    ) -> None:
        """Draw an edge along a route: dashed if an intervention cuts it, a plain line without a head."""
        from matplotlib.patches import FancyArrowPatch
        from matplotlib.path import Path

        points, codes = [route[0]], [Path.MOVETO]
        for segment, (start, end) in enumerate(pairwise(route)):
            middle = (start[1] + end[1]) / 2
            if abs(end[1] - start[1]) < 1e-6:
                continue
            # Straight down beside boxes, else a curve with vertical ends.
            step = [end] if segment % 2 == 0 else [(start[0], middle), (end[0], middle), end]
            points += step
            codes += [Path.LINETO if len(step) == 1 else Path.CURVE4] * len(step)
        size = self.scale * (0.7 + 0.3 * width)
        arrowstyle = f"-|>,head_length={4.5 * size},head_width={2.2 * size}" if head else "-"
        line: dict[str, Any] = {
            "color": OTHERS if cut else color,
            "linestyle": (0, (2, 2)) if cut else "-",
            "joinstyle": "miter",
        }
        line |= {"linewidth": width * self.scale, "mutation_scale": 1.0, "shrinkA": 0, "shrinkB": 0, "zorder": 2}
        self.ax.add_artist(FancyArrowPatch(path=Path(points, codes), arrowstyle=arrowstyle, **line))

    def draw_box(self, box: Box, center: Point, style: TypeSizes) -> None:
        """Draw a node's box with its contents."""
        from matplotlib.patches import FancyBboxPatch

        x = center[0]
        width, height = box.size(style)
        top = center[1] - height / 2
        edge, face, line = _KINDS.get(box.kind, (box.kind, (box.kind, 0.2), 2.2))
        frame = FancyBboxPatch((x - width / 2, top), width, height, boxstyle="round,pad=0,rounding_size=5")
        frame.set(edgecolor=edge, facecolor=face, linewidth=line * self.scale, zorder=3)
        self.ax.add_artist(frame)
        self.text(x, top + style.pad / 2 + 0.7 * style.name, box.title, style.name, weight="bold")
        y = top + style.pad / 2 + 1.4 * style.name + style.line / 2  # the middle of the first line
        if box.note:
            self.text(x, y, box.note, style.small, color=NOTE)
            y += style.line
        widths = box.widths(style)
        left = x - widths.sum() / 2 + np.cumsum(widths) - widths
        for row in box.rows:
            for start, length, cell in zip(left.tolist(), widths.tolist(), row, strict=True):
                self._draw_cell(cell, start, y, length, style)
            y += style.line
        if box.has_head:
            below = top + style.pad / 2 + 1.4 * style.name + style.line
            self.rectangle(left[0], below, widths.sum(), 0.5, color="#AAAAAA")

    def _draw_cell(self, cell: Cell, x: float, y: float, width: float, style: TypeSizes) -> None:
        """Draw a cell whose left side has its middle at x and y."""
        if cell.shade is not None:
            self.rectangle(x, y, width, style.line, color=AFTER, alpha=0.45 * np.nan_to_num(cell.shade))
        if cell.bars is None:
            self.text(x + width / 2, y, cell.text, style.small, color=cell.color)
            return
        self.rectangle(x, y, width, 0.84 * style.line, color="#F0F0F0", zorder=3.5)
        for p, height, color in zip(cell.bars, (0.84, 0.4), (BEFORE, AFTER), strict=True):
            if p is not None:
                self.rectangle(x, y, width * p, height * style.line, color=color)


def text_width(text: str, size: float, weight: str = "normal") -> float:
    """Return the width of text in points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=size, weight=weight)
    return float(text_to_path.get_text_width_height_descent(text, font, ismath=False)[0])

"""Pictures of Bayesian networks: the graph with its tables or posteriors, and what evidence moved."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tallybayes.errors import EstimateError, ImpossibleEvidenceError
from tallybayes.plots.layered import Point, lay_out
from tallybayes.plots.style import COLOURS, new_axes, quiet

_MANY = 16  # more nodes than this are drawn small, with their names only
_LINES, _LEVELS = 8, 4  # larger tables are not written out
_BARS = 6  # levels with a bar
_MOVED = 12  # nodes in the picture of what moved
_INCHES = 30.0  # a figure is not made larger
_MARGIN, _TITLE = 6.0, 10.0
_BLUE, _PALE = COLOURS[0], "#B5D3E7"
_EDGE, _ARROW, _NOTE = "#444444", "#777777", "#666666"
_KINDS = {"free": (_EDGE, "white", 1.0), "observed": (COLOURS[1], "#FFF4DD", 2.2), "set": (COLOURS[3], "#FAEBF3", 2.2)}


class Type(NamedTuple):
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


_ROOMY, _TIGHT = Type(10.0, 7.5, 56.0, 6.0, 3), Type(8.5, 6.5, 36.0, 4.0, 0)


class Bars(NamedTuple):
    """The probabilities of some levels before and after the evidence."""

    labels: list[str]
    before: np.ndarray
    after: np.ndarray


class Box(NamedTuple):
    """What is written into the box of a node.

    Attributes
    ----------
    title : str
    kind : {"free", "observed", "set"}
    table : list of lines, the first of them the head
    shares : ndarray of shape (lines, levels)
        The probabilities among the table's cells, for their colour.
    note : str
    bars : Bars, optional
    """

    title: str
    kind: str = "free"
    table: list[list[str]] = []  # noqa: RUF012 - never changed
    shares: np.ndarray = np.zeros((0, 0))
    note: str = ""
    bars: Bars | None = None


def plot_network(model: Any, ax: Any = None, *, evidence: Any = None, do: Any = None, tables: bool = True) -> Any:
    """The graph, parents above children; in the boxes tables, or posteriors where something is known.

    Parameters
    ----------
    model : BayesianNetwork
    ax : matplotlib Axes, optional
    evidence, do : mappings, optional
        As for `BayesianNetwork.query`.
    tables : bool, default True
    """
    nodes = model.graph_.nodes
    style = _ROOMY if len(nodes) <= _MANY else _TIGHT
    if evidence or do:
        check_is_fitted(model, "tally_")
        boxes = {node: _posterior_box(model, node, evidence or {}, do or {}) for node in nodes}
    elif tables and hasattr(model, "tally_") and style is _ROOMY:
        boxes = {node: _table_box(model, node) for node in nodes}
    else:
        boxes = {node: Box(_cut(node, 24)) for node in nodes}
    sizes = {node: _size(box, style) for node, box in boxes.items()}
    layout = lay_out(model.graph_.parents, sizes)
    width, height = layout.width + 2 * _MARGIN, layout.height + 2 * _MARGIN
    shrunk = min(1.0, _INCHES * 72 / max(width, height))
    title = f"pale: before, strong: given {_known(evidence, do)}" if evidence or do else ""
    room = 2.4 * _TITLE if title else 0.0
    long = _wide(title, _TITLE)
    figsize = (max(width * shrunk, long) / 72 + 0.1, (height * shrunk + room) / 72 + 0.1)
    ax = new_axes(ax, figsize=figsize, layout="constrained")
    ax.axis("off")
    if title:
        ax.set_title(title, fontsize=_TITLE, parse_math=False)
    ax.set_xlim(-_MARGIN, layout.width + _MARGIN)
    ax.set_ylim(layout.height + _MARGIN, -_MARGIN)
    ax.set_aspect("equal")
    brush = Brush(ax, _scale(ax, width, height))
    if title:
        ax.title.set_fontsize(_TITLE * min(1.0, ax.get_window_extent().width * 72 / ax.figure.dpi / long))
    for (_, child), route in layout.routes.items():
        brush.arrow(route, cut=child in (do or {}))
    for node, box in boxes.items():
        _draw(brush, box, layout.centres[node], sizes[node], style)
    return ax


def plot_posteriors(model: Any, evidence: Mapping[Any, Any], nodes: Any = None, ax: Any = None) -> Any:
    """The distributions of nodes before and after the evidence, those that moved most first.

    Parameters
    ----------
    model : BayesianNetwork
    evidence : mapping
        As for `BayesianNetwork.query`.
    nodes : name, or sequence of names, optional
        Drawn in this order; without, the 12 that moved most.
    ax : matplotlib Axes, optional
    """
    check_is_fitted(model, "tally_")
    named = [nodes] if isinstance(nodes, str | int) else nodes
    hard = {node for node, value in evidence.items() if not isinstance(value, Mapping)}
    wanted = [node for node in model.levels_ if node not in hard] if named is None else list(named)
    found = {node: (model.query(node), model.query(node, evidence)) for node in wanted}
    moved = {node: _bits(*(answer.probabilities for answer in both)) for node, both in found.items()}
    if named is None:
        wanted = sorted(wanted, key=lambda node: -moved[node])[:_MOVED]
    bars = {node: _bars(model.levels_[node], *(answer.probabilities for answer in found[node])) for node in wanted}
    n_lines = sum(len(part.labels) + 1.3 for part in bars.values())
    ax = new_axes(ax, figsize=(6.5, 1.1 + 0.2 * n_lines), layout="constrained")
    ticks: dict[float, str] = {}
    down = 0.0
    for node, (labels, before, after) in bars.items():
        ax.text(0.006, down, _cut(node, 40), weight="bold", fontsize=10, va="center", parse_math=False)
        ax.text(1.0, down, f"{moved[node]:.3f} bits", fontsize=9, va="center", ha="right", color=_NOTE)
        places = down + 1 + np.arange(len(labels))
        ax.barh(places - 0.2, before, 0.36, color=_PALE, label=None if ticks else "before")
        ax.barh(places + 0.2, after, 0.36, color=_BLUE, label=None if ticks else f"given {_known(evidence, None)}")
        ticks |= dict(zip(places.tolist(), labels, strict=True))
        down += len(labels) + 1.3
    ax.set_yticks(list(ticks), list(ticks.values()), fontsize=9, parse_math=False)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(down - 0.6, -0.7)
    ax.set_xlim(0.0, 1.0)
    ax.set_xlabel("probability")
    legend = ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2, frameon=False, borderaxespad=0.2)
    for text in legend.get_texts():
        text.set_parse_math(False)
    quiet(ax)
    return ax


# ---- What is in a box ------------------------------------------------------------------------------------------------


def _table_box(model: Any, node: Any) -> Box:
    """The node's table, or how large it is."""
    found = model.table(node)
    label = node in model.levels_
    lines = found.values.reshape(-1, len(found.columns))
    if len(lines) > _LINES or len(found.columns) > _LEVELS:
        sizes = " × ".join(str(size) for size in (*found.values.shape[:-1], *([found.values.shape[-1]] * label)))
        return Box(_cut(node, 24), note=f"{sizes} levels" if label else f"measured, given {sizes} levels")
    head = [_cut(parent, 12) for parent in found.parents] + [_cut(column, 12) for column in found.columns]
    above = [model.levels_[parent] for parent in found.parents]
    table = [head]
    for place, line in zip(np.ndindex(*map(len, above)), lines, strict=True):
        given = [_cut(levels[k], 12) for levels, k in zip(above, place, strict=True)]
        table.append(given + [_number(value) if label else f"{value:.4g}" for value in line])
    return Box(_cut(node, 24), table=table, shares=lines if label else np.zeros((0, 0)))


def _posterior_box(model: Any, node: Any, evidence: Mapping[Any, Any], do: Mapping[Any, Any]) -> Box:
    """The node's distribution before and after; of a measured node, its mean."""
    title, kind = _cut(node, 24), "free"
    if node in do:
        title, kind = f"do({title} = {_cut(do[node], 16)})", "set"
    elif node in evidence:
        soft = isinstance(evidence[node], Mapping)
        title, kind = f"{title}: hinted at" if soft else f"{title} = {_cut(evidence[node], 16)}", "observed"
    if node in model.levels_:
        before, after = _asked(model, node, {}, {}), _asked(model, node, evidence, do)
        if before is None or after is None:
            return Box(title, kind, note="not known")
        return Box(title, kind, bars=_bars(model.levels_[node], before, after))
    if kind != "free":
        return Box(title, kind)
    before, after = _mean(model, node, {}, {}), _mean(model, node, evidence, do)
    known = before is not None and after is not None
    return Box(title, kind, note=f"mean {before:.5g} → {after:.5g}" if known else "not known")


def _asked(model: Any, nodes: Any, evidence: Any, do: Any) -> Any:
    """p(nodes | evidence); None where maximum likelihood cannot tell."""
    try:
        return model.query(nodes, evidence, do=do).probabilities
    except ImpossibleEvidenceError:
        raise
    except EstimateError:
        return None


def _mean(model: Any, node: Any, evidence: Any, do: Any) -> float | None:
    """The mean of a measured node, over the combinations of its parents' levels."""
    found = model.table(node)
    means = np.asarray(found.values[..., 0])
    share = _asked(model, found.parents, evidence, do) if found.parents else np.ones(())
    if share is None or np.isnan(means[share > 0]).any():
        return None
    return float(np.sum(np.where(share > 0, share * means, 0.0)))


def _bars(levels: tuple[Any, ...], before: np.ndarray, after: np.ndarray) -> Bars:
    """A bar for every level, or for the most probable and one for all others."""
    labels = [_cut(level, 16) for level in levels]
    if len(labels) <= _BARS:
        return Bars(labels, before, after)
    kept = np.sort(np.argsort(-np.maximum(before, after), kind="stable")[: _BARS - 1])
    rest = np.delete(np.arange(len(labels)), kept)
    return Bars(
        [*(labels[k] for k in kept), f"{len(rest)} others"],
        np.append(before[kept], before[rest].sum()),
        np.append(after[kept], after[rest].sum()),
    )


def _bits(before: np.ndarray, after: np.ndarray) -> float:
    """What was learned about a node: the divergence of its distribution after from the one before, in bits."""
    some = after > 0
    found = float(np.sum(after[some] * np.log2(after[some] / before[some])))
    return max(0.0, round(found, 12))  # rounding must not order what did not move


def _known(evidence: Any, do: Any) -> str:
    parts = [f"{node} {'hinted at' if isinstance(v, Mapping) else f'= {v}'}" for node, v in (evidence or {}).items()]
    parts += [f"do({node} = {value})" for node, value in (do or {}).items()]
    shown = parts if len(parts) <= 3 else [*parts[:2], f"{len(parts) - 2} more"]
    return ", ".join(_cut(part, 40) for part in shown) or "nothing"


def _cut(value: Any, most: int) -> str:
    text = str(value)
    return text if len(text) <= most else text[: most - 1] + "…"


def _number(p: float) -> str:
    """A probability to four decimals; what is next to 0 or 1 does not look like it."""
    if np.isnan(p):
        return "unknown"
    shown = f"{p:.4f}".rstrip("0").rstrip(".")
    if shown == "0" and p > 0:
        return f"{p:.0e}"
    return "≈ 1" if shown == "1" and p < 1 - 1e-12 else shown


# ---- Drawing ---------------------------------------------------------------------------------------------------------


class Brush:
    """Draws boxes, words and arrows in points, onto axes that may show them smaller or larger."""

    def __init__(self, ax: Any, scale: float) -> None:
        self.ax, self.scale = ax, scale

    def text(self, x: float, y: float, text: str, size: float, ha: str = "left", **looks: Any) -> None:
        """Words, centred on the line at y."""
        looks = {"va": "center_baseline", "zorder": 5, "parse_math": False, **looks}
        self.ax.text(x, y, text, fontsize=size * self.scale, ha=ha, **looks)

    def rectangle(self, x: float, y: float, width: float, height: float, **looks: Any) -> None:
        """A rectangle without an edge, from its upper left corner."""
        from matplotlib.patches import Rectangle

        self.ax.add_patch(Rectangle((x, y), width, height, **{"linewidth": 0, "zorder": 4, **looks}))

    def box(self, x: float, y: float, width: float, height: float, kind: str) -> None:
        """A rounded box, from its upper left corner."""
        from matplotlib.patches import FancyBboxPatch

        edge, face, line = _KINDS[kind]
        shape = "round,pad=0,rounding_size=5"
        patch = FancyBboxPatch((x, y), width, height, boxstyle=shape)
        patch.set(edgecolor=edge, facecolor=face, linewidth=line * self.scale, zorder=3)
        self.ax.add_patch(patch)

    def arrow(self, route: list[Point], *, cut: bool) -> None:
        """An arrow along a route; dashed where the child does not listen."""
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
        head = f"-|>,head_length={4.5 * self.scale},head_width={2.2 * self.scale}"
        arrow = FancyArrowPatch(path=Path(points, codes), arrowstyle=head, mutation_scale=1.0, shrinkA=0, shrinkB=0)
        arrow.set(color="#BBBBBB" if cut else _ARROW, linewidth=self.scale, joinstyle="miter", zorder=2)
        arrow.set_linestyle((0, (2, 2)) if cut else "-")
        self.ax.add_patch(arrow)


def _scale(ax: Any, width: float, height: float) -> float:
    """How large a point of the layout comes out, so that words stay in their boxes whatever the size of the axes."""
    figure = ax.figure.canvas.figure
    figure.draw_without_rendering()
    box = ax.get_window_extent()
    return max(float(min(box.width / width, box.height / height) * 72 / figure.dpi), 0.02)


def _wide(text: str, size: float, weight: str = "normal") -> float:
    """The width of words in points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=size, weight=weight)
    return float(text_to_path.get_text_width_height_descent(text, font, ismath=False)[0])


def _columns(box: Box, style: Type) -> list[float]:
    """The widths of the columns of a table."""
    return [max(_wide(cell, style.small) for cell in column) + 8.0 for column in zip(*box.table, strict=True)]


def _label_width(bars: Bars, style: Type) -> float:
    return max(_wide(label, style.small) for label in bars.labels)


def _number_width(style: Type) -> float:
    return _wide("0.000", style.small) + 6.0 if style.decimals else 0.0


def _size(box: Box, style: Type) -> tuple[float, float]:
    """Width and height of a box."""
    widths = [_wide(box.title, style.name, "bold")]
    n_lines = len(box.table)
    if box.table:
        widths.append(sum(_columns(box, style)))
    if box.note:
        widths.append(_wide(box.note, style.small))
        n_lines += 1
    if box.bars is not None:
        widths.append(_label_width(box.bars, style) + 4.0 + style.bar + _number_width(style))
        n_lines += len(box.bars.labels)
    return max(widths) + 2 * style.pad, 1.4 * style.name + n_lines * style.line + style.pad


def _draw(brush: Brush, box: Box, centre: Point, size: tuple[float, float], style: Type) -> None:
    """A node's box and what is in it."""
    left, top = centre[0] - size[0] / 2, centre[1] - size[1] / 2
    brush.box(left, top, *size, box.kind)
    brush.text(centre[0], top + style.pad / 2 + 0.7 * style.name, box.title, style.name, "center", weight="bold")
    down = top + style.pad / 2 + 1.4 * style.name
    if box.note:
        brush.text(centre[0], down + style.line / 2, box.note, style.small, "center", color=_NOTE)
    if box.table:
        _draw_table(brush, box, centre[0], down, style)
    if box.bars is not None:
        _draw_bars(brush, box.bars, left + style.pad, down, size[0] - 2 * style.pad, style)


def _draw_table(brush: Brush, box: Box, middle: float, down: float, style: Type) -> None:
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
                brush.rectangle(edges[column], y, widths[column], style.line, color=_BLUE, alpha=shade)
            brush.text(x, y + style.line / 2, cell, style.small, "center", color=_NOTE if number == 0 else "black")
    brush.rectangle(start, down + style.line, sum(widths), 0.5, color="#AAAAAA")


def _draw_bars(brush: Brush, bars: Bars, left: float, down: float, width: float, style: Type) -> None:
    label, number = _label_width(bars, style), _number_width(style)
    start, length = left + label + 4.0, width - label - 4.0 - number
    for place, (name, before, after) in enumerate(zip(*bars, strict=True)):
        y = down + (place + 0.5) * style.line
        brush.text(start - 4.0, y, name, style.small, "right")
        brush.rectangle(start, y - 0.42 * style.line, length, 0.84 * style.line, color="#F0F0F0", zorder=3.5)
        brush.rectangle(start, y - 0.42 * style.line, length * float(before), 0.84 * style.line, color=_PALE)
        brush.rectangle(start, y - 0.2 * style.line, length * float(after), 0.4 * style.line, color=_BLUE)
        if style.decimals:
            brush.text(left + width, y, f"{after:.{style.decimals}f}", style.small, "right", color=_NOTE)

"""Pictures of Bayesian networks: the graph with its tables or posteriors, and what moved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tallybayes.errors import DataError, printable
from tallybayes.models.network.analysis.d_separation import listed
from tallybayes.models.network.inference.evidence import read_evidence
from tallybayes.models.network.inference.queries import refuse_impossible
from tallybayes.models.network.inference.row_predictions import require_labels
from tallybayes.plotting.network.layered_layout import lay_out
from tallybayes.plotting.network.node_boxes import (
    AFTER,
    BEFORE,
    NOTE,
    ROOMY,
    TIGHT,
    Bars,
    Box,
    BoxDrawer,
    TypeSizes,
    box_size,
    draw_box,
    pale,
    text_width,
)
from tallybayes.plotting.plot import Plot, PlotTable
from tallybayes.plotting.style import COLORS, hide_top_right_spines, new_axes

_MANY = 16  # more nodes than this are drawn small, with their names only
_LINES, _LEVELS = 8, 4  # larger tables are not written out
_BARS = 6  # levels with a bar
_MOVED = 12  # nodes in the picture of what moved
_INCHES = 30.0  # a figure is not made larger
_MARGIN, _TITLE = 6.0, 10.0
_PATH = COLORS[5]
_MARKS = (COLORS[0], COLORS[5], COLORS[2], COLORS[3], COLORS[1], "#888888")  # of nodes that are highlighted


def plot_network(
    model: Any, ax: Any = None, *, given: Any = None, do: Any = None, tables: bool = True, highlight: Any = None
) -> Plot:
    """The graph, parents above children; in the boxes tables, or posteriors where something is known.

    Parameters
    ----------
    model : BayesianNetwork
    ax : matplotlib Axes, optional
    given, do : mappings, optional
        As for `BayesianNetwork.query`.
    tables : bool, default True
    highlight : what `BayesianNetwork.plot` takes, optional
    """
    nodes = model.graph_.nodes
    marks = _marks(model, highlight)
    colors = dict(zip(marks, _MARKS * (1 + len(marks) // len(_MARKS)), strict=False))
    asked = any(part is not None and (not isinstance(part, Mapping) or len(part) > 0) for part in (given, do))
    if asked:
        check_is_fitted(model, "tally_")
        after, before = _told(model, given, do), _told(model)
        known = model._inference, given or {}, do or {}
        boxes = {node: _posterior_box(node, before, after, *known) for node in nodes}
    elif tables and hasattr(model, "tally_") and style_for(nodes) is ROOMY:
        boxes = {node: _table_box(model, node) for node in nodes}
    else:
        boxes = {node: Box(cut(node, 24)) for node in nodes}
    title = f"pale: before, strong: given {_known(given, do)}" if asked else ""
    for word, marked in marks.items():
        boxes |= {node: boxes[node]._replace(kind=colors[word]) for node in marked}
    looks: dict[Any, dict[str, Any]] = {edge: {"cut": edge[1] in (do or {})} for edge in model.graph_.edges}
    looks |= {edge: {"color": _PATH, "width": 2.4} for edge in getattr(highlight, "edges", ())}
    ax = draw_graph(model.graph_.parents, boxes, looks, title, ax, legend=colors)
    return Plot(ax, _edges(model.graph_.parents) if not asked else _moved(model, before, after, nodes))


def draw_graph(
    parents: Mapping[Any, Any],
    boxes: Mapping[Any, Box],
    looks: Mapping[Any, Mapping[str, Any]],
    title: str,
    ax: Any,
    *,
    legend: Mapping[str, str] | None = None,
) -> Any:
    """A graph, parents above children, on axes of its size.

    Parameters
    ----------
    parents : mapping from node to its parents
        Parents come before their children.
    boxes : mapping from node to Box
    looks : mapping from (parent, child) to what `BoxDrawer.arrow` takes
    title : str
    ax : matplotlib Axes, optional
    legend : mapping from words to the colors of boxes, optional
    """
    style = style_for(parents)
    sizes = {node: box_size(box, style) for node, box in boxes.items()}
    layout = lay_out(parents, sizes)
    width, height = layout.width + 2 * _MARGIN, layout.height + 2 * _MARGIN
    shrunk = min(1.0, _INCHES * 72 / max(width, height))
    words = {cut(word, 24): color for word, color in (legend or {}).items()}
    room = 2.4 * _TITLE * (bool(title) + bool(words))
    long = max(text_width(title, _TITLE), sum(text_width(word, _TITLE) + 5.5 * _TITLE for word in words))
    figsize = (max(width * shrunk, long) / 72 + 0.1, (height * shrunk + room) / 72 + 0.1)
    ax = new_axes(ax, figsize=figsize, layout="constrained")
    ax.axis("off")
    if title:
        ax.set_title(title, fontsize=_TITLE, parse_math=False, pad=6.0 + 2.4 * _TITLE * bool(words))
    if words:
        _draw_legend(ax, words)
    ax.set_xlim(-_MARGIN, layout.width + _MARGIN)
    ax.set_ylim(layout.height + _MARGIN, -_MARGIN)
    ax.set_aspect("equal")
    brush = BoxDrawer(ax, _scale(ax, width, height))
    if title:
        ax.title.set_fontsize(_TITLE * min(1.0, ax.get_window_extent().width * 72 / ax.figure.dpi / long))
    for edge, route in layout.routes.items():
        brush.arrow(route, **looks[edge])
    for node, box in boxes.items():
        draw_box(brush, box, layout.centers[node], sizes[node], style)
    return ax


def style_for(nodes: Any) -> TypeSizes:
    """How large things are written: many nodes are drawn small."""
    return ROOMY if len(nodes) <= _MANY else TIGHT


def plot_posteriors(model: Any, given: Any, nodes: Any = None, ax: Any = None, *, do: Any = None) -> Plot:
    """The distributions of nodes before and after something is known, those that moved most first.

    Parameters
    ----------
    model : BayesianNetwork
    given, do : mappings
        As for `BayesianNetwork.query`.
    nodes : name, or sequence of names, optional
        Drawn in this order; without, the 12 that moved most.
    ax : matplotlib Axes, optional
    """
    from matplotlib.patches import Patch

    check_is_fitted(model, "tally_")
    if given is None and do is None:
        raise DataError.wrong_type("given", "None", "a mapping, as in {'fire': True}")
    named = None if nodes is None else [nodes] if isinstance(nodes, str | int) else list(nodes)
    if named == []:
        raise DataError.wrong_type("nodes", repr(nodes), "at least one node that has levels")
    require_labels(model, named or ())
    after, before = _told(model, given, do), _told(model)
    found = {node: (before.get(node), after.get(node)) for node in model.levels_}
    if named is None:
        hard = {node for node, value in (given or {}).items() if not isinstance(value, Mapping)} | set(do or ())
        wanted = sorted((node for node in found if node not in hard), key=lambda node: _rank(*found[node]))[:_MOVED]
    else:
        wanted = named
    if not wanted:
        raise DataError(
            "nothing is left to ask: every node that has levels is known.\n    Leave some out of given= and do=, or "
            "name in nodes= those to be drawn all the same."
        )
    bars = {node: _bars(model.levels_[node], *found[node]) for node in wanted}
    n_lines = sum(len(part.labels) + 1.3 for part in bars.values())
    ax = new_axes(ax, figsize=(6.5, 1.1 + 0.2 * n_lines), layout="constrained")
    ticks: dict[float, str] = {}
    down = 0.0
    for node, part in bars.items():
        ax.text(0.006, down, cut(node, 40), weight="bold", fontsize=10, va="center", parse_math=False)
        ax.text(1.0, down, _learned(*found[node]), fontsize=9, va="center", ha="right", color=NOTE)
        places = down + 1 + np.arange(len(part.labels))
        for side, shift, color in ((part.before, -0.2, BEFORE), (part.after, 0.2, AFTER)):
            if side is not None:
                ax.barh(places + shift, side, 0.36, color=color)
        ticks |= dict(zip(places.tolist(), part.labels, strict=True))
        down += len(part.labels) + 1.3
    ax.set_yticks(list(ticks), list(ticks.values()), fontsize=9, parse_math=False)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(down - 0.6, -0.7)
    ax.set_xlim(0.0, 1.0)
    ax.set_xlabel("probability")
    colors = {"before": BEFORE, f"given {_known(given, do)}": AFTER}
    handles = [Patch(color=color, label=label) for label, color in colors.items()]
    place = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "borderaxespad": 0.2}
    legend = ax.legend(handles=handles, ncols=2, frameon=False, **place)
    for text in legend.get_texts():
        text.set_parse_math(False)
    hide_top_right_spines(ax)
    return Plot(ax, _moved(model, before, after, wanted))


def _marks(model: Any, highlight: Any) -> dict[str, list[Any]]:
    """The nodes to be shown in color, by the word for each color; words without nodes are left out."""
    if highlight is None:
        return {}
    found = getattr(highlight, "marks", highlight)
    found = found if isinstance(found, Mapping) else {"highlighted": found}
    marks = {str(word): listed(nodes) for word, nodes in found.items()}
    model.graph_.require([node for nodes in marks.values() for node in nodes])
    return {word: nodes for word, nodes in marks.items() if nodes}


def _draw_legend(ax: Any, colors: Mapping[str, str]) -> None:
    """What the colors of boxes stand for, above the picture."""
    from matplotlib.patches import Patch

    handles = [Patch(facecolor=pale(color), edgecolor=color, label=word) for word, color in colors.items()]
    place = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "borderaxespad": 0.2}
    legend = ax.legend(handles=handles, ncols=len(handles), frameon=False, fontsize=_TITLE, **place)
    for text in legend.get_texts():
        text.set_parse_math(False)


def _edges(parents: Mapping[Any, Any]) -> PlotTable:
    """The arrows; a node without any stands alone."""
    pairs = [(parent, child) for child, above in parents.items() for parent in above or (None,)]
    return {"parent": [parent for parent, _ in pairs], "child": [child for _, child in pairs]}


def _moved(model: Any, before: Mapping[Any, Any], after: Mapping[Any, Any], nodes: Any) -> PlotTable:
    """The distributions of nodes before and after: a line for every level; of measured nodes, their mean."""
    lines: dict[str, list[Any]] = {"node": [], "level": [], "before": [], "after": []}
    for node in nodes:
        sides = [side.get(node) for side in (before, after)]
        levels = model.levels_.get(node, ["mean"])
        if all(side is None for side in sides) or (node not in model.levels_ and model._inference.widths[node] > 1):
            continue
        lines["node"] += [node] * len(levels)
        lines["level"] += list(levels)
        for name, side in zip(("before", "after"), sides, strict=True):
            lines[name] += [np.nan] * len(levels) if side is None else list(side)
    return dict(lines)


# ---- What the network says -------------------------------------------------------------------------------------------


def _told(model: Any, given: Any = None, do: Any = None) -> dict[Any, np.ndarray]:
    """What the network says of every node, all at once: probabilities, or the means of its columns.

    Nodes that maximum likelihood cannot tell are left out, and measured nodes that are known.
    """
    inference, done = model._inference.intervened(do), do or {}
    known = read_evidence(inference, given, do)
    ((rows, answer),) = inference.batches(known, done)
    refuse_impossible(inference, answer.log_likelihood[0], given, do)
    unsure = _unsure(inference, answer, known, done)
    told = {}
    asked = {*(given or {}), *done}
    for node in inference.structure.nodes:
        told_already = node in asked if node in inference.component_index else node in known.cells
        if inference.leaf_of(node) in unsure or told_already:
            continue
        if node in inference.levels:
            told[node] = answer.marginal(inference.scope([node]))[:, 0]
        else:
            told[node] = np.ravel(inference.expected(node, answer, known, rows))
    return told


def _unsure(inference: Any, answer: Any, known: Any, done: Mapping[Any, Any]) -> set[Any]:
    """The nodes whose answers a table's rows that are not known have a say in: those that `query` refuses."""
    cut = inference.nodes_to_cut(done)
    graph = inference.graph.without_incoming_edges(cut)
    found: set[Any] = set()
    for node, lost in inference.unknown_lines().items():
        parents = graph.parents[node]
        some = answer.marginal(inference.scope(parents))[lost] if parents else np.ones(1)
        if node not in cut and (some > 0).any():
            found |= graph.influenced_nodes(node, [*known.codes, *known.cells], known.likelihoods)
    return found


# ---- What is in a box ------------------------------------------------------------------------------------------------


def _table_box(model: Any, node: Any) -> Box:
    """The node's table, or how large it is."""
    found = model.cpt(node)
    label = node in model.levels_
    values, columns = found.values, list(found.columns)
    if node in model._estimated_network.presence:  # whether it is there, beside what it is
        there = model.cpt(model._estimated_network.presence[node]).values[..., -1:]
        values, columns = np.concatenate([values, there], axis=-1), [*columns, "there"]
    lines = values.reshape(-1, len(columns))
    if not label and model._inference.widths[node] > 1:
        sizes = [str(len(model.levels_[parent])) for parent in model.graph_.parents[node]]
        told = f", given {' × '.join(sizes)} levels" if sizes else ""
        return Box(cut(node, 24), note=f"{model._inference.widths[node]} columns{told}")
    if len(lines) > _LINES or len(columns) > _LEVELS:
        sizes = [str(size) for size in (*values.shape[:-1], *([len(columns)] * label))]
        what = "" if label else "measured"
        levels = f"{' × '.join(sizes)} levels" if sizes else ""
        return Box(cut(node, 24), note=", given ".join(part for part in (what, levels) if part))
    head = [cut(parent, 12) for parent in found.given] + [cut(column, 12) for column in columns]
    above = found.given_levels
    table = [head]
    for place, line in zip(np.ndindex(*map(len, above)), lines, strict=True):
        given = [cut(levels[k], 12) for levels, k in zip(above, place, strict=True)]
        table.append(
            given + [_number(value) if label else "unknown" if np.isnan(value) else f"{value:.4g}" for value in line]
        )
    return Box(cut(node, 24), table=table, shares=lines if label else np.zeros((0, 0)))


def _posterior_box(
    node: Any,
    told_before: Mapping[Any, Any],
    told_after: Mapping[Any, Any],
    inference: Any,
    given: Mapping[Any, Any],
    do: Mapping[Any, Any],
) -> Box:
    """The node's distribution before and after; of a measured node, its mean, and whether it is there."""
    before, after = told_before.get(node), told_after.get(node)
    title, kind = cut(node, 24), "free"
    if node in do:
        title, kind = f"do({title} = {cut(do[node], 16)})", "set"
    elif node in given:
        soft = isinstance(given[node], Mapping)
        title, kind = f"{title}: hinted at" if soft else f"{title} = {cut(given[node], 16)}", "observed"
    lost = _not_known(before, after)
    if node in inference.levels:
        bars = _bars(inference.levels[node], before, after)
        return Box(title, kind, note=lost, bars=bars if bars.labels else None)
    if kind != "free":
        return Box(title, kind)
    if inference.widths[node] > 1:
        return Box(title, note=f"{inference.widths[node]} columns" + (f", {lost}" if lost else ""))
    if before is None and after is None:
        return Box(title, note=lost)
    note = f"mean {_shift(before, after)}"
    beside = inference.presence.get(node)
    there = "" if beside is None else f", there {_shift(told_before.get(beside), told_after.get(beside))}"
    return Box(title, note=note + there)


def _shift(before: Any, after: Any) -> str:
    """A number before and after; the mean of what is rather absent is none."""
    shown = []
    for side in (before, after):
        known = "not known" if side is None else f"{side[0] + 0.0:.5g}"  # -0 is 0
        shown.append("absent" if known == "nan" else known)
    return " → ".join(shown)


def _not_known(before: Any, after: Any) -> str:
    """Which of the two sides is not known, if any."""
    if before is None and after is None:
        return "not known"
    return "not known before" if before is None else "not known after" if after is None else ""


def _bars(levels: tuple[Any, ...], before: np.ndarray | None, after: np.ndarray | None) -> Bars:
    """A bar for every level, or for the most probable and one for all others; none where neither side is known."""
    labels, sides = [cut(level, 16) for level in levels], (before, after)
    known = [side for side in sides if side is not None]
    if len(labels) <= _BARS or not known:
        return Bars(labels if known else [], before, after)
    kept = np.sort(np.argsort(-np.max(known, axis=0), kind="stable")[: _BARS - 1])
    rest = np.delete(np.arange(len(labels)), kept)
    shares = [None if side is None else np.append(side[kept], side[rest].sum()) for side in sides]
    return Bars([*(labels[k] for k in kept), f"{len(rest)} others"], *shares)


def _bits(before: np.ndarray, after: np.ndarray) -> float:
    """What was learned about a node: the divergence of its distribution after from the one before, in bits."""
    some = after > 0
    with np.errstate(divide="ignore"):  # do= can make happen what never did
        found = float(np.sum(after[some] * (np.log2(after[some]) - np.log2(before[some]))))
    return max(0.0, round(found, 12))  # rounding must not order what did not move


def _learned(before: Any, after: Any) -> str:
    """What was learned, in words."""
    if before is None or after is None:
        return _not_known(before, after)
    bits = _bits(before, after)
    return f"{bits:.3f} bits" if np.isfinite(bits) else "∞ bits"


def _rank(before: Any, after: Any) -> float:
    """The order of nodes: by bits; those known on one side only come before those that did not move at all."""
    if before is not None and after is not None:
        return -_bits(before, after)
    return 1.0 if before is None and after is None else -1e-13


def _known(given: Any, do: Any) -> str:
    parts = [f"{node} {'hinted at' if isinstance(v, Mapping) else f'= {v}'}" for node, v in (given or {}).items()]
    parts += [f"do({node} = {value})" for node, value in (do or {}).items()]
    shown = parts if len(parts) <= 3 else [*parts[:2], f"{len(parts) - 2} more"]
    return ", ".join(cut(part, 40) for part in shown) or "nothing"


def cut(value: Any, most: int) -> str:
    """A name, cut where it is long."""
    text = printable(value)  # its pictures draw all text without mathematics
    return text if len(text) <= most else text[: most - 1] + "…"


def _number(p: float) -> str:
    """A probability to four decimals; what is next to 0 or 1 does not look like it."""
    if np.isnan(p):
        return "unknown"
    shown = f"{p:.4f}".rstrip("0").rstrip(".")
    if shown == "0" and p > 0:
        return f"{p:.0e}"
    return "≈ 1" if shown == "1" and p < 1 - 1e-12 else shown


def _scale(ax: Any, width: float, height: float) -> float:
    """How large a point of the layout comes out, so that words stay in their boxes whatever the size of the axes."""
    figure = ax.figure.canvas.figure
    figure.draw_without_rendering()
    box = ax.get_window_extent()
    return max(float(min(box.width / width, box.height / height) * 72 / figure.dpi), 0.02)

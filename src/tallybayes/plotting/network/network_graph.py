"""Plot of a Bayesian network: the graph, with CPTs or posteriors in the boxes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tallybayes.models.inspection.parameter_table import ParameterTable
from tallybayes.models.network.analysis.d_separation import node_list
from tallybayes.models.network.estimated_network import EstimatedNetwork, network_of
from tallybayes.models.network.graph import Graph
from tallybayes.models.network.inference.queries import GivenNodes
from tallybayes.plotting.network.layered_layout import lay_out
from tallybayes.plotting.network.node_boxes import ROOMY, Bars, Box, BoxDrawer, pale, shorten, style_for, text_width
from tallybayes.plotting.network.posteriors import (
    Posterior,
    format_known,
    node_posteriors,
    posterior_table,
    undefined_label,
)
from tallybayes.plotting.plot import Plot, PlotTable
from tallybayes.plotting.style import COLORS, new_axes
from tallybayes.tally.factor import Name
from tallybayes.typing import Names

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tallybayes.models.network.analysis.causal_effect import CausalEffect
    from tallybayes.models.network.analysis.d_separation import ActivePath, MarkovBlanket
    from tallybayes.models.network.bayesian_network import BayesianNetwork

Highlight: TypeAlias = "ActivePath | MarkovBlanket | CausalEffect | Names | Mapping[str, Names] | None"

_MAX_ROWS, _MAX_LEVELS = 8, 4  # of a CPT that is shown
_MAX_INCHES = 30.0  # of a figure
_MARGIN, _TITLE = 6.0, 10.0
_PATH = COLORS[5]
_MARKS = (COLORS[0], COLORS[5], COLORS[2], COLORS[3], COLORS[1], "#888888")  # of highlighted nodes


def plot_network(
    model: BayesianNetwork,
    ax: Axes | None = None,
    *,
    given: GivenNodes = None,
    do: GivenNodes = None,
    tables: bool = True,
    highlight: Highlight = None,
) -> Plot:
    """Plot the graph, parents above children, with CPTs in the boxes, or posteriors given evidence.

    Parameters
    ----------
    model : BayesianNetwork
    ax : matplotlib Axes, optional
    given, do : mappings, optional
        As for `BayesianNetwork.query`.
    tables : bool, default True
    highlight : as for `BayesianNetwork.plot`, optional
    """
    graph = model.graph_
    marks = _marks(graph, highlight)
    colors = dict(zip(marks, _MARKS * (1 + len(marks) // len(_MARKS)), strict=False))
    has_evidence = any(part is not None and (not isinstance(part, Mapping) or len(part) > 0) for part in (given, do))
    title = ""
    table: PlotTable = _edge_table(graph)
    is_roomy = style_for(len(graph.nodes)) is ROOMY
    network = network_of(model) if has_evidence or hasattr(model, "tally_") else None
    if network is not None and has_evidence:
        after = node_posteriors(network, given, do)
        before = node_posteriors(network)
        boxes = {node: _posterior_box(network, node, before, after, given or {}, do or {}) for node in graph.nodes}
        title = f"pale: before, strong: given {format_known(given, do)}"
        table = posterior_table(network, before, after, graph.nodes)
    elif network is not None and tables and is_roomy:
        boxes = {node: _table_box(network, node, model.parameters_) for node in graph.nodes}
    else:
        boxes = {node: Box(shorten(node, 24)) for node in graph.nodes}
    for word, nodes in marks.items():
        boxes |= {node: boxes[node]._replace(kind=colors[word]) for node in nodes}
    styles: dict[Any, dict[str, Any]] = {edge: {"cut": edge[1] in (do or {})} for edge in graph.edges}
    styles |= {edge: {"color": _PATH, "width": 2.4} for edge in getattr(highlight, "edges", ())}
    return Plot(draw_graph(graph.parents, boxes, styles, title, ax, legend=colors), table)


def draw_graph(
    parents: Mapping[Name, tuple[Name, ...]],
    boxes: Mapping[Name, Box],
    styles: Mapping[Any, Mapping[str, Any]],
    title: str,
    ax: Axes | None,
    *,
    legend: Mapping[str, str] | None = None,
) -> Axes:
    """Draw a graph, parents above children, on axes of its size.

    Parameters
    ----------
    parents : mapping from node to its parents
        Parents come before their children.
    boxes : mapping from node to Box
    styles : mapping from (parent, child) to the parameters of `BoxDrawer.arrow`
    title : str
    ax : matplotlib Axes, optional
    legend : mapping from words to the colors of boxes, optional
    """
    style = style_for(len(parents))
    sizes = {node: box.size(style) for node, box in boxes.items()}
    layout = lay_out(parents, sizes)
    width, height = layout.width + 2 * _MARGIN, layout.height + 2 * _MARGIN
    shrink = min(1.0, _MAX_INCHES * 72 / max(width, height))
    words = {shorten(word, 24): color for word, color in (legend or {}).items()}
    title_height = 2.4 * _TITLE * (bool(title) + bool(words))
    title_width = max(text_width(title, _TITLE), sum(text_width(word, _TITLE) + 5.5 * _TITLE for word in words))
    figsize = (max(width * shrink, title_width) / 72 + 0.1, (height * shrink + title_height) / 72 + 0.1)
    axes: Any = new_axes(ax, figsize=figsize, layout="constrained")
    axes.axis("off")
    if title:
        axes.set_title(title, fontsize=_TITLE, parse_math=False, pad=6.0 + 2.4 * _TITLE * bool(words))
    if words:
        _draw_legend(axes, words)
    axes.set_xlim(-_MARGIN, layout.width + _MARGIN)
    axes.set_ylim(layout.height + _MARGIN, -_MARGIN)
    axes.set_aspect("equal")
    drawer = BoxDrawer(axes, _scale(axes, width, height))
    if title:
        available = axes.get_window_extent().width * 72 / axes.figure.dpi
        axes.title.set_fontsize(_TITLE * min(1.0, available / title_width))
    for edge, route in layout.routes.items():
        drawer.arrow(route, **styles[edge])
    for node, box in boxes.items():
        drawer.draw_box(box, layout.centers[node], sizes[node], style)
    return axes


def _marks(graph: Graph, highlight: Highlight) -> dict[str, list[Name]]:
    """Return the highlighted nodes by the word for each color, without words that have no nodes."""
    if highlight is None:
        return {}
    marks: Any = getattr(highlight, "marks", highlight)
    marks = marks if isinstance(marks, Mapping) else {"highlighted": marks}
    nodes_by_word = {str(word): node_list(nodes) for word, nodes in marks.items()}
    graph.require([node for nodes in nodes_by_word.values() for node in nodes])
    return {word: nodes for word, nodes in nodes_by_word.items() if nodes}


def _draw_legend(ax: Axes, colors: Mapping[str, str]) -> None:
    """Draw the legend of the colors of boxes, above the graph."""
    from matplotlib.patches import Patch

    handles = [Patch(facecolor=pale(color), edgecolor=color, label=word) for word, color in colors.items()]
    position: dict[str, Any] = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "borderaxespad": 0.2}
    legend = ax.legend(handles=handles, ncols=len(handles), frameon=False, fontsize=_TITLE, **position)
    for text in legend.get_texts():
        text.set_parse_math(False)


def _edge_table(graph: Graph) -> PlotTable:
    """Return the edges; a node without parents has one row."""
    pairs = [(parent, child) for child, parents in graph.parents.items() for parent in parents or (None,)]
    return {"parent": [parent for parent, _ in pairs], "child": [child for _, child in pairs]}


# ---- Contents of boxes -----------------------------------------------------------------------------------------------


def _table_box(network: EstimatedNetwork, node: Name, parameters: Mapping[Any, ParameterTable]) -> Box:
    """Return a box with the node's CPT, or its size if it is large."""
    cpt = parameters[node]
    is_discrete = node in network.levels
    values, columns = cpt.values, list(cpt.columns)
    if node in network.presence:  # the probability that it is present, beside its parameters
        is_present = parameters[network.presence[node]].values[..., -1:]
        values, columns = np.concatenate([values, is_present], axis=-1), [*columns, "present"]
    rows = values.reshape(-1, len(columns))
    if not is_discrete and network.inference.widths[node] > 1:
        sizes = " × ".join(str(len(network.levels[parent])) for parent in network.graph.parents[node])
        condition = f", given {sizes} levels" if sizes else ""
        return Box(shorten(node, 24), note=f"{network.inference.widths[node]} columns{condition}")
    if len(rows) > _MAX_ROWS or len(columns) > _MAX_LEVELS:
        sizes = " × ".join(map(str, (*values.shape[:-1], *([len(columns)] * is_discrete))))
        parts = ["" if is_discrete else "continuous", f"{sizes} levels" if sizes else ""]
        return Box(shorten(node, 24), note=", given ".join(filter(None, parts)))
    table = [[shorten(name, 12) for name in (*cpt.given, *columns)]]
    for codes, row in zip(np.ndindex(*map(len, cpt.given_levels)), rows, strict=True):
        given = [shorten(levels[k], 12) for levels, k in zip(cpt.given_levels, codes, strict=True)]
        table.append(given + [_format_probability(value) if is_discrete else _format_number(value) for value in row])
    return Box(shorten(node, 24), table=table, shades=rows if is_discrete else np.zeros((0, 0)))


def _posterior_box(
    network: EstimatedNetwork,
    node: Name,
    before_all: Mapping[Name, np.ndarray],
    after_all: Mapping[Name, np.ndarray],
    given: Mapping[Any, Any],
    do: Mapping[Any, Any],
) -> Box:
    """Return a box with the node's distribution before and after; of a continuous node, its mean."""
    before, after = before_all.get(node), after_all.get(node)
    title, kind = shorten(node, 24), "free"
    if node in do:
        title, kind = f"do({title} = {shorten(do[node], 16)})", "set"
    elif node in given:
        is_soft = isinstance(given[node], Mapping)
        title, kind = f"{title}: soft evidence" if is_soft else f"{title} = {shorten(given[node], 16)}", "observed"
    undefined = undefined_label(before, after)
    if node in network.levels:
        bars = Bars.of_levels(network.levels[node], before, after)
        return Box(title, kind, note=undefined, bars=bars if bars.labels else None)
    if kind != "free":
        return Box(title, kind)
    if network.inference.widths[node] > 1:
        n_columns = f"{network.inference.widths[node]} columns"
        return Box(title, note=", ".join(filter(None, [n_columns, undefined])))
    if before is None and after is None:
        return Box(title, note=undefined)
    note = f"mean {_format_change(before, after)}"
    indicator = network.presence.get(node)
    if indicator is not None:
        note += f", present {_format_change(before_all.get(indicator), after_all.get(indicator))}"
    return Box(title, note=note)


def _format_change(before: Posterior, after: Posterior) -> str:
    """Format a number before and after; the mean of a node that is probably missing is NaN."""
    shown = ["undefined" if side is None else f"{side[0] + 0.0:.5g}" for side in (before, after)]  # -0 is 0
    return " → ".join("missing" if text == "nan" else text for text in shown)


def _format_number(value: float) -> str:
    return "undefined" if np.isnan(value) else f"{value:.4g}"


def _format_probability(p: float) -> str:
    """Format a probability with four decimals, so that only 0 and 1 look like 0 and 1."""
    if np.isnan(p):
        return "undefined"
    shown = f"{p:.4f}".rstrip("0").rstrip(".")
    if shown == "0" and p > 0:
        return f"{p:.0e}"
    return "≈ 1" if shown == "1" and p < 1 - 1e-12 else shown


def _scale(ax: Any, width: float, height: float) -> float:
    """Return the size of a point of the layout on the axes, so that text fits into its box at any size."""
    figure = ax.figure.canvas.figure
    figure.draw_without_rendering()
    box = ax.get_window_extent()
    return max(float(min(box.width / width, box.height / height) * 72 / figure.dpi), 0.02)

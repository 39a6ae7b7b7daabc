"""Plot of a Bayesian network: the graph, with CPTs or posteriors in the boxes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tallybayes.models.inputs.features import node_list
from tallybayes.models.inspection.parameter_table import ParameterTable
from tallybayes.models.network.estimated_network import EstimatedNetwork
from tallybayes.models.network.graph import Graph
from tallybayes.models.network.inference.queries import GivenNodes
from tallybayes.plotting.network.layered_layout import lay_out
from tallybayes.plotting.network.node_boxes import Box, BoxDrawer, Cell, style_for, text_width
from tallybayes.plotting.network.posteriors import Change, format_known, posterior_changes, posterior_table
from tallybayes.plotting.plot import Plot, PlotTable
from tallybayes.plotting.style import COLORS, NOTE, WIDEST, legend_above, new_axes, words
from tallybayes.tally.factor import Name
from tallybayes.typing import Names

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tallybayes.models.network.analysis.causal_effect import CausalEffect
    from tallybayes.models.network.analysis.d_separation import ActivePath, MarkovBlanket

Highlight: TypeAlias = "ActivePath | MarkovBlanket | CausalEffect | Names | Mapping[str, Names] | None"

_MAX_ROWS, _MAX_LEVELS = 8, 4  # of a CPT that is shown
_MAX_INCHES = 30.0  # of a figure
_MARGIN, _TITLE = 6.0, 10.0
_PATH = COLORS[5]
_MARKS = (COLORS[0], COLORS[5], COLORS[2], COLORS[3], COLORS[1], "#888888")  # of highlighted nodes


def plot_network(
    graph: Graph,
    network: EstimatedNetwork | None,
    parameters: Mapping[Any, ParameterTable],
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
    graph : Graph
    network : EstimatedNetwork, optional
        None if the network is not fitted.
    parameters : mapping from node to ParameterTable
    ax : matplotlib Axes, optional
    given, do : mappings, optional
        As for `BayesianNetwork.query`.
    tables : bool, default True
    highlight : as for `BayesianNetwork.plot`, optional
    """
    marks = _marks(graph, highlight)
    colors = dict(zip(marks, _MARKS * (1 + len(marks) // len(_MARKS)), strict=False))
    has_evidence = any(part is not None and (not isinstance(part, Mapping) or len(part) > 0) for part in (given, do))
    has_numbers = style_for(len(graph.nodes)).has_numbers
    title = ""
    table = _edge_table(graph)
    boxes = {node: Box(words(node, WIDEST)) for node in graph.nodes}
    if network is not None and has_evidence:
        changes = posterior_changes(network, given, do)
        for node in graph.nodes:
            box = _describe_evidence(boxes[node], node, given or {}, do or {})
            boxes[node] = _posterior_box(box, network, node, changes, has_numbers=has_numbers)
        title = f"pale: before, strong: given {format_known(given, do)}"
        table = posterior_table(network, {node: changes[node] for node in graph.nodes})
    elif network is not None and tables and has_numbers:
        boxes = {node: _table_box(box, network, node, parameters) for node, box in boxes.items()}
    for word, nodes in marks.items():
        boxes |= {node: replace(boxes[node], kind=colors[word]) for node in nodes}
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
    layout = lay_out(parents, {node: box.size(style) for node, box in boxes.items()})
    width, height = layout.width + 2 * _MARGIN, layout.height + 2 * _MARGIN
    shrink = min(1.0, _MAX_INCHES * 72 / max(width, height))
    entries = {words(word, WIDEST): ((color, 0.2), color) for word, color in (legend or {}).items()}
    title_height = 2.4 * _TITLE * (bool(title) + bool(entries))
    title_width = max(text_width(title, _TITLE), sum(text_width(word, _TITLE) + 5.5 * _TITLE for word in entries))
    ax = new_axes(ax, max(width * shrink, title_width) / 72 + 0.1, (height * shrink + title_height) / 72 + 0.1)
    ax.axis("off")
    heading = ax.set_title(title, fontsize=_TITLE, pad=6.0 + 2.4 * _TITLE * bool(entries))
    legend_above(ax, entries)
    ax.set(xlim=(-_MARGIN, layout.width + _MARGIN), ylim=(layout.height + _MARGIN, -_MARGIN), aspect="equal")
    # The size of a point of the layout on the axes, so that text fits into its box at any size.
    ax.figure.canvas.figure.draw_without_rendering()
    across, up = np.multiply(ax.get_window_extent().size, 72 / ax.figure.dpi)
    drawer = BoxDrawer(ax, max(min(across / width, up / height), 0.02))
    heading.set_fontsize(_TITLE * min(1.0, across / max(title_width, 1.0)))
    for edge, route in layout.routes.items():
        drawer.arrow(route, **styles[edge])
    for node, box in boxes.items():
        drawer.draw_box(box, layout.centers[node], style)
    return ax


def _marks(graph: Graph, highlight: Highlight) -> dict[str, list[Name]]:
    """Return the highlighted nodes by the word for each color, without words that have no nodes."""
    if highlight is None:
        return {}
    marks: Any = getattr(highlight, "marks", highlight)
    marks = marks if isinstance(marks, Mapping) else {"highlighted": marks}
    nodes_by_word = {str(word): node_list(nodes) for word, nodes in marks.items()}
    graph.require([node for nodes in nodes_by_word.values() for node in nodes])
    return {word: nodes for word, nodes in nodes_by_word.items() if nodes}


def _edge_table(graph: Graph) -> PlotTable:
    """Return the edges; a node without parents has one row."""
    pairs = [(parent, child) for child, parents in graph.parents.items() for parent in parents or (None,)]
    return {"parent": [parent for parent, _ in pairs], "child": [child for _, child in pairs]}


# ---- Contents of boxes -----------------------------------------------------------------------------------------------


def _table_box(box: Box, network: EstimatedNetwork, node: Name, parameters: Mapping[Any, ParameterTable]) -> Box:
    """Return the box with the node's CPT, or its size if it is large."""
    cpt = parameters[node]
    is_discrete = node in network.levels
    values, columns = cpt.values, list(cpt.columns)
    width = 1 if is_discrete else network.inference.widths[node]
    if width > 1:
        sizes = " × ".join(str(len(network.levels[parent])) for parent in network.graph.parents[node])
        return replace(box, note=f"{width} columns, given {sizes} levels" if sizes else f"{width} columns")
    if node in network.presence:  # the probability that it is present, beside its parameters
        is_present = parameters[network.presence[node]].values[..., -1:]
        values, columns = np.concatenate([values, is_present], axis=-1), [*columns, "present"]
    rows = values.reshape(-1, len(columns))
    if len(rows) > _MAX_ROWS or len(columns) > _MAX_LEVELS:
        sizes = " × ".join(map(str, (*values.shape[:-1], *([len(columns)] * is_discrete))))
        parts = ["" if is_discrete else "continuous", f"{sizes} levels" if sizes else ""]
        return replace(box, note=", given ".join(filter(None, parts)))
    table = [[Cell(words(name, 12), NOTE) for name in (*cpt.given, *columns)]]
    for levels, row in zip(product(*cpt.given_levels), rows.tolist(), strict=True):
        cells = [Cell(_format_probability(p), shade=p) if is_discrete else Cell(_format_number(p)) for p in row]
        table.append([*(Cell(words(level, 12)) for level in levels), *cells])
    return replace(box, rows=table, has_head=True)


def _describe_evidence(box: Box, node: Name, given: Mapping[Any, Any], do: Mapping[Any, Any]) -> Box:
    """Return the box with the evidence on the node, or the intervention, in its title."""
    if node in do:
        return replace(box, title=f"do({box.title} = {words(do[node], 16)})", kind="set")
    if node in given:
        value = given[node]
        known = ": soft evidence" if isinstance(value, Mapping) else f" = {words(value, 16)}"
        return replace(box, title=f"{box.title}{known}", kind="observed")
    return box


def _posterior_box(
    box: Box, network: EstimatedNetwork, node: Name, changes: Mapping[Name, Change], *, has_numbers: bool
) -> Box:
    """Return the box with the node's distribution before and after; of a continuous node, its mean."""
    change = changes[node]
    if node in network.levels:
        labels, shown = change.by_level(network.levels[node])
        before, after = ([None] * len(labels) if side is None else side.tolist() for side in shown)
        rows = []
        for label, *sides in zip(labels, before, after, strict=True):
            number = [Cell(f"{sides[1]:.3f}", NOTE)] if has_numbers and sides[1] is not None else []
            rows.append([Cell(label), Cell(bars=(sides[0], sides[1])), *number])
        return replace(box, note=change.undefined, rows=rows)
    if box.kind != "free":
        return box
    if network.inference.widths[node] > 1:
        n_columns = f"{network.inference.widths[node]} columns"
        return replace(box, note=", ".join(filter(None, [n_columns, change.undefined])))
    if change.undefined == "undefined":
        return replace(box, note=change.undefined)
    note = f"mean {_format_change(change)}"
    if node in network.presence:
        note += f", present {_format_change(changes[network.presence[node]])}"
    return replace(box, note=note)


def _format_change(change: Change) -> str:
    """Format a number before and after; the mean of a node that is probably missing is NaN."""
    shown = ["undefined" if side is None else f"{side[0] + 0.0:.5g}" for side in change]  # -0 is 0
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

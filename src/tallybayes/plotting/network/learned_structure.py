"""Plot of a learned structure, with the strengths of its edges."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tallybayes.plotting.network.network_graph import draw_graph
from tallybayes.plotting.network.node_boxes import Box
from tallybayes.plotting.plot import Plot
from tallybayes.plotting.style import WIDEST, words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tallybayes.models.network.structure.learned_structure import Structure

_COLUMNS = ("parent", "child", "score_gain", "reversible", "strength", "direction")


def plot_structure(structure: Structure, ax: Axes | None = None) -> Plot:
    """Plot the graph with edges as thick as they are strong; reversible edges have no arrowhead."""
    edges = structure.edges
    table = {name: [getattr(edge, name) for edge in edges] for name in _COLUMNS}
    title = "line width: strength"
    strengths = np.array(table["strength"])
    if structure.strengths is None:  # square roots, so that one large gain does not make all other edges thin
        title = "line width: score gain"
        gains = np.sqrt(np.maximum(table["score_gain"], 0.0))
        strengths = np.minimum(gains / (max(gains[np.isfinite(gains)], default=0.0) or 1.0), 1.0)
    styles = {
        (edge.parent, edge.child): {"width": 0.6 + 2.4 * strength, "head": not edge.reversible}
        for edge, strength in zip(edges, strengths, strict=True)
    }
    title += "; no arrowhead: reversible" * any(table["reversible"])
    boxes = {node: Box(words(node, WIDEST)) for node in structure.graph_.nodes}
    return Plot(draw_graph(structure.graph_.parents, boxes, styles, title * bool(edges), ax), table)

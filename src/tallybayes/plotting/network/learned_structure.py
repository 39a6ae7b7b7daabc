"""Plot of a learned structure, with the strengths of its edges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.plotting.network.network_graph import draw_graph
from tallybayes.plotting.network.node_boxes import Box, shorten
from tallybayes.plotting.plot import Plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tallybayes.models.network.structure.learned_structure import Structure

_THIN, _THICK = 0.6, 3.0  # line widths in points
_COLUMNS = ("parent", "child", "score_gain", "reversible", "strength", "direction")


def plot_structure(structure: Structure, ax: Axes | None = None) -> Plot:
    """Plot the graph with edges as thick as they are strong; reversible edges have no arrowhead."""
    edges = structure.edges
    has_strengths = structure.strengths is not None
    strengths = np.array([edge.strength for edge in edges])
    if not has_strengths:  # square roots, so that one large gain does not make all other edges thin
        gains = np.sqrt([max(edge.score_gain, 0.0) for edge in edges])
        strengths = np.minimum(gains / (max(gains[np.isfinite(gains)], default=0.0) or 1.0), 1.0)
    styles: dict[Any, dict[str, Any]] = {}
    for edge, strength in zip(edges, strengths.tolist(), strict=True):
        width = _THIN + (_THICK - _THIN) * strength
        styles[edge.parent, edge.child] = {"width": width, "head": not edge.reversible}
    title = f"line width: {'strength' if has_strengths else 'score gain'}"
    title += "; no arrowhead: reversible" if any(edge.reversible for edge in edges) else ""
    boxes = {node: Box(shorten(node, 24)) for node in structure.graph_.nodes}
    ax = draw_graph(structure.graph_.parents, boxes, styles, title if edges else "", ax)
    return Plot(ax, {name: [getattr(edge, name) for edge in edges] for name in _COLUMNS})

"""The picture of a structure that was searched for: how sure its edges are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.plotting.network.network_graph import cut, draw_graph
from tallybayes.plotting.network.node_boxes import Box
from tallybayes.plotting.plot import Plot

if TYPE_CHECKING:
    from tallybayes.models.network.structure.learned_structure import Structure

_THIN, _THICK = 0.6, 3.0  # the widths of lines, in points


def plot_structure(found: Structure, ax: Any = None) -> Plot:
    """The graph; the stronger an edge, the thicker, and without a head where it can be turned."""
    strengths = {(edge.parent, edge.child): edge.strength for edge in found.edges}
    drawn = found.strengths is not None
    if not drawn:  # by the square root, or one edge that is worth much would make hairs of all others
        worth = {(edge.parent, edge.child): max(edge.score_gain, 0.0) ** 0.5 for edge in found.edges}
        most = max([worth[edge] for edge in worth if np.isfinite(worth[edge])], default=0.0) or 1.0
        strengths = {edge: min(value / most, 1.0) for edge, value in worth.items()}
    free = {(edge.parent, edge.child): edge.reversible for edge in found.edges}
    looks = {
        edge: {"width": _THIN + (_THICK - _THIN) * share, "head": not free[edge]} for edge, share in strengths.items()
    }
    title = "thicker: surer" if drawn else "thicker: worth more"
    title += "; no head: can be turned" if any(free.values()) else ""
    boxes = {node: Box(cut(node, 24)) for node in found.graph_.nodes}
    ax = draw_graph(found.graph_.parents, boxes, looks, title if found.edges else "", ax)
    return Plot(ax, {name: list(values) for name, values in _columns(found).items()})


def _columns(found: Structure) -> dict[str, Any]:
    fields = ("parent", "child", "score_gain", "reversible", "strength", "direction")
    return {name: [getattr(edge, name) for edge in found.edges] for name in fields}

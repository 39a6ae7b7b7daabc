"""Structure: the result of a structure search, with scores and bootstrap strengths of edges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tallybayes._utils.html import html_parts
from tallybayes._utils.text_table import text_table
from tallybayes.errors import DataError, printable
from tallybayes.models.network.graph import Graph
from tallybayes.models.network.structure.equivalence_class import EquivalenceClass, equivalence_class
from tallybayes.tally.factor import Name

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from tallybayes.plotting.plot import Plot

_MOST = 40  # lines of a printed table


class LearnedEdge(NamedTuple):
    """An edge, the loss of score without it in nats, and its bootstrap strength.

    ``free`` is whether the edge is reversible: neither data nor constraints determine its direction. ``strength`` is
    the fraction of bootstrap searches with the edge, ``direction`` the fraction of these in this direction, one half
    for reversible edges. Both are NaN without bootstrap.
    """

    parent: Name
    child: Name
    score_gain: float
    reversible: bool
    strength: float
    direction: float


class Structure:
    """Structure found by `learn_structure`, for ``tb.BayesianNetwork(structure)``.

    Attributes
    ----------
    graph_ : Graph
        ``nodes``, ``edges`` and ``parents``.
    score : float
        What it is worth, in nats: the log evidence, or the log-likelihood less the price of the parameters.
    edges : list of FoundEdge
        Every arrow, what the score loses without it, and its strength; most worth first.
    strengths : dict from (node, node) to (strength, direction)
        Of all pairs that a search of drawn rows joined, whether or not the structure has them.
    seconds : float
    n_counted : int
        How many families, or tests, were counted.

    Examples
    --------
    >>> import tallybayes as tb
    >>> rows = {"fire": [0, 0, 1, 1] * 9, "smoke": [0, 0, 1, 1] * 9, "day": [0, 1, 0, 1] * 9}
    >>> found = tb.learn_structure(rows)
    >>> found.graph_.edges, found.score.__round__(2)
    ([('fire', 'smoke')], -56.83)
    >>> tb.BayesianNetwork(found).fit(rows).query("fire", {"smoke": 1})[1].__round__(3)
    0.95
    """

    def __init__(
        self,
        graph: Graph,
        score: float,
        edges: Mapping[tuple[Name, Name], tuple[float, bool]],
        strengths: dict[tuple[Name, Name], tuple[float, float]] | None,
        info: dict[str, Any],
    ) -> None:
        self.graph_, self.score, self.strengths, self._told = graph, score, strengths, info
        self.seconds: float = info["seconds"]
        self.n_counted: int = info["counted"]
        found = (LearnedEdge(*edge, *what, *self._strength(edge)) for edge, what in edges.items())
        self.edges = sorted(found, key=lambda edge: -edge.score_gain)

    def _strength(self, edge: tuple[Name, Name]) -> tuple[float, float]:
        if self.strengths is None:
            return np.nan, np.nan
        if edge in self.strengths:
            return self.strengths[edge]
        strength, direction = self.strengths.get(edge[::-1], (0.0, 0.5))
        return strength, 1.0 - direction

    @property
    def equivalence_class(self) -> EquivalenceClass:
        """The Markov equivalence class of the structure."""
        return equivalence_class(self.graph_)

    def averaged(self, strength: float = 0.5) -> Graph:
        """The graph of the edges that more than this share of the searches of drawn rows found.

        Every edge points as most of them had it, the strongest first; one that would close a cycle is left out.

        Parameters
        ----------
        strength : float, default 0.5

        Returns
        -------
        Graph
        """
        if self.strengths is None:
            raise DataError(
                "no rows were drawn, so no edge has a strength.\n    Pass n_bootstrap=100 to learn_structure."
            )
        parents: dict[Name, list[Name]] = {node: [] for node in self.graph_.nodes}
        above: dict[Name, set[Name]] = {node: {node} for node in self.graph_.nodes}  # itself and all that lead to it
        for (a, b), (found, direction) in sorted(self.strengths.items(), key=lambda item: -item[1][0]):
            first, second = (a, b) if direction >= 0.5 else (b, a)
            if found > strength and second not in above[first]:
                parents[second].append(first)
                for node, reached in above.items():
                    if second in reached:
                        above[node] = reached | above[first]
        return Graph.read(parents)

    def to_frame(self) -> pd.DataFrame:
        """The edges as a pandas data frame, one line each."""
        import pandas as pd

        return pd.DataFrame(self.edges, columns=list(LearnedEdge._fields))

    def plot(self, ax: Axes | None = None) -> Plot:
        """The graph, parents above children; needs matplotlib. The stronger an edge, the thicker its line.

        Strength is the share of the searches of drawn rows that found it or, where none were drawn, what the score
        loses without it. Lines without a head can be turned.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        Picture
        """
        from tallybayes.plotting.network.learned_structure import plot_structure

        return plot_structure(self, ax)

    def _title(self) -> str:
        info, n_edges = self._told, len(self.edges)
        lines = [
            f"Structure of {len(self.graph_.nodes)} columns: {n_edges} arrow{'s' * (n_edges != 1)}, "
            f"{info['score']} {self.score:.2f}",
            f"  by {info['method']} from {info['rows']:,.10g} rows in {self.seconds:.2g} s, "
            f"{self.n_counted:,} {info['what']}",
        ]
        if self.strengths is not None:
            lines.append(f"  strengths: of {info['n_bootstrap']} searches in rows drawn with replacement")
        return "\n".join([*lines, *(f"  {line}" for line in info["constraints"])])

    def _lines(self) -> tuple[list[str], list[list[str]]]:
        drawn = self.strengths is not None
        head = ["", "worth", *(["strength", "direction"] if drawn else [])]
        rows = []
        for edge in self.edges:
            arrow = f"{printable(edge.parent)} {'–' if edge.reversible else '→'} {printable(edge.child)}"
            shares = [f"{edge.strength:.2f}", f"{edge.direction:.2f}"] if drawn else []
            rows.append([arrow, f"{edge.score_gain:.1f}", *shares])
        return head, rows

    def _reading(self) -> str:
        return "–: can be turned, no data tell its direction." if any(edge.reversible for edge in self.edges) else ""

    def __repr__(self) -> str:
        head, rows = self._lines()
        if not rows:
            return self._title()
        lines = [self._title(), *text_table([head, *rows[:_MOST]], right=range(1, len(head)))]
        lines += [f"  … {len(rows) - _MOST} more"] * (len(rows) > _MOST)
        return "\n".join([*lines, *filter(None, [self._reading()])])

    def _repr_html_(self) -> str:
        head, rows = self._lines()
        return html_parts((self._title(), head, rows), *filter(None, [self._reading()]))

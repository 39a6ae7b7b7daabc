"""Structure: the result of a structure search, with scores and bootstrap strengths of edges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from tallybayes.errors import DataError, printable
from tallybayes.models.network.graph import Graph
from tallybayes.models.network.structure.equivalence_class import EquivalenceClass, equivalence_class
from tallybayes.results.result import FrameData, PlottedResult, ResultTable, columns_of
from tallybayes.tally.factor import Name

_MAX_ROWS = 40  # of a printed table


class LearnedEdge(NamedTuple):
    """An edge, the loss of score without it in nats, and its bootstrap strength.

    ``reversible`` is whether neither data nor constraints determine the direction of the edge. ``strength`` is the
    fraction of bootstrap searches with the edge, ``direction`` the fraction of these in this direction, one half for
    reversible edges. Both are NaN without bootstrap.
    """

    parent: Name
    child: Name
    score_gain: float
    reversible: bool
    strength: float
    direction: float


class SearchSummary(NamedTuple):
    """Method, duration and settings of a structure search, as printed."""

    method: str
    score: str
    n_rows: float
    seconds: float
    n_counted: int
    counted: str  # "families" or "tests"
    n_bootstrap: int
    constraints: list[str]


class Structure(PlottedResult):
    """Structure found by `learn_structure`, for ``tb.BayesianNetwork(structure)``.

    Attributes
    ----------
    graph_ : Graph
        ``nodes``, ``edges`` and ``parents``.
    score : float
        The score in nats: the log marginal likelihood, or the log-likelihood minus a penalty per parameter.
    edges : list of LearnedEdge
        Every directed edge with its score gain and its strength; the largest gain first.
    strengths : dict from (node, node) to (strength, direction)
        Of all pairs of nodes with an edge in a bootstrap search, in the structure or not; None without bootstrap.
    seconds : float
        Duration of the search.
    n_counted : int
        Number of families, or of tests, that were counted.

    Examples
    --------
    >>> import tallybayes as tb
    >>> rows = {"fire": [0, 0, 1, 1] * 9, "smoke": [0, 0, 1, 1] * 9, "day": [0, 1, 0, 1] * 9}
    >>> structure = tb.learn_structure(rows)
    >>> structure.graph_.edges, structure.score.__round__(2)
    ([('fire', 'smoke')], -56.83)
    >>> tb.BayesianNetwork(structure).fit(rows).query("fire", {"smoke": 1})[1].__round__(3)
    0.95
    """

    _plot_function = "network.learned_structure.plot_structure"

    def __init__(
        self,
        graph: Graph,
        score: float,
        edges: Mapping[tuple[Name, Name], tuple[float, bool]],
        strengths: dict[tuple[Name, Name], tuple[float, float]] | None,
        summary: SearchSummary,
    ) -> None:
        self.graph_ = graph
        self.score = score
        self.strengths = strengths
        self.seconds = summary.seconds
        self.n_counted = summary.n_counted
        self._summary = summary
        learned = (LearnedEdge(*edge, *gain, *self._strength(edge)) for edge, gain in edges.items())
        self.edges = sorted(learned, key=lambda edge: -edge.score_gain)

    def _strength(self, edge: tuple[Name, Name]) -> tuple[float, float]:
        """Return the strength of an edge, and the fraction of the searches with it that have this direction."""
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
        """Return the averaged graph of the bootstrap searches: the edges with a greater strength.

        Edges have their more frequent direction. They are added in the order of their strength, unless they close a
        cycle.

        Parameters
        ----------
        strength : float, default 0.5

        Returns
        -------
        Graph
        """
        if self.strengths is None:
            raise DataError("strengths need bootstrap searches.\n    Pass n_bootstrap=100 to learn_structure.")
        parents: dict[Name, list[Name]] = {node: [] for node in self.graph_.nodes}
        ancestors: dict[Name, set[Name]] = {node: {node} for node in self.graph_.nodes}  # with the node itself
        for (a, b), (fraction, direction) in sorted(self.strengths.items(), key=lambda item: -item[1][0]):
            parent, child = (a, b) if direction >= 0.5 else (b, a)
            if fraction > strength and child not in ancestors[parent]:
                parents[child].append(parent)
                for node, above in ancestors.items():
                    if child in above:
                        ancestors[node] = above | ancestors[parent]
        return Graph.read(parents)

    def _frame_data(self) -> FrameData:
        return columns_of(LearnedEdge, self.edges)

    def _title(self) -> str:
        summary = self._summary
        n_edges = len(self.edges)
        lines = [
            f"Structure of {len(self.graph_.nodes)} columns: {n_edges} edge{'s' * (n_edges != 1)}, "
            f"{summary.score} {self.score:.2f}",
            f"  by {summary.method} from {summary.n_rows:,.10g} rows in {self.seconds:.2g} s, "
            f"{self.n_counted:,} {summary.counted}",
        ]
        if self.strengths is not None:
            lines.append(f"  strength: fraction of {summary.n_bootstrap} bootstrap searches")
        return "\n".join([*lines, *(f"  {line}" for line in summary.constraints)])

    def _content(self) -> list[str | ResultTable]:
        has_strengths = self.strengths is not None
        rows = []
        for edge in self.edges:
            arrow = f"{printable(edge.parent)} {'–' if edge.reversible else '→'} {printable(edge.child)}"
            strength = [f"{edge.strength:.2f}", f"{edge.direction:.2f}"] if has_strengths else []
            rows.append([arrow, f"{edge.score_gain:.1f}", *strength])
        if not rows:
            return [self._title()]
        reversible = any(edge.reversible for edge in self.edges)
        notes = ["–: reversible, the data do not determine the direction."] if reversible else []
        head = ["", "gain", *(["strength", "direction"] if has_strengths else [])]
        return [ResultTable(rows, head, self._title(), "lr", max_rows=_MAX_ROWS), *notes]

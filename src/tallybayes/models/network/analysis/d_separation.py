"""D-separation, active paths and Markov blankets: independences that follow from the graph alone (Pearl 1988)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from tallybayes._utils.html import html_text
from tallybayes.errors import DataError, printable
from tallybayes.models.inputs.features import node_list
from tallybayes.tally.factor import Name
from tallybayes.typing import Names

if TYPE_CHECKING:
    from tallybayes.models.network.graph import Graph


def active_path(graph: Graph, first: Names, second: Names, given: Names | Mapping[Any, Any] = ()) -> ActivePath | None:
    """Return a shortest active path between two sets of nodes given the evidence; None if they are d-separated."""
    starts = _query_nodes(graph, first, "first")
    ends = _query_nodes(graph, second, "second")
    observed, soft = _evidence_nodes(graph, given)
    for nodes, others, what in (
        (starts, ends, "on both sides"),
        (starts, observed, "given"),
        (ends, observed, "given"),
    ):
        both = [node for node in nodes if node in others]
        if both:
            raise DataError(
                f"node {both[0]!r} is in the query and {what}; expected different nodes.\n    Remove one of the two."
            )
    visits = graph.active_visits([(node, False) for node in starts], observed, soft)
    visit = next((visit for visit in visits if visit[0] in ends), None)
    path: list[Name] = []
    while visit is not None:
        path.insert(0, visit[0])
        visit = visits[visit]
    return ActivePath(graph, tuple(path), observed, soft) if path else None


def markov_blanket(graph: Graph, node: Name) -> MarkovBlanket:
    """Return the Markov blanket of a node: its parents, children, and the other parents of its children."""
    graph.require([node])
    children = graph.children()[node]
    others = {parent for child in children for parent in graph.parents[child]} - {node, *graph.parents[node], *children}
    spouses = tuple(other for other in graph.nodes if other in others)
    return MarkovBlanket(node, graph.parents[node], tuple(children), spouses)


class ActivePath:
    """Active path (trail) between two nodes.

    Attributes
    ----------
    nodes : tuple
        From one end to the other.
    edges : list of (parent, child)
        The directed edges of the path.
    given : tuple
        The observed nodes.

    Examples
    --------
    >>> import tallybayes as tb
    >>> path = tb.BayesianNetwork({"wet": ["rain"], "slippery": ["wet"]}).active_path("rain", "slippery")
    >>> path
    rain → wet → slippery
      wet  not observed
    >>> path.nodes
    ('rain', 'wet', 'slippery')
    """

    def __init__(self, graph: Graph, nodes: tuple[Name, ...], observed: list[Name], soft: list[Name]) -> None:
        self.nodes = nodes
        self.given = (*observed, *soft)
        self.edges = [(a, b) if a in graph.parents[b] else (b, a) for a, b in pairwise(nodes)]
        self._path = format_path(graph, nodes)
        self._reasons = {}
        for node, (before, after) in zip(nodes[1:], pairwise(self.edges), strict=False):
            self._reasons[node] = "not observed"
            if before[1] == node == after[1]:
                below = graph.descendants(node)
                opener = next(other for other in graph.nodes if other in below and other in self.given)
                name = "it" if opener == node else printable(opener)
                status = "has soft evidence" if opener in soft else "is observed"
                self._reasons[node] = f"collider; open because {name} {status}"

    @property
    def marks(self) -> dict[str, tuple[Name, ...]]:
        """The nodes to highlight in a plot of the network, by their role."""
        return {"ends": (self.nodes[0], self.nodes[-1]), "active path": self.nodes[1:-1], "given": self.given}

    def __repr__(self) -> str:
        width = max((len(printable(node)) for node in self._reasons), default=0)
        lines = [f"  {printable(node):<{width}}  {reason}" for node, reason in self._reasons.items()]
        return "\n".join([self._path, *lines])

    def _repr_html_(self) -> str:
        return html_text(repr(self))


@dataclass(frozen=True, eq=False, repr=False)
class MarkovBlanket(Set[Name]):
    """Markov blanket of a node: given this set, the node is independent of all other nodes.

    Attributes
    ----------
    node : name
    parents, children, spouses : tuple
        Spouses are other parents of the children.

    Examples
    --------
    >>> import tallybayes as tb
    >>> blanket = tb.BayesianNetwork({"wet": ["rain", "hose"]}).markov_blanket("rain")
    >>> sorted(blanket), blanket.spouses, blanket == {"hose", "wet"}
    (['hose', 'wet'], ('hose',), True)
    """

    node: Name
    parents: tuple[Name, ...]
    children: tuple[Name, ...]
    spouses: tuple[Name, ...]

    @property
    def _members(self) -> tuple[Name, ...]:
        return (*self.parents, *self.children, *self.spouses)

    @classmethod
    def _from_iterable(cls, nodes: Iterable[Any]) -> Any:
        """Return the result type of `&`, `|` and `-`."""
        return frozenset(nodes)

    def __contains__(self, node: object) -> bool:
        return node in self._members

    def __iter__(self) -> Iterator[Name]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    @property
    def marks(self) -> dict[str, tuple[Name, ...]]:
        """The nodes to highlight in a plot of the network, by their role."""
        members = {"parents": self.parents, "children": self.children, "spouses": self.spouses}
        return {"node": (self.node,), **members}

    def __repr__(self) -> str:
        shown = {name: ", ".join(map(printable, nodes)) or "none" for name, nodes in list(self.marks.items())[1:]}
        title = f"Markov blanket of {printable(self.node)}: {len(self)} node{'s' * (len(self) != 1)}"
        return "\n".join([title, *(f"  {name:<8}  {nodes}" for name, nodes in shown.items())])

    def _repr_html_(self) -> str:
        return html_text(repr(self))


def format_path(graph: Graph, nodes: tuple[Name, ...]) -> str:
    """Format a path with its edge directions, as in a → b ← c."""
    arrows = [" → " if a in graph.parents[b] else " ← " for a, b in pairwise(nodes)]
    return "".join(printable(node) + arrow for node, arrow in zip(nodes, [*arrows, ""], strict=True))


def _query_nodes(graph: Graph, nodes: Names, what: str) -> list[Name]:
    """Return nodes of the graph as a list; raise DataError if it is empty."""
    names = node_list(nodes)
    graph.require(names)
    if not names:
        raise DataError.wrong_type(what, "empty", "the name of a node, or several")
    return names


def _evidence_nodes(graph: Graph, given: Names | Mapping[Any, Any] | None) -> tuple[list[Name], list[Name]]:
    """Return the observed nodes and those with soft evidence."""
    nodes = [] if given is None else node_list(given)
    graph.require(nodes)
    soft = [node for node in nodes if isinstance(given, Mapping) and isinstance(given[node], Mapping)]
    return [node for node in nodes if node not in soft], soft

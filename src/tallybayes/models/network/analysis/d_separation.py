"""D-separation, active paths and Markov blankets: independences that follow from the graph alone (Pearl 1988)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes._utils.html import html_text
from tallybayes.errors import DataError, printable
from tallybayes.tally.factor import Name
from tallybayes.typing import Names

if TYPE_CHECKING:
    from tallybayes.models.network.graph import Graph


def d_separated(network: Any, first: Names, second: Names, given: Names | Mapping[Any, Any] = ()) -> bool:
    """Return whether two sets of nodes are d-separated given the evidence.

    D-separated nodes are conditionally independent for all parameters. Nodes that are not d-separated may still be
    independent for some parameters. `active_path` returns a path that connects them.

    Parameters
    ----------
    first, second : name, or sequence of names
    given : name, sequence of names, or a mapping as for `query`, optional
        The evidence; its levels do not matter. Nodes with soft evidence block no path.

    Returns
    -------
    bool

    Examples
    --------
    >>> import tallybayes as tb
    >>> building = tb.BayesianNetwork({"alarm": ["tampering", "fire"], "smoke": ["fire"]})
    >>> building.d_separated("tampering", "smoke")
    True
    >>> building.d_separated("tampering", "smoke", given="alarm")               # explaining away
    False
    >>> building.d_separated("tampering", "smoke", given=["alarm", "fire"])
    True
    """
    return active_path(network, first, second, given) is None


def active_path(network: Any, first: Names, second: Names, given: Names | Mapping[Any, Any] = ()) -> ActivePath | None:
    """Return a shortest active path between two sets of nodes given the evidence; None if they are d-separated.

    Parameters
    ----------
    first, second, given
        As for `d_separated`.

    Returns
    -------
    ActivePath or None

    Examples
    --------
    >>> import tallybayes as tb
    >>> building = tb.BayesianNetwork({"alarm": ["tampering", "fire"], "report": ["alarm"], "smoke": ["fire"]})
    >>> building.active_path("tampering", "smoke", given="report")
    tampering → alarm ← fire → smoke
      alarm  collider; open because report is observed
      fire   not observed
    >>> building.active_path("tampering", "smoke") is None
    True
    """
    graph: Graph = getattr(network, "graph_", network)
    starts, ends = _named(graph, first, "first"), _named(graph, second, "second")
    known, hinted = _known(graph, given)
    for one, other, what in ((starts, ends, "on both sides"), (starts, known, "given"), (ends, known, "given")):
        both = [node for node in one if node in other]
        if both:
            raise DataError(
                f"node {both[0]!r} is in the query and {what}; expected different nodes.\n    Remove one of the two."
            )
    nodes = _shortest(graph, starts, set(ends), set(known), set(hinted))
    return None if nodes is None else ActivePath(graph, nodes, known, hinted)


def markov_blanket(network: Any, node: Name) -> MarkovBlanket:
    """Return the Markov blanket of a node: its parents, children, and the other parents of its children.

    Given its Markov blanket, the node is independent of all other nodes.

    Parameters
    ----------
    node : name

    Returns
    -------
    MarkovBlanket
        A set of nodes.

    Examples
    --------
    >>> import tallybayes as tb
    >>> building = tb.BayesianNetwork({"alarm": ["tampering", "fire"], "report": ["alarm"], "smoke": ["fire"]})
    >>> building.markov_blanket("fire")
    Markov blanket of fire: 3 nodes
      parents   none
      children  alarm, smoke
      spouses   tampering
    """
    graph: Graph = getattr(network, "graph_", network)
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

    def __init__(self, graph: Graph, nodes: tuple[Name, ...], known: Iterable[Name], hinted: Iterable[Name]) -> None:
        self.nodes, self.given = nodes, (*known, *hinted)
        self.edges = [(a, b) if a in graph.parents[b] else (b, a) for a, b in pairwise(nodes)]
        self._way = drawn_path(graph, nodes)
        self._reasons = {}
        for place in range(1, len(nodes) - 1):
            node = nodes[place]
            if self.edges[place - 1][1] == node == self.edges[place][1]:
                below = graph.descendants(node)
                why = next(other for other in graph.nodes if other in below and other in self.given)
                reason = "it" if why == node else printable(why)
                open_by = f"{reason} {'has soft evidence' if why in hinted else 'is observed'}"
                self._reasons[node] = f"collider; open because {open_by}"
            else:
                self._reasons[node] = "not observed"

    @property
    def marks(self) -> dict[str, tuple[Name, ...]]:
        """The nodes to highlight in a plot of the network, by their role."""
        return {"ends": (self.nodes[0], self.nodes[-1]), "active path": self.nodes[1:-1], "given": self.given}

    def __repr__(self) -> str:
        width = max((len(printable(node)) for node in self._reasons), default=0)
        lines = [f"  {printable(node):<{width}}  {why}" for node, why in self._reasons.items()]
        return "\n".join([self._way, *lines])

    def _repr_html_(self) -> str:
        return html_text(repr(self))


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

    def __init__(
        self, node: Name, parents: tuple[Name, ...], children: tuple[Name, ...], spouses: tuple[Name, ...]
    ) -> None:
        self.node, self.parents, self.children, self.spouses = node, parents, children, spouses

    @classmethod
    def _from_iterable(cls, found: Iterable[Any]) -> Any:
        """Return the result type of `&`, `|` and `-`."""
        return frozenset(found)

    def __contains__(self, node: object) -> bool:
        return node in (*self.parents, *self.children, *self.spouses)

    def __iter__(self) -> Iterator[Name]:
        return iter((*self.parents, *self.children, *self.spouses))

    def __len__(self) -> int:
        return len(self.parents) + len(self.children) + len(self.spouses)

    @property
    def marks(self) -> dict[str, tuple[Name, ...]]:
        """The nodes to highlight in a plot of the network, by their role."""
        parts = {"parents": self.parents, "children": self.children, "spouses": self.spouses}
        return {"node": (self.node,), **parts}

    def __repr__(self) -> str:
        shown = {name: ", ".join(map(printable, nodes)) or "none" for name, nodes in list(self.marks.items())[1:]}
        title = f"Markov blanket of {printable(self.node)}: {len(self)} node{'s' * (len(self) != 1)}"
        return "\n".join([title, *(f"  {name:<8}  {nodes}" for name, nodes in shown.items())])

    def _repr_html_(self) -> str:
        return html_text(repr(self))


def drawn_path(graph: Graph, nodes: Iterable[Name]) -> str:
    """Format a path with its edge directions, as in a → b ← c."""
    found = list(nodes)
    arrows = [" → " if a in graph.parents[b] else " ← " for a, b in pairwise(found)]
    return "".join(printable(node) + arrow for node, arrow in zip(found, [*arrows, ""], strict=True))


def listed(nodes: Any) -> list[Name]:
    """Return one name, or several, as a list."""
    if isinstance(nodes, str | int):
        return [nodes]
    if isinstance(nodes, np.integer):
        return [int(nodes)]
    if not isinstance(nodes, Iterable):
        raise DataError.wrong_type("nodes", repr(nodes), "the name of a node, or several")
    return [int(node) if isinstance(node, np.integer) else node for node in nodes]


def _shortest(
    graph: Graph, starts: Iterable[Name], ends: set[Name], known: set[Name], hinted: set[Name]
) -> tuple[Name, ...] | None:
    """Find a shortest active path by breadth-first search (Bayes ball, Shachter 1998).

    A state is a node and whether the path enters it along an edge into it. A shortest path visits no node twice.
    """
    children, opened = graph.children(), graph.ancestors(known | hinted)
    before: dict[tuple[Name, bool], tuple[Name, bool] | None] = {(node, False): None for node in starts}
    waiting = list(before)
    for step in waiting:  # grows during the loop
        node, into = step
        if node in ends:
            found: list[Name] = []
            back: tuple[Name, bool] | None = step
            while back is not None:
                found.append(back[0])
                back = before[back]
            return tuple(reversed(found))
        steps: list[tuple[Name, bool]] = []
        if node not in known:
            steps += [(child, True) for child in children[node]]
        if node in opened if into else node not in known:
            steps += [(parent, False) for parent in graph.parents[node]]
        for after in steps:
            if after not in before:
                before[after] = step
                waiting.append(after)
    return None


def _named(graph: Graph, nodes: Any, what: str) -> list[Name]:
    found = listed(nodes)
    graph.require(found)
    if not found:
        raise DataError.wrong_type(what, "empty", "the name of a node, or several")
    return found


def _known(graph: Graph, given: Any) -> tuple[list[Name], list[Name]]:
    """Return the observed nodes and those with soft evidence."""
    found = [] if given is None else listed(given)
    graph.require(found)
    hinted = [node for node in found if isinstance(given, Mapping) and isinstance(given[node], Mapping)]
    return [node for node in found if node not in hinted], hinted

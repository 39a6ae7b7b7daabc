"""Directed acyclic graph of a Bayesian network."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from itertools import combinations
from typing import Any, NamedTuple, Self

from tallybayes.errors import DataError
from tallybayes.messages import did_you_mean
from tallybayes.models.inputs.features import node_list
from tallybayes.models.network.analysis import d_separation
from tallybayes.tally.factor import Name
from tallybayes.typing import Names

Visit = tuple[Name, bool]  # a node, and whether a path enters it along an edge into it


class Graph(NamedTuple):
    """Directed acyclic graph (DAG).

    Attributes
    ----------
    parents : dict from node to a tuple of nodes
        Every node is a key; parents come before their children.

    Examples
    --------
    >>> from tallybayes.models.network.graph import Graph
    >>> Graph.read([("fire", "alarm"), ("tampering", "alarm")]).parents
    {'fire': (), 'tampering': (), 'alarm': ('fire', 'tampering')}
    """

    parents: dict[Name, tuple[Name, ...]]

    @classmethod
    def read(cls, source: object) -> Self:
        """Return the graph of {node: parents}, edges (parent, child), a networkx DiGraph, or an object with `graph_`.

        Nodes that occur only as parents have no parents.
        """
        source = getattr(source, "graph_", source)
        if isinstance(source, cls):
            return source
        given = _read_parents(source)
        if not given:
            raise DataError(
                "the network has no nodes; expected at least 1, as in parents={'rain': [], 'wet': ['rain']}."
            )
        for node, parents in given.items():
            if len(set(parents)) < len(parents):
                twice = next(parent for parent, n in Counter(parents).items() if n > 1)
                raise DataError(f"node {node!r} has the parent {twice!r} twice; expected each once.")
        by_text = {str(node): node for node in given}
        if len(by_text) < len(given):
            mixed = next(node for node in given if by_text[str(node)] != node)
            raise DataError(f"the nodes {mixed!r} and {by_text[str(mixed)]!r} read alike; expected different names.")
        return cls(_ordered(given))

    @property
    def nodes(self) -> tuple[Name, ...]:
        """All nodes in topological order."""
        return tuple(self.parents)

    @property
    def edges(self) -> list[tuple[Name, Name]]:
        """All edges (parent, child)."""
        return [(parent, node) for node, parents in self.parents.items() for parent in parents]

    def children(self) -> dict[Name, list[Name]]:
        """Return the children of every node."""
        children: dict[Name, list[Name]] = {node: [] for node in self.parents}
        for parent, node in self.edges:
            children[parent].append(node)
        return children

    def d_separated(self, first: Names, second: Names, given: Names | Mapping[Any, Any] = ()) -> bool:
        """Return whether nodes are d-separated; as `BayesianNetwork.d_separated`."""
        return self.active_path(first, second, given) is None

    def active_path(
        self, first: Names, second: Names, given: Names | Mapping[Any, Any] = ()
    ) -> d_separation.ActivePath | None:
        """Return an active path; as `BayesianNetwork.active_path`."""
        return d_separation.active_path(self, first, second, given)

    def markov_blanket(self, node: Name) -> d_separation.MarkovBlanket:
        """Return the Markov blanket of a node; as `BayesianNetwork.markov_blanket`."""
        return d_separation.markov_blanket(self, node)

    def ancestors(self, nodes: Names) -> set[Name]:
        """Return the nodes and their ancestors.

        Parameters
        ----------
        nodes : name, or several
        """
        return self._reachable(nodes, self.parents)

    def descendants(self, nodes: Names) -> set[Name]:
        """Return the nodes and their descendants.

        Parameters
        ----------
        nodes : name, or several
        """
        return self._reachable(nodes, self.children())

    def _reachable(self, nodes: Names, neighbors: Mapping[Name, Iterable[Name]]) -> set[Name]:
        """Return the nodes and all that can be reached from them."""
        reachable: set[Name] = set()
        waiting = node_list(nodes)
        self.require(waiting)
        while waiting:
            node = waiting.pop()
            if node not in reachable:
                reachable.add(node)
                waiting += neighbors[node]
        return reachable

    def moral(self) -> dict[Name, set[Name]]:
        """Return the moral graph as the neighbors of every node."""
        neighbors: dict[Name, set[Name]] = {node: set() for node in self.parents}
        for node, parents in self.parents.items():
            for first, second in combinations((node, *parents), 2):
                neighbors[first].add(second)
                neighbors[second].add(first)
        return neighbors

    def influenced_nodes(self, node: Name, observed: Iterable[Name], soft: Iterable[Name] = ()) -> set[Name]:
        """Return the nodes whose posterior can depend on p(node | parents), by the graph alone.

        Parameters
        ----------
        node : name
        observed : observed nodes
        soft : nodes with soft evidence
        """
        visits = self.active_visits([(node, True)], observed, soft)  # as if from a parent: the CPT itself
        return {visited for visited, _ in visits}.difference(observed)

    def relevant_nodes(self, nodes: Iterable[Name], observed: Iterable[Name], soft: Iterable[Name] = ()) -> set[Name]:
        """Return the nodes whose p(node | parents) can change the posterior of some nodes, by the graph alone.

        Parameters
        ----------
        nodes : unobserved nodes
        observed, soft
            As for `influenced_nodes`.
        """
        closed, opened = set(observed), self.ancestors([*observed, *soft])
        visits = self.active_visits([(node, False) for node in nodes], closed, soft)
        return {node for node, into in visits if (node in opened if into else node not in closed)}

    def active_visits(
        self, starts: Iterable[Visit], observed: Iterable[Name], soft: Iterable[Name] = ()
    ) -> dict[Visit, Visit | None]:
        """Return the visits along active paths, the nearest first, each with the one before it.

        This is the Bayes ball (Shachter 1998), breadth-first. It passes unobserved nodes in either direction; from a
        parent, it returns to the parents only at nodes with evidence on them or on a descendant.
        """
        closed = set(observed)
        opened = self.ancestors([*closed, *soft])
        children = self.children()
        before: dict[Visit, Visit | None] = dict.fromkeys(starts)
        waiting = list(before)
        for visit in waiting:  # grows during the loop
            node, into = visit
            following = [(child, True) for child in children[node] if node not in closed]
            if node in opened if into else node not in closed:
                following += [(parent, False) for parent in self.parents[node]]
            for after in following:
                if after not in before:
                    before[after] = visit
                    waiting.append(after)
        return before

    def without_incoming_edges(self, nodes: Iterable[Name]) -> Graph:
        """Return the mutilated graph of an intervention: without edges into some nodes."""
        intervened = set(nodes)
        return Graph({node: () if node in intervened else parents for node, parents in self.parents.items()})

    def require(self, nodes: Iterable[object]) -> None:
        """Raise DataError for names that are not nodes."""
        unknown = [node for node in nodes if not isinstance(node, str | int) or node not in self.parents]
        if unknown:
            known = ", ".join(repr(node) for node in list(self.parents)[:8]) + (", …" if len(self.parents) > 8 else "")
            hint = did_you_mean(unknown[:1], self.parents, "Check the spelling.")
            raise DataError(f"the network has no node {unknown[0]!r} (found: {known}).\n    {hint}")


def _ordered(given: Mapping[Name, list[Name]]) -> dict[Name, tuple[Name, ...]]:
    """Return a topological order, stable in the order given; raise DataError with the cycle if there is one."""
    sorter = TopologicalSorter[Name](dict.fromkeys(given, ()))
    for node, parents in given.items():
        sorter.add(node, *parents)
    try:
        return {node: tuple(given[node]) for node in sorter.static_order()}
    except CycleError as error:
        raise DataError(
            f"the network has a cycle: {_format_path(error.args[1])}; expected none.\n"
            "    Reverse or remove one of these edges."
        ) from None


def _format_path(nodes: list[Name], most: int = 12) -> str:
    """Format nodes along edges for a message."""
    shown = [repr(node) for node in nodes]
    return " → ".join(shown if len(shown) <= most else [*shown[: most - 2], "…", shown[-1]])


def _read_parents(source: object) -> dict[Name, list[Name]]:
    """Return the parents of every node of {node: parents}, edges or a networkx DiGraph, in the order given."""
    given: dict[Name, list[Name]] = {}
    if isinstance(source, Mapping):
        given = {_node_name(node): _parent_names(node, parents) for node, parents in source.items()}
    elif hasattr(source, "predecessors") and hasattr(source, "nodes"):
        given = {
            _node_name(node): [_node_name(parent) for parent in source.predecessors(node)] for node in source.nodes
        }
    elif isinstance(source, Iterable) and not isinstance(source, str | bytes):
        for edge in source:
            parent, child = map(_node_name, read_edge(edge))
            given.setdefault(parent, [])
            given.setdefault(child, []).append(parent)
    else:
        raise DataError.wrong_type(
            "parents",
            repr(source)[:60],
            "{node: its parents}, a list of edges (parent, child) or a networkx DiGraph",
        )
    roots = [parent for parents in given.values() for parent in parents if parent not in given]
    return given | {root: [] for root in roots}


def _parent_names(node: object, parents: object) -> list[Name]:
    """Return the parents of a node as a list of names."""
    if parents is not None and not isinstance(parents, str | int | Iterable):
        raise DataError.wrong_type(f"the parents of {node!r}", repr(parents), "a list of names")
    names = [parents] if isinstance(parents, str | int) else parents or ()
    return [_node_name(parent) for parent in names]


def read_edge(edge: object, what: str = "an edge") -> tuple[Any, Any]:
    """Return the parent and the child of an edge; raise DataError if it is not a pair."""
    if isinstance(edge, str | bytes) or not isinstance(edge, Iterable) or len(pair := tuple(edge)) != 2:
        raise DataError.wrong_type(what, repr(edge)[:60], "a pair (parent, child)")
    return pair


def _node_name(node: object) -> Name:
    if hasattr(node, "item") and not isinstance(node, str):
        node = node.item()
    if isinstance(node, bool) or not isinstance(node, str | int):
        raise DataError.wrong_type("a node", repr(node), "the name of a column: a string or a whole number")
    return node

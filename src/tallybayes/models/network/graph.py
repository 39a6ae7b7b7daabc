"""Directed acyclic graph of a Bayesian network."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from itertools import combinations
from typing import Any, NamedTuple, Self

from tallybayes.errors import DataError
from tallybayes.messages import did_you_mean
from tallybayes.models.network.analysis import d_separation
from tallybayes.models.network.analysis.d_separation import listed
from tallybayes.tally.factor import Name


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
    def read(cls, source: Any) -> Self:
        """A graph from {node: parents}, edges (parent, child), a networkx DiGraph, or whatever has a `graph_`.

        Nodes that are named only as parents have none of their own.
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
        spelled = {str(node): node for node in given}
        if len(spelled) < len(given):
            mixed = next(node for node in given if spelled[str(node)] != node)
            raise DataError(f"the nodes {mixed!r} and {spelled[str(mixed)]!r} read alike; expected different names.")
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
        found: dict[Name, list[Name]] = {node: [] for node in self.parents}
        for parent, node in self.edges:
            found[parent].append(node)
        return found

    def d_separated(self, first: Any, second: Any, given: Any = ()) -> bool:
        """Return whether nodes are d-separated; as `BayesianNetwork.d_separated`."""
        return d_separation.d_separated(self, first, second, given)

    def active_path(self, first: Any, second: Any, given: Any = ()) -> d_separation.ActivePath | None:
        """Return an active path; as `BayesianNetwork.active_path`."""
        return d_separation.active_path(self, first, second, given)

    def markov_blanket(self, node: Name) -> d_separation.MarkovBlanket:
        """Return the Markov blanket of a node; as `BayesianNetwork.markov_blanket`."""
        return d_separation.markov_blanket(self, node)

    def ancestors(self, nodes: Any) -> set[Name]:
        """Return the nodes and their ancestors.

        Parameters
        ----------
        nodes : name, or several
        """
        return self._reached_by(nodes, self.parents)

    def descendants(self, nodes: Any) -> set[Name]:
        """Return the nodes and their descendants.

        Parameters
        ----------
        nodes : name, or several
        """
        return self._reached_by(nodes, self.children())

    def _reached_by(self, nodes: Any, steps: Mapping[Name, Iterable[Name]]) -> set[Name]:
        found: set[Name] = set()
        waiting = listed(nodes)
        self.require(waiting)
        while waiting:
            node = waiting.pop()
            if node not in found:
                found.add(node)
                waiting += steps[node]
        return found

    def moral(self) -> dict[Name, set[Name]]:
        """Return the moral graph as the neighbors of every node."""
        near: dict[Name, set[Name]] = {node: set() for node in self.parents}
        for node, parents in self.parents.items():
            for first, second in combinations((node, *parents), 2):
                near[first].add(second)
                near[second].add(first)
        return near

    def influenced_nodes(self, node: Name, observed: Iterable[Name], hinted: Iterable[Name] = ()) -> set[Name]:
        """The nodes whose posterior a change of p(node | parents) can move, by the graph alone (Bayes ball).

        Parameters
        ----------
        node : name
        observed : nodes that are known
        hinted : nodes of which something is known
        """
        known, some, children = set(observed), set(hinted), self.children()
        found: set[Name] = set()
        seen: set[tuple[Name, bool]] = set()
        waiting = [(node, True)]  # as if from a parent: the table itself
        while waiting:
            place, from_parent = step = waiting.pop()
            if step in seen:
                continue
            seen.add(step)
            if place not in known:
                found.add(place)
                waiting += [(child, True) for child in children[place]]
            if (place in known or place in some) if from_parent else place not in known:
                waiting += [(parent, False) for parent in self.parents[place]]
        return found

    def relevant_nodes(self, nodes: Iterable[Name], observed: Iterable[Name], hinted: Iterable[Name] = ()) -> set[Name]:
        """The nodes whose p(node | parents) can move the posterior of some: those whose `reached` holds one of them.

        Parameters
        ----------
        nodes : nodes that are not known
        observed, hinted
            As for `reached`.
        """
        known, some, children = set(observed), set(hinted), self.children()
        found: set[Name] = set()
        seen: set[tuple[Name, bool]] = set()
        waiting = [(node, False) for node in nodes]
        while waiting:
            place, from_parent = step = waiting.pop()
            if step in seen:
                continue
            seen.add(step)
            if (place in known or place in some) if from_parent else place not in known:
                found.add(place)
                waiting += [(parent, False) for parent in self.parents[place]]
            if place not in known:
                waiting += [(child, True) for child in children[place]]
        return found

    def without_incoming_edges(self, nodes: Iterable[Name]) -> Graph:
        """Return the mutilated graph of an intervention: without edges into some nodes."""
        free = set(nodes)
        return Graph({node: () if node in free else parents for node, parents in self.parents.items()})

    def require(self, nodes: Iterable[Any]) -> None:
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
            f"the network has a cycle: {_way(error.args[1])}; expected none.\n"
            "    Turn one of these edges round, or leave it out."
        ) from None


def _way(nodes: list[Name], most: int = 12) -> str:
    """Format nodes along edges for a message."""
    shown = [repr(node) for node in nodes]
    return " → ".join(shown if len(shown) <= most else [*shown[: most - 2], "…", shown[-1]])


def _read_parents(source: Any) -> dict[Name, list[Name]]:
    """The parents of every node of {node: parents}, edges or a networkx DiGraph, as they are written."""
    given: dict[Name, list[Name]] = {}
    if isinstance(source, Mapping):
        for node, parents in source.items():
            if parents is not None and not isinstance(parents, str | int | Iterable):
                raise DataError.wrong_type(f"the parents of {node!r}", repr(parents), "a list of names")
            found = [parents] if isinstance(parents, str | int) else list(parents or ())
            given[_name(node)] = [_name(parent) for parent in found]
    elif hasattr(source, "predecessors") and hasattr(source, "nodes"):
        given = {_name(node): [_name(parent) for parent in source.predecessors(node)] for node in source.nodes}
    elif isinstance(source, Iterable) and not isinstance(source, str | bytes):
        for edge in source:
            if isinstance(edge, str | bytes) or not isinstance(edge, Iterable) or len(pair := tuple(edge)) != 2:
                raise DataError.wrong_type("an edge", repr(edge), "a pair (parent, child)")
            given.setdefault(_name(pair[0]), [])
            given.setdefault(_name(pair[1]), []).append(_name(pair[0]))
    else:
        raise DataError.wrong_type(
            "parents",
            repr(source)[:60],
            "{node: its parents}, a list of edges (parent, child) or a networkx DiGraph",
        )
    for parents in list(given.values()):
        for parent in parents:
            given.setdefault(parent, [])
    return given


def _name(node: Any) -> Name:
    if hasattr(node, "item") and not isinstance(node, str):
        node = node.item()
    if isinstance(node, bool) or not isinstance(node, str | int):
        raise DataError.wrong_type("a node", repr(node), "the name of a column: a string or a whole number")
    return node

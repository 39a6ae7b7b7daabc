"""Markov equivalence classes (CPDAGs) and the structural Hamming distance."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from tallybayes.errors import DataError
from tallybayes.models.network.graph import Graph
from tallybayes.tally.factor import Name
from tallybayes.typing import Parents


class EquivalenceClass(NamedTuple):
    """Markov equivalence class of a graph, as a CPDAG (essential graph).

    Attributes
    ----------
    nodes : tuple of names
    directed : tuple of (parent, child)
        Arrows that all graphs of the class have.
    undirected : tuple of pairs
        Reversible edges: data cannot determine their direction.

    Examples
    --------
    >>> import tallybayes as tb
    >>> tb.equivalence_class([("fire", "alarm"), ("tampering", "alarm"), ("fire", "smoke")])
    4 nodes, 2 arrows, 1 edge that can be turned
      fire → alarm
      tampering → alarm
      fire – smoke
    """

    nodes: tuple[Name, ...]
    directed: tuple[tuple[Name, Name], ...]
    undirected: tuple[tuple[Name, Name], ...]

    def __repr__(self) -> str:
        n_nodes, n_directed, n_free = len(self.nodes), len(self.directed), len(self.undirected)
        head = f"{n_nodes} node{'s' * (n_nodes != 1)}, {n_directed} arrow{'s' * (n_directed != 1)}, "
        head += f"{n_free} edge{'s' * (n_free != 1)} that can be turned"
        lines = [f"  {a} → {b}" for a, b in self.directed] + [f"  {a} – {b}" for a, b in self.undirected]
        return "\n".join([head, *lines[:40], *([f"  … {len(lines) - 40} more"] if len(lines) > 40 else [])])


def equivalence_class(graph: Parents) -> EquivalenceClass:
    """Compute the Markov equivalence class of a graph.

    Two graphs say the same if they join the same nodes, and have the same pairs of parents that are not joined
    themselves (Verma and Pearl, 1990). Their likelihoods are the same for all rows, and so are their scores under BDeu,
    BDe, BIC and AIC.

    Parameters
    ----------
    graph : BayesianNetwork, Structure, mapping from node to its parents, list of edges, or networkx DiGraph

    Returns
    -------
    EquivalenceClass

    Examples
    --------
    >>> import tallybayes as tb
    >>> chain, turned = [("a", "b"), ("b", "c")], [("c", "b"), ("b", "a")]
    >>> tb.structural_hamming_distance(chain, turned)
    2
    >>> tb.structural_hamming_distance(tb.equivalence_class(chain), tb.equivalence_class(turned))
    0
    """
    found = Graph.read(graph)
    nodes = found.nodes
    index = {node: place for place, node in enumerate(nodes)}
    edges = np.zeros((len(nodes), len(nodes)), dtype=bool)
    for parent, child in found.edges:
        edges[index[parent], index[child]] = True
    marks = completed(edges)
    either = marks & marks.T
    directed = [(nodes[a], nodes[b]) for a, b in np.argwhere(marks & ~either).tolist()]
    undirected = [(nodes[a], nodes[b]) for a, b in np.argwhere(np.triu(either)).tolist()]
    return EquivalenceClass(nodes, tuple(directed), tuple(undirected))


def structural_hamming_distance(first: Parents | EquivalenceClass, second: Parents | EquivalenceClass) -> int:
    """Compute the structural Hamming distance: the number of pairs of nodes whose edges differ.

    Parameters
    ----------
    first, second : graphs, as for `equivalence_class`, or two classes
        Of two graphs, an arrow that is turned counts one. Of two classes, arrows that no data could turn count nothing:
        that is how far what was learnt is from the truth.

    Returns
    -------
    int

    Examples
    --------
    >>> import tallybayes as tb
    >>> tb.structural_hamming_distance({"c": ["a", "b"]}, {"c": ["a"], "b": ["c"]})
    1
    """
    if isinstance(first, EquivalenceClass) != isinstance(second, EquivalenceClass):
        raise DataError(
            "one of the two is a class of graphs, the other a graph; expected two of one kind.\n"
            "    Pass tb.equivalence_class(...) of both."
        )
    joined, nodes = zip(*(_joined(one) for one in (first, second)), strict=True)
    if not nodes[0] & nodes[1]:
        raise DataError(
            f"the two have no node in common: found {sorted(map(str, nodes[0]))[:4]} and "
            f"{sorted(map(str, nodes[1]))[:4]}.\n    Name nodes alike in both."
        )
    return sum(joined[0].get(pair) != joined[1].get(pair) for pair in joined[0].keys() | joined[1].keys())


def _joined(graph: Any) -> tuple[dict[frozenset[Name], Any], set[Name]]:
    """The pairs that are joined, with the node the arrow points to, None where there is no arrow."""
    if isinstance(graph, EquivalenceClass):
        pairs: dict[frozenset[Name], Any] = {frozenset(edge): ("to", edge[1]) for edge in graph.directed}
        return pairs | {frozenset(edge): "free" for edge in graph.undirected}, set(graph.nodes)
    found = Graph.read(graph)
    return {frozenset(edge): ("to", edge[1]) for edge in found.edges}, set(found.nodes)


# ---- Marks: [a, b] where b may be the child; both ways where the edge can be turned ------------------------------


def completed(edges: np.ndarray, known: np.ndarray | None = None) -> np.ndarray:
    """The class of a graph as marks, from its arrows [parent, child]; `known` are those whose direction is."""
    joined = edges | edges.T
    marks = joined.copy() if known is None else joined & ~(edges & known).T
    for child in range(len(edges)):
        for a, b in combinations(np.flatnonzero(edges[:, child]).tolist(), 2):
            if not joined[a, b]:
                marks[child, a] = marks[child, b] = False
    return oriented(marks)


def oriented(marks: np.ndarray) -> np.ndarray:
    """Apply the orientation rules of Meek (1995) until no mark changes."""
    marks = marks.copy()
    again = True
    while again:
        again = False
        joined = marks | marks.T
        arrows = marks & ~marks.T
        for a, b in np.argwhere(marks & marks.T).tolist():
            if marks[a, b] and marks[b, a] and any(rule(marks, arrows, joined, a, b) for rule in _RULES):
                marks[b, a] = False
                arrows[a, b] = again = True
    return marks


def _no_new_collider(marks: np.ndarray, arrows: np.ndarray, joined: np.ndarray, a: int, b: int) -> bool:
    """c → a – b, c and b not joined."""
    return bool((arrows[:, a] & ~joined[:, b] & (np.arange(len(marks)) != b)).any())


def _no_cycle(marks: np.ndarray, arrows: np.ndarray, joined: np.ndarray, a: int, b: int) -> bool:
    """a → c → b."""
    return bool((arrows[a] & arrows[:, b]).any())


def _either_way(marks: np.ndarray, arrows: np.ndarray, joined: np.ndarray, a: int, b: int) -> bool:
    """a – c → b and a – d → b, c and d not joined."""
    middle = np.flatnonzero(marks[a] & marks[:, a] & arrows[:, b])
    return any(not joined[c, d] for c, d in combinations(middle.tolist(), 2))


def _by_the_way(marks: np.ndarray, arrows: np.ndarray, joined: np.ndarray, a: int, b: int) -> bool:
    """a – d → c → b, a and c joined, d and b not: only where arrows were known beforehand."""
    for c in np.flatnonzero(joined[a] & arrows[:, b]).tolist():
        if (marks[a] & marks[:, a] & arrows[:, c] & ~joined[:, b]).any():
            return True
    return False


_RULES: tuple[Callable[..., bool], ...] = (_no_new_collider, _no_cycle, _either_way, _by_the_way)


def extended(marks: np.ndarray) -> np.ndarray:
    """A graph of this class: its arrows [parent, child] (Dor and Tarsi, 1992).

    Where marks contradict each other, as those of tests may, arrows are turned so that no cycle is left.
    """
    n = len(marks)
    out = marks & ~marks.T
    left = np.ones(n, dtype=bool)
    here = marks.copy()
    for _ in range(n):
        sink = next((node for node in np.flatnonzero(left).tolist() if _is_sink(here, left, node)), None)
        if sink is None:  # no graph has all these arrows: the node that the fewest lead away from is taken
            leading = np.where(left, (here & ~here.T)[:, left].sum(axis=1), n + 1)
            sink = int(leading.argmin())
        near = left & (here[sink] | here[:, sink])
        out[near, sink], out[sink, near] = True, False
        left[sink] = False
        here[sink] = here[:, sink] = False
    return out


def _is_sink(marks: np.ndarray, left: np.ndarray, node: int) -> bool:
    """Whether nothing leads away from a node, and whoever is joined to it without an arrow is joined to all near it."""
    away, to = marks[node] & left, marks[:, node] & left
    if (away & ~to).any():
        return False
    joined = marks | marks.T
    near = away | to
    return all((joined[free] | ~near | (np.arange(len(marks)) == free)).all() for free in np.flatnonzero(away & to))

"""Markov equivalence classes (CPDAGs) and the structural Hamming distance.

Graphs are boolean matrices [parent, child]. A CPDAG is a matrix of marks: [a, b] if b can be the child of a, so that
both [a, b] and [b, a] are set for a reversible edge.
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

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
        Directed edges that all graphs of the class have.
    undirected : tuple of pairs
        Reversible edges: data cannot determine their direction.

    Examples
    --------
    >>> import tallybayes as tb
    >>> tb.equivalence_class([("fire", "alarm"), ("tampering", "alarm"), ("fire", "smoke")])
    4 nodes, 2 directed edges, 1 reversible edge
      fire → alarm
      tampering → alarm
      fire – smoke
    """

    nodes: tuple[Name, ...]
    directed: tuple[tuple[Name, Name], ...]
    undirected: tuple[tuple[Name, Name], ...]

    def __repr__(self) -> str:
        counts = {"node": self.nodes, "directed edge": self.directed, "reversible edge": self.undirected}
        title = ", ".join(f"{len(members)} {word}{'s' * (len(members) != 1)}" for word, members in counts.items())
        lines = [f"  {a} → {b}" for a, b in self.directed] + [f"  {a} – {b}" for a, b in self.undirected]
        return "\n".join([title, *lines[:40], *([f"  … {len(lines) - 40} more"] if len(lines) > 40 else [])])


def equivalence_class(graph: Parents) -> EquivalenceClass:
    """Compute the Markov equivalence class of a graph.

    Two graphs are Markov equivalent if they have the same skeleton and the same v-structures (Verma and Pearl, 1990).
    Then they have equal likelihoods for all data, and equal scores under BDeu, BDe, BIC and AIC.

    Parameters
    ----------
    graph : BayesianNetwork, Structure, mapping from node to its parents, list of edges, or networkx DiGraph

    Returns
    -------
    EquivalenceClass

    Examples
    --------
    >>> import tallybayes as tb
    >>> chain, reverse = [("a", "b"), ("b", "c")], [("c", "b"), ("b", "a")]
    >>> tb.structural_hamming_distance(chain, reverse)
    2
    >>> tb.structural_hamming_distance(tb.equivalence_class(chain), tb.equivalence_class(reverse))
    0
    """
    dag = Graph.read(graph)
    nodes = dag.nodes
    index = {node: k for k, node in enumerate(nodes)}
    edges = np.zeros((len(nodes), len(nodes)), dtype=bool)
    for parent, child in dag.edges:
        edges[index[parent], index[child]] = True
    marks = cpdag(edges)
    reversible = marks & marks.T
    directed = [(nodes[a], nodes[b]) for a, b in np.argwhere(marks & ~reversible).tolist()]
    undirected = [(nodes[a], nodes[b]) for a, b in np.argwhere(np.triu(reversible)).tolist()]
    return EquivalenceClass(nodes, tuple(directed), tuple(undirected))


def structural_hamming_distance(first: Parents | EquivalenceClass, second: Parents | EquivalenceClass) -> int:
    """Compute the structural Hamming distance: the number of pairs of nodes whose edges differ.

    Parameters
    ----------
    first, second : graphs, as for `equivalence_class`, or two classes
        Between graphs, a reversed edge counts as one difference. Between classes, a reversible edge of both does not
        count: use classes to compare a learned structure with the true one.

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
            "found one equivalence class and one graph; expected two of one kind.\n"
            "    Pass tb.equivalence_class(...) of both."
        )
    edges, nodes = zip(*map(_edges_by_pair, (first, second)), strict=True)
    if not nodes[0] & nodes[1]:
        raise DataError(
            f"the two graphs have no node in common: found {sorted(map(str, nodes[0]))[:4]} and "
            f"{sorted(map(str, nodes[1]))[:4]}.\n    Use the same names in both."
        )
    return sum(edges[0].get(pair) != edges[1].get(pair) for pair in edges[0].keys() | edges[1].keys())


def _edges_by_pair(graph: Parents | EquivalenceClass) -> tuple[dict[frozenset[Name], tuple[Name, ...]], set[Name]]:
    """Return the child of every adjacent pair of nodes, () for a reversible edge; and all nodes."""
    if isinstance(graph, EquivalenceClass):
        children: dict[frozenset[Name], tuple[Name, ...]] = {frozenset(edge): edge[1:] for edge in graph.directed}
        return children | {frozenset(pair): () for pair in graph.undirected}, set(graph.nodes)
    dag = Graph.read(graph)
    return {frozenset(edge): edge[1:] for edge in dag.edges}, set(dag.nodes)


def cpdag(edges: np.ndarray, oriented: np.ndarray | None = None) -> np.ndarray:
    """Return the marks of the equivalence class of a graph.

    Parameters
    ----------
    edges : bool array of shape (nodes, nodes)
        By parent and child.
    oriented : bool array of shape (nodes, nodes), optional
        Edges whose direction is fixed by constraints.
    """
    adjacent = edges | edges.T
    marks = adjacent.copy() if oriented is None else adjacent & ~(edges & oriented).T
    for child in range(len(edges)):
        for a, b in combinations(np.flatnonzero(edges[:, child]).tolist(), 2):
            if not adjacent[a, b]:
                marks[child, a] = marks[child, b] = False
    return apply_meek_rules(marks)


def apply_meek_rules(marks: np.ndarray) -> np.ndarray:
    """Apply the orientation rules of Meek (1995) until no mark changes."""
    marks = marks.copy()
    adjacent = marks | marks.T
    apart = ~adjacent & ~np.eye(len(marks), dtype=bool)
    while True:
        forced = _forced_edges(marks, adjacent, apart)
        forced &= ~(np.tril(forced) & forced.T)  # contradictory marks of tests: one of the two directions
        if not forced.any():
            return marks
        marks &= ~forced.T


def _forced_edges(marks: np.ndarray, adjacent: np.ndarray, apart: np.ndarray) -> np.ndarray:
    """Return the reversible edges a – b whose direction a → b follows from one of the four rules."""
    reversible = marks & marks.T
    directed = marks & ~marks.T
    no_new_collider = _product(directed.T, apart)  # c → a – b, c and b not adjacent
    no_cycle = _product(directed, directed)  # a → c → b
    forced = no_new_collider | no_cycle
    for b in np.flatnonzero(reversible.any(axis=0)).tolist():
        above = directed[:, b]
        middle = reversible & above
        two_paths = middle & _product(middle, apart)  # a – c → b and a – d → b, c and d not adjacent
        # a – d → c → b, a and c adjacent, d and b not; needed only with directions fixed by constraints
        fixed_path = _product(reversible & apart[b], directed) & above & adjacent
        forced[:, b] |= (two_paths | fixed_path).any(axis=1)
    return forced & reversible


def _product(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the boolean product of two matrices."""
    return first.astype(np.float32) @ second.astype(np.float32) > 0


def consistent_extension(marks: np.ndarray) -> np.ndarray:
    """Return a graph of the class, as edges [parent, child] (Dor and Tarsi, 1992).

    Marks of statistical tests may contradict each other. Then some edges are reversed, so that no cycle remains.
    """
    n = len(marks)
    edges = marks & ~marks.T
    left = np.ones(n, dtype=bool)
    current = marks.copy()
    for _ in range(n):
        sink = next((node for node in np.flatnonzero(left).tolist() if _is_sink(current, left, node)), None)
        if sink is None:  # no consistent extension: take the node with the fewest outgoing edges
            n_outgoing = np.where(left, (current & ~current.T)[:, left].sum(axis=1), n + 1)
            sink = int(n_outgoing.argmin())
        neighbors = left & (current[sink] | current[:, sink])
        edges[neighbors, sink] = True
        edges[sink, neighbors] = False
        left[sink] = False
        current[sink] = current[:, sink] = False
    return edges


def _is_sink(marks: np.ndarray, left: np.ndarray, node: int) -> bool:
    """Return whether a node has no outgoing edge, and its undirected neighbors are adjacent to all its neighbors."""
    outgoing = marks[node] & left
    incoming = marks[:, node] & left
    if (outgoing & ~incoming).any():
        return False
    adjacent = marks | marks.T
    neighbors = outgoing | incoming
    undirected = np.flatnonzero(outgoing & incoming)
    return all((adjacent[other] | ~neighbors | (np.arange(len(marks)) == other)).all() for other in undirected)

"""Adjustment sets: back-door and front-door criteria that identify a causal effect from observed nodes."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from tallybayes.errors import DataError, EstimateError, printable
from tallybayes.models.network.analysis.d_separation import format_path
from tallybayes.models.network.graph import Graph
from tallybayes.models.network.inference.query_result import format_evidence
from tallybayes.results.result import Result
from tallybayes.tally.factor import Name

_MAX_MEDIATORS = 3  # the largest front-door set searched for
_NODE = 1 << 20  # weight of a node in a cut, which outweighs all numbers of levels
_INFINITE = (1 << 31) - 1  # capacity of nodes that cannot be adjusted for, and of edges


class Identification(NamedTuple):
    """The criterion and nodes by which a causal effect is identified from observed nodes."""

    treatment: Name
    outcome: Name
    criterion: str  # "back-door", "front-door", or "none" without a directed path from treatment to outcome
    adjusted: tuple[Name, ...]  # with the front-door criterion, the mediators
    unobserved: tuple[Name, ...]

    def title(self, given: Mapping[Any, Any]) -> str:
        """Return the title of the effect as printed."""
        evidence = format_evidence(given)
        names = ", ".join(map(printable, self.adjusted))
        how = {
            "none": "no directed path",
            "front-door": f"identified by the front-door set {names}",
            "back-door": f"adjusted for {names or 'nothing'}",
        }[self.criterion]
        condition = f", given {evidence}" if evidence else ""
        return f"effect of {printable(self.treatment)} on {printable(self.outcome)}{condition}, {how}"


class IdentifiedEffect(Result):
    """Effect under intervention beside the observational one; base of the results for both kinds of treatment."""

    def __init__(
        self,
        identification: Identification,
        interventional: np.ndarray | float,
        observational: np.ndarray | float,
        given: Mapping[Any, Any],
    ) -> None:
        self.treatment, self.outcome, self.criterion, self.adjusted, self._unobserved = identification
        self.interventional: Any = interventional
        self.observational: Any = observational
        self.difference: Any = interventional - observational
        self.given = dict(given)
        self._title = identification.title(given)

    @property
    def marks(self) -> dict[str, tuple[Name, ...]]:
        """The nodes to highlight in a plot of the network, by their role."""
        word = "mediators" if self.criterion == "front-door" else "adjusted for"
        ends = {"treatment": (self.treatment,), "outcome": (self.outcome,)}
        return {**ends, word: self.adjusted, "unobserved": self._unobserved}


def identify(
    graph: Graph,
    nodes: tuple[Name, Name],
    given: Collection[Name],
    adjust: Collection[Name] | None,
    unobserved: Collection[Name],
    sizes: Mapping[Name, int],
) -> Identification:
    """Identify the causal effect of one node on another; raise EstimateError if no criterion identifies it.

    Parameters
    ----------
    graph : Graph
    nodes : (treatment, outcome)
    given : nodes conditioned on
    adjust : nodes, or None
        The adjustment set; None finds the smallest.
    unobserved : nodes that cannot be adjusted for
    sizes : mapping from node to number of levels
        Of all nodes that can be adjusted for.
    """
    treatment, outcome = nodes
    if outcome not in graph.descendants(treatment):
        return Identification(treatment, outcome, "none", (), tuple(unobserved))
    if adjust is not None:
        wrong = [node for node in adjust if node in {treatment, outcome, *unobserved, *given}]
        if wrong:
            role = "unobserved" if wrong[0] in unobserved else "given" if wrong[0] in given else "treatment or outcome"
            raise DataError(f"adjust= has {wrong[0]!r}, which is {role}; expected other nodes.")
        check_adjustment(graph, treatment, outcome, adjust, given)
        return Identification(treatment, outcome, "back-door", tuple(dict.fromkeys(adjust)), tuple(unobserved))
    excluded = [*unobserved, *(node for node in graph.nodes if node not in sizes and node not in unobserved)]
    back = smallest_adjustment(graph, treatment, outcome, given, excluded, sizes)
    if back is not None:
        return Identification(treatment, outcome, "back-door", back, tuple(unobserved))
    front = front_door_set(graph, treatment, outcome, excluded) if not given else None
    if front is None:
        raise not_identifiable(graph, treatment, outcome, given, unobserved)
    return Identification(treatment, outcome, "front-door", front, tuple(unobserved))


def smallest_adjustment(
    graph: Graph,
    treatment: Name,
    outcome: Name,
    given: Collection[Name],
    unobserved: Collection[Name],
    sizes: Mapping[Name, int],
) -> tuple[Name, ...] | None:
    """Find the smallest back-door adjustment set given `given`; ties go to the fewest combinations of levels.

    The set blocks all non-causal paths and contains no descendant of a causal path (Shpitser, VanderWeele and Robins,
    2010). It is a minimum cut of the moral graph of the ancestors (van der Zander, Liśkiewicz and Textor, 2014). Of
    several minimum cuts, the one nearest to the outcome is taken: it leaves the most variation in the treatment.
    """
    back = _without_effect(graph, treatment, outcome)
    kept = back.ancestors([treatment, outcome, *given]) - set(given)
    neighbors = Graph({node: parents for node, parents in back.parents.items() if node in {*kept, *given}}).moral()
    allowed = kept - forbidden_set(graph, treatment, outcome) - set(unobserved) - {treatment, outcome}
    nodes = [node for node in graph.nodes if node in kept]
    weights = [_NODE + round(16 * math.log2(max(sizes[n], 1))) if n in allowed else _INFINITE for n in nodes]
    index = {node: k for k, node in enumerate(nodes)}
    edges = [(index[a], index[b]) for a in nodes for b in neighbors[a] & kept]
    cut = _minimum_cut(weights, edges, index[treatment], index[outcome])
    return None if cut is None else tuple(nodes[k] for k in cut)


def check_adjustment(
    graph: Graph, treatment: Name, outcome: Name, adjust: Collection[Name], given: Collection[Name]
) -> None:
    """Raise DataError if `adjust` is not a valid back-door adjustment set."""
    wrong = [node for node in adjust if node in forbidden_set(graph, treatment, outcome)]
    if wrong:
        raise DataError(
            f"adjust= has {wrong[0]!r}, which is on or below a causal path from {treatment!r} to {outcome!r}: "
            "adjusting for it removes part of the effect.\n    Remove it; without adjust= the smallest set is found."
        )
    path = _without_effect(graph, treatment, outcome).active_path(treatment, outcome, [*adjust, *given])
    if path is not None:
        raise DataError(
            f"adjust= leaves a non-causal path open: {format_path(graph, path.nodes)}.\n"
            "    Adjust for a node on it; without adjust= the smallest set is found."
        )


def front_door_set(
    graph: Graph, treatment: Name, outcome: Name, unobserved: Collection[Name]
) -> tuple[Name, ...] | None:
    """Find the smallest set of at most three mediators that satisfies the front-door criterion (Pearl 1995)."""
    candidates = causal_path_nodes(graph, treatment, outcome) - {outcome, *unobserved}
    without_treatment = _without_outgoing_edges(graph, [treatment])
    for size in range(1, _MAX_MEDIATORS + 1):
        for mediators in combinations([node for node in graph.nodes if node in candidates], size):
            cut = _without_outgoing_edges(graph, mediators)
            if outcome in cut.descendants(treatment):
                continue  # a directed path avoids these mediators
            if without_treatment.d_separated(treatment, mediators) and cut.d_separated(mediators, outcome, treatment):
                return mediators
    return None


def not_identifiable(
    graph: Graph, treatment: Name, outcome: Name, given: Collection[Name], unobserved: Collection[Name]
) -> EstimateError:
    """Return the error for an effect that is not identifiable from observed nodes."""
    back = _without_effect(graph, treatment, outcome)
    ancestors = back.ancestors([treatment, outcome, *given])
    allowed = ancestors - forbidden_set(graph, treatment, outcome) - {treatment, outcome, *unobserved}
    path = back.active_path(treatment, outcome, allowed | set(given))
    assert path is not None
    blockers = [node for node in path.nodes if node in unobserved]
    advice = f"Observe {blockers[0]!r}, or call" if blockers else "Call"
    front_door = f", nor does a front-door set of up to {_MAX_MEDIATORS} nodes exist"
    front_door = " and given= excludes the front-door criterion" if given else front_door
    return EstimateError(
        f"the effect of {treatment!r} on {outcome!r} is not identifiable: {format_path(graph, path.nodes)} stays open "
        f"for every adjustment set of observed nodes{front_door}.\n"
        f"    {advice} query({outcome!r}, do={{{treatment!r}: ...}}), which uses the CPTs of unobserved nodes."
    )


def causal_path_nodes(graph: Graph, treatment: Name, outcome: Name) -> set[Name]:
    """Return the nodes on directed paths from treatment to outcome, without the treatment."""
    return (graph.descendants(treatment) & graph.ancestors(outcome)) - {treatment}


def forbidden_set(graph: Graph, treatment: Name, outcome: Name) -> set[Name]:
    """Return the nodes that must not be adjusted for: the treatment and all descendants of causal paths."""
    return graph.descendants(causal_path_nodes(graph, treatment, outcome)) | {treatment}


def _without_effect(graph: Graph, treatment: Name, outcome: Name) -> Graph:
    """Return the proper back-door graph: without the first edge of every causal path."""
    on_path = causal_path_nodes(graph, treatment, outcome)
    return Graph(
        {
            node: tuple(p for p in parents if p != treatment or node not in on_path)
            for node, parents in graph.parents.items()
        }
    )


def _without_outgoing_edges(graph: Graph, nodes: Collection[Name]) -> Graph:
    return Graph({node: tuple(p for p in parents if p not in nodes) for node, parents in graph.parents.items()})


def _minimum_cut(weights: Sequence[int], edges: Sequence[tuple[int, int]], source: int, sink: int) -> list[int] | None:
    """Return the minimum-weight vertex cut nearest to the sink; None if no cut has finite weight.

    By the max-flow min-cut theorem (Ford and Fulkerson 1956). Vertex k is an edge from its entry k to its exit n + k.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import breadth_first_order, maximum_flow

    n = len(weights)
    start = np.array([*range(n), *(n + a for a, _ in edges)], dtype=np.int32)  # SciPy 1.13 needs 32-bit indices
    end = np.array([*range(n, 2 * n), *(b for _, b in edges)], dtype=np.int32)
    capacities = np.array([*weights, *[_INFINITE] * len(edges)], dtype=np.int32)
    network = csr_array((capacities, (start, end)), shape=(2 * n, 2 * n))
    if sink in breadth_first_order(network == _INFINITE, n + source, return_predecessors=False):
        return None
    residual = network - maximum_flow(network, n + source, sink).flow
    reaching = set(breadth_first_order(residual.T > 0, sink, return_predecessors=False).tolist())
    return [k for k in range(n) if n + k in reaching and k not in reaching]

"""Adjustment sets: back-door and front-door criteria that identify a causal effect from observed nodes."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Mapping
from itertools import combinations
from typing import Any, NamedTuple

from tallybayes.errors import DataError, EstimateError, printable
from tallybayes.models.network.analysis.d_separation import drawn_path
from tallybayes.models.network.graph import Graph
from tallybayes.models.network.inference.query_result import title_of
from tallybayes.tally.factor import Name

_MAX_MEDIATORS = 3  # the largest front-door set searched for
_NODE = 1 << 20  # the number of nodes outweighs all numbers of levels


class Identification(NamedTuple):
    """The criterion and nodes by which a causal effect is identified from observed nodes."""

    treatment: Name
    outcome: Name
    criterion: str  # "back-door", "front-door", or "none" without a directed path from treatment to outcome
    adjusted: tuple[Name, ...]  # with the front-door criterion, the mediators
    unobserved: tuple[Name, ...]

    def title(self, given: Mapping[Any, Any]) -> str:
        """Return the title of the effect as printed."""
        known, names = title_of(given), ", ".join(map(printable, self.adjusted))
        how = {
            "none": "no directed path",
            "front-door": f"identified by the front-door set {names}",
            "back-door": f"adjusted for {names or 'nothing'}",
        }[self.criterion]
        among = f", given {known}" if known else ""
        return f"effect of {printable(self.treatment)} on {printable(self.outcome)}{among}, {how}"

    @property
    def marks(self) -> dict[str, tuple[Name, ...]]:
        """The nodes to highlight in a plot of the network, by their role."""
        word = "mediators" if self.criterion == "front-door" else "adjusted for"
        return {
            "treatment": (self.treatment,),
            "outcome": (self.outcome,),
            word: self.adjusted,
            "unobserved": self.unobserved,
        }


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
            what = (
                "unobserved" if wrong[0] in unobserved else "given" if wrong[0] in given else "the treatment or outcome"
            )
            raise DataError(f"adjust= holds {wrong[0]!r}, which is {what}; expected other nodes.")
        check_adjustment(graph, treatment, outcome, adjust, given)
        return Identification(treatment, outcome, "back-door", tuple(dict.fromkeys(adjust)), tuple(unobserved))
    left_out = [*unobserved, *(node for node in graph.nodes if node not in sizes and node not in unobserved)]
    back = smallest_adjustment(graph, treatment, outcome, given, left_out, sizes)
    if back is not None:
        return Identification(treatment, outcome, "back-door", back, tuple(unobserved))
    front = front_door_set(graph, treatment, outcome, left_out) if not given else None
    if front is None:
        raise refuse_effect(graph, treatment, outcome, given, unobserved)
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
    near = Graph({node: parents for node, parents in back.parents.items() if node in {*kept, *given}}).moral()
    free = kept - forbidden_set(graph, treatment, outcome) - set(unobserved) - {treatment, outcome}
    weight = {node: _NODE + round(16 * math.log2(max(sizes[node], 1))) if node in free else math.inf for node in kept}
    cut = _smallest_cut({node: near[node] & kept for node in kept}, weight, treatment, outcome)
    return None if cut is None else tuple(node for node in graph.nodes if node in cut)


def check_adjustment(
    graph: Graph, treatment: Name, outcome: Name, adjust: Collection[Name], given: Collection[Name]
) -> None:
    """Raise DataError if `adjust` is not a valid back-door adjustment set."""
    wrong = [node for node in adjust if node in forbidden_set(graph, treatment, outcome)]
    if wrong:
        raise DataError(
            f"adjust= holds {wrong[0]!r}, which lies on or below a causal path from {treatment!r} to {outcome!r}: "
            "adjusting for it removes part of the effect.\n    Remove it; without adjust= the smallest set is found."
        )
    path = _without_effect(graph, treatment, outcome).active_path(treatment, outcome, [*adjust, *given])
    if path is not None:
        raise DataError(
            f"adjust= leaves a non-causal path open: {drawn_path(graph, path.nodes)}.\n"
            "    Adjust for a node on it; without adjust= the smallest set is found."
        )


def front_door_set(
    graph: Graph, treatment: Name, outcome: Name, unobserved: Collection[Name]
) -> tuple[Name, ...] | None:
    """Find the smallest set of at most three mediators that satisfies the front-door criterion (Pearl 1995)."""
    way = [
        node
        for node in graph.nodes
        if node in causal_path_nodes(graph, treatment, outcome) and node not in {outcome, *unobserved}
    ]
    for size in range(1, _MAX_MEDIATORS + 1):
        for some in combinations(way, size):
            cut = _without_arrows_from(graph, some)
            if outcome in cut.descendants(treatment):
                continue  # a directed path avoids these mediators
            if _without_arrows_from(graph, [treatment]).d_separated(treatment, some) and cut.d_separated(
                some, outcome, treatment
            ):
                return some
    return None


def refuse_effect(
    graph: Graph, treatment: Name, outcome: Name, given: Collection[Name], unobserved: Collection[Name]
) -> EstimateError:
    """Return the error for an effect that is not identifiable from observed nodes."""
    back = _without_effect(graph, treatment, outcome)
    free = (
        back.ancestors([treatment, outcome, *given])
        - forbidden_set(graph, treatment, outcome)
        - {treatment, outcome, *unobserved}
    )
    path = back.active_path(treatment, outcome, free | set(given))
    assert path is not None
    lost = [node for node in path.nodes if node in unobserved]
    seen = f"Observe {lost[0]!r}, or call" if lost else "Call"
    door = (
        " and given= excludes the front-door criterion"
        if given
        else f", nor does a front-door set of up to {_MAX_MEDIATORS} nodes exist"
    )
    return EstimateError(
        f"the effect of {treatment!r} on {outcome!r} is not identifiable: {drawn_path(graph, path.nodes)} stays open "
        f"for every adjustment set of observed nodes{door}.\n"
        f"    {seen} query({outcome!r}, do={{{treatment!r}: ...}}), which trusts the tables of unobserved nodes."
    )


def causal_path_nodes(graph: Graph, treatment: Name, outcome: Name) -> set[Name]:
    """Return the nodes on directed paths from treatment to outcome, without the treatment."""
    return (graph.descendants(treatment) & graph.ancestors(outcome)) - {treatment}


def forbidden_set(graph: Graph, treatment: Name, outcome: Name) -> set[Name]:
    """Return the nodes that must not be adjusted for: the treatment and all descendants of causal paths."""
    return graph.descendants(causal_path_nodes(graph, treatment, outcome)) | {treatment}


def _without_effect(graph: Graph, treatment: Name, outcome: Name) -> Graph:
    """Return the proper back-door graph: without the first edge of every causal path."""
    way = causal_path_nodes(graph, treatment, outcome)
    return Graph(
        {
            node: tuple(p for p in parents if p != treatment or node not in way)
            for node, parents in graph.parents.items()
        }
    )


def _without_arrows_from(graph: Graph, nodes: Collection[Name]) -> Graph:
    return Graph({node: tuple(p for p in parents if p not in nodes) for node, parents in graph.parents.items()})


_End = tuple[Name, bool]  # a node's entry, or (True) its exit


def _smallest_cut(
    near: Mapping[Name, set[Name]], weight: Mapping[Name, float], source: Name, sink: Name
) -> set[Name] | None:
    """Find the minimum-weight vertex cut nearest to the sink; None if no cut has finite weight.

    Shortest augmenting paths (Edmonds and Karp 1972); a vertex is an edge from its entry to its exit.
    """
    room = _capacities(near, weight)
    start, end = (source, True), (sink, False)
    while steps := _shortest_path(room, start, end):
        least = min(room[a][b] for a, b in steps)
        if math.isinf(least):
            return None
        for a, b in steps:
            room[a][b] -= least
            room[b][a] += least
    reaches, ends = {end}, [end]  # what flow could still come from
    for there in ends:  # it grows on the way
        for here in room[there]:
            if here not in reaches and room[here][there] > 0:
                reaches.add(here)
                ends.append(here)
    return {node for node in near if (node, True) in reaches and (node, False) not in reaches}


def _capacities(near: Mapping[Name, set[Name]], weight: Mapping[Name, float]) -> dict[_End, dict[_End, float]]:
    """What every edge can carry: through a node its weight, between nodes any amount, backwards nothing yet."""
    room: dict[_End, dict[_End, float]] = {(node, out): {} for node in near for out in (False, True)}
    for node, others in near.items():
        room[node, False][node, True] = weight[node]
        room[node, True].setdefault((node, False), 0.0)
        for other in others:
            room[node, True][other, False] = math.inf
            room[other, False].setdefault((node, True), 0.0)
    return room


def _shortest_path(room: Mapping[_End, Mapping[_End, float]], start: _End, end: _End) -> list[tuple[_End, _End]]:
    """The edges, last first, of a shortest path that can carry more, by breadth-first search; [] where none can."""
    before: dict[_End, _End] = {}
    waiting = deque([start])
    while waiting and end not in before:
        here = waiting.popleft()
        for there, left in room[here].items():
            if left > 0 and there not in before and there != start:
                before[there] = here
                waiting.append(there)
    steps, here = [], end
    while here in before:
        steps.append((before[here], here))
        here = before[here]
    return steps

"""What to adjust for: sets of nodes by which the effect of one node on another follows from what is observed."""

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

_MOST_CARRIERS = 3  # nodes that carry an effect are looked for in sets up to this size
_NODE = 1 << 20  # one node less counts more than all levels of the others


class Identification(NamedTuple):
    """How an effect follows from what is observed: which node's on which, and by which others."""

    of: Name
    on: Name
    criterion: str  # "back-door", "front-door", or "none" where no arrows lead from one to the other
    adjusted: tuple[Name, ...]  # of a front door, the nodes that carry it
    hidden: tuple[Name, ...]

    def title(self, given: Mapping[Any, Any]) -> str:
        """The effect in words."""
        known, names = title_of(given), ", ".join(map(printable, self.adjusted))
        how = {
            "none": "no arrows lead there",
            "front-door": f"carried by {names} (front door)",
            "back-door": f"adjusted for {names or 'nothing'}",
        }[self.criterion]
        return f"effect of {printable(self.of)} on {printable(self.on)}{', given ' + known if known else ''}, {how}"

    @property
    def marks(self) -> dict[str, tuple[Name, ...]]:
        """What a picture of the network shows of it."""
        word = "carries the effect" if self.criterion == "front-door" else "adjusted for"
        return {"of": (self.of,), "on": (self.on,), word: self.adjusted, "hidden": self.hidden}


def identify(
    graph: Graph,
    nodes: tuple[Name, Name],
    given: Collection[Name],
    adjust: Collection[Name] | None,
    hidden: Collection[Name],
    sizes: Mapping[Name, int],
) -> Identification:
    """How the effect of one node on another follows from what is observed; refused where it does not.

    Parameters
    ----------
    graph : Graph
    nodes : the two
    given : nodes that are held
    adjust : nodes, or None
        What to adjust for, in place of the smallest set.
    hidden : nodes that nobody observes
    sizes : mapping from node to how many levels it has
        Of all nodes that can be adjusted for.
    """
    of, on = nodes
    if on not in graph.descendants(of):
        return Identification(of, on, "none", (), tuple(hidden))
    if adjust is not None:
        wrong = [node for node in adjust if node in {of, on, *hidden, *given}]
        if wrong:
            what = "hidden" if wrong[0] in hidden else "given" if wrong[0] in given else "asked about"
            raise DataError(f"adjust= holds {wrong[0]!r}, which is {what}; expected other nodes.")
        check_adjustment(graph, of, on, adjust, given)
        return Identification(of, on, "back-door", tuple(dict.fromkeys(adjust)), tuple(hidden))
    left_out = [*hidden, *(node for node in graph.nodes if node not in sizes and node not in hidden)]
    back = smallest_adjustment(graph, of, on, given, left_out, sizes)
    if back is not None:
        return Identification(of, on, "back-door", back, tuple(hidden))
    front = front_door_set(graph, of, on, left_out) if not given else None
    if front is None:
        raise refuse_effect(graph, of, on, given, hidden)
    return Identification(of, on, "front-door", front, tuple(hidden))


def smallest_adjustment(
    graph: Graph, of: Name, on: Name, given: Collection[Name], hidden: Collection[Name], sizes: Mapping[Name, int]
) -> tuple[Name, ...] | None:
    """The fewest nodes to adjust for, with `given` held; of equally many, those with fewest combinations of levels.

    They block all paths between the two but those that lead from cause to effect, and none of them is itself changed on
    that way (Shpitser, VanderWeele and Robins, 2010): a smallest cut of the moral graph of ancestors (van der Zander,
    Liśkiewicz and Textor, 2014). Of several, that nearest to the effect is taken: it leaves most to vary in the cause.
    """
    back = _without_effect(graph, of, on)
    kept = back.ancestors([of, on, *given]) - set(given)
    near = Graph({node: parents for node, parents in back.parents.items() if node in {*kept, *given}}).moral()
    free = kept - forbidden_set(graph, of, on) - set(hidden) - {of, on}
    weight = {node: _NODE + round(16 * math.log2(max(sizes[node], 1))) if node in free else math.inf for node in kept}
    cut = _smallest_cut({node: near[node] & kept for node in kept}, weight, of, on)
    return None if cut is None else tuple(node for node in graph.nodes if node in cut)


def check_adjustment(graph: Graph, of: Name, on: Name, adjust: Collection[Name], given: Collection[Name]) -> None:
    """Refuse to adjust for nodes by which an effect does not follow."""
    wrong = [node for node in adjust if node in forbidden_set(graph, of, on)]
    if wrong:
        raise DataError(
            f"adjust= holds {wrong[0]!r}, which {of!r} changes on the way to {on!r}: to adjust for it takes part of "
            "the effect away.\n    Leave it out; without adjust= the smallest set is found."
        )
    path = _without_effect(graph, of, on).active_path(of, on, [*adjust, *given])
    if path is not None:
        raise DataError(
            f"adjust= leaves a path open that is no effect: {drawn_path(graph, path.nodes)}.\n"
            "    Adjust for a node on it; without adjust= the smallest set is found."
        )


def front_door_set(graph: Graph, of: Name, on: Name, hidden: Collection[Name]) -> tuple[Name, ...] | None:
    """The fewest nodes that carry all of an effect and can be told from both ends (Pearl's front door), up to three."""
    way = [node for node in graph.nodes if node in causal_path_nodes(graph, of, on) and node not in {on, *hidden}]
    for size in range(1, _MOST_CARRIERS + 1):
        for some in combinations(way, size):
            cut = _without_arrows_from(graph, some)
            if on in cut.descendants(of):
                continue  # some of the effect goes another way
            if _without_arrows_from(graph, [of]).separated(of, some) and cut.separated(some, on, of):
                return some
    return None


def refuse_effect(graph: Graph, of: Name, on: Name, given: Collection[Name], hidden: Collection[Name]) -> EstimateError:
    """Say why an effect does not follow from what is observed."""
    back = _without_effect(graph, of, on)
    free = back.ancestors([of, on, *given]) - forbidden_set(graph, of, on) - {of, on, *hidden}
    path = back.active_path(of, on, free | set(given))
    assert path is not None
    lost = [node for node in path.nodes if node in hidden]
    seen = f"Observe {lost[0]!r}, or ask" if lost else "Ask"
    door = (
        " and given= leaves no front door"
        if given
        else f", nor do up to {_MOST_CARRIERS} observed nodes carry all of it"
    )
    return EstimateError(
        f"the effect of {of!r} on {on!r} does not follow from what is observed: {drawn_path(graph, path.nodes)} stays "
        f"open, whatever observed nodes are adjusted for{door}.\n"
        f"    {seen} query({on!r}, do={{{of!r}: ...}}), which takes the tables of hidden nodes for true."
    )


def causal_path_nodes(graph: Graph, of: Name, on: Name) -> set[Name]:
    """The nodes on the ways along arrows from one node to another, without the first."""
    return (graph.descendants(of) & graph.ancestors(on)) - {of}


def forbidden_set(graph: Graph, of: Name, on: Name) -> set[Name]:
    """What may not be adjusted for: the cause, the ways from it to the effect, and all that depends on these."""
    return graph.descendants(causal_path_nodes(graph, of, on)) | {of}


def _without_effect(graph: Graph, of: Name, on: Name) -> Graph:
    """The graph without the arrows by which the cause sets out to the effect."""
    way = causal_path_nodes(graph, of, on)
    return Graph(
        {node: tuple(p for p in parents if p != of or node not in way) for node, parents in graph.parents.items()}
    )


def _without_arrows_from(graph: Graph, nodes: Collection[Name]) -> Graph:
    return Graph({node: tuple(p for p in parents if p not in nodes) for node, parents in graph.parents.items()})


def _smallest_cut(
    near: Mapping[Name, set[Name]], weight: Mapping[Name, float], source: Name, sink: Name
) -> set[Name] | None:
    """The lightest nodes without which two others are not joined, nearest to the second; None where there are none.

    By augmenting paths (Ford and Fulkerson), the shortest first; a node is an edge from its entry to its exit.
    """
    room: dict[tuple[Name, bool], dict[tuple[Name, bool], float]] = {
        (n, out): {} for n in near for out in (False, True)
    }
    for node, others in near.items():
        room[node, False][node, True] = weight[node]
        room[node, True].setdefault((node, False), 0.0)
        for other in others:
            room[node, True][other, False] = math.inf
            room[other, False].setdefault((node, True), 0.0)
    start, end = (source, True), (sink, False)
    while True:
        before: dict[tuple[Name, bool], tuple[Name, bool]] = {}
        waiting = deque([start])
        while waiting and end not in before:
            here = waiting.popleft()
            for there, left in room[here].items():
                if left > 0 and there not in before and there != start:
                    before[there] = here
                    waiting.append(there)
        if end not in before:
            break
        steps, here = [], end
        while here != start:
            steps.append((before[here], here))
            here = before[here]
        least = min(room[a][b] for a, b in steps)
        if math.isinf(least):
            return None
        for a, b in steps:
            room[a][b] -= least
            room[b][a] += least
    reaches, ends = {end}, [end]
    for there in ends:  # it grows on the way
        for here in room[there]:
            if here not in reaches and room[here][there] > 0:
                reaches.add(here)
                ends.append(here)
    return {node for node in near if (node, True) in reaches and (node, False) not in reaches}

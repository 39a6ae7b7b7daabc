"""Triangulation: cliques that hold every factor of a network, and the tree that joins them."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence
from itertools import combinations

_EXACT_DEGREE = 64  # the fill of nodes with more neighbours is only counted anew when they come up


def find_cliques(
    sizes: Sequence[int], scopes: Iterable[Sequence[int]], most: float = math.inf, last: Iterable[int] = ()
) -> tuple[list[frozenset[int]], list[int]]:
    """Cliques such that every scope lies in one, and for each the clique it hangs on, −1 for a root.

    The variables are taken out one by one, each joining its neighbours: that which joins the fewest new pairs first, or
    that with the smallest clique first, whichever ends in fewer cells. Finding the best order is hard; these two come
    close.

    Parameters
    ----------
    sizes : sequence of int
        How many levels every variable has.
    scopes : iterable of sequences of int
        Variables that must be together.
    most : float, default inf
        The most cells a clique may have; one that has more is returned alone.
    last : iterable of int, optional
        Variables that are taken out after all others: every clique with any of the others hangs below theirs.

    Returns
    -------
    cliques : list of frozenset
        None lies in another. The variables a clique shares with any other are all in those on the way between the two.
    above : list of int

    Examples
    --------
    A square of four variables needs one diagonal:

    >>> from tallybayes.inference.triangulate import find_cliques
    >>> cliques, above = find_cliques([2, 2, 2, 2], [(0, 1), (1, 2), (2, 3), (3, 0)])
    >>> sorted(sorted(clique) for clique in cliques), sorted(above)
    ([[0, 1, 3], [1, 2, 3]], [-1, 1])
    """
    graph: list[set[int]] = [set() for _ in sizes]
    for scope in scopes:
        if n_cells(set(scope), sizes) > most:
            return [frozenset(scope)], [-1]
        for first, second in combinations(set(scope), 2):
            graph[first].add(second)
            graph[second].add(first)
    late = frozenset(last)
    tried = [_eliminate([set(near) for near in graph], sizes, by_fill, most, late) for by_fill in (True, False)]
    best = min(tried, key=lambda cliques: sum(n_cells(clique, sizes) for _, clique in cliques))
    too_large = best[-1][1] if best and n_cells(best[-1][1], sizes) > most else None
    return _join(best) if too_large is None else ([too_large], [-1])


def n_cells(clique: Iterable[int], sizes: Sequence[int]) -> int:
    """The number of combinations of levels; a whole number of any size."""
    return math.prod(sizes[variable] for variable in clique)


def _eliminate(
    near: list[set[int]], sizes: Sequence[int], by_fill: bool, most: float, late: frozenset[int]
) -> list[tuple[int, frozenset[int]]]:
    """Every variable in turn, with itself and its neighbours of that time; up to one with more cells than allowed."""

    def cost(variable: int) -> tuple[bool, float, float, int]:
        around = near[variable]
        weight = math.log(max(sizes[variable], 1)) + sum(math.log(max(sizes[other], 1)) for other in around)
        if not by_fill:
            return variable in late, weight, 0.0, variable
        joined = sum(len(near[other] & around) for other in around) // 2
        return variable in late, len(around) * (len(around) - 1) / 2 - joined, weight, variable

    current = [cost(variable) for variable in range(len(near))]
    heap = list(current)
    heapq.heapify(heap)
    stale, gone = [False] * len(near), [False] * len(near)
    found: list[tuple[int, frozenset[int]]] = []
    while heap:
        taken = heapq.heappop(heap)
        variable = taken[-1]
        if gone[variable] or taken != current[variable]:
            continue
        if stale[variable]:
            stale[variable], current[variable] = False, cost(variable)
            heapq.heappush(heap, current[variable])
            continue
        around = near[variable]
        found.append((variable, frozenset((variable, *around))))
        if n_cells(found[-1][1], sizes) > most:
            break
        gone[variable] = True
        changed = set(around)
        for other in around:
            near[other].discard(variable)
        for first, second in combinations(around, 2):
            if second not in near[first]:
                near[first].add(second)
                near[second].add(first)
                changed |= near[first] & near[second]
        for other in changed:
            if len(near[other]) > _EXACT_DEGREE:
                stale[other] = True
            else:
                current[other] = cost(other)
                heapq.heappush(heap, current[other])
    return found


def _join(eliminated: list[tuple[int, frozenset[int]]]) -> tuple[list[frozenset[int]], list[int]]:
    """The tree of elimination cliques, without those that lie in another."""
    when = {variable: place for place, (variable, _) in enumerate(eliminated)}
    cliques = [clique for _, clique in eliminated]
    above = [min((when[other] for other in clique if other != variable), default=-1) for variable, clique in eliminated]
    stands = list(range(len(cliques)))  # the clique that stands for this one
    hangs: dict[int, int] = {}
    for place, up in enumerate(above):  # what hangs on a clique comes before it
        mine = stands[place]
        if up >= 0 and stands[up] == up and cliques[up] <= cliques[mine]:
            stands[up] = mine
        else:
            hangs[mine] = up
    kept = {mine: number for number, mine in enumerate(hangs)}
    return [cliques[mine] for mine in kept], [kept[stands[up]] if up >= 0 else -1 for up in hangs.values()]

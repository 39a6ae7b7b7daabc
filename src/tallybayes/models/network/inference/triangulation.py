"""Triangulation: cliques that hold every factor of a network, and the tree that joins them."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

_FEW_CELLS = 1 << 14  # of all cliques: no search for fewer
_TRIES = 8  # with ties that are broken by chance
_MOST_WORK = 1 << 24  # neighbors looked at, and pairs of them, before the search for a better order ends
_EXACT_DEGREE = 64  # the fill of nodes with more neighbors is only counted anew when they come up


def find_cliques(
    sizes: Sequence[int], scopes: Iterable[Sequence[int]], most: float = math.inf, last: Iterable[int] = ()
) -> tuple[list[frozenset[int]], list[int]]:
    """Cliques such that every scope lies in one, and for each the clique it hangs on, −1 for a root.

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

    >>> from tallybayes.models.network.inference.triangulation import find_cliques
    >>> cliques, above = find_cliques([2, 2, 2, 2], [(0, 1), (1, 2), (2, 3), (3, 0)])
    >>> sorted(sorted(clique) for clique in cliques), sorted(above)
    ([[0, 1, 3], [1, 2, 3]], [-1, 1])
    """
    together = list(scopes)
    for scope in together:
        if n_cells(set(scope), sizes) > most:
            return [frozenset(scope)], [-1]
    best = _best_elimination(_graph(sizes, together), sizes, most, frozenset(last))
    too_large = best[-1][1] if best and n_cells(best[-1][1], sizes) > most else None
    return _join(best) if too_large is None else ([too_large], [-1])


def find_order(sizes: Sequence[int], scopes: Iterable[Sequence[int]], most: float = math.inf) -> list[int]:
    """The order of the variables in which the cliques of `find_cliques` arise, those beyond `most` last.

    Examples
    --------
    The middle of a star is not the first to go:

    >>> from tallybayes.models.network.inference.triangulation import find_order
    >>> find_order([2, 2, 2], [(0, 1), (0, 2)])
    [1, 0, 2]
    """
    found = [variable for variable, _ in _best_elimination(_graph(sizes, scopes), sizes, most, frozenset())]
    return found + sorted(set(range(len(sizes))).difference(found))


def _graph(sizes: Sequence[int], scopes: Iterable[Sequence[int]]) -> list[set[int]]:
    """Who is together with whom."""
    graph: list[set[int]] = [set() for _ in sizes]
    for scope in scopes:
        for first, second in combinations(set(scope), 2):
            graph[first].add(second)
            graph[second].add(first)
    return graph


def n_cells(clique: Iterable[int], sizes: Sequence[int]) -> int:
    """The number of combinations of levels; a whole number of any size."""
    return math.prod(sizes[variable] for variable in clique)


class _Rule(NamedTuple):
    """Which variable goes next: that with the least fill or the smallest clique, or the latter beside those gone."""

    name: str  # "fill", "fill of cells", "clique" or "sweep"
    ranks: Sequence[int] | None = None  # of the variables, to break ties by in place of the sizes of cliques
    start: int = -1  # of a sweep


def _best_elimination(
    graph: list[set[int]], sizes: Sequence[int], most: float, late: frozenset[int]
) -> list[tuple[int, frozenset[int]]]:
    """The elimination with the fewest cells that some rules find; finding the best is hard.

    Two rules do where they need few cells. If not, others race them: the edges that are new by their cells, sweeps from
    end to end (best where a network is a grid), and ties that are broken by chance, from a fixed seed and as long as
    the work is bounded. Each is given up as soon as it needs more than the best.
    """
    best: list[tuple[int, frozenset[int]]] = []
    fewest, work = math.inf, 0
    for number, rule in enumerate(_rules(graph)):
        if number > 1 and (fewest <= _FEW_CELLS or work > _MOST_WORK):
            break
        enough = fewest if number > 1 else math.inf
        found, spent = _eliminate([set(near) for near in graph], sizes, rule, most, late, enough)
        work += spent
        whole = len(found) == len(graph) and not (found and n_cells(found[-1][1], sizes) > most)
        cells = sum(n_cells(clique, sizes) for clique in _join(found)[0]) if whole else math.inf
        if cells < fewest or not best:
            best, fewest = found, cells
    return best


def _rules(graph: list[set[int]]) -> Iterator[_Rule]:
    """The rules that race, those that always do first."""
    yield _Rule("fill")
    yield _Rule("clique")
    yield _Rule("fill of cells")
    starts: list[int] = []
    for _ in range(3):
        starts.append(_farthest(graph, starts[-1] if starts else 0))
    for start in dict.fromkeys(starts):
        yield _Rule("sweep", None, start)
    rng = np.random.default_rng(0)
    for _ in range(_TRIES):
        yield _Rule("fill", rng.permutation(len(graph)).tolist())


def _farthest(graph: list[set[int]], start: int) -> int:
    """The variable with fewest neighbors among those farthest away."""
    seen, layer = {start}, [start]
    while True:
        beyond = sorted({other for variable in layer for other in graph[variable]} - seen)
        if not beyond:
            return min(layer, key=lambda variable: (len(graph[variable]), variable))
        seen.update(beyond)
        layer = beyond


def _eliminate(
    near: list[set[int]], sizes: Sequence[int], rule: _Rule, most: float, late: frozenset[int], fewest: float
) -> tuple[list[tuple[int, frozenset[int]]], int]:
    """Every variable in turn, with itself and its neighbors of that time, and the work it took.

    It ends at a clique with more cells than allowed, and where there are more cells than the fewest so far.
    """
    logs = [math.log(max(size, 1)) for size in sizes]
    entered, work, total = {rule.start: 0}, 0, 0.0

    def cost(variable: int) -> tuple[bool, float, float, int, int]:
        nonlocal work
        around = near[variable]
        weight = logs[variable] + sum(logs[other] for other in around)
        work += len(around)
        if rule.name == "clique":
            return variable in late, weight, 0.0, 0, variable
        if rule.name == "sweep":
            return variable in late, float(variable not in entered), weight, entered.get(variable, 0), variable
        work += len(around) ** 2
        tie = (weight, 0) if rule.ranks is None else (0.0, rule.ranks[variable])
        return variable in late, _fill(near, around, sizes if rule.name == "fill of cells" else None), *tie, variable

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
        cells = n_cells(found[-1][1], sizes)
        total += cells
        if cells > most or total > fewest:
            break
        gone[variable] = True
        for other in sorted(around):
            near[other].discard(variable)
            entered.setdefault(other, len(entered))
        fill_in = _join_neighbors(near, around)
        if rule.name in ("fill", "fill of cells"):
            around = around.union(*(near[first] & near[second] for first, second in fill_in))
        for other in around:
            if len(near[other]) > _EXACT_DEGREE:
                stale[other] = True
            else:
                current[other] = cost(other)
                heapq.heappush(heap, current[other])
    return found, work


def _fill(near: list[set[int]], around: set[int], sizes: Sequence[int] | None) -> float:
    """The edges that are missing among the neighbors of a variable: their number or, with sizes, their cells."""
    if sizes is None:
        return len(around) * (len(around) - 1) / 2 - sum(len(near[other] & around) for other in around) // 2
    return sum(sizes[one] * sum(sizes[other] for other in around - near[one] - {one}) for one in around) / 2


def _join_neighbors(near: list[set[int]], around: set[int]) -> list[tuple[int, int]]:
    """Join the neighbors of an eliminated variable pairwise; return the edges that are new, its fill-in."""
    fill_in = [(first, second) for first, second in combinations(around, 2) if second not in near[first]]
    for first, second in fill_in:
        near[first].add(second)
        near[second].add(first)
    return fill_in


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

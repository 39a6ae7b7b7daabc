"""Triangulation: elimination orders of the variables of a network, and their cliques.

Variables are eliminated one by one: the neighbors of each are joined, and it forms a clique with them (Koller and
Friedman, ch. 9). The order decides the sizes of the cliques. An optimal order is NP-hard to find, so that several
greedy orders are compared.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from tallybayes._utils.memory import available_memory
from tallybayes.errors import TooLargeError

_FEW_CELLS = 1 << 14  # total size of cliques that is small enough
_N_RANDOM_ORDERS = 8  # orders with random factors
_NOISE = 0.2  # standard deviation of their logarithms
_MAX_WORK = 1 << 24  # visited neighbors and pairs of them after which no other order is tried
_MAX_AXES = 60  # variables of a clique: NumPy arrays have at most 64 axes
_EXACT_DEGREE = 64  # the cost of variables with more neighbors is updated only when they are next

Elimination = list[tuple[int, frozenset[int]]]  # every variable and its clique, in the order of elimination


def eliminate(
    sizes: Sequence[int], scopes: Iterable[Sequence[int]], max_cells: float = math.inf, last: Iterable[int] = ()
) -> Elimination:
    """Return an elimination of all variables: each with its clique, in order.

    Parameters
    ----------
    sizes : sequence of int
        The number of levels of every variable.
    scopes : iterable of sequences of int
        Variables that share a clique.
    max_cells : float, default inf
        Maximum size of a clique; the elimination ends with a larger one.
    last : iterable of int, optional
        Variables that are eliminated after all others.

    Examples
    --------
    A square of four variables needs one diagonal:

    >>> from tallybayes.models.network.inference.triangulation import eliminate
    >>> [sorted(clique) for _, clique in eliminate([2, 2, 2, 2], [(0, 1), (1, 2), (2, 3), (3, 0)])]
    [[0, 1, 3], [1, 2, 3], [2, 3], [3]]
    """
    scopes = list(scopes)
    for scope in scopes:
        if n_cells(set(scope), sizes) > max_cells:
            return [(scope[0], frozenset(scope))]
    return _best_elimination(_graph(sizes, scopes), sizes, max_cells, frozenset(last))


def find_order(
    sizes: Sequence[int],
    scopes: Iterable[Sequence[int]],
    names: Sequence[Any] | None = None,
    last: Iterable[int] = (),
) -> list[int]:
    """Return an elimination order; with `names` of the variables, raise TooLargeError if it needs too much memory.

    Otherwise the variables after a clique that does not fit into memory come last.

    Examples
    --------
    The center of a star is not eliminated first:

    >>> from tallybayes.models.network.inference.triangulation import find_order
    >>> find_order([2, 2, 2], [(0, 1), (0, 2)])
    [1, 0, 2]
    """
    available = available_memory()
    elimination = eliminate(sizes, scopes, available / 8, last)
    if names is not None:
        cells = {clique: n_cells(clique, sizes) for _, clique in elimination}
        largest = max(cells, key=lambda clique: (cells[clique], len(clique)), default=frozenset[int]())
        needed = 16 * sum(cells.values())  # the tables, and the messages
        if needed > available or len(largest) > _MAX_AXES:
            by_size = sorted(largest, key=lambda variable: (-sizes[variable], variable))
            raise TooLargeError.cliques(needed, available, cells[largest], [names[variable] for variable in by_size])
    order = [variable for variable, _ in elimination]
    return order + sorted(set(range(len(sizes))).difference(order))


def _graph(sizes: Sequence[int], scopes: Iterable[Sequence[int]]) -> list[set[int]]:
    """Return the neighbors of every variable: those that share a scope with it."""
    graph: list[set[int]] = [set() for _ in sizes]
    for scope in scopes:
        _join(graph, set(scope))
    return graph


def n_cells(clique: Iterable[int], sizes: Sequence[int]) -> int:
    """Return the number of combinations of levels."""
    return math.prod(sizes[variable] for variable in clique)


class _Rule(NamedTuple):
    """Greedy rule for the next variable: the least fill-in, or a sweep from a first variable along its neighbors.

    The fill-in is weighted by cells, and multiplied by ``factors``, one for each variable.
    """

    factors: Sequence[float] = ()
    start: int = -1


def _best_elimination(
    graph: list[set[int]], sizes: Sequence[int], max_cells: float, late: frozenset[int]
) -> Elimination:
    """Return the elimination with the fewest cells of several greedy rules.

    The least fill-in suffices if it needs few cells. Otherwise others are tried: sweeps from end to end (best for
    grids), and the least fill-in with random factors, from a fixed seed and with bounded work. Each is stopped when it
    needs more cells than the best.
    """
    best: Elimination = []
    fewest = math.inf
    work = 0
    for rule in _rules(graph):
        eliminated, spent = _eliminate([set(neighbors) for neighbors in graph], sizes, rule, max_cells, late, fewest)
        work += spent
        is_complete = len(eliminated) == len(graph) and all(n_cells(c, sizes) <= max_cells for _, c in eliminated[-1:])
        cells = sum(n_cells(clique, sizes) for _, clique in eliminated) if is_complete else math.inf
        if cells < fewest or not best:
            best, fewest = eliminated, cells
        if fewest <= _FEW_CELLS or work > _MAX_WORK:
            break
    return best


def _rules(graph: list[set[int]]) -> Iterator[_Rule]:
    """Yield the rules to try in order."""
    yield _Rule([1.0] * len(graph))
    starts: list[int] = []
    for _ in range(3):
        starts.append(_farthest(graph, starts[-1] if starts else 0))
    for start in dict.fromkeys(starts):
        yield _Rule(start=start)
    rng = np.random.default_rng(0)
    for _ in range(_N_RANDOM_ORDERS):
        yield _Rule(np.exp(_NOISE * rng.standard_normal(len(graph))).tolist())


def _farthest(graph: list[set[int]], start: int) -> int:
    """Return the variable with the fewest neighbors among those farthest from `start`."""
    seen, layer = {start}, [start]
    while True:
        beyond = sorted({other for variable in layer for other in graph[variable]} - seen)
        if not beyond:
            return min(layer, key=lambda variable: (len(graph[variable]), variable))
        seen.update(beyond)
        layer = beyond


def _eliminate(
    near: list[set[int]], sizes: Sequence[int], rule: _Rule, max_cells: float, late: frozenset[int], limit: float
) -> tuple[Elimination, int]:
    """Eliminate all variables by a rule; return the elimination and its work.

    It stops at a clique with more than `max_cells` cells, or when all cliques have more than `limit` cells.
    """
    logs = [math.log(max(size, 1)) for size in sizes]
    entered = {rule.start: 0}  # the variables next to eliminated ones, in order
    work = 0
    total = 0.0

    def cost(variable: int) -> tuple[bool, float, float, int, int]:
        nonlocal work
        around = near[variable]
        weight = logs[variable] + sum(logs[other] for other in around)
        if not rule.factors:
            work += len(around)
            return variable in late, float(variable not in entered), weight, entered.get(variable, 0), variable
        work += len(around) ** 2
        return variable in late, rule.factors[variable] * _fill_in(near, around, sizes), weight, 0, variable

    current = [cost(variable) for variable in range(len(near))]
    queue = list(current)
    heapq.heapify(queue)
    stale = [False] * len(near)
    is_eliminated = [False] * len(near)
    eliminated: Elimination = []
    while queue:
        lowest = heapq.heappop(queue)
        variable = lowest[-1]
        if is_eliminated[variable] or lowest != current[variable]:
            continue
        if stale[variable]:
            stale[variable] = False
            current[variable] = cost(variable)
            heapq.heappush(queue, current[variable])
            continue
        around = near[variable]
        eliminated.append((variable, frozenset((variable, *around))))
        cells = n_cells(eliminated[-1][1], sizes)
        total += cells
        if cells > max_cells or total > limit:
            break
        is_eliminated[variable] = True
        for other in sorted(around):
            near[other].discard(variable)
            entered.setdefault(other, len(entered))
        new_edges = _join(near, around)
        if rule.factors:
            around = around.union(*(near[first] & near[second] for first, second in new_edges))
        for other in around:
            if len(near[other]) > _EXACT_DEGREE:
                stale[other] = True
            else:
                current[other] = cost(other)
                heapq.heappush(queue, current[other])
    return eliminated, work


def _fill_in(near: list[set[int]], around: set[int], sizes: Sequence[int]) -> float:
    """Return the fill-in of a variable: the cells of the missing edges among its neighbors."""
    return sum(sizes[one] * sum(sizes[other] for other in around - near[one] - {one}) for one in around) / 2


def _join(near: list[set[int]], variables: set[int]) -> list[tuple[int, int]]:
    """Join variables pairwise; return the new edges."""
    new_edges = [(first, second) for first, second in combinations(variables, 2) if second not in near[first]]
    for first, second in new_edges:
        near[first].add(second)
        near[second].add(first)
    return new_edges

"""Where the boxes and arrows of a directed graph go: in layers, parents above their children (Sugiyama's way)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

Edge = tuple[Any, Any]
Point = tuple[float, float]

_BESIDE = 16.0  # between boxes, in points like all lengths here
_BELOW = 26.0  # between layers, at least
_PASSING = 9.0  # between a box and an arrow that passes it
_SWEEPS = 12


class Layout(NamedTuple):
    """A drawing of a graph, in points from the upper left corner; y counts downwards.

    Attributes
    ----------
    centers : dict from node to (x, y)
    routes : dict from (parent, child) to points
        From the parent's lower edge to the child's upper one. Every second stretch, beginning with the first, is
        vertical and lies beside the boxes of a layer; those between lead through the gap from one layer to the next.
    width, height : float
    """

    centers: dict[Any, Point]
    routes: dict[Edge, list[Point]]
    width: float
    height: float


def lay_out(parents: Mapping[Any, Sequence[Any]], sizes: Mapping[Any, tuple[float, float]]) -> Layout:
    """Places for the nodes of a graph without cycles, and ways for its edges that no box is in.

    Parameters
    ----------
    parents : mapping from node to its parents
        Parents come before their children.
    sizes : mapping from node to (width, height)

    Returns
    -------
    Layout
    """
    nodes = list(parents)
    index = {node: place for place, node in enumerate(nodes)}
    above = [[index[parent] for parent in parents[node]] for node in nodes]
    layer = _layers(above)
    rows, links, chains = _edge_chains(above, layer)
    rows = _minimize_crossings(rows, links)
    widths = np.array([sizes[node][0] for node in nodes] + [0.0] * (sum(map(len, rows)) - len(nodes)))
    x = _across(rows, links, widths, len(nodes))
    x -= float((x - widths / 2).min())
    entries = _entries(above, chains, x, widths)
    tall = [max((sizes[nodes[k]][1] for k in row if k < len(nodes)), default=0.0) for row in rows]
    reach = [0.0] * len(rows)  # how far the arrows that leave a layer lead sideways
    for (a, b), chain in chains.items():
        turns = [*(float(x[place]) for place in chain[:-1]), entries[a, b]]
        for step, (here, there) in enumerate(pairwise(turns), layer[a]):
            reach[step] = max(reach[step], abs(there - here))
    top = [0.0]
    for height, far in zip(tall[:-1], reach[:-1], strict=True):
        top.append(top[-1] + height + min(_BELOW + 0.12 * far, 2.5 * _BELOW))
    middle = [start + height / 2 for start, height in zip(top, tall, strict=True)]
    centers = {node: (float(x[k]), middle[layer[k]]) for k, node in enumerate(nodes)}
    routes = {}
    for (a, b), chain in chains.items():
        points = [
            (float(x[a]), middle[layer[a]] + sizes[nodes[a]][1] / 2),
            (float(x[a]), top[layer[a]] + tall[layer[a]]),
        ]
        for step, between in enumerate(chain[1:-1], layer[a] + 1):
            points += [(float(x[between]), top[step]), (float(x[between]), top[step] + tall[step])]
        arrival = float(entries[a, b])
        points += [(arrival, top[layer[b]]), (arrival, middle[layer[b]] - sizes[nodes[b]][1] / 2)]
        routes[nodes[a], nodes[b]] = points
    return Layout(centers, routes, float((x + widths / 2).max()), top[-1] + tall[-1])


def _layers(above: list[list[int]]) -> list[int]:
    """The layer of every node: below its parents, near its children, and no layer much wider than the others."""
    n = len(above)
    below: list[list[int]] = [[] for _ in range(n)]
    for node, parents in enumerate(above):
        for parent in parents:
            below[parent].append(node)
    layer = [0] * n
    for node in range(n):
        layer[node] = max((layer[parent] + 1 for parent in above[node]), default=0)
    for node in reversed(range(n)):  # a node with more children than parents has shorter arrows further down
        if len(below[node]) > len(above[node]):
            layer[node] = min(layer[child] for child in below[node]) - 1
    most = max(6, math.ceil(1.5 * math.sqrt(n)))
    filled: dict[int, int] = {}
    for node in sorted(range(n), key=lambda k: (layer[k], not below[k], k)):  # leaves are the first to move on
        layer[node] = max([layer[node], *(layer[parent] + 1 for parent in above[node])])
        while filled.get(layer[node], 0) >= most:
            layer[node] += 1
        filled[layer[node]] = filled.get(layer[node], 0) + 1
    used = {found: place for place, found in enumerate(sorted(set(layer)))}
    return [used[found] for found in layer]


def _edge_chains(above: list[list[int]], layer: list[int]) -> tuple[list[list[int]], list[Edge], dict[Edge, list[int]]]:
    """The layers, the links from each to the next, and for every edge the chain of places it leads over.

    An edge that crosses layers has a waypoint in each; edges of one parent share theirs, and part as late as they can.
    """
    rows: list[list[int]] = [[] for _ in range(max(layer) + 1)]
    for node, found in enumerate(layer):
        rows[found].append(node)
    waypoints: dict[tuple[int, int], int] = {}
    chains: dict[Edge, list[int]] = {}
    links: dict[Edge, None] = {}
    for node, parents in enumerate(above):
        for parent in parents:
            chain = [parent]
            for step in range(layer[parent] + 1, layer[node]):
                if (parent, step) not in waypoints:
                    waypoints[parent, step] = len(layer) + len(waypoints)
                    rows[step].append(waypoints[parent, step])
                chain.append(waypoints[parent, step])
            chain.append(node)
            chains[parent, node] = chain
            links |= dict.fromkeys(pairwise(chain))
    for place, row in enumerate(rows):  # where nothing else decides, boxes stand on both sides of the arrows
        boxes, passing = [k for k in row if k < len(layer)], [k for k in row if k >= len(layer)]
        half = (len(boxes) + 1) // 2
        rows[place] = boxes[:half] + passing + boxes[half:]
    return rows, list(links), chains


# ---- The order within the layers ------------------------------------------------------------------------------------


def _minimize_crossings(rows: list[list[int]], links: list[Edge]) -> list[list[int]]:
    """The layers reordered so that few links cross: by the means of the neighbors, then by exchanging neighbors."""
    n = sum(map(len, rows))
    up: list[list[int]] = [[] for _ in range(n)]
    down: list[list[int]] = [[] for _ in range(n)]
    for a, b in links:
        down[a].append(b)
        up[b].append(a)
    rng = np.random.default_rng(0)
    best, least = rows, _crossings(rows, down)
    for attempt in range(4):
        order = rows if attempt == 0 else [list(rng.permutation(row)) for row in rows]
        for sweep in range(_SWEEPS):
            order = _swept(order, up, down, downwards=sweep % 2 == 0)
            found = _crossings(order, down)
            if found < least:
                best, least = order, found
    return _exchanged(best, up, down) if least else best


def _swept(rows: list[list[int]], up: list[list[int]], down: list[list[int]], *, downwards: bool) -> list[list[int]]:
    """The layers, each ordered by the mean place of its nodes' neighbors in the layer before."""
    order = [list(row) for row in rows]
    place = _places(order)
    toward = up if downwards else down
    for row in order if downwards else order[::-1]:
        means = {k: float(np.mean([place[j] for j in toward[k]])) if toward[k] else place[k] for k in row}
        row.sort(key=means.__getitem__)
        place |= _places([row])
    return order


def _places(rows: list[list[int]]) -> dict[int, float]:
    """How far right every node is in its layer, from 0 to 1."""
    return {k: (at + 0.5) / len(row) for row in rows for at, k in enumerate(row)}


def _crossings(rows: list[list[int]], down: list[list[int]]) -> int:
    """How many pairs of links cross."""
    place, total = _places(rows), 0
    for row in rows[:-1]:
        ends = np.array([(place[a], place[b]) for a in row for b in down[a]]).reshape(-1, 2)
        gaps = ends[:, None] - ends[None]
        total += int((gaps[..., 0] * gaps[..., 1] < 0).sum()) // 2
    return total


def _exchanged(rows: list[list[int]], up: list[list[int]], down: list[list[int]]) -> list[list[int]]:
    """The layers after exchanging neighbors as long as fewer links cross."""
    order, place = [list(row) for row in rows], _places(rows)

    def pair(left: int, right: int) -> int:
        return sum(place[a] > place[b] for side in (up, down) for a in side[left] for b in side[right])

    for _ in range(_SWEEPS):
        moved = False
        for row in order:
            for at in range(len(row) - 1):
                left, right = row[at], row[at + 1]
                if pair(right, left) < pair(left, right):
                    row[at], row[at + 1] = right, left
                    place[left], place[right] = place[right], place[left]
                    moved = True
        if not moved:
            break
    return order


# ---- Across ---------------------------------------------------------------------------------------------------------


def _across(rows: list[list[int]], links: list[Edge], widths: np.ndarray, n_nodes: int) -> np.ndarray:
    """The x of every place: near its neighbors, in the order of its layer and clear of what stands beside it."""
    from scipy.optimize import isotonic_regression

    n = len(widths)
    pull = np.zeros((n, n))
    for a, b in links:  # bends between waypoints are the ugliest
        pull[a, b] = pull[b, a] = (1.0, 2.0, 20.0)[(a >= n_nodes) + (b >= n_nodes)]
    x, starts = np.zeros(n), []
    for row in rows:
        gaps = [(widths[a] + widths[b]) / 2 + (_BESIDE if max(a, b) < n_nodes else _PASSING) for a, b in pairwise(row)]
        start = np.concatenate([[0.0], np.cumsum(gaps)])
        x[row] = start - start[-1] / 2
        starts.append(start)
    for sweep in range(20 * _SWEEPS):
        old = x.copy()
        for place in range(len(rows)) if sweep % 2 == 0 else range(len(rows) - 1, -1, -1):
            row, start = rows[place], starts[place]
            weight = pull[row].sum(axis=1)
            wanted = np.where(weight > 0, pull[row] @ x / np.where(weight > 0, weight, 1.0), x[row])
            # The nearest places that keep the distances: a monotone fit, once these are taken off.
            x[row] = start + isotonic_regression(wanted - start, weights=np.maximum(weight, 0.05)).x
        if np.abs(x - old).max() < 0.05:
            break
    return x


def _entries(
    above: list[list[int]], chains: dict[Edge, list[int]], x: np.ndarray, widths: np.ndarray
) -> dict[Edge, float]:
    """Where on a child's upper edge each arrow ends: side by side, in the order they come from."""
    found = {}
    for node, parents in enumerate(above):
        order = sorted(parents, key=lambda parent: (x[chains[parent, node][-2]], parent))
        step = min(14.0, 0.7 * widths[node] / max(len(order), 1))
        for place, parent in enumerate(order):
            found[parent, node] = float(x[node] + step * (place - (len(order) - 1) / 2))
    return found

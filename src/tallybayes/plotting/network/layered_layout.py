"""Layered layout of a directed graph, parents above children (Sugiyama, Tagawa and Toda, 1981)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

Edge = tuple[Any, Any]
Point = tuple[float, float]

_BESIDE = 16.0  # between boxes, in points as all lengths here
_BELOW = 26.0  # between layers, at least
_PASSING = 9.0  # between a box and an edge that passes it
_SWEEPS = 12


class Layout(NamedTuple):
    """A drawing of a graph, in points from the upper left corner; y counts downwards.

    Attributes
    ----------
    centers : dict from node to (x, y)
    routes : dict from (parent, child) to points
        From the bottom of the parent to the top of the child. Every second segment, beginning with the first, is
        vertical, beside the boxes of a layer; the others cross the gap between two layers.
    width, height : float
    """

    centers: dict[Any, Point]
    routes: dict[Edge, list[Point]]
    width: float
    height: float


def lay_out(parents: Mapping[Any, Sequence[Any]], sizes: Mapping[Any, tuple[float, float]]) -> Layout:
    """Compute positions of the nodes of a directed acyclic graph, and routes of its edges that avoid all boxes.

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
    index = {node: k for k, node in enumerate(nodes)}
    above = [[index[parent] for parent in parents[node]] for node in nodes]
    layer = _assign_layers(above)
    rows, links, chains = _edge_chains(above, layer)
    rows = _minimize_crossings(rows, links)
    widths = np.array([sizes[node][0] for node in nodes] + [0.0] * (sum(map(len, rows)) - len(nodes)))
    heights = [sizes[node][1] for node in nodes]
    x = _horizontal_positions(rows, links, widths, len(nodes))
    x -= float((x - widths / 2).min())
    entries = _entries(above, chains, x, widths)
    row_heights = [max((heights[k] for k in row if k < len(nodes)), default=0.0) for row in rows]
    top = _row_tops(row_heights, layer, chains, x, entries)
    middle = [start + height / 2 for start, height in zip(top, row_heights, strict=True)]
    centers = {node: (float(x[k]), middle[layer[k]]) for k, node in enumerate(nodes)}
    routes = {}
    for (a, b), chain in chains.items():
        start = float(x[a])
        points = [(start, middle[layer[a]] + heights[a] / 2), (start, top[layer[a]] + row_heights[layer[a]])]
        for row, waypoint in enumerate(chain[1:-1], layer[a] + 1):
            points += [(float(x[waypoint]), top[row]), (float(x[waypoint]), top[row] + row_heights[row])]
        end = float(entries[a, b])
        points += [(end, top[layer[b]]), (end, middle[layer[b]] - heights[b] / 2)]
        routes[nodes[a], nodes[b]] = points
    return Layout(centers, routes, float((x + widths / 2).max()), top[-1] + row_heights[-1])


def _row_tops(
    row_heights: list[float],
    layer: list[int],
    chains: dict[Edge, list[int]],
    x: np.ndarray,
    entries: dict[Edge, float],
) -> list[float]:
    """Return the top of every layer; gaps are larger below layers with edges that lead far sideways."""
    sideways = [0.0] * len(row_heights)
    for (a, b), chain in chains.items():
        ends = [*(float(x[k]) for k in chain[:-1]), entries[a, b]]
        for row, (start, end) in enumerate(pairwise(ends), layer[a]):
            sideways[row] = max(sideways[row], abs(end - start))
    top = [0.0]
    for height, distance in zip(row_heights[:-1], sideways[:-1], strict=True):
        top.append(top[-1] + height + min(_BELOW + 0.12 * distance, 2.5 * _BELOW))
    return top


def _assign_layers(above: list[list[int]]) -> list[int]:
    """Return the layer of every node: below its parents, near its children, with layers of similar widths."""
    n = len(above)
    below: list[list[int]] = [[] for _ in range(n)]
    for node, parents in enumerate(above):
        for parent in parents:
            below[parent].append(node)
    layer = [0] * n
    for node in range(n):
        layer[node] = max((layer[parent] + 1 for parent in above[node]), default=0)
    for node in reversed(range(n)):  # a node with more children than parents has shorter edges further down
        if len(below[node]) > len(above[node]):
            layer[node] = min(layer[child] for child in below[node]) - 1
    order = sorted(range(n), key=lambda k: (layer[k], not below[k], k))  # leaves are moved down first
    return _limit_widths(layer, above, order)


def _limit_widths(layer: list[int], above: list[list[int]], order: list[int]) -> list[int]:
    """Return the layers after nodes were moved down from wide layers, numbered without gaps."""
    max_width = max(6, math.ceil(1.5 * math.sqrt(len(layer))))
    width: Counter[int] = Counter()
    for node in order:
        layer[node] = max([layer[node], *(layer[parent] + 1 for parent in above[node])])
        while width[layer[node]] >= max_width:
            layer[node] += 1
        width[layer[node]] += 1
    index = {number: k for k, number in enumerate(sorted(set(layer)))}
    return [index[number] for number in layer]


def _edge_chains(above: list[list[int]], layer: list[int]) -> tuple[list[list[int]], list[Edge], dict[Edge, list[int]]]:
    """Return the layers, the links between adjacent layers, and for every edge its chain of nodes and waypoints.

    An edge that crosses layers has a waypoint in each; edges of one parent share waypoints as long as they can.
    """
    n = len(layer)
    rows: list[list[int]] = [[] for _ in range(max(layer) + 1)]
    for node, number in enumerate(layer):
        rows[number].append(node)
    waypoints: dict[tuple[int, int], int] = {}
    chains: dict[Edge, list[int]] = {}
    for node, parents in enumerate(above):
        for parent in parents:
            crossed = range(layer[parent] + 1, layer[node])
            for number in crossed:
                if (parent, number) not in waypoints:
                    waypoints[parent, number] = n + len(waypoints)
                    rows[number].append(waypoints[parent, number])
            chains[parent, node] = [parent, *(waypoints[parent, number] for number in crossed), node]
    links = dict.fromkeys(link for chain in chains.values() for link in pairwise(chain))
    for number, row in enumerate(rows):  # initial order: boxes on both sides of the waypoints
        boxes = [k for k in row if k < n]
        half = (len(boxes) + 1) // 2
        rows[number] = boxes[:half] + [k for k in row if k >= n] + boxes[half:]
    return rows, list(links), chains


def _minimize_crossings(rows: list[list[int]], links: list[Edge]) -> list[list[int]]:
    """Return the layers in an order with few crossings: by means of the neighbors, then by adjacent exchanges."""
    n = sum(map(len, rows))
    up: list[list[int]] = [[] for _ in range(n)]
    down: list[list[int]] = [[] for _ in range(n)]
    for a, b in links:
        down[a].append(b)
        up[b].append(a)
    rng = np.random.default_rng(0)
    best, fewest = rows, _n_crossings(rows, down)
    for attempt in range(4):
        order = rows if attempt == 0 else [list(rng.permutation(row)) for row in rows]
        for sweep in range(_SWEEPS):
            order = _sweep(order, up, down, downwards=sweep % 2 == 0)
            n_crossings = _n_crossings(order, down)
            if n_crossings < fewest:
                best, fewest = order, n_crossings
    return _exchange_neighbors(best, up, down) if fewest else best


def _sweep(rows: list[list[int]], up: list[list[int]], down: list[list[int]], *, downwards: bool) -> list[list[int]]:
    """Return the layers, each ordered by the mean position of its neighbors in the previous layer."""
    order = [list(row) for row in rows]
    position = _relative_positions(order)
    neighbors = up if downwards else down
    for row in order if downwards else order[::-1]:
        means = {k: float(np.mean([position[j] for j in neighbors[k]])) if neighbors[k] else position[k] for k in row}
        row.sort(key=means.__getitem__)
        position |= _relative_positions([row])
    return order


def _relative_positions(rows: list[list[int]]) -> dict[int, float]:
    """Return the position of every node in its layer, from 0 to 1."""
    return {k: (column + 0.5) / len(row) for row in rows for column, k in enumerate(row)}


def _n_crossings(rows: list[list[int]], down: list[list[int]]) -> int:
    """Return the number of pairs of links that cross."""
    position = _relative_positions(rows)
    total = 0
    for row in rows[:-1]:
        ends = np.array([(position[a], position[b]) for a in row for b in down[a]]).reshape(-1, 2)
        differences = ends[:, None] - ends[None]
        total += int((differences[..., 0] * differences[..., 1] < 0).sum()) // 2
    return total


def _exchange_neighbors(rows: list[list[int]], up: list[list[int]], down: list[list[int]]) -> list[list[int]]:
    """Return the layers after exchanges of adjacent nodes, as long as they reduce crossings."""
    order = [list(row) for row in rows]
    position = _relative_positions(rows)

    def n_crossings(left: int, right: int) -> int:
        return sum(position[a] > position[b] for side in (up, down) for a in side[left] for b in side[right])

    for _ in range(_SWEEPS):
        changed = False
        for row in order:
            for column in range(len(row) - 1):
                left, right = row[column : column + 2]
                if n_crossings(right, left) < n_crossings(left, right):
                    row[column : column + 2] = right, left
                    position[left], position[right] = position[right], position[left]
                    changed = True
        if not changed:
            break
    return order


def _horizontal_positions(rows: list[list[int]], links: list[Edge], widths: np.ndarray, n_nodes: int) -> np.ndarray:
    """Return the x of every node and waypoint: near its neighbors, in the order of its layer, without overlap."""
    from scipy.optimize import isotonic_regression

    n = len(widths)
    attraction = np.zeros((n, n))
    for a, b in links:  # links between waypoints should be straight
        attraction[a, b] = attraction[b, a] = (1.0, 2.0, 20.0)[(a >= n_nodes) + (b >= n_nodes)]
    x = np.zeros(n)
    offsets = []  # of every row at its minimum distances
    for row in rows:
        gaps = [(widths[a] + widths[b]) / 2 + (_BESIDE if max(a, b) < n_nodes else _PASSING) for a, b in pairwise(row)]
        offsets.append(np.concatenate([[0.0], np.cumsum(gaps)]))
        x[row] = offsets[-1] - offsets[-1][-1] / 2
    for sweep in range(20 * _SWEEPS):
        before = x.copy()
        pairs = list(zip(rows, offsets, strict=True))
        for row, offset in pairs if sweep % 2 == 0 else reversed(pairs):
            weight = attraction[row].sum(axis=1)
            target = np.where(weight > 0, attraction[row] @ x / np.where(weight > 0, weight, 1.0), x[row])
            # Positions at minimum distances are a monotone sequence plus the offsets: isotonic regression.
            x[row] = offset + isotonic_regression(target - offset, weights=np.maximum(weight, 0.05)).x
        if np.abs(x - before).max() < 0.05:
            break
    return x


def _entries(
    above: list[list[int]], chains: dict[Edge, list[int]], x: np.ndarray, widths: np.ndarray
) -> dict[Edge, float]:
    """Return the x of the end of every edge at the top of its child: side by side, in the order of their origins."""
    entries = {}
    for node, parents in enumerate(above):
        order = sorted(parents, key=lambda parent: (x[chains[parent, node][-2]], parent))
        step = min(14.0, 0.7 * widths[node] / max(len(order), 1))
        for k, parent in enumerate(order):
            entries[parent, node] = float(x[node] + step * (k - (len(order) - 1) / 2))
    return entries

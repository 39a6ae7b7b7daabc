"""Layered layout of a directed graph, parents above children (Sugiyama, Tagawa and Toda, 1981)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

Edge = tuple[Any, Any]
Point = tuple[float, float]

_BESIDE = 16.0  # between boxes, in points as all lengths here
_BELOW = 26.0  # between layers, at least
_PASSING = 9.0  # between a box and an edge that passes it
_SWEEPS = 12
_ATTEMPTS = 10  # orders of the nodes from which crossings are minimized


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
    rows, chains = _edge_chains(above, layer)
    attraction = _attraction(chains, len(nodes), sum(map(len, rows)))
    rows = min(_orders(rows, attraction), key=lambda order: _n_crossings(order, attraction))
    widths, heights = np.pad([sizes[node] for node in nodes], ((0, len(attraction) - len(nodes)), (0, 0))).T
    x = _horizontal_positions(rows, attraction, widths, len(nodes))
    x -= (x - widths / 2).min()
    entries = _entries(above, chains, x, widths)
    row_heights = np.array([heights[row].max() for row in rows])
    gaps = [_gap(x, upper, lower, attraction) for upper, lower in pairwise(rows)]
    bottom = np.cumsum(row_heights) + np.cumsum([0.0, *gaps])
    top = bottom - row_heights
    centers = {node: (x[k], (top[layer[k]] + bottom[layer[k]]) / 2) for k, node in enumerate(nodes)}
    routes = {}
    for (a, b), chain in chains.items():
        ends = [*x[chain[:-1]].tolist(), entries[a, b]]
        crossed = slice(layer[a], layer[b] + 1)
        edges = zip(ends, top[crossed].tolist(), bottom[crossed].tolist(), strict=True)
        points = [(end, y) for end, *both in edges for y in both]
        points[0] = (ends[0], centers[nodes[a]][1] + heights[a] / 2)
        points[-1] = (ends[-1], centers[nodes[b]][1] - heights[b] / 2)
        routes[nodes[a], nodes[b]] = points
    return Layout(centers, routes, float((x + widths / 2).max()), float(bottom[-1]))


def _gap(x: np.ndarray, upper: np.ndarray, lower: np.ndarray, attraction: np.ndarray) -> float:
    """Return the gap between two layers; it is larger if edges lead far sideways."""
    sideways = np.abs(x[upper][:, None] - x[lower])[attraction[np.ix_(upper, lower)] > 0]
    return min(_BELOW + 0.12 * float(sideways.max(initial=0.0)), 2.5 * _BELOW)


def _assign_layers(above: list[list[int]]) -> list[int]:
    """Return the layer of every node: below its parents, near its children, with layers of similar widths."""
    n = len(above)
    below = [[child for child in range(n) if node in above[child]] for node in range(n)]
    layer = [0] * n
    for node in range(n):
        layer[node] = max((layer[parent] + 1 for parent in above[node]), default=0)
    for node in reversed(range(n)):  # a node with more children than parents has shorter edges further down
        if len(below[node]) > len(above[node]):
            layer[node] = min(layer[child] for child in below[node]) - 1
    max_width = max(6, math.ceil(1.5 * math.sqrt(n)))
    width: Counter[int] = Counter()
    for node in sorted(range(n), key=lambda k: (layer[k], not below[k], k)):  # leaves are moved down first
        layer[node] = max([layer[node], *(layer[parent] + 1 for parent in above[node])])
        while width[layer[node]] >= max_width:
            layer[node] += 1
        width[layer[node]] += 1
    without_gaps: list[int] = np.unique(layer, return_inverse=True)[1].tolist()
    return without_gaps


def _edge_chains(above: list[list[int]], layer: list[int]) -> tuple[list[np.ndarray], dict[Edge, list[int]]]:
    """Return the layers, and for every edge its chain of nodes and waypoints.

    An edge that crosses layers has a waypoint in each; edges of one parent share waypoints as long as they can.
    """
    layers = list(layer)  # of nodes and waypoints
    waypoints: dict[tuple[int, int], int] = {}
    chains: dict[Edge, list[int]] = {}
    for node, parents in enumerate(above):
        for parent in parents:
            crossed = [(parent, number) for number in range(layer[parent] + 1, layer[node])]
            for key in crossed:
                if key not in waypoints:
                    waypoints[key] = len(layers)
                    layers.append(key[1])
            chains[parent, node] = [parent, *map(waypoints.__getitem__, crossed), node]
    rows = [np.flatnonzero(np.array(layers) == number) for number in range(max(layer) + 1)]
    n_boxes = [int((row < len(layer)).sum()) for row in rows]
    # The initial order: boxes on both sides of the waypoints.
    return [np.insert(row[:n], (n + 1) // 2, row[n:]) for row, n in zip(rows, n_boxes, strict=True)], chains


def _attraction(chains: Mapping[Edge, list[int]], n_nodes: int, n: int) -> np.ndarray:
    """Return how strongly the ends of each link attract each other; links between waypoints should be straight."""
    attraction = np.zeros((n, n))
    for chain in chains.values():
        for a, b in pairwise(chain):
            attraction[a, b] = attraction[b, a] = (1.0, 2.0, 20.0)[(a >= n_nodes) + (b >= n_nodes)]
    return attraction


def _orders(rows: list[np.ndarray], attraction: np.ndarray) -> Iterator[list[np.ndarray]]:
    """Yield orders of the layers: some are random, others follow from them by sweeps down and up."""
    rng = np.random.default_rng(0)
    for attempt in range(_ATTEMPTS):
        order = [rng.permutation(row) if attempt else row for row in rows]
        for sweep in range(_SWEEPS):
            yield order
            step = 1 if sweep % 2 == 0 else -1
            order = _sweep(order[::step], attraction)[::step]


def _sweep(rows: list[np.ndarray], attraction: np.ndarray) -> list[np.ndarray]:
    """Return the layers, each ordered by the mean position of its neighbors in the previous layer."""
    order = rows[:1]
    for row in rows[1:]:
        links = attraction[np.ix_(row, order[-1])] > 0
        n_links = links.sum(axis=1)
        own, previous = ((np.arange(n) + 0.5) / n for n in links.shape)
        position = np.where(n_links > 0, links @ previous / np.maximum(n_links, 1), own)
        order.append(row[np.argsort(position, kind="stable")])
    return order


def _n_crossings(rows: list[np.ndarray], attraction: np.ndarray) -> int:
    """Return the number of pairs of links that cross."""
    total = 0
    for upper, lower in pairwise(rows):
        starts, ends = np.nonzero(attraction[np.ix_(upper, lower)])
        total += int(((starts[:, None] < starts) & (ends[:, None] > ends)).sum())
    return total


def _horizontal_positions(
    rows: list[np.ndarray], attraction: np.ndarray, widths: np.ndarray, n_nodes: int
) -> np.ndarray:
    """Return the x of every node and waypoint: near its neighbors, in the order of its layer, without overlap."""
    from scipy.optimize import isotonic_regression

    x = np.zeros(len(widths))
    offsets = []  # of every row at its minimum distances
    for row in rows:
        beside = np.where(np.maximum(row[1:], row[:-1]) < n_nodes, _BESIDE, _PASSING)
        gaps = (widths[row[1:]] + widths[row[:-1]]) / 2 + beside
        offsets.append(np.concatenate([[0.0], np.cumsum(gaps)]))
        x[row] = offsets[-1] - offsets[-1][-1] / 2
    pairs = list(zip(rows, offsets, strict=True))
    for _ in range(20 * _SWEEPS):
        before = x.copy()
        for row, offset in pairs:
            weight = attraction[row].sum(axis=1)
            target = np.where(weight > 0, attraction[row] @ x / np.where(weight > 0, weight, 1.0), x[row])
            # Positions at minimum distances are a monotone sequence plus the offsets: isotonic regression.
            x[row] = offset + isotonic_regression(target - offset, weights=np.maximum(weight, 0.05)).x
        if np.abs(x - before).max() < 0.05:
            break
        pairs.reverse()
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
            entries[parent, node] = x[node] + step * (k - (len(order) - 1) / 2)
    return entries

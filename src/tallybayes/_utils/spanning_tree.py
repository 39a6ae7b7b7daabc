"""Maximum spanning tree of a complete graph."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class SpanningTree(NamedTuple):
    """A rooted tree.

    Attributes
    ----------
    parents : list of int
        The parent of every vertex; −1 for the root.
    order : list of int
        The vertices, parents before their children.
    """

    parents: list[int]
    order: list[int]


def maximum_spanning_tree(weights: np.ndarray) -> SpanningTree:
    """Return the maximum spanning tree with vertex 0 as root (Prim 1957); ties go to the vertex with the lowest index.

    Parameters
    ----------
    weights : ndarray of shape (n, n)
        Symmetric; the diagonal is not used.

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes._utils.spanning_tree import maximum_spanning_tree
    >>> maximum_spanning_tree(np.array([[0, 1, 5], [1, 0, 2], [5, 2, 0]])).parents
    [-1, 2, 0]
    """
    n = len(weights)
    parents = [-1] * n
    order = list(range(min(n, 1)))
    outside = np.arange(n) > 0
    best = np.array(weights[0], dtype=float) if n else np.zeros(0)  # the heaviest edge from the tree to every vertex
    nearest = np.zeros(n, dtype=np.intp)
    for _ in range(n - 1):
        vertex = int(np.where(outside, best, -np.inf).argmax())
        parents[vertex] = int(nearest[vertex])
        order.append(vertex)
        outside[vertex] = False
        closer = weights[vertex] > best
        best = np.where(closer, weights[vertex], best)
        nearest = np.where(closer, vertex, nearest)
    return SpanningTree(parents, order)

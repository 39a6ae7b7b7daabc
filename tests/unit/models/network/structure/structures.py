"""All structures of a few nodes, and random rows."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from hypothesis import strategies as st

NODES = "abcd"
Structure = dict[str, tuple[str, ...]]


def is_acyclic(edges: np.ndarray) -> bool:
    power = edges.astype(int)
    for _ in range(len(edges)):
        if np.trace(power):
            return False
        power = np.minimum(power @ edges, 1)
    return True


def all_graphs(n: int) -> list[np.ndarray]:
    """The arrows [parent, child] of every directed graph of n nodes without cycles: 543 of 4."""
    pairs = [(a, b) for a in range(n) for b in range(a)]
    found = []
    for kinds in product(range(3), repeat=len(pairs)):
        edges = np.zeros((n, n), dtype=bool)
        for (a, b), kind in zip(pairs, kinds, strict=True):
            if kind:
                edges[(a, b) if kind == 1 else (b, a)] = True
        if is_acyclic(edges):
            found.append(edges)
    return found


GRAPHS = all_graphs(4)


def named(edges: np.ndarray) -> Structure:
    """{node: its parents}, under the names of `rows_of`."""
    return {NODES[k]: tuple(NODES[p] for p in np.flatnonzero(edges[:, k])) for k in range(len(edges))}


def rows_of(seed: int, n: int, sizes: tuple[int, ...] = (2, 3, 2, 2)) -> dict[str, Any]:
    """Rows in which columns depend on those before."""
    rng = np.random.default_rng(seed)
    columns: list[np.ndarray] = []
    for place, size in enumerate(sizes):
        column = rng.integers(0, size, n)
        for other in columns[max(0, place - 2) :]:
            column = np.where(rng.random(n) < 0.4, other % size, column)
        columns.append(column)
    return dict(zip(NODES, columns, strict=False))


def skeleton_and_colliders(edges: np.ndarray) -> tuple[Any, Any]:
    """Return skeleton and v-structures, which determine the equivalence class (Verma and Pearl)."""
    joined = edges | edges.T
    n = len(edges)
    colliders = {
        (a, c, b)
        for c in range(n)
        for a in range(n)
        for b in range(a)
        if edges[a, c] and edges[b, c] and not joined[a, b]
    }
    return joined.tobytes(), frozenset(colliders)


graphs = st.sampled_from(GRAPHS)

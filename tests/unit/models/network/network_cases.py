"""Small Bayesian networks drawn by Hypothesis, and their joint distribution."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from hypothesis import strategies as st

import tallybayes as tb
from tallybayes.models.network.graph import Graph
from tallybayes.models.network.io.network_tables import NetworkTables


@st.composite
def networks(draw: Any, most_nodes: int = 5, zeros: bool = True) -> NetworkTables:
    """A network of a few nodes with labels of every kind; some of its probabilities are 0."""
    n_nodes = draw(st.integers(1, most_nodes))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    nodes = [f"n{place}" for place in range(n_nodes)]
    kinds = [("x", "y", "z"), (False, True), (3, 1, 2), ("only",)]
    levels = {node: kinds[draw(st.integers(0, 3))] for node in nodes}
    parents, tables = {}, {}
    for place, node in enumerate(nodes):
        count = draw(st.integers(0, min(place, 3)))
        parents[node] = tuple(nodes[k] for k in rng.permutation(place)[:count])
        shape = [len(levels[name]) for name in parents[node]]
        table = rng.dirichlet(np.full(len(levels[node]), 0.7), shape)
        if zeros and draw(st.booleans()):
            table = np.where(rng.random(table.shape) < 0.2, 0.0, table)
            table[..., 0] += table.sum(axis=-1) == 0
            table = table / table.sum(axis=-1, keepdims=True)
        tables[node] = table
    return NetworkTables(parents, levels, tables)


@st.composite
def graphs(draw: Any, most: int = 7) -> Graph:
    """A graph of a few nodes, any of their arrows there or not."""
    n = draw(st.integers(2, most))
    chosen = draw(st.lists(st.booleans(), min_size=n * (n - 1) // 2, max_size=n * (n - 1) // 2))
    pairs = [(a, b) for b in range(n) for a in range(b)]
    above: dict[str, list[str]] = {f"n{b}": [] for b in range(n)}
    for (a, b), there in zip(pairs, chosen, strict=True):
        if there:
            above[f"n{b}"].append(f"n{a}")
    return Graph.read(above)


def given(tables: NetworkTables) -> tb.BayesianNetwork:
    """The network with these tables."""
    return tb.BayesianNetwork.from_tables(tables.parents, tables.levels, tables.tables)


def joint(tables: NetworkTables, do: dict[Any, Any] | None = None) -> dict[tuple[Any, ...], float]:
    """p(levels of all nodes), one by one; nodes of `do` are set, whatever their parents say."""
    nodes = list(tables.parents)
    found = {}
    for levels in product(*(tables.levels[node] for node in nodes)):
        row, p = dict(zip(nodes, levels, strict=True)), 1.0
        for node in nodes:
            if do and node in do:
                p *= float(row[node] == do[node])
                continue
            place = tuple(tables.levels[name].index(row[name]) for name in (*tables.parents[node], node))
            p *= float(tables.tables[node][place])
        found[levels] = p
    return found


def weigh(
    tables: NetworkTables, observed: dict[Any, Any], do: dict[Any, Any] | None = None
) -> dict[tuple[Any, ...], float]:
    """p(levels of all nodes, observed): levels that are known, or likelihoods of them."""
    nodes = list(tables.parents)
    found = {}
    for levels, p in joint(tables, do).items():
        row = dict(zip(nodes, levels, strict=True))
        for node, value in observed.items():
            p *= float(value[row[node]] if isinstance(value, dict) else row[node] == value)
        found[levels] = p
    return found


@st.composite
def questions(draw: Any, tables: NetworkTables, soft: bool = True) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """Some nodes that are observed, or hinted at, and some nodes that are set."""
    observed: dict[Any, Any] = {}
    do: dict[Any, Any] = {}
    for node, levels in tables.levels.items():
        what = draw(st.integers(0, 5))
        if what == 1:
            observed[node] = draw(st.sampled_from(levels))
        elif what == 2 and soft:
            observed[node] = {level: draw(st.sampled_from([0.0, 0.25, 1.0, 3.0])) for level in levels}
        elif what == 3:
            do[node] = draw(st.sampled_from(levels))
    return observed, do

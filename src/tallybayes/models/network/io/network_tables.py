"""NetworkTables: a Bayesian network of labels as plain tables, whoever made them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tallybayes._utils.frozen_value import FrozenValue, frozen_array
from tallybayes.errors import DataError
from tallybayes.models.network.graph import Graph
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Name


@dataclass(frozen=True, eq=False, repr=False)
class NetworkTables(FrozenValue):
    """A network whose nodes are all labels: who depends on whom, the levels, and p(node | parents).

    Parameters
    ----------
    parents : mapping from node to a tuple of nodes
        Every node is a key.
    levels : mapping from node to a tuple of labels
        None where absence is a level.
    tables : mapping from node to an array of shape (*levels of the parents, levels of the node)

    Examples
    --------
    >>> from tallybayes.models.network.io.network_tables import NetworkTables
    >>> NetworkTables({"rain": (), "wet": ("rain",)}, {"rain": ("no", "yes"), "wet": ("no", "yes")},
    ...               {"rain": [0.8, 0.2], "wet": [[0.9, 0.1], [0.0, 1.0]]})
    NetworkTables(2 nodes, 1 edge)
    """

    parents: Any
    levels: Any
    tables: Any

    def __post_init__(self) -> None:
        graph = Graph.read(dict(self.parents))
        absent = [node for node in graph.nodes if node not in self.parents]
        if absent:
            raise DataError.unknown_column(absent[:1], self.parents)
        for name in ("levels", "tables"):
            given = getattr(self, name)
            lacking = [n for n in graph.nodes if not isinstance(given, Mapping) or given.get(n) is None]
            if lacking:
                raise DataError.wrong_type(name, f"without {lacking[0]!r}", "a mapping with every node")
        levels = {}
        for node in graph.nodes:
            labels = tuple(self.levels[node])
            levels[node] = Domain(labels, str(node), has_missing_level=any(label is None for label in labels)).levels
        tables: dict[Name, np.ndarray] = {}
        for node in graph.nodes:
            shape = tuple(len(levels[name]) for name in (*graph.parents[node], node))
            try:
                tables[node] = frozen_array(self.tables[node])
            except (TypeError, ValueError):
                raise DataError.wrong_type(f"the table of {node!r}", "ragged, or not of numbers", f"{shape}") from None
            if tables[node].shape != shape:
                expected = f"{shape}: the levels of {[*graph.parents[node], node]}"
                raise DataError.wrong_shape(f"the table of {node!r}", tables[node].shape, expected)
            if not (np.isfinite(tables[node]) & (tables[node] >= 0)).all():
                raise DataError.wrong_type(f"the table of {node!r}", "partly negative or not finite", "probabilities")
            sums = tables[node].sum(axis=-1)
            wrong = np.argwhere(np.abs(sums - 1.0) > 1e-6)
            if len(wrong):
                where = zip(graph.parents[node], wrong[0], strict=True)
                row = ", ".join(f"{parent} = {levels[parent][k]!r}" for parent, k in where)
                found = f"{sums[tuple(wrong[0])]:.6g} in sum{' where ' + row if row else ''}"
                raise DataError.wrong_type(f"the table of {node!r}", found, "rows that sum to 1")
        for name, value in (("parents", graph.parents), ("levels", levels), ("tables", tables)):
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        n_nodes, n_edges = len(self.parents), sum(map(len, self.parents.values()))
        return f"NetworkTables({n_nodes} node{'s' * (n_nodes != 1)}, {n_edges} edge{'s' * (n_edges != 1)})"

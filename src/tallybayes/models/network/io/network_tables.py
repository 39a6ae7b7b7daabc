"""NetworkTables: a discrete Bayesian network as plain CPTs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tallybayes._utils.frozen_value import FrozenValue, frozen_array
from tallybayes.errors import DataError
from tallybayes.models.network.graph import Graph
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Name


@dataclass(frozen=True, eq=False, repr=False)
class NetworkTables(FrozenValue):
    """A discrete network: the graph, the levels of every node, and p(node | parents).

    Parameters
    ----------
    parents : mapping from node to a tuple of nodes
        Every node is a key.
    levels : mapping from node to a tuple of levels
        None is the level of a missing value.
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
        undeclared = [node for node in graph.nodes if node not in self.parents]
        if undeclared:
            raise DataError.unknown_column(undeclared[:1], self.parents)
        for name, given in (("levels", self.levels), ("tables", self.tables)):
            lacking = [n for n in graph.nodes if not isinstance(given, Mapping) or given.get(n) is None]
            if lacking:
                raise DataError.wrong_type(name, f"without {lacking[0]!r}", "a mapping with every node")
        levels = {}
        for node in graph.nodes:
            values = tuple(self.levels[node])
            levels[node] = Domain(values, str(node), has_missing_level=any(value is None for value in values)).levels
        tables = {
            node: _read_table(self.tables[node], node, parents, levels) for node, parents in graph.parents.items()
        }
        for name, value in (("parents", graph.parents), ("levels", levels), ("tables", tables)):
            object.__setattr__(self, name, value)

    @property
    def domains(self) -> dict[Name, Domain]:
        """The domain of every node, with its levels declared."""
        return {
            node: Domain(levels, str(node), declared=levels, has_missing_level=None in levels)
            for node, levels in self.levels.items()
        }

    def __repr__(self) -> str:
        n_nodes, n_edges = len(self.parents), sum(map(len, self.parents.values()))
        return f"NetworkTables({n_nodes} node{'s' * (n_nodes != 1)}, {n_edges} edge{'s' * (n_edges != 1)})"


def _read_table(
    value: npt.ArrayLike, node: Name, parents: tuple[Name, ...], levels: Mapping[Name, tuple[Any, ...]]
) -> np.ndarray:
    """Return the CPT of a node as a read-only array; raise DataError if its shape, numbers or sums are invalid."""
    what = f"the table of {node!r}"
    shape = tuple(len(levels[name]) for name in (*parents, node))
    try:
        table = frozen_array(value)
    except (TypeError, ValueError):
        raise DataError.wrong_type(what, "ragged, or not numeric", f"{shape}") from None
    if table.shape != shape:
        raise DataError.wrong_shape(what, table.shape, f"{shape}: the levels of {[*parents, node]}")
    if not (np.isfinite(table) & (table >= 0)).all():
        raise DataError.wrong_type(what, "partly negative or not finite", "probabilities")
    sums = table.sum(axis=-1)
    wrong = np.argwhere(np.abs(sums - 1.0) > 1e-6)
    if len(wrong):
        row = ", ".join(f"{parent} = {levels[parent][k]!r}" for parent, k in zip(parents, wrong[0], strict=True))
        total = f"{sums[tuple(wrong[0])]:.6g}{' for ' + row if row else ''}"
        raise DataError.wrong_type(f"the sum of {what}", total, "rows that sum to 1")
    return table

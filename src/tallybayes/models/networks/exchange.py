"""Bayesian networks from tables and files, and into them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.errors import DataError, EstimateError, FileError
from tallybayes.families.categorical import Categorical, Probabilities
from tallybayes.families.with_missing import WithMissing
from tallybayes.models.networks.graph import Graph
from tallybayes.models.networks.tables import NetworkTables
from tallybayes.statistics.segments import Segments
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Factor, Name, Schema
from tallybayes.tally.stated import tally_of_none

if TYPE_CHECKING:
    from tallybayes.models.networks.network import BayesianNetwork


def from_tables(
    cls: type[BayesianNetwork], parents: Any, levels: Mapping[Name, Any], tables: Mapping[Name, Any]
) -> BayesianNetwork:
    """A network whose tables are given, not learned.

    Parameters
    ----------
    parents : as for the constructor
    levels : mapping from node to its labels
        None among them is the level of cells that are not there, as of `WithMissing`.
    tables : mapping from node to an array of shape (*levels of its parents, levels)
        Rows that sum to 1.

    Returns
    -------
    BayesianNetwork
        Its levels are declared, so that `fit` keeps them.

    Examples
    --------
    >>> import tallybayes as tb
    >>> tb.BayesianNetwork.from_tables({"fire": []}, {"fire": [False, True]}, {"fire": [0.9, 0.1]}).query("fire")
    p(fire)
      False  0.9000  ██████████████████
      True   0.1000  ██
    """
    return _from(cls, NetworkTables(Graph.read(parents).parents, levels, tables))


def from_bif(cls: type[BayesianNetwork], path: Any) -> BayesianNetwork:
    """A network from a file in the Interchange Format for Bayesian networks (BIF); packed with gzip, too.

    Parameters
    ----------
    path : path or file object

    Returns
    -------
    BayesianNetwork
    """
    from tallybayes.models.networks.bif.file import read_bif

    return _from(cls, read_bif(path))


def _from(cls: type[BayesianNetwork], given: NetworkTables) -> BayesianNetwork:
    """A network with these tables, and no counts."""
    families, columns, domains = {}, {}, {}
    for node, found in given.levels.items():
        families[node] = Categorical(tuple(level for level in found if level is not None))
        columns[node] = WithMissing(families[node]) if None in found else families[node]
        domains[str(node)] = Domain(found, str(node), declared=found, absent=None in found)
    model = cls(dict(given.parents), columns=columns)
    factors = [Factor(node, parents, families[node]) for node, parents in given.parents.items()]
    schema = Schema(absent=tuple(name for name, domain in domains.items() if domain.absent))
    tally = tally_of_none(factors, [1] * len(factors), domains, schema)
    return model._adopt(tally)._state(_parameters(given))


def _parameters(given: NetworkTables) -> tuple[Probabilities, ...]:
    """The tables as parameters of their factors."""
    return tuple(Probabilities(table, Segments([table.shape[-1]])) for table in given.tables.values())


def to_tables(model: BayesianNetwork) -> NetworkTables:
    """The network as plain tables, without its measured nodes.

    Returns
    -------
    NetworkTables
    """
    found = model._inference
    if found.unknown:
        node, lost = next(iter(found.unknown.items()))
        raise EstimateError(
            f"the table of {node!r} has {int(lost.sum())} rows that no data tell, under maximum likelihood.\n"
            "    Use reestimate(estimate='bayes'), where a prior speaks for them."
        )
    parents = {node: model.graph_.parents[node] for node in found.levels}
    return NetworkTables(parents, {node: domain.levels for node, domain in found.domains.items()}, found.tables)


def to_bif(model: BayesianNetwork, path: Any) -> None:
    """Write the tables to a file in the Interchange Format for Bayesian networks (BIF).

    Parameters
    ----------
    path : str or path-like
        Packed where it ends in ``.gz``.
    """
    from tallybayes.models.networks.bif.file import write_bif

    measured = list(model._inference.leaves)
    if measured:
        raise DataError(f"node {measured[0]!r} is measured; a BIF file holds labels only.\n    Use save instead.")
    write_bif(to_tables(model), path)


def to_networkx(model: BayesianNetwork) -> Any:
    """The graph as a networkx DiGraph; nodes have their ``levels`` and ``table``, if fitted.

    Returns
    -------
    networkx.DiGraph
    """
    import networkx as nx

    graph = nx.DiGraph()
    graph.add_nodes_from(model.graph_.nodes)
    graph.add_edges_from(model.graph_.edges)
    if hasattr(model, "tally_"):
        for node, table in model._network.tables.items():
            about = {"levels": model.levels_[node], "table": table.copy(), "parents": model.graph_.parents[node]}
            graph.nodes[node].update(about)
    return graph


def given_from_parts(model: BayesianNetwork, arrays: dict[str, np.ndarray]) -> tuple[Probabilities, ...]:
    """Tables that were given, in files from before they were kept as all stated parameters are."""
    nodes = model.graph_.nodes
    if any(f"given/{place}" not in arrays for place in range(len(nodes))):
        raise FileError("the network's tables are not all in its file.")
    tables = {node: arrays.pop(f"given/{place}") for place, node in enumerate(nodes)}
    checked = NetworkTables(model.graph_.parents, model.levels_, tables).tables
    order = [name for factor in model.tally_.factors for name in factor.columns]
    return tuple(Probabilities(checked[name], Segments([checked[name].shape[-1]])) for name in order)

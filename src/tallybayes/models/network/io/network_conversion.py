"""Bayesian networks from tables and files, and into them."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from tallybayes.distributions.linear_normal_inverse_gamma import LinearParameters
from tallybayes.errors import DataError, EstimateError
from tallybayes.families.categorical import Categorical, LevelProbabilities
from tallybayes.families.gaussian import Gaussian
from tallybayes.families.with_missing import WithMissing
from tallybayes.models.network.graph import Graph
from tallybayes.models.network.io.network_spec import NetworkSpec, describe_nodes, read_network_spec
from tallybayes.models.network.io.network_tables import NetworkTables
from tallybayes.statistics.segments import Segments
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Factor, Name
from tallybayes.tally.fixed_parameter_tally import empty_tally
from tallybayes.tally.schema import Schema
from tallybayes.typing import Parents

if TYPE_CHECKING:
    import networkx as nx

    from tallybayes.models.network.bayesian_network import BayesianNetwork


def from_tables(
    cls: type[BayesianNetwork], parents: Parents, levels: Mapping[Name, Any], tables: Mapping[Name, Any]
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


def from_bif(cls: type[BayesianNetwork], path: str | PathLike[str] | IO[Any]) -> BayesianNetwork:
    """A network from a file in the Interchange Format for Bayesian networks (BIF); packed with gzip, too.

    Parameters
    ----------
    path : path or file object

    Returns
    -------
    BayesianNetwork
    """
    from tallybayes.models.network.io.bif import read_bif

    return _from(cls, read_bif(path))


def from_parameters(cls: type[BayesianNetwork], nodes: Mapping[Name, Mapping[str, Any]]) -> BayesianNetwork:
    """A network whose numbers are given, not learned: tables of labels, lines of measured nodes.

    Parameters
    ----------
    nodes : mapping from every node to a mapping
        Of labels ``"levels"`` and ``"probabilities"``, an array of shape (*levels of its parents, levels). Of a
        measured node ``"intercept"``, ``"std"`` and, for its measured parents, ``"coefficients"``, a mapping from each
        to a number: y = intercept + Σ weight · parent + noise. Each is one number, or an array of shape (*levels of its
        parents that are labels). Of both, ``"parents"``, a list.

    Returns
    -------
    BayesianNetwork

    Examples
    --------
    >>> import tallybayes as tb
    >>> model = tb.BayesianNetwork.from_parameters({
    ...     "sun": {"levels": ["no", "yes"], "probabilities": [0.6, 0.4]},
    ...     "warm": {"parents": ["sun"], "intercept": [12.0, 20.0], "std": 3.0},
    ...     "ice": {"parents": ["warm"], "intercept": -50, "coefficients": {"warm": 10}, "std": 20}})
    >>> model.query("sun", {"ice": 150.0})
    p(sun | ice = 150.0)
      'no'   0.1134  ██
      'yes'  0.8866  ██████████████████
    >>> round(model.query("ice", do={"warm": 25.0}).mean, 6)
    200.0
    """
    return _from_described(cls, read_network_spec(nodes))


def from_json(cls: type[BayesianNetwork], path: str | PathLike[str] | IO[Any]) -> BayesianNetwork:
    """A network from a JSON file that `to_json`, or anybody, wrote; packed with gzip, too.

    The file is ``{"format": "tallybayes network", "version": 2, "nodes": [...]}``. Each node is an object with its
    ``"name"`` and what `from_parameters` takes of it.

    Parameters
    ----------
    path : path or file object

    Returns
    -------
    BayesianNetwork
    """
    from tallybayes.models.network.io.network_json import read_json

    return _from_described(cls, read_json(path))


def _from_described(cls: type[BayesianNetwork], given: NetworkSpec) -> BayesianNetwork:
    """A network with these tables and lines, and no counts."""
    columns: dict[Name, Any] = {factor.columns[-1]: factor.family for factor in given.factors}
    columns |= {node: WithMissing(columns[node]) for node, domain in given.domains.items() if domain.has_missing_level}
    columns |= {node: Gaussian() for node in columns if node not in given.domains}
    model = cls(dict(given.parents), columns=columns)
    domains = {str(node): domain for node, domain in given.domains.items()}
    schema = Schema(missing_level_domains=tuple(name for name, domain in domains.items() if domain.has_missing_level))
    return model._set_tally(empty_tally(given.factors, given.widths, domains, schema))._set_fixed_parameters(
        given.parameters
    )


def _from(cls: type[BayesianNetwork], given: NetworkTables) -> BayesianNetwork:
    """A network with these tables, and no counts."""
    families, columns, domains = {}, {}, {}
    for node, found in given.levels.items():
        families[node] = Categorical(tuple(level for level in found if level is not None))
        columns[node] = WithMissing(families[node]) if None in found else families[node]
        domains[str(node)] = Domain(found, str(node), declared=found, has_missing_level=None in found)
    model = cls(dict(given.parents), columns=columns)
    factors = [Factor(node, parents, families[node]) for node, parents in given.parents.items()]
    schema = Schema(missing_level_domains=tuple(name for name, domain in domains.items() if domain.has_missing_level))
    tally = empty_tally(factors, [1] * len(factors), domains, schema)
    return model._set_tally(tally)._set_fixed_parameters(_parameters(given))


def _parameters(given: NetworkTables) -> tuple[LevelProbabilities, ...]:
    """The tables as parameters of their factors."""
    return tuple(LevelProbabilities(table, Segments([table.shape[-1]])) for table in given.tables.values())


def to_tables(model: BayesianNetwork) -> NetworkTables:
    """The network as plain tables, without its measured nodes; `to_parameters` has both.

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


def to_parameters(model: BayesianNetwork) -> dict[Name, dict[str, Any]]:
    """The network in plain numbers, as `from_parameters` takes them; under ``"bayes"`` posterior means.

    Returns
    -------
    dict from node to dict
    """
    network, tables = model._estimated_network, to_tables(model) if model.levels_ else None
    lines: dict[Name, tuple[tuple[Name, ...], LinearParameters]] = {}
    for (name, node), scored in zip(network.nodes.items(), network.fitted.checked_scorers, strict=True):
        if node.is_label:
            continue
        alone = name not in network.presence and name not in network.presence.values()
        if (
            scored.family.family_given_continuous_parents is None
            or not alone
            or (not node.inputs and node.statistics.n_columns != 1)
        ):
            raise DataError(
                f"node {name!r} is {scored.family!r}; only labels and Gaussian nodes have plain numbers here.\n"
                "    Use save instead."
            )
        family: Any = scored.family
        line = family.as_line(scored.point)
        if len(scored.constant) or not (np.asarray(line.variance) > 0).all():
            raise EstimateError(
                f"node {name!r} has no standard deviation above 0, or no rows to estimate it.\n"
                "    Leave it out, or use estimate='bayes' where only some combinations have none."
            )
        shape = [len(network.levels[parent]) for parent in node.factor.given]
        parts = (np.reshape(part, (*shape, *np.shape(part)[1:])) for part in line)
        lines[name] = node.inputs, LinearParameters(*parts)
    parents = {node: network.graph.parents[node] for node in network.graph.nodes}
    levels, probabilities = ({}, {}) if tables is None else (tables.levels, tables.tables)
    return dict(describe_nodes(parents, levels, probabilities, lines))


def to_json(model: BayesianNetwork, path: str | PathLike[str]) -> None:
    """Write the network to a JSON file that `from_json` reads: tables of labels, lines of measured nodes.

    Parameters
    ----------
    path : str or path-like
        Packed where it ends in ``.gz``.
    """
    from tallybayes.models.network.io.network_json import write_json

    write_json(to_parameters(model), path)


def to_bif(model: BayesianNetwork, path: str | PathLike[str]) -> None:
    """Write the tables to a file in the Interchange Format for Bayesian networks (BIF).

    Parameters
    ----------
    path : str or path-like
        Packed where it ends in ``.gz``.
    """
    from tallybayes.models.network.io.bif import write_bif

    measured = list(model._inference.leaves)
    if measured:
        raise DataError(
            f"node {measured[0]!r} is measured; a BIF file holds labels only.\n    Use to_json, or save, instead."
        )
    write_bif(to_tables(model), path)


def to_networkx(model: BayesianNetwork) -> nx.DiGraph:
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
        for node, table in model._estimated_network.tables.items():
            about = {"levels": model.levels_[node], "table": table.copy(), "parents": model.graph_.parents[node]}
            graph.nodes[node].update(about)
    return graph

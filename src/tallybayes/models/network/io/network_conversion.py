"""Convert fitted Bayesian networks to CPTs, plain parameters, files and networkx graphs."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.distributions.linear_normal_inverse_gamma import LinearParameters
from tallybayes.errors import DataError, EstimateError
from tallybayes.estimation.scoring.factor_scorer import FactorScorer
from tallybayes.families.protocols.linear_nodes import as_linear_model, family_given_continuous_parents
from tallybayes.models.network.estimated_network import EstimatedNetwork, EstimatedNode
from tallybayes.models.network.graph import Graph
from tallybayes.models.network.io.network_spec import NetworkSpec
from tallybayes.models.network.io.network_tables import NetworkTables
from tallybayes.tally.factor import Name

if TYPE_CHECKING:
    import networkx as nx


def network_tables(network: EstimatedNetwork) -> NetworkTables:
    """Return the CPTs of the discrete nodes; raise EstimateError for undefined rows."""
    inference = network.inference
    if inference.undefined:
        node, rows = next(iter(inference.undefined.items()))
        raise EstimateError(
            f"the CPT of {node!r} has {int(rows.sum())} rows without data, which are undefined under maximum "
            "likelihood.\n    Use reestimate(estimate='bayes'), so that the prior defines them."
        )
    parents = {node: network.graph.parents[node] for node in inference.levels}
    levels = {node: domain.levels for node, domain in inference.domains.items()}
    return NetworkTables(parents, levels, inference.tables)


def network_spec(network: EstimatedNetwork) -> NetworkSpec:
    """Return the parameters of all nodes; with ``"bayes"``, the posterior means."""
    tables = network_tables(network).tables if network.levels else {}
    scorers = zip(network.nodes.items(), network.fitted.checked_scorers, strict=True)
    linear_models = {
        name: _linear_parameters(network, name, node, scorer)
        for (name, node), scorer in scorers
        if not node.is_discrete
    }
    return NetworkSpec(network.graph.parents, network.domains, tables, linear_models)


def _linear_parameters(
    network: EstimatedNetwork, name: Name, node: EstimatedNode, scorer: FactorScorer
) -> LinearParameters:
    """Return the linear model of a continuous node; raise DataError if it is not Gaussian."""
    has_indicator = name in network.presence or name in network.presence.values()
    is_block = not node.inputs and node.statistics.n_columns != 1
    if family_given_continuous_parents(scorer.family) is None or has_indicator or is_block:
        raise DataError(
            f"node {name!r} is {scorer.family!r}; only discrete and Gaussian nodes have plain parameters.\n"
            "    Use save instead."
        )
    family: Any = scorer.family
    linear = as_linear_model(family, scorer.point)
    if len(scorer.constant) or not (np.asarray(linear.variance) > 0).all():
        raise EstimateError(
            f"node {name!r} has no standard deviation above 0, or no rows to estimate it.\n"
            "    Remove it, or use estimate='bayes' if only some combinations have none."
        )
    shape = [len(network.levels[parent]) for parent in node.factor.given]
    return LinearParameters(*(np.reshape(part, (*shape, *np.shape(part)[1:])) for part in linear))


def write_bif(network: EstimatedNetwork, path: str | PathLike[str]) -> None:
    """Write the CPTs to a BIF file; raise DataError for continuous nodes."""
    from tallybayes.models.network.io import bif

    continuous = list(network.inference.leaves)
    if continuous:
        raise DataError(
            f"node {continuous[0]!r} is continuous; a BIF file has discrete nodes only.\n    Use to_json or save."
        )
    bif.write_bif(network_tables(network), path)


def networkx_graph(graph: Graph, network: EstimatedNetwork | None) -> nx.DiGraph:
    """Return a networkx DiGraph; its nodes have levels and CPTs if the network is fitted."""
    import networkx as nx

    digraph = nx.DiGraph()
    digraph.add_nodes_from(graph.nodes)
    digraph.add_edges_from(graph.edges)
    if network is not None:
        for node, table in network.tables.items():
            attributes = {"levels": network.levels[node], "table": table.copy(), "parents": graph.parents[node]}
            digraph.nodes[node].update(attributes)
    return digraph

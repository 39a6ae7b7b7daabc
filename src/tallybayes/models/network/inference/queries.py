"""Queries to a Bayesian network: posteriors, MPE and MAP assignments, probabilities and samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from tallybayes._utils.parameter_checks import StringOptions, check_count, random_generator
from tallybayes.data.indicator_columns import with_absences
from tallybayes.errors import DataError, EstimateError, ImpossibleError, TooLargeError
from tallybayes.estimation.factor_sampling import sample_factor
from tallybayes.families._shared.joint_gaussian import JointGaussian
from tallybayes.models.inputs.features import node_list, one_row
from tallybayes.models.network.estimated_network import EstimatedNetwork
from tallybayes.models.network.inference.continuous_query import continuous_query_result, is_normal
from tallybayes.models.network.inference.evidence import Evidence, read_evidence
from tallybayes.models.network.inference.likelihood_weighting import query_by_sampling, sample_discrete_nodes
from tallybayes.models.network.inference.most_probable import most_probable_levels, sample_levels
from tallybayes.models.network.inference.network_inference import NetworkInference, Posterior
from tallybayes.models.network.inference.query_result import MostProbableAssignment, QueryResult
from tallybayes.tally.domain import labels_of
from tallybayes.tally.factor import Name
from tallybayes.typing import Names, RandomState

_INFERENCE = StringOptions(("exact", "sampling"))

GivenNodes = Mapping[Any, Any] | None  # evidence or interventions, by node


def query(
    network: EstimatedNetwork,
    nodes: Names,
    given: GivenNodes = None,
    do: GivenNodes = None,
    inference: str = "exact",
    n_draws: int = 200_000,
    random_state: RandomState = None,
) -> QueryResult:
    """Return the posterior distribution p(nodes | given), exactly or by sampling."""
    given = one_row(given)
    engine = network.inference.intervened(do)
    query_nodes = _query_nodes(engine, nodes)
    _INFERENCE.check("inference", inference)
    continuous = [node for node in query_nodes if engine.is_continuous(node)]
    if continuous and all(is_normal(engine, node) for node in continuous):
        _require_rows(network, continuous)
        return _query_continuous(engine, query_nodes, continuous, given, do, inference)
    engine.require_discrete(query_nodes)
    if inference == "sampling":
        n_draws = check_count("n_draws", n_draws)
        evidence, shown = read_evidence(engine, given, do), display_evidence(given, do)
        return query_by_sampling(engine, query_nodes, evidence, shown, n_draws, random_state)
    _, posterior = run_query(engine, query_nodes, given, do, [query_nodes])
    levels = {node: engine.levels[node] for node in query_nodes}
    table = posterior.joint(query_nodes)[0].reshape([len(of_node) for of_node in levels.values()])
    return QueryResult(query_nodes, levels, table, display_evidence(given, do))


def _query_nodes(engine: NetworkInference, nodes: Names) -> tuple[Name, ...]:
    """Return the nodes of a query; raise DataError if there are none, a node is unknown, or occurs twice."""
    query_nodes = tuple(node_list(nodes))
    engine.structure.require(query_nodes)
    if not query_nodes or len(set(query_nodes)) < len(query_nodes):
        raise DataError(f"nodes is {query_nodes}; expected at least one node, and each once.")
    return query_nodes


def _require_rows(network: EstimatedNetwork, query_nodes: list[Name]) -> None:
    """Raise EstimateError if a continuous node has no observed rows, so that its parameters are undefined."""
    for node in query_nodes if network.fixed_parameters is None else ():
        if not np.any(network.nodes[node].flat().group_weights()):
            together = " and its continuous parents" if network.nodes[node].inputs else ""
            raise EstimateError(
                f"no row has {node!r}{together}, so its distribution is undefined.\n    Fit rows that do."
            )


def _query_continuous(
    engine: NetworkInference,
    query_nodes: tuple[Name, ...],
    continuous: list[Name],
    given: GivenNodes,
    do: GivenNodes,
    inference: str,
) -> QueryResult:
    """Query continuous nodes, with or without discrete ones: a mixture over the discrete nodes they depend on."""
    if inference != "exact":
        raise DataError(
            f"inference={inference!r} is for discrete nodes, and {continuous[0]!r} is continuous.\n"
            "    Use inference='exact', or sample."
        )
    check_not_observed(query_nodes, "query", given, do)
    parents = {name for node in continuous for name in engine.graph.parents[engine.leaf_of(node)]}
    discrete = [name for name in engine.levels if name in parents or name in query_nodes]
    evidence, posterior = run_query(engine, query_nodes, given, do, [discrete])
    proba = posterior.joint(discrete)[0]
    return continuous_query_result(engine, query_nodes, discrete, proba, evidence, display_evidence(given, do))


def check_not_observed(nodes: Iterable[Name], what: str, given: GivenNodes, do: GivenNodes) -> None:
    """Raise DataError if a node of a query or an event is in the evidence."""
    observed = [node for node in nodes if node in (given or {}) or node in (do or {})]
    if observed:
        raise DataError(
            f"node {observed[0]!r} is in the {what} and in the evidence; expected one of them.\n"
            "    Remove one of the two."
        )


def most_probable(
    network: EstimatedNetwork, given: GivenNodes, nodes: Names | None, do: GivenNodes
) -> MostProbableAssignment:
    """Return the most probable joint assignment of nodes given the evidence (MPE, or marginal MAP)."""
    given = one_row(given)
    engine = network.inference.intervened(do)
    query_nodes = tuple(engine.levels) if nodes is None else _query_nodes(engine, nodes)
    engine.require_discrete(query_nodes)
    evidence, posterior = run_query(engine, query_nodes, given, do)
    levels, log_joint = most_probable_levels(engine, query_nodes, evidence)
    log_probability = min(0.0, log_joint - float(posterior.log_likelihood[0]))
    is_marginal = len(query_nodes) < len(engine.levels)
    return MostProbableAssignment(levels, log_probability, display_evidence(given, do), is_marginal)


def probability(network: EstimatedNetwork, given: GivenNodes, do: GivenNodes) -> float:
    """Return p(given): a density if it has continuous nodes; 0 if it is impossible."""
    engine = network.inference.intervened(do)
    evidence = read_evidence(engine, one_row(given), do)
    ((rows, posterior),) = engine.posteriors(evidence)
    engine.check_defined(posterior, evidence, rows, None)
    return float(np.exp(posterior.log_likelihood[0]))


def sample(
    network: EstimatedNetwork, n: int, given: GivenNodes, do: GivenNodes, random_state: RandomState
) -> dict[Name, np.ndarray]:
    """Draw rows from the network, or from its posterior given evidence: a column for every node."""
    n = check_count("n", n, 0)
    rng = random_generator(random_state)
    given = one_row(given)
    engine = network.inference.intervened(do)
    evidence = read_evidence(engine, given, do)
    try:
        run_query(engine, engine.structure.nodes, given, do)  # raises an error if it is impossible or undefined
        codes = sample_levels(engine, evidence, n, rng)
    except TooLargeError:
        if given:
            raise
        codes = sample_discrete_nodes(engine, evidence, n, rng)  # forward sampling is exact without evidence
    observed = {**(given or {}), **(do or {})}
    determined = {indicator for node, indicator in engine.presence.items() if node in observed} - observed.keys()
    columns: dict[Name, np.ndarray] = {}
    components: dict[Name, np.ndarray] = {}
    for node in engine.structure.nodes:
        if node in engine.levels:
            columns[node] = labels_of(engine.domains[node].levels, None)[codes[node]]
        elif node in observed:
            has_indicator = node in engine.presence
            value = evidence.cells[node][:, 0] if has_indicator else np.asarray([observed[node]])
            columns[node] = np.repeat(value, n, axis=0)
        elif node in engine.component_index:
            leaf, k = engine.component_index[node]
            if leaf not in components:
                components[leaf] = _sample_component(engine, leaf, evidence, codes, n, rng)
            columns[node] = components[leaf][:, k]
        elif node not in determined:
            group = engine.group(node, codes, n)
            drawn = sample_factor(engine.leaves[node], group, network.nodes[node].flat(), rng)
            columns[node] = drawn if drawn.shape[1] > 1 else drawn[:, 0]
    return with_absences(columns) if engine.presence else columns


def _sample_component(
    engine: NetworkInference,
    leaf: Name,
    evidence: Evidence,
    codes: dict[Name, np.ndarray],
    n: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Draw connected continuous nodes jointly, given the discrete nodes and the evidence: (n, nodes)."""
    width = len(engine.components[leaf].nodes)
    cells = np.repeat(evidence.cells.get(leaf, np.full((1, width), np.nan)), n, axis=0)
    return JointGaussian().draw(engine.leaves[leaf].parameters, cells, engine.group(leaf, codes, n), rng)


def run_query(
    engine: NetworkInference,
    nodes: Iterable[Name],
    given: GivenNodes,
    do: GivenNodes,
    requested: Iterable[Iterable[Name]] = (),
) -> tuple[Evidence, Posterior]:
    """Compute the posterior of `requested` sets of nodes given evidence.

    Raise an error if the evidence is impossible, or the posterior of `nodes` is undefined.
    """
    evidence = read_evidence(engine, given, do)
    ((rows, posterior),) = engine.posteriors(evidence, requested)
    check_possible(engine, posterior.log_likelihood[0], given, do)
    engine.check_defined(posterior, evidence, rows, nodes)
    return evidence, posterior


def check_possible(engine: NetworkInference, log_likelihood: float, given: GivenNodes, do: GivenNodes) -> None:
    """Raise ImpossibleError for evidence of probability 0, naming a minimal contradictory part of it."""
    if not np.isneginf(log_likelihood):
        return
    contradiction = dict(given or {})
    for node in list(contradiction):
        rest = {other: value for other, value in contradiction.items() if other != node}
        ((_, posterior),) = engine.posteriors(read_evidence(engine, rest, do))
        if np.isneginf(posterior.log_likelihood[0]):
            contradiction = rest
    raise ImpossibleError.of(display_evidence(contradiction, do))


def display_evidence(given: GivenNodes, do: GivenNodes) -> dict[Any, Any]:
    """Return evidence and interventions as shown with a result."""
    return {**(given or {}), **{f"do({node})": value for node, value in (do or {}).items()}}

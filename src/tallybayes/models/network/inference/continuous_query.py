"""Queries about continuous nodes of a Bayesian network: mixtures over the discrete nodes they depend on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tallybayes.distributions.normal_inverse_gamma import NormalInverseGamma
from tallybayes.estimation.scoring.factor_scorer import FactorScorer
from tallybayes.families._shared.joint_gaussian import JointGaussian
from tallybayes.families.protocols.distribution_functions import conditional_means
from tallybayes.models.network.inference.evidence import Evidence
from tallybayes.models.network.inference.network_inference import NetworkInference
from tallybayes.models.network.inference.query_result import QueryResult
from tallybayes.models.network.inference.student_t_mixture import StudentTMixture
from tallybayes.tally.factor import Name


def continuous_query_result(
    inference: NetworkInference,
    nodes: tuple[Name, ...],
    discrete: Sequence[Name],
    proba: np.ndarray,
    evidence: Evidence,
    given: Mapping[Any, Any],
) -> QueryResult:
    """Return the distribution of continuous nodes, jointly with discrete ones among `nodes`.

    Parameters
    ----------
    inference : NetworkInference
    nodes : tuple of names
        The query; at least one is continuous.
    discrete : sequence of names
        The discrete nodes of the query and those that its continuous nodes depend on.
    proba : ndarray of shape (n_combinations,)
        Probability of every combination of levels of `discrete`, flattened in their order.
    evidence : Evidence
        Of one row.
    given : mapping
        The evidence as shown.
    """
    continuous = tuple(node for node in nodes if node not in inference.levels)
    levels = {node: inference.levels[node] for node in nodes if node in inference.levels}
    sizes = [len(inference.levels[node]) for node in discrete]
    possible = np.flatnonzero(proba > 0)
    codes = dict(zip(discrete, np.unravel_index(possible, sizes) if sizes else (), strict=True))
    shape = [len(node_levels) for node_levels in levels.values()]
    combinations = np.zeros(len(possible), dtype=np.intp)
    if levels:
        combinations = np.ravel_multi_index([codes[node] for node in levels], shape)
    weights = proba[possible] / proba[possible].sum()
    components = _components(inference, continuous, codes, len(possible), evidence)
    table = np.bincount(combinations, weights, int(np.prod(shape))).reshape(shape)
    return QueryResult(nodes, levels, table, given, StudentTMixture(weights, *components, combinations))


def _components(
    inference: NetworkInference, nodes: tuple[Name, ...], codes: dict[Name, np.ndarray], n: int, evidence: Evidence
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return locations, scatters and degrees of freedom of continuous nodes, given the levels of n combinations."""
    d = len(nodes)
    locations = np.zeros((n, d))
    scatters = np.zeros((n, d, d))
    nu = np.full((n, d), np.inf)
    for leaf in dict.fromkeys(map(inference.leaf_of, nodes)):
        group = inference.group(leaf, codes, n)
        members = np.array([k for k, node in enumerate(nodes) if inference.leaf_of(node) == leaf])
        if leaf in inference.components:
            parameters, family = inference.leaves[leaf].parameters, JointGaussian()
            cells = evidence.cells.get(leaf, np.full((1, parameters.mean.shape[-1]), np.nan))
            conditional = family.condition_on(parameters, np.flatnonzero(~np.isnan(cells[0])))
            columns = [inference.component_index[nodes[k]][1] for k in members]
            index = np.array([np.flatnonzero(conditional.others == column)[0] for column in columns])
            locations[:, members] = conditional_means(family, parameters, cells)[0][group][:, columns]
            scatters[:, members[:, None], members] = conditional.covariance[group][:, index[:, None], index]
        else:
            location, variance, degrees_of_freedom = _leaf_distribution(inference.leaves[leaf])
            k = members[0]
            locations[:, k], scatters[:, k, k], nu[:, k] = location[group], variance[group], degrees_of_freedom[group]
    return locations, scatters, nu


def is_normal(inference: NetworkInference, node: Name) -> bool:
    """Return whether a continuous node is one Gaussian column, so that its posterior is a mixture."""
    if node in inference.component_index:
        return True
    if node in inference.presence:  # its missing-value indicator has evidence, too
        return False
    scorer = inference.leaves[node]
    family = scorer.family
    return bool(
        family.is_continuous
        and family.columnwise
        and not family.transforms
        and inference.widths[node] == 1
        and (isinstance(scorer.parameters, NormalInverseGamma) or hasattr(scorer.parameters, "variance"))
    )


def _leaf_distribution(scorer: FactorScorer) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return location, squared scale and degrees of freedom of one Gaussian column, in every group."""
    parameters = scorer.parameters
    if scorer.predictive:
        squared_scale = parameters.scale / parameters.shape * (1 + 1 / parameters.strength)
        parts = np.broadcast_arrays(parameters.location, squared_scale, 2 * parameters.shape)
    else:
        parts = np.broadcast_arrays(parameters.mean, parameters.variance, np.inf)
    location, squared_scale, nu = (np.array(part, dtype=float)[..., 0] for part in parts)
    return location, np.zeros_like(squared_scale) if len(scorer.constant) else squared_scale, nu

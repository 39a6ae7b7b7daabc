"""E-step of connected continuous nodes: expected moments of rows with missing nodes or missing discrete parents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tallybayes.data.table import Table
from tallybayes.families._shared.joint_gaussian import JointGaussian, JointGaussianParameters
from tallybayes.models.network.continuous_components import ContinuousComponent
from tallybayes.models.network.estimated_network import EstimatedNode
from tallybayes.models.network.inference.evidence import Evidence
from tallybayes.models.network.inference.network_inference import NetworkInference
from tallybayes.tally.factor import Name


class IncompleteContinuousRows:
    """Rows with missing nodes of one component, whose discrete parents are all observed.

    Parameters
    ----------
    inference : NetworkInference
        Its structure is used, not its parameters.
    leaf : name
        The leaf of the component.
    evidence : Evidence
        Of all rows.
    weight : ndarray of shape (n,)
    """

    def __init__(self, inference: NetworkInference, leaf: Name, evidence: Evidence, weight: np.ndarray) -> None:
        given = inference.components[leaf].given
        cells = evidence.cells[leaf]
        has_parents = np.ones(evidence.n_rows, dtype=bool)
        for name in given:
            has_parents &= evidence.is_observed(name, slice(None))
        is_incomplete = np.isnan(cells).any(axis=1)
        self.is_complete = has_parents & ~is_incomplete  # these rows are counted once
        rows = np.flatnonzero(has_parents & is_incomplete)
        self.leaf = leaf
        self.cells = cells[rows]
        self.weight = weight[rows]
        codes = {name: evidence.codes[name][rows] for name in given if name in evidence.codes}
        self.group = inference.group(leaf, codes, len(rows)) if len(rows) else np.zeros(0, dtype=np.intp)
        self.group_weights = np.zeros((len(rows), inference.n_groups(leaf)))
        self.group_weights[np.arange(len(rows)), self.group] = self.weight

    def log_likelihood(self, inference: NetworkInference) -> float:
        """Return log p(observed nodes | discrete parents)."""
        logs = inference.leaf_log_prob(self.leaf, self.cells)
        return float(self.weight @ logs[np.arange(len(logs)), self.group])


def expected_moments(
    inference: NetworkInference,
    leaf: Name,
    cells: np.ndarray,
    group_weights: np.ndarray,
    nodes: Mapping[Name, EstimatedNode],
    like: Mapping[Name, Any],
) -> dict[Name, Any]:
    """Return the expected moments of the nodes of a component, by node.

    Missing nodes have their conditional mean given the observed ones; their conditional covariance is added to the
    scatter.

    Parameters
    ----------
    inference : NetworkInference
    leaf : name
    cells : ndarray of shape (n, nodes)
    group_weights : ndarray of shape (n, combinations)
        The weight of every row in each combination of levels of the discrete parents.
    nodes : mapping from name to EstimatedNode
    like : mapping from name to statistics
        With the anchors and groups of the result.
    """
    component, parameters = inference.components[leaf], inference.leaves[leaf].parameters
    filled, group, weight, covariances = _fill_in(parameters, cells, group_weights)
    expected = {}
    for node in component.nodes:
        factor = nodes[node].factor
        own = component.groups_of(factor.given, inference.levels)
        columns = np.array([component.nodes.index(name) for name in (*nodes[node].inputs, node)])
        n_own = int(np.prod(like[node].given_shape, dtype=np.int64))
        pooled = like[node].pool_groups()
        moments: Any = factor.family.collect(filled[:, columns], own[group], n_own, weight, like=pooled)
        scatter = np.zeros((n_own, len(columns), len(columns)))
        np.add.at(scatter, own, covariances[:, columns[:, None], columns])
        scatter = scatter if moments.full else np.diagonal(scatter, axis1=-2, axis2=-1)
        expected[node] = moments.with_scatter(scatter).reshape_groups(like[node].given_shape)
    return expected


def _fill_in(
    parameters: JointGaussianParameters, cells: np.ndarray, group_weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return complete rows, one for each row and combination: rows, combination, weight; and Σ weight · covariance."""
    n_groups, k = parameters.mean.shape
    rows = [np.zeros((0, k))]
    groups = [np.zeros(0, dtype=np.intp)]
    weights = [np.zeros(0)]
    covariances = np.zeros((n_groups, k, k))
    for conditional, index in JointGaussian().by_missing_pattern(parameters, cells):
        observed, missing = conditional.known, conditional.others
        covariance = conditional.covariance
        for g in np.flatnonzero((group_weights[index] > 0).any(axis=0)):
            members = index[group_weights[index, g] > 0]
            filled = cells[members]
            if len(missing):
                residuals = filled[:, observed] - parameters.mean[g, observed]
                filled[:, missing] = parameters.mean[g, missing] + residuals @ conditional.slope[g].T
                covariances[g][np.ix_(missing, missing)] += group_weights[members, g].sum() * covariance[g]
            rows.append(filled)
            groups.append(np.full(len(members), g))
            weights.append(group_weights[members, g])
    return np.concatenate(rows), np.concatenate(groups), np.concatenate(weights), covariances


def without_incomplete_rows(table: Table, component: ContinuousComponent, is_complete: np.ndarray) -> Table:
    """Return the table with all nodes of a component missing in its incomplete rows."""
    for node in component.nodes:
        table = table.with_column(node, np.where(is_complete, _numbers(table, node), np.nan))
    return table


def _numbers(table: Table, node: Name) -> np.ndarray:
    column: Any = table.numbers([node])
    return np.asarray(column, dtype=float).reshape(table.n_rows)


def component_cells(table: Table, component: ContinuousComponent) -> np.ndarray:
    """Return the cells of a component's nodes, NaN for missing ones: (n, nodes)."""
    return np.stack([_numbers(table, node) for node in component.nodes], axis=1)

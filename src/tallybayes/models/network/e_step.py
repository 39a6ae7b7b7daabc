"""E-step of a Bayesian network: expected counts and moments of rows with missing cells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from tallybayes._utils.memory import available_memory
from tallybayes.data.table import Table
from tallybayes.errors import TooLargeError
from tallybayes.families._shared.joint_gaussian import JointGaussian, JointGaussianParameters
from tallybayes.kernels.incomplete_rows import IncompleteRows
from tallybayes.models.network.continuous_components import ContinuousComponent
from tallybayes.models.network.estimated_network import EstimatedNode
from tallybayes.models.network.inference.evidence import Evidence
from tallybayes.models.network.inference.network_inference import NetworkInference
from tallybayes.tally.factor import Name

_MAX_CELLS = 1 << 22  # scores of a batch of rows of continuous nodes, for all combinations of their parents' levels

Parents = tuple[Name, ...]


class ExpectedBatch(NamedTuple):
    """Expected counts of a batch of rows.

    Attributes
    ----------
    counts : list of ndarray
        For every discrete node, over the rows in which it or a parent is missing.
    group_weights : dict
        By the parents of continuous nodes: the weight of every combination of their levels, (rows with a missing
        parent, combinations).
    log_likelihood : float
        Of the counted CPTs, and of continuous nodes with a missing parent.
    """

    counts: list[np.ndarray]
    group_weights: dict[Parents, np.ndarray]
    log_likelihood: float


class IncompleteBatch:
    """Rows with missing cells, sorted once by what is missing and by the evidence on it.

    Parameters
    ----------
    inference : NetworkInference
        Its structure is used, not its parameters.
    evidence : Evidence
    weight : ndarray of shape (n,)
    """

    def __init__(self, inference: NetworkInference, evidence: Evidence, weight: np.ndarray) -> None:
        self.evidence = evidence
        self.weight = np.ascontiguousarray(weight)
        codes = inference.codes(evidence)
        self.incomplete: dict[Parents, np.ndarray] = {}  # rows with a missing parent of continuous nodes
        for parents in dict.fromkeys(inference.graph.parents[node] for node in evidence.cells):
            rows = np.flatnonzero((codes[:, inference.scope(parents)] < 0).any(axis=1))
            if len(rows):
                self.incomplete[parents] = rows
        if not inference.levels:
            return
        self.rows = IncompleteRows(
            codes,
            inference.sizes,
            [*inference.families, *map(inference.scope, self.incomplete)],
            inference.order,
            by_row=len(self.incomplete),
            weight=self.weight,
        )
        needed, available = int(16 * min(self.rows.cells, 2.0**100)), available_memory()
        if needed > available:
            hint = "Remove edges, merge levels, or drop rows with many missing cells."
            raise TooLargeError.of("the missing cells of some row", needed, available, hint)

    def expect(self, inference: NetworkInference) -> ExpectedBatch:
        """Return the expected counts of discrete nodes under the parameters of a network."""
        if not inference.levels:
            return ExpectedBatch([], {}, 0.0)
        tables = [inference.tables[node] for node in inference.levels]
        log_likelihood = 0.0
        for parents, rows in self.incomplete.items():
            logs, offset = self._continuous_scores(inference, parents)
            log_likelihood += float((self.weight[rows] * offset).sum())
            table = np.zeros((self.evidence.n_rows, *(len(inference.levels[name]) for name in parents)))
            table[rows] = logs.reshape(-1, *table.shape[1:])
            tables.append(table)
        counts, of_tables = self.rows.expected_counts(tables)
        n_discrete = len(inference.levels)
        group_weights = {
            parents: weights[rows].reshape(len(rows), -1)
            for (parents, rows), weights in zip(self.incomplete.items(), counts[n_discrete:], strict=True)
        }
        return ExpectedBatch(counts[:n_discrete], group_weights, log_likelihood + of_tables)

    def _continuous_scores(self, inference: NetworkInference, parents: Parents) -> tuple[np.ndarray, np.ndarray]:
        """Return log p(continuous cells | combination of parents' levels) minus its maximum, and the maximum."""
        total: Any = 0.0
        for node, cells in self.evidence.take(self.incomplete[parents]).cells.items():
            if inference.graph.parents[node] == parents:
                total = total + inference.leaf_log_prob(node, cells)
        largest = np.asarray(total).max(axis=1)
        finite = np.where(np.isneginf(largest), 0.0, largest)
        return total - finite[:, None], finite

    def expect_component(
        self, inference: NetworkInference, leaf: Name, group_weights: Mapping[Parents, np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Return the cells of a component in incomplete rows, and the weights of all combinations of parents' levels.

        Also return the log-likelihood of the cells in rows whose parents are all observed.
        """
        parents = inference.graph.parents[leaf]
        cells = self.evidence.cells[leaf]
        incomplete = self.incomplete.get(parents, np.zeros(0, dtype=np.intp))
        has_missing_cells = np.isnan(cells).any(axis=1)
        has_missing_cells[incomplete] = False
        rows = np.flatnonzero(has_missing_cells)
        group = inference.group(leaf, self.evidence.take(rows).codes, len(rows)) if len(rows) else rows
        weights = np.zeros((len(rows), inference.n_groups(leaf)))
        weights[np.arange(len(rows)), group] = self.weight[rows]
        logs = inference.leaf_log_prob(leaf, cells[rows])[np.arange(len(rows)), group]
        if parents in group_weights:
            rows, weights = np.append(rows, incomplete), np.concatenate([weights, group_weights[parents]])
        return cells[rows], weights, float(self.weight[has_missing_cells] @ logs)


def in_batches(inference: NetworkInference, evidence: Evidence, weight: np.ndarray) -> list[IncompleteBatch]:
    """Return the incomplete rows in batches, whose size is limited by the scores of continuous nodes."""
    incomplete = ~evidence.complete_rows(inference.levels)
    for leaf in inference.components.keys() & evidence.cells.keys():
        incomplete |= np.isnan(evidence.cells[leaf]).any(axis=1)
    rows = np.flatnonzero(incomplete)
    n_combinations = sum(inference.n_groups(node) for node in evidence.cells)
    step = max(1, _MAX_CELLS // max(n_combinations, 1))
    batches = [rows[start : start + step] for start in range(0, len(rows), step)]
    return [IncompleteBatch(inference, evidence.take(batch), weight[batch]) for batch in batches]


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

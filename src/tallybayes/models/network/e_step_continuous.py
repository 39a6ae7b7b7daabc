"""Rows that lack a linked measured node, or a label it depends on: the moments that they are expected to add."""

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
    """Rows of one set of linked nodes of which all labels are known, but not all nodes.

    Parameters
    ----------
    network : NetworkInference
        Its structure; the numbers come later.
    leaf : name
        Of the linked nodes.
    known : Known
        Of all rows.
    weight : ndarray of shape (n,)
    """

    def __init__(self, network: NetworkInference, leaf: Name, known: Evidence, weight: np.ndarray) -> None:
        component, cells = network.components[leaf], known.cells[leaf]
        labeled = np.ones(known.n_rows, dtype=bool)
        for name in component.labels:
            labeled &= known.is_known(name, slice(None))
        gaps = np.isnan(cells).any(axis=1)
        self.counted = labeled & ~gaps  # once, before the first step
        rows = np.flatnonzero(labeled & gaps)
        self.leaf, self.cells, self.weight = leaf, cells[rows], weight[rows]
        codes = {name: known.codes[name][rows] for name in component.labels if name in known.codes}
        self.group = network.group(leaf, codes, len(rows)) if len(rows) else np.zeros(0, dtype=np.intp)
        self.shares = np.zeros((len(rows), network.n_groups(leaf)))
        self.shares[np.arange(len(rows)), self.group] = self.weight

    def log_likelihood(self, network: NetworkInference) -> float:
        """Log p(what is known of the nodes | the labels)."""
        logs = network.leaf_logs(self.leaf, self.cells)
        return float(self.weight @ logs[np.arange(len(logs)), self.group])


def expected_of(
    network: NetworkInference,
    leaf: Name,
    cells: np.ndarray,
    shares: np.ndarray,
    nodes: Mapping[Name, EstimatedNode],
    like: Mapping[Name, Any],
) -> dict[Name, Any]:
    """The moments of linked nodes in rows that count in every combination of labels as `shares` says, by node.

    What is missing is as the known nodes expect it: its conditional mean, and in the scatter its conditional
    covariance.

    Parameters
    ----------
    network : NetworkInference
    leaf : name
    cells : ndarray of shape (n, nodes)
    shares : ndarray of shape (n, combinations)
    nodes : mapping from name to Node
    like : mapping from name to statistics
        Whose anchors to use, and whose groups to have.
    """
    component, links = network.components[leaf], network.leaves[leaf].parameters
    filled, group, weight, extra = _filled(links, cells, shares)
    found = {}
    for node in component.nodes:
        factor, inputs = nodes[node].factor, nodes[node].inputs
        own = component.groups_of(factor.given, network.levels)
        places = np.array([component.nodes.index(name) for name in (*inputs, node)])
        n_own = int(np.prod(like[node].given_shape, dtype=np.int64))
        moments: Any = factor.family.collect(
            filled[:, places], own[group], n_own, weight, like=like[node].pool_groups()
        )
        scatter = np.zeros((n_own, len(places), len(places)))
        np.add.at(scatter, own, extra[:, places[:, None], places])
        wide = scatter if moments.full else np.diagonal(scatter, axis1=-2, axis2=-1)
        found[node] = moments.with_scatter(wide).reshape_groups(like[node].given_shape)
    return found


def _filled(
    links: JointGaussianParameters, cells: np.ndarray, shares: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows without gaps, each in one combination: the rows, their combination and weight; and Σ weight · covariance."""
    n_groups, k = links.mean.shape
    rows, groups, weights = [np.zeros((0, k))], [np.zeros(0, dtype=np.intp)], [np.zeros(0)]
    extra = np.zeros((n_groups, k, k))
    for conditional, index in JointGaussian().by_missing_pattern(links, cells):
        known, others = conditional.known, conditional.others
        covariance = conditional.covariance
        for g in np.flatnonzero((shares[index] > 0).any(axis=0)):
            mine = index[shares[index, g] > 0]
            some = cells[mine]
            if len(others):
                gaps = some[:, known] - links.mean[g, known]
                some[:, others] = links.mean[g, others] + gaps @ conditional.slope[g].T
                extra[g][np.ix_(others, others)] += shares[mine, g].sum() * covariance[g]
            rows.append(some)
            groups.append(np.full(len(mine), g))
            weights.append(shares[mine, g])
    return np.concatenate(rows), np.concatenate(groups), np.concatenate(weights), extra


def without_gaps(table: Table, component: ContinuousComponent, counted: np.ndarray) -> Table:
    """The rows, in which linked nodes are missing wherever not all of them are counted."""
    for node in component.nodes:
        table = table.with_column(node, np.where(counted, _numbers(table, node), np.nan))
    return table


def _numbers(table: Table, node: Name) -> np.ndarray:
    found: Any = table.numbers([node])
    return np.asarray(found, dtype=float).reshape(table.n_rows)


def cells_of(table: Table, component: ContinuousComponent) -> np.ndarray:
    """The cells of linked nodes side by side, NaN where they are missing: (n, nodes)."""
    return np.stack([_numbers(table, node) for node in component.nodes], axis=1)

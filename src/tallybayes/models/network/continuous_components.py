"""Connected components of continuous nodes: given the discrete nodes, each is jointly Gaussian, and one leaf."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tallybayes._utils.memory import available_memory
from tallybayes.errors import EstimateError, TooLargeError
from tallybayes.estimation.scoring.factor_scorer import FactorScorer
from tallybayes.families._shared.joint_gaussian import JointGaussian
from tallybayes.families.protocols.degenerate_estimates import mask_degenerate_groups
from tallybayes.families.protocols.linear_nodes import as_linear_model
from tallybayes.models.network.graph import Graph
from tallybayes.tally.factor import Factor, Name

_CONSTANT_VARIANCE = 1e-24  # of a constant node, relative to its squared value: nearly 0, but invertible


class ContinuousComponent(NamedTuple):
    """Connected continuous nodes, parents first, and the discrete parents of any of them."""

    nodes: tuple[Name, ...]
    given: tuple[Name, ...]

    def groups_of(self, given: Sequence[Name], levels: Mapping[Name, Sequence[Any]]) -> np.ndarray:
        """Return the combination of levels of some discrete parents for every combination of all: (combinations,)."""
        sizes = [len(levels[name]) for name in self.given]
        codes = np.indices(sizes).reshape(len(sizes), math.prod(sizes))
        group = np.zeros(math.prod(sizes), dtype=np.intp)
        for name in given:
            group = group * len(levels[name]) + codes[self.given.index(name)]
        return group


def components_of(
    order: Iterable[Name], inputs: Mapping[Name, Sequence[Name]], given: Mapping[Name, Sequence[Name]]
) -> dict[Name, ContinuousComponent]:
    """Return the components of several nodes by their first node, which is the name of the leaf.

    Parameters
    ----------
    order : nodes, parents before children
    inputs : mapping from continuous node to its continuous parents
    given : mapping from node to its discrete parents
    """
    order = list(order)
    index = {node: k for k, node in enumerate(node for node in order if node in inputs)}
    edges = [(index[node], index[parent]) for node in index for parent in inputs[node]]
    if not edges:
        return {}
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    ends = np.array(edges).T
    adjacency = coo_array((np.ones(len(edges)), (ends[0], ends[1])), shape=(len(index), len(index)))
    labels = connected_components(adjacency, directed=False)[1]
    members: dict[int, list[Name]] = {}
    for node, k in index.items():
        members.setdefault(int(labels[k]), []).append(node)
    return {
        nodes[0]: ContinuousComponent(tuple(nodes), tuple(n for n in order if any(n in given[node] for node in nodes)))
        for nodes in members.values()
        if len(nodes) > 1
    }


def with_leaves(graph: Graph, components: Mapping[Name, ContinuousComponent]) -> Graph:
    """Return the graph with every component as one leaf, whose parents are the discrete parents of all its nodes."""
    if not components:
        return graph
    inside = {node for component in components.values() for node in component.nodes}
    parents = {node: above for node, above in graph.parents.items() if node not in inside}
    return Graph(parents | {leaf: component.given for leaf, component in components.items()})


def joint_gaussian_of(
    component: ContinuousComponent,
    scorers: Mapping[Name, FactorScorer],
    inputs: Mapping[Name, Sequence[Name]],
    levels: Mapping[Name, Sequence[Any]],
    constant: Collection[Name] = (),
) -> FactorScorer:
    """Return the joint distribution of a component for every combination of its discrete parents' levels.

    Parameters
    ----------
    component : ContinuousComponent
    scorers : mapping from node to its parameters, or the posterior whose means are used
    inputs : mapping from node to its continuous parents
    levels : mapping from discrete node to its levels
    constant : nodes that are constant in all rows, and so carry no information
    """
    k = len(component.nodes)
    n_groups = math.prod(len(levels[name]) for name in component.given)
    needed, available = 8 * n_groups * k * (6 * k + 4), available_memory()
    if needed > available:
        shown = ", ".join(map(repr, component.nodes[:3])) + ", …" * (k > 3)
        raise TooLargeError.of(
            f"the joint distribution of {shown} for {n_groups} combinations of levels",
            needed,
            available,
            "Remove edges between continuous nodes, or merge levels of their parents.",
        )
    linear_models = []
    constant_columns = []
    for column, node in enumerate(component.nodes):
        scorer = scorers[node]
        point = scorer.point if scorer.predictive else mask_degenerate_groups(scorer.family, scorer.point)
        family: Any = scorer.family  # Gaussian or conditional linear Gaussian
        slope, intercept, variance = as_linear_model(family, point)
        if len(scorer.constant) or node in constant:
            constant_columns.append(column)
            variance = np.full_like(variance, _CONSTANT_VARIANCE * np.maximum(intercept**2, 1.0))
        if np.isinf(variance).any():
            raise EstimateError(
                f"the variance of {node!r} has no posterior mean after so few rows.\n"
                "    Use a prior with a shape above 1, or estimate='map'."
            )
        group = component.groups_of(scorer.factor.given, levels)
        parents = [component.nodes.index(parent) for parent in inputs[node]]
        linear_models.append((parents, (slope[group], intercept[group], variance[group])))
    joint = JointGaussian()
    factor = Factor(component.nodes, component.given, joint)
    columns = np.array(constant_columns, dtype=np.intp)
    return FactorScorer(factor, joint.from_linear_models(linear_models), False, columns)


def with_intervention(leaf: FactorScorer, cells: np.ndarray) -> FactorScorer:
    """Return the joint distribution of a component under an intervention that sets the cells that are not NaN."""
    columns = np.flatnonzero(~np.isnan(cells))
    parameters = JointGaussian().intervene(leaf.parameters, columns.tolist(), cells[columns].tolist())
    return FactorScorer(leaf.factor, parameters, leaf.predictive, leaf.constant)

"""Measured nodes that arrows link: given the labels, each set of them is one Gaussian, and asked as one leaf."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tallybayes._utils.memory import available_memory
from tallybayes.errors import EstimateError, TooLargeError
from tallybayes.estimation.scoring.factor_scorer import FactorScorer
from tallybayes.families._shared.joint_gaussian import JointGaussian
from tallybayes.models.network.graph import Graph
from tallybayes.tally.factor import Factor, Name

_FLAT = 1e-24  # of its squared value: the variance of a node that is the same in every row, as near to 0 as makes sense


class ContinuousComponent(NamedTuple):
    """Measured nodes that are linked, parents first, and the labels that any of them depends on."""

    nodes: tuple[Name, ...]
    labels: tuple[Name, ...]

    def groups_of(self, given: Sequence[Name], levels: Mapping[Name, Sequence[Any]]) -> np.ndarray:
        """For every combination of the labels, which combination of some of them it has: (combinations,)."""
        sizes = [len(levels[name]) for name in self.labels]
        codes = np.indices(sizes).reshape(len(sizes), math.prod(sizes))
        group = np.zeros(math.prod(sizes), dtype=np.intp)
        for name in given:
            group = group * len(levels[name]) + codes[self.labels.index(name)]
        return group


def components_of(
    order: Iterable[Name], inputs: Mapping[Name, Sequence[Name]], given: Mapping[Name, Sequence[Name]]
) -> dict[Name, ContinuousComponent]:
    """The sets of linked nodes, by the first of each, which the leaf that stands for all of them is called.

    Parameters
    ----------
    order : nodes, parents before children
    inputs : mapping from measured node to its measured parents
    given : mapping from node to its parents that are labels
    """
    order, first = list(order), {node: node for node in inputs}

    def top(node: Name) -> Name:
        while first[node] != node:
            node = first[node]
        return node

    place = {node: number for number, node in enumerate(order)}
    for node in order:
        for parent in inputs.get(node, ()):
            low, high = sorted((top(node), top(parent)), key=place.__getitem__)
            first[high] = low
    found: dict[Name, list[Name]] = {}
    for node in order:
        if node in inputs:
            found.setdefault(top(node), []).append(node)
    several = {leaf: nodes for leaf, nodes in found.items() if len(nodes) > 1}
    return {
        leaf: ContinuousComponent(tuple(nodes), tuple(n for n in order if any(n in given[node] for node in nodes)))
        for leaf, nodes in several.items()
    }


def with_leaves(graph: Graph, components: Mapping[Name, ContinuousComponent]) -> Graph:
    """The graph in which every set of linked nodes is one leaf, below all labels that any of them depends on."""
    if not components:
        return graph
    inside = {node for component in components.values() for node in component.nodes}
    parents = {node: above for node, above in graph.parents.items() if node not in inside}
    return Graph(parents | {leaf: component.labels for leaf, component in components.items()})


def joint_gaussian_of(
    component: ContinuousComponent,
    scored: Mapping[Name, FactorScorer],
    inputs: Mapping[Name, Sequence[Name]],
    levels: Mapping[Name, Sequence[Any]],
    same: Collection[Name] = (),
) -> FactorScorer:
    """The joint distribution of linked nodes in every combination of the labels they depend on.

    Parameters
    ----------
    component : Component
    scored : mapping from node to its parameters, or the posterior of which means are taken
    inputs : mapping from node to its measured parents
    levels : mapping from label to its levels
    same : nodes that are constant in all rows, and so carry no information
    """
    sizes, k = [len(levels[name]) for name in component.labels], len(component.nodes)
    n_groups = math.prod(sizes)
    needed, here = 8 * n_groups * k * (6 * k + 4), available_memory()
    if needed > here:
        shown = ", ".join(map(repr, component.nodes[:3])) + ", …" * (k > 3)
        raise TooLargeError.of(
            f"the joint distribution of {shown} in {n_groups} combinations of labels",
            needed,
            here,
            "Leave out edges between measured nodes, or merge levels of their parents.",
        )
    lines, flat = [], []
    for place, node in enumerate(component.nodes):
        one = scored[node]
        point = one.point if one.predictive else one.family.mask_degenerate_groups(one.point)
        family: Any = one.family  # of Gaussians
        slope, intercept, variance = family.as_line(point)
        if len(one.constant) or node in same:
            flat.append(place)
            variance = np.full_like(variance, _FLAT * np.maximum(intercept**2, 1.0))
        if np.isinf(variance).any():
            raise EstimateError(
                f"the noise of {node!r} has no mean after so few rows: its prior leaves it too wide.\n"
                "    Use a prior with a shape above 1, or estimate='map'."
            )
        group = component.groups_of(one.factor.given, levels)
        before = [component.nodes.index(parent) for parent in inputs[node]]
        lines.append((before, (slope[group], intercept[group], variance[group])))
    together = JointGaussian()
    factor = Factor(component.nodes, component.labels, together)
    return FactorScorer(factor, together.from_linear_models(lines), False, np.array(flat, dtype=np.intp))


def with_intervention(leaf: FactorScorer, cells: np.ndarray) -> FactorScorer:
    """The joint distribution of linked nodes where some are set from outside, to the cells that are known."""
    places = np.flatnonzero(~np.isnan(cells))
    return leaf._replace(parameters=JointGaussian().intervene(leaf.parameters, places.tolist(), cells[places].tolist()))

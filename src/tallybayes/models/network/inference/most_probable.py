"""Most probable joint assignment of all nodes (MPE), or of some, summed over the others (marginal MAP), exactly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.errors import TooLargeError
from tallybayes.models.network.inference.clique_tree import CliqueTree, Scope
from tallybayes.models.network.inference.evidence import Evidence
from tallybayes.tally.factor import Name

if TYPE_CHECKING:
    from tallybayes.models.network.inference.network_inference import NetworkInference


def most_probable_levels(
    inference: NetworkInference, query_nodes: tuple[Name, ...], evidence: Evidence
) -> tuple[dict[Name, Any], float]:
    """Return the most probable joint assignment of some nodes, or all, and log p(assignment, evidence).

    Sums and maxima do not commute, so that a marginal assignment needs a tree in which the other nodes are eliminated
    first. Before its size is checked, factors are reduced by the evidence, and nodes without influence on the query or
    the evidence are removed.
    """
    if len(query_nodes) == len(inference.levels):
        observed: dict[Name, int] = {}
        factors, offset = _reduced_factors(inference, query_nodes, evidence, observed)
        tree = inference.compile().tree
    else:
        observed = {node: int(codes[0]) for node, codes in evidence.codes.items()}
        factors, offset = _reduced_factors(inference, query_nodes, evidence, observed)
        tree = _marginal_tree(inference, query_nodes, observed, [scope for scope, _ in factors if scope])
    codes, log_joint = _maximize(tree, factors, {inference.index[node] for node in query_nodes if node not in observed})
    levels = {
        node: inference.levels[node][observed.get(node, int(codes[inference.index[node]]))] for node in query_nodes
    }
    return levels, log_joint + offset


def _marginal_tree(
    inference: NetworkInference, query_nodes: tuple[Name, ...], observed: Mapping[Name, int], scopes: list[Scope]
) -> CliqueTree:
    """Return the tree of factors in which the nodes of the query are eliminated last."""
    used = {variable for scope in scopes for variable in scope}
    sizes = [size if variable in used else 1 for variable, size in enumerate(inference.sizes)]
    query = [inference.index[node] for node in query_nodes if node not in observed]
    try:
        return CliqueTree(sizes, scopes, list(inference.levels), last=query)
    except TooLargeError as error:
        reason = str(error).split("\n", maxsplit=1)[0]
        raise TooLargeError(
            f"the most probable assignment of {len(query_nodes)} of {len(inference.levels)} nodes: {reason}\n"
            "    Pass fewer nodes, all of them (nodes=None), or more evidence in given=."
        ) from None


def _reduced_factors(
    inference: NetworkInference,
    query_nodes: tuple[Name, ...],
    evidence: Evidence,
    observed: Mapping[Name, int],
) -> tuple[list[tuple[Scope, np.ndarray]], float]:
    """Return the log factors of relevant nodes reduced by the evidence, and the log of the constant factor."""
    graph = inference.graph
    relevant = graph.ancestors([*query_nodes, *evidence.codes, *evidence.likelihoods, *evidence.cells])
    likelihoods, offset = inference.likelihoods(evidence, slice(0, 1))

    def log_factors() -> Iterator[tuple[Scope, np.ndarray]]:
        with np.errstate(divide="ignore"):
            for node in inference.levels:
                if node in relevant:
                    yield inference.scope((*graph.parents[node], node)), np.log(inference.tables[node])
            for item in likelihoods:
                yield item.scope, (item.table if item.logarithmic else np.log(item.table))[..., 0]

    fixed = {inference.index[node]: code for node, code in observed.items()}
    factors = []
    for scope, table in log_factors():
        reduced = table[tuple(fixed.get(variable, slice(None)) for variable in scope)]
        factors.append((tuple(variable for variable in scope if variable not in fixed), reduced))
    return factors, float(offset[0])


def _maximize(tree: CliqueTree, factors: list[tuple[Scope, np.ndarray]], query: set[int]) -> tuple[np.ndarray, float]:
    """Sum, then maximize on the way up; read the levels of the maxima on the way down."""
    tables = [np.zeros(clique.shape) for clique in tree.cliques]
    total = 0.0

    def add(number: int, scope: Scope, table: np.ndarray) -> None:
        tables[number] += tree.broadcast_to_clique(number, scope, table[..., None])[..., 0]

    for scope, table in factors:
        if scope:
            add(tree.home(scope), scope, table)
        else:
            total += float(table)
    for number in reversed(range(len(tables))):
        clique = tree.cliques[number]
        own = tuple(range(clique.n_shared, len(clique.shape)))
        summed = tuple(axis for axis in own if clique.variables[axis] not in query)
        if summed:
            tables[number] = np.logaddexp.reduce(tables[number], axis=summed, keepdims=True)
        message = tables[number].max(axis=own)
        if clique.above < 0:
            total += float(message)
        else:
            add(clique.above, clique.variables[: clique.n_shared], message)
    codes = np.zeros(len(tree.sizes), dtype=np.intp)
    for clique, table in zip(tree.cliques, tables, strict=True):
        variables = clique.variables[clique.n_shared :]
        if query.intersection(variables):  # then all shared variables are in the query, and have their level
            rest = table[tuple(codes[variable] for variable in clique.variables[: clique.n_shared])]
            codes[list(variables)] = np.unravel_index(int(rest.argmax()), rest.shape)
    return codes, total

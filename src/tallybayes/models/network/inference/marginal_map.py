"""Marginal MAP: the most probable joint assignment of some nodes, summed over the others, exactly."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.errors import TooLargeError
from tallybayes.models.network.inference.clique_tree import CliqueTree, Scope
from tallybayes.models.network.inference.evidence import Evidence
from tallybayes.tally.factor import Name

if TYPE_CHECKING:
    from tallybayes.models.network.inference.network_inference import NetworkInference


def most_probable_of(
    found: NetworkInference, query_nodes: tuple[Name, ...], known: Evidence, do: Iterable[Name]
) -> tuple[dict[Name, Any], float]:
    """Return the most probable joint assignment of some nodes, and log p(assignment, evidence).

    A sum and a maximum do not change places, so the tree is made by taking out the nodes to be summed first. What is
    known is looked up, and nodes that nothing asked or known depends on are left out, before its sizes are checked.
    """
    held = {node: int(codes[0]) for node, codes in known.codes.items()}
    factors, offset = _factors(found, query_nodes, known, set(do), held)
    kept = {variable for scope, _ in factors for variable in scope}
    sizes = [size if variable in kept else 1 for variable, size in enumerate(found.sizes)]
    wanted = {found.index[node] for node in query_nodes if node not in held}
    scopes = [scope for scope, _ in factors if scope]
    try:
        tree = CliqueTree(sizes, scopes, list(found.levels), last=wanted)
    except TooLargeError as error:
        reason = str(error).split("\n", maxsplit=1)[0]
        raise TooLargeError(
            f"the most probable assignment of {len(query_nodes)} of {len(found.levels)} nodes: {reason}\n"
            "    Pass fewer nodes, all of them (nodes=None), or more evidence in given=."
        ) from None
    codes, log_joint = _best(tree, factors, wanted)
    levels = {node: found.levels[node][held.get(node, int(codes[found.index[node]]))] for node in query_nodes}
    return levels, log_joint + offset


def _factors(
    found: NetworkInference, query_nodes: tuple[Name, ...], known: Evidence, do: set[Name], held: Mapping[Name, int]
) -> tuple[list[tuple[Scope, np.ndarray]], float]:
    """Return the log factors of relevant nodes reduced by the evidence, and the log of the constant factor."""
    graph = found.graph.without_incoming_edges(found.nodes_to_cut(do))
    relevant = graph.ancestors([*query_nodes, *known.codes, *known.likelihoods, *known.cells])
    likelihoods, offset = found.likelihoods(known, slice(0, 1), do)

    def parts() -> Iterator[tuple[Scope, np.ndarray]]:
        with np.errstate(divide="ignore"):
            for node in found.levels:
                if node in relevant and node not in do:
                    yield found.scope((*graph.parents[node], node)), np.log(found.tables[node])
            for item in likelihoods:
                yield item.scope, (item.table if item.logarithmic else np.log(item.table))[..., 0]

    fixed = {found.index[node]: code for node, code in held.items()}
    factors = []
    for scope, table in parts():
        place = tuple(fixed.get(variable, slice(None)) for variable in scope)
        factors.append((tuple(variable for variable in scope if variable not in fixed), table[place]))
    return factors, float(offset[0])


def _best(tree: CliqueTree, factors: list[tuple[Scope, np.ndarray]], wanted: set[int]) -> tuple[np.ndarray, float]:
    """Sums, then maxima, on the way up; the levels at the maxima on the way down."""
    tables = [np.zeros(clique.shape) for clique in tree.cliques]
    total = 0.0
    for scope, table in factors:
        if scope:
            number = tree.home(scope)
            tables[number] += tree._spread(number, scope, table[..., None])[..., 0]
        else:
            total += float(table)
    for number in reversed(range(len(tables))):
        clique = tree.cliques[number]
        last = tuple(range(clique.n_shared, len(clique.shape)))
        summed = tuple(axis for axis in last if clique.variables[axis] not in wanted)
        tables[number] = np.logaddexp.reduce(tables[number], axis=summed, keepdims=True) if summed else tables[number]
        message = tables[number].max(axis=last)
        if clique.above < 0:
            total += float(message)
            continue
        outer = clique.variables[: clique.n_shared]
        tables[clique.above] += tree._spread(clique.above, outer, message[..., None])[..., 0]
    codes = np.zeros(len(tree.sizes), dtype=np.intp)
    for clique, table in zip(tree.cliques, tables, strict=True):
        own = clique.variables[clique.n_shared :]
        if wanted.intersection(own):  # then all that it shares is wanted, too, and was found above
            rest = table[tuple(codes[variable] for variable in clique.variables[: clique.n_shared])]
            codes[list(own)] = np.unravel_index(int(rest.argmax()), rest.shape)
    return codes, total

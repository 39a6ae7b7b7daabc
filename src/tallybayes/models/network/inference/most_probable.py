"""Variable elimination: the most probable assignment of nodes (MPE, or marginal MAP), and samples of all nodes."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tallybayes.errors import TooLargeError
from tallybayes.models.network.inference.evidence import Evidence
from tallybayes.models.network.inference.small_networks import broadcast
from tallybayes.models.network.inference.triangulation import find_order
from tallybayes.tally.factor import Name

if TYPE_CHECKING:
    from tallybayes.models.network.inference.network_inference import NetworkInference

LogFactor = tuple[tuple[int, ...], np.ndarray]  # variables, and logarithms with one axis for each


class _Bucket(NamedTuple):
    """The product of the factors of an eliminated variable: logarithms over later variables and, last, itself."""

    variable: int
    others: tuple[int, ...]
    table: np.ndarray


def most_probable_levels(
    inference: NetworkInference, query_nodes: tuple[Name, ...], evidence: Evidence
) -> tuple[dict[Name, Any], float]:
    """Return the most probable joint assignment of some nodes, or all, and log p(assignment, evidence).

    Sums and maxima do not commute, so that the nodes that are summed over are eliminated first. Before the size is
    checked, factors are reduced by the evidence, and nodes without influence on the query or the evidence are removed.
    """
    observed = {node: int(codes[0]) for node, codes in evidence.codes.items()}
    query = {inference.index[node]: node for node in query_nodes if node not in observed}
    factors, offset = _reduced_factors(inference, query_nodes, evidence)
    try:
        order = (
            inference.order_with() if len(query_nodes) == len(inference.levels) else _order(inference, factors, query)
        )
    except TooLargeError as error:
        reason = str(error).split("\n", maxsplit=1)[0]
        raise TooLargeError(
            f"the most probable assignment of {len(query_nodes)} of {len(inference.levels)} nodes: {reason}\n"
            "    Pass fewer nodes, all of them (nodes=None), or more evidence in given=."
        ) from None
    buckets, log_joint = _eliminate(factors, order, query)
    chosen = [bucket for bucket in buckets if bucket.variable in query]
    found = _trace_back(chosen, 1, lambda logs: logs.argmax(axis=-1))
    observed |= {query[variable]: int(codes[0]) for variable, codes in found.items()}
    return {node: inference.levels[node][observed[node]] for node in query_nodes}, log_joint + offset


def sample_levels(
    inference: NetworkInference, evidence: Evidence, n: int, rng: np.random.Generator
) -> dict[Name, np.ndarray]:
    """Sample all discrete nodes given the evidence of one row: codes of shape (n,)."""

    def draw(ends: np.ndarray) -> np.ndarray:
        return np.asarray((rng.random((n, 1)) * ends[:, -1:] >= ends[:, :-1]).sum(axis=1))

    factors, _ = _reduced_factors(inference, tuple(inference.levels), evidence)
    buckets, _ = _eliminate(factors, inference.order_with())
    cumulative = [bucket._replace(table=_cumulative_sums(bucket.table)) for bucket in buckets]
    found = _trace_back(cumulative, n, draw)
    observed = {node: np.repeat(codes, n) for node, codes in evidence.codes.items()}
    return {node: observed[node] if node in observed else found[inference.index[node]] for node in inference.levels}


def _cumulative_sums(logs: np.ndarray) -> np.ndarray:
    """Return cumulative sums along the last axis of numbers given by their logarithms, up to a factor."""
    largest = logs.max(axis=-1, keepdims=True)
    return np.cumsum(np.exp(logs - np.where(np.isneginf(largest), 0.0, largest)), axis=-1)


def _order(inference: NetworkInference, factors: list[LogFactor], last: Iterable[int]) -> list[int]:
    """Return an elimination order of the variables of some factors; some are eliminated last."""
    used = {variable for scope, _ in factors for variable in scope}
    sizes = [size if variable in used else 1 for variable, size in enumerate(inference.sizes)]
    return find_order(sizes, [scope for scope, _ in factors if scope], list(inference.levels), last)


def _eliminate(
    factors: list[LogFactor], order: Sequence[int], maximized: Container[int] = ()
) -> tuple[list[_Bucket], float]:
    """Eliminate all variables of some factors, by maxima or sums; return their buckets, and the log of the result."""
    rank = {variable: k for k, variable in enumerate(order)}
    waiting: dict[int, list[LogFactor]] = {variable: [] for variable in order}
    buckets = []
    total = 0.0

    def add(scope: tuple[int, ...], table: np.ndarray) -> None:
        nonlocal total
        if scope:
            waiting[min(scope, key=rank.__getitem__)].append((scope, table))
        else:
            total += float(table)

    for scope, table in factors:
        add(scope, table)
    for variable, own in waiting.items():
        if own:
            others = sorted({other for scope, _ in own for other in scope} - {variable})
            product = sum(broadcast(scope, table, [*others, variable]) for scope, table in own)
            buckets.append(_Bucket(variable, tuple(others), np.asarray(product)))
            reduced = np.maximum if variable in maximized else np.logaddexp
            add(tuple(others), reduced.reduce(buckets[-1].table, axis=-1))
    return buckets, total


def _reduced_factors(
    inference: NetworkInference, query_nodes: tuple[Name, ...], evidence: Evidence
) -> tuple[list[LogFactor], float]:
    """Return the log factors of relevant nodes reduced by the evidence, and the log of the constant factor."""
    graph = inference.graph
    relevant = graph.ancestors([*query_nodes, *evidence.codes, *evidence.likelihoods, *evidence.cells])
    likelihoods, offset = inference.likelihoods(evidence)
    fixed = {inference.index[node]: int(codes[0]) for node, codes in evidence.codes.items()}
    with np.errstate(divide="ignore"):
        tables = [np.log(inference.tables[node]) for node in inference.levels if node in relevant]
    scopes = [inference.scope((*graph.parents[node], node)) for node in inference.levels if node in relevant]
    factors = [*zip(scopes, tables, strict=True), *((scope, logs[0]) for scope, logs in likelihoods)]
    reduced = [
        (
            tuple(variable for variable in scope if variable not in fixed),
            table[tuple(fixed.get(variable, slice(None)) for variable in scope)],
        )
        for scope, table in factors
    ]
    return reduced, float(offset[0])


def _trace_back(
    buckets: Sequence[_Bucket], n: int, choose: Callable[[np.ndarray], np.ndarray]
) -> dict[int, np.ndarray]:
    """Choose the levels of all variables, from the last eliminated one to the first: codes of shape (n,)."""
    codes: dict[int, np.ndarray] = {}
    for variable, others, table in reversed(buckets):
        logs = table[tuple(codes[other] for other in others)]
        codes[variable] = choose(np.broadcast_to(logs, (n, table.shape[-1])))
    return codes

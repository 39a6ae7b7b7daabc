"""Forward sampling and likelihood weighting, for queries too large for exact inference."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np

from tallybayes._utils.memory import available_memory
from tallybayes._utils.parameter_checks import random_generator
from tallybayes.errors import EstimateError, TooLargeError
from tallybayes.models.network.inference.evidence import Evidence
from tallybayes.models.network.inference.network_inference import NetworkInference
from tallybayes.models.network.inference.query_result import QueryResult, format_evidence
from tallybayes.tally.factor import Name
from tallybayes.typing import RandomState
from tallybayes.warnings import warn

_BATCH = 1 << 14  # draws per batch
_FEW = 100  # effective sample size below which a warning is issued

Codes = dict[Name, np.ndarray]


def query_by_sampling(
    inference: NetworkInference,
    query_nodes: tuple[Name, ...],
    evidence: Evidence,
    shown_evidence: Mapping[Any, Any],
    n_draws: int,
    random_state: RandomState,
) -> QueryResult:
    """Estimate p(query_nodes | evidence) by likelihood weighting (Fung and Chang 1990; Shachter and Peot 1990)."""
    levels = {node: inference.levels[node] for node in query_nodes}
    shape = tuple(map(len, levels.values()))
    needed, available = 24 * math.prod(shape), available_memory()
    if needed > available:
        raise TooLargeError.of("the result of the query", needed, available, "Query fewer nodes at a time.")
    observed = [*evidence.codes, *evidence.cells, *evidence.likelihoods]
    relevant = inference.graph.ancestors([*query_nodes, *observed])
    batches = sample_batches(inference, evidence, n_draws, random_generator(random_state), relevant)
    drawn = [(np.ravel_multi_index([codes[node] for node in query_nodes], shape), logs) for codes, logs in batches]
    combination, logs = map(np.concatenate, zip(*drawn, strict=True))
    if np.isneginf(logs).all():
        raise EstimateError(
            f"none of {n_draws:,} draws agrees with {format_evidence(shown_evidence)}: the evidence is impossible, or "
            "too improbable.\n    Increase n_draws, pass less evidence, or use inference='exact'."
        )
    weights = np.exp(logs - logs.max())
    weight_sums = np.bincount(combination, weights, math.prod(shape))
    square_sums = np.bincount(combination, weights**2, math.prod(shape))
    total = weight_sums.sum()
    p = weight_sums / total
    effective_size = float(total**2 / square_sums.sum())
    # Variance of a self-normalized estimate: Σ w² (1[level] − p)² over draws with the level and without it.
    squares = square_sums * (1 - p) ** 2 + (square_sums.sum() - square_sums) * p**2
    errors = np.where(squares > 0, np.sqrt(squares) / total, 1 / effective_size).reshape(shape)
    errors.setflags(write=False)
    if effective_size < _FEW:
        warn(
            f"the effective size of {n_draws:,} draws is {effective_size:.0f}, because few agree with "
            f"{format_evidence(shown_evidence)}: the standard errors are unreliable.\n    Increase n_draws."
        )
    return QueryResult(
        query_nodes,
        levels,
        p.reshape(shape),
        shown_evidence,
        standard_errors=errors,
        n_draws=n_draws,
        effective_size=effective_size,
    )


def sample_batches(
    inference: NetworkInference,
    evidence: Evidence,
    n: int,
    rng: np.random.Generator,
    nodes: Collection[Name] | None = None,
) -> Iterator[tuple[Codes, np.ndarray]]:
    """Yield batches of forward samples of the discrete nodes, and the log weight of each draw given the evidence.

    Parameters
    ----------
    inference : NetworkInference
    evidence : Evidence
        Of one row, with the values of interventions.
    n : int
    rng : Generator
    nodes : nodes, optional
        Nodes to sample, with their ancestors; None samples all.
    """
    cells = {node: of_node for node, of_node in evidence.cells.items() if node not in inference.interventions}
    log_densities = {node: inference.leaf_log_prob(node, of_node)[0] for node, of_node in cells.items()}
    cumulative = {node: np.cumsum(table, axis=-1) for node, table in inference.tables.items()}
    undefined = {node: rows for node, rows in inference.undefined_rows().items() if node in cumulative | log_densities}
    order = [node for node in inference.graph.nodes if nodes is None or node in nodes]

    def visit(node: Name, codes: Codes, logs: np.ndarray) -> None:
        """Draw an unobserved node into `codes`, or add the log probability of an observed one to `logs`."""
        size = len(logs)
        if node in evidence.codes:
            codes[node] = np.full(size, evidence.codes[node][0])
        above = tuple(codes[name] for name in inference.graph.parents[node])
        if node in undefined:
            _require_defined(inference, node, undefined[node][above] & ~np.isneginf(logs), above)
        with np.errstate(divide="ignore"):
            if node in log_densities:
                logs += log_densities[node][inference.group(node, codes, size)]
            elif node in evidence.codes:
                logs += np.log(inference.tables[node][(*above, codes[node])])
            elif node in cumulative:
                ends = np.broadcast_to(cumulative[node][above], (size, len(inference.levels[node])))
                codes[node] = (rng.random((size, 1)) * ends[:, -1:] >= ends[:, :-1]).sum(axis=1)
            if node in evidence.likelihoods:
                logs += np.log(evidence.likelihoods[node])[codes[node]]

    for start in range(0, n, _BATCH):
        size = min(_BATCH, n - start)
        codes: Codes = {}
        logs = np.zeros(size)
        for node in order:
            visit(node, codes, logs)
        yield codes, logs


def _require_defined(
    inference: NetworkInference, node: Name, undefined: np.ndarray, parent_codes: tuple[np.ndarray, ...]
) -> None:
    """Raise EstimateError if a possible draw needs an undefined row of a CPT."""
    if undefined.any():
        first = int(undefined.argmax())
        raise inference.undefined_row_error(node, [int(codes[first]) for codes in parent_codes])


def sample_discrete_nodes(inference: NetworkInference, evidence: Evidence, n: int, rng: np.random.Generator) -> Codes:
    """Sample all discrete nodes given interventions alone: all weights are equal."""
    batches = [codes for codes, _ in sample_batches(inference, evidence, n, rng)]
    return {
        node: np.concatenate([np.zeros(0, dtype=np.intp), *(batch[node] for batch in batches)])
        for node in inference.levels
    }

"""Forward sampling and likelihood weighting, for queries too large for exact inference."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np

from tallybayes._utils.memory import available_memory
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
    rng = np.random.default_rng(random_state)
    log_scale = -np.inf  # the largest log weight so far, by which weights are divided
    weight_sums = np.zeros(math.prod(shape))
    square_sums = np.zeros(math.prod(shape))
    relevant = inference.graph.ancestors([*query_nodes, *observed])
    for codes, logs in sample_batches(inference, evidence, n_draws, rng, relevant):
        largest = max(log_scale, float(logs.max()))
        if np.isneginf(largest):
            continue
        rescale = math.exp(log_scale - largest) if np.isfinite(log_scale) else 0.0
        log_scale = largest
        weights = np.exp(logs - largest)
        combination = np.ravel_multi_index([codes[node] for node in query_nodes], shape)
        weight_sums = weight_sums * rescale + np.bincount(combination, weights, len(weight_sums))
        square_sums = square_sums * rescale**2 + np.bincount(combination, weights**2, len(square_sums))
    total = weight_sums.sum()
    if not total > 0:
        raise EstimateError(
            f"none of {n_draws:,} draws agrees with {format_evidence(shown_evidence)}: the evidence is impossible, or "
            "too improbable.\n    Increase n_draws, pass less evidence, or use inference='exact'."
        )
    p = weight_sums / total
    effective_size = float(total**2 / square_sums.sum())
    # Variance of a self-normalized estimate: Σ w² (1[level] − p)² over draws with the level and without it.
    squares = square_sums * (1 - p) ** 2 + (square_sums.sum() - square_sums) * p**2
    errors = np.where(squares > 0, np.sqrt(squares) / total, 1 / effective_size).reshape(shape)
    errors.setflags(write=False)
    if effective_size < _FEW:
        warn(
            f"the effective size of {n_draws:,} draws is {effective_size:.0f}, because few agree with "
            f"{format_evidence(shown_evidence)}: the standard errors are unreliable. Increase n_draws.",
            UserWarning,
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
    order = [node for node in inference.graph.nodes if nodes is None or node in nodes]
    cells = evidence.cells.keys() - inference.interventions
    scored = {node for node in order if node in inference.tables or node in cells}
    sampler = _ForwardSampler(inference, evidence, rng, scored)
    for start in range(0, n, _BATCH):
        size = min(_BATCH, n - start)
        codes: Codes = {}
        logs = np.zeros(size)
        for node in order:
            if node in evidence.codes:
                codes[node] = np.full(size, evidence.codes[node][0])
            if node in scored:
                sampler.visit(node, inference.graph.parents[node], codes, logs)
        yield codes, logs


class _ForwardSampler:
    """Draws or weights one node after the other, parents first."""

    def __init__(
        self, inference: NetworkInference, evidence: Evidence, rng: np.random.Generator, nodes: set[Name]
    ) -> None:
        self.inference = inference
        self.evidence = evidence
        self.rng = rng
        self.cumulative = {n: np.cumsum(inference.tables[n], axis=-1) for n in nodes if n in inference.tables}
        self.log_densities = {n: inference.leaf_log_prob(n, c)[0] for n, c in evidence.cells.items() if n in nodes}
        self.undefined = inference.undefined_rows()

    def visit(self, node: Name, parents: tuple[Name, ...], codes: Codes, logs: np.ndarray) -> None:
        """Draw an unobserved node into `codes`, or add the log probability of an observed one to `logs`."""
        inference, evidence = self.inference, self.evidence
        above = tuple(codes[name] for name in parents)
        if node in self.undefined:
            undefined = np.flatnonzero(self.undefined[node][above] & ~np.isneginf(logs))
            if len(undefined):
                raise inference.undefined_row_error(node, [int(code[undefined[0]]) for code in above])
        with np.errstate(divide="ignore"):
            if node in self.log_densities:
                logs += self.log_densities[node][inference.group(node, codes, len(logs))]
            elif node in evidence.codes:
                logs += np.log(inference.tables[node][(*above, codes[node])])
            else:
                ends = np.broadcast_to(self.cumulative[node][above], (len(logs), len(inference.levels[node])))
                codes[node] = (self.rng.random((len(logs), 1)) * ends[:, -1:] >= ends[:, :-1]).sum(axis=1)
            if node in evidence.likelihoods:
                logs += np.log(evidence.likelihoods[node])[codes[node]]


def sample_discrete_nodes(inference: NetworkInference, evidence: Evidence, n: int, rng: np.random.Generator) -> Codes:
    """Sample all discrete nodes given interventions alone: all weights are equal."""
    batches = [codes for codes, _ in sample_batches(inference, evidence, n, rng)]
    return {
        node: np.concatenate([np.zeros(0, dtype=np.intp), *(batch[node] for batch in batches)])
        for node in inference.levels
    }

"""Forward sampling and likelihood weighting, for queries too large for exact inference."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from tallybayes._utils.memory import available_memory
from tallybayes.errors import EstimateError, TooLargeError
from tallybayes.models.network.inference.evidence import Evidence
from tallybayes.models.network.inference.network_inference import NetworkInference
from tallybayes.models.network.inference.query_result import QueryResult, title_of
from tallybayes.tally.factor import Name
from tallybayes.warnings import warn

_DRAWS = 1 << 14  # per batch
_FEW = 100  # effective sample size below which a warning is issued

Codes = dict[Name, np.ndarray]


def query_by_sampling(
    found: NetworkInference,
    query_nodes: tuple[Name, ...],
    known: Evidence,
    do: Iterable[Name],
    shown_evidence: Mapping[Any, Any],
    n_draws: int,
    random_state: Any,
) -> QueryResult:
    """Estimate p(query_nodes | evidence) by likelihood weighting (Fung and Chang 1990; Shachter and Peot 1990)."""
    levels = {node: found.levels[node] for node in query_nodes}
    shape = tuple(map(len, levels.values()))
    needed, here = 24 * math.prod(shape), available_memory()
    if needed > here:
        raise TooLargeError.of("the answer", needed, here, "Ask for fewer nodes at a time.")
    observed = [*known.codes, *known.cells, *known.likelihoods]
    wanted = found.graph.without_incoming_edges(found.nodes_to_cut(do)).ancestors([*query_nodes, *observed])
    rng, top = np.random.default_rng(random_state), -np.inf
    first, second = np.zeros(math.prod(shape)), np.zeros(math.prod(shape))  # sums of weights and of their squares
    for codes, logs in draws(found, known, do, n_draws, rng, wanted):
        here_top = max(top, float(logs.max()))
        if np.isneginf(here_top):
            continue
        scale = math.exp(top - here_top) if np.isfinite(top) else 0.0
        top, weights = here_top, np.exp(logs - here_top)
        place = np.ravel_multi_index([codes[node] for node in query_nodes], shape)
        first = first * scale + np.bincount(place, weights, len(first))
        second = second * scale**2 + np.bincount(place, weights**2, len(second))
    total = first.sum()
    if not total > 0:
        raise EstimateError(
            f"none of {n_draws:,} draws agrees with {title_of(shown_evidence)}: the evidence is impossible, or too "
            "improbable.\n    Increase n_draws, pass less evidence, or use inference='exact'."
        )
    p, size = first / total, float(total**2 / second.sum())
    # Variance of a self-normalized estimate: Σ w² (1[level] − p)² over draws with the level and without it.
    squares = second * (1 - p) ** 2 + (second.sum() - second) * p**2
    errors = np.where(squares > 0, np.sqrt(squares) / total, 1 / size)
    if size < _FEW:
        warn(
            f"the effective size of {n_draws:,} draws is {size:.0f}, because few agree with "
            f"{title_of(shown_evidence)}: the standard errors are unreliable. Increase n_draws.",
            UserWarning,
        )
    errors = errors.reshape(shape)
    errors.setflags(write=False)
    return QueryResult(
        query_nodes,
        levels,
        p.reshape(shape),
        shown_evidence,
        standard_errors=errors,
        n_draws=n_draws,
        effective_size=size,
    )


def draws(
    found: NetworkInference,
    known: Evidence,
    do: Iterable[Name],
    n: int,
    rng: np.random.Generator,
    wanted: Iterable[Name] | None = None,
) -> Iterator[tuple[Codes, np.ndarray]]:
    """Yield batches of forward samples of the discrete nodes, and the log weight of each draw given the evidence.

    Parameters
    ----------
    found : NetworkInference
    known : Evidence
        Of one row, with the values of interventions.
    do : nodes of interventions
    n : int
    rng : Generator
    wanted : nodes, optional
        Nodes to sample, with their ancestors; None samples all.
    """
    done, chosen = found.nodes_to_cut(do), None if wanted is None else set(wanted)
    cut = found.graph.without_incoming_edges(done)
    nodes = [node for node in cut.nodes if chosen is None or node in chosen]
    ends = {node: np.cumsum(found.tables[node], axis=-1) for node in nodes if node in found.tables}
    cells = {node: found.leaf_logs(node, column)[0] for node, column in known.cells.items() if node not in done}
    lost = found.unknown_lines()
    for start in range(0, n, _DRAWS):
        size = min(_DRAWS, n - start)
        codes: Codes = {}
        logs = np.zeros(size)
        for node in nodes:
            if node in known.codes:
                codes[node] = np.full(size, known.codes[node][0])
            if node in done or (node in found.leaves and node not in cells):
                continue
            above = tuple(codes[name] for name in cut.parents[node])
            unknown = np.flatnonzero(lost[node][above] & ~np.isneginf(logs)) if node in lost else np.zeros(0, np.intp)
            if len(unknown):
                raise found.undefined_row_error(node, [int(code[unknown[0]]) for code in above])
            with np.errstate(divide="ignore"):
                if node in cells:
                    logs += cells[node][found.group(node, codes, size)]
                elif node in known.codes:
                    logs += np.log(found.tables[node][(*above, codes[node])])
                else:
                    until = np.broadcast_to(ends[node][above], (size, len(found.levels[node])))
                    codes[node] = (rng.random((size, 1)) * until[:, -1:] >= until[:, :-1]).sum(axis=1)
                if node in known.likelihoods:
                    logs += np.log(known.likelihoods[node])[codes[node]]
        yield codes, logs


def draw_labels(
    found: NetworkInference, known: Evidence, do: Iterable[Name], n: int, rng: np.random.Generator
) -> Codes:
    """Sample all discrete nodes given interventions alone: all weights are equal."""
    parts = [codes for codes, _ in draws(found, known, do, n, rng)]
    return {
        node: np.concatenate([np.zeros(0, dtype=np.intp), *(part[node] for part in parts)]) for node in found.levels
    }

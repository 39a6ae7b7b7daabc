"""Queries to a Bayesian network: posteriors, MPE and MAP assignments, probabilities and samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes._utils.string_options import StringOptions
from tallybayes.data.data_frames import as_frame
from tallybayes.data.indicator_columns import with_absences
from tallybayes.errors import DataError, EstimateError, ImpossibleError, TooLargeError
from tallybayes.estimation.em.em_loop import is_integer_at_least
from tallybayes.estimation.factor_sampling import sample_factor
from tallybayes.families._shared.joint_gaussian import JointGaussian
from tallybayes.models.inputs.features import one_row
from tallybayes.models.network.analysis.d_separation import listed
from tallybayes.models.network.inference.clique_tree import Propagated
from tallybayes.models.network.inference.continuous_query import continuous_query_result, is_normal
from tallybayes.models.network.inference.evidence import Evidence, read_evidence
from tallybayes.models.network.inference.likelihood_weighting import draw_labels, query_by_sampling
from tallybayes.models.network.inference.marginal_map import most_probable_of
from tallybayes.models.network.inference.network_inference import NetworkInference
from tallybayes.models.network.inference.query_result import MostProbableAssignment, QueryResult
from tallybayes.models.network.inference.row_predictions import require_labels
from tallybayes.tally.domain import labels_of
from tallybayes.tally.factor import Name
from tallybayes.typing import Names, RandomState

if TYPE_CHECKING:
    from tallybayes.models.network.bayesian_network import BayesianNetwork

_INFERENCE = StringOptions(("exact", "sampling"))


def query(
    model: BayesianNetwork,
    nodes: Names,
    given: Mapping[Any, Any] | None = None,
    *,
    do: Mapping[Any, Any] | None = None,
    inference: str = "exact",
    n_draws: int = 200_000,
    random_state: RandomState = None,
) -> QueryResult:
    """Compute the posterior distribution p(nodes | given), exactly or by sampling.

    Parameters
    ----------
    nodes : name, or sequence of names
        Discrete or Gaussian nodes; of several, their joint distribution.
    given : mapping from node to evidence, optional
        A level, or the value of a continuous node. Soft (virtual) evidence is a mapping from every level to its
        likelihood, up to a factor. For levels that are strings, True and False stand for the only level that reads
        true and false, or yes and no, in upper or lower case.
    do : mapping from node to level, optional
        Interventions: the edges into these nodes are removed.
    inference : {"exact", "sampling"}, default "exact"
        ``"sampling"`` is likelihood weighting, for networks that are too large for exact inference. Less probable
        evidence needs more draws.
    n_draws : int, default 200,000
    random_state : int, Generator or None
        For sampling.

    Returns
    -------
    QueryResult
        A mapping from levels, or tuples of levels, to probabilities; for Gaussian nodes with ``mean``, ``std``,
        ``pdf``, ``cdf`` and ``quantile``. With ``inference="sampling"`` it has ``standard_errors`` and
        ``effective_size``; a small effective size raises a warning.

    Examples
    --------
    >>> import tallybayes as tb
    >>> barometer = tb.BayesianNetwork.from_tables(
    ...     {"glass": ["storm"]}, {"storm": ["no", "yes"], "glass": ["high", "low"]},
    ...     {"storm": [0.9, 0.1], "glass": [[0.9, 0.1], [0.2, 0.8]]})
    >>> round(barometer.query("storm", {"glass": "low"})["yes"], 3)       # observing a low glass
    0.471
    >>> round(barometer.query("storm", do={"glass": "low"})["yes"], 3)    # setting it has no effect
    0.1
    """
    query_nodes = tuple(listed(nodes))
    given = one_row(given)
    found = model._inference.intervened(do)
    found.structure.require(query_nodes)
    _INFERENCE.check("inference", inference)
    measured = [node for node in query_nodes if found.is_measured(node)]
    if measured and all(is_normal(found, node) for node in measured):
        _require_rows(model, tuple(measured))
        return _query_measured(found, query_nodes, given, do, inference)
    require_labels(model, query_nodes)
    _check_asked(query_nodes)
    if inference == "sampling":
        if not is_integer_at_least(n_draws):
            raise DataError.wrong_type("n_draws", repr(n_draws), "a whole number of at least 1")
        known, shown_evidence = read_evidence(found, given, do), display_evidence(given, do)
        return query_by_sampling(found, query_nodes, known, do or (), shown_evidence, int(n_draws), random_state)
    _, answer = run_query(found, query_nodes, given, do, together=query_nodes)
    table = answer.marginal(found.scope(query_nodes))[..., 0]
    return QueryResult(
        query_nodes, {node: found.levels[node] for node in query_nodes}, table, display_evidence(given, do)
    )


def _require_rows(model: BayesianNetwork, query_nodes: tuple[Name, ...]) -> None:
    """Raise EstimateError if a continuous node has no observed rows, so that its parameters are undefined."""
    nodes = model._estimated_network.nodes if model._fixed_parameters is None else {}
    unseen = [node for node in query_nodes if node in nodes and not np.any(nodes[node].flat().group_weights())]
    if unseen:
        beside = " together with its measured parents" if nodes[unseen[0]].inputs else ""
        raise EstimateError(
            f"no row has {unseen[0]!r}{beside}, so its distribution is undefined.\n    Fit rows that do."
        )


def _query_measured(
    found: NetworkInference, query_nodes: tuple[Name, ...], given: Any, do: Any, inference: str
) -> QueryResult:
    """Query continuous nodes, with or without discrete ones: a mixture over the discrete nodes they depend on."""
    _check_asked(query_nodes)
    measured = [node for node in query_nodes if found.is_measured(node)]
    if inference != "exact":
        raise DataError(
            f"inference={inference!r} is for discrete nodes, and {measured[0]!r} is continuous.\n"
            "    Use inference='exact', or sample."
        )
    known = [node for node in query_nodes if node in (given or {}) or node in (do or {})]
    if known:
        raise DataError(
            f"node {known[0]!r} is in the query and in the evidence; expected one of them.\n    Remove one of the two."
        )
    above = {name for node in measured for name in found.graph.parents[found.leaf_of(node)]}
    labels = [name for name in found.levels if name in above or name in query_nodes]
    row, answer = run_query(found, query_nodes, given, do, together=labels)
    shares = found.shares(labels, answer, row, slice(0, 1))[:, 0]
    return continuous_query_result(found, query_nodes, labels, shares, row, display_evidence(given, do))


def most_probable(
    model: BayesianNetwork,
    given: Mapping[Any, Any] | None = None,
    nodes: Names | None = None,
    *,
    do: Mapping[Any, Any] | None = None,
) -> MostProbableAssignment:
    """Compute the most probable joint assignment of nodes given the evidence (MPE, or marginal MAP).

    It may differ from the most probable level of each node; that of some nodes may differ from that of all nodes.

    Parameters
    ----------
    given, do
        As for `query`.
    nodes : name, or sequence of names, optional
        None takes all nodes (MPE). Marginal MAP sums over the other nodes; sums come before maxima, so that it may
        need more memory than MPE, and raises TooLargeError if it needs too much.

    Returns
    -------
    MostProbableAssignment
        A mapping from node to level.

    Examples
    --------
    >>> import tallybayes as tb
    >>> weather = tb.BayesianNetwork.from_tables(
    ...     {"wind": ["sky"]}, {"sky": ["sun", "rain"], "wind": ["none", "some", "gale"]},
    ...     {"sky": [0.4, 0.6], "wind": [[1.0, 0.0, 0.0], [0.3, 0.4, 0.3]]})
    >>> weather.most_probable()
    most probable assignment, p = 0.4
      sky   'sun'
      wind  'none'
    >>> weather.most_probable(nodes="sky")
    most probable assignment, summed over the others, p = 0.6
      sky  'rain'
    """
    given = one_row(given)
    found = model._inference.intervened(do)
    if nodes is not None:
        query_nodes = tuple(listed(nodes))
        require_labels(model, query_nodes)
        _check_asked(query_nodes)
        known, answer = run_query(found, query_nodes, given, do)
        levels, log_joint = most_probable_of(found, query_nodes, known, do or ())
        log_share = min(0.0, log_joint - float(answer.log_likelihood[0]))
        return MostProbableAssignment(
            levels, log_share, display_evidence(given, do), some=len(query_nodes) < len(found.levels)
        )
    known, answer = run_query(found, found.levels, given, do)
    compiled, (likelihoods, offset) = found.compile(do or ()), found.likelihoods(known, slice(0, 1), do or ())
    codes, log_probability = compiled.tree.most_probable(compiled.potentials, likelihoods, 1)
    levels = {node: found.levels[node][int(code)] for node, code in zip(found.levels, codes[:, 0], strict=True)}
    log_share = log_probability[0] + offset[0] - answer.log_likelihood[0]
    return MostProbableAssignment(levels, float(log_share), display_evidence(given, do))


def probability(model: BayesianNetwork, given: Mapping[Name, Any], *, do: Mapping[Any, Any] | None = None) -> float:
    """Compute p(given): a density if it has continuous nodes; 0 if it is impossible.

    Parameters
    ----------
    given, do
        As for `query`.

    Returns
    -------
    float
    """
    given = one_row(given)
    found = model._inference.intervened(do)
    known = read_evidence(found, given, do)
    ((rows, answer),) = found.batches(known, do or ())
    found.check_defined(answer, known, rows, None, do or ())
    return float(np.exp(answer.log_likelihood[0]))


def sample(
    model: BayesianNetwork,
    n: int = 1,
    given: Mapping[Any, Any] | None = None,
    *,
    do: Mapping[Any, Any] | None = None,
    random_state: RandomState = None,
) -> Any:
    """Draw rows from the network, or from its posterior given evidence.

    Parameters
    ----------
    n : int, default 1
    given, do
        As for `query`.
    random_state : int, Generator or None

    Returns
    -------
    A data frame of the kind the network was fitted on, else a dict from node to an array of shape (n,)
        Columns, as `fit` takes them.

    Examples
    --------
    >>> import tallybayes as tb
    >>> coin = tb.BayesianNetwork.from_tables({"coin": []}, {"coin": ["heads", "tails"]}, {"coin": [0.5, 0.5]})
    >>> coin.sample(3, random_state=0)
    {'coin': array(['tails', 'heads', 'heads'], dtype='<U5')}
    """
    if not isinstance(n, int | np.integer) or n < 0:
        raise DataError.wrong_type("n", repr(n), "a whole number of at least 0")
    rng = np.random.default_rng(random_state)
    given = one_row(given)
    found = model._inference.intervened(do)
    known = read_evidence(found, given, do)
    try:
        _, answer = run_query(found, found.structure.nodes, given, do)
        codes = dict(zip(found.levels, answer.sample(int(n), rng), strict=True))
    except TooLargeError:
        if given:
            raise
        codes = draw_labels(found, known, do or (), int(n), rng)  # forward sampling is exact here
    measured = {**(given or {}), **(do or {})}
    out: dict[Name, np.ndarray] = {}
    linked: dict[Name, np.ndarray] = {}
    for node in found.structure.nodes:
        if node in found.levels:
            out[node] = labels_of(found.domains[node].levels, None)[codes[node]]
        elif node in measured:
            whole = found.presence.get(node) is None
            out[node] = np.repeat(np.asarray([measured[node]]) if whole else known.cells[node][:, 0], n, axis=0)
        elif any(node == beside and other in measured for other, beside in found.presence.items()):
            continue  # its missing-value indicator is determined
        elif node in found.component_index:
            leaf, place = found.component_index[node]
            if leaf not in linked:
                linked[leaf] = _draw_linked(found, leaf, known, codes, int(n), rng)
            out[node] = linked[leaf][:, place]
        else:
            group = found.group(node, codes, int(n))
            drawn = sample_factor(found.leaves[node], group, model._estimated_network.nodes[node].flat(), rng)
            out[node] = drawn if drawn.shape[1] > 1 else drawn[:, 0]
    return as_frame(with_absences(out) if found.presence else out, model._frame_library)


def _draw_linked(
    found: NetworkInference,
    leaf: Name,
    known: Evidence,
    codes: dict[Name, np.ndarray],
    n: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Draw connected continuous nodes jointly, given the discrete nodes and the evidence: (n, nodes)."""
    width = len(found.components[leaf].nodes)
    cells = np.repeat(known.cells.get(leaf, np.full((1, width), np.nan)), n, axis=0)
    return JointGaussian().draw(found.leaves[leaf].parameters, cells, found.group(leaf, codes, n), rng)


def _check_asked(query_nodes: tuple[Name, ...]) -> None:
    if not query_nodes or len(set(query_nodes)) < len(query_nodes):
        raise DataError(f"nodes is {query_nodes}; expected at least one node, and each once.")


def run_query(
    found: NetworkInference, nodes: Iterable[Name], given: Any, do: Any, together: Iterable[Name] = ()
) -> tuple[Evidence, Propagated]:
    """Propagate the evidence; raise an error if it is impossible, or the posterior of `nodes` is undefined."""
    known = read_evidence(found, given, do)
    ((rows, answer),) = found.batches(known, do or (), together=together)
    refuse_impossible(found, answer.log_likelihood[0], given, do)
    found.check_defined(answer, known, rows, nodes, do or ())
    return known, answer


def refuse_impossible(inference: NetworkInference, log_likelihood: float, given: Any, do: Any) -> None:
    """Raise ImpossibleError for evidence of probability 0, naming a minimal contradictory part of it."""
    if not np.isneginf(log_likelihood):
        return
    blamed = dict(given or {})
    for node in list(blamed):
        rest = {other: value for other, value in blamed.items() if other != node}
        ((_, answer),) = inference.batches(read_evidence(inference, rest, do), do or (), down=False)
        if np.isneginf(answer.log_likelihood[0]):
            blamed = rest
    raise ImpossibleError.of(display_evidence(blamed, do))


def display_evidence(given: Mapping[Any, Any] | None, do: Mapping[Name, Any] | None) -> dict[Any, Any]:
    """Return evidence and interventions as shown with a result."""
    return {**(given or {}), **{f"do({node})": value for node, value in (do or {}).items()}}

"""Predictions of a Bayesian network for many rows with any pattern of missing cells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from tallybayes.data.array_input import unmerged
from tallybayes.data.data_frames import as_frame, frame_kind
from tallybayes.data.table import Table
from tallybayes.errors import DataError
from tallybayes.estimation.scoring.bayes_rule import ClassPosterior, apply_bayes_rule
from tallybayes.families.categorical import Categorical
from tallybayes.families.estimates import read_estimate
from tallybayes.models.inputs.batching import predict_in_batches
from tallybayes.models.inputs.features import as_rows, check_keys, is_name, is_rows_of_mappings, warn_unobserved
from tallybayes.models.inputs.invalid_cells import answering, mask_invalid_cells
from tallybayes.models.inspection.information_criteria import weighted_sum
from tallybayes.models.network.analysis.d_separation import listed
from tallybayes.models.network.inference.evidence import (
    Evidence,
    read_evidence,
    read_rows,
    with_absent_levels,
    with_more,
)
from tallybayes.models.network.inference.query_result import NodePosteriors
from tallybayes.models.network.network_fit import named_weights, open_rows
from tallybayes.tally.domain import labels_of
from tallybayes.tally.factor import Name
from tallybayes.typing import Names, Rows, SampleWeights
from tallybayes.warnings import warn

if TYPE_CHECKING:
    from tallybayes.models.network.bayesian_network import BayesianNetwork


@predict_in_batches
@answering
def score_samples(model: BayesianNetwork, X: Rows, *, names: Iterable[Name] | None = None) -> np.ndarray:
    """Compute the log-likelihood of every row, summed over missing cells; −inf for an impossible row.

    Parameters
    ----------
    X, names
        As for `fit`; columns may be absent.

    Returns
    -------
    ndarray of shape (n,)
    """
    return _log_likelihood(model, _read(model, X, names))


def _log_likelihood(model: BayesianNetwork, known: Evidence) -> np.ndarray:
    """Return log p(evidence) of every row."""
    found = model._inference
    out = np.empty(known.n_rows)
    whole = known.whole(found.levels)
    if whole.any():
        out[whole] = found.log_joint(known, np.flatnonzero(whole))
    rest = known.take(np.flatnonzero(~whole))
    partly = np.empty(rest.n_rows)
    unsure = not read_estimate(model.estimate).has_prior
    for rows, answer in found.batches(rest, down=unsure, what="scoring", look_up=True):
        if unsure:
            found.check_defined(answer, rest, rows, None)
        partly[rows] = answer.log_likelihood
    out[~whole] = partly
    return out


@answering
def answer_node(model: BayesianNetwork, X: Any, node: Name) -> ClassPosterior:
    """log p(node | all other cells), (n, levels), and log p(these cells); impossible rows have what holds without them.

    A level at a time, by what each adds to the log probability of the row: however small, none is rounded to 0.
    """
    require_labels(model, [node])
    known, levels = _read(model, X, None, [node]), range(len(model._inference.levels[node]))

    def joint(rows: Evidence) -> np.ndarray:
        each = [rows._replace(codes={**rows.codes, node: np.full(rows.n_rows, level)}) for level in levels]
        return np.stack([_log_likelihood(model, one) for one in each], axis=-1)

    found = joint(known)
    impossible = np.isneginf(found).all(axis=1).any()
    return apply_bayes_rule(found, joint(Evidence(1, {}, {}, {}))[0] if impossible else np.zeros(len(levels)))


@answering
def log_likelihood(
    model: BayesianNetwork, X: Rows, *, sample_weight: SampleWeights = None, names: Iterable[Name] | None = None
) -> float:
    """Compute the log-likelihood of all rows, in nats.

    Parameters
    ----------
    X, sample_weight, names
        As for `fit`; columns may be absent.
    """
    weight = named_weights(open_rows(model, X, names), sample_weight)
    return weighted_sum(score_samples(model, X, names=names), weight)


@overload
def predict_proba(  # type: ignore[overload-overlap]
    model: BayesianNetwork,
    X: Rows,
    columns: Name,
    *,
    do: Mapping[Any, Any] | None = None,
    names: Iterable[Name] | None = None,
) -> np.ndarray: ...
@overload
def predict_proba(
    model: BayesianNetwork,
    X: Rows,
    columns: Iterable[Name] | None = None,
    *,
    do: Mapping[Any, Any] | None = None,
    names: Iterable[Name] | None = None,
) -> NodePosteriors: ...
@predict_in_batches
@answering
def predict_proba(
    model: BayesianNetwork,
    X: Rows,
    columns: Names | None = None,
    *,
    do: Mapping[Any, Any] | None = None,
    names: Iterable[Name] | None = None,
) -> Any:
    """Compute p(node | row) for many rows with any pattern of missing cells.

    Parameters
    ----------
    X : as for `fit`; columns may be absent
    columns : name, or sequence of names, optional
        The nodes to predict, from all other columns: their own cells are not looked at. None predicts the missing
        cells of all nodes, from everything that is known.
    do : mapping from node to level, optional
        Nodes that are set from outside in every row.
    names : sequence, optional
        The names of an array's columns.

    Returns
    -------
    ndarray of shape (n, levels) for a single name, else Posteriors
        A mapping from node to such arrays, with a flag for impossible rows, ``impossible``. Those get the
        probabilities that hold where nothing is known, and a warning.

    Examples
    --------
    >>> import tallybayes as tb
    >>> rows = {"rain": [0, 0, 0, 1, 1, 0], "wet": [1, 0, 0, 1, 1, 0]}
    >>> model = tb.BayesianNetwork({"wet": ["rain"]}).fit(rows)
    >>> model.predict_proba({"wet": [1, 0, None]}, "rain").round(2)
    array([[0.43, 0.57],
           [0.82, 0.18],
           [0.62, 0.38]])
    """
    query_nodes = list(model._inference.levels) if columns is None else listed(columns)
    require_labels(model, query_nodes)
    posteriors, _, log_likelihood = _predict(model, X, columns, query_nodes, do, names)
    if is_name(columns):
        return posteriors[columns]
    return NodePosteriors(posteriors, {node: model.levels_[node] for node in query_nodes}, log_likelihood)


@overload
def predict(
    model: BayesianNetwork,
    X: Rows,
    columns: Name,
    *,
    do: Mapping[Any, Any] | None = None,
    names: Iterable[Name] | None = None,
) -> np.ndarray: ...
@overload
def predict(
    model: BayesianNetwork,
    X: Rows,
    columns: Iterable[Name],
    *,
    do: Mapping[Any, Any] | None = None,
    names: Iterable[Name] | None = None,
) -> Any: ...
@predict_in_batches
@answering
def predict(
    model: BayesianNetwork,
    X: Rows,
    columns: Names,
    *,
    do: Mapping[Any, Any] | None = None,
    names: Iterable[Name] | None = None,
) -> Any:
    """Predict the most probable level of each node separately, or the mean of a continuous node.

    Parameters
    ----------
    X, columns, do, names
        As for `predict_proba`; columns may be measured nodes, too.

    Returns
    -------
    ndarray of shape (n,) for a single name, else a data frame of the kind of X, or a dict from node to such arrays

    Examples
    --------
    >>> import tallybayes as tb
    >>> rows = {"rain": [0, 0, 0, 1, 1, 0], "wet": [1, 0, 0, 1, 1, 0]}
    >>> model = tb.BayesianNetwork({"wet": ["rain"]}).fit(rows)
    >>> model.predict({"wet": [1, 0]}, "rain")
    array([1, 0])
    """
    query_nodes = listed(columns)
    model._inference.structure.require(query_nodes)
    out = _best(model, X, columns, query_nodes, do, names)
    return out[columns] if is_name(columns) else as_frame(out, frame_kind(X))


@predict_in_batches
@answering
def impute(
    model: BayesianNetwork, X: Rows, *, do: Mapping[Any, Any] | None = None, names: Iterable[Name] | None = None
) -> Any:
    """Impute missing cells with the prediction given the observed cells of the row.

    Parameters
    ----------
    X, do, names
        As for `predict_proba`.

    Returns
    -------
    A data frame of the kind of X, else a dict from node to arrays of shape (n,)

    Examples
    --------
    >>> import tallybayes as tb
    >>> rows = {"rain": [0, 0, 0, 1, 1, 0], "wet": [1, 0, 0, 1, 1, 0]}
    >>> model = tb.BayesianNetwork({"wet": ["rain"]}).fit(rows)
    >>> model.impute({"rain": [None, 0], "wet": [1, None]})
    {'rain': array([1, 0]), 'wet': array([1, 0])}
    """
    table = _asked(model, X, names)
    out = _best(model, table, None, list(model.graph_.nodes), do, names)
    table = with_absent_levels(model._inference.domains, table)
    for node in model._inference.levels:
        if node in table.columns and node not in (do or {}):
            out[node] = _keeping(table, node, out[node])
    return as_frame(out, frame_kind(X))


def _best(
    model: BayesianNetwork, X: Any, columns: Any, query_nodes: list[Name], do: Mapping[Any, Any] | None, names: Any
) -> dict[Name, np.ndarray]:
    """Return the most probable level, or the mean, of each node."""
    posteriors, means, _ = _predict(model, X, columns, query_nodes, do, names)
    domains = model._inference.domains
    labels = {node: labels_of(domains[node].levels, None)[found.argmax(axis=1)] for node, found in posteriors.items()}
    return {node: (labels | means)[node] for node in query_nodes}


def _predict(
    model: BayesianNetwork, X: Any, columns: Any, query_nodes: list[Name], do: Mapping[Any, Any] | None, names: Any
) -> tuple[dict[Name, np.ndarray], dict[Name, np.ndarray], np.ndarray]:
    """Return posteriors of discrete nodes, means of continuous nodes, and the log-likelihood of every row."""
    found, done = model._inference.intervened(do), do or {}
    known = _read(model, X, names, () if columns is None else query_nodes, do)
    posteriors = {
        node: np.empty((known.n_rows, len(found.levels[node]))) for node in query_nodes if node in found.levels
    }
    means: dict[Name, list[np.ndarray]] = {node: [] for node in query_nodes if found.is_measured(node)}
    log_likelihood = np.empty(known.n_rows)
    needed = [*query_nodes, *(found.presence[node] for node in query_nodes if node in found.presence)]
    for rows, answer in found.batches(known, done, what="predicting", look_up=True):
        log_likelihood[rows] = answer.log_likelihood
        found.check_defined(answer, known, rows, needed, done)
        for node, table in posteriors.items():
            table[rows] = found.shares([node], answer, known, rows).T
        for node, parts in means.items():
            parts.append(found.expected(node, answer, known, rows))
    joined = {node: np.concatenate(parts) if parts else np.zeros(0) for node, parts in means.items()}
    _mend_impossible(model, posteriors, joined, log_likelihood, do)
    return posteriors, joined, log_likelihood


def _read(
    model: BayesianNetwork, X: Any, names: Any, without: Sequence[Name] = (), do: Mapping[Any, Any] | None = None
) -> Evidence:
    """Read the evidence of the rows of X, and the interventions."""
    found, rows, table = model._inference, as_rows(X, model), _asked(model, X, names)
    nodes, others = model.graph_.nodes, (*without, *(do or ()))
    if is_rows_of_mappings(rows):
        check_keys(table, [node for node in nodes if not table.has(node) and node not in others], nodes)
    else:
        warn_unobserved(table.columns, nodes, others)
    known = read_rows(found, table, model.unseen, (*without, *(do or ())))
    done = read_evidence(found, None, do)
    known.codes.update({node: np.repeat(value, known.n_rows, axis=0) for node, value in done.codes.items()})
    for node, value in done.cells.items():
        every = np.repeat(value, known.n_rows, axis=0)
        known.cells[node] = with_more(known.cells.get(node), every) if node in found.components else every
    return known


def _asked(model: BayesianNetwork, X: Any, names: Any) -> Table:
    """Open the rows to predict."""
    found = model._inference

    def parts() -> list[Any]:
        labels = [([node], Categorical(), [found.domains[node]]) for node in found.levels]
        linked: list[Any] = [
            ([node], found.leaves[leaf].family, []) for node, (leaf, _) in found.component_index.items()
        ]
        alone: list[Any] = [
            ([node], part.family, []) for node, part in found.leaves.items() if node not in found.component_index
        ]
        return [*labels, *alone, *linked]

    return mask_invalid_cells(open_rows(model, X, names), parts(), model.unseen)


def require_labels(model: BayesianNetwork, nodes: Sequence[Name]) -> None:
    """Raise DataError if a node is continuous."""
    model._inference.structure.require(nodes)
    measured = [node for node in nodes if model._inference.is_measured(node)]
    if measured:
        raise DataError(
            f"node {measured[0]!r} is measured, so it has no probabilities by level.\n"
            "    Use query for the distribution of a Gaussian node, predict for its mean, sample for draws, or "
            "probability for a density."
        )


def _mend_impossible(
    model: BayesianNetwork,
    posteriors: dict[Name, np.ndarray],
    means: dict[Name, np.ndarray],
    log_likelihood: np.ndarray,
    do: Any,
) -> None:
    """Replace the results of impossible rows by those without evidence, and warn once."""
    wrong = np.flatnonzero(np.isneginf(log_likelihood))
    if not len(wrong):
        return
    found = model._inference.intervened(do)
    nothing = read_evidence(found, None, do)
    ((rows, answer),) = found.batches(nothing, do or ())
    found.check_defined(answer, nothing, rows, [*posteriors, *means], do or ())
    for node, table in posteriors.items():
        table[wrong] = answer.marginal(found.scope([node])).T
    for node, mean in means.items():
        mean[wrong] = found.expected(node, answer, nothing, rows)
    warn(
        f"row {int(wrong[0])} is impossible under this network ({len(wrong)} of {len(log_likelihood)} are), so "
        "nothing follows from it: it got the probabilities that hold where nothing is known.",
        UserWarning,
    )


def _keeping(table: Table, node: Name, predicted: np.ndarray) -> np.ndarray:
    """Return the cells, with predictions for the missing ones."""
    found, (domain,) = table.levels([node], lambda _: False)
    codes = np.asarray(found.columns[0]).astype(np.intp)
    known = codes >= 0
    if not known.any():
        return predicted
    cells = labels_of(domain.levels, None)[np.where(known, codes, 0)]
    return np.where(known, *unmerged([cells, predicted]))

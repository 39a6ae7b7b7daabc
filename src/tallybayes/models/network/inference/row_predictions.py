"""Predictions of a Bayesian network for many rows with any pattern of missing cells."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tallybayes.data.array_input import unmerged
from tallybayes.data.table import Table
from tallybayes.estimation.scoring.bayes_rule import ClassPosterior, apply_bayes_rule
from tallybayes.families.categorical import Categorical
from tallybayes.families.family import Family
from tallybayes.messages import IMPOSSIBLE_HINT
from tallybayes.models.inputs.features import as_rows, check_keys, is_rows_of_mappings, warn_unobserved
from tallybayes.models.inputs.invalid_cells import mask_invalid_cells
from tallybayes.models.network.estimated_network import EstimatedNetwork, network_of
from tallybayes.models.network.inference.evidence import (
    Evidence,
    merge_cells,
    read_evidence,
    read_rows,
    with_missing_levels,
)
from tallybayes.models.network.inference.network_inference import NetworkInference
from tallybayes.models.network.network_fit import open_rows
from tallybayes.tally.domain import Domain, labels_of
from tallybayes.tally.factor import Name
from tallybayes.typing import Rows
from tallybayes.warnings import warn

if TYPE_CHECKING:
    from tallybayes.models.network.bayesian_network import BayesianNetwork

Interventions = Mapping[Any, Any] | None


class RowPredictions(NamedTuple):
    """Predictions of nodes for many rows.

    Attributes
    ----------
    probabilities : dict from discrete node to an array of shape (n, levels)
    means : dict from continuous node to an array of shape (n,), or (n, columns)
    log_likelihood : ndarray of shape (n,)
        Log p(evidence) of every row.
    """

    probabilities: dict[Name, np.ndarray]
    means: dict[Name, np.ndarray]
    log_likelihood: np.ndarray

    def best(self, domains: Mapping[Name, Domain], nodes: Iterable[Name]) -> dict[Name, np.ndarray]:
        """Return the most probable level, or the mean, of each node."""
        levels = {n: labels_of(domains[n].levels, None)[p.argmax(axis=1)] for n, p in self.probabilities.items()}
        return {node: (levels | self.means)[node] for node in nodes}


def open_prediction_rows(model: BayesianNetwork, X: Rows, names: Iterable[Name] | None = None) -> Table:
    """Open the rows to predict; invalid values become missing, with a warning, unless ``unseen="error"``."""
    inference = network_of(model).inference

    def columns() -> Iterator[tuple[list[Name], Family, list[Domain]]]:
        for node, domain in inference.domains.items():
            yield [node], Categorical(), [domain]
        for node, scorer in inference.leaves.items():
            if node not in inference.component_index:
                yield [node], scorer.family, []
        for node, (leaf, _) in inference.component_index.items():
            yield [node], inference.leaves[leaf].family, []

    return mask_invalid_cells(open_rows(model, X, names), columns(), model.unseen)


def read_prediction_rows(
    model: BayesianNetwork,
    X: Rows,
    names: Iterable[Name] | None,
    predicted: Collection[Name] = (),
    do: Interventions = None,
) -> Evidence:
    """Read the evidence of the rows of X without the predicted nodes, and the interventions."""
    inference = network_of(model).inference
    table = open_prediction_rows(model, X, names)
    nodes = model.graph_.nodes
    excluded = (*predicted, *(do or ()))
    if is_rows_of_mappings(as_rows(X, model)):
        check_keys(table, [node for node in nodes if not table.has(node) and node not in excluded], nodes)
    else:
        warn_unobserved(table.columns, nodes, excluded)
    evidence = read_rows(inference, table, model.unseen, excluded)
    interventions = read_evidence(inference, None, do)
    n_rows = evidence.n_rows
    evidence.codes.update({node: np.repeat(code, n_rows, axis=0) for node, code in interventions.codes.items()})
    for node, value in interventions.cells.items():
        cells = np.repeat(value, n_rows, axis=0)
        if node in inference.components:
            cells = merge_cells(evidence.cells.get(node), cells)
        evidence.cells[node] = cells
    return evidence


def log_likelihoods(network: EstimatedNetwork, evidence: Evidence) -> np.ndarray:
    """Return log p(evidence) of every row."""
    inference = network.inference
    log_likelihood = np.empty(evidence.n_rows)
    for rows, posterior in inference.posteriors(evidence, what="scoring"):
        inference.check_defined(posterior, evidence, rows, None)
        log_likelihood[rows] = posterior.log_likelihood
    return log_likelihood


def node_posterior(model: BayesianNetwork, X: Rows, node: Name) -> ClassPosterior:
    """Return log p(node | other cells), (n, levels), and log p(other cells); without evidence for impossible rows.

    Every level is scored as log p(level, other cells), so that small probabilities do not underflow.
    """
    require_discrete(model, [node])
    network = network_of(model)
    levels = range(len(network.levels[node]))
    evidence = read_prediction_rows(model, X, None, [node])

    def log_joint(rows: Evidence) -> np.ndarray:
        by_level = [rows.with_codes({node: np.full(rows.n_rows, level)}) for level in levels]
        return np.stack([log_likelihoods(network, with_level) for with_level in by_level], axis=-1)

    log_proba = log_joint(evidence)
    has_impossible = np.isneginf(log_proba).all(axis=1).any()
    without_evidence = log_joint(Evidence(1, {}, {}, {}))[0] if has_impossible else np.zeros(len(levels))
    return apply_bayes_rule(log_proba, without_evidence)


def predict_rows(
    inference: NetworkInference, evidence: Evidence, query_nodes: list[Name], do: Interventions
) -> RowPredictions:
    """Compute posteriors of discrete nodes and means of continuous nodes; impossible rows are warned of."""
    inference = inference.intervened(do)
    n_rows = evidence.n_rows
    probabilities = {
        node: np.empty((n_rows, len(inference.levels[node]))) for node in query_nodes if node in inference.levels
    }
    means: dict[Name, list[np.ndarray]] = {node: [] for node in query_nodes if inference.is_continuous(node)}
    log_likelihood = np.empty(n_rows)
    indicators = [inference.presence[node] for node in query_nodes if node in inference.presence]
    for rows, posterior in inference.posteriors(evidence, inference.scopes_of(query_nodes), what="predicting"):
        log_likelihood[rows] = posterior.log_likelihood
        inference.check_defined(posterior, evidence, rows, [*query_nodes, *indicators])
        for node, table in probabilities.items():
            table[rows] = posterior.joint([node])
        for node, batches in means.items():
            batches.append(inference.posterior_mean(node, posterior, evidence, rows))
    joined = {node: np.concatenate(batches) if batches else np.zeros(0) for node, batches in means.items()}
    predictions = RowPredictions(probabilities, joined, log_likelihood)
    _replace_impossible(inference, predictions, do)
    return predictions


def impute_rows(model: BayesianNetwork, X: Rows, do: Interventions, names: Iterable[Name] | None) -> dict[Name, Any]:
    """Return the cells of all nodes, with predictions for the missing ones."""
    inference = network_of(model).inference
    nodes = list(model.graph_.nodes)
    table = open_prediction_rows(model, X, names)
    evidence = read_prediction_rows(model, table, names, (), do)
    columns = predict_rows(inference, evidence, nodes, do).best(inference.domains, nodes)
    table = with_missing_levels(inference.domains, table)
    for node in inference.levels:
        if node in table.columns and node not in (do or {}):
            columns[node] = _fill_missing(table, node, columns[node])
    return columns


def require_discrete(model: BayesianNetwork, nodes: Collection[Name]) -> None:
    """Raise DataError if a node is continuous."""
    network_of(model).inference.require_discrete(nodes)


def _replace_impossible(inference: NetworkInference, predictions: RowPredictions, do: Interventions) -> None:
    """Replace the predictions of impossible rows by those without evidence, and warn once."""
    impossible = np.flatnonzero(np.isneginf(predictions.log_likelihood))
    if not len(impossible):
        return
    evidence = read_evidence(inference, None, do)
    query_nodes = [*predictions.probabilities, *predictions.means]
    ((rows, posterior),) = inference.posteriors(evidence, inference.scopes_of(query_nodes))
    inference.check_defined(posterior, evidence, rows, query_nodes)
    for node, table in predictions.probabilities.items():
        table[impossible] = posterior.joint([node])
    for node, mean in predictions.means.items():
        mean[impossible] = inference.posterior_mean(node, posterior, evidence, rows)
    warn(
        f"row {int(impossible[0])} is impossible under this network (in total {len(impossible)} of "
        f"{len(predictions.log_likelihood)} rows): its predictions ignore the evidence.\n"
        f"    {IMPOSSIBLE_HINT}"
    )


def _fill_missing(table: Table, node: Name, predicted: np.ndarray) -> np.ndarray:
    """Return the cells of a column, with predictions for the missing ones."""
    codes, domain = table.encoded(node)
    codes = codes.astype(np.intp)
    observed = codes >= 0
    if not observed.any():
        return predicted
    cells = labels_of(domain.levels, None)[np.where(observed, codes, 0)]
    return np.where(observed, *unmerged([cells, predicted]))

"""Held-out rows of a Bayesian network: predictions of one node from all others, or densities of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from tallybayes.data.counting import check_weight
from tallybayes.data.open_source import open_source
from tallybayes.data.table import Table, open_table
from tallybayes.errors import DataError
from tallybayes.estimation.resampling.held_out import HoldOutRows
from tallybayes.estimation.scoring.bayes_rule import ClassPosterior
from tallybayes.models.inputs.features import check_target, is_name
from tallybayes.models.network.estimated_network import network_of
from tallybayes.models.network.inference.evidence import with_missing_levels
from tallybayes.models.network.inference.row_predictions import node_posterior
from tallybayes.models.network.network_fit import column_weights, count_more_table, open_rows
from tallybayes.tally.factor import Name
from tallybayes.tally.tally import Tally
from tallybayes.typing import Labels, Rows, SampleWeights

if TYPE_CHECKING:
    from tallybayes.models.network.bayesian_network import BayesianNetwork


class NetworkRows(HoldOutRows):
    """Rows of a network; rows with a missing target are never held out."""

    def __init__(self, model: BayesianNetwork, data: Rows, target: Labels | None, sample_weight: SampleWeights) -> None:
        data, target_name = read_node(data, target)
        table = open_rows(model, data, refit=True)
        self.weight = check_weight(column_weights(table, sample_weight), table.n_rows)
        self.full_model = clone(model).fit(table, sample_weight=self.weight)
        self.table = open_rows(self.full_model, table)  # with the levels of the fitted model
        self.target = target_name
        self.n_classes = 0
        self.codes = np.zeros(self.table.n_rows, dtype=np.intp)
        if target_name is not None:
            self.codes = codes_of(self.full_model, self.table, target_name)
            self.n_classes = len(self.full_model.levels_[target_name])

    def count(self, chosen: np.ndarray) -> Tally:
        """Return the tally of some of the rows."""
        return count_more_table(self.full_model, self.table.rows(chosen), self.some_weight(chosen))

    def fit(self, model: BayesianNetwork, chosen: np.ndarray) -> BayesianNetwork:
        """Return the network fitted on some of the rows."""
        return model.fit(self.table.rows(chosen), sample_weight=self.some_weight(chosen))

    def predict_rows(self, model: BayesianNetwork, chosen: np.ndarray) -> ClassPosterior:
        """Return log p(target | other cells) and log p(other cells); without a target, log p(row)."""
        return target_posterior(model, self.table.rows(chosen), self.target)


def target_posterior(model: BayesianNetwork, rows: Rows, target: Name | None) -> ClassPosterior:
    """Return log p(target | other cells) and log p(other cells); without a target, log p(row)."""
    if target is not None:
        return node_posterior(model, rows, target)
    log_density = model.score_samples(rows)
    return ClassPosterior(np.empty((len(log_density), 0)), log_density)


def read_node(data: Rows, target: Labels | None) -> tuple[Any, Name | None]:
    """Return the rows and the name of the target; a Series that is named like a node becomes a column of the rows."""
    if target is None or is_name(target):
        return data, int(target) if isinstance(target, np.integer) else target
    name: Any = getattr(target, "name", None)
    if not is_name(name) or open_source(data) is not None:
        expected = "the name of a node of the network, whose column is in the data, or a Series of that name"
        raise DataError.wrong_type("target", f"a {type(target).__name__}", expected)
    name = name if isinstance(name, str) else int(name)
    table = open_table(data)
    return table.with_column(name, check_target(target, table.n_rows)), name


def codes_of(model: BayesianNetwork, table: Table, target: Name) -> np.ndarray:
    """Return the codes of the levels of a discrete node; −1 for missing cells."""
    network = network_of(model)
    model.graph_.require([target])
    if target not in network.levels:
        raise DataError(
            f"target {target!r} is continuous; expected a discrete node.\n"
            "    Without target, the density of whole rows is evaluated, this node included."
        )
    if target not in table.columns:
        raise DataError.unknown_column([target], table.columns)
    codes, local = with_missing_levels(network.domains, table).encoded(target)
    position = np.append(network.tally.domains[str(target)].positions_of(local.levels), -1)
    return position[codes.astype(np.intp)]

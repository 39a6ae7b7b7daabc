"""Held-out rows of a Bayesian network: predictions of one node from all others, or densities of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from tallybayes.data.counting import check_weight
from tallybayes.data.open_source import open_source
from tallybayes.data.table import open_table
from tallybayes.errors import DataError
from tallybayes.estimation.resampling.held_out import HoldOutRows
from tallybayes.estimation.scoring.bayes_rule import ClassPosterior
from tallybayes.models.inputs.features import check_target, is_name
from tallybayes.models.network.inference.evidence import with_absent_levels
from tallybayes.models.network.inference.row_predictions import answer_node
from tallybayes.models.network.network_fit import named_weights, open_rows
from tallybayes.tally.factor import Name
from tallybayes.tally.tally import Tally


class NetworkRows(HoldOutRows):
    """Rows of a network. Those whose target is missing are learned from by all."""

    def __init__(self, model: Any, data: Any, target: Any, sample_weight: Any) -> None:
        data, target = read_node(data, target)
        self.table = open_rows(model, data, anew=True)
        self.weight = check_weight(named_weights(self.table, sample_weight), self.table.n_rows)
        self.full_model = clone(model).fit(self.table, sample_weight=self.weight)
        self.table = open_rows(self.full_model, self.table)  # as its levels are spelled
        self.target, self.n_classes = target, 0
        self.codes = np.zeros(self.table.n_rows, dtype=np.intp)
        if target is not None:
            self.codes = codes_of(self.full_model, self.table, target)
            self.n_classes = len(self.full_model.levels_[target])

    def count(self, chosen: np.ndarray) -> Tally:
        """The tally of some of the rows."""
        return self.full_model._count_more_rows(self.table.rows(chosen), self.some_weight(chosen))

    def fit(self, model: Any, chosen: np.ndarray) -> Any:
        """The network fitted on some of the rows."""
        return model.fit(self.table.rows(chosen), sample_weight=self.some_weight(chosen))

    def predict_rows(self, model: Any, chosen: np.ndarray) -> ClassPosterior:
        """log p(target | all other cells) and log p(these); or, without a target, log p(row)."""
        return answer_rows(model, self.table.rows(chosen), self.target)


def answer_rows(model: Any, rows: Any, target: Name | None) -> ClassPosterior:
    """log p(target | all other cells) and log p(these); or, without a target, log p(row)."""
    if target is not None:
        return answer_node(model, rows, target)
    found = model.score_samples(rows)
    return ClassPosterior(np.empty((len(found), 0)), found)


def read_node(data: Any, target: Any) -> tuple[Any, Any]:
    """Return the rows and the name of the target; a Series that is named like a node becomes a column of the rows."""
    if target is None or is_name(target):
        return data, int(target) if isinstance(target, np.integer) else target
    name = getattr(target, "name", None)
    if not is_name(name) or open_source(data) is not None:
        expected = "the name of a node of the network, whose column is in the data, or a Series of that name"
        raise DataError.wrong_type("target", f"a {type(target).__name__}", expected)
    name, table = name if isinstance(name, str) else int(name), open_table(data)
    return table.with_column(name, check_target(target, table.n_rows)), name


def codes_of(model: Any, table: Any, target: Name) -> np.ndarray:
    """The levels of a node of labels in some rows, by number; −1 where they are missing."""
    model.graph_.require([target])
    if target not in model.levels_:
        raise DataError(
            f"node {target!r} is measured, so it has no classes to be told.\n"
            "    Name a node of labels, or leave target out: then the density of whole rows is judged, this node's "
            "among them."
        )
    if target not in table.columns:
        raise DataError.unknown_column([target], table.columns)
    table = with_absent_levels(model._inference.domains, table)
    found, (local,) = table.levels([target], lambda _: False)
    where = np.append(model.tally_.domains[str(target)].positions_of(local.levels), -1)
    return where[np.asarray(found.columns[0]).astype(np.intp)]

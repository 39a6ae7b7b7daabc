"""Arguments that are given as arrays or as names of columns of the data; the classes of models."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tallybayes.data.table import Table
from tallybayes.errors import DataError
from tallybayes.models.base import Model
from tallybayes.models.classification.class_conditional import ClassConditionalModel
from tallybayes.models.ensemble.auto_classifier import AutoClassifier
from tallybayes.models.forest.tree_classifier import TreeClassifier
from tallybayes.models.hmm.hidden_markov_model import HiddenMarkovModel
from tallybayes.models.inputs.features import is_name, open_features
from tallybayes.models.nearest_mean.nearest_class_mean import NearestClassMean
from tallybayes.models.network.bayesian_network import BayesianNetwork
from tallybayes.models.network.estimated_network import network_of
from tallybayes.tally.domain import Domain
from tallybayes.typing import Name, Rows


def column_or_values(table: Table, values: object) -> Any:
    """Return the column of a table if `values` is its name, and `values` otherwise."""
    return table.column(values) if is_name(values) else values


ClassModel = (
    ClassConditionalModel | AutoClassifier | NearestClassMean | TreeClassifier | BayesianNetwork | HiddenMarkovModel
)


def class_domain(model: ClassModel, node: Name | None = None) -> Domain:
    """Return the classes of a model as a domain: of a network, the levels of a node; of sequences, the states."""
    if isinstance(model, BayesianNetwork):
        assert node is not None
        return network_of(model).domains[node]
    return model._estimated_hmm.states if isinstance(model, HiddenMarkovModel) else model._class_domain


def check_rows(table: Table) -> Table:
    """Return a table; raise DataError if it has no rows."""
    if table.n_rows == 0:
        raise DataError("the data have 0 rows; expected at least 1.")
    return table


def required_columns(model: Model | AutoClassifier | TreeClassifier) -> list[Name]:
    """Return the columns that rows for a fitted model must have."""
    return model._required_columns


def names_in(arguments: Iterable[object]) -> list[Any]:
    """Return the arguments that are names of columns, each once."""
    return list(dict.fromkeys(argument for argument in arguments if is_name(argument)))


def without_columns(table: Table, names: Iterable[Any]) -> Table:
    """Return a table without some of its columns."""
    for name in names:
        table = table.without(name)
    return table


def split_columns(data: Rows, *arguments: object) -> tuple[Any, ...]:
    """Return the data without the columns that arguments name, and these arguments as values."""
    names = names_in(arguments)
    if not names:
        return data, *arguments
    table = open_features(data)
    values = tuple(column_or_values(table, argument) for argument in arguments)
    return without_columns(table, names), *values

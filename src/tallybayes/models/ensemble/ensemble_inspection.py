"""Inspection of the automatic classifier: parameters and explanations of the member with the largest weight."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes._utils.fitted import check_is_fitted
from tallybayes.errors import DataError, EstimateError, as_attribute_error
from tallybayes.models.classification.methods.calculation_sheet import CalculationSheet
from tallybayes.models.ensemble.feature_views import BLOCK
from tallybayes.models.ensemble.members import read_features
from tallybayes.models.inspection.labeled_parameters import looked_up
from tallybayes.models.inspection.parameter_table import Parameters, ParameterTable, Posteriors
from tallybayes.typing import Name, Rows

if TYPE_CHECKING:
    from tallybayes.models.classification.methods.explanation import Explanation
    from tallybayes.models.ensemble.auto_classifier import AutoClassifier


def largest_member(model: AutoClassifier) -> Any:
    """Return the model with the largest weight, with the user's column names."""
    check_is_fitted(model, "members_")
    spec, member = model.members_[0]
    names = spec.view.column_names()
    if not names:
        return member
    return member._with_block_names({BLOCK: tuple(names.values())})


def member_note(model: AutoClassifier) -> str:
    """Return a phrase that names the member with the largest weight."""
    spec = model.members_[0].spec
    return f"by {spec.name}, the heaviest of {len(model.members_)}: {spec.weight:.2f}"


def parameters(model: AutoClassifier) -> Parameters:
    """Return the parameters of the largest member, by column; the others are ``members_[k].model.parameters_``."""
    found: Parameters = largest_member(model).parameters_
    names = model.members_[0].spec.view.column_names()
    return found.with_column_names(f"{found.title}\n{member_note(model)}", BLOCK, names)


def table(model: AutoClassifier, column: Name | tuple[Name, ...]) -> ParameterTable:
    """Return the parameters of one column of the largest member, ``parameters_[column]``."""
    parameter_table: ParameterTable = looked_up(parameters(model), column)
    return parameter_table


def class_prior(model: AutoClassifier) -> ParameterTable:
    """Return p(class), which is the same in all members."""
    table_of_classes: ParameterTable = largest_member(model).class_prior_
    return table_of_classes


def posterior(model: AutoClassifier) -> Posteriors:
    """Return the posterior distributions of the parameters of the largest member, by column."""
    try:
        found: Posteriors = largest_member(model).posterior_
    except EstimateError as error:
        raise as_attribute_error(error) from None
    names = model.members_[0].spec.view.column_names()
    return found.with_column_names(f"{found.title}, the heaviest of {len(model.members_)}", BLOCK, names)


def n_rows(model: AutoClassifier) -> float:
    """Return the total weight of the training rows."""
    found: float = largest_member(model).n_rows_
    return found


def explain(model: AutoClassifier, X: Rows, against: Hashable = None) -> Explanation:
    """Return the contribution of each column to the log-odds of each row, by the largest member."""
    check_is_fitted(model, "members_")
    first = model.members_[0]
    table = read_features(model, X)
    explanation = first.model.explain(first.spec.view.apply(table), against)
    names = first.spec.view.column_names()
    explanation.columns = [names.get(column, column) for column in explanation.columns]
    explanation.note = member_note(model)
    return explanation


def show_work(model: AutoClassifier, row: Rows) -> str:
    """Return a step-by-step calculation for one row: the probabilities of every member and their stacked mean."""
    check_is_fitted(model, "members_")
    table = read_features(model, row)
    if table.n_rows != 1:
        raise DataError.wrong_shape("row", (table.n_rows,), "the features of one row")
    sheet = CalculationSheet("p(class | x) = Σ weight · p(class | x) of every member", list(model.classes_))
    by_member = [np.exp(member.log_proba(table)[0]) for member in model.members_]
    weights = np.array([member.spec.weight for member in model.members_])
    for member, probabilities, weight in zip(model.members_, by_member, weights / weights.sum(), strict=True):
        sheet.add(f"by {member.spec.name}", probabilities, f"{weight:.4f}")
    sheet.rule()
    sheet.add("p(class | x), mixed", weights / weights.sum() @ np.array(by_member))
    sheet.add("p(class | x), calibrated", model.predict_proba(row)[0])
    return sheet.to_text(model.predict(row)[0])

"""Inspection of the automatic classifier: parameters and explanations of the member with the largest weight."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes._utils.fitted import check_is_fitted
from tallybayes.errors import DataError, EstimateError, as_attribute_error
from tallybayes.models.classification.methods.calculation_sheet import CalculationSheet
from tallybayes.models.ensemble.feature_views import BLOCK
from tallybayes.models.ensemble.members import Member, generative_members, read_features
from tallybayes.models.inspection.labeled_parameters import looked_up
from tallybayes.models.inspection.parameter_table import Parameters, ParameterTable, Posteriors
from tallybayes.typing import Name, Rows

if TYPE_CHECKING:
    from tallybayes.models.ensemble.auto_classifier import AutoClassifier


def largest_generative(model: AutoClassifier) -> Member:
    """Return the generative member with the largest weight; raise EstimateError if there are only trees."""
    check_is_fitted(model, "members_")
    if not generative_members(model):
        raise EstimateError(
            f"the only member is a {model.members_[0].spec.model}, which has no parameters of columns.\n"
            "    Fit tb.AutoClassifier() with single=False, which keeps a generative member, or use explain(X)."
        )
    return generative_members(model)[0]


def largest_member(model: AutoClassifier) -> Any:
    """Return the generative model with the largest weight, with the user's column names."""
    spec, member = largest_generative(model)
    names = spec.view.column_names()
    if not names:
        return member
    return member._with_block_names({BLOCK: tuple(names.values())})


def member_note(model: AutoClassifier) -> str:
    """Return a phrase that names the generative member with the largest weight."""
    spec = largest_generative(model).spec
    return f"by {spec.name}, weight {spec.weight:.2f}, one of {len(model.members_)} members"


def parameters(model: AutoClassifier) -> Parameters:
    """Return the parameters of the largest member, by column; the others are ``members_[k].model.parameters_``."""
    found: Parameters = largest_member(model).parameters_
    names = largest_generative(model).spec.view.column_names()
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
    names = largest_generative(model).spec.view.column_names()
    return found.with_column_names(f"{found.title}, {member_note(model)}", BLOCK, names)


def n_rows(model: AutoClassifier) -> float:
    """Return the total weight of the training rows."""
    check_is_fitted(model, "members_")
    return float(model.members_[0].model.n_rows_)


def show_work(model: AutoClassifier, row: Rows) -> str:
    """Return a step-by-step calculation for one row: the probabilities of every member, and their pool."""
    check_is_fitted(model, "members_")
    table = read_features(model, row)
    if table.n_rows != 1:
        raise DataError.wrong_shape("row", (table.n_rows,), "the features of one row")
    sheet = CalculationSheet(
        "log p(class | x) = Σ weight · log p(class | x) of every member + constant", list(model.classes_)
    )
    by_member = np.array([member.log_proba(table)[0] for member in model.members_])
    weights = [member.spec.weight for member in model.members_]
    for member, log_proba, weight in zip(model.members_, by_member, weights, strict=True):
        sheet.add(f"log p by {member.spec.name}", log_proba, f"{weight:.4f}")
    sheet.rule()
    sheet.add("weighted sum", np.array(weights) @ by_member)
    sheet.add("p(class | x)", model.predict_proba(row)[0])
    return sheet.to_text(model.predict(row)[0])

"""What a chosen mixture has learnt: that of its heaviest member, which it names."""

from __future__ import annotations

import copy
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tallybayes.errors import DataError, EstimateError, as_attribute_error
from tallybayes.models.classification.methods.calculation_sheet import CalculationSheet
from tallybayes.models.ensemble.feature_views import BLOCK
from tallybayes.models.inputs.input_format import open_columns
from tallybayes.models.inputs.invalid_cells import answering, mask_invalid_cells
from tallybayes.models.inspection.labeled_parameters import looked_up
from tallybayes.models.inspection.parameter_table import Parameters, ParameterTable, Posteriors
from tallybayes.typing import Name, Rows

if TYPE_CHECKING:
    from tallybayes.models.classification.methods.explanation import Explanation


def largest_member(model: Any) -> Any:
    """The heaviest member's model, its columns called as the user calls them."""
    check_is_fitted(model, "members_")
    choice, member = model.members_[0]
    names = choice.view.column_names()
    if not names:
        return member
    named = copy.copy(member)
    named._block_names = {BLOCK: tuple(names.values())}
    named._cache = {key: found for key, found in named._cache.items() if key not in ("parameters", "posterior")}
    return named


def member_note(model: Any) -> str:
    """Who tells of it: the heaviest member, and its weight."""
    choice = model.members_[0].spec
    return f"by {choice.name}, the heaviest of {len(model.members_)}: {choice.weight:.2f}"


def parameters(model: Any) -> Parameters:
    """What the heaviest member has learnt, by column; the others are ``members_[k].model.parameters_``."""
    found = largest_member(model).parameters_
    within = {name: place for place, name in model.members_[0].spec.view.column_names().items()}
    names = [one for name in found for one in (within if name == BLOCK else [name])]
    shown = f"{found.title}\n{member_note(model)}"
    return Parameters(shown, names, found._shown, lambda column: found[within.get(column, column)])


def table(model: Any, column: Name | tuple[Name, ...]) -> ParameterTable:
    """What the heaviest member has learnt of one column: ``parameters_[column]``.

    Parameters
    ----------
    column : name

    Returns
    -------
    ParameterTable
    """
    found: ParameterTable = looked_up(parameters(model), column)
    return found


def class_prior(model: Any) -> ParameterTable:
    """p(class), by the rows of every class: all members have the same."""
    found: ParameterTable = largest_member(model).class_prior_
    return found


def posterior(model: Any) -> Posteriors:
    """What is believed of the parameters of the heaviest member, by column."""
    try:
        found = largest_member(model).posterior_
    except EstimateError as error:
        raise as_attribute_error(error) from None
    within = {name: place for place, name in model.members_[0].spec.view.column_names().items()}
    names = [one for name in found for one in (within if name == BLOCK else [name])]
    title = f"{found.title}, the heaviest of {len(model.members_)}"
    return Posteriors(title, names, found._shown, lambda column: found[within.get(column, column)])


def n_rows(model: Any) -> float:
    """How many rows were counted: the sum of their weights."""
    found: float = largest_member(model).n_rows_
    return found


def refuse(model: Any, *arguments: object, **more: object) -> NoReturn:
    """Refuse what takes a density of the rows."""
    check_is_fitted(model, "members_")
    raise as_attribute_error(
        EstimateError(
            "Chosen mixes p(class | row) of its members, so it has no density of rows, and no likelihood, bits or "
            "information criteria.\n    Its members may have: members_[0].model.log_likelihood(X, y)."
        )
    )


@answering
def explain(model: Any, X: Rows, against: Hashable = None) -> Explanation:
    """How far every column pulls each row, by the heaviest member of the mixture, which it names.

    Parameters
    ----------
    X : as for `fit`, without the target
    against : label, optional
        The class to compare with; by default the runner-up.

    Returns
    -------
    Explanation
    """
    check_is_fitted(model, "members_")
    first = model.members_[0]
    table = mask_invalid_cells(open_columns(model, X), model._column_specs(), None)
    found = first.model.explain(first.spec.view.apply(table), against)
    names = first.spec.view.column_names()
    found.columns = [names.get(column, column) for column in found.columns]
    found.note = member_note(model)
    return found


@answering
def show_work(model: Any, row: Rows) -> str:
    """What every member says of one row, and how it is mixed; ``members_[k].model.show_work`` has a member's own.

    Parameters
    ----------
    row : the features of one row

    Returns
    -------
    str
    """
    check_is_fitted(model, "members_")
    table = mask_invalid_cells(open_columns(model, row), model._column_specs(), None)
    if table.n_rows != 1:
        raise DataError.wrong_shape("row", (table.n_rows,), "the features of one row")
    sheet = CalculationSheet("p(class | x) = Σ weight · p(class | x) of every member", list(model.classes_))
    said = [np.exp(member.log_proba(table)[0]) for member in model.members_]
    weights = np.array([member.spec.weight for member in model.members_])
    for member, shares, weight in zip(model.members_, said, weights / weights.sum(), strict=True):
        sheet.add(f"by {member.spec.name}", shares, f"{weight:.4f}")
    sheet.rule()
    sheet.add("p(class | x), mixed", weights / weights.sum() @ np.array(said))
    sheet.add("p(class | x), calibrated", model.predict_proba(row)[0])
    return sheet.to_text(model.predict(row)[0])

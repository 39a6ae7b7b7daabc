"""Columns independent given the class: the factors of naive Bayes and of mixtures, by what ``columns=`` says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tallybayes.errors import DataError
from tallybayes.families.family import Family
from tallybayes.models.inputs.columns import read_columns
from tallybayes.models.inputs.presence import is_presence
from tallybayes.sources.collect import check_weight
from tallybayes.sources.table import Table
from tallybayes.tally.factor import Factor, Name
from tallybayes.tally.tally import Tally
from tallybayes.value import same


def column_factors(model: Any, table: Table, target: Name, weight: Any) -> list[Factor]:
    """A factor for every block of like columns, given the class; the model remembers which were left out."""
    found = read_columns(model.columns, table, [target], target, check_weight(weight, table.n_rows))
    model._left_out = found.left_out
    return [Factor(names, (target,), family) for names, family in found.blocks]


def retally(model: Any, other: Any) -> Tally:
    """The tally read by the other model's families, where they keep the same statistics."""
    tally: Tally = model.tally_
    if same(model.columns, other.columns):
        return tally
    known = {name for factor in tally.factors for name in factor.columns}
    return tally.with_factors(
        [
            f if not f.given or is_presence(f.columns[0], known) else f.replace(family=_family_of(other.columns, f))
            for f in tally.factors
        ]
    )


def column_tags(model: Any, tags: Any) -> Any:
    """What scikit-learn may pass, where one family says it for all columns."""
    if isinstance(model.columns, Family):
        family = model.columns
        tags.input_tags.sparse = family.takes_sparse
        tags.input_tags.positive_only = family.nonnegative_cells
        tags.input_tags.allow_nan = family.takes_missing
        if tags.classifier_tags is not None:
            words = not family.takes_missing and family.takes_sparse
            tags.classifier_tags.poor_score = words  # on measurements
    return tags


def _family_of(columns: Any, factor: Factor) -> Family:
    """The one family that ``columns=`` gives to a factor's columns."""
    if isinstance(columns, Family):
        return columns
    found = []
    if isinstance(columns, Mapping):
        by_name = {n: f for key, f in columns.items() for n in (key if isinstance(key, tuple) else (key,))}
        found = [by_name.get(name) for name in factor.columns]
    if not found or found[0] is None or any(family != found[0] for family in found):
        raise DataError(
            f"the columns {factor.columns} were counted together as {factor.family!r}; expected one family for "
            "them in columns=.\n    Fit again to count them otherwise."
        )
    return found[0].inner or found[0]

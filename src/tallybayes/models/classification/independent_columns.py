"""Columns that are independent given the class: the factors of naive Bayes and of mixtures."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes._utils.frozen_value import same
from tallybayes.data.indicator_columns import is_presence
from tallybayes.data.open_source import open_source
from tallybayes.errors import DataError
from tallybayes.families.categorical import Categorical
from tallybayes.families.family import Family
from tallybayes.families.gaussian import Gaussian
from tallybayes.models.classification.estimated_classifier import estimates_of
from tallybayes.models.inputs.features import default_family, open_features
from tallybayes.statistics.counts import Counts
from tallybayes.statistics.double_double import DoubleDouble
from tallybayes.statistics.moments import Moments
from tallybayes.statistics.sufficient_statistics import Statistics
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Factor, Name
from tallybayes.tally.tally import Tally
from tallybayes.typing import Columns, Rows

if TYPE_CHECKING:
    from sklearn.utils import Tags

    from tallybayes.models.classification.class_conditional import ClassConditionalModel


def with_kinds_of(model: ClassConditionalModel, X: Rows) -> Any:
    """Return the model with the types of columns whose training values were all missing, from new rows."""
    columns = model.columns
    rest = columns.get(..., None) if isinstance(columns, Mapping) else columns
    unseen = [name for factor, found in estimates_of(model).feature_factors for name in _unseen(factor, found)]
    named = {n for key in columns for n in (key if isinstance(key, tuple) else (key,))} if rest != columns else set()
    unseen = [name for name in unseen if name not in named] if isinstance(rest, str) and rest == "auto" else []
    if not unseen:
        return model
    source = open_source(X)
    table = open_features(X if source is None else source.first_batch())
    kinds = {name: default_family(table, name) for name in unseen if name in table.columns}
    tally: Tally = model.tally_
    for name, family in kinds.items():
        tally = _moved(tally, name, family, model._target)
    return model if tally is model.tally_ else copy.copy(model)._set_tally(tally)


def _unseen(factor: Factor, statistics: Statistics) -> list[Name]:
    """Return the columns of a factor that have no observed value."""
    if factor.family == Categorical() and isinstance(statistics, Counts):
        return [name for name, size in zip(factor.columns, statistics.segments.sizes, strict=True) if not size]
    if factor.family != Gaussian() or not isinstance(statistics, Moments):
        return []
    if statistics.n_columns == len(factor.columns) == statistics.weight.shape[-1]:
        weight = statistics.weight.sum(axis=tuple(range(len(statistics.given_shape))))
        return [name for name, seen in zip(factor.columns, weight, strict=True) if not seen]
    return []


def _moved(tally: Tally, name: Name, family: Family, target: Name) -> Tally:
    """Return the tally with an unobserved column moved to the factor of another family."""
    pairs = list(zip(tally.factors, tally.statistics, strict=True))
    at = next(k for k, (factor, _) in enumerate(pairs) if factor.given and name in factor.columns)
    factor, statistics = pairs[at]
    if family == factor.family or family not in (Gaussian(), Categorical()):
        return tally
    kept = [k for k, other in enumerate(factor.columns) if other != name]
    del pairs[at]
    if kept:
        rest = factor.replace(columns=tuple(factor.columns[k] for k in kept))
        pairs.insert(at, (rest, statistics.columns(np.array(kept))))
    domains = dict(tally.domains)
    domains.pop(str(name), None)
    if family == Categorical():
        domains[str(name)] = Domain([], str(name))
    place = next((k for k, (one, _) in enumerate(pairs) if one.given and one.family == family), len(pairs))
    n_classes = len(tally.domains[str(target)].levels)
    empty = Counts(np.zeros((n_classes, 0)), []) if family == Categorical() else Moments.zeros((n_classes,), 0)
    before, found = pairs[place] if place < len(pairs) else (Factor((), (target,), family), empty)
    pairs[place : place + 1] = [(before.replace(columns=(*before.columns, name)), _with_unseen(found))]
    return Tally([one for one, _ in pairs], [part for _, part in pairs], domains, tally.schema, soft=tally.soft)


def _with_unseen(statistics: Statistics) -> Counts | Moments:
    """Return the statistics with one more column, without observations."""
    if isinstance(statistics, Counts):
        return Counts(statistics.table, [*statistics.segments.sizes.tolist(), 0])

    assert isinstance(statistics, Moments)

    def wider(part: DoubleDouble) -> DoubleDouble:
        shape = statistics.first_sum.shape
        return part.map(lambda a: np.concatenate([np.broadcast_to(a, shape), np.zeros((*shape[:-1], 1))], axis=-1))

    sums = (wider(part) for part in (statistics.weight_sum, statistics.first_sum, statistics.second_sum))
    return Moments(np.append(statistics.anchor, 0.0), *sums)


def retally(tally: Tally, columns: Columns, others: Columns) -> Tally:
    """Return the tally in the families of other ``columns``, if they have the same sufficient statistics."""
    if same(columns, others):
        return tally
    known = {name for factor in tally.factors for name in factor.columns}
    return tally.with_factors(
        [
            f if not f.given or is_presence(f.columns[0], known) else f.replace(family=_family_of(others, f))
            for f in tally.factors
        ]
    )


def column_tags(columns: Columns, tags: Tags) -> Tags:
    """Set scikit-learn's tags, if one family applies to all columns."""
    if isinstance(columns, Family):
        family = columns
        tags.input_tags.sparse = family.accepts_sparse
        tags.input_tags.positive_only = family.nonnegative_cells
        tags.input_tags.allow_nan = family.accepts_missing
        if tags.classifier_tags is not None:
            words = not family.accepts_missing and family.accepts_sparse
            tags.classifier_tags.poor_score = words  # for continuous features
    return tags


def _family_of(columns: Columns, factor: Factor) -> Family:
    """Return the one family that ``columns`` gives to the columns of a factor."""
    if isinstance(columns, Family):
        return columns
    found: list[Any] = []
    if isinstance(columns, Mapping):
        by_name: dict[Any, Any] = {
            n: f for key, f in columns.items() for n in (key if isinstance(key, tuple) else (key,))
        }
        found = [by_name.get(name) for name in factor.columns]
    if not found or found[0] is None or any(family != found[0] for family in found):
        raise DataError(
            f"the columns {factor.columns} were counted together as {factor.family!r}; expected one family for "
            "them in columns=.\n    Fit again to count them otherwise."
        )
    return found[0].present_family or found[0]

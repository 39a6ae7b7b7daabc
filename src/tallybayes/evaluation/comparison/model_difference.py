"""tb.difference: the changes from one model to another, in rows and in bits."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.special import rel_entr
from sklearn.utils.validation import check_is_fitted

from tallybayes.errors import DataError
from tallybayes.families.protocols.distribution_functions import kl_divergence
from tallybayes.messages import with_article
from tallybayes.models.base import Model
from tallybayes.models.ensemble.auto_classifier import AutoClassifier
from tallybayes.models.ensemble.members import generative_members
from tallybayes.models.inspection.labeled_parameters import LabeledFactor
from tallybayes.models.inspection.parameter_table import ParameterTable
from tallybayes.models.network.estimated_network import network_of
from tallybayes.models.one_dependence.one_dependence_classifier import OneDependenceClassifier
from tallybayes.results.difference import ColumnDifference, Difference
from tallybayes.statistics.counts import Counts
from tallybayes.typing import Name

if TYPE_CHECKING:
    from tallybayes.models.estimator import Estimator

_UNSEEN = 0.5  # rows: the weight of a level in the model that has not seen it

ColumnName = Name | tuple[Name, ...]  # several columns of one distribution
Index = tuple[np.ndarray, ...]  # selects the common groups of a factor
ColumnPosition = tuple[LabeledFactor, int | None]  # a column in its factor; None for all columns of the factor together


def difference(before: Estimator, after: Estimator) -> Difference:
    """Compute the changes from one model to another of the same kind: rows, classes, levels, and divergences in bits.

    The divergence of a column is the Kullback–Leibler divergence of its distribution after from that before, with the
    point estimates that `table` shows, averaged over the groups (classes) by their rows after. It is the additional
    code length of a cell of the new rows if it is coded by the old model. A level that one model has not seen counts as
    half a row there. Words are counted by token; columns with a joint covariance are one. In one-dependence classifiers
    each column is compared given the class alone.

    Parameters
    ----------
    before, after : fitted models of one class

    Returns
    -------
    Difference

    Examples
    --------
    >>> import tallybayes as tb
    >>> rows = {"sky": ["sun", "sun", "rain", "sun"], "picnic": ["yes", "yes", "no", "no"]}
    >>> june = tb.NaiveBayes(prior=1).fit(rows, "picnic")
    >>> july = tb.NaiveBayes(prior=1).fit(rows, "picnic").partial_fit({"sky": ["fog"], "picnic": ["no"]}, "picnic")
    >>> tb.difference(june, july)
    NaiveBayes: 4 rows before, 5 after
    p(class) moved by 0.0148 bits
      class  before  after  frequency before  frequency after
      no          2      3             50.0%            60.0%
      yes         2      2             50.0%            40.0%
      column    bits  largest in  levels
      sky     0.0422  no: 0.0703  + fog
    """
    kind, other_kind = (with_article(type(model).__name__) for model in (before, after))
    if type(before) is not type(after):
        raise DataError(
            f"the models are {kind} and {other_kind}; expected two of one kind.\n"
            "    Models of different kinds are compared by their predictions: tb.evaluate."
        )
    check_is_fitted(before)
    check_is_fitted(after)
    if not hasattr(type(before), "parameters_"):
        raise DataError.wrong_type("before", kind, "a model of columns, such as a classifier")
    old_model: Any = before
    new_model: Any = after
    note = ""
    if isinstance(before, AutoClassifier) and isinstance(after, AutoClassifier):
        old_model, new_model, note = _common_member(before, after)
    new_model = _with_levels_like(old_model, new_model)
    old_columns = _columns(old_model)
    new_columns = _columns(new_model)
    pairs: dict[tuple[int, int], _FactorPair] = {}
    columns: list[ColumnDifference] = []
    for name, (new, position) in new_columns.items():
        old, old_position = old_columns.get(name, (None, None))
        if old is not None and old.family == new.family and old.given == new.given:
            key = (id(old), id(new))
            if key not in pairs:
                pairs[key] = _FactorPair(old_model, old, new_model, new)
            columns.append(_column_difference(name, pairs[key], old_position, position))
    compared = {each.column for each in columns}
    classes, class_bits = _class_difference(old_model, new_model)
    return Difference(
        type(before).__name__,
        (before.n_rows_, after.n_rows_),
        classes,
        class_bits,
        columns,
        [name for name in old_columns if name not in compared],
        [name for name in new_columns if name not in compared],
        note,
    )


def _with_levels_like(before: Model, after: Model) -> Model:
    """Return the model after, with booleans represented as in the one before: as booleans, 0 and 1, or strings."""
    known = before.tally_.domains
    domains = after.tally_.domains
    converted = {
        name: domain.in_kind_of(known[name])
        for name, domain in domains.items()
        if name in known and domain.kind != known[name].kind and known[name].same_levels(domain.levels) is not None
    }
    return copy.copy(after)._set_tally(after.tally_.align(domains | converted)) if converted else after


def _common_member(before: AutoClassifier, after: AutoClassifier) -> tuple[Any, Any, str]:
    """Return the member of both models with most columns, of several that of the largest weight after, and a note."""
    pairs = [
        (old_choice, old_model, choice, model)
        for choice, model in generative_members(after)
        for old_choice, old_model in generative_members(before)
        if choice.name == old_choice.name and type(model) is type(old_model)
    ]
    if pairs:
        old_choice, old_model, choice, model = max(pairs, key=lambda pair: len(_columns(pair[3])))
        weights = f"weight {old_choice.weight:.2f} before, {choice.weight:.2f} after"
        return old_model, model, f"compared by {choice.name}, {weights}"
    names = [", ".join(choice.name for choice, _ in model.members_) for model in (before, after)]
    raise DataError(
        f"the ensembles have no generative member in common ({names[0]}; {names[1]}); expected at least one.\n"
        "    Fit one with the choice of the other: tb.AutoClassifier(spec=one.spec_)."
    )


def _factors(model: Model) -> list[LabeledFactor]:
    """Return the labeled factors of a model, p(class) first; those of one-dependence classifiers given the class."""
    factors = model._labeled_factors()
    if isinstance(model, OneDependenceClassifier):
        pairs = model._pairs
        return [factors[0], *(pairs.labeled_factor(name) for name in pairs.counts.names)]
    return factors


def _columns(model: Model) -> dict[Any, ColumnPosition]:
    """Return the factor and the position of every column by name."""
    columns: dict[Any, ColumnPosition] = {}
    for factor in _factors(model)[hasattr(model, "target_") :]:  # without p(class)
        if factor.is_block:
            columns[factor.columns[0]] = (factor, None)
        elif factor.family.columnwise:
            columns |= {name: (factor, position) for position, name in enumerate(factor.columns)}
        else:
            columns[factor.columns[0] if len(factor.columns) == 1 else tuple(factor.columns)] = (factor, None)
    return columns


def _class_difference(before: Model, after: Model) -> tuple[dict[Any, tuple[float, float]], float]:
    """Return the rows of every class in each model, and the divergence of p(class) in bits; NaN without classes."""
    if not hasattr(after, "target_"):
        return {}, float("nan")
    old, new = (dict(zip(each.classes_.tolist(), _class_rows(each).tolist(), strict=True)) for each in (before, after))
    rows = {label: (old.get(label, 0.0), new.get(label, 0.0)) for label in [*old, *new]}
    pair = _FactorPair(before, _factors(before)[0], after, _factors(after)[0])
    return rows, _column_difference(after.target_, pair, 0, 0).bits


def _class_rows(model: Model) -> np.ndarray:
    """Return the rows of every class."""
    counts = model.tally_[model.target_]
    assert isinstance(counts, Counts)
    return counts.table


def _with_unseen(probabilities: np.ndarray, rows: np.ndarray | float) -> np.ndarray:
    """Return probabilities of levels, (…, levels), with unknown ones (NaN) as of half a row among `rows`."""
    unknown = np.isnan(probabilities)
    if not unknown.any() or unknown.all():
        return probabilities
    n = np.asarray(rows, dtype=float)[..., None]
    counts = np.where(unknown, _UNSEEN, np.nan_to_num(probabilities) * n)
    return np.asarray(counts / counts.sum(axis=-1, keepdims=True))


class _FactorSide:
    """A factor of one model, restricted to the groups that both models have."""

    def __init__(self, model: Model, factor: LabeledFactor, shared: Sequence[Sequence[Any]]) -> None:
        self.model = model
        self.factor = factor
        self.shape = tuple(map(len, factor.groups))
        positions = [
            np.array([list(axis).index(label) for label in labels], dtype=np.intp)
            for axis, labels in zip(factor.groups, shared, strict=True)
        ]
        self.index: Index = np.ix_(*positions) if positions else ()

    def rows(self, position: int | None) -> np.ndarray:
        """Return the rows of the common groups, of one column or of all columns together: 1 each without counts."""
        return next(rows for rows in self._possible_rows(position) if rows.shape == self.shape)[self.index]

    def _possible_rows(self, position: int | None) -> Iterator[np.ndarray]:
        """Yield the rows of every group of the factor, those of the classes, and 1 each."""
        if getattr(self.model, "_fixed_parameters", None) is None:
            columns = self.factor.scored.factor.columns
            if position is None or self._weight is None:
                with suppress(KeyError):  # the tally may have other factors
                    yield np.asarray(
                        self.model.tally_[columns if position is None else columns[position]].group_weights()
                    )
            else:
                yield self._weight[..., position if self._weight.shape[-1] > 1 else 0]
            if hasattr(self.model, "target_"):
                yield _class_rows(self.model)
        yield np.ones(self.shape)

    @cached_property
    def _weight(self) -> np.ndarray | None:
        """The weight of every group and column, or of every group; None if the tally has other factors."""
        with suppress(KeyError):
            statistics: Any = self.model.tally_[self.factor.scored.factor.columns]
            return np.maximum(statistics.weight, 0.0)
        return None

    def probabilities(self, table: ParameterTable, levels: Sequence[Any]) -> np.ndarray:
        """Return the probabilities of some levels in the common groups; NaN of levels that the table does not have."""
        position_of = {level: k for k, level in enumerate(table.columns)}
        values = np.concatenate([table.values, np.full((*table.values.shape[:-1], 1), np.nan)], axis=-1)
        return values[..., [position_of.get(level, -1) for level in levels]][self.index]

    @cached_property
    def parameters(self) -> Any:
        """The parameters of the common groups, with an axis of groups each."""
        point = self.factor.point
        if not isinstance(point, tuple):
            return self._by_group(point)[self.index]
        kind: Any = type(point)
        parts = [self._by_group(part) for part in point]
        if not self.factor.inputs:
            # Parameters without groups, such as a tied variance, are repeated for every group.
            shape = parts[0].shape
            parts = [np.broadcast_to(part, shape if part.ndim <= len(shape) else (*shape, shape[-1])) for part in parts]
        return kind(*(part[self.index] for part in parts))

    def _by_group(self, part: npt.ArrayLike) -> np.ndarray:
        """Return parameters with an axis for every parent: continuous nodes have one axis for all combinations."""
        array = np.asarray(part)
        is_flat = len(self.shape) > 1 and array.shape[: len(self.shape)] != self.shape
        return array.reshape(*self.shape, *array.shape[1:]) if is_flat else array


class _FactorPair:
    """A factor of both models, restricted to their common groups."""

    def __init__(self, before: Model, old: LabeledFactor, after: Model, new: LabeledFactor) -> None:
        self.old = old
        self.new = new
        shared = [
            [label for label in axis if label in set(other)] for axis, other in zip(new.groups, old.groups, strict=True)
        ]
        self.labels = [
            group[0] if len(group) == 1 else ", ".join(map(str, group)) for group in itertools.product(*shared)
        ]
        self.old_side = _FactorSide(before, old, shared)
        self.new_side = _FactorSide(after, new, shared)

    @cached_property
    def nats(self) -> np.ndarray:
        """The divergence of every group, and of every column if they are independent."""
        return kl_divergence(self.new.family, self.new_side.parameters, self.old_side.parameters)


def _column_difference(
    name: ColumnName, pair: _FactorPair, old_position: int | None, position: int | None
) -> ColumnDifference:
    """Return the divergence of a column, averaged over groups, and its new and gone levels."""
    old_rows = pair.old_side.rows(old_position)
    new_rows = pair.new_side.rows(position)
    nats, new_levels, gone_levels = _divergence(name, pair, old_position, position, old_rows, new_rows)
    bits = np.ravel(nats) / np.log(2)
    weight = np.where(np.ravel(old_rows) > 0, np.ravel(new_rows), 0.0)
    weight = np.where(np.isnan(bits), 0.0, weight)
    if not weight.any():
        return ColumnDifference(name, float("nan"), None, float("nan"), new_levels, gone_levels)
    mean = float((np.where(weight > 0, bits, 0.0) * weight).sum() / weight.sum())
    largest = int(np.argmax(np.where(weight > 0, bits, -1.0)))
    group = pair.labels[largest] if pair.new.groups else None
    return ColumnDifference(name, mean, group, float(bits[largest]), new_levels, gone_levels)


def _divergence(
    name: ColumnName,
    pair: _FactorPair,
    old_position: int | None,
    position: int | None,
    old_rows: np.ndarray,
    new_rows: np.ndarray,
) -> tuple[np.ndarray, tuple[Any, ...], tuple[Any, ...]]:
    """Return the divergence of a column in every common group, in nats, and its new and gone levels."""
    old = pair.old
    new = pair.new
    new_table = _table_of_levels(new, position)
    old_table = _table_of_levels(old, old_position)
    if new_table is not None and old_table is not None:
        added, removed = _changed(old_table.columns, new_table.columns)
        levels = [*new_table.columns, *removed]
        return _level_divergence(pair, new_table, old_table, levels, old_rows, new_rows), added, removed
    if new.is_block and list(new.within) != list(old.within):
        return _word_divergence(pair, old_rows, new_rows), *_changed(old.within, new.within)
    if new.inputs:
        return _line_divergence(pair, name), (), ()
    nats = pair.nats
    if new.family.columnwise or new.family.is_bag_of_words:
        nats = nats.sum(axis=-1) if position is None else nats[..., position]
    return nats, (), ()


def _table_of_levels(factor: LabeledFactor, position: int | None) -> ParameterTable | None:
    """Return the probabilities of the levels of a column; None if it has other parameters, or is part of a block."""
    if position is None or not (factor.levels or factor.family.bins or factor.family.is_binary):
        return None
    return factor.column(position)


def _level_divergence(
    pair: _FactorPair,
    new_table: ParameterTable,
    old_table: ParameterTable,
    levels: Sequence[Any],
    old_rows: np.ndarray,
    new_rows: np.ndarray,
) -> np.ndarray:
    """Return the divergence of the probabilities of some levels after and before, in nats."""
    p = _with_unseen(pair.new_side.probabilities(new_table, levels), new_rows)
    q = _with_unseen(pair.old_side.probabilities(old_table, levels), old_rows)
    return np.asarray(rel_entr(p, q).sum(axis=-1))


def _changed(old: Sequence[Any], new: Sequence[Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the levels that only the new sequence has, and those that only the old one has."""
    known = set(old)
    current = set(new)
    return tuple(level for level in new if level not in known), tuple(level for level in old if level not in current)


def _word_divergence(pair: _FactorPair, old_rows: np.ndarray, new_rows: np.ndarray) -> np.ndarray:
    """Return the divergence of the words that both blocks have; under one distribution of words, of all words."""
    old = pair.old
    new = pair.new
    new_index = {word: k for k, word in enumerate(new.within)}
    old_index = {word: k for k, word in enumerate(old.within)}
    if new.family.is_bag_of_words:
        return _level_divergence(pair, new.block(), old.block(), [*new_index | old_index], old_rows, new_rows)
    shared = [word for word in new_index if word in old_index]
    p = pair.new_side.parameters[..., [new_index[word] for word in shared]]
    q = pair.old_side.parameters[..., [old_index[word] for word in shared]]
    return np.asarray(kl_divergence(new.family, p, q)).sum(axis=-1)


def _line_divergence(pair: _FactorPair, name: ColumnName) -> np.ndarray:
    """Return the divergence of a linear Gaussian node, averaged over the distribution of its parents after."""
    model: Any = pair.new_side.model
    factor = pair.new
    index = pair.new_side.index
    new = pair.new_side.parameters
    old = pair.old_side.parameters
    if getattr(model, "_fixed_parameters", None) is not None:
        return np.full(np.shape(new.intercept), np.nan)
    node: Any = name
    moments = network_of(model).nodes[node].flat()
    k = len(factor.inputs)
    weight = np.maximum(moments.weight[..., :1, None], 1e-300)
    shape = pair.new_side.shape
    mean = moments.mean[..., :k].reshape(*shape, k)[index]
    covariance = (moments.scatter[..., :k, :k] / weight).reshape(*shape, k, k)[index]
    slope = new.slope - old.slope
    gap = new.intercept - old.intercept + (slope * mean).sum(axis=-1)
    squares = gap**2 + np.einsum("...i,...ij,...j->...", slope, covariance, slope)
    ratio = new.variance / old.variance
    return np.asarray((ratio - 1 - np.log(ratio) + squares / old.variance) / 2)

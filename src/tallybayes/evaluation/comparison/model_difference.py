"""tb.difference: what changed from one model to another, in rows and in bits."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import rel_entr
from sklearn.utils.validation import check_is_fitted

from tallybayes._utils.html import html_parts
from tallybayes._utils.text_table import text_table
from tallybayes.errors import DataError, printable
from tallybayes.families.family import family_kl_divergence
from tallybayes.models.ensemble.auto_classifier import AutoClassifier
from tallybayes.models.inspection.labeled_parameters import LabeledFactor

if TYPE_CHECKING:
    import pandas as pd

    from tallybayes.models.estimator import Estimator

_SHOWN = 12
_UNSEEN = 0.5  # rows: what a level counts for in the model that has never seen it


class ColumnDifference(NamedTuple):
    """One column: how far its distribution moved, in which group most, and the levels that came and went."""

    column: Any
    bits: float
    group: Any  # where it moved most; None where nothing is given
    group_bits: float
    new_levels: tuple[Any, ...]
    gone_levels: tuple[Any, ...]


class Difference:
    """What changed from one model to another. Made by `difference`; it prints as tables.

    Attributes
    ----------
    kind : str
        The class of both models.
    rows : tuple of float
        How many rows each has counted.
    classes : dict
        From class, or state, to its rows in each; those that came or went have 0 in one.
    class_bits : float
        How far p(class) moved; NaN for models that have none.
    columns : list of ColumnDifference
        Those that moved most first.
    only_before, only_after : list
        Columns that only one of them has, or has as another family.
    note : str
        Which members are compared, of mixtures.

    Examples
    --------
    >>> import tallybayes as tb
    >>> coin = tb.NaiveBayes({"toss": tb.Bernoulli()}, estimate="mle")
    >>> fair = coin.fit({"toss": [1, 0, 1, 0], "whose": ["mine"] * 4}, "whose").reestimate()
    >>> found = tb.difference(fair, coin.fit({"toss": [1, 1, 1, 0], "whose": ["mine"] * 4}, "whose"))
    >>> round(found.columns[0].bits, 4)
    0.1887
    """

    def __init__(
        self,
        kind: str,
        rows: tuple[float, float],
        classes: Mapping[Any, tuple[float, float]],
        class_bits: float,
        columns: Sequence[ColumnDifference],
        only_before: Sequence[Any],
        only_after: Sequence[Any],
        note: str = "",
    ) -> None:
        self.kind, self.rows, self.classes, self.class_bits = kind, rows, dict(classes), class_bits
        self.columns = sorted(columns, key=lambda one: 1.0 if math.isnan(one.bits) else -one.bits)
        self.only_before, self.only_after, self.note = list(only_before), list(only_after), note

    def to_frame(self) -> pd.DataFrame:
        """One line for every column, as a pandas data frame."""
        import pandas as pd

        return pd.DataFrame(self.columns, columns=list(ColumnDifference._fields))

    def _parts(self) -> list[tuple[str, list[str], list[list[str]]]]:
        head = f"{self.kind}: {_rows(self.rows[0])} rows before, {_rows(self.rows[1])} after"
        parts = [(head + (f" ({self.note})" if self.note else ""), list[str](), list[list[str]]())]
        if self.classes:
            lines = [[printable(label), *map(_rows, counts)] for label, counts in self.classes.items()]
            moved = "" if np.isnan(self.class_bits) else f"p(class) moved by {_bits(self.class_bits)} bits"
            parts.append((moved, ["class", "before", "after"], lines))
        lines = []
        for one in self.columns:
            where = "" if one.group is None else f"{printable(one.group)}: {_bits(one.group_bits)}"
            levels = [f"+ {printable(level)}" for level in one.new_levels]
            levels += [f"- {printable(level)}" for level in one.gone_levels]
            more = [f"… {len(levels) - 4} more"] if len(levels) > 5 else []
            shown = ", ".join([*levels[:4], *more] if more else levels)
            lines.append([printable(one.column), _bits(one.bits), where, shown])
        parts.append(("", ["column", "bits", "most in", "levels"], lines))
        for what, names in (("only before", self.only_before), ("only after", self.only_after)):
            if names:
                parts.append((f"{what}: {', '.join(map(printable, names))}", [], []))
        return parts

    def _repr_html_(self) -> str:
        return html_parts(*self._parts())

    def __repr__(self) -> str:
        out = []
        for title, head, lines in self._parts():
            out += [title] if title else []
            if head:
                more = [[f"… {len(lines) - _SHOWN} more", *[""] * (len(head) - 1)]] if len(lines) > _SHOWN else []
                out += text_table([head, *lines[:_SHOWN], *more])
        return "\n".join(out)


def difference(before: Estimator, after: Estimator) -> Difference:
    """What changed from one model to another of the same kind: in rows, levels and classes, and in bits.

    The bits of a column are the Kullback–Leibler divergence of its distribution after from the one before, by the point
    estimates that `table` shows, averaged over the groups (classes) by their rows after: what every cell of the new
    rows would cost more if it were coded by the old model. A level that one model has never seen counts as half a row
    there. Words count by the token; columns that a covariance describes together are one. Of pairs of columns
    (one-dependence classifiers), each is compared given the class alone.

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
      class  before  after
      no     2       3
      yes    2       2
      column  bits    most in     levels
      sky     0.0422  no: 0.0703  + fog
    """
    if type(before) is not type(after):
        raise DataError(
            f"the models are a {type(before).__name__} and a {type(after).__name__}; expected two of one kind.\n"
            "    Models of different kinds are compared by what they predict: tb.evaluate."
        )
    check_is_fitted(before)
    check_is_fitted(after)
    if not hasattr(type(before), "parameters_"):
        raise DataError.wrong_type("before", f"a {type(before).__name__}", "a model of columns, such as a classifier")
    first, second, note = before, after, ""
    if isinstance(before, AutoClassifier) and isinstance(after, AutoClassifier):
        first, second, note = _members(before, after)
    second = _in_kinds_of(first, second)
    found, pasts = _told(second), _told(first)
    classes, class_bits = _classes(first, second)
    columns, only_after = [], []
    pairs: dict[int, _FactorPair] = {}  # by the factor after
    for name, (told, place) in found.items():
        past = pasts.get(name)
        if past is None or past[0].family != told.family or past[0].given != told.given:
            only_after.append(name)
        else:
            pair = pairs.get(id(told))
            if pair is None or pair.old is not past[0]:
                pair = pairs[id(told)] = _FactorPair(first, past[0], second, told)
            columns.append(_column(name, pair, past[1], place))
    kept = {one.column for one in columns}
    only_before = [name for name in pasts if name not in kept]
    rows = (before.n_rows_, after.n_rows_)
    return Difference(type(before).__name__, rows, classes, class_bits, columns, only_before, only_after, note)


def _in_kinds_of(before: Any, after: Any) -> Any:
    """Return the model after, with booleans as the one before has them: as booleans, 0 and 1, or strings."""
    known, domains = before.tally_.domains, after.tally_.domains
    others = {
        name: domain.in_kind_of(known[name])
        for name, domain in domains.items()
        if name in known and domain.kind != known[name].kind and known[name].same_levels(domain.levels) is not None
    }
    return copy.copy(after)._set_tally(after.tally_.align(domains | others)) if others else after


def _members(before: AutoClassifier, after: AutoClassifier) -> tuple[Any, Any, str]:
    """The member that both have and that tells of most columns by themselves; of several, the heaviest after."""
    pairs = [
        (past, old, choice, model)
        for choice, model in after.members_
        for past, old in before.members_
        if choice.name == past.name and type(model) is type(old)
    ]
    if pairs:
        past, old, choice, model = max(pairs, key=lambda pair: len(_told(pair[3])))
        return old, model, f"compared by {choice.name}, weight {past.weight:.2f} before, {choice.weight:.2f} after"
    names = [", ".join(choice.name for choice, _ in model.members_) for model in (before, after)]
    raise DataError(
        f"the mixtures have no member in common ({names[0]}; {names[1]}); expected at least one.\n"
        "    Fit one with the choice of the other: tb.AutoClassifier(choice=one.choice_)."
    )


Place = tuple[LabeledFactor, int | None]


def _told(model: Any) -> dict[Any, Place]:
    """Every column as it is told of, by name: its factor and its place in it; None for all columns of one together."""
    told = model._labeled_factors()
    if hasattr(model, "_pairs"):
        told = [model._pairs.labeled_factor(name) for name in model._pairs.counts.names]
    elif hasattr(model, "target_"):
        told = told[1:]  # p(class) is told by itself
    found: dict[Any, Place] = {}
    for one in told:
        if one.is_block:
            found[one.columns[0]] = (one, None)
        elif one.family.columnwise:
            found |= {name: (one, place) for place, name in enumerate(one.columns)}
        else:
            found[one.columns[0] if len(one.columns) == 1 else tuple(one.columns)] = (one, None)
    return found


def _classes(before: Any, after: Any) -> tuple[dict[Any, tuple[float, float]], float]:
    """The rows of every class in each, and the bits by which p(class) moved; nothing for models without classes."""
    if not hasattr(after, "target_"):
        return {}, float("nan")
    counts = [
        dict(zip(model.classes_.tolist(), model.tally_[model.target_].table.tolist(), strict=True))
        for model in (before, after)
    ]
    labels = list(dict.fromkeys([*counts[0], *counts[1]]))
    shares = [dict(zip(model.classes_.tolist(), model.class_prior_.values, strict=True)) for model in (before, after)]
    old, new = (
        _with_unseen(np.array([some.get(label, np.nan) for label in labels]), sum(rows.values()))
        for some, rows in zip(shares, counts, strict=True)
    )
    rows = {label: (counts[0].get(label, 0.0), counts[1].get(label, 0.0)) for label in labels}
    return rows, float(rel_entr(new, old).sum() / np.log(2))


def _with_unseen(shares: np.ndarray, rows: Any) -> np.ndarray:
    """Probabilities of levels, (…, levels), those that are not known (NaN) as of half a row among so many."""
    unknown = np.isnan(shares)
    if not unknown.any() or unknown.all():
        return shares
    n = np.asarray(rows, dtype=float)[..., None]
    counts = np.where(unknown, _UNSEEN, np.nan_to_num(shares) * n)
    return counts / counts.sum(axis=-1, keepdims=True)


class _FactorPair:
    """A factor of both models, with the values that all of its columns share."""

    def __init__(self, before: Any, old: LabeledFactor, after: Any, new: LabeledFactor) -> None:
        self.old, self.after, self.new = old, after, new
        shared = [
            [label for label in axis if label in set(other)] for axis, other in zip(new.groups, old.groups, strict=True)
        ]
        self.labels: list[Any] = [_joined(group) for group in _product(shared)]
        self.old_index, self.new_index = (_index(told.groups, shared) for told in (old, new))
        self.old_rows = _RowsOf(before, old)
        self.new_rows = _RowsOf(after, new)

    @cached_property
    def nats(self) -> np.ndarray:
        """The divergence of every group, and of every column where they are independent."""
        return family_kl_divergence(self.new.family, _some(self.new, self.new_index), _some(self.old, self.old_index))


def _column(name: Any, pair: _FactorPair, old_place: int | None, place: int | None) -> ColumnDifference:
    """How far one column moved."""
    old, new, old_index, new_index = pair.old, pair.new, pair.old_index, pair.new_index
    old_rows, new_rows = pair.old_rows.of(old_place)[old_index], pair.new_rows.of(place)[new_index]
    new_levels: tuple[Any, ...] = ()
    gone_levels: tuple[Any, ...] = ()
    if place is not None and old_place is not None and new._columns(place) is not None:
        known, there = new._columns(place), old._columns(old_place)
        assert known is not None and there is not None  # noqa: PT018 - the same family has levels in both
        new_levels = tuple(level for level in known if level not in set(there))
        gone_levels = tuple(level for level in there if level not in set(known))
        levels = [*known, *gone_levels]
        p = _over(new.column(place), levels, new_index)
        q = _over(old.column(old_place), levels, old_index)
        nats = rel_entr(_with_unseen(p, new_rows), _with_unseen(q, old_rows)).sum(axis=-1)
    elif place is None and new.is_block and list(new.within) != list(old.within):
        these, those = set(new.within), set(old.within)
        new_levels = tuple(word for word in new.within if word not in those)
        gone_levels = tuple(word for word in old.within if word not in these)
        nats = _words_moved(new, new_index, new_rows, old, old_index, old_rows)
    elif new.inputs:
        nats = _line_moved(pair.after, name, _some(new, new_index), new_index, new, _some(old, old_index))
    else:
        nats = pair.nats
        if new.family.columnwise or new.family.is_bag_of_words:
            nats = nats.sum(axis=-1) if place is None else nats[..., place]
    bits = np.ravel(nats) / np.log(2)
    weight = np.where(np.ravel(old_rows) > 0, np.ravel(new_rows), 0.0)
    weight = np.where(np.isnan(bits), 0.0, weight)
    if not weight.any():
        return ColumnDifference(name, float("nan"), None, float("nan"), new_levels, gone_levels)
    mean = float((np.where(weight > 0, bits, 0.0) * weight).sum() / weight.sum())
    most = int(np.argmax(np.where(weight > 0, bits, -1.0)))
    group = pair.labels[most] if new.groups else None
    return ColumnDifference(name, mean, group, float(bits[most]), new_levels, gone_levels)


def _words_moved(
    new: LabeledFactor, new_index: Any, new_rows: np.ndarray, old: LabeledFactor, old_index: Any, old_rows: np.ndarray
) -> np.ndarray:
    """How far the words moved that two blocks have, in nats; of one vocabulary also those that only one has."""
    both = ((new, new_index), (old, old_index))
    places = [{word: place for place, word in enumerate(told.within)} for told, _ in both]
    if new.family.is_bag_of_words:
        words = [*places[0] | places[1]]
        p, q = (_over(told.block(), words, index) for told, index in both)
        return np.asarray(rel_entr(_with_unseen(p, new_rows), _with_unseen(q, old_rows)).sum(axis=-1))
    shared = [word for word in places[0] if word in places[1]]
    some = [[place[word] for word in shared] for place in places]
    found = (_some(*one)[..., chosen] for one, chosen in zip(both, some, strict=True))
    return np.asarray(family_kl_divergence(new.family, *found)).sum(axis=-1)


def _line_moved(model: Any, name: Any, new: Any, index: Any, told: LabeledFactor, old: Any) -> np.ndarray:
    """How far the line of a network's node moved, in nats, over its parents as they were counted after."""
    if getattr(model, "_fixed_parameters", None) is not None:
        return np.full(np.shape(new.intercept), np.nan)
    moments, k = model._estimated_network.nodes[name].flat(), len(told.inputs)
    weight = np.maximum(moments.weight[..., :1, None], 1e-300)
    shape = tuple(map(len, told.groups))
    mean = moments.mean[..., :k].reshape(*shape, k)[index]
    spread = (moments.scatter[..., :k, :k] / weight).reshape(*shape, k, k)[index]
    turn = new.slope - old.slope
    gap = new.intercept - old.intercept + (turn * mean).sum(axis=-1)
    squares = gap**2 + np.einsum("...i,...ij,...j->...", turn, spread, turn)
    share = new.variance / old.variance
    return np.asarray((share - 1 - np.log(share) + squares / old.variance) / 2)


def _product(axes: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    groups: list[tuple[Any, ...]] = [()]
    for axis in axes:
        groups = [(*group, label) for group in groups for label in axis]
    return groups


def _joined(group: tuple[Any, ...]) -> Any:
    return group[0] if len(group) == 1 else ", ".join(map(str, group))


def _index(groups: Sequence[Sequence[Any]], shared: Sequence[Sequence[Any]]) -> Any:
    """Where the groups that both have are among those of one."""
    places = [[list(axis).index(label) for label in some] for axis, some in zip(groups, shared, strict=True)]
    return np.ix_(*(np.array(some, dtype=np.intp) for some in places)) if places else ()


def _over(table: Any, levels: Sequence[Any], index: Any) -> np.ndarray:
    """The probabilities of some groups, by these levels; NaN of those that the table does not know."""
    place = {level: k for k, level in enumerate(table.columns)}
    values = np.concatenate([table.values, np.full((*table.values.shape[:-1], 1), np.nan)], axis=-1)
    return values[..., [place.get(level, -1) for level in levels]][index]


def _some(told: LabeledFactor, index: Any) -> Any:
    """The parameters of some groups, each group's own."""
    point, shape = told.point, tuple(map(len, told.groups))

    def by_group(part: Any) -> np.ndarray:
        """With an axis for all that it is given: measured nodes of a network have one for all combinations."""
        array = np.asarray(part)
        flat = len(shape) > 1 and array.shape[: len(shape)] != shape
        return array.reshape(*shape, *array.shape[1:]) if flat else array

    if not isinstance(point, tuple):
        return by_group(point)[index]
    if told.inputs:
        return type(point)(*(by_group(part)[index] for part in point))
    point = type(point)(*map(by_group, point))
    first = point[0]
    wider = [first.shape if np.ndim(part) <= first.ndim else (*first.shape, first.shape[-1]) for part in point]
    parts = (np.broadcast_to(part, shape)[index] for part, shape in zip(point, wider, strict=True))
    return type(point)(*parts)


class _RowsOf:
    """The rows that were counted in every group of a factor; 1 each where none were."""

    def __init__(self, model: Any, told: LabeledFactor) -> None:
        self.model, self.names, self.shape = model, told.scored.factor.columns, tuple(map(len, told.groups))

    @cached_property
    def _counted(self) -> Any:
        """The statistics of the factor, or None where the tally has it in other parts."""
        try:
            return self.model.tally_[self.names]
        except KeyError:
            return None

    @cached_property
    def _weight(self) -> np.ndarray:
        """The weight of every group and column, or of every group."""
        return np.maximum(self._counted.weight, 0.0)

    def of(self, place: int | None) -> np.ndarray:
        """The rows of one column, or of all columns together."""
        model, shape = self.model, self.shape
        if getattr(model, "_fixed_parameters", None) is not None:
            return np.ones(shape)  # parameters that were given: every group counts alike
        found = None
        if self._counted is not None and place is not None:
            found = self._weight[..., place if self._weight.shape[-1] > 1 else 0]
        elif self._counted is not None:
            found = np.asarray(self._counted.group_weights())
        elif place is not None:
            with suppress(KeyError):
                found = np.asarray(model.tally_[self.names[place]].group_weights())
        if found is not None and found.shape == shape:
            return found
        if hasattr(model, "target_") and shape == (len(model.classes_),):
            return np.asarray(model.tally_[model.target_].table)
        return np.ones(shape)


def _rows(weight: float) -> str:
    return f"{weight:.12g}"


def _bits(bits: float) -> str:
    return "unknown" if np.isnan(bits) else "0" if abs(bits) < 5e-7 else f"{bits:.3g}"

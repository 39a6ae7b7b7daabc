"""Reading what was learnt: the parameters and the beliefs of every factor, labeled as the rows were.

A model says in ``_told`` which factors it has, what they are given and how groups and levels are called; everything
here follows from that, from ``FactorScorer`` and from what families say of themselves (`Family.describe`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tallybayes.distributions.beta import Beta
from tallybayes.distributions.dirichlet import Dirichlet
from tallybayes.errors import DataError, printable, short_repr
from tallybayes.estimation.scoring.factor_scorer import FactorScorer
from tallybayes.families.conditional_linear_gaussian import weight_name
from tallybayes.families.estimates import read_estimate
from tallybayes.families.family import Family
from tallybayes.messages import did_you_mean
from tallybayes.models.inspection.parameter_table import Parameters, ParameterTable, Posteriors
from tallybayes.typing import Name

UNSEEN = "(unseen)"  # the level that nobody has seen, where it has a probability


@dataclass(frozen=True, eq=False)
class LabeledFactor:
    """A factor as it is told of.

    Parameters
    ----------
    scored : Scored
    given : tuple of names
    groups : tuple of sequences
        What the levels of each are called.
    levels : sequence of sequences
        The levels of every column of labels; empty for others.
    names : sequence, optional
        What the columns are called, if not as the factor calls them.
    within : sequence
        The columns of a block by their own names, or numbers.
    only : tuple of str, optional
        The parameters that the model uses, if not all.
    posterior : callable, optional
        Makes the belief about all its parameters; None where there is none.
    whole : bool
        Whether its one column has a line in others, which is believed of as a whole.
    inputs : sequence
        The columns that a line is in, where it has them as parents: the weight of each is called by its name.
    """

    scored: FactorScorer
    given: tuple[Any, ...]
    groups: tuple[Sequence[Any], ...]
    levels: Sequence[Sequence[Any]] = ()
    names: Sequence[Any] = ()
    within: Sequence[Any] = ()
    only: tuple[str, ...] = ()
    posterior: Callable[[], Any] | None = None
    whole: bool = False
    inputs: Sequence[Any] = ()

    @property
    def columns(self) -> Sequence[Any]:
        """What the columns are called."""
        return self.names or self.scored.factor.columns

    @property
    def family(self) -> Family:
        """The family of the factor."""
        return self.scored.family

    @property
    def is_block(self) -> bool:
        """Whether one name stands for several columns."""
        return len(self.within) > 0

    def name_within(self, place: int) -> str:
        """What a column of a block is called: its own name, or the block's with its number."""
        name = self.within[place]
        return name if isinstance(name, str) else f"{self.columns[0]}[{name}]"

    @property
    def is_together(self) -> bool:
        """Whether all columns fit into one table: they have a number each, or vary together."""
        if self.levels or self.family.bins:
            return False
        return not self.family.columnwise or self.family.is_binary or len(self._described) == 1

    @cached_property
    def point(self) -> Any:
        """The parameters; of a posterior, their means."""
        return self.scored.display_parameters

    def _title(self, shown: str) -> str:
        given = ", ".join(map(printable, (*self.given, *self.inputs)))
        return f"p({shown} | {given})" if given else f"p({shown})"

    def _columns(self, place: int) -> Sequence[Any] | None:
        """The levels of one column, or None where it has parameters."""
        if self.levels:
            return self.levels[place]
        if self.family.bins:
            return self.family.bins
        return (0, 1) if self.family.is_binary else None

    def _numbers(self, place: slice | int) -> np.ndarray:
        """The parameters of some columns by name, or the probabilities of their levels: (…, columns, parameters)."""
        point = self.point
        if self.levels or self.family.bins:
            if isinstance(place, slice):
                return np.stack(point.segments.split(point.table)[place], axis=-2)
            start, stop = point.segments.offsets[place : place + 2]
            return point.table[..., None, start:stop]
        if self.family.is_binary:
            p = np.asarray(point)[..., _slice(place)]
            return np.stack([1 - p, p], axis=-1)
        return np.stack([part[..., _slice(place)] for part in self._described.values()], axis=-1)

    @cached_property
    def _described(self) -> dict[str, np.ndarray]:
        """The parameters of all columns by name."""
        found = self._named(self.family.named_parameters(self.point))
        return {name: found[name] for name in self.only or found}

    def _named(self, found: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The parameters of a line by the names of the columns it is in."""
        named = {weight_name(k): weight_name(name) for k, name in enumerate(self.inputs)}
        return {named.get(name, name): part for name, part in found.items()}

    def column(self, place: int, name: Any = None) -> ParameterTable:
        """The table of one column."""
        columns = self._columns(place)
        title = self._title(printable(self.columns[place] if name is None else name))
        return ParameterTable(
            title,
            self.given,
            self.groups,
            tuple(self._described) if columns is None else columns,
            lambda: self._numbers(place),
            labels=bool(self.levels),
            ends=None if self.posterior is None else partial(self._ends, place),
        )

    def _ends(self, place: int, mass: float) -> tuple[np.ndarray, np.ndarray]:
        """The ends of the credible intervals of one column's numbers: (*groups, numbers)."""
        low, high = self.belief(place).interval(mass)
        if self.family.is_binary:
            low, high = np.stack([1 - np.asarray(high), low], axis=-1), np.stack([1 - np.asarray(low), high], axis=-1)
        elif self._columns(place) is None:
            names = tuple(self._described)
            low, high = (self._described_end(end, names) for end in (low, high))
        shape = (*map(len, self.groups), np.shape(low)[-1])
        return np.reshape(low, shape), np.reshape(high, shape)

    def _described_end(self, end: Any, names: Sequence[str]) -> np.ndarray:
        """One end of the intervals of parameters by name, each of one column; NaN of what is not believed of alone."""
        parts = tuple(map(np.asarray, end)) if isinstance(end, tuple) else np.asarray(end)
        found = self._named(
            self.family.columnwise_family.named_parameters(type(end)(*parts) if isinstance(end, tuple) else parts)
        )
        size = tuple(map(len, self.groups))
        return np.stack(
            [np.reshape(found[name], size) if name in found else np.full(size, np.nan) for name in names], -1
        )

    def block(self) -> ParameterTable:
        """The table of all columns: one number of each, or a line."""
        title = self._title(printable(self.columns[0]))
        names = self.within or self.columns
        if not self.is_block:
            title = self._title(", ".join(map(printable, names[:3])) + (", …" if len(names) > 3 else ""))
        if self.family.is_binary:
            title = title.replace(" |", " = 1 |", 1)
            return ParameterTable(title, self.given, self.groups, names, lambda: self._numbers(slice(None))[..., 1])
        columns = self._columns(0) or tuple(self._described)
        if hasattr(self.point, "covariance"):
            columns = ("mean", *(f"covariance with {printable(name)}" for name in names))
            return ParameterTable(title, (*self.given, "column"), (*self.groups, names), columns, self._moments)
        if len(columns) == 1:
            title = f"{title}: {columns[0]}"
            return ParameterTable(title, self.given, self.groups, names, lambda: self._numbers(slice(None)))
        axes = (*self.given, "column")
        groups = (*self.groups, names)
        return ParameterTable(title, axes, groups, columns, lambda: self._numbers(slice(None)))

    def belief(self, place: int | None) -> Any:
        """The belief about one column, or about all together."""
        assert self.posterior is not None
        found = self.posterior()
        if place is None or self.whole or self.inputs:
            return found
        if self.family.is_bag_of_words and isinstance(found, Dirichlet):  # of one share, whatever the others are
            alpha = np.asarray(found.concentration)
            return Beta(alpha[..., place], alpha.sum(axis=-1) - alpha[..., place])
        return found.column(place)

    def _moments(self) -> np.ndarray:
        mean, covariance = (np.asarray(part, dtype=float) for part in self.point)
        return np.concatenate([mean[..., None], np.broadcast_to(covariance, (*mean.shape, mean.shape[-1]))], axis=-1)


def _slice(place: slice | int) -> slice:
    return place if isinstance(place, slice) else slice(place, place + 1)


class _ColumnIndex:
    """Where every column of a model is told of: by its name, its place in a block, or in a tuple of columns."""

    def __init__(self, told: Sequence[LabeledFactor]) -> None:
        self.told = told

    @cached_property
    def of(self) -> dict[Any, tuple[LabeledFactor, int | None]]:
        """By column: the factor, and the place in it; None for a whole block."""
        found: dict[Any, tuple[LabeledFactor, int | None]] = {}
        for one in self.told:
            if one.is_block:
                found[one.columns[0]] = (one, None)
            else:
                found |= {name: (one, place) for place, name in enumerate(one.columns)}
                if len(one.columns) > 1 and not one.levels:
                    found[tuple(one.columns)] = (one, None)
        return found

    @cached_property
    def within(self) -> dict[Any, tuple[LabeledFactor, int | None]]:
        """The columns of blocks, by their own names and by place."""
        found: dict[Any, tuple[LabeledFactor, int | None]] = {}
        for one in self.told:
            for place, name in enumerate(one.within):
                found[one.columns[0], place] = (one, place)
                if isinstance(name, str):
                    found.setdefault(name, (one, place))
        return found

    def find(self, column: Any) -> tuple[LabeledFactor, int | None]:
        """The factor of a column and its place in it, or an error that names what there is."""
        found = self.of.get(column) or self.within.get(column)
        if found is None:
            listed = f"Its columns are {short_repr(self.names[:20], 120)}."
            hint = did_you_mean([column], [*self.of, *self.within], listed)
            raise KeyError(f"no column {short_repr(column)} in this model.\n    {hint}")
        return found

    @property
    def names(self) -> list[Any]:
        """The columns, blocks by their names."""
        return [name for one in self.told for name in (one.columns[:1] if one.is_block else one.columns)]

    @property
    def shown(self) -> list[Any]:
        """What to print: columns that have one number each, or are described together, together."""
        return [
            name
            for one in self.told
            for name in ([tuple(one.columns)] if one.is_together and len(one.columns) > 1 else one.columns)
        ]


def within_of(model: Any, scored: FactorScorer, width: int) -> Sequence[Any]:
    """What the columns of a factor are called that have one name: by their own names, or by number."""
    if len(scored.factor.columns) > 1 or width == 1:
        return ()
    names = model._block_column_names(scored.factor.columns[0])
    return names if len(names) == width else (*names[:width], *range(len(names), width))


# ---- What models have of it ------------------------------------------------------------------------------------------


def parameters(model: Any) -> Parameters:
    """What was learnt, by column: a `ParameterTable` of each, under the model's estimate.

    Probabilities of levels by their labels (of bins by their intervals), else parameters by name: mean, variance and
    deviation, rate. Under ``"bayes"`` these are posterior means; rows are scored with the parameters integrated out.
    """
    found: Parameters = model._cached("parameters", lambda: make_parameters(model))
    return found


def make_parameters(model: Any) -> Parameters:
    """As `parameters`, made anew."""
    places = _ColumnIndex(model._labeled_factors())

    def find(column: Any) -> ParameterTable:
        told, place = places.find(column)
        if place is None:
            return told.block()
        return told.column(place, told.name_within(place) if told.is_block else None)

    return Parameters(title_of(model), places.names, places.shown, find)


def posterior(model: Any) -> Posteriors:
    """What is believed of the parameters after the data, by column: beliefs, with `mean`, `interval`, `sample`.

    Their arrays lead with the groups, in the order of the tables. They are ``prior_`` after the counts, whichever
    ``estimate`` predicts; where EM filled something in, after the counts it expected. Where groups share a variance,
    arrays keep an axis for the one column.
    """
    check_is_fitted(model, "tally_")
    model._require_counts("a posterior")
    places = _ColumnIndex([told for told in model._labeled_factors() if told.posterior is not None])

    def find(column: Any) -> Any:
        told, place = places.find(column)
        return told.belief(place)

    return Posteriors(f"Beliefs of {type(model).__name__} after the data", places.names, places.shown, find)


def title_of(model: Any) -> str:
    """What the parameters are."""
    if getattr(model, "_fixed_parameters", None) is not None:
        return f"Parameters of {type(model).__name__}, as they were given"
    estimate = getattr(model, "estimate", None)
    how = f", estimate {estimate!r}" if estimate is not None else ""
    means = " (posterior means)" if estimate is not None and read_estimate(estimate).integrates else ""
    return f"Parameters of {type(model).__name__}{how}{means}"


def table(model: Any, column: Name | tuple[Name, ...]) -> ParameterTable:
    """What was learnt of one column: ``parameters_[column]``.

    Parameters
    ----------
    column : name
        Of a column, or of a block of them; a tuple of columns that the model describes together.

    Returns
    -------
    ParameterTable
    """
    check_is_fitted(model, "tally_")
    return looked_up(model.parameters_, column)


def looked_up(found: Mapping[Any, Any], column: Any) -> Any:
    """What there is of a column, or an error of this package."""
    try:
        return found[column]
    except KeyError as error:
        raise DataError(str(error.args[0])) from None
    except TypeError:
        raise DataError.wrong_type("column", short_repr(column), "the name of a column") from None

"""Labeled parameters and posterior distributions of a fitted model.

A model returns its factors with labels from ``_labeled_factors``; families describe their parameters by
`Family.named_parameters`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from tallybayes.distributions.beta import Beta
from tallybayes.distributions.dirichlet import Dirichlet
from tallybayes.errors import DataError, printable, short_repr
from tallybayes.estimation.scoring.factor_scorer import FactorScorer
from tallybayes.families.conditional_linear_gaussian import weight_name
from tallybayes.families.estimates import read_estimate
from tallybayes.families.family import Family
from tallybayes.families.protocols.display import named_parameters
from tallybayes.families.protocols.em_support import columnwise_family
from tallybayes.messages import did_you_mean
from tallybayes.models.inspection.parameter_table import Parameters, ParameterTable, Posteriors
from tallybayes.tally.factor import Name

UNSEEN = "(unseen)"  # the level of unseen values, if it has a probability


@dataclass(frozen=True, eq=False)
class LabeledFactor:
    """A factor with the labels of its groups, columns and levels.

    Parameters
    ----------
    scored : FactorScorer
    given : tuple of names
        The names of the conditioning variables.
    groups : tuple of sequences
        The labels of the levels of each conditioning variable.
    levels : sequence of sequences
        The levels of each categorical column; empty otherwise.
    names : sequence, optional
        Display names of the columns, if they differ from the factor's.
    within : sequence
        The names or numbers of the columns of a block.
    only : tuple of str, optional
        The parameters that the model uses, if not all.
    posterior : callable, optional
        Returns the posterior distribution of all parameters; None if there is none.
    whole : bool
        Whether the posterior describes the column jointly with other columns.
    inputs : sequence
        The parents of a conditional linear Gaussian column; coefficients are named after them.
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
        """The display names of the columns."""
        return self.names or self.scored.factor.columns

    @property
    def family(self) -> Family:
        """The family of the factor."""
        return self.scored.family

    @property
    def is_block(self) -> bool:
        """Whether one name stands for several columns."""
        return len(self.within) > 0

    def name_within(self, index: int) -> str:
        """Return the name of a column of a block: its own name, or the block's with its number."""
        name = self.within[index]
        return name if isinstance(name, str) else f"{self.columns[0]}[{name}]"

    @property
    def is_one_table(self) -> bool:
        """Whether all columns fit into one table: they have one number each, or a joint distribution."""
        if self.levels or self.family.bins:
            return False
        return not self.family.columnwise or self.family.is_binary or len(self._described) == 1

    @cached_property
    def point(self) -> Any:
        """The point estimates of the parameters; the posterior mean under ``"bayes"``."""
        return self.scored.display_parameters

    def _title(self, shown: str) -> str:
        """Return the title of a table, p(columns | given)."""
        given = ", ".join(map(printable, (*self.given, *self.inputs)))
        return f"p({shown} | {given})" if given else f"p({shown})"

    def _columns(self, index: int) -> Sequence[Any] | None:
        """Return the levels of one column, or None if it has named parameters."""
        if self.levels:
            return self.levels[index]
        if self.family.bins:
            return self.family.bins
        return (0, 1) if self.family.is_binary else None

    def _numbers(self, index: slice | int) -> np.ndarray:
        """Return the numbers of some columns: (…, columns, parameters)."""
        point = self.point
        if self.levels or self.family.bins:
            if isinstance(index, slice):
                return np.stack(point.segments.split(point.table)[index], axis=-2)
            start, stop = point.segments.offsets[index : index + 2]
            return point.table[..., None, start:stop]
        if self.family.is_binary:
            p = np.asarray(point)[..., _slice(index)]
            return np.stack([1 - p, p], axis=-1)
        return np.stack([part[..., _slice(index)] for part in self._described.values()], axis=-1)

    @cached_property
    def _described(self) -> dict[str, np.ndarray]:
        """The parameters of all columns by name."""
        named = self._named(named_parameters(self.family, self.point))
        return {name: named[name] for name in self.only or named}

    def _named(self, parameters: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return regression parameters under the names of their input columns."""
        named = {weight_name(k): weight_name(name) for k, name in enumerate(self.inputs)}
        return {named.get(name, name): part for name, part in parameters.items()}

    def column(self, index: int, name: Name | None = None) -> ParameterTable:
        """Return the parameter table of one column."""
        columns = self._columns(index)
        title = self._title(printable(self.columns[index] if name is None else name))
        return ParameterTable(
            title,
            self.given,
            self.groups,
            tuple(self._described) if columns is None else columns,
            lambda: self._numbers(index),
            labels=bool(self.levels),
            ends=None if self.posterior is None else partial(self._ends, index),
        )

    def _ends(self, index: int, mass: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the ends of the credible intervals of one column's numbers: (*groups, numbers)."""
        low, high = self.posterior_of(index).interval(mass)
        if self.family.is_binary:
            low, high = np.stack([1 - np.asarray(high), low], axis=-1), np.stack([1 - np.asarray(low), high], axis=-1)
        elif self._columns(index) is None:
            names = tuple(self._described)
            low, high = (self._described_end(end, names) for end in (low, high))
        shape = (*map(len, self.groups), np.shape(low)[-1])
        return np.reshape(low, shape), np.reshape(high, shape)

    def _described_end(self, end: np.ndarray | tuple[np.ndarray, ...], names: Sequence[str]) -> np.ndarray:
        """Return one end of the intervals of one column's named parameters; NaN without a marginal posterior."""
        parts = tuple(map(np.asarray, end)) if isinstance(end, tuple) else np.asarray(end)
        named = self._named(
            named_parameters(columnwise_family(self.family), type(end)(*parts) if isinstance(end, tuple) else parts)
        )
        size = tuple(map(len, self.groups))
        return np.stack(
            [np.reshape(named[name], size) if name in named else np.full(size, np.nan) for name in names], -1
        )

    def block(self) -> ParameterTable:
        """Return the parameter table of all columns: one number or one row each."""
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

    def posterior_of(self, index: int | None) -> Any:
        """Return the posterior distribution of one column's parameters, or of all columns."""
        assert self.posterior is not None
        distribution = self.posterior()
        if index is None or self.whole or self.inputs:
            return distribution
        if self.family.is_bag_of_words and isinstance(distribution, Dirichlet):  # the marginal of one probability
            alpha = np.asarray(distribution.concentration)
            return Beta(alpha[..., index], alpha.sum(axis=-1) - alpha[..., index])
        return distribution.column(index)

    def _moments(self) -> np.ndarray:
        """Return means and covariances as one array."""
        mean, covariance = (np.asarray(part, dtype=float) for part in self.point)
        return np.concatenate([mean[..., None], np.broadcast_to(covariance, (*mean.shape, mean.shape[-1]))], axis=-1)


def _slice(index: slice | int) -> slice:
    """Return a slice of one column, or the slice itself."""
    return index if isinstance(index, slice) else slice(index, index + 1)


class _ColumnIndex:
    """Lookup of a model's factors by column name, position in a block, or tuple of columns."""

    def __init__(self, factors: Sequence[LabeledFactor]) -> None:
        self.factors = factors

    @cached_property
    def of(self) -> dict[Any, tuple[LabeledFactor, int | None]]:
        """The factor and position of each column; position None for a whole block."""
        index: dict[Any, tuple[LabeledFactor, int | None]] = {}
        for factor in self.factors:
            if factor.is_block:
                index[factor.columns[0]] = (factor, None)
            else:
                index |= {name: (factor, position) for position, name in enumerate(factor.columns)}
                if len(factor.columns) > 1 and not factor.levels:
                    index[tuple(factor.columns)] = (factor, None)
        return index

    @cached_property
    def within(self) -> dict[Any, tuple[LabeledFactor, int | None]]:
        """The factor and position of each column of a block, by name and by position."""
        index: dict[Any, tuple[LabeledFactor, int | None]] = {}
        for factor in self.factors:
            for position, name in enumerate(factor.within):
                index[factor.columns[0], position] = (factor, position)
                if isinstance(name, str):
                    index.setdefault(name, (factor, position))
        return index

    def find(self, column: Hashable) -> tuple[LabeledFactor, int | None]:
        """Return the factor and position of a column; raise KeyError with a suggestion if there is none."""
        match = self.of.get(column) or self.within.get(column)
        if match is None:
            listed = f"Its columns are {short_repr(self.names[:20], 120)}."
            hint = did_you_mean([column], [*self.of, *self.within], listed)
            raise KeyError(f"no column {short_repr(column)} in this model.\n    {hint}")
        return match

    @property
    def names(self) -> list[Any]:
        """The column names; a block has one name."""
        return [name for factor in self.factors for name in (factor.columns[:1] if factor.is_block else factor.columns)]

    @property
    def shown(self) -> list[Any]:
        """The keys of the printed tables: columns that share a table are one tuple."""
        return [
            name
            for factor in self.factors
            for name in ([tuple(factor.columns)] if factor.is_one_table and len(factor.columns) > 1 else factor.columns)
        ]


# ---- What models have of it ------------------------------------------------------------------------------------------


def parameters_by_column(title: str, factors: Sequence[LabeledFactor]) -> Parameters:
    """Return the parameters of labeled factors by column, a `ParameterTable` each."""
    columns = _ColumnIndex(factors)

    def find(column: Hashable) -> ParameterTable:
        factor, position = columns.find(column)
        if position is None:
            return factor.block()
        return factor.column(position, factor.name_within(position) if factor.is_block else None)

    return Parameters(title, columns.names, columns.shown, find)


def posteriors_by_column(model: str, factors: Sequence[LabeledFactor]) -> Posteriors:
    """Return the posterior distributions of the parameters by column, with `mean`, `interval` and `sample`."""
    columns = _ColumnIndex([factor for factor in factors if factor.posterior is not None])

    def find(column: Hashable) -> Any:
        factor, position = columns.find(column)
        return factor.posterior_of(position)

    return Posteriors(f"Posterior distributions of {model}", columns.names, columns.shown, find)


def parameters_title(model: str, estimate: str | None, *, fixed: bool) -> str:
    """Return the title of the parameters of a model, which are estimated or fixed by the user."""
    if fixed or estimate is None:
        return f"Parameters of {model}{', fixed by the user' if fixed else ''}"
    means = " (posterior means)" if read_estimate(estimate).integrates else ""
    return f"Parameters of {model}, estimate {estimate!r}{means}"


def looked_up(by_column: Mapping[Any, Any], column: Hashable) -> Any:
    """Return an entry by column; raise DataError if there is none."""
    try:
        return by_column[column]
    except KeyError as error:
        raise DataError(str(error.args[0])) from None
    except TypeError:
        raise DataError.wrong_type("column", short_repr(column), "the name of a column") from None

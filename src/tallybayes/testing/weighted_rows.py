"""Rows: a table with its weights and factors, the thing that the laws of counting cut, repeat, shuffle and rename."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tallybayes.data.counting import count
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Factor, Name
from tallybayes.tally.schema import Schema
from tallybayes.tally.tally import Tally
from tallybayes.tally.vocabulary import Vocabulary


@dataclass(frozen=True, eq=False)
class WeightedRows:
    """Some rows and how to count them.

    Parameters
    ----------
    columns : mapping from name to array of shape (n,) or (n, columns)
        Labels as objects (None is missing), numbers as floats (NaN is missing).
    factors : tuple of Factor
    weight : array of shape (n,), optional
    schema : Schema, optional

    Examples
    --------
    >>> import numpy as np, tallybayes as tb
    >>> from tallybayes.testing import WeightedRows
    >>> rows = WeightedRows({"x": np.array([1.0, 0.0, 1.0])}, (tb.Factor("x", (), tb.Bernoulli()),))
    >>> rows.take([0, 2]).count()["x"]
    Totals(weight=[2.], total=[2.])
    """

    columns: Mapping[Name, np.ndarray]
    factors: tuple[Factor, ...]
    weight: np.ndarray | None = None
    schema: Schema | None = None

    def __len__(self) -> int:
        return next(len(column) for column in self.columns.values())

    @property
    def weights(self) -> np.ndarray:
        """The weight of every row."""
        return np.ones(len(self)) if self.weight is None else self.weight

    @property
    def exact(self) -> tuple[bool, ...]:
        """For every factor, whether its sums are exact: whole weights and whole cells, so that no bit may differ."""
        whole, there = bool((self.weights % 1 == 0).all()), self.columns  # whether a cell is there is a whole number
        return tuple(whole and all(_is_whole(there[n]) for n in f.columns if n in there) for f in self.factors)

    def count(self, like: Tally | None = None) -> Tally:
        """The tally of these rows."""
        return count(dict(self.columns), self.factors, weight=self.weight, schema=self.schema, like=like)

    def take(self, index: npt.ArrayLike) -> WeightedRows:
        """Some of the rows, in that order, perhaps repeated."""
        index = np.asarray(index, dtype=np.intp)
        weight = None if self.weight is None else self.weight[index]
        return replace(self, columns={name: column[index] for name, column in self.columns.items()}, weight=weight)

    def weighted(self, weight: npt.ArrayLike | None) -> WeightedRows:
        """The same rows with other weights."""
        return replace(self, weight=None if weight is None else np.asarray(weight, dtype=np.float64))

    def followed_by(self, columns: Mapping[Name, np.ndarray], weight: npt.ArrayLike | None) -> WeightedRows:
        """These rows, then others with their weights."""
        joined = {name: np.concatenate([column, columns[name]]) for name, column in self.columns.items()}
        return replace(self, columns=joined, weight=np.concatenate([self.weights, weight]))

    def domain(self, column: Name) -> str:
        """The name of the domain of a column."""
        return (self.schema or Schema()).domain(column)

    def label_columns(self) -> list[Name]:
        """The columns whose values are levels."""
        given = {name for factor in self.factors for name in factor.given}
        outcomes = {name for factor in self.factors if hasattr(factor.family, "levels") for name in factor.columns}
        return [name for name in self.columns if name in given | outcomes]

    def renamed(self, names: Mapping[str, Mapping[Any, Any]]) -> WeightedRows:
        """The same rows with other labels: for some domains, the new label of every old one."""
        columns = dict(self.columns)
        for column in self.label_columns():
            new = names.get(self.domain(column))
            if new is not None:
                renamed = np.empty(len(self), dtype=object)
                renamed[:] = [None if _absent(label) else new[_plain(label)] for label in columns[column]]
                columns[column] = renamed
        return replace(self, columns=columns, factors=tuple(self._rename_factor(f, names) for f in self.factors))

    def _rename_factor(self, factor: Factor, names: Mapping[str, Mapping[Any, Any]]) -> Factor:
        declared = getattr(factor.family, "levels", None)
        new = names.get(self.domain(factor.columns[0]))
        if declared is None or new is None:
            return factor
        return factor.replace(family=factor.family.replace(levels=tuple(new[level] for level in declared)))


def rename_tally(tally: Tally, names: Mapping[str, Mapping[Any, Any]]) -> Tally:
    """The same statistics under other labels.

    Parameters
    ----------
    tally : Tally
    names : mapping
        For some domains, the new label of every old one.

    Returns
    -------
    Tally
    """
    domains = {
        key: domain
        if isinstance(domain, Vocabulary)
        else Domain(
            _through(names.get(key), domain.levels),
            domain.name,
            declared=_through(names.get(key), domain.declared),
            has_missing_level=domain.has_missing_level,
        )
        for key, domain in tally.domains.items()
    }
    return Tally(tally.factors, tally.statistics, domains, tally.schema)


def _through(new: Mapping[Any, Any] | None, levels: Iterable[Any]) -> list[Any]:
    return list(levels) if new is None else [None if level is None else new[level] for level in levels]


def _is_whole(column: np.ndarray) -> bool:
    known = column[np.isfinite(column)] if column.dtype.kind == "f" else np.zeros(0)
    return bool((known % 1 == 0).all())


def _absent(label: Any) -> bool:
    return label is None or label != label


def _plain(label: Any) -> Any:
    return int(label) if isinstance(label, float | np.floating) else label

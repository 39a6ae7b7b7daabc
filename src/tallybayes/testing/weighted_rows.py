"""A table with weights and factors, which the laws split, repeat, permute and rename."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tallybayes.data.counting import count
from tallybayes.tally.domain import Domain, Schema
from tallybayes.tally.factor import Factor, Name
from tallybayes.tally.tally import Tally
from tallybayes.tally.vocabulary import Vocabulary


@dataclass(frozen=True, eq=False)
class WeightedRows:
    """Rows with weights and the factors that count them.

    Parameters
    ----------
    columns : mapping from name to array of shape (n,) or (n, columns)
        Labels as objects (None if missing), numbers as floats (NaN if missing).
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
        """Return the weight of every row."""
        return np.ones(len(self)) if self.weight is None else self.weight

    @property
    def exact(self) -> tuple[bool, ...]:
        """Return for every factor whether weights and cells are integers, so that sums are exact."""
        integer_weights, columns = (
            bool((self.weights % 1 == 0).all()),
            self.columns,
        )  # missing-value indicators are integers
        return tuple(
            integer_weights and all(_is_integer(columns[n]) for n in f.columns if n in columns) for f in self.factors
        )

    def count(self, like: Tally | None = None) -> Tally:
        """Return the tally of these rows."""
        return count(dict(self.columns), self.factors, weight=self.weight, schema=self.schema, like=like)

    def take(self, index: npt.ArrayLike) -> WeightedRows:
        """Return some of the rows, in this order, possibly repeated."""
        index = np.asarray(index, dtype=np.intp)
        weight = None if self.weight is None else self.weight[index]
        return replace(self, columns={name: column[index] for name, column in self.columns.items()}, weight=weight)

    def weighted(self, weight: npt.ArrayLike | None) -> WeightedRows:
        """Return the same rows with other weights."""
        return replace(self, weight=None if weight is None else np.asarray(weight, dtype=np.float64))

    def followed_by(self, columns: Mapping[Name, np.ndarray], weight: npt.ArrayLike | None) -> WeightedRows:
        """Return these rows followed by others with their weights."""
        concatenated = {name: np.concatenate([column, columns[name]]) for name, column in self.columns.items()}
        return replace(self, columns=concatenated, weight=np.concatenate([self.weights, weight]))

    def domain(self, column: Name) -> str:
        """Return the name of a column's domain."""
        return (self.schema or Schema()).domain(column)

    def label_columns(self) -> list[Name]:
        """Return the columns whose values are levels."""
        given = {name for factor in self.factors for name in factor.given}
        outcomes = {name for factor in self.factors if hasattr(factor.family, "levels") for name in factor.columns}
        return [name for name in self.columns if name in given | outcomes]

    def renamed(self, names: Mapping[str, Mapping[Any, Any]]) -> WeightedRows:
        """Return the rows with other labels: for some domains, a mapping from old to new labels."""
        columns = dict(self.columns)
        for column in self.label_columns():
            new_labels = names.get(self.domain(column))
            if new_labels is not None:
                renamed = np.empty(len(self), dtype=object)
                renamed[:] = [None if _is_missing(label) else new_labels[_to_int(label)] for label in columns[column]]
                columns[column] = renamed
        return replace(self, columns=columns, factors=tuple(self._rename_factor(f, names) for f in self.factors))

    def _rename_factor(self, factor: Factor, names: Mapping[str, Mapping[Any, Any]]) -> Factor:
        """Return the factor with declared levels renamed."""
        declared = getattr(factor.family, "levels", None)
        new_labels = names.get(self.domain(factor.columns[0]))
        if declared is None or new_labels is None:
            return factor
        return factor.replace(family=factor.family.replace(levels=tuple(new_labels[level] for level in declared)))


def rename_tally(tally: Tally, names: Mapping[str, Mapping[Any, Any]]) -> Tally:
    """Return the tally with other labels.

    Parameters
    ----------
    tally : Tally
    names : mapping
        For some domains, a mapping from old to new labels.

    Returns
    -------
    Tally
    """
    domains = {
        key: domain
        if isinstance(domain, Vocabulary)
        else Domain(
            _map_levels(names.get(key), domain.levels),
            domain.name,
            declared=_map_levels(names.get(key), domain.declared),
            has_missing_level=domain.has_missing_level,
        )
        for key, domain in tally.domains.items()
    }
    return Tally(tally.factors, tally.statistics, domains, tally.schema)


def _map_levels(new_labels: Mapping[Any, Any] | None, levels: Iterable[Any]) -> list[Any]:
    """Return levels mapped to new labels."""
    return list(levels) if new_labels is None else [None if level is None else new_labels[level] for level in levels]


def _is_integer(column: np.ndarray) -> bool:
    """Return whether all finite values are integers."""
    known = column[np.isfinite(column)] if column.dtype.kind == "f" else np.zeros(0)
    return bool((known % 1 == 0).all())


def _is_missing(label: object) -> bool:
    """Return whether a label is missing."""
    return label is None or label != label


def _to_int(label: object) -> Any:
    """Return an integer for integral floats."""
    return int(label) if isinstance(label, float | np.floating) else label

"""Sums that a database can make: what a family needs of its columns, in no dialect of SQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tallybayes.statistics.double_double import DoubleDouble
from tallybayes.statistics.moments import Moments


class Expression:
    """What is made of the cells of a row; `Sum` of it, over the rows of a group."""

    def __mul__(self, other: Expression) -> Expression:
        return Product(self, other)

    def __sub__(self, other: Expression) -> Expression:
        return Minus(self, other)


@dataclass(frozen=True)
class SqlColumn(Expression):
    """The cell of a column, by its place in the block; nothing where it is missing."""

    place: int


@dataclass(frozen=True)
class Weight(Expression):
    """How often the row counts."""


@dataclass(frozen=True)
class Const(Expression):
    """A number."""

    value: float


@dataclass(frozen=True)
class Product(Expression):
    """One times the other."""

    first: Expression
    second: Expression


@dataclass(frozen=True)
class Minus(Expression):
    """One less the other."""

    first: Expression
    second: Expression


@dataclass(frozen=True)
class Log(Expression):
    """The natural logarithm of what is above 0; nothing where it is not."""

    of: Expression


@dataclass(frozen=True)
class BinIndex(Expression):
    """How many of some rising cuts a value has reached: 0 below the first."""

    of: Expression
    cuts: tuple[float, ...]


@dataclass(frozen=True)
class IfPresent(Expression):
    """One expression where another is there; nothing elsewhere."""

    there: Expression
    then: Expression


@dataclass(frozen=True)
class Sum:
    """The sum of an expression over the rows of a group where it is there."""

    of: Expression


def sums_of_powers(cells: Sequence[Expression], anchor: np.ndarray, *, full: bool) -> list[Sum]:
    """Weights, values and squares about an anchor, or with all products: what `Moments` holds."""
    gaps = [cell - Const(float(at)) for cell, at in zip(cells, anchor, strict=True)]
    found = [Sum(IfPresent(cell, Weight())) for cell in cells]
    found += [Sum(Weight() * gap) for gap in gaps]
    if not full:
        return found + [Sum(Weight() * (gap * gap)) for gap in gaps]
    return found + [Sum(Weight() * (one * other)) for k, one in enumerate(gaps) for other in gaps[k:]]


def with_constants(sums: np.ndarray, is_constant: np.ndarray) -> np.ndarray:
    """`sums_of_powers` of groups (groups, sums) where the cells of some columns are all at the point they are about."""
    d = is_constant.shape[1]
    rows, columns = np.triu_indices(d) if sums.shape[1] > 3 * d else (np.arange(d),) * 2
    gone = [np.zeros_like(is_constant), is_constant, is_constant[:, rows] | is_constant[:, columns]]
    return np.where(np.concatenate(gone, axis=1), 0.0, sums)


def moments_of_sums(anchor: np.ndarray, sums: Any, *, full: bool) -> Moments:
    """The moments whose `sums_of_powers` are these, (groups, sums)."""
    d = len(anchor)
    weight, first, second = sums[:, :d], sums[:, d : 2 * d], sums[:, 2 * d :]
    if full:
        weight = weight[:, :1]  # no cell is missing
        matrix = np.zeros((len(sums), d, d))
        rows, columns = np.triu_indices(d)
        matrix[:, rows, columns] = matrix[:, columns, rows] = second
        second = matrix
    return Moments(anchor, *(DoubleDouble.of(part) for part in (weight, first, second)))

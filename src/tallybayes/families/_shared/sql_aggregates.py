"""Sums that a database computes for a family, independent of the SQL dialect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tallybayes.statistics.double_double import DoubleDouble
from tallybayes.statistics.moments import Moments


class Expression:
    """Expression of the cells of a row; `Sum` adds it over the rows of a group."""

    def __mul__(self, other: Expression) -> Expression:
        return Product(self, other)

    def __sub__(self, other: Expression) -> Expression:
        return Minus(self, other)


@dataclass(frozen=True)
class SqlColumn(Expression):
    """The cell of a column, by its position in the block; NULL where it is missing."""

    place: int


@dataclass(frozen=True)
class Weight(Expression):
    """The weight of the row."""


@dataclass(frozen=True)
class Const(Expression):
    """A number."""

    value: float


@dataclass(frozen=True)
class Product(Expression):
    """Product of two expressions."""

    first: Expression
    second: Expression


@dataclass(frozen=True)
class Minus(Expression):
    """Difference of two expressions."""

    first: Expression
    second: Expression


@dataclass(frozen=True)
class Log(Expression):
    """Natural logarithm of a positive expression; NULL otherwise."""

    of: Expression


@dataclass(frozen=True)
class BinIndex(Expression):
    """Number of increasing edges that a value has reached: 0 below the first."""

    of: Expression
    cuts: tuple[float, ...]


@dataclass(frozen=True)
class IfPresent(Expression):
    """An expression where another is not NULL; NULL elsewhere."""

    there: Expression
    then: Expression


@dataclass(frozen=True)
class Sum:
    """Sum of an expression over the rows of a group, ignoring NULL."""

    of: Expression


def sums_of_powers(cells: Sequence[Expression], anchor: np.ndarray, *, full: bool) -> list[Sum]:
    """Return the sums that `Moments` consists of: weights, values and squares (or all products) about an anchor."""
    differences = [cell - Const(float(center)) for cell, center in zip(cells, anchor, strict=True)]
    sums = [Sum(IfPresent(cell, Weight())) for cell in cells]
    sums += [Sum(Weight() * difference) for difference in differences]
    if not full:
        return sums + [Sum(Weight() * (difference * difference)) for difference in differences]
    return sums + [Sum(Weight() * (left * right)) for k, left in enumerate(differences) for right in differences[k:]]


def with_constants(sums: np.ndarray, is_constant: np.ndarray) -> np.ndarray:
    """Return `sums_of_powers` with the sums of constant columns set to 0."""
    d = is_constant.shape[1]
    rows, columns = np.triu_indices(d) if sums.shape[1] > 3 * d else (np.arange(d),) * 2
    is_zero = [np.zeros_like(is_constant), is_constant, is_constant[:, rows] | is_constant[:, columns]]
    return np.where(np.concatenate(is_zero, axis=1), 0.0, sums)


def moments_of_sums(anchor: np.ndarray, sums: np.ndarray, *, full: bool) -> Moments:
    """Return the moments from their `sums_of_powers`, shape (groups, sums)."""
    d = len(anchor)
    weight, first, second = sums[:, :d], sums[:, d : 2 * d], sums[:, 2 * d :]
    if full:
        weight = weight[:, :1]  # there are no missing cells
        matrix = np.zeros((len(sums), d, d))
        rows, columns = np.triu_indices(d)
        matrix[:, rows, columns] = matrix[:, columns, rows] = second
        second = matrix
    return Moments(anchor, *(DoubleDouble.of(part) for part in (weight, first, second)))

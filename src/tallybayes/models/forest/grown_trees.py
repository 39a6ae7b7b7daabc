"""GrownTrees: what is fixed when trees are grown. Counts of rows in their leaves come and go."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias

import numpy as np

from tallybayes.estimation.calibration.log_linear_pool import LogLinearPool, fit_log_linear_pool
from tallybayes.kernels.forest import Trees
from tallybayes.models.forest.coded_columns import CodedColumns
from tallybayes.models.forest.counted_rows import WEIGHT_UNIT, CountedRows
from tallybayes.models.forest.forest_counts import ForestCounts

_MOST_POOLED = 10_000  # rows that weights and a temperature are estimated from
_MOST_PATHS = 20_000  # paths of rows down trees that are followed at a time

NodeValue: TypeAlias = Callable[[np.ndarray, np.ndarray | None, np.ndarray], np.ndarray]


@dataclass(frozen=True, eq=False)
class GrownTrees(ABC):
    """Trees and what was chosen with them. It is fixed: only growing new trees changes it.

    Attributes
    ----------
    columns : CodedColumns
    classes : tuple
        The classes of the rows that the trees were grown from, sorted.
    trees : Trees
    grown_weight : float
        The weight of the rows that the model was fitted to.
    pool : LogLinearPool
        How the scores of groups of trees become probabilities.
    """

    columns: CodedColumns
    classes: tuple[Any, ...]
    trees: Trees
    grown_weight: float
    pool: LogLinearPool

    @abstractmethod
    def count(self, rows: CountedRows) -> tuple[np.ndarray, ...]:
        """Return the sums of rows in the leaves."""

    @abstractmethod
    def leaf_values(self, counts: ForestCounts) -> np.ndarray:
        """Return the values of the leaves for the present classes, float32 of shape (leaves, classes)."""

    @abstractmethod
    def proba(self, counts: ForestCounts, leaf_values: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Return the class probabilities of groups of trees, (n, groups, present classes)."""

    @abstractmethod
    def held_out(self, counts: ForestCounts, rows: CountedRows) -> np.ndarray:
        """Return the class probabilities of counted rows without themselves, (n, groups, grown classes)."""

    @abstractmethod
    def contributions(self, counts: ForestCounts, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the log scores without any column, (n, classes), and the columns' contributions to them.

        The contributions, (n, columns, classes), add up to the log scores of all columns.
        """

    n_sums: ClassVar[int]  # the number of sums for each leaf and class
    residue: ClassVar[tuple[str, ...]] = (  # what may depend on forgotten rows
        "structure_: the splits, bin edges and levels of the trees, their strengths and calibration",
    )

    @classmethod
    @abstractmethod
    def from_arrays(
        cls,
        columns: CodedColumns,
        classes: tuple[Any, ...],
        trees: Trees,
        pool: LogLinearPool,
        numbers: dict[str, Any],
        arrays: dict[str, np.ndarray],
    ) -> Self:
        """Return the structure from the parts of a file; raise FileError if they are invalid."""

    @abstractmethod
    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays of the structure by name, for a file and for the digest."""

    @abstractmethod
    def numbers(self) -> dict[str, Any]:
        """Return the other parts of the structure as JSON."""

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the structure: counts of equal trees can be added."""
        found = hashlib.sha256(repr((self.columns[:3], self.classes, self.numbers(), self.pool[2:])).encode())
        pooled = {"pool_weights": self.pool.weights, "pool_bias": self.pool.bias}
        for name, array in sorted((self.arrays() | pooled).items()):
            found.update(f"{name} {array.dtype} {array.shape}".encode() + np.ascontiguousarray(array).tobytes())
        return found.hexdigest()

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, GrownTrees) and self.digest == other.digest)

    def __hash__(self) -> int:
        return hash(self.digest)

    @property
    def sums_shape(self) -> tuple[int, int]:
        """The number of arrays of sums, and of leaves."""
        return self.n_sums, self.trees.n_leaves

    def bias(self, counts: ForestCounts) -> np.ndarray:
        """Return the biases of the pool for the present classes; 0 for classes that came later."""
        known = np.zeros(len(counts.classes.levels))
        known[: len(self.classes)] = self.pool.bias
        return known[counts.present]

    def base_rates(self, counts: ForestCounts) -> np.ndarray:
        """Return the frequencies of the present classes, with one pseudo-count each."""
        weight = counts.class_weight[counts.present] / WEIGHT_UNIT + 1.0
        return np.asarray(weight / weight.sum())

    def log_proba(self, counts: ForestCounts, leaf_values: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Return the log class probabilities of coded rows, (n, present classes)."""
        proba = self.proba(counts, leaf_values, codes)
        return self.pool.log_proba(proba, self.bias(counts), self.base_rates(counts))

    def path_changes(
        self, codes: np.ndarray, trees: np.ndarray, sums: np.ndarray, value_of: NodeValue, n_classes: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the values of the roots, and their changes along the paths of rows by the column of the split.

        Both are sums over the trees: (n, classes) and (n, columns, classes).

        Parameters
        ----------
        codes : uint8 array of shape (n, columns)
        trees : int array
        sums : ndarray of shape (leaves + 1, …)
            Cumulative sums over the leaves.
        value_of : callable
            Returns the values of nodes, (n, classes), from their sums, from the values of their parents (None at the
            root), and from their trees.
        n_classes : int
        """
        n, d = codes.shape
        root, change = np.zeros((n, n_classes)), np.zeros((n, d, n_classes))
        step = max(1, _MOST_PATHS // max(1, len(trees)))
        for first in range(0, n, step):
            rows = np.repeat(np.arange(first, min(first + step, n)), len(trees))
            tree = np.resize(trees, len(rows))
            column, value = np.full(len(rows), -1), None
            for node, low, high in self.trees.path(tree, codes[rows]):
                if value is None:
                    value = value_of(sums[high] - sums[low], None, tree)
                    np.add.at(root, rows, value)
                else:
                    at = np.flatnonzero(column >= 0)
                    moved = value_of((sums[high] - sums[low])[at], value[at], tree[at])
                    np.add.at(change, (rows[at], column[at]), moved - value[at])
                    value[at] = moved
                column = self.trees.nodes[node, 0]
        return root, change


class HeldOut(NamedTuple):
    """Class probabilities of the rows that a pool was estimated from, each without itself.

    Attributes
    ----------
    keys : uint64 array of shape (n,)
        Of the rows and their copies, sorted.
    weight : int64 array of shape (n,)
    proba : ndarray of shape (n, groups, classes)
    """

    keys: np.ndarray
    weight: np.ndarray
    proba: np.ndarray

    @classmethod
    def of(cls, rows: CountedRows, proba: np.ndarray) -> Self:
        """Return the probabilities of rows, sorted by their keys."""
        keys = rows.copy_keys()
        order = np.argsort(keys, kind="stable")
        return cls(keys[order], rows.weight[order], proba[order])

    def find(self, rows: CountedRows) -> np.ndarray | None:
        """Return the probabilities of rows; None if some of them, or their weights, are others."""
        keys = rows.copy_keys()
        places = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        same = (self.keys[places] == keys) & (self.weight[places] == rows.weight)
        return self.proba[places] if same.all() else None


class Grown(NamedTuple):
    """Trees grown from rows, the sums of the rows in their leaves, and held-out probabilities of some rows."""

    structure: GrownTrees
    sums: tuple[np.ndarray, ...]
    held_out: HeldOut


def pool_rows(rows: CountedRows, most: int = _MOST_POOLED) -> CountedRows:
    """Return the rows that a pool is estimated from: a random sample if there are many."""
    return rows.take(np.sort(np.argsort(rows.copy_keys(), kind="stable")[:most]))


def fit_pool(proba: np.ndarray, rows: CountedRows) -> LogLinearPool:
    """Return the pool of groups of trees by held-out probabilities.

    Parameters
    ----------
    proba : ndarray of shape (n, groups, classes)
        0 for rows that no tree of a group is held out from; these are not used.
    rows : CountedRows
    """
    known = np.flatnonzero((proba.sum(axis=2) > 0).all(axis=1))
    return fit_log_linear_pool(proba[known], rows.y[known], rows.weight[known] / WEIGHT_UNIT)

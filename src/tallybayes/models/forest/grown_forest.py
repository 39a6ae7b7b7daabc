"""GrownForest: trees whose leaves are class counts, shrunk towards the counts of the nodes above."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple, Self

import numpy as np

from tallybayes._utils.sealed_file import check_no_unknown_entries
from tallybayes.errors import FileError
from tallybayes.estimation.calibration.log_linear_pool import LogLinearPool
from tallybayes.estimation.calibration.temperature_scaling import fit_temperature_scaling, log_proba_of_true_class
from tallybayes.kernels.forest import GrowthRows, Trees, grow_forest
from tallybayes.models.forest.coded_columns import CodedColumns
from tallybayes.models.forest.counted_rows import WEIGHT_UNIT, CountedRows
from tallybayes.models.forest.forest_counts import ForestCounts
from tallybayes.models.forest.grown_trees import Grown, GrownTrees, HeldOut, fit_pool, pool_rows

_BAG, _MOST_IN_BAG = 0.63, 100_000  # the proportion of the rows that a tree is grown from, and about the most of them
_TRIAL_BAG, _TRIAL_TREES, _TRIAL_ROWS = 0.5, 12, 10_000
_MOST_DEPTH = 60
_MOST_COLUMNS = 32  # tried at a node
_MIN_LEAVES = (1, 4, 16)
_STRENGTHS = (0.1, 0.5, 2.0)


class TreeKind(NamedTuple):
    """How trees are grown: one random split of each column or all, of √d columns at a node or of up to 32."""

    random_cuts: bool
    many_columns: bool

    def columns_tried(self, n_columns: int) -> int:
        """Return the number of columns that are tried at a node."""
        return max(1, min(n_columns, _MOST_COLUMNS) if self.many_columns else round(n_columns**0.5))


KINDS = {
    "random": (TreeKind(True, False), TreeKind(True, True)),
    "best": (TreeKind(False, False),),
    "mixed": (TreeKind(True, False), TreeKind(True, True), TreeKind(False, False)),
}


class GroupOptions(NamedTuple):
    """The smallest weight of a leaf in rows, and the strength of shrinkage in rows; None is chosen from the rows."""

    min_leaf: int | None
    strength: float | None


@dataclass(frozen=True, eq=False)
class GrownForest(GrownTrees):
    """A forest: p(class | leaf) is backed off along the path from the root, and averaged over trees of one kind.

    Attributes
    ----------
    groups : int64 array of shape (groups + 1,)
        The first tree of each kind, and the end.
    strength : tuple of float
        The strength of shrinkage towards the node above, by group, in rows.
    """

    groups: np.ndarray
    strength: tuple[float, ...]

    @property
    def bag(self) -> float:
        """The proportion of the rows that each tree was grown from."""
        return bag_of(self.grown_weight)

    @property
    def tree_strength(self) -> np.ndarray:
        """The strength by tree."""
        return np.repeat(np.array(self.strength), np.diff(self.groups))

    def count(self, rows: CountedRows) -> tuple[np.ndarray, ...]:
        """Return the sums of rows in the leaves."""
        return (self.trees.count_leaves(rows.labeled),)

    def leaf_values(self, counts: ForestCounts) -> np.ndarray:
        """Return the values of the leaves for the present classes."""
        present = np.ascontiguousarray(counts.sums[0][:, counts.present])
        return self.trees.leaf_proba(present, self.tree_strength)

    def proba(self, counts: ForestCounts, leaf_values: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Return the class probabilities of the groups of trees."""
        return self.trees.mean_of_leaves(codes, self.groups, leaf_values)

    def held_out(self, counts: ForestCounts, rows: CountedRows) -> np.ndarray:
        """Return the class probabilities of counted rows without themselves."""
        parts = self.groups, counts.sums[0], self.tree_strength[None], rows.copy_keys(), self.bag
        return self.trees.held_out_proba(rows.labeled, *parts)[0][:, 0]

    def contributions(self, counts: ForestCounts, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the log scores without any column, and the columns' contributions."""
        present = counts.sums[0][:, counts.present]
        sums = np.concatenate([np.zeros_like(present[:1]), np.cumsum(present, axis=0)]) / WEIGHT_UNIT
        n, n_classes = len(codes), present.shape[1]
        base, steps = np.zeros((n, n_classes)), np.zeros((n, len(self.columns.names), n_classes))
        for group, strength in enumerate(self.strength):
            trees = np.arange(*self.groups[group : group + 2])

            def shrunk(node: np.ndarray, above: np.ndarray | None, _: np.ndarray, s: float = strength) -> np.ndarray:
                p = np.full(node.shape, 1 / node.shape[1]) if above is None else above
                total = node.sum(axis=1, keepdims=True)
                return np.where(total > 0, (node + s * p) / (total + s), p)

            root, change = (part / len(trees) for part in self.path_changes(codes, trees, sums, shrunk, n_classes))
            weight = self.pool.weights[group] * self.pool.inverse_temperature
            base += weight * np.log(root)
            steps += weight * change / _log_mean(root, root + change.sum(axis=1))[:, None]
        return base + self.pool.inverse_temperature * self.bias(counts), steps

    n_sums = 1

    @classmethod
    def from_arrays(
        cls,
        columns: CodedColumns,
        classes: tuple[Any, ...],
        trees: Trees,
        pool: LogLinearPool,
        numbers: dict[str, Any],
        arrays: dict[str, np.ndarray],
    ) -> Self:
        """Return the structure from the parts of a file."""
        groups = arrays.pop("groups")
        strength = tuple(map(float, numbers.pop("strength")))
        weight = float(numbers.pop("grown_weight"))
        check_no_unknown_entries("the forest", numbers)
        starts_right = groups.dtype == np.int64 and groups.ndim == 1 and len(groups) == len(strength) + 1
        if not starts_right or groups[0] != 0 or groups[-1] != len(trees) or (np.diff(groups) < 0).any():
            raise FileError("the groups of trees in the file are invalid.")
        if len(pool.weights) != len(strength) or not all(0 < one < np.inf for one in strength):
            raise FileError("the strengths of the groups of trees in the file are invalid.")
        return cls(columns, classes, trees, weight, pool, groups, strength)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays of the structure by name."""
        trees = self.trees
        return {"roots": trees.roots, "nodes": trees.nodes, "masks": trees.masks, "groups": self.groups}

    def numbers(self) -> dict[str, Any]:
        """Return the other parts of the structure as JSON."""
        return {"strength": list(self.strength), "grown_weight": self.grown_weight}


def bag_of(weight: float) -> float:
    """Return the proportion of rows of this weight that a tree is grown from."""
    return min(_BAG, _MOST_IN_BAG / weight)


def _log_mean(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the logarithmic mean (a − b) / (log a − log b).

    Parts of a difference, divided by it, are parts of the difference of the logarithms.
    """
    ratio = np.log(a / b)
    small = np.abs(ratio) < 1e-6
    return np.where(small, (a + b) / 2, (a - b) / np.where(small, 1.0, ratio))


def grow(
    columns: CodedColumns,
    classes: tuple[Any, ...],
    rows: CountedRows,
    n_trees: int,
    kinds: tuple[TreeKind, ...],
    options: GroupOptions,
    seed: int,
) -> Grown:
    """Return a forest grown from rows.

    The smallest leaf and the strength of each kind of trees are those of the lowest held-out log loss of a few trees,
    unless `options` has both. Every row is counted in every tree, also in those that are not grown from it. Kinds
    without weight in the pool are left out.
    """
    growth, kept = rows.growth(columns.categorical)
    keys = rows.copy_keys()[kept]
    some = pool_rows(rows)
    weight = float(rows.weight.sum()) / WEIGHT_UNIT
    bag = bag_of(weight)
    groups = []
    for number, kind in enumerate(kinds):
        min_leaf, strength = _choose_options(kind, rows, columns.categorical, options, seed)
        n_more = n_trees // len(kinds) + (number < n_trees % len(kinds))
        trees = _grown(kind, growth, keys, min_leaf, n_more, bag, seed + (number << 32))
        groups.append(_Group.of(trees, strength, rows, some, bag))
    proba = np.stack([group.proba for group in groups], axis=1)
    pool = fit_pool(proba, some)
    used = np.flatnonzero(pool.weights > 0)
    used = used if len(used) else np.arange(len(groups))
    pool, groups = pool._replace(weights=pool.weights[used]), [groups[k] for k in used]
    all_trees = reduce(Trees.joined, (group.trees for group in groups))
    starts = np.cumsum([0, *(len(group.trees) for group in groups)], dtype=np.int64)
    strengths = tuple(group.strength for group in groups)
    forest = GrownForest(columns, classes, all_trees, weight, pool, starts, strengths)
    counts = np.concatenate([group.counts for group in groups])
    return Grown(forest, (counts,), HeldOut.of(some, proba[:, used]))


class _Group(NamedTuple):
    """Trees of one kind, the counts of all rows in their leaves, and held-out probabilities of some rows."""

    trees: Trees
    strength: float
    counts: np.ndarray
    proba: np.ndarray

    @classmethod
    def of(cls, trees: Trees, strength: float, rows: CountedRows, some: CountedRows, bag: float) -> Self:
        """Return trees with the counts of `rows` and the held-out probabilities of `some` of them."""
        counts, bounds = trees.count_leaves(rows.labeled), np.array([0, len(trees)], dtype=np.int64)
        strengths = np.full((1, len(trees)), strength)
        proba, _ = trees.held_out_proba(some.labeled, bounds, counts, strengths, some.copy_keys(), bag)
        return cls(trees, strength, counts, proba[:, 0, 0])


def _grown(
    kind: TreeKind, rows: GrowthRows, keys: np.ndarray, min_leaf: int, n_trees: int, bag: float, seed: int
) -> Trees:
    """Return trees of one kind."""
    return grow_forest(
        rows,
        keys,
        n_trees=n_trees,
        columns_tried=kind.columns_tried(rows.codes.shape[1]),
        random_cuts=kind.random_cuts,
        min_leaf=min_leaf * rows.unit,
        max_depth=_MOST_DEPTH,
        bag=bag,
        seed=seed,
        first_tree=0,
    )


def _choose_options(
    kind: TreeKind, rows: CountedRows, categorical: np.ndarray, options: GroupOptions, seed: int
) -> tuple[int, float]:
    """Return the smallest leaf and the strength of lowest held-out log loss, calibrated, of a few trees."""
    min_leaves = _MIN_LEAVES if options.min_leaf is None else (options.min_leaf,)
    strengths = _STRENGTHS if options.strength is None else (options.strength,)
    best = (np.inf, (min_leaves[0], strengths[len(strengths) // 2]))
    if len(min_leaves) == len(strengths) == 1:
        return best[1]
    if len(rows.y) > _TRIAL_ROWS:
        rows = rows.take(np.sort(np.argsort(rows.copy_keys(), kind="stable")[:_TRIAL_ROWS]))
    growth, kept = rows.growth(categorical)
    keys = rows.copy_keys()
    groups = np.array([0, _TRIAL_TREES], dtype=np.int64)
    for min_leaf in min_leaves:
        trees = _grown(kind, growth, keys[kept], min_leaf, _TRIAL_TREES, _TRIAL_BAG, seed + 1)
        counts = trees.count_leaves(rows.labeled)
        tree_strength = np.repeat(np.array(strengths)[:, None], _TRIAL_TREES, axis=1)
        proba, n_trees = trees.held_out_proba(rows.labeled, groups, counts, tree_strength, keys, _TRIAL_BAG)
        known = np.flatnonzero(n_trees[:, 0] > 0)
        if not len(known):
            continue
        weight, before = rows.weight[known] / WEIGHT_UNIT, best
        for choice, strength in enumerate(strengths):
            log_proba = np.log(np.maximum(proba[known, choice, 0], 1e-9))
            scaling = fit_temperature_scaling(log_proba, rows.y[known], weight)
            loss = -float(weight @ log_proba_of_true_class(log_proba, rows.y[known], scaling)) / float(weight.sum())
            best = min(best, (loss, (min_leaf, strength)))
        if best is before:  # larger leaves would be worse
            break
    return best[1]

"""Forests and chains of trees whose leaves hold counts.

Columns are codes from 0 to 255, and 0 is a missing cell. Weights, counts and expected counts are whole multiples of a
unit, so that sums are exact: rows are added and removed in any order, and no result depends on the number of threads.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from tallybayes.kernels.active import implementation_for
from tallybayes.kernels.arguments import AnyArray, Float64Array, Int64Array, check_array
from tallybayes.kernels.arguments import threads as n_threads
from tallybayes.kernels.reference import forest as _reference
from tallybayes.kernels.reference import forest_growth as _reference_growth

__all__ = ["ChainScores", "ChainSums", "GrowthRows", "LabeledRows", "Trees", "grow_chains", "grow_forest"]

_UNIT = 2.0**-16  # of weights, counts and expected counts
_MOST_WEIGHT = 2**31 - 1  # of the rows that trees are grown from, in units


class LabeledRows(NamedTuple):
    """Rows to count: codes of shape (n, columns), class codes, and weights in multiples of 2⁻¹⁶."""

    codes: AnyArray
    y: AnyArray
    weight: Int64Array
    n_classes: int

    def flat(self) -> tuple[AnyArray, AnyArray, Int64Array, int]:
        """Return the arrays as the kernels take them."""
        for array, name, axes, dtype in (
            (self.codes, "codes", 2, "u1"),
            (self.y, "y", 1, "i4"),
            (self.weight, "weight", 1, "i8"),
        ):
            check_array(array, name, axes, frozenset({np.dtype(dtype)}))
        if not len(self.codes) == len(self.y) == len(self.weight):
            raise ValueError(f"codes, y and weight have {len(self.codes)}, {len(self.y)} and {len(self.weight)} rows")
        codes = np.ascontiguousarray(self.codes).reshape(-1)
        return codes, np.ascontiguousarray(self.y), np.ascontiguousarray(self.weight), int(self.n_classes)


class GrowthRows(NamedTuple):
    """Rows to grow trees from: flags of categorical columns, and weights in multiples of a `unit` below 2³¹ in all."""

    codes: AnyArray
    categorical: AnyArray
    y: AnyArray
    weight: AnyArray
    n_classes: int
    unit: int

    def flat(self) -> tuple[AnyArray, AnyArray, AnyArray, AnyArray, int, int]:
        """Return the arrays as the kernels take them: codes by column."""
        n, d = self.codes.shape
        check_array(self.codes, "codes", 2, frozenset({np.dtype("u1")}))
        if not len(self.y) == len(self.weight) == n or len(self.categorical) != d:
            raise ValueError(f"y, weight and categorical do not fit codes of shape {self.codes.shape}")
        if n and (self.weight.min() < 1 or self.weight.sum(dtype=np.float64) >= _MOST_WEIGHT):
            raise ValueError("weights have to be positive, and less than 2³¹ in all")
        columns = np.ascontiguousarray(self.codes.T).reshape(-1)
        flags = np.ascontiguousarray(self.categorical, dtype=np.uint8)
        y, weight = (np.ascontiguousarray(part, dtype=np.int32) for part in (self.y, self.weight))
        return columns, flags, y, weight, int(self.n_classes), int(self.unit)


class ChainScores(NamedTuple):
    """Frozen scores of chains of trees: of the leaves, (leaves, classes), and of the classes before the first tree."""

    n_chains: int
    leaves: AnyArray
    base: AnyArray


class ChainSums(NamedTuple):
    """Observed and expected weights of the classes in the leaves: of the rows of each bag, and of the other rows."""

    observed: Int64Array
    expected: Int64Array
    observed_outside: Int64Array
    expected_outside: Int64Array


class Trees:
    """Trees over columns of codes.

    Parameters
    ----------
    roots : int64 array of shape (trees + 1,)
        The first node of every tree, and the end.
    nodes : int32 array of shape (nodes, 3)
        In preorder: the column, −1 for a leaf; the right child, or the number of the leaf, both within the tree; and
        the cut. Codes up to the low byte of a cut go left, and missing cells right if its bit 8 is set. A negative cut
        is ~mask.
    masks : uint8 array of shape (masks, 32)
        The codes that go left, one bit each.
    n_columns : int

    Raises
    ------
    ValueError
        If a row could leave its tree.

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes.kernels.forest import LabeledRows, Trees
    >>> nodes = np.array([[0, 2, 1], [-1, 0, 0], [-1, 1, 0]], np.int32)
    >>> stump = Trees(np.array([0, 3]), nodes, np.zeros((0, 32), "u1"), 1)
    >>> rows = LabeledRows(np.array([[1], [1], [2]], "u1"), np.array([0, 1, 1], "i4"), np.full(3, 65536), 2)
    >>> stump.count_leaves(rows) // 65536
    array([[1, 1],
           [0, 1]])
    """

    def __init__(self, roots: Int64Array, nodes: AnyArray, masks: AnyArray, n_columns: int) -> None:
        self.roots = np.ascontiguousarray(roots, dtype=np.int64)
        self.nodes = np.ascontiguousarray(nodes, dtype=np.int32)
        self.masks = np.ascontiguousarray(masks, dtype=np.uint8)
        self.n_columns = n_columns
        if self.nodes.ndim != 2 or self.nodes.shape[1] != 3 or self.masks.ndim != 2 or self.masks.shape[1] != 32:
            raise ValueError("nodes and masks have to be of shape (nodes, 3) and (masks, 32)")
        _ = self._kernel  # raises for invalid trees

    @cached_property
    def _kernel(self) -> Any:
        """The trees of the active implementation."""
        kind = getattr(implementation_for(_reference), "Trees", _reference.Trees)
        return kind(self.roots, self.nodes.reshape(-1), self.masks.reshape(-1), self.n_columns)

    @cached_property
    def _walk(self) -> _reference.Trees:
        """The trees of the reference, whose nodes are accessible."""
        return _reference.Trees(self.roots, self.nodes, self.masks, self.n_columns)

    @property
    def leaf_starts(self) -> Int64Array:
        """The first leaf of every tree, and the end, (trees + 1,)."""
        return np.asarray(self._walk.leaves)

    def path(self, tree: AnyArray, codes: AnyArray) -> list[tuple[AnyArray, AnyArray, AnyArray]]:
        """Return the nodes that rows pass, each in its tree, from the root on; they stay in their leaf.

        Parameters
        ----------
        tree : int array of shape (n,)
        codes : uint8 array of shape (n, columns)

        Returns
        -------
        list of (node, first, end), each of shape (n,)
            The node, and the range of the leaves below it.
        """
        return self._walk.path(tree, codes)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_kernel", "_walk")}

    def __len__(self) -> int:
        return len(self.roots) - 1

    @property
    def n_leaves(self) -> int:
        """The number of leaves of all trees."""
        return int(self._kernel.n_leaves)

    def joined(self, other: Trees) -> Trees:
        """Return the trees of both."""
        nodes = other.nodes.copy()
        nodes[:, 2] -= np.where(nodes[:, 2] < 0, len(self.masks), 0)
        roots = np.concatenate([self.roots, self.roots[-1] + other.roots[1:]])
        return Trees(
            roots, np.concatenate([self.nodes, nodes]), np.concatenate([self.masks, other.masks]), self.n_columns
        )

    def count_leaves(self, rows: LabeledRows, threads: int = 0) -> Int64Array:
        """Return the weight of every class in every leaf, (leaves, classes)."""
        return np.asarray(self._kernel.count_leaves(rows.flat(), n_threads(threads)))

    def leaf_proba(self, counts: Int64Array, strength: Float64Array, threads: int = 0) -> AnyArray:
        """Return p(class | leaf), (leaves, classes), in single precision.

        From the root to the leaf, p ← (n + strength · p) / (Σ n + strength), with the counts of each node. It starts
        from equal probabilities.

        Parameters
        ----------
        counts : int64 array of shape (leaves, classes)
        strength : float64 array of shape (trees,)
            In rows.
        threads : int, default 0
        """
        flat = np.ascontiguousarray(counts).reshape(-1)
        return np.asarray(self._kernel.leaf_proba(flat, counts.shape[1], strength, _UNIT, n_threads(threads)))

    def mean_of_leaves(
        self, codes: AnyArray, groups: Int64Array, leaf_values: AnyArray, threads: int = 0
    ) -> Float64Array:
        """Return the means over the trees of each group of the values of a row's leaves, (n, groups, classes).

        Parameters
        ----------
        codes : uint8 array of shape (n, columns)
        groups : int64 array of shape (groups + 1,)
            The first tree of every group, and the end.
        leaf_values : float32 array of shape (leaves, classes)
        threads : int, default 0
        """
        check_array(codes, "codes", 2, frozenset({np.dtype("u1")}))
        cells = np.ascontiguousarray(codes).reshape(-1)
        values, n_classes = np.ascontiguousarray(leaf_values).reshape(-1), leaf_values.shape[1]
        means = self._kernel.mean_of_leaves(cells, groups, values, len(codes), n_classes, n_threads(threads))
        return np.asarray(means)

    def held_out_proba(
        self,
        rows: LabeledRows,
        groups: Int64Array,
        counts: Int64Array,
        strength: Float64Array,
        keys: AnyArray,
        bag: float,
        threads: int = 0,
    ) -> tuple[Float64Array, AnyArray]:
        """Return p(class | row) of counted rows without themselves: trees not grown from them, less their own weight.

        Parameters
        ----------
        rows : LabeledRows
        groups, counts
            As for the other methods.
        strength : float64 array of shape (choices, trees)
            In rows.
        keys : uint64 array of shape (n,)
        bag : float
            The proportion of the rows that each tree was grown from. The trees of a group are numbered from 0.
        threads : int, default 0

        Returns
        -------
        proba : float64 array of shape (n, choices, groups, classes)
        n_trees : int32 array of shape (n, groups)
            The number of trees; p is 0 if there is none.
        """
        flat, strengths = (np.ascontiguousarray(part).reshape(-1) for part in (counts, strength))
        proba, n_trees = self._kernel.held_out_proba(
            rows.flat(), groups, flat, strengths, _UNIT, keys, int(bag * 2**32), n_threads(threads)
        )
        return np.asarray(proba), np.asarray(n_trees)

    def count_chains(
        self, rows: LabeledRows, chains: ChainScores, bag_weight: Int64Array, threads: int = 0
    ) -> ChainSums:
        """Return the observed and expected weights of the classes in every leaf.

        Parameters
        ----------
        rows : LabeledRows
        chains : ChainScores
        bag_weight : int64 array of shape (chains, n)
            The weight that is added to the sums of the bag of each chain; the rest is added to the other sums.
        threads : int, default 0
        """
        weights = np.ascontiguousarray(bag_weight).reshape(-1)
        sums = self._kernel.count_chains(rows.flat(), *_flat(chains), weights, n_threads(threads))
        return ChainSums(*map(np.asarray, sums))

    def held_out_scores(
        self,
        rows: LabeledRows,
        chains: ChainScores,
        sums: ChainSums,
        outside: AnyArray,
        outside_weight: Float64Array,
        rate: float,
        strength: float,
        threads: int = 0,
    ) -> AnyArray:
        """Return the log scores of counted rows by the chain that was not grown from them, less their own counts.

        Parameters
        ----------
        rows : LabeledRows
        chains : ChainScores
        sums : ChainSums
        outside : int32 array of shape (n,)
            The chain of each row.
        outside_weight : float64 array of shape (choices, chains)
            Factors of the sums of the rows outside the bags.
        rate, strength : float
        threads : int, default 0

        Returns
        -------
        float32 array of shape (choices, n, classes)
        """
        parts = tuple(np.ascontiguousarray(part).reshape(-1) for part in sums)
        factors = np.ascontiguousarray(outside_weight, dtype=np.float64).reshape(-1)
        scores = self._kernel.held_out_scores(
            rows.flat(), *_flat(chains), parts, outside, factors, rate, strength, _UNIT, n_threads(threads)
        )
        return np.asarray(scores)


def _flat(chains: ChainScores) -> tuple[int, AnyArray, AnyArray]:
    """Return the scores as the kernels take them."""
    leaves = np.ascontiguousarray(chains.leaves, dtype=np.float32).reshape(-1)
    return chains.n_chains, leaves, np.ascontiguousarray(chains.base, dtype=np.float32)


def grow_forest(
    rows: GrowthRows,
    keys: AnyArray,
    *,
    n_trees: int,
    columns_tried: int,
    random_cuts: bool,
    min_leaf: int,
    max_depth: int,
    bag: float,
    seed: int,
    first_tree: int = 0,
    threads: int = 0,
) -> Trees:
    """Return trees that reduce the class entropy, each grown from its own sample of the rows.

    A tree is grown from the rows whose keys a hash selects, so it depends neither on their order nor on other rows.

    Parameters
    ----------
    rows : GrowthRows
    keys : uint64 array of shape (n,)
    n_trees : int
    columns_tried : int
        The number of random columns at a node, of those that vary there.
    random_cuts : bool
        Whether one random split of each column is tried (Geurts et al. 2006), instead of all.
    min_leaf : int
        The smallest weight of a leaf, in units of the weights.
    max_depth : int
    bag : float
        The proportion of the rows that each tree is grown from.
    seed : int
    first_tree : int, default 0
        The number of the first tree; trees of other numbers have other samples and random numbers.
    threads : int, default 0

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes.kernels.forest import GrowthRows, grow_forest
    >>> codes = np.repeat([[1], [2]], 4, axis=0).astype("u1")
    >>> rows = GrowthRows(codes, np.zeros(1), codes[:, 0] - 1, np.ones(8), 2, 1)
    >>> options = {"columns_tried": 1, "random_cuts": False, "min_leaf": 1, "max_depth": 9, "bag": 1.0, "seed": 0}
    >>> grow_forest(rows, np.zeros(8, np.uint64), n_trees=1, **options).nodes.tolist()
    [[0, 2, 1], [-1, 0, 0], [-1, 1, 0]]
    """
    grow = getattr(implementation_for(_reference_growth), "grow_forest", _reference_growth.grow_forest)
    bags = np.ascontiguousarray(keys, dtype=np.uint64), int(bag * 2**32)
    options = columns_tried, random_cuts, min_leaf, max_depth, *bags, seed, first_tree, n_trees
    roots, nodes, masks = grow(rows.flat(), *options, n_threads(threads))
    return Trees(roots, nodes, masks, rows.codes.shape[1])


def grow_chains(
    rows: GrowthRows,
    outside: AnyArray,
    base: AnyArray,
    keys: AnyArray,
    *,
    bag: float,
    n_chains: int,
    columns_tried: int,
    max_depth: int,
    min_leaf: int,
    rate: float,
    strength: float,
    ridge: float,
    seed: int,
    most_trees: int,
    step: int,
    patience: int,
    weights: tuple[Int64Array, Int64Array] | None = None,
    threads: int = 0,
) -> tuple[Trees, ChainScores, Float64Array, ChainSums | None]:
    """Return chains of boosted trees, their scores, the held-out loss after each tree in nats, and the rows' sums.

    A tree is grown on the residuals of its chain, of a sample of the rows that are not outside it. A leaf adds
    rate · log((n + strength) / (e + strength)) to the score of each class: n is the weight of its rows, and e the
    weight that the chain before that tree expects. Growing ends once the loss of the rows outside has not improved for
    `patience` trees; the trees up to the lowest loss are returned.

    Parameters
    ----------
    rows : GrowthRows
    outside : int32 array of shape (n,)
        The chain that is not grown from each row.
    base : float32 array of shape (classes,)
        The log score of every class before the first tree.
    keys : uint64 array of shape (n,)
    bag : float
        The proportion of the rows in which the splits of a tree are searched. Leaves have all rows.
    n_chains, columns_tried, max_depth, min_leaf : int
    rate, strength : float
    ridge : float
        Added to the curvature in the gain of a split.
    seed, most_trees : int
    step : int
        The number of trees that are grown before the loss is looked at.
    patience : int
    weights : pair of int64 arrays of shapes (n,) and (chains, n), optional
        The weights of the rows and of their parts in the bag of each chain, for the sums of `Trees.count_chains`.
    threads : int, default 0
    """
    grow = getattr(implementation_for(_reference_growth), "grow_chains", _reference_growth.grow_chains)
    shape = n_chains, columns_tried, max_depth, min_leaf, rate, strength, ridge, seed, (most_trees, step, patience)
    bags = np.ascontiguousarray(outside, dtype=np.int32), np.ascontiguousarray(base, dtype=np.float32)
    sample = np.ascontiguousarray(keys, dtype=np.uint64), int(bag * 2**32)
    none = np.zeros(0, dtype=np.int64)
    weight, bag_weight = (np.ascontiguousarray(part).ravel() for part in weights or (none, none))
    found = grow(rows.flat(), *shape, *bags, *sample, weight, bag_weight, n_threads(threads))
    roots, nodes, masks, scores, loss, sums = found
    trees = Trees(roots, nodes, masks, rows.codes.shape[1])
    return trees, ChainScores(n_chains, scores, bags[1]), loss, None if weights is None else ChainSums(*sums)

"""Growing of forests and of chains of trees: see `tallybayes.kernels.forest`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np

from tallybayes.kernels.arguments import AnyArray, Float64Array, Int64Array
from tallybayes.kernels.reference.forest import Trees
from tallybayes.kernels.reference.forest_math import (
    Random,
    in_bag,
    log_of_positive,
    n_log_n,
    natural_log,
    softmax,
    to_fixed,
)

GrowthRows = tuple[AnyArray, AnyArray, AnyArray, AnyArray, int, int]
Grown = tuple[Int64Array, AnyArray, AnyArray]


class _Split(NamedTuple):
    """The best split of a node so far, and the codes that go left: True for each."""

    column: int
    cut: int | None
    left: AnyArray


class _Grower(ABC):
    """Grows trees from rows: a subclass finds the best split of a node."""

    def __init__(self, rows: GrowthRows, columns_tried: int, max_depth: int, min_leaf: int) -> None:
        codes, self.categorical, self.y, weight, self.n_classes, self.unit = rows
        self.codes = codes.reshape(len(self.categorical), len(self.y))
        self.weight = weight.astype(np.int64)
        self.columns_tried, self.max_depth, self.min_leaf = columns_tried, max_depth, min_leaf
        self.order = list(range(len(self.categorical)))
        self.nodes: list[list[int]] = []
        self.masks: list[AnyArray] = []
        self.roots = [0]

    @abstractmethod
    def start_node(self, rows: AnyArray) -> bool:
        """Compute the sums of a node; return whether it may be split."""

    @abstractmethod
    def try_column(self, column: int, rows: AnyArray, best: _Split | None) -> tuple[bool, _Split | None]:
        """Return whether the column varies in the node, and the best split so far."""

    def grow_tree(self, rows: AnyArray, random: Random) -> None:
        """Append the tree of these rows."""
        self.random = random
        first, n_leaves = len(self.nodes), 0
        stack = [(rows, 0, -1)]
        while stack:
            part, depth, parent = stack.pop()
            if parent >= 0:
                self.nodes[parent][1] = len(self.nodes) - first
            split = self._best_split(part) if self.start_node(part) and depth < self.max_depth else None
            if split is None:
                self.nodes.append([-1, n_leaves, 0])
                n_leaves += 1
                continue
            node = len(self.nodes)
            if split.cut is None:
                self.masks.append(np.packbits(split.left, bitorder="little"))
            self.nodes.append([split.column, 0, ~(len(self.masks) - 1) if split.cut is None else split.cut])
            left = split.left[self.codes[split.column, part]]
            stack += [(part[~left], depth + 1, node), (part[left], depth + 1, -1)]
        self.roots.append(len(self.nodes))

    def _best_split(self, rows: AnyArray) -> _Split | None:
        """Return the best split of a node by columns in random order; None if there is none."""
        best: _Split | None = None
        remaining, tried = len(self.order), 0
        while remaining and tried < self.columns_tried:
            place = self.random.below(remaining)
            remaining -= 1
            self.order[place], self.order[remaining] = self.order[remaining], self.order[place]
            varies, best = self.try_column(self.order[remaining], rows, best)
            tried += varies
        return best

    def split(
        self, column: int, codes: AnyArray, present: AnyArray, *, any_missing: bool, most_left: bool, cut: int | None
    ) -> _Split:
        """Return a split by a cut, or with these codes on the left; absent codes go where most rows go."""
        if cut is None:
            left = np.full(256, most_left)
            left[present] = np.isin(present, codes)
            return _Split(column, None, left)
        if not any_missing and not most_left and cut > 0:
            cut |= 256
        shift = cut >> 8
        return _Split(column, cut, (np.arange(256) - shift) % 256 <= ((cut & 255) - shift) % 256)

    def grown(self) -> Grown:
        """Return the roots, the nodes and the masks of all trees."""
        nodes = np.array(self.nodes, dtype=np.int32).reshape(-1, 3)
        masks = np.array(self.masks, dtype=np.uint8).reshape(-1, 32)
        return np.array(self.roots, dtype=np.int64), nodes, masks


def _level_order(rate: Float64Array) -> AnyArray:
    return np.argsort(rate, kind="stable")


class _ForestGrower(_Grower):
    """Splits reduce the class entropy; all sums are integers."""

    random_cuts: bool

    def start_node(self, rows: AnyArray) -> bool:
        self.total = np.zeros(self.n_classes, dtype=np.int64)
        np.add.at(self.total, self.y[rows], self.weight[rows])
        self.all = int(self.total.sum())
        self.gain = 0
        return (self.total > 0).sum() >= 2 and self.all >= 2 * self.min_leaf

    def try_column(self, column: int, rows: AnyArray, best: _Split | None) -> tuple[bool, _Split | None]:
        codes = self.codes[column, rows]
        present = np.unique(codes)
        reference = self._random_class() if self.categorical[column] else 0
        if len(present) < 2:
            return False, best
        counts = np.zeros((256, self.n_classes), dtype=np.int64)
        np.add.at(counts, (codes, self.y[rows]), self.weight[rows])
        if self.categorical[column]:
            return True, self._try_levels(column, present, counts, reference, best)
        low, high = int(present[0]), int(present[-1])
        if self.random_cuts:
            cut = low + self.random.below(high - low)
            flag = 256 if low == 0 and cut > 0 and self.random.below(2) else 0
            left = present[(present <= cut) & ((present > 0) | (flag == 0))]
            return True, self._try(column, left, present, counts, cut | flag, best)
        for flag in (0, 256) if low == 0 else (0,):
            usable = present[1:] if flag else present
            for place in range(1, len(usable)):
                best = self._try(column, usable[:place], present, counts, int(usable[place - 1]) | flag, best)
        return True, best

    def _random_class(self) -> int:
        """Return a class, with a probability proportional to its weight."""
        place = self.random.below(self.all)
        return int(np.searchsorted(np.cumsum(self.total), place, side="right"))

    def _try_levels(
        self, column: int, present: AnyArray, counts: Int64Array, reference: int, best: _Split | None
    ) -> _Split | None:
        """Return the best split so far, of the levels in random order or by the frequency of a class."""
        levels, cuts = present.tolist(), range(1, len(present))
        if self.random_cuts:
            for q in range(len(levels) - 1, 0, -1):
                r = self.random.below(q + 1)
                levels[q], levels[r] = levels[r], levels[q]
            first = self.random.below(len(levels) - 1)
            cuts = range(first + 1, first + 2)
        else:
            share = self.total[reference] / self.all
            rate = (counts[present, reference] + self.unit * share) / (counts[present].sum(axis=1) + float(self.unit))
            levels = present[_level_order(rate)].tolist()
        for place in cuts:
            best = self._try(column, np.array(levels[:place]), present, counts, None, best)
        return best

    def _try(
        self, column: int, left: AnyArray, present: AnyArray, counts: Int64Array, cut: int | None, best: _Split | None
    ) -> _Split | None:
        """Return the split that sends these codes left if it is better than the best."""
        mine = counts[left].sum(axis=0)
        other = self.total - mine
        n, m = int(mine.sum()), int(other.sum())
        if min(n, m) < max(self.min_leaf, 1):
            return best
        gain = int(n_log_n(self.all)) - int(n_log_n(self.total).sum()) - int(n_log_n(n)) - int(n_log_n(m))
        gain += int(n_log_n(mine).sum()) + int(n_log_n(other).sum())
        if gain <= self.gain:
            return best
        self.gain = gain
        return self.split(
            column, left, present, any_missing=bool(present[0] == 0), most_left=2 * n >= self.all, cut=cut
        )


class _ChainGrower(_Grower):
    """Splits reduce the squared error of the rounded gradients of one random sum over the classes."""

    ridge: float
    gradient: Int64Array
    curvature: Int64Array

    def start_node(self, rows: AnyArray) -> bool:
        parts = self.gradient, self.curvature, self.weight
        self.sums = np.array([part[rows].sum() for part in parts], dtype=np.int64)
        g, h = self._in_rows(self.sums[0]), self._in_rows(self.sums[1]) + self.ridge
        self.gain = g * g + 1e-3 * h, h
        return bool(self.sums[2] >= 2 * self.min_leaf)

    def _in_rows(self, gradient: np.int64) -> float:
        return float(gradient) * (1.0 / (65536.0 * self.unit))

    def _gain(self, left: Int64Array, right: Int64Array) -> tuple[float, float]:
        """Return the gain of a split as a fraction: Σ g² / (h + ridge) over both parts."""
        (g, h), (other_g, other_h) = ((self._in_rows(part[0]), self._in_rows(part[1])) for part in (left, right))
        h, other_h = h + self.ridge, other_h + self.ridge
        return g * g * other_h + other_g * other_g * h, h * other_h

    def try_column(self, column: int, rows: AnyArray, best: _Split | None) -> tuple[bool, _Split | None]:
        codes = self.codes[column, rows]
        bins = np.zeros((256, 3), dtype=np.int64)
        np.add.at(bins, codes, np.stack([self.gradient[rows], self.curvature[rows], self.weight[rows]], axis=1))
        present = np.unique(codes)
        if len(present) < 2:
            return False, best
        levels = present
        if self.categorical[column]:
            spread = 10.0 * float(self.sums[1]) / float(self.sums[2]) * float(self.unit)
            levels = present[_level_order(bins[present, 0] / (bins[present, 1] + spread))]
        flags = (0, 256) if not self.categorical[column] and present[0] == 0 else (0,)
        for flag in flags:
            usable = levels[1:] if flag else levels
            for place in range(1, len(usable)):
                left = bins[usable[:place]].sum(axis=0)
                right = self.sums - left
                if left[2] < self.min_leaf or right[2] < self.min_leaf:
                    continue
                gain = self._gain(left, right)
                if not gain[0] * self.gain[1] > self.gain[0] * gain[1]:
                    continue
                self.gain = gain
                cut = None if self.categorical[column] else int(usable[place - 1]) | flag
                most_left = bool(2 * left[2] >= self.sums[2])
                missing = bool(present[0] == 0)
                best = self.split(column, usable[:place], present, any_missing=missing, most_left=most_left, cut=cut)
        return True, best


def grow_forest(
    rows: GrowthRows,
    columns_tried: int,
    random_cuts: bool,
    min_leaf: int,
    max_depth: int,
    keys: AnyArray,
    bag: int,
    seed: int,
    first_tree: int,
    n_trees: int,
    threads: int,
) -> Grown:
    """Return the roots, nodes and masks of trees, each grown from its own sample of the rows."""
    grower = _ForestGrower(rows, columns_tried, max_depth, min_leaf)
    grower.random_cuts = random_cuts
    for tree in range(first_tree, first_tree + n_trees):
        grower.order = list(range(len(grower.categorical)))
        grower.grow_tree(np.flatnonzero(in_bag(keys, tree, bag)), Random(seed, tree))
    return grower.grown()


def grow_chains(
    rows: GrowthRows,
    n_chains: int,
    columns_tried: int,
    max_depth: int,
    min_leaf: int,
    rate: float,
    strength: float,
    ridge: float,
    seed: int,
    lengths: tuple[int, int, int],
    outside: AnyArray,
    base: AnyArray,
    keys: AnyArray,
    bag: int,
    weight: Int64Array,
    bag_weight: Int64Array,
    threads: int,
) -> tuple[Int64Array, AnyArray, AnyArray, AnyArray, Float64Array, tuple[Int64Array, ...]]:
    """Return the roots, nodes, masks and leaf scores of chains, the held-out losses, and the sums of the rows."""
    most, step, patience = lengths
    chains = []
    for number in range(n_chains):
        grower = _ChainGrower(rows, columns_tried, max_depth, min_leaf)
        grower.ridge = ridge
        random, others = Random(seed, number), np.asarray(outside == number)
        chains.append(_Chain(grower, random, others, base, keys, bag, rate, strength))
    loss: list[int] = []
    while len(loss) < most and (not loss or int(np.argmin(loss)) + patience + 1 >= len(loss)):
        loss += [sum(chain.grow() for chain in chains) for _ in range(min(step, most - len(loss)))]
    kept = int(np.argmin(loss)) + 1 if loss else 0
    roots = [np.zeros(1, dtype=np.int64)]
    nodes: list[AnyArray] = []
    masks: list[AnyArray] = []
    for chain in chains:
        part = chain.grower.grown()
        end = int(part[0][kept])
        n_masks = sum(len(mask) for mask in masks)
        used = part[1][:end].copy()
        used[:, 2] -= np.where(used[:, 2] < 0, n_masks, 0)
        masks.append(part[2][: int((part[1][:end, 2] < 0).sum())])
        nodes.append(used)
        roots.append(roots[-1][-1] + part[0][1 : kept + 1])
    scores = np.concatenate([score for chain in chains for score in chain.scores[:kept]] or [np.zeros((0, len(base)))])
    scores = scores.astype(np.float32)
    joined = np.concatenate(roots), np.concatenate(nodes), np.concatenate(masks)
    labeled = chains[0].grower.codes.T, chains[0].grower.y, weight, len(base)
    sums: tuple[Int64Array, ...] = ()
    if len(weight):
        sums = Trees(*joined, len(rows[1])).count_chains(labeled, n_chains, scores, base, bag_weight, threads)
    return *joined, scores, np.array(loss) / (65536.0 * rows[5]), sums


class _Chain:
    """One chain of boosted trees: its scores of all rows so far."""

    def __init__(
        self,
        grower: _ChainGrower,
        random: Random,
        outside: AnyArray,
        base: AnyArray,
        keys: AnyArray,
        bag: int,
        rate: float,
        strength: float,
    ) -> None:
        self.keys, self.bag = keys, bag
        self.grower, self.random, self.outside = grower, random, outside
        self.rate, self.strength = rate, strength
        self.score = np.tile(base, (len(outside), 1))
        self.scores: list[AnyArray] = []

    def grow(self) -> int:
        """Append a tree; return the held-out log loss after it, in multiples of 2⁻¹⁶ and of the unit of weights."""
        grower, rows = self.grower, np.arange(len(self.outside))
        proba = softmax(self.score)
        sign = np.array([1.0 if self.random.below(2) else -1.0 for _ in range(grower.n_classes)], dtype=np.float32)
        if grower.n_classes == 2:
            sign = np.array([0.0, 1.0], dtype=np.float32)
        mean = square = np.zeros(len(rows), dtype=np.float32)
        for c, one in enumerate(sign):
            mean = mean + one * proba[:, c]
            square = square + (one * one) * proba[:, c]
        grower.gradient = grower.weight * to_fixed(sign[grower.y] - mean)
        curvature = grower.weight * to_fixed(np.maximum(square - mean * mean, np.float32(2.0**-16)))
        lost_bits = max(0, int(grower.weight.sum()).bit_length() - 17)  # of sums below 2³³
        grower.curvature = curvature >> lost_bits << lost_bits
        sample = in_bag(self.keys, len(self.scores), self.bag)
        grower.grow_tree(np.flatnonzero(~self.outside & sample), self.random)
        roots, nodes, masks = grower.grown()
        trees = Trees(roots, nodes, masks, len(grower.categorical))
        leaf = trees.leaf_of(len(roots) - 2, grower.codes.T) - trees.leaves[-2]
        observed = np.zeros((int(trees.leaves[-1] - trees.leaves[-2]), grower.n_classes), dtype=np.int64)
        expected = np.zeros_like(observed)
        bag = ~self.outside
        np.add.at(observed, (leaf[bag], grower.y[bag]), grower.weight[bag])
        np.add.at(expected, leaf[bag], grower.weight[bag, None] * to_fixed(proba[bag]))
        inverse = 1.0 / (65536.0 * grower.unit)
        n, e = observed / float(grower.unit), expected * inverse
        self.scores.append((self.rate * natural_log((n + self.strength) / (e + self.strength))).astype(np.float32))
        self.score = self.score + self.scores[-1][leaf]
        truth = np.maximum(softmax(self.score)[rows, grower.y], np.float32(1e-12))
        return int((grower.weight * to_fixed(-log_of_positive(truth)))[self.outside].sum())

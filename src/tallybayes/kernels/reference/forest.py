"""Trees over columns of codes, and sums of rows in their leaves: see `tallybayes.kernels.forest`."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from tallybayes.kernels.arguments import AnyArray, Float64Array, Int64Array
from tallybayes.kernels.reference.forest_math import in_bag, log_of_positive, softmax

LabeledRows = tuple[AnyArray, AnyArray, Int64Array, int]
ChainCounts = tuple[Int64Array, Int64Array, Int64Array, Int64Array]
_MISFIT = "the rows, the trees and their counts do not fit each other"


class Trees:
    """Trees in preorder: a node is (column or −1, right child or number of the leaf, cut)."""

    def __init__(self, roots: Int64Array, nodes: AnyArray, masks: AnyArray, n_columns: int) -> None:
        self.roots = roots
        self.nodes = nodes.reshape(-1, 3)
        self.masks = np.unpackbits(masks.reshape(-1, 32), axis=1, bitorder="little").astype(bool)
        self.n_columns = n_columns
        is_leaf = self.nodes[:, 0] < 0
        _check_roots(roots, len(is_leaf))
        self.before = np.concatenate([[0], np.cumsum(is_leaf)])  # leaves before each node
        self.leaves = self.before[self.roots]
        _check(self, is_leaf)

    @property
    def n_leaves(self) -> int:
        """The number of leaves of all trees."""
        return int(self.leaves[-1])

    def leaf_of(self, tree: int, codes: AnyArray) -> AnyArray:
        """Return the leaf of every row, (n,), counted over all trees."""
        return self.path(np.full(len(codes), tree), codes)[-1][1]

    def path(self, tree: AnyArray, codes: AnyArray) -> list[tuple[AnyArray, AnyArray, AnyArray]]:
        """Return the nodes from the root to the leaf of every row in its tree, (n,), and the leaves below the nodes.

        Rows that have reached their leaf stay there. Of the leaves, the first and the end.
        """
        first, end = self.roots[tree], self.leaves[tree + 1]
        at = first
        steps = [(at, self.before[at], end)]
        rows = np.arange(len(codes))
        while (self.nodes[at, 0] >= 0).any():
            column, following, cut = self.nodes[at].T
            inner = column >= 0
            left = self._goes_left(cut, codes[rows, np.maximum(column, 0)])
            right = first + following
            end = np.where(inner & left, self.before[np.where(inner, right, at)], end)
            at = np.where(inner, np.where(left, at + 1, right), at)
            steps.append((at, self.before[at], end))
        return steps

    def _goes_left(self, cut: AnyArray, code: AnyArray) -> AnyArray:
        """Return whether codes go left at nodes with these cuts."""
        shift = np.where(cut >= 0, cut >> 8, 0)
        numeric = (code.astype(np.int64) - shift) % 256 <= ((cut & 255) - shift) % 256
        if not len(self.masks):
            return np.asarray(numeric)
        return np.where(cut >= 0, numeric, self.masks[np.where(cut < 0, ~cut, 0), code])

    def count_leaves(self, rows: LabeledRows, threads: int) -> Int64Array:
        """Return the weight of every class in every leaf, (leaves, classes)."""
        codes, y, weight, n_classes = rows
        codes = codes.reshape(len(y), self.n_columns)
        counts = np.zeros((self.n_leaves, n_classes), dtype=np.int64)
        for tree in range(len(self.roots) - 1):
            np.add.at(counts, (self.leaf_of(tree, codes), y), weight)
        return counts

    def leaf_proba(
        self, counts: Int64Array, n_classes: int, strength: Float64Array, unit: float, threads: int
    ) -> AnyArray:
        """Return p(class | leaf), (leaves, classes): every node is shrunk towards its parent."""
        sums = _cumulative(counts, n_classes)
        proba = np.empty((self.n_leaves, n_classes), dtype=np.float32)
        for tree in range(len(self.roots) - 1):
            first = int(self.roots[tree])
            stack = [(first, int(self.leaves[tree]), int(self.leaves[tree + 1]), np.full(n_classes, 1 / n_classes))]
            while stack:
                node, start, end, p = stack.pop()
                p = _back_off(p[None], (sums[end] - sums[start])[None], float(strength[tree]), unit)[0]
                column, following, _ = self.nodes[node]
                if column < 0:
                    proba[start] = p
                    continue
                right = first + int(following)
                middle = int(self.before[right])
                stack += [(node + 1, start, middle, p), (right, middle, end, p)]
        return proba

    def mean_of_leaves(
        self, codes: AnyArray, firsts: Int64Array, leaf_values: AnyArray, n_rows: int, n_classes: int, threads: int
    ) -> Float64Array:
        """Return the means over the trees of each group, (n, groups, classes)."""
        codes = codes.reshape(n_rows, self.n_columns)
        values = leaf_values.reshape(-1, n_classes)
        means = np.zeros((n_rows, len(firsts) - 1, n_classes))
        for group, (first, last) in enumerate(pairwise(firsts.tolist())):
            for tree in range(first, last):
                means[:, group] += values[self.leaf_of(tree, codes)]
            means[:, group] *= 1.0 / max(1, last - first)
        return means

    def held_out_proba(
        self,
        rows: LabeledRows,
        firsts: Int64Array,
        counts: Int64Array,
        strength: Float64Array,
        unit: float,
        keys: AnyArray,
        bag: int,
        threads: int,
    ) -> tuple[Float64Array, AnyArray]:
        """Return p(class | row) without the row, (n, choices, groups, classes), and numbers of trees, (n, groups)."""
        codes, y, weight, n_classes = rows
        codes = codes.reshape(len(y), self.n_columns)
        sums = _cumulative(counts, n_classes)
        own = np.zeros((len(y), n_classes), dtype=np.int64)
        own[np.arange(len(y)), y] = weight
        choices = strength.reshape(-1, max(1, len(self.roots) - 1)).T
        means = np.zeros((len(y), choices.shape[1], len(firsts) - 1, n_classes))
        n_trees = np.zeros((len(y), len(firsts) - 1), dtype=np.int32)
        for group, (first, last) in enumerate(pairwise(firsts.tolist())):
            for tree in range(first, last):
                out = np.flatnonzero(~in_bag(keys, tree - first, bag))
                p = np.full((choices.shape[1], len(out), n_classes), 1.0 / n_classes)
                before = np.full(len(out), -1)
                for node, start, end in self.path(np.full(len(out), tree), codes[out]):
                    at = _back_off(p, sums[end] - sums[start] - own[out], choices[tree][:, None, None], unit)
                    p = np.where((node != before)[:, None], at, p)
                    before = node
                means[out, :, group] += p.swapaxes(0, 1)
                n_trees[out, group] += 1
        means *= (1.0 / np.maximum(1, n_trees))[:, None, :, None]
        return means, n_trees

    def count_chains(
        self, rows: LabeledRows, n_chains: int, scores: AnyArray, base: AnyArray, bag_weight: Int64Array, threads: int
    ) -> ChainCounts:
        """Return observed and expected weights in every leaf: of the bag of each chain, and of the other rows."""
        codes, y, weight, n_classes = rows
        codes = codes.reshape(len(y), self.n_columns)
        sums = tuple(np.zeros((self.n_leaves, n_classes), dtype=np.int64) for _ in range(4))
        inside = bag_weight.reshape(n_chains, len(y))
        for chain in range(n_chains):
            for leaf, proba in self._steps(codes, n_chains, chain, scores, base):
                for part, mine in ((0, inside[chain]), (2, weight - inside[chain])):
                    np.add.at(sums[part], (leaf, y), mine)
                    np.add.at(sums[part + 1], leaf, _expected(mine, proba))
        return sums[0], sums[1], sums[2], sums[3]

    def _steps(
        self, codes: AnyArray, n_chains: int, chain: int, scores: AnyArray, base: AnyArray
    ) -> list[tuple[AnyArray, AnyArray]]:
        """Return, for every tree of a chain, the leaf of every row and the class probabilities before that tree."""
        length = (len(self.roots) - 1) // n_chains
        score = np.tile(base, (len(codes), 1))
        steps = []
        for tree in range(chain * length, (chain + 1) * length):
            leaf = self.leaf_of(tree, codes)
            steps.append((leaf, softmax(score)))
            score = score + scores.reshape(-1, len(base))[leaf]
        return steps

    def held_out_scores(
        self,
        rows: LabeledRows,
        n_chains: int,
        scores: AnyArray,
        base: AnyArray,
        sums: ChainCounts,
        outside: AnyArray,
        outside_weight: Float64Array,
        rate: float,
        strength: float,
        unit: float,
        threads: int,
    ) -> AnyArray:
        """Return log scores of rows by the chain that was not grown from them, less their own counts."""
        codes, y, weight, n_classes = rows
        codes = codes.reshape(len(y), self.n_columns)
        choices = outside_weight.reshape(-1, n_chains)
        observed, expected, observed_out, expected_out = (part.reshape(-1, n_classes) for part in sums)
        own = np.zeros((len(y), n_classes), dtype=np.int64)
        own[np.arange(len(y)), y] = weight
        out = np.empty((len(choices), len(y), n_classes), dtype=np.float32)
        for chain in range(n_chains):
            mine = np.flatnonzero(outside == chain)
            out[:, mine] = base
            for leaf, proba in self._steps(codes[mine], n_chains, chain, scores, base):
                n = observed_out[leaf] - own[mine]
                e = expected_out[leaf] - _expected(weight[mine], proba)
                for choice, factor in enumerate(choices[:, chain]):
                    high = (observed[leaf] + factor * n) * unit
                    low = (expected[leaf] + factor * e) * unit
                    ratio = ((high + strength) / (low + strength)).astype(np.float32)
                    out[choice, mine] += np.float32(rate) * log_of_positive(ratio)
        return out


def _cumulative(counts: Int64Array, n_classes: int) -> Int64Array:
    """Return the sums of the counts of all leaves before each leaf, and of all leaves: (leaves + 1, classes)."""
    first = np.zeros((1, n_classes), dtype=np.int64)
    return np.concatenate([first, np.cumsum(counts.reshape(-1, n_classes), axis=0)])


def _check_roots(roots: Int64Array, n_nodes: int) -> None:
    """Raise ValueError if trees overlap, or do not have all nodes."""
    if len(roots) == 0 or roots[0] != 0 or roots[-1] != n_nodes or (np.diff(roots) <= 0).any():
        raise ValueError(_MISFIT)


def _check(trees: Trees, is_leaf: AnyArray) -> None:
    """Raise ValueError if a row could leave its tree."""
    roots = trees.roots
    tree = np.repeat(np.arange(len(roots) - 1), np.diff(roots))
    within = np.arange(len(is_leaf)) - roots[tree]
    column, following, cut = trees.nodes.T.astype(np.int64)
    numbers = np.cumsum(is_leaf) - 1 - trees.leaves[tree]
    right = (following > within + 1) & (following < np.diff(roots)[tree])
    known = np.where(cut < 0, ~cut < len(trees.masks), cut < 512) & (column < trees.n_columns)
    if not np.where(is_leaf, following == numbers, right & known).all():
        raise ValueError(_MISFIT)
    if (2 * np.diff(trees.leaves) != np.diff(roots) + 1).any():
        raise ValueError(_MISFIT)


def _back_off(p: Float64Array, counts: Int64Array, strength: AnyArray | float, unit: float) -> Float64Array:
    """Return (n + strength·p) / (Σ n + strength), (rows, classes); p for rows without counts."""
    total = counts.sum(axis=1, keepdims=True)
    scale = 1.0 / (total * unit + strength)
    return np.where(total > 0, (counts * unit + strength * p) * scale, p)


def _expected(weight: Int64Array, proba: AnyArray) -> Int64Array:
    """Return the weights of the classes of rows, rounded: (n, classes)."""
    share = (proba * np.float32(65536.0) + np.float32(0.5)).astype(np.int64)
    return np.asarray((weight[:, None] * share + 32768) >> 16)

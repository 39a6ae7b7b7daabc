"""GrownChains: chains of boosted trees whose leaves compare observed counts with expected counts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from tallybayes._utils.sealed_file import check_no_unknown_entries
from tallybayes.errors import FileError
from tallybayes.estimation.calibration.log_linear_pool import LogLinearPool
from tallybayes.kernels.forest import ChainScores, ChainSums, Trees, grow_chains
from tallybayes.models.forest.coded_columns import CodedColumns
from tallybayes.models.forest.counted_rows import WEIGHT_UNIT, CountedRows
from tallybayes.models.forest.forest_counts import ForestCounts
from tallybayes.models.forest.grown_trees import Grown, GrownTrees, HeldOut, fit_pool, pool_rows

N_CHAINS = 4
_OUTSIDE_FACTORS = (1.0, 0.3, 0.0)  # tried, of the largest weight of rows outside
_MOST_OUTSIDE = 6.0  # bounds the weight of the rows outside by 6 / (rate · trees) of the weight of the bag
_NO_SCORE = -200.0  # log score of classes that came later, for expected counts: their probability is 0
_RIDGE = 1.0
_MOST_SEARCHED = 250_000  # rows in which the splits of a tree are searched, about
_MOST_COMPARED = 4_000  # rows that the weight of the rows outside is chosen by


class ChainOptions(NamedTuple):
    """How chains are grown.

    Attributes
    ----------
    rate : float
        The power of the multiplier of each leaf.
    strength : float
        The prior strength of the multiplier, in expected rows, divided by the number of classes.
    max_depth, min_leaf, most_trees : int
    columns_tried : float
        The proportion of the columns that are tried at a node.
    step, patience : int
        Trees that are grown at a time, and without a lower held-out loss.
    """

    rate: float = 0.2
    strength: float = 8.0
    max_depth: int = 7
    min_leaf: int = 3
    most_trees: int = 300
    columns_tried: float = 0.3
    step: int = 10
    patience: int = 15

    def n_columns(self, n_columns: int) -> int:
        """Return the number of columns that are tried at a node."""
        return max(min(n_columns, 4), min(round(self.columns_tried * n_columns), 40))


@dataclass(frozen=True, eq=False)
class GrownChains(GrownTrees):
    """Chains of trees. A leaf multiplies the score of a class by ((n + s) / (e + s))^rate.

    n is the observed and e the expected weight of the class among the rows of the leaf, under the chain before that
    tree; (n + s) / (e + s) is the posterior mean of a rate with a Gamma(s, s) prior. The scores that e is computed from
    are frozen, so that sums of rows stay exact.

    Attributes
    ----------
    scores : ChainScores
        The frozen scores.
    rate, strength : float
    outside_factor : float
    keys : uint64 array
        The distinct keys of the rows that the chains were grown from, sorted.
    copies : int64 array
        The number of such rows.
    """

    scores: ChainScores
    rate: float
    strength: float
    outside_factor: float
    keys: np.ndarray
    copies: np.ndarray

    def _padded(self, n_classes: int) -> ChainScores:
        """Return the frozen scores with columns for classes that came later."""
        more = n_classes - len(self.classes)
        base = np.append(self.scores.base, np.full(more, _NO_SCORE, dtype=np.float32))
        return ChainScores(self.scores.n_chains, np.pad(self.scores.leaves, ((0, 0), (0, more))), base)

    def count(self, rows: CountedRows) -> tuple[np.ndarray, ...]:
        """Return the sums of rows in the leaves."""
        inside = _bag_weight(rows, self.keys, self.copies)
        return tuple(self.trees.count_chains(rows.labeled, self._padded(rows.n_classes), inside))

    def outside_weight(self, sums: tuple[np.ndarray, ...], factor: float) -> np.ndarray:
        """Return the weight of the rows outside the bag of each chain, (chains,).

        Their residuals are met again in every tree, because the scores of the trees before do not know these rows.
        """
        n_chains, length = self.scores.n_chains, self._length
        out = np.zeros(n_chains)
        for chain in range(n_chains if length else 0):
            first, last = self._leaves(chain * length)
            bag, outside = (float(sums[part][first:last].sum()) for part in (0, 2))
            bound = _MOST_OUTSIDE / (self.rate * length)
            out[chain] = factor * min(1.0, bound * bag / outside) if outside else 0.0
        return out

    @property
    def _length(self) -> int:
        """The number of trees of a chain."""
        return len(self.trees) // self.scores.n_chains

    def _leaves(self, tree: int) -> tuple[int, int]:
        """Return the first leaf of a tree, and the end."""
        first, end = self.trees.leaf_starts[[tree, tree + 1]].tolist()
        return first, end

    def _chain_of_leaf(self) -> np.ndarray:
        """Return the chain of every leaf."""
        starts = self.trees.leaf_starts[:: max(1, self._length)] if self._length else np.zeros(1, np.int64)
        return np.repeat(np.arange(len(starts) - 1), np.diff(starts))

    def _log_ratio(self, counts: ForestCounts, sums: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return rate · log((n + s) / (e + s)) of the present classes.

        Of classes that came later, e is the class frequency times the weight of the node, and the power is smaller:
        all trees repeat what the rows of such a class say.

        Parameters
        ----------
        sums : ndarray of shape (4, n, known classes)
        weight : ndarray of shape (n,)
            The weight of the rows outside.
        """
        n, e = ((sums[k] + weight[:, None] * sums[k + 2]) / WEIGHT_UNIT for k in (0, 1))
        rate = np.full(n.shape[1], self.rate)
        late = slice(len(self.classes), None)
        frequency = counts.class_weight / max(1, counts.class_weight.sum())
        e[:, late] = n.sum(axis=1, keepdims=True) * frequency[late]
        rate[late] = min(self.rate, _MOST_OUTSIDE / max(1, self._length))
        ratio = rate * np.log((n + self.strength) / (e + self.strength))
        return np.asarray(ratio[:, counts.present])

    def base(self, counts: ForestCounts) -> np.ndarray:
        """Return the log scores of the present classes before the first tree."""
        weight = counts.class_weight / WEIGHT_UNIT
        base = np.log((weight + 0.5) / (weight.sum() + 0.5 * len(weight)))
        base[: len(self.classes)] = self.scores.base
        return np.asarray(base[counts.present])

    def leaf_values(self, counts: ForestCounts) -> np.ndarray:
        """Return the values of the leaves for the present classes."""
        weight = self.outside_weight(counts.sums, self.outside_factor)[self._chain_of_leaf()]
        return self._log_ratio(counts, np.stack(counts.sums), weight).astype(np.float32)

    def _scores(self, counts: ForestCounts, leaf_values: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Return the mean over the chains of the log scores, (n, present classes)."""
        means = self.trees.mean_of_leaves(codes, np.array([0, len(self.trees)], dtype=np.int64), leaf_values)
        return np.asarray(means[:, 0] * self._length + self.base(counts))

    def proba(self, counts: ForestCounts, leaf_values: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Return the class probabilities of the groups of trees."""
        return _softmax(self._scores(counts, leaf_values, codes))[:, None]

    def held_out(self, counts: ForestCounts, rows: CountedRows) -> np.ndarray:
        """Return the class probabilities of counted rows without themselves."""
        return self._held_out(counts.sums, rows, (self.outside_factor,))[0][:, None]

    def _held_out(
        self, sums: tuple[np.ndarray, ...], rows: CountedRows, factors: tuple[float, ...]
    ) -> list[np.ndarray]:
        """Return held-out probabilities for factors of the weight of the rows outside, (n, classes) each."""
        weights = np.stack([self.outside_weight(sums, factor) for factor in factors])
        outside = chain_of(rows.keys, rows.copy).astype(np.int32)
        scores = self.trees.held_out_scores(
            rows.labeled, self._padded(rows.n_classes), ChainSums(*sums), outside, weights, self.rate, self.strength
        )
        return [_softmax(one.astype(np.float64)) for one in scores]

    def contributions(self, counts: ForestCounts, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the log scores without any column, and the columns' contributions."""
        known = np.stack(counts.sums, axis=1)
        sums = np.concatenate([np.zeros_like(known[:1]), np.cumsum(known, axis=0)])
        weight = self.outside_weight(counts.sums, self.outside_factor)

        def log_ratio(node: np.ndarray, _: np.ndarray | None, tree: np.ndarray) -> np.ndarray:
            return self._log_ratio(counts, node.transpose(1, 0, 2), weight[tree // self._length])

        root, change = self.path_changes(codes, np.arange(len(self.trees)), sums, log_ratio, len(counts.present))
        sharp, n_chains = self.pool.inverse_temperature, self.scores.n_chains
        return sharp * (root / n_chains + self.base(counts) + self.bias(counts)), sharp * change / n_chains

    n_sums = 4
    residue = (
        *GrownTrees.residue,
        "structure_: the frozen scores of the leaves, and 64-bit hashes of the rows that the trees were grown from",
    )

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
        scores = ChainScores(int(numbers.pop("n_chains")), arrays.pop("scores"), arrays.pop("base"))
        keys, copies = arrays.pop("keys"), arrays.pop("copies")
        rate, strength, factor, weight = (
            float(numbers.pop(name)) for name in ("rate", "strength", "outside_factor", "grown_weight")
        )
        check_no_unknown_entries("the chains", numbers)
        shapes = scores.leaves.shape == (trees.n_leaves, len(classes)) and scores.base.shape == (len(classes),)
        finite = all(part.dtype == np.float32 and np.isfinite(part).all() for part in scores[1:])
        if not shapes or not finite or scores.n_chains != N_CHAINS or len(trees) % N_CHAINS or len(pool.weights) != 1:
            raise FileError("the scores of the chains in the file are invalid.")
        known = keys.dtype == np.uint64 and copies.dtype == np.int64 and keys.shape == copies.shape == (len(keys),)
        if not known or (keys[1:] <= keys[:-1]).any() or copies.min(initial=1) < 1:
            raise FileError("the keys of the rows of the chains in the file are invalid.")
        if not (0 < rate < np.inf and 0 < strength < np.inf and 0 <= factor <= 1):
            raise FileError("the rate, strength or weight of the chains in the file is invalid.")
        return cls(columns, classes, trees, weight, pool, scores, rate, strength, factor, keys, copies)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays of the structure by name."""
        trees = self.trees
        found: dict[str, np.ndarray] = {
            "roots": trees.roots,
            "nodes": trees.nodes,
            "masks": trees.masks,
            "keys": self.keys,
        }
        return found | {"copies": self.copies, "scores": self.scores.leaves, "base": self.scores.base}

    def numbers(self) -> dict[str, Any]:
        """Return the other parts of the structure as JSON."""
        names = ("rate", "strength", "outside_factor", "grown_weight")
        return {name: getattr(self, name) for name in names} | {"n_chains": self.scores.n_chains}


def _softmax(scores: np.ndarray) -> np.ndarray:
    """Return class probabilities of log scores."""
    proba = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(proba / proba.sum(axis=1, keepdims=True))


def chain_of(keys: np.ndarray, copies: np.ndarray) -> np.ndarray:
    """Return the chain that is not grown from each row: equal rows take turns."""
    return np.asarray(((keys >> np.uint64(33)).astype(np.int64) + copies) % N_CHAINS)


def _bag_weight(rows: CountedRows, keys: np.ndarray, copies: np.ndarray) -> np.ndarray:
    """Return the weight that each row adds to the bag of each chain, (chains, n).

    A row that the chains were grown from is in the bags of all of them but one. Of several equal rows each adds the
    same part of its weight, so that the sums do not depend on which of them are counted.

    Parameters
    ----------
    rows : CountedRows
    keys, copies : ndarray
        Those of the rows that the chains were grown from.
    """
    places = np.minimum(np.searchsorted(keys, rows.keys), max(len(keys) - 1, 0))
    grown = keys[places] == rows.keys if len(keys) else np.zeros(len(rows.keys), dtype=bool)
    n_copies = np.where(grown, copies[places] if len(keys) else 0, 1)
    first = chain_of(rows.keys, np.zeros(len(rows.keys), dtype=np.int64))
    chains = np.arange(N_CHAINS)[:, None]
    outside = n_copies // N_CHAINS + ((chains - first) % N_CHAINS < n_copies % N_CHAINS)
    share = WEIGHT_UNIT * (n_copies - outside) // n_copies
    return np.where(grown, (rows.weight * share) // WEIGHT_UNIT, 0)


def grow(columns: CodedColumns, classes: tuple[Any, ...], rows: CountedRows, options: ChainOptions, seed: int) -> Grown:
    """Return chains grown from rows."""
    growth, kept = rows.growth(columns.categorical)
    weight = np.bincount(rows.y, rows.weight / WEIGHT_UNIT, minlength=len(classes))
    base = np.log((weight + 0.5) / (weight.sum() + 0.5 * len(classes))).astype(np.float32)
    outside = chain_of(rows.keys, rows.copy)
    strength = options.strength / len(classes)
    keys, copies = np.unique(rows.keys, return_counts=True)
    all_grow = len(kept) == len(rows.y)
    trees, scores, _, found = grow_chains(
        growth,
        outside[kept],
        base,
        rows.copy_keys()[kept],
        bag=min(1.0, _MOST_SEARCHED / len(kept)),
        n_chains=N_CHAINS,
        columns_tried=options.n_columns(len(columns.names)),
        max_depth=options.max_depth,
        min_leaf=options.min_leaf * growth.unit,
        rate=options.rate,
        strength=strength,
        ridge=_RIDGE,
        seed=seed,
        most_trees=options.most_trees,
        step=options.step,
        patience=options.patience,
        weights=(rows.weight, _bag_weight(rows, keys, copies)) if all_grow else None,
    )
    none = LogLinearPool(np.ones(1), np.zeros(len(classes)), 1.0, 0.0)
    fixed = (columns, classes, trees, float(weight.sum()))
    grown = GrownChains(*fixed, none, scores, options.rate, strength, _OUTSIDE_FACTORS[0], keys, copies)
    sums = grown.count(rows) if found is None else tuple(found)
    few, some = pool_rows(rows, _MOST_COMPARED), pool_rows(rows)
    losses = []
    for proba in grown._held_out(sums, few, _OUTSIDE_FACTORS):
        pool = fit_pool(proba[:, None], few)
        log_proba = pool.log_proba(proba[:, None], pool.bias, (weight + 1) / (weight + 1).sum())
        losses.append(-float(few.weight @ log_proba[np.arange(len(few.y)), few.y]))
    factor = _OUTSIDE_FACTORS[int(np.argmin(losses))]
    proba = grown._held_out(sums, some, (factor,))[0][:, None]
    return Grown(replace(grown, outside_factor=factor, pool=fit_pool(proba, some)), sums, HeldOut.of(some, proba))

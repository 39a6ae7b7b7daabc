"""Cross-validated scores of one-dependence classifiers: pair counts without each fold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from tallybayes import kernels
from tallybayes._utils.spanning_tree import maximum_spanning_tree
from tallybayes.kernels.pair_counts import count_pairs, panels_of
from tallybayes.models.ensemble.candidate_folds import CountedFolds
from tallybayes.models.ensemble.naive_bayes_by_fold import level_shares
from tallybayes.models.one_dependence.mutual_information import conditional_mutual_information
from tallybayes.models.one_dependence.pair_counts import PairCounts
from tallybayes.models.one_dependence.pair_scorer import AllParentsScorer, PairScorer, TreeScorer
from tallybayes.statistics.sufficient_statistics import subtract_counts


class Coding(NamedTuple):
    """Rows as level codes, (columns, n); −1 where a cell is missing."""

    columns: np.ndarray
    sizes: list[int]

    @classmethod
    def of(cls, columns: Sequence[np.ndarray], sizes: Sequence[int], n_rows: int) -> Coding:
        """Return the columns as one array of the narrowest integer type."""
        narrow = np.int8 if max(sizes, default=0) < 2**7 else np.int16 if max(sizes) < 2**15 else np.int64
        kept = [index for index, size in enumerate(sizes) if size]
        codes = np.empty((len(kept), n_rows), dtype=narrow)
        for out, index in zip(codes, kept, strict=True):
            out[:] = columns[index].astype(narrow)
        return cls(codes, [sizes[index] for index in kept])

    @property
    def offsets(self) -> np.ndarray:
        """The index of each column's first level; the last entry is the number of levels."""
        return np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)

    @property
    def whole(self) -> bool:
        """Whether no cell is missing."""
        return not (self.columns < 0).any()


def pair_scores(codings: Sequence[Coding], folds: CountedFolds, strength: float) -> tuple[np.ndarray, np.ndarray]:
    """Return log p(class, row) of each row by the pair counts of the other folds, for AODE and for the tree.

    Parameters
    ----------
    codings : sequence of Coding
        One for each fold.
    folds : CountedFolds
    strength : float
        The prior strength of a pair's table, in rows.

    Returns
    -------
    parents, tree : ndarray of shape (n, classes)
    """
    parents, tree = np.empty((2, len(folds.codes), folds.n_classes))
    level_counts, pseudo_counts = _singles(codings, folds)
    panels = panels_of(0, folds.n_classes)
    for k, (coding, pair_counts) in enumerate(zip(codings, _joints(codings, folds), strict=True)):
        test = folds.tests[k]
        log_prior = folds.log_prior[k]
        offsets = coding.offsets
        if not coding.sizes:
            parents[test] = tree[test] = log_prior
            continue
        sizes = np.array(coding.sizes)
        column_totals = np.add.reduceat(level_counts[k], offsets[:-1], axis=1)
        level_column_totals = np.broadcast_to(level_counts[k][..., None], (*level_counts[k].shape, len(sizes)))
        if not coding.whole:
            level_column_totals = np.add.reduceat(pair_counts, offsets[:-1], axis=2, dtype=np.float64)
        pairs = PairCounts(
            tuple(range(len(sizes))),
            [],
            sizes,
            offsets,
            level_counts[k],
            column_totals,
            pseudo_counts[k],
            pair_counts,
            level_column_totals,
        )
        rows = list(coding.columns[:, test])
        panels = panels if panels.shape[0] == offsets[-1] else panels_of(int(offsets[-1]), folds.n_classes)
        scorer: PairScorer = AllParentsScorer(pairs, strength, log_prior, panels=panels)
        parents[test] = scorer.joint_of(rows)
        scorer = TreeScorer(
            pairs, strength, log_prior, tree=maximum_spanning_tree(conditional_mutual_information(pairs))
        )
        tree[test] = scorer.joint_of(rows)
    return parents, tree


def _singles(codings: Sequence[Coding], folds: CountedFolds) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return the level counts of each class without each fold, and the pseudo-counts of the prior."""
    n_groups = folds.n_folds * folds.n_classes
    tables = []
    remaining = np.zeros(0)
    for k, coding in enumerate(codings):
        if not k or coding is not codings[k - 1]:
            counted = kernels.count_codes(coding.columns.T, coding.sizes, folds.group, n_groups, folds.weight)
            remaining = folds.without(counted.reshape(folds.n_folds, folds.n_classes, -1))
        tables.append(remaining[k])
    sizes = np.concatenate([coding.sizes for coding in codings]).astype(np.int64)
    if not sizes.sum():
        return tables, tables
    _, pseudo_counts = level_shares(np.concatenate(tables, axis=1), sizes)
    return tables, np.split(pseudo_counts, np.cumsum([table.shape[1] for table in tables])[:-1], axis=1)


def _joints(codings: Sequence[Coding], folds: CountedFolds) -> Iterator[np.ndarray]:
    """Yield the counts of all pairs of levels by class without each fold, (classes, levels, levels).

    Consecutive folds with one coding share the counts of all rows, from which each fold is subtracted.
    """
    whole = np.zeros(0)
    for k, coding in enumerate(codings):
        if not k or coding is not codings[k - 1]:
            whole = _pairs(coding, folds, slice(None))
        part = _pairs(coding, folds, folds.tests[k])
        yield whole - part if folds.weight is None else subtract_counts(whole, part)


def _pairs(coding: Coding, folds: CountedFolds, rows: slice | np.ndarray) -> np.ndarray:
    """Return the counts of all pairs of levels by class in some rows."""
    weight = None if folds.weight is None else folds.weight[rows]
    return count_pairs(coding.columns[:, rows].T, coding.sizes, folds.codes[rows], folds.n_classes, weight)

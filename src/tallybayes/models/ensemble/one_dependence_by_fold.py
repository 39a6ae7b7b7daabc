"""Pairs of columns without each fold, and the scores of its rows by all parents and by a tree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from tallybayes import kernels
from tallybayes.kernels.pair_counts import count_pairs, panels_of
from tallybayes.models.ensemble.candidate_folds import Folds
from tallybayes.models.ensemble.naive_bayes_by_fold import level_shares
from tallybayes.models.one_dependence.pair_model import PairCounts
from tallybayes.models.one_dependence.pair_scorer import AllParentsScorer, PairScorer, TreeScorer
from tallybayes.models.one_dependence.tree_augmented import conditional_mutual_information, spanning_tree


class Coding(NamedTuple):
    """Rows as codes of the levels of columns, (columns, n), −1 where a cell is missing."""

    columns: np.ndarray
    sizes: list[int]

    @classmethod
    def of(cls, columns: Sequence[np.ndarray], sizes: Sequence[int], n_rows: int) -> Coding:
        """The columns in one array, as narrow as it may be."""
        narrow = np.int8 if max(sizes, default=0) < 2**7 else np.int16 if max(sizes) < 2**15 else np.int64
        kept = [place for place, size in enumerate(sizes) if size]
        codes = np.empty((len(kept), n_rows), dtype=narrow)
        for out, place in zip(codes, kept, strict=True):
            out[:] = columns[place].astype(narrow)
        return cls(codes, [sizes[place] for place in kept])

    @property
    def offsets(self) -> np.ndarray:
        """Of every column's first level, and at the end their number."""
        return np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)

    @property
    def whole(self) -> bool:
        """Whether no cell is missing."""
        return not (self.columns < 0).any()


def pair_scores(codings: Sequence[Coding], folds: Folds, strength: float) -> tuple[np.ndarray, np.ndarray]:
    """log p(class, row) of every row by the pairs in the other folds: with all parents, and along the others' tree.

    Parameters
    ----------
    codings : sequence of Coding
        For every fold.
    folds : Folds
    strength : float
        What the prior of a pair is worth, in rows.

    Returns
    -------
    parents, tree : ndarray of shape (n, classes)
    """
    parents, tree = np.empty((2, len(folds.codes), folds.n_classes))
    singles, added = _singles(codings, folds)
    room = panels_of(0, folds.n_classes)
    for k, (coding, joint) in enumerate(zip(codings, _joints(codings, folds), strict=True)):
        test = folds.tests[k]
        log_prior = folds.log_prior[k]
        offsets = coding.offsets
        if not coding.sizes:
            parents[test] = tree[test] = log_prior
            continue
        sizes = np.array(coding.sizes)
        known = np.add.reduceat(singles[k], offsets[:-1], axis=1)
        both = np.broadcast_to(singles[k][..., None], (*singles[k].shape, len(sizes)))
        if not coding.whole:
            both = np.add.reduceat(joint, offsets[:-1], axis=2, dtype=np.float64)
        pairs = PairCounts(tuple(range(len(sizes))), [], sizes, offsets, singles[k], known, added[k], joint, both)
        rows = list(coding.columns[:, test])
        room = room if room.shape[0] == offsets[-1] else panels_of(int(offsets[-1]), folds.n_classes)
        plan: PairScorer = AllParentsScorer(pairs, strength, log_prior, room=room)
        parents[test] = plan.joint_of(rows)
        plan = TreeScorer(pairs, strength, log_prior, tree=spanning_tree(conditional_mutual_information(pairs)))
        tree[test] = plan.joint_of(rows)
    return parents, tree


def _singles(codings: Sequence[Coding], folds: Folds) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """How often every class has each level without each fold, and what the prior adds, found for all at once."""
    n_groups = folds.n_folds * folds.n_classes
    tables = []
    rest = np.zeros(0)
    for k, coding in enumerate(codings):
        if not k or coding is not codings[k - 1]:
            counted = kernels.count_codes(coding.columns.T, coding.sizes, folds.group, n_groups, folds.weight)
            rest = folds.without(counted.reshape(folds.n_folds, folds.n_classes, -1))
        tables.append(rest[k])
    sizes = np.concatenate([coding.sizes for coding in codings]).astype(np.int64)
    if not sizes.sum():
        return tables, tables
    _, added = level_shares(np.concatenate(tables, axis=1), sizes)
    return tables, np.split(added, np.cumsum([table.shape[1] for table in tables])[:-1], axis=1)


def _joints(codings: Sequence[Coding], folds: Folds) -> Iterator[np.ndarray]:
    """How often every class has each pair of levels without each fold, (classes, levels, levels)."""
    for k, coding in enumerate(codings):
        rest = np.where(folds.fold == k, -1, folds.codes)
        yield count_pairs(coding.columns.T, coding.sizes, rest, folds.n_classes, folds.weight)

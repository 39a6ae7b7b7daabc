"""Exact structure search: dynamic programming over sets of columns (Silander and Myllymäki, 2006).

Sets of columns are bit masks. best[child, s] is the highest score of a child whose parents are a subset of s. The score
of the best structure of a set is the maximum over its last column, its sink: that of the set without the sink, plus
the best score of the sink with parents from the rest of the set.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from scipy.special import xlogy

from tallybayes._utils.memory import available_memory
from tallybayes._utils.progress import progress
from tallybayes.distributions.log_gamma import log_rising
from tallybayes.errors import TooLargeError
from tallybayes.kernels.contingency_tables import MOST_CELLS, sum_joint
from tallybayes.models.network.structure.constraints import Constraints
from tallybayes.models.network.structure.encoded_rows import EncodedRows
from tallybayes.models.network.structure.structure_scores import (
    TOLERANCE,
    ScoreCache,
    TableSumScore,
    masks_of,
    members_of,
)

_CHUNK = 4096  # sets counted together
_MAX_COLUMNS = 24


def exact_search(cache: ScoreCache, constraints: Constraints) -> tuple[list[int], int]:
    """Return the parents of every column in the best structure, as bit masks, and the number of families scored."""
    n = len(cache.rows.names)
    needed = 8 * (n + 4) << n
    if n > _MAX_COLUMNS or needed > available_memory():
        raise TooLargeError.of(
            f"exact structure search of {n} columns",
            needed,
            available_memory(),
            "Use method='hill', or fewer columns.",
        )
    best = np.empty((n, 1 << n))
    n_families = 0
    for child, scores in enumerate(_family_scores(cache, constraints)):
        best[child] = scores
        n_families += int((scores > -np.inf).sum())
        for other in range(n):  # maxima over all subsets, column by column
            pairs = best[child].reshape(-1, 2, 1 << other)
            np.maximum(pairs[:, 1], pairs[:, 0], out=pairs[:, 1])
    total = np.full(1 << n, -np.inf)  # the score of the best structure of every set
    total[0] = 0.0
    size = _set_sizes(n)
    order = np.argsort(size, kind="stable")
    ends = np.searchsorted(size[order], np.arange(1, n + 2))
    for first, last in pairwise(ends.tolist()):
        sets = order[first:last]
        for sink in range(n):
            with_sink = sets[(sets >> sink) & 1 == 1]
            rest = with_sink ^ (1 << sink)
            total[with_sink] = np.maximum(total[with_sink], total[rest] + best[sink, rest])
    return _trace_back(best, total), n_families


def _set_sizes(n: int) -> np.ndarray:
    """Return the number of columns of every set of n columns."""
    sizes = np.zeros(1 << n, dtype=np.int64)
    for k in range(n):
        sizes.reshape(-1, 2, 1 << k)[:, 1] += 1
    return sizes


def _trace_back(best: np.ndarray, total: np.ndarray) -> list[int]:
    """Return the parents of every column, sink by sink; of equally good parents, the fewest."""
    n = len(best)
    parents = [0] * n
    left = (1 << n) - 1
    tolerance = TOLERANCE * (1.0 + abs(total[left]))
    while left:
        sink = next(k for k in members_of(left) if total[left ^ 1 << k] + best[k, left ^ 1 << k] == total[left])
        left ^= 1 << sink
        mask = left
        enough = best[sink, left] - tolerance
        while True:  # remove parents that do not increase the score
            smaller = (mask ^ 1 << k for k in members_of(mask))
            reduced = next((candidate for candidate in smaller if best[sink, candidate] >= enough), -1)
            if reduced < 0:
                break
            mask = reduced
        parents[sink] = mask
    return parents


def _family_scores(cache: ScoreCache, constraints: Constraints) -> Iterator[np.ndarray]:
    """Yield the scores of every column with every set of parents; −∞ for sets that are not allowed."""
    rows = cache.rows
    n = len(rows.names)
    masks = np.arange(1 << n)
    set_sizes = _set_sizes(n)
    n_cells = np.ones(1 << n)
    for k, size in enumerate(rows.sizes.tolist()):
        n_cells.reshape(-1, 2, 1 << k)[:, 1] *= size
    score = cache.score if isinstance(cache.score, TableSumScore) and rows.observed is None else None
    counted = masks[1:][(set_sizes[1:] <= constraints.max_parents + 1) & (n_cells[1:] <= MOST_CELLS)]
    sums = _TableSums(rows, counted)
    allowed = masks_of(constraints.allowed)
    required = masks_of(constraints.required)
    for child, size in enumerate(rows.sizes.tolist()):
        is_allowed = (masks & ~allowed[child] == 0) & (masks & required[child] == required[child])
        sets = masks[is_allowed & (set_sizes <= constraints.max_parents)]
        scores = np.full(1 << n, -np.inf)
        if score is not None:
            sets = sets[n_cells[sets] * size <= MOST_CELLS]
            n_rows = n_cells[sets]
            over_cells = sums.with_prior(score.row_prior(n_cells, 1))[sets | 1 << child]
            over_rows = sums.with_prior(score.row_prior(n_cells, size))[sets]
            scores[sets] = over_cells - over_rows - score.penalty(rows, n_rows * size, n_rows)
        else:
            chunks = [sets[start : start + _CHUNK] for start in range(0, len(sets), _CHUNK)]
            for chunk in progress(chunks, f"families of {rows.names[child]!r}"):
                scores[chunk] = cache.scores([(child, mask) for mask in chunk.tolist()])
        yield scores


class _TableSums:
    """Sums over the contingency tables of sets of columns; the score of a family is a difference of two of them."""

    def __init__(self, rows: EncodedRows, masks: np.ndarray) -> None:
        self.rows = rows
        self.masks = masks
        self._sums: dict[bytes, np.ndarray] = {}

    def with_prior(self, prior: np.ndarray) -> np.ndarray:
        """Return the sums over the cells of all tables with the pseudo-count of every cell, by set."""
        key = prior.tobytes()
        if key not in self._sums:
            rows, total = self.rows, self.rows.total
            sums = np.zeros(len(prior))
            sums[0] = log_rising(prior[0], total) if prior[0] else xlogy(total, total)  # the empty set has one cell
            for first in progress(range(0, len(self.masks), _CHUNK), "tables"):
                chunk = self.masks[first : first + _CHUNK]
                sets = [members_of(mask) for mask in chunk.tolist()]
                sums[chunk] = sum_joint(rows.codes, rows.sizes, sets, prior[chunk], None, rows.weight)
            self._sums[key] = sums
        return self._sums[key]

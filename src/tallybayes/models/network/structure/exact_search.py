"""The best structure of all, by dynamic programming over sets of columns (Silander and Myllymäki, 2006)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from tallybayes._utils.memory import available_memory
from tallybayes._utils.progress import progress
from tallybayes.distributions.log_gamma import log_rising
from tallybayes.errors import TooLargeError
from tallybayes.kernels.contingency_tables import MOST_CELLS, sum_joint
from tallybayes.models.network.structure.constraints import Constraints
from tallybayes.models.network.structure.encoded_rows import EncodedRows
from tallybayes.models.network.structure.structure_scores import EVEN, ScoreCache, TableSumScore, places_of

_CHUNK = 4096  # sets counted together
_MOST = 24  # columns


def best_of_all(families: ScoreCache, constraints: Constraints) -> tuple[list[int], int]:
    """The parents of every column in the structure with the highest score, and how many families there were."""
    rows = families.rows
    n = len(rows.names)
    needed = 8 * (n + 4) << n
    if n > _MOST or needed > available_memory():
        raise TooLargeError.of(
            f"the best of all structures of {n} columns",
            needed,
            available_memory(),
            "Use method='hill', or fewer columns.",
        )
    best = np.empty((n, 1 << n))  # of every column and set: what it is worth with the best parents out of the set
    n_families = 0
    for child, scores in enumerate(_all_scores(families, constraints)):
        best[child] = scores
        n_families += int((scores > -np.inf).sum())
        for other in range(n):
            pairs = best[child].reshape(-1, 2, 1 << other)
            np.maximum(pairs[:, 1], pairs[:, 0], out=pairs[:, 1])
    worth = np.full(1 << n, -np.inf)  # of every set: its best structure
    worth[0] = 0.0
    size = _n_members(n)
    order = np.argsort(size, kind="stable")
    ends = np.searchsorted(size[order], np.arange(1, n + 2))
    for first, last in pairwise(ends.tolist()):
        some = order[first:last]
        for child in range(n):
            here = some[(some >> child) & 1 == 1]
            before = here ^ (1 << child)
            worth[here] = np.maximum(worth[here], worth[before] + best[child, before])
    return _traced(best, worth), n_families


def _n_members(n: int) -> np.ndarray:
    """How many columns every set of n has."""
    found = np.zeros(1 << n, dtype=np.int64)
    for k in range(n):
        found.reshape(-1, 2, 1 << k)[:, 1] += 1
    return found


def _traced(best: np.ndarray, worth: np.ndarray) -> list[int]:
    """The parents of every column: the last column of the best structure, then that of the rest, and so on."""
    n = len(best)
    parents = [0] * n
    left = (1 << n) - 1
    even = EVEN * (1.0 + abs(worth[left]))
    while left:
        child = next(k for k in places_of(left) if worth[left ^ 1 << k] + best[k, left ^ 1 << k] == worth[left])
        left ^= 1 << child
        mask, enough = left, best[child, left] - even
        while True:  # what does without a column takes fewer
            fewer = next((mask ^ 1 << k for k in places_of(mask) if best[child, mask ^ 1 << k] >= enough), -1)
            if fewer < 0:
                break
            mask = fewer
        parents[child] = mask
    return parents


def _all_scores(families: ScoreCache, constraints: Constraints) -> Iterator[np.ndarray]:
    """For every column in turn, its score with every set of parents, −∞ where these are not allowed."""
    rows, score = families.rows, families.score
    n = len(rows.names)
    masks = np.arange(1 << n)
    small = _n_members(n)
    cells = np.ones(1 << n)
    for k, size in enumerate(rows.sizes.tolist()):
        cells.reshape(-1, 2, 1 << k)[:, 1] *= size
    summed = score if isinstance(score, TableSumScore) and rows.known is None else None
    counted = masks[1:][(small[1:] <= constraints.most + 1) & (cells[1:] <= MOST_CELLS)]
    sums = None if summed is None else _Sums(rows, summed, counted, cells[counted])
    for child, size in enumerate(rows.sizes.tolist()):
        bit = 1 << child
        may = sum(1 << k for k in np.flatnonzero(constraints.allowed[:, child]).tolist())
        must = sum(1 << k for k in np.flatnonzero(constraints.required[:, child]).tolist())
        some = masks[(masks & ~may == 0) & (masks & must == must) & (small <= constraints.most)]
        out = np.full(1 << n, -np.inf)
        if sums is not None and summed is not None:
            some = some[cells[some] * size <= MOST_CELLS]
            n_lines = cells[some]
            found = sums.cells[some | bit] - sums.lines(size)[some]
            out[some] = found - summed.penalty(rows, n_lines * size, n_lines)
        else:
            pieces = [some[start : start + _CHUNK] for start in range(0, len(some), _CHUNK)]
            for piece in progress(pieces, f"families of {rows.names[child]!r}"):
                out[piece] = families.of([(child, mask) for mask in piece.tolist()])
        yield out


class _Sums:
    """The sums over the tables of all sets, from which those of families are differences."""

    def __init__(self, rows: EncodedRows, score: TableSumScore, masks: np.ndarray, n_cells: np.ndarray) -> None:
        self.rows, self.score, self.masks, self.n_cells = rows, score, masks, n_cells
        self._starts = score.cell_starts(n_cells, np.ones(len(masks)))
        self.cells = self._summed(self._starts, "tables")
        self._lines: dict[int, np.ndarray] = {}

    def _summed(self, starts: np.ndarray, what: str) -> np.ndarray:
        out = np.zeros(1 << len(self.rows.names))
        for first in progress(range(0, len(self.masks), _CHUNK), what):
            some = slice(first, first + _CHUNK)
            sets = [places_of(mask) for mask in self.masks[some].tolist()]
            found = sum_joint(self.rows.codes, self.rows.sizes, sets, starts[some], None, self.rows.weight)
            out[self.masks[some]] = found
        return out

    def lines(self, n_levels: int) -> np.ndarray:
        """The sums over the lines of a column with so many levels; without parents, all rows are one."""
        every = np.full(len(self.masks), float(n_levels))
        starts = self.score.line_starts(self.n_cells, every)
        key = 0 if np.array_equal(starts, self._starts) else n_levels
        if key not in self._lines:
            self._lines[key] = self._summed(starts, "lines") if key else self.cells.copy()
        (start,) = self.score.line_starts(np.ones(1), every[:1])
        total = self.rows.total
        self._lines[key][0] = total * np.log(total) if start == 0 else log_rising(start, total)
        return self._lines[key]

"""Statistics of rows that a predictive check compares: of numbers, of labels, and of rows of words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import xlogy

from tallybayes.errors import DataError
from tallybayes.families._shared.blocks import SparseRows


class SummaryStatistics(NamedTuple):
    """Statistics by name, and what computes them all: rows of one class to an array (statistics, columns)."""

    names: tuple[str, ...]
    measure: Callable[[Any], np.ndarray]


def _numbers(rows: np.ndarray) -> np.ndarray:
    n, mean, gap = _centered(rows)
    squares = gap * gap
    variance = squares.sum(axis=0) / n
    varied = variance > (1e-13 * np.abs(mean)) ** 2  # what rounding leaves of a constant is no spread
    squares *= gap
    skewness = np.where(varied, squares.sum(axis=0) / n / np.where(varied, variance, 1.0) ** 1.5, 0.0 * n)
    ends = np.fmin.reduce(rows, axis=0), np.fmax.reduce(rows, axis=0)
    deviation = np.sqrt(np.where(varied, variance, 0.0 * n))
    return np.stack([mean, deviation, skewness, *ends, (rows == 0).sum(axis=0) / n])


def _counts(rows: np.ndarray) -> np.ndarray:
    n, mean, gap = _centered(rows)
    dispersion = np.where(mean > 0, (gap * gap).sum(axis=0) / n / np.where(mean > 0, mean, 1.0), 0.0 * n)
    return np.stack([mean, dispersion, np.fmax.reduce(rows, axis=0), (rows == 0).sum(axis=0) / n])


def _centered(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The number of known cells (NaN for none), their mean, and the gaps from it (0 where missing)."""
    n, total = np.full(rows.shape[1], float(len(rows))), rows.sum(axis=0)
    if not np.isnan(total).any():
        mean = total / n
        return n, mean, rows - mean
    known = ~np.isnan(rows)
    n = known.sum(axis=0).astype(float)
    n[n == 0] = np.nan
    mean = np.where(known, rows, 0.0).sum(axis=0) / n
    return n, mean, np.where(known, rows - mean, 0.0)


NUMBERS = SummaryStatistics(
    ("mean", "standard deviation", "skewness", "minimum", "maximum", "share of zeros"), _numbers
)
COUNTS = SummaryStatistics(("mean", "dispersion", "maximum", "share of zeros"), _counts)
YES_NO = SummaryStatistics(("share of ones",), lambda rows: _centered(rows)[1][None])


def _level_shares(rows: np.ndarray) -> list[np.ndarray]:
    """The share of every level of every column, from codes with NaN where missing."""
    columns = (column[~np.isnan(column)].astype(np.intp) for column in rows.T)
    return [np.bincount(codes) / len(codes) if len(codes) else np.full(1, np.nan) for codes in columns]


def _labels(rows: np.ndarray) -> np.ndarray:
    shares = _level_shares(rows)
    return np.array([[p.max() for p in shares], [0.0 - xlogy(p, p).sum() / np.log(2.0) for p in shares]])


LABELS = SummaryStatistics(("share of the most common", "entropy"), _labels)


class TokenCounts(NamedTuple):
    """Rows of words: how many tokens and how many different words each has, and how many pairs of equal tokens."""

    tokens: np.ndarray
    different: np.ndarray
    equal_pairs: np.ndarray

    def take(self, index: np.ndarray) -> TokenCounts:
        """Some of the rows."""
        return TokenCounts(*(part[index] for part in self))

    def first_tokens(self, codes: np.ndarray, most: int) -> np.ndarray:
        """Random rows of every class with at most `most` tokens together, one at least."""
        kept = []
        for code in np.unique(codes):
            mine = np.random.default_rng(0).permutation(np.flatnonzero(codes == code))
            fits = np.cumsum(self.tokens[mine]) <= most
            kept.append(mine[fits] if fits.any() else mine[:1])
        return np.concatenate(kept)

    def redraw(self, probabilities: np.ndarray, codes: np.ndarray, rng: np.random.Generator) -> TokenCounts:
        """Rows of the same lengths, of words drawn with the probabilities (classes, words) of their class."""
        different, pairs = np.zeros(len(codes)), np.zeros(len(codes))
        for code in np.unique(codes):
            mine = np.flatnonzero(codes == code)
            row = np.repeat(mine, self.tokens[mine].astype(np.int64))
            steps = np.cumsum(probabilities[code])
            word = np.searchsorted(steps, rng.random(len(row)) * steps[-1], side="right")
            key, counts = np.unique(row * len(steps) + np.minimum(word, len(steps) - 1), return_counts=True)
            place = key // len(steps)
            different += np.bincount(place, minlength=len(codes))
            pairs += np.bincount(place, counts * (counts - 1.0), minlength=len(codes))
        return TokenCounts(self.tokens, different, pairs)


def count_words(rows: Any, index: np.ndarray, names: Any) -> TokenCounts:
    """Some rows of a block of words; every cell must be whole."""
    if isinstance(rows, SparseRows):
        taken = [rows.data[rows.indptr[row] : rows.indptr[row + 1]] for row in index]
    else:
        columns: Sequence[np.ndarray] = list(rows.T) if isinstance(rows, np.ndarray) else rows
        taken = list(np.stack([np.asarray(column)[index] for column in columns], axis=1))
    out = np.zeros((3, len(index)))
    for place, counts in enumerate(taken):
        counts = np.asarray(counts, dtype=float)
        if not (np.isfinite(counts) & (counts >= 0) & (counts == np.floor(counts))).all():
            raise DataError.wrong_type(
                f"the block {names!r}", "not of whole numbers", "counts of words", "Pass counts, not weights of words."
            )
        out[:, place] = counts.sum(), (counts > 0).sum(), (counts * (counts - 1)).sum()
    return TokenCounts(*out)


def _words(rows: TokenCounts) -> np.ndarray:
    pairs = (rows.tokens * (rows.tokens - 1)).sum()
    return np.array([[rows.different.mean()], [rows.equal_pairs.sum() / pairs if pairs else np.nan]])


WORDS = SummaryStatistics(("different words in a row", "chance of equal words"), _words)

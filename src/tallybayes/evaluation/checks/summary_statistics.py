"""Summary statistics of predictive checks: of numbers, of categorical columns, and of rows of words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.special import xlogy

from tallybayes.errors import DataError
from tallybayes.estimation.scoring.factor_scorer import chunk_of
from tallybayes.families._shared.blocks import SparseRows


class SummaryStatistics(NamedTuple):
    """The names of statistics, and the function from the rows of one class to an array (statistics, columns)."""

    names: tuple[str, ...]
    compute: Callable[[Any], np.ndarray]


def _number_statistics(rows: np.ndarray) -> np.ndarray:
    """Return mean, standard deviation, skewness, minimum, maximum and proportion of zeros."""
    n, mean, gap = _centered(rows)
    squares = gap * gap
    variance = squares.sum(axis=0) / n
    varies = variance > (1e-13 * np.abs(mean)) ** 2  # otherwise rounding errors of a constant
    squares *= gap
    skewness = np.where(varies, squares.sum(axis=0) / n / np.where(varies, variance, 1.0) ** 1.5, 0.0 * n)
    ends = np.fmin.reduce(rows, axis=0), np.fmax.reduce(rows, axis=0)
    std = np.sqrt(np.where(varies, variance, 0.0 * n))
    return np.stack([mean, std, skewness, *ends, (rows == 0).sum(axis=0) / n])


def _count_statistics(rows: np.ndarray) -> np.ndarray:
    """Return mean, dispersion, maximum and proportion of zeros."""
    n, mean, gap = _centered(rows)
    dispersion = np.where(mean > 0, (gap * gap).sum(axis=0) / n / np.where(mean > 0, mean, 1.0), 0.0 * n)
    return np.stack([mean, dispersion, np.fmax.reduce(rows, axis=0), (rows == 0).sum(axis=0) / n])


def _centered(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the number of observed cells (NaN if 0), their mean, and the differences from it (0 if missing)."""
    n = np.full(rows.shape[1], float(len(rows)))
    total = rows.sum(axis=0)
    if not np.isnan(total).any():
        mean = total / n
        return n, mean, rows - mean
    observed = ~np.isnan(rows)
    n = observed.sum(axis=0).astype(float)
    n[n == 0] = np.nan
    mean = np.where(observed, rows, 0.0).sum(axis=0) / n
    return n, mean, np.where(observed, rows - mean, 0.0)


NUMBERS = SummaryStatistics(
    ("mean", "standard deviation", "skewness", "minimum", "maximum", "proportion of zeros"), _number_statistics
)
COUNTS = SummaryStatistics(("mean", "dispersion", "maximum", "proportion of zeros"), _count_statistics)
BINARY = SummaryStatistics(("proportion of ones",), lambda rows: _centered(rows)[1][None])


def _level_proportions(rows: np.ndarray) -> list[np.ndarray]:
    """Return the proportion of every level of every column, from codes with NaN for missing values."""
    columns = (column[~np.isnan(column)].astype(np.intp) for column in rows.T)
    return [np.bincount(codes) / len(codes) if len(codes) else np.full(1, np.nan) for codes in columns]


def _level_statistics(rows: np.ndarray) -> np.ndarray:
    """Return the largest proportion and the entropy in bits."""
    proportions = _level_proportions(rows)
    entropies = [0.0 - xlogy(p, p).sum() / np.log(2.0) for p in proportions]
    return np.array([[p.max() for p in proportions], entropies])


LEVELS = SummaryStatistics(("proportion of the most frequent", "entropy"), _level_statistics)


class TokenCounts(NamedTuple):
    """Rows of words: the numbers of tokens, of different words, and of ordered pairs of equal tokens."""

    tokens: np.ndarray
    different: np.ndarray
    equal_pairs: np.ndarray

    def take(self, index: np.ndarray) -> TokenCounts:
        """Return some of the rows."""
        return TokenCounts(*(part[index] for part in self))

    def first_tokens(self, codes: np.ndarray, most: int) -> np.ndarray:
        """Return random rows of every class with at most `most` tokens together, but at least one row."""
        kept = []
        for code in np.unique(codes):
            rows = np.random.default_rng(0).permutation(np.flatnonzero(codes == code))
            fits = np.cumsum(self.tokens[rows]) <= most
            kept.append(rows[fits] if fits.any() else rows[:1])
        return np.concatenate(kept)

    def redraw(self, probabilities: np.ndarray, codes: np.ndarray, rng: np.random.Generator) -> TokenCounts:
        """Return rows of the same lengths, with words drawn by the probabilities (classes, words) of their class."""
        different = np.zeros(len(codes))
        pairs = np.zeros(len(codes))
        for code in np.unique(codes):
            rows = np.flatnonzero(codes == code)
            row_of_token = np.repeat(rows, self.tokens[rows].astype(np.int64))
            cumulative = np.cumsum(probabilities[code])
            n_words = len(cumulative)
            word = np.searchsorted(cumulative, rng.random(len(row_of_token)) * cumulative[-1], side="right")
            key, counts = np.unique(row_of_token * n_words + np.minimum(word, n_words - 1), return_counts=True)
            row = key // n_words
            different += np.bincount(row, minlength=len(codes))
            pairs += np.bincount(row, counts * (counts - 1.0), minlength=len(codes))
        return TokenCounts(self.tokens, different, pairs)


def count_words(rows: SparseRows | np.ndarray | list[np.ndarray], index: np.ndarray, name: object) -> TokenCounts:
    """Return some rows of a block of words; raise DataError unless every cell is a whole number."""
    if isinstance(rows, SparseRows):
        taken = [rows.data[rows.indptr[row] : rows.indptr[row + 1]] for row in index]
    else:
        taken = list(chunk_of(rows, index))
    out = np.zeros((3, len(index)))
    for k, counts in enumerate(taken):
        counts = np.asarray(counts, dtype=float)
        if not (np.isfinite(counts) & (counts >= 0) & (counts == np.floor(counts))).all():
            raise DataError.wrong_type(
                f"the block {name!r}", "not of whole numbers", "counts of words", "Pass counts, not weights of words."
            )
        out[:, k] = counts.sum(), (counts > 0).sum(), (counts * (counts - 1)).sum()
    return TokenCounts(*out)


def _word_statistics(rows: TokenCounts) -> np.ndarray:
    """Return the mean number of different words of a row, and the probability that two tokens of a row are equal."""
    pairs = (rows.tokens * (rows.tokens - 1)).sum()
    return np.array([[rows.different.mean()], [rows.equal_pairs.sum() / pairs if pairs else np.nan]])


WORDS = SummaryStatistics(("different words in a row", "probability of equal words"), _word_statistics)

"""Mutual information of two columns given the class: posterior mean and variance, and the Bayes factor of dependence.

The plug-in estimate is biased upwards, especially in tables with many cells and few rows. Here the joint distribution
is shrunk towards independence by a prior of strength s (in rows), and s is integrated out on a grid of powers of 4,
weighted by its marginal likelihood. A table without dependence beyond chance has nearly no information, whatever its
size.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from scipy.special import digamma, gammaincinv

from tallybayes.distributions.log_gamma import log_rising
from tallybayes.distributions.parameter_distribution import Interval, tail_probabilities

_LARGEST = 1024.0  # the largest prior strength, in rows per counted row: nearly independent
_VISIBLE = 4.0  # larger strengths are left out of the Bayes factor: no data could show such dependence
_STEPS = 32  # strengths down to 2⁻⁵² of the rows, the precision of η²
_CHUNK_CELLS = 1 << 20  # cells at a time
_CHUNK_PAIRS = 1 << 15  # pairs at a time
LOG_2 = float(np.log(2.0))


class Information(NamedTuple):
    """The posterior of the information of some pairs, in bits; arrays of one shape.

    ``evidence`` is log₂ p(data | dependent) − log₂ p(data | independent given the class); ``most`` is an upper bound of
    the information.
    """

    mean: np.ndarray
    variance: np.ndarray
    evidence: np.ndarray
    most: np.ndarray

    @classmethod
    def joined(cls, parts: Iterable[Information]) -> Information:
        """Return the information of the pairs of all parts."""
        none = cls(*[np.zeros(0)] * 4)
        return cls(
            *(np.concatenate([np.atleast_1d(part) for part in field]) for field in zip(none, *parts, strict=True))
        )

    def interval(self, mass: float) -> Interval:
        """Return the equal-tailed credible interval of the gamma distribution with this mean and variance."""
        known = (self.mean > 0) & (self.variance > 0)
        mean = np.where(known, self.mean, 1.0)
        variance = np.where(known, self.variance, 1.0)
        ends = (gammaincinv(mean**2 / variance, tail) * variance / mean for tail in tail_probabilities(mass))
        return Interval(*(np.minimum(np.where(known, end, self.mean), self.most) for end in ends))


def _strengths(total: np.ndarray, n_steps: int) -> np.ndarray:
    """Return the grid of prior strengths in rows, (*shape of total, steps): from 1024 times the rows downwards."""
    return _LARGEST * np.maximum(total, 1.0)[..., None] * 4.0 ** -np.arange(n_steps)


def _averaged(
    log_bayes: np.ndarray, mean: np.ndarray, variance: np.ndarray, strength: np.ndarray, total: np.ndarray
) -> Information:
    """Average the posteriors under every strength (the last axis), by prior × Bayes factor.

    The prior of s is uniform on the logarithmic grid, and decreases with s below one row.
    """
    log_prior = np.log(np.minimum(strength, 1.0))
    joint = log_prior + log_bayes
    visible = strength <= _VISIBLE * np.maximum(total, 1.0)[..., None]
    evidence = _log_sum(np.where(visible, joint, -np.inf)) - _log_sum(np.where(visible, log_prior, -np.inf))
    weight = np.exp(joint - _log_sum(joint)[..., None])
    center = (weight * mean).sum(axis=-1)
    total_variance = (weight * (variance + (mean - center[..., None]) ** 2)).sum(axis=-1)
    center = np.where(total > 0, center / LOG_2, np.nan)
    return Information(center, total_variance / LOG_2**2, evidence / LOG_2, np.full_like(center, np.inf))


def _log_sum(terms: np.ndarray) -> np.ndarray:
    """Return log Σ exp of the last axis."""
    largest = terms.max(axis=-1)
    return np.asarray(largest + np.log(np.exp(terms - largest[..., None]).sum(axis=-1)))


def _over_classes(weight: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and variance of Σ p(class) I(class) along axis 0, with the variance of the class probabilities."""
    total = weight.sum(axis=0)
    p = weight / np.where(total > 0, total, 1.0)
    center = (p * mean).sum(axis=0)
    within = (p**2 * variance).sum(axis=0)
    between = np.maximum((p * mean**2).sum(axis=0) - center**2, 0.0) / (total + 1)
    return center, within + between


def of_labels(table: np.ndarray) -> Information:
    """Return the information of two categorical columns, from their counts (classes, levels, levels).

    NaN if no row was counted. Given s, the joint probabilities of a class have a Dirichlet prior of strength s, with
    the product of the margins as mean. The posterior mean of the information is exact (digamma functions). Its variance
    is the leading term of Hutter and Zaffalon (2005) plus the variance from the second moment of a χ², which dominates
    without dependence.
    """
    table = table[table.sum(axis=(1, 2)) > 0]
    if not table.size or min(table.shape[1:]) < 2:
        return Information(np.where(len(table), 0.0, np.nan), *[np.zeros(())] * 3)
    rows = table.sum(axis=2)
    columns = table.sum(axis=1)
    weight = table.sum(axis=(1, 2))
    total = weight.sum()
    first, second = ((margin + 0.5) / (margin + 0.5).sum(axis=1, keepdims=True) for margin in (rows, columns))
    n_steps = int(np.ceil(np.log(_LARGEST * 16 * max(total, 1.0)) / np.log(4.0))) + 1  # down to 1/16 of a row
    strengths = _strengths(total, n_steps)
    step = max(1, _CHUNK_CELLS // table.size)
    parts = []
    for start in range(0, len(strengths), step):
        s = strengths[start : start + step]
        margins = s[:, None, None] * first, s[:, None, None] * second
        prior = margins[0][..., None] * second[:, None, :]
        log_bayes = (
            log_rising(prior, table).sum(axis=(2, 3))
            - log_rising(margins[0], rows).sum(axis=2)
            - log_rising(margins[1], columns).sum(axis=2)
            + log_rising(s[:, None], weight)
        )
        alpha = prior + table
        size = weight + s[:, None]
        over_rows = alpha.sum(axis=3)
        over_columns = alpha.sum(axis=2)
        mean = (
            (alpha * digamma(alpha + 1)).sum(axis=(2, 3))
            - (over_rows * digamma(over_rows + 1)).sum(axis=2)
            - (over_columns * digamma(over_columns + 1)).sum(axis=2)
        ) / size + digamma(size + 1)
        ratio = np.log(alpha) + np.log(size)[..., None, None]
        ratio -= np.log(over_rows)[..., None] + np.log(over_columns)[..., None, :]
        p = alpha / size[..., None, None]
        at_mean = (p * ratio).sum(axis=(2, 3))
        leading = (p * ratio**2).sum(axis=(2, 3)) - at_mean**2
        variance = np.maximum(leading, 0.0) / (size + 1) + np.maximum(mean - at_mean, 0.0) / size
        parts.append((log_bayes.sum(axis=1), *_over_classes(weight[:, None], mean.T, variance.T)))
    log_bayes, mean, variance = (np.concatenate(part) for part in zip(*parts, strict=True))
    return _averaged(log_bayes, mean, variance, strengths, total)


def of_explained(explained: np.ndarray, weight: np.ndarray, n_slopes: np.ndarray, tail: np.ndarray) -> Information:
    """Return the information −½ log₂(1 − η²) of pairs with a linearly explained number: arrays (classes, pairs).

    Under Zellner's g-prior (1986) of strength s on the slopes, the Bayes factor and the posterior moments of the
    signal-to-noise ratio f² = η² / (1 − η²) have closed forms.

    Parameters
    ----------
    explained : ndarray
        η², the proportion of the number's variance that is explained in each class.
    weight : ndarray
        The weight of the rows.
    n_slopes : ndarray
        The number of estimated slopes: 1 for a number, the levels less one for levels; 0 if a column is constant.
    tail : ndarray
        The kurtosis of the explaining variable, less 1, which determines the variance of its variance: 2 for numbers.
    """
    if explained.shape[1] > _CHUNK_PAIRS:
        bounds = np.arange(_CHUNK_PAIRS, explained.shape[1], _CHUNK_PAIRS)
        chunks = zip(*(np.split(part, bounds, axis=1) for part in (explained, weight, n_slopes, tail)), strict=True)
        return Information.joined(of_explained(*chunk) for chunk in chunks)
    n = np.where(weight > 0, weight, 1.0)
    slopes = np.minimum(n_slopes, np.maximum(weight - 1, 0.0))
    eta = np.where(slopes > 0, np.clip(explained, 0.0, 1 - 2.0**-52), 0.0)
    total = weight.sum(axis=0)
    strengths = _strengths(total, _STEPS)
    degrees = np.maximum(weight - 1, 1e-300)
    parts = []
    for s in strengths.T:
        gain = n / s
        shrinkage = n / (n + s)
        log_bayes = (degrees - slopes) / 2 * np.log1p(gain) - degrees / 2 * np.log1p(gain * (1 - eta))
        log_bayes = np.where(slopes > 0, log_bayes, 0.0).sum(axis=0)
        signal = shrinkage**2 * eta * degrees / (1 - eta + eta * s / (n + s)) / n
        mean = shrinkage * slopes / n + signal
        variance = 2 * shrinkage**2 * slopes / n**2 + 4 * shrinkage * signal / n
        variance += signal**2 * (2 / np.maximum(degrees, 1.0) + tail / np.maximum(n, 1.0))
        log_variance = np.log1p(variance / (1 + mean) ** 2)  # of a log-normal with these moments
        nats = np.maximum(0.5 * (np.log1p(mean) - 0.5 * log_variance), 0.0)
        parts.append((log_bayes, *_over_classes(weight, nats, log_variance / 4)))
    log_bayes, mean, variance = (np.stack(part, axis=-1) for part in zip(*parts, strict=True))
    return _averaged(log_bayes, mean, variance, strengths, total)

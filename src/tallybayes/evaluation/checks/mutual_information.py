"""Information between two columns given the class: its posterior mean and variance, and the evidence that there is any.

Plug-in information is biased upwards, badly where a table has many cells and few rows. Here the joint distribution is
shrunk towards independence by a prior worth s rows, and s is averaged over, by its evidence, on a grid of powers of 4:
a table that shows no dependence beyond chance is believed to be nearly independent, whatever its size.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import digamma, gammaincinv

from tallybayes.distributions.log_gamma import log_rising
from tallybayes.distributions.parameter_distribution import Interval, tail_probabilities

_LARGEST = 1024.0  # the strongest prior, in rows per row: all but independent
_VISIBLE = 4.0  # beyond this, dependence would not show in so many rows: left out of the evidence
_STEPS = 32  # down to 2⁻⁵² of the rows, beyond which the digits of η² would not show
_PIECE = 1 << 20  # cells at a time
_PAIRS = 1 << 15  # pairs at a time
LOG_2 = float(np.log(2.0))


class Information(NamedTuple):
    """What is believed about the information of some pairs, in bits; arrays of one shape.

    ``evidence`` is log₂ p(data | dependent) − log₂ p(data | independent given the class); ``most`` is what the
    information cannot exceed.
    """

    mean: np.ndarray
    variance: np.ndarray
    evidence: np.ndarray
    most: np.ndarray

    def interval(self, mass: float) -> Interval:
        """The equal-tailed credible interval, of the gamma distribution with this mean and variance."""
        known = (self.mean > 0) & (self.variance > 0)
        mean, variance = np.where(known, self.mean, 1.0), np.where(known, self.variance, 1.0)
        ends = (gammaincinv(mean**2 / variance, tail) * variance / mean for tail in tail_probabilities(mass))
        return Interval(*(np.minimum(np.where(known, end, self.mean), self.most) for end in ends))


def _strengths(total: np.ndarray, n_steps: int) -> np.ndarray:
    """The grid of prior strengths s in rows, (*shape of total, steps): from 1024 times the rows downwards."""
    return _LARGEST * np.maximum(total, 1.0)[..., None] * 4.0 ** -np.arange(n_steps)


def _averaged(
    log_bayes: np.ndarray, mean: np.ndarray, variance: np.ndarray, strength: np.ndarray, total: np.ndarray
) -> Information:
    """One belief from those under every strength (the last axis): even odds, falling with s below one row."""
    log_prior = np.log(np.minimum(strength, 1.0))
    joint = log_prior + log_bayes
    seen = strength <= _VISIBLE * np.maximum(total, 1.0)[..., None]
    evidence = _log_sum(np.where(seen, joint, -np.inf)) - _log_sum(np.where(seen, log_prior, -np.inf))
    weight = np.exp(joint - _log_sum(joint)[..., None])
    center = (weight * mean).sum(axis=-1)
    spread = (weight * (variance + (mean - center[..., None]) ** 2)).sum(axis=-1)
    return Information(center / LOG_2, spread / LOG_2**2, evidence / LOG_2, np.full_like(center, np.inf))


def _log_sum(terms: np.ndarray) -> np.ndarray:
    top = terms.max(axis=-1)
    return np.asarray(top + np.log(np.exp(terms - top[..., None]).sum(axis=-1)))


def _over_classes(weight: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Σ p(class) I(class) along axis 0: its mean, and its variance with that of the classes' shares."""
    total = weight.sum(axis=0)
    share = weight / np.where(total > 0, total, 1.0)
    center = (share * mean).sum(axis=0)
    spread = (share**2 * variance).sum(axis=0)
    between = np.maximum((share * mean**2).sum(axis=0) - center**2, 0.0) / (total + 1)
    return center, spread + between


def of_labels(table: np.ndarray) -> Information:
    """The information between two columns of labels, from their counts (classes, levels, levels).

    Given s, the joint probabilities of a class are Dirichlet about the product of its margins, worth s rows. The mean
    information is exact (digamma functions); its variance is the leading term of Hutter and Zaffalon (2005) and the
    variance that the second moment of a χ² adds where there is little dependence.
    """
    table = table[table.sum(axis=(1, 2)) > 0]
    if not table.size or min(table.shape[1:]) < 2:
        return Information(*(np.zeros(()) for _ in Information._fields))
    rows, columns, weight = table.sum(axis=2), table.sum(axis=1), table.sum(axis=(1, 2))
    total = weight.sum()
    first, second = ((margin + 0.5) / (margin + 0.5).sum(axis=1, keepdims=True) for margin in (rows, columns))
    n_steps = int(np.ceil(np.log(_LARGEST * 16 * max(total, 1.0)) / np.log(4.0))) + 1  # down to 1/16 of a row
    strengths = _strengths(total, n_steps)
    step = max(1, _PIECE // table.size)
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
        alpha, size = prior + table, weight + s[:, None]
        over_rows, over_columns = alpha.sum(axis=3), alpha.sum(axis=2)
        mean = (
            (alpha * digamma(alpha + 1)).sum(axis=(2, 3))
            - (over_rows * digamma(over_rows + 1)).sum(axis=2)
            - (over_columns * digamma(over_columns + 1)).sum(axis=2)
        ) / size + digamma(size + 1)
        ratio = np.log(alpha) + np.log(size)[..., None, None]
        ratio -= np.log(over_rows)[..., None] + np.log(over_columns)[..., None, :]
        share = alpha / size[..., None, None]
        at_mean = (share * ratio).sum(axis=(2, 3))
        lead = (share * ratio**2).sum(axis=(2, 3)) - at_mean**2
        variance = np.maximum(lead, 0.0) / (size + 1) + np.maximum(mean - at_mean, 0.0) / size
        parts.append((log_bayes.sum(axis=1), *_over_classes(weight[:, None], mean.T, variance.T)))
    log_bayes, center, spread = (np.concatenate(part) for part in zip(*parts, strict=True))
    return _averaged(log_bayes, center, spread, strengths, total)


def of_explained(explained: np.ndarray, weight: np.ndarray, n_slopes: np.ndarray, tail: np.ndarray) -> Information:
    """The information −½ log₂(1 − η²) of pairs in which a number is explained linearly: arrays (classes, pairs).

    Zellner's g-prior, worth s rows, on the slopes; the evidence and the posterior of the signal-to-noise ratio
    f² = η² / (1 − η²) are then known in closed form.

    Parameters
    ----------
    explained : ndarray
        The share η² of the number's variance that is explained in each class.
    weight : ndarray
        The rows behind it.
    n_slopes : ndarray
        What was estimated: 1 for a number, the levels less one for a label; 0 where there is nothing to explain.
    tail : ndarray
        The kurtosis of the explaining part, less 1, from which the variance of its own spread follows: 2 for numbers.
    """
    if explained.shape[1] > _PAIRS:
        cuts = np.arange(_PAIRS, explained.shape[1], _PAIRS)
        pieces = zip(*(np.split(part, cuts, axis=1) for part in (explained, weight, n_slopes, tail)), strict=True)
        return Information(*map(np.concatenate, zip(*(of_explained(*piece) for piece in pieces), strict=True)))
    n = np.where(weight > 0, weight, 1.0)
    slopes = np.minimum(n_slopes, np.maximum(weight - 1, 0.0))
    eta = np.where(slopes > 0, np.clip(explained, 0.0, 1 - 2.0**-52), 0.0)
    total = weight.sum(axis=0)
    strengths = _strengths(total, _STEPS)
    freedom = np.maximum(weight - 1, 1e-300)
    parts = []
    for s in strengths.T:
        gain = n / s
        kept = n / (n + s)
        log_bayes = (freedom - slopes) / 2 * np.log1p(gain) - freedom / 2 * np.log1p(gain * (1 - eta))
        log_bayes = np.where(slopes > 0, log_bayes, 0.0).sum(axis=0)
        signal = kept**2 * eta * freedom / (1 - eta + eta * s / (n + s)) / n
        mean = kept * slopes / n + signal
        variance = 2 * kept**2 * slopes / n**2 + 4 * kept * signal / n
        variance += signal**2 * (2 / np.maximum(freedom, 1.0) + tail / np.maximum(n, 1.0))
        width = np.log1p(variance / (1 + mean) ** 2)  # of a log-normal with these moments
        bits = np.maximum(0.5 * (np.log1p(mean) - 0.5 * width), 0.0)
        parts.append((log_bayes, *_over_classes(weight, bits, width / 4)))
    log_bayes, center, spread = (np.stack(part, axis=-1) for part in zip(*parts, strict=True))
    return _averaged(log_bayes, center, spread, strengths, total)

"""Measures: numbers with credible intervals, in closed form. Rows may have weights."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tallybayes.distributions.beta import Beta
from tallybayes.distributions.parameter_distribution import tail_probabilities


class MetricEstimate(NamedTuple):
    """A number found on some rows, and the credible interval of what it would be on ever more of them.

    Attributes
    ----------
    value : float
        NaN where there was nothing to count, such as the precision of a class that was never predicted. The interval is
        then the prior's.
    low, high : float
        The ends of the interval, which always contains the value.

    Examples
    --------
    >>> import tallybayes as tb
    >>> tb.MetricEstimate(0.9532, 0.9411, 0.9634)
    0.953 (0.941 to 0.963)
    """

    value: float
    low: float
    high: float

    def __repr__(self) -> str:
        value, low, high = self.shown()
        return f"{value} ({low} to {high})"

    def shown(self) -> tuple[str, str, str]:
        """The three numbers as text, with about two digits of the interval's width; a dash for NaN."""
        width = self.high - self.low
        known = math.isfinite(width) and width > 0
        n_digits = math.floor(1.7 - math.log10(width)) if known else 3
        n_digits = min(max(n_digits, 2 if width < 2 else 0), 6)
        texts = ("—" if math.isnan(number) else f"{number:.{n_digits}f}" for number in self)
        value, low, high = (text.removeprefix("-") if float(text.replace("—", "1")) == 0 else text for text in texts)
        return value, low, high


class MetricEstimates(NamedTuple):
    """Measures of several things at once, such as classes: three arrays of one shape."""

    value: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def at(self, place: int) -> MetricEstimate:
        """One of them."""
        value, low, high = (float(part[place]) for part in self)
        return MetricEstimate(value, low, high)


def effective_rows(total: Any, squares: Any) -> np.ndarray:
    """(Σw)² / Σw²: how many rows of equal weight say as much as these; 0 where there are none."""
    total, squares = np.asarray(total, dtype=float), np.asarray(squares, dtype=float)
    return np.divide(total**2, squares, out=np.zeros(total.shape), where=squares > 0)


def proportion_interval(part: np.ndarray, total: np.ndarray, squares: np.ndarray, mass: float) -> MetricEstimates:
    """Weighted shares, with the interval of a Beta(1, 1) prior that has seen the effective number of rows.

    The interval is equal-tailed, and widened to the value where all rows or none count.

    Parameters
    ----------
    part, total, squares : arrays of one shape
        The weight of the rows that count, of all rows, and the sum of all their squared weights.
    mass : float
    """
    total = np.asarray(total, dtype=float)
    value = np.divide(part, total, out=np.full(total.shape, np.nan), where=total > 0)
    n = effective_rows(total, squares)
    right = np.clip(np.where(total > 0, value, 0.0), 0.0, 1.0) * n
    return interval_containing(value, Beta(1 + right, 1 + (n - right)), mass)


def interval_containing(value: np.ndarray, belief: Beta, mass: float) -> MetricEstimates:
    """A belief's interval, widened to hold the value that was found."""
    low, high = belief.interval(mass)
    return MetricEstimates(np.asarray(value), np.fmin(low, value), np.fmax(high, value))


def moment_matched_interval(value: float, variance: float, mass: float) -> MetricEstimate:
    """The interval of a number from 0 to 1 that is known with this variance: that of a share of so many rows.

    So many, that the Beta posterior of the share, under a uniform prior, has the variance. None, and the prior's
    interval, where the value is NaN or the variance that of a guess.
    """
    if math.isnan(value) or variance >= 1 / 12:
        low, high = Beta(1, 1).interval(mass)
        return MetricEstimate(value, float(np.fmin(low, value)), float(np.fmax(high, value)))

    def excess(log_rows: float) -> float:
        n = math.exp(log_rows)
        share = (1 + n * value) / (2 + n)
        return share * (1 - share) / (n + 3) - variance

    from scipy.optimize import brentq

    n = math.exp(brentq(excess, -50.0, 50.0)) if excess(50.0) < 0 < excess(-50.0) else math.exp(50.0)
    return interval_containing(np.array([value]), Beta([1 + n * value], [1 + n * (1 - value)]), mass).at(0)


class LossPrior(NamedTuple):
    """What is known of a loss before any row: what a guess among all classes loses, and the range of a mean."""

    loss: float
    least: float
    most: float


def average(
    values: np.ndarray, weight: np.ndarray | None, mass: float, guess: LossPrior | None = None
) -> MetricEstimate:
    """The weighted mean of some numbers, with the interval of its Student t posterior.

    The prior knows nothing or, with a `guess`, is worth one row that has the guess's loss: losses are so skewed that
    without it a few good rows would be sure of too much. The degrees of freedom are the effective rows less one, the
    prior's included; where there is hardly more than one, the interval is all that is possible. Infinite numbers make
    the mean infinite; its interval starts where that of the finite ones does.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Finite, or +inf.
    weight : ndarray of shape (n,), or None
        All positive.
    mass : float
    guess : Guess, optional
    """
    least, most = (-math.inf, math.inf) if guess is None else (guess.least, guess.most)
    finite = np.isfinite(values)
    if not finite.all():
        rest = None if weight is None else weight[finite]
        low = average(values[finite], rest, mass, guess).low if finite.any() else least
        return MetricEstimate(math.inf, low, math.inf)
    if weight is None:
        n, value = float(len(values)), float(values.mean())
        scatter = float(((values - value) ** 2).sum())
    else:
        total = float(weight.sum())
        n, value = float(effective_rows(total, (weight**2).sum())), float((weight * values).sum()) / total
        scatter = n * float((weight * (values - value) ** 2).sum()) / total
    mean = value
    if guess is not None:
        mean = (n * value + guess.loss) / (n + 1)
        n, scatter = n + 1, scatter + n / (n + 1) * (value - guess.loss) ** 2
    if n < 1.5:
        return MetricEstimate(value, least, most)
    from scipy.special import stdtrit

    half = float(stdtrit(n - 1, tail_probabilities(mass)[1])) * math.sqrt(scatter / (n - 1) / n)
    return MetricEstimate(value, min(max(mean - half, least), value), max(min(mean + half, most), value))

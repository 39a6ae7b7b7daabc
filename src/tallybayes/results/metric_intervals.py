"""Metrics with credible intervals in closed form, also of weighted rows."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tallybayes.distributions.beta import Beta
from tallybayes.distributions.parameter_distribution import tail_probabilities


class MetricEstimate(NamedTuple):
    """A metric of some rows with a credible interval of its value on the population.

    Attributes
    ----------
    value : float
        NaN if the metric is undefined, such as the precision of a class that was never predicted. The interval is then
        that of the prior.
    low, high : float
        The ends of the interval, which always contains the value.

    Examples
    --------
    >>> from tallybayes.results import MetricEstimate
    >>> MetricEstimate(0.9532, 0.9411, 0.9634)
    0.953 (0.941 to 0.963)
    """

    value: float
    low: float
    high: float

    def __repr__(self) -> str:
        value, low, high = self.shown()
        return f"{value} ({low} to {high})"

    def shown(self) -> tuple[str, str, str]:
        """Return value, low and high as text, rounded to about two digits of the interval's width; a dash for NaN."""
        width = self.high - self.low
        known = math.isfinite(width) and width > 0
        n_digits = math.floor(1.7 - math.log10(width)) if known else 3
        n_digits = min(max(n_digits, 2 if width < 2 else 0), 6)
        texts = ("—" if math.isnan(number) else f"{number:.{n_digits}f}" for number in self)
        value, low, high = (text.removeprefix("-") if float(text.replace("—", "1")) == 0 else text for text in texts)
        return value, low, high

    def cells(self) -> tuple[str, str]:
        """Return the value and the interval as two cells of a table."""
        value, low, high = self.shown()
        return value, f"({low} to {high})"


UNDEFINED = MetricEstimate(math.nan, math.nan, math.nan)


class MetricEstimates(NamedTuple):
    """A metric of several groups or classes: three arrays of one shape."""

    value: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def at(self, index: int) -> MetricEstimate:
        """Return the estimate at an index."""
        value, low, high = (float(part[index]) for part in self)
        return MetricEstimate(value, low, high)


def effective_rows(total: np.ndarray | float, squares: np.ndarray | float) -> np.ndarray:
    """Return the effective sample size (Σw)² / Σw² (Kish 1965), from Σw and Σw²; 0 for no rows."""
    total = np.asarray(total, dtype=float)
    squares = np.asarray(squares, dtype=float)
    return np.divide(total**2, squares, out=np.zeros(total.shape), where=squares > 0)


def proportion_interval(part: np.ndarray, total: np.ndarray, squares: np.ndarray, mass: float) -> MetricEstimates:
    """Return weighted proportions with intervals of their Beta posteriors under a uniform prior.

    The posterior counts the effective number of rows. The interval is equal-tailed, and extended to the value if the
    proportion is 0 or 1.

    Parameters
    ----------
    part, total, squares : arrays of one shape
        The weight of the rows with the property, the weight of all rows, and the sum of their squared weights.
    mass : float
        The probability of the interval.
    """
    total = np.asarray(total, dtype=float)
    value = np.divide(part, total, out=np.full(total.shape, np.nan), where=total > 0)
    n = effective_rows(total, squares)
    right = np.clip(np.where(total > 0, value, 0.0), 0.0, 1.0) * n
    return interval_containing(value, Beta(1 + right, 1 + (n - right)), mass)


def interval_containing(value: np.ndarray, posterior: Beta, mass: float) -> MetricEstimates:
    """Return the interval of a posterior distribution, extended to contain the estimate."""
    low, high = posterior.interval(mass)
    return MetricEstimates(np.asarray(value), np.fmin(low, value), np.fmax(high, value))


def moment_matched_interval(value: float, variance: float, mass: float) -> MetricEstimate:
    """Return the interval of a metric between 0 and 1 from its variance, by a matched Beta distribution.

    The Beta distribution is the posterior of a proportion under a uniform prior; its number of rows is chosen so that
    its variance is the given one. If the value is NaN or the variance at least that of the prior (1/12), the interval
    is that of the prior.
    """
    if math.isnan(value) or variance >= 1 / 12:
        low, high = Beta(1, 1).interval(mass)
        return MetricEstimate(value, float(np.fmin(low, value)), float(np.fmax(high, value)))

    def excess(log_rows: float) -> float:
        """Return the variance with so many rows, less the given variance."""
        n = math.exp(log_rows)
        mean = (1 + n * value) / (2 + n)
        return mean * (1 - mean) / (n + 3) - variance

    from scipy.optimize import brentq

    n = math.exp(brentq(excess, -50.0, 50.0)) if excess(50.0) < 0 < excess(-50.0) else math.exp(50.0)
    return interval_containing(np.array([value]), Beta([1 + n * value], [1 + n * (1 - value)]), mass).at(0)


class LossPrior(NamedTuple):
    """Prior information on a loss: the loss of a guess among all classes, and the range of a mean loss."""

    loss: float
    least: float
    most: float


def average(
    values: np.ndarray, weight: np.ndarray | None, mass: float, guess: LossPrior | None = None
) -> MetricEstimate:
    """Return the weighted mean of some values with the interval of its Student t posterior.

    Without `guess` the prior is improper. With it, the prior counts as one row that has the loss of a guess: losses are
    skewed, so that the interval of a few good rows would be too short. The degrees of freedom are the effective number
    of rows less one, including the row of the prior. With less than 1.5 rows the interval is the range of the mean.
    Infinite values make the mean infinite; the interval then starts at the lower end for the finite values.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Finite, or +inf.
    weight : ndarray of shape (n,), or None
        All positive.
    mass : float
        The probability of the interval.
    guess : LossPrior, optional
        The prior of a loss.
    """
    least, most = (-math.inf, math.inf) if guess is None else (guess.least, guess.most)
    finite = np.isfinite(values)
    if not finite.all():
        finite_weight = None if weight is None else weight[finite]
        low = average(values[finite], finite_weight, mass, guess).low if finite.any() else least
        return MetricEstimate(math.inf, low, math.inf)
    if weight is None:
        n = float(len(values))
        value = float(values.mean())
        scatter = float(((values - value) ** 2).sum())
    else:
        total = float(weight.sum())
        n = float(effective_rows(total, (weight**2).sum()))
        value = float((weight * values).sum()) / total
        scatter = n * float((weight * (values - value) ** 2).sum()) / total
    mean = value
    if guess is not None:
        mean = (n * value + guess.loss) / (n + 1)
        scatter += n / (n + 1) * (value - guess.loss) ** 2
        n += 1
    if n < 1.5:
        return MetricEstimate(value, least, most)
    from scipy.special import stdtrit

    half = float(stdtrit(n - 1, tail_probabilities(mass)[1])) * math.sqrt(scatter / (n - 1) / n)
    return MetricEstimate(value, min(max(mean - half, least), value), max(min(mean + half, most), value))

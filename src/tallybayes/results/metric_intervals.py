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


_LEAST_VARIANCE = 1e-22  # smaller variances would need more rows than a Beta distribution can tell apart
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


class RowWeights(NamedTuple):
    """The total weight and the total squared weight of the rows of some groups: two arrays of one shape."""

    total: np.ndarray
    squares: np.ndarray

    @classmethod
    def by_code(cls, codes: np.ndarray, weight: np.ndarray, n: int) -> RowWeights:
        """Return the totals of the rows of every code below n."""
        return cls(np.bincount(codes, weight, minlength=n), np.bincount(codes, weight**2, minlength=n))

    @property
    def effective_rows(self) -> np.ndarray:
        """The effective sample size (Σw)² / Σw² (Kish 1965); 0 for no rows."""
        return np.divide(self.total**2, self.squares, out=np.zeros(np.shape(self.total)), where=self.squares > 0)

    def proportion(self, part: np.ndarray, mass: float) -> MetricEstimates:
        """Return weighted proportions with intervals of their Beta posteriors under a uniform prior.

        The posterior counts the effective number of rows. The interval is equal-tailed, and extended to the value if
        the proportion is 0 or 1.

        Parameters
        ----------
        part : ndarray
            The weight of the rows with the property.
        mass : float
            The probability of the interval.
        """
        value = np.divide(part, self.total, out=np.full(self.total.shape, np.nan), where=self.total > 0)
        n = self.effective_rows
        counted = np.clip(np.where(self.total > 0, value, 0.0), 0.0, 1.0) * n
        return interval_containing(value, Beta(1 + counted, 1 + (n - counted)), mass)


def proportion(has_property: np.ndarray, weight: np.ndarray, mass: float) -> MetricEstimate:
    """Return the proportion of the weight of some rows that have a property, with the interval of its posterior."""
    totals = RowWeights(np.array([weight.sum()]), np.array([(weight**2).sum()]))
    return totals.proportion(np.array([(weight * has_property).sum()]), mass).at(0)


def interval_containing(value: np.ndarray, posterior: Beta, mass: float) -> MetricEstimates:
    """Return the interval of a posterior distribution, extended to contain the estimate."""
    low, high = posterior.interval(mass)
    return MetricEstimates(np.asarray(value), np.fmin(low, value), np.fmax(high, value))


def moment_matched_interval(value: float, variance: float, mass: float) -> MetricEstimate:
    """Return the interval of a metric between 0 and 1 from its variance, by a matched Beta distribution.

    The Beta distribution is the posterior of a proportion under a uniform prior; its number of rows n is chosen so that
    its variance m(1 − m)/(n + 3), with the mean m = (1 + n·value)/(n + 2), is the given one: the largest root of a
    cubic. If the value is NaN or the variance at least that of the prior (1/12), the interval is that of the prior.
    """
    n = 0.0
    if not math.isnan(value) and variance < 1 / 12:
        v = max(variance, _LEAST_VARIANCE)
        n = max(root.real for root in np.roots([v, 7 * v - value * (1 - value), 16 * v - 1, 12 * v - 1]))
    part = 0.0 if math.isnan(value) else n * value
    return interval_containing(np.array([value]), Beta([1 + part], [1 + n - part]), mass).at(0)


class LossPrior(NamedTuple):
    """Prior information on a loss: the loss of a guess among all classes, and the range of a mean loss."""

    loss: float
    least: float
    most: float


def average(values: np.ndarray, weight: np.ndarray, mass: float, guess: LossPrior | None = None) -> MetricEstimate:
    """Return the weighted mean of some values with the interval of its Student t posterior.

    Without `guess` the prior is improper. With it, the prior counts as one row that has the loss of a guess: losses are
    skewed, so that the interval of a few good rows would be too short. The degrees of freedom are the effective number
    of rows less one, including the row of the prior. With less than 1.5 rows the interval is the range of the mean.
    Infinite values make the mean infinite; the interval then starts at the lower end for the finite values.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Finite, or +inf.
    weight : ndarray of shape (n,)
        All positive.
    mass : float
        The probability of the interval.
    guess : LossPrior, optional
        The prior of a loss.
    """
    least, most = (-math.inf, math.inf) if guess is None else (guess.least, guess.most)
    finite = np.isfinite(values)
    if not finite.all():
        low = average(values[finite], weight[finite], mass, guess).low if finite.any() else least
        return MetricEstimate(math.inf, low, math.inf)
    total = weight.sum()
    n = float(total**2 / (weight**2).sum())
    value = mean = float((weight * values).sum() / total)
    scatter = n * float((weight * (values - value) ** 2).sum() / total)
    if guess is not None:
        mean = (n * value + guess.loss) / (n + 1)
        scatter += n / (n + 1) * (value - guess.loss) ** 2
        n += 1
    if n < 1.5:
        return MetricEstimate(value, least, most)
    from scipy.special import stdtrit

    half = float(stdtrit(n - 1, tail_probabilities(mass)[1])) * math.sqrt(scatter / (n - 1) / n)
    return MetricEstimate(value, min(max(mean - half, least), value), max(min(mean + half, most), value))


def excess_loss(losses: np.ndarray, best: np.ndarray, weight: np.ndarray, mass: float) -> MetricEstimate:
    """Return the mean difference of the losses of the same rows by two models; 0 where both are infinite."""
    with np.errstate(invalid="ignore"):
        excess = losses - best
    return average(np.where(np.isnan(excess), 0.0, excess), weight, mass)

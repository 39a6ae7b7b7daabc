"""Predictive distributions of the targets of a regression, and the rows they are compared with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from tallybayes._utils.fitted import check_is_fitted
from tallybayes._utils.parameter_checks import check_count, random_generator
from tallybayes.data.encoding import numeric
from tallybayes.data.open_source import open_source
from tallybayes.distributions.log_gamma import log_rising
from tallybayes.distributions.parameter_distribution import Interval, tail_probabilities
from tallybayes.models.inputs.batching import joined_columns, query_batches
from tallybayes.models.inputs.features import is_name
from tallybayes.models.regression.regression_fit import named_targets, read_rows
from tallybayes.typing import Labels, RandomState, Rows, SampleWeights

if TYPE_CHECKING:
    from tallybayes.models.regression.linear_regression import LinearRegression


class TargetPredictive(NamedTuple):
    """Predictive distribution of each row's target: Student t, or normal if the degrees of freedom are infinite.

    `LinearRegression.predictive` returns it. Arrays have the shape of `LinearRegression.predict`.

    Examples
    --------
    >>> import tallybayes as tb
    >>> model = tb.LinearRegression(prior=1.0).fit([[0.0], [1.0], [2.0], [3.0]], [0.1, 0.9, 2.1, 2.9])
    >>> predictive = model.predictive([[1.5]])
    >>> predictive.mean().round(3), predictive.interval(0.5).low.round(3)
    (array([1.5]), array([1.127]))
    """

    location: np.ndarray
    scale: np.ndarray
    degrees_of_freedom: np.ndarray

    def mean(self) -> np.ndarray:
        """Return the expected targets."""
        return self.location

    def std(self) -> np.ndarray:
        """Return the standard deviations; infinite for up to two degrees of freedom."""
        usual = self.degrees_of_freedom > 2
        degrees = np.where(usual, self.degrees_of_freedom, 3.0)
        with np.errstate(invalid="ignore"):
            factor = np.where(np.isinf(degrees), 1.0, degrees / (degrees - 2))
        return np.where(usual, self.scale * np.sqrt(factor), np.inf)

    def interval(self, mass: float = 0.95) -> Interval:
        """Return equal-tailed intervals of probability `mass`."""
        return Interval(
            *(
                self.location + self.scale * _quantile(self.degrees_of_freedom, tail)
                for tail in tail_probabilities(mass)
            )
        )

    def cdf(self, y: npt.ArrayLike) -> np.ndarray:
        """Return the cumulative distribution function, P(target ≤ y)."""
        z = (np.asarray(y, dtype=float) - self.location) / self.scale
        return np.where(
            np.isinf(self.degrees_of_freedom),
            ndtr(z),
            stdtr(np.where(np.isinf(self.degrees_of_freedom), 1.0, self.degrees_of_freedom), z),
        )

    def log_prob(self, y: npt.ArrayLike) -> np.ndarray:
        """Return log p(y); 0 where y is missing."""
        y = np.asarray(y, dtype=float)
        with np.errstate(divide="ignore", invalid="ignore"):
            z = np.where(y == self.location, 0.0, (y - self.location) / self.scale)
            shape = np.where(np.isinf(self.degrees_of_freedom), 1.0, self.degrees_of_freedom / 2)
            student = (
                log_rising(shape, 0.5) - 0.5 * np.log(2 * np.pi * shape) - (shape + 0.5) * np.log1p(z**2 / (2 * shape))
            )
            log_density = np.where(
                np.isinf(self.degrees_of_freedom), -0.5 * (np.log(2 * np.pi) + z**2), student
            ) - np.log(self.scale)
        return np.where(np.isnan(y), 0.0, log_density)

    def sample(self, n: int, *, random_state: RandomState = None) -> np.ndarray:
        """Draw `n` targets for every row: (n, *rows)."""
        rng = random_generator(random_state)
        noise = rng.standard_normal((check_count("n", n, 0), *self.location.shape))
        shape = np.where(np.isinf(self.degrees_of_freedom), 1.0, self.degrees_of_freedom / 2)
        precision = np.where(np.isinf(self.degrees_of_freedom), 1.0, rng.standard_gamma(shape, noise.shape) / shape)
        return self.location + self.scale * noise / np.sqrt(precision)

    @classmethod
    def joined(cls, parts: list[TargetPredictive]) -> TargetPredictive:
        """Concatenate the predictive distributions of batches of rows."""
        return cls(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def _quantile(freedom: np.ndarray, tail: float) -> np.ndarray:
    """Return the quantile of a standard Student t; of the standard normal if the degrees of freedom are infinite."""
    return np.where(np.isinf(freedom), ndtri(tail), stdtrit(np.where(np.isinf(freedom), 1.0, freedom), tail))


class PredictionArrays(tuple[np.ndarray, ...]):
    """A tuple of arrays of predictions, which batches concatenate."""

    @classmethod
    def joined(cls, parts: list[PredictionArrays]) -> PredictionArrays:
        """Concatenate the predictions of batches of rows."""
        return cls(np.concatenate(part) for part in zip(*parts, strict=True))


class PredictedTargets(NamedTuple):
    """Predictive distributions of rows, their observed targets, (n,) or (n, targets), and their weights."""

    predictive: TargetPredictive
    targets: np.ndarray
    weight: Any

    def log_prob(self) -> np.ndarray:
        """Return log p(targets | inputs) of each row, (n,); a missing target adds 0."""
        logs = self.predictive.log_prob(self.targets)
        return logs if logs.ndim == 1 else logs.sum(axis=1)


def predict_targets(
    model: LinearRegression, X: Rows, y: Labels | None, sample_weight: SampleWeights = None
) -> PredictedTargets:
    """Return the predictive distributions of rows and their targets; a data source is read in batches."""
    check_is_fitted(model, "tally_")
    estimates = model._estimates
    design = estimates.design
    source = open_source(X)
    names = list(design.targets)
    if source is None:
        table, weight = read_rows(model, design, X, y, sample_weight)
        predictive = estimates.predictive(table)
    else:
        names = named_targets(y)
        requested = [*names, *([sample_weight] if is_name(sample_weight) else [])]
        batches = [(model.predictive(rows), part) for rows, part in query_batches(model, source, requested, "scoring")]
        predictive = TargetPredictive.joined([part for part, _ in batches])
        table = joined_columns([part for _, part in batches])
        weight = np.asarray(table.column(sample_weight)) if is_name(sample_weight) else None
    targets = [np.asarray(numeric(table.column(name), "y"), dtype=float) for name in names]
    return PredictedTargets(predictive, design.shape(targets), weight)

"""Temperature scaling (Guo et al. 2017), with contamination by the class frequencies for robustness to outliers."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import log_expit, logit

from tallybayes.data.sampling import sampled_rows
from tallybayes.estimation.scoring.bayes_rule import apply_bayes_rule
from tallybayes.kernels.temperature import EIGHT, temperature_sums

LOG_ODDS = 700.0  # the maximum: exp of a larger number overflows
_LOG_INVERSE_TEMPERATURES = (0.7, 0.0, -0.7, -1.4, -2.1, -3.5)  # grid of initial values
_CONTAMINATIONS = (0.002, 0.02, 0.1)  # grid of initial values
INITIAL_ROWS = 1000  # rows from which the initial values are found
_TOL_STEP = 1e-3  # a Newton step below this is the last: the next one would be of the order of its square
_PRIOR_CONTAMINATED = 0.2
_PRIOR_CLEAN = 50.0  # pseudo-counts of rows that are contaminated, and that are not


class TemperatureScaling(NamedTuple):
    """p = (1 − contamination) · p^inverse_temperature / Z + contamination · base_rates."""

    inverse_temperature: float
    contamination: float
    base_rates: np.ndarray


def apply_temperature(log_proba: np.ndarray, inverse_temperature: float) -> np.ndarray:
    """Return log probabilities times `inverse_temperature`, normalized: (n, classes)."""
    return apply_bayes_rule(log_proba * inverse_temperature, np.zeros(log_proba.shape[1])).log_proba


def mix_base_rates(log_proba: np.ndarray, contamination: float, base_rates: np.ndarray) -> np.ndarray:
    """Return the logarithm of the mixture (1 − contamination) · p + contamination · base_rates."""
    if not contamination:
        return log_proba
    return np.logaddexp(np.log1p(-contamination) + log_proba, np.log(contamination) + np.log(base_rates))


def calibrated_proba(log_proba: np.ndarray, scaling: TemperatureScaling) -> np.ndarray:
    """Return calibrated probabilities of shape (n, classes), from log probabilities."""
    score = _relative_to_best(log_proba)
    score *= scaling.inverse_temperature
    np.exp(score, out=score)
    score *= (1 - scaling.contamination) / score.sum(axis=0)
    score += scaling.contamination * scaling.base_rates[:, None]
    return score.T


def log_proba_of_true_class(log_proba: np.ndarray, codes: np.ndarray, scaling: TemperatureScaling) -> np.ndarray:
    """Return the calibrated log probability of the true class of every row, of shape (n,)."""
    score = _relative_to_best(log_proba)
    score *= scaling.inverse_temperature
    true_score = score[codes, np.arange(len(codes))]
    true_score -= np.log(np.exp(score, out=score).sum(axis=0))
    return (
        np.logaddexp(
            np.log1p(-scaling.contamination) + true_score, np.log(scaling.contamination * scaling.base_rates[codes])
        )
        if scaling.contamination
        else true_score
    )


def _relative_to_best(log_proba: np.ndarray, more: int = 0) -> np.ndarray:
    """Return log probabilities minus the row maximum, transposed and padded with zeros: (classes, n + more)."""
    n, n_classes = log_proba.shape
    transposed = np.zeros((n_classes, n + more))
    transposed[:, :n] = log_proba.T
    transposed -= transposed.max(axis=0)
    return transposed


def fit_temperature_scaling(
    log_proba: np.ndarray,
    codes: np.ndarray,
    weight: np.ndarray | None = None,
    start: TemperatureScaling | None = None,
    tol: float = _TOL_STEP,
) -> TemperatureScaling:
    """Return the MAP estimates of temperature and contamination, by Newton's method from the best point of a grid.

    A row whose true class is very improbable is explained by contamination, the mixture with the class frequencies, so
    it has little influence on the temperature. The prior of log T is N(0, 1): without it, T would be zero if all
    predictions are correct. The prior of the contamination is Beta(1.2, 51), with a mean of about half a percent.
    `start` is an initial estimate, such as one from a subset of the rows. Iteration ends after a step below `tol`.
    """
    weights = np.ones(len(codes)) if weight is None else weight
    class_weights = np.bincount(codes, weights, minlength=log_proba.shape[1]) + 1.0
    base_rates = class_weights / class_weights.sum()
    rows = _CalibrationRows.of(log_proba, codes, base_rates, weights)
    if start is not None:
        point = _newton_maximize((math.log(start.inverse_temperature), float(logit(start.contamination))), rows, tol)
    else:
        subset = sampled_rows(len(codes), INITIAL_ROWS)
        subset_rows = (
            rows
            if len(subset) == len(codes)
            else _CalibrationRows.of(log_proba[subset], codes[subset], base_rates, weights[subset])
        )
        point = _newton_maximize(_best_grid_point(subset_rows), subset_rows, tol)
        point = point if subset_rows is rows else _newton_maximize(point, rows, tol)  # most iterations use the subset
    return TemperatureScaling(math.exp(point[0]), _expit(point[1]), base_rates)


Point = tuple[float, float]  # log(1/T) and the log-odds of the contamination


def _best_grid_point(rows: _CalibrationRows) -> Point:
    """Return the point of the grid with the highest log posterior."""
    odds = logit(np.array(_CONTAMINATIONS))
    best = -np.inf
    best_point = (0.0, 0.0)
    for log_inverse_temperature in _LOG_INVERSE_TEMPERATURES:
        power = np.exp(np.exp(log_inverse_temperature) * rows.score)
        true_proba = np.exp(np.exp(log_inverse_temperature) * rows.truth) / power.sum(axis=0)
        log_true_proba = np.log(true_proba + np.array(_CONTAMINATIONS)[:, None] * (rows.base_rates - true_proba))
        prior = (
            -0.5 * log_inverse_temperature**2 + _PRIOR_CONTAMINATED * log_expit(odds) + _PRIOR_CLEAN * log_expit(-odds)
        )
        log_posterior = log_true_proba @ rows.weights + prior
        if log_posterior.max() > best:
            best = log_posterior.max()
            best_point = (log_inverse_temperature, float(odds[log_posterior.argmax()]))
    return best_point


def _expit(odds: float) -> float:
    return 1 / (1 + math.exp(-odds)) if odds > 0 else math.exp(odds) / (1 + math.exp(odds))


def _newton_maximize(point: Point, rows: _CalibrationRows, tol: float) -> Point:
    """Return the maximum of the log posterior by Newton's method with step halving."""
    current = _CalibrationObjective(point, rows)
    for _ in range(100):
        step = _newton_step(*current.derivatives())
        size = max(map(abs, step))
        shrink = min(1.0, 2.0 / max(size, 1e-300))
        while size * shrink > tol:
            candidate = _CalibrationObjective((point[0] + shrink * step[0], point[1] + shrink * step[1]), rows)
            if candidate.objective >= current.objective:
                break
            shrink /= 4
        else:
            return point[0] + shrink * step[0], point[1] + shrink * step[1]
        point = candidate.at
        current = candidate
    return point


def _newton_step(gradient: Point, curvature: tuple[float, float, float]) -> Point:
    """Return |C|⁻¹ · gradient for C = [[a, b], [b, c]], |C| with absolute eigenvalues: always an ascent direction."""
    a, b, c = curvature
    mean = (a + c) / 2
    half = (a - c) / 2
    spread = math.hypot(half, b)  # the eigenvalues are mean ± spread
    first_inverse, second_inverse = (1 / max(abs(value), 1e-9) for value in (mean + spread, mean - spread))
    mean_inverse = (first_inverse + second_inverse) / 2
    slope_of_inverse = (first_inverse - second_inverse) / 2 / max(spread, 1e-300)
    return (
        mean_inverse * gradient[0] + slope_of_inverse * (half * gradient[0] + b * gradient[1]),
        mean_inverse * gradient[1] + slope_of_inverse * (b * gradient[0] - half * gradient[1]),
    )


class _CalibrationRows(NamedTuple):
    """Rows for the kernel: log p of every class and of the true class, its base rate, and the weight; padded."""

    score: np.ndarray  # (classes, n)
    truth: np.ndarray
    base_rates: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(
        cls, log_proba: np.ndarray, codes: np.ndarray, base_rates: np.ndarray, weights: np.ndarray
    ) -> _CalibrationRows:
        """Return the rows padded to a multiple of eight."""
        n = len(codes)
        more = -len(codes) % EIGHT
        score = _relative_to_best(log_proba, more)
        np.maximum(score, -LOG_ODDS, out=score)  # exp of this is 0
        truth = np.zeros(n + more)
        true_base_rate = np.ones(n + more)
        weight = np.zeros(n + more)
        truth[:n], true_base_rate[:n], weight[:n] = score[codes, np.arange(n)], base_rates[codes], weights
        return cls(score, truth, true_base_rate, weight)


class _CalibrationObjective:
    """The log posterior at a point (log(1/T), log-odds of the contamination), and its derivatives."""

    def __init__(self, point: Point, rows: _CalibrationRows) -> None:
        self.at = point
        self.contamination = _expit(point[1])
        self.sums = temperature_sums(*rows, math.exp(point[0]), self.contamination).tolist()
        log_contamination = min(point[1], 0.0) - math.log1p(math.exp(-abs(point[1])))
        prior = (
            -0.5 * point[0] ** 2
            + _PRIOR_CONTAMINATED * log_contamination
            + _PRIOR_CLEAN * (log_contamination - point[1])
        )
        self.objective = self.sums[0] + prior  # the log posterior

    def derivatives(self) -> tuple[Point, tuple[float, float, float]]:
        """Return the gradient, and minus the second derivatives (first twice, mixed, second twice)."""
        (_, lean, doubted, bend, both, torn), doubt = self.sums, self.contamination
        doubts = torn - (_PRIOR_CONTAMINATED + _PRIOR_CLEAN) * doubt * (1 - doubt)
        return (lean - self.at[0], doubted + _PRIOR_CONTAMINATED * (1 - doubt) - _PRIOR_CLEAN * doubt), (
            1 - bend,
            both,
            -doubts,
        )

"""Tempering: probabilities to a power, and a share of doubt, fitted so that a few absurd rows do not bend them."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import log_expit, logit

from tallybayes.data.sampling import sampled_rows
from tallybayes.estimation.scoring.bayes_rule import apply_bayes_rule
from tallybayes.kernels.temperature import EIGHT, temperature_sums

LOG_ODDS = 700.0  # the largest there are: exp of more is no float
_SHARPNESS = (0.7, 0.0, -0.7, -1.4, -2.1, -3.5)  # to start from, as logarithms
_DOUBTS = (0.002, 0.02, 0.1)
SOME = 1000  # rows from which a start is found
_CLOSE = 1e-3  # a step below this is the last: the next one would be its square, and change no digit that is shown
_DOUBTED, _TRUSTED = 0.2, 50.0  # rows that are in doubt beforehand, and that are not


class TemperatureScaling(NamedTuple):
    """p = (1 − doubt) · p^sharpness / Z + doubt · base."""

    inverse_temperature: float
    contamination: float
    base_rates: np.ndarray


def apply_temperature(log_proba: np.ndarray, sharpness: float) -> np.ndarray:
    """Probabilities to the power of `sharpness`, made to sum to 1."""
    return apply_bayes_rule(log_proba * sharpness, np.zeros(log_proba.shape[1])).log_proba


def mix_base_rates(log_proba: np.ndarray, doubt: float, base: np.ndarray) -> np.ndarray:
    """Probabilities of which a share is given up for those of `base`."""
    if not doubt:
        return log_proba
    return np.logaddexp(np.log1p(-doubt) + log_proba, np.log(doubt) + np.log(base))


def calibrated_proba(log_proba: np.ndarray, found: TemperatureScaling) -> np.ndarray:
    """Probabilities as `tempered` and `doubted` would have them, from their logarithms: (n, classes)."""
    score = _below_the_best(log_proba)
    score *= found.inverse_temperature
    np.exp(score, out=score)
    score *= (1 - found.contamination) / score.sum(axis=0)
    score += found.contamination * found.base_rates[:, None]
    return score.T


def log_proba_of_true_class(log_proba: np.ndarray, codes: np.ndarray, found: TemperatureScaling) -> np.ndarray:
    """log p of the true class of every row, as `tempered` and `doubted` would have it: (n,)."""
    score = _below_the_best(log_proba)
    score *= found.inverse_temperature
    told = score[codes, np.arange(len(codes))]
    told -= np.log(np.exp(score, out=score).sum(axis=0))
    return (
        np.logaddexp(np.log1p(-found.contamination) + told, np.log(found.contamination * found.base_rates[codes]))
        if found.contamination
        else told
    )


def _below_the_best(log_proba: np.ndarray, more: int = 0) -> np.ndarray:
    """Log probabilities less the largest of every row, (classes, n + more): NumPy is quick a class at a time."""
    n, n_classes = log_proba.shape
    turned = np.zeros((n_classes, n + more))
    turned[:, :n] = log_proba.T
    turned -= turned.max(axis=0)
    return turned


def fit_temperature_scaling(
    log_proba: np.ndarray,
    codes: np.ndarray,
    weight: np.ndarray | None = None,
    start: TemperatureScaling | None = None,
    close: float = _CLOSE,
) -> TemperatureScaling:
    """The sharpness and the doubt of the highest posterior: Newton's steps from the best of a grid.

    A row that the model finds absurd is put down to doubt, in which classes have their shares, and does not bend the
    sharpness. The prior is log T ~ N(0, 1), worth hardly a row, or rows that are all right would make T zero. Doubt has
    a Beta(1.2, 51) on top: some half of a per cent, as probabilities can be made flatter by either. `start` is what
    some of the rows have said; a step below `close` is the last.
    """
    weights = np.ones(len(codes)) if weight is None else weight
    shares = np.bincount(codes, weights, minlength=log_proba.shape[1]) + 1.0
    base = shares / shares.sum()
    rows = _CalibrationRows.of(log_proba, codes, base, weights)
    if start is not None:
        at = _climbed((math.log(start.inverse_temperature), float(logit(start.contamination))), rows, close)
    else:
        part = sampled_rows(len(codes), SOME)
        some = (
            rows if len(part) == len(codes) else _CalibrationRows.of(log_proba[part], codes[part], base, weights[part])
        )
        at = _climbed(_start(some), some, close)
        at = at if some is rows else _climbed(at, rows, close)  # most steps are taken with some rows
    return TemperatureScaling(math.exp(at[0]), _expit(at[1]), base)


Place = tuple[float, float]  # log(1/T), and the log-odds of doubt


def _start(rows: _CalibrationRows) -> Place:
    """The place of a grid at which the log posterior is highest."""
    odds = logit(np.array(_DOUBTS))
    best, found = -np.inf, (0.0, 0.0)
    for sharpness in _SHARPNESS:
        power = np.exp(np.exp(sharpness) * rows.score)
        told = np.exp(np.exp(sharpness) * rows.truth) / power.sum(axis=0)
        log_told = np.log(told + np.array(_DOUBTS)[:, None] * (rows.base_rates - told))
        prior = -0.5 * sharpness**2 + _DOUBTED * log_expit(odds) + _TRUSTED * log_expit(-odds)
        heights = log_told @ rows.weights + prior
        if heights.max() > best:
            best, found = heights.max(), (sharpness, float(odds[heights.argmax()]))
    return found


def _expit(odds: float) -> float:
    return 1 / (1 + math.exp(-odds)) if odds > 0 else math.exp(odds) / (1 + math.exp(odds))


def _climbed(at: Place, rows: _CalibrationRows, close: float) -> Place:
    """The top that Newton's steps lead to."""
    found = _CalibrationObjective(at, rows)
    for _ in range(100):
        step = _uphill(*found.derivatives())
        size = max(map(abs, step))
        shrink = min(1.0, 2.0 / max(size, 1e-300))
        while size * shrink > close:
            higher = _CalibrationObjective((at[0] + shrink * step[0], at[1] + shrink * step[1]), rows)
            if higher.objective >= found.objective:
                break
            shrink /= 4
        else:
            return at[0] + shrink * step[0], at[1] + shrink * step[1]
        at, found = higher.at, higher
    return at


def _uphill(slope: Place, curve: tuple[float, float, float]) -> Place:
    """|C|⁻¹ slope, of C = [[a, b], [b, c]]: Newton's step, uphill where it is no top either."""
    a, b, c = curve
    middle, half = (a + c) / 2, (a - c) / 2
    spread = math.hypot(half, b)  # the eigenvalues are the middle ± this
    first, second = (1 / max(abs(value), 1e-9) for value in (middle + spread, middle - spread))
    both, apart = (first + second) / 2, (first - second) / 2 / max(spread, 1e-300)
    return (
        both * slope[0] + apart * (half * slope[0] + b * slope[1]),
        both * slope[1] + apart * (b * slope[0] - half * slope[1]),
    )


class _CalibrationRows(NamedTuple):
    """Rows to fit to: log p of every class and of the true one, its share, and the weight; others of none fill up."""

    score: np.ndarray  # (classes, n)
    truth: np.ndarray
    base_rates: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(cls, log_proba: np.ndarray, codes: np.ndarray, base: np.ndarray, weights: np.ndarray) -> _CalibrationRows:
        """Rows as the kernel reads them."""
        n, more = len(codes), -len(codes) % EIGHT
        score = _below_the_best(log_proba, more)
        np.maximum(score, -LOG_ODDS, out=score)  # what is impossible adds 0
        truth, share, weight = np.zeros(n + more), np.ones(n + more), np.zeros(n + more)
        truth[:n], share[:n], weight[:n] = score[codes, np.arange(n)], base[codes], weights
        return cls(score, truth, share, weight)


class _CalibrationObjective:
    """How probable the classes of rows are at log(1/T) and the log-odds of doubt."""

    def __init__(self, at: Place, rows: _CalibrationRows) -> None:
        self.at, self.contamination = at, _expit(at[1])
        self.sums = temperature_sums(*rows, math.exp(at[0]), self.contamination).tolist()
        doubted = min(at[1], 0.0) - math.log1p(math.exp(-abs(at[1])))  # its logarithm
        prior = -0.5 * at[0] ** 2 + _DOUBTED * doubted + _TRUSTED * (doubted - at[1])
        self.objective = self.sums[0] + prior  # the log posterior

    def derivatives(self) -> tuple[Place, tuple[float, float, float]]:
        """The slope of the objective, and minus its curvature: by the first, by both, by the second."""
        (_, lean, doubted, bend, both, torn), doubt = self.sums, self.contamination
        doubts = torn - (_DOUBTED + _TRUSTED) * doubt * (1 - doubt)
        return (lean - self.at[0], doubted + _DOUBTED * (1 - doubt) - _TRUSTED * doubt), (1 - bend, both, -doubts)

"""Tempering: probabilities to a power, and a share of doubt, fitted so that a few absurd rows do not bend them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit, log_expit, logit

from tallybayes.kernels.tempering import EIGHT, sum_tempered
from tallybayes.models.fitted.bayes_rule import normalised

LOG_ODDS = 700.0  # the largest there are: exp of more is no float
_SHARPNESS = (0.7, 0.0, -0.7, -1.4, -2.1, -3.5)  # to start from, as logarithms
_DOUBTS = (0.002, 0.02, 0.1)
_SOME = 1000  # rows from which a start is found
_CLOSE = 1e-3  # a step below this is the last: the next one would be its square, and change no digit that is shown
_DOUBTED, _TRUSTED = 0.2, 50.0  # rows that are in doubt beforehand, and that are not


class Tempering(NamedTuple):
    """p = (1 − doubt) · p^sharpness / Z + doubt · base."""

    sharpness: float
    doubt: float
    base: np.ndarray


def tempered(log_proba: np.ndarray, sharpness: float) -> np.ndarray:
    """Probabilities to the power of `sharpness`, made to sum to 1."""
    return normalised(log_proba * sharpness, np.zeros(log_proba.shape[1])).log_proba


def doubted(log_proba: np.ndarray, doubt: float, base: np.ndarray) -> np.ndarray:
    """Probabilities of which a share is given up for those of `base`."""
    if not doubt:
        return log_proba
    return np.logaddexp(np.log1p(-doubt) + log_proba, np.log(doubt) + np.log(base))


def mended(log_proba: np.ndarray, found: Tempering) -> np.ndarray:
    """Probabilities as `tempered` and `doubted` would have them, from their logarithms: (n, classes)."""
    score = log_proba - log_proba.max(axis=1, keepdims=True)
    score *= found.sharpness
    np.exp(score, out=score)
    score *= ((1 - found.doubt) / score.sum(axis=1))[:, None]
    score += found.doubt * found.base
    return score


def log_told(log_proba: np.ndarray, codes: np.ndarray, found: Tempering) -> np.ndarray:
    """log p of the true class of every row, as `tempered` and `doubted` would have it: (n,)."""
    score = log_proba - log_proba.max(axis=1, keepdims=True)
    truth = found.sharpness * score[np.arange(len(codes)), codes]
    score *= found.sharpness
    told = truth - np.log(np.exp(score, out=score).sum(axis=1))
    return np.logaddexp(np.log1p(-found.doubt) + told, np.log(found.doubt * found.base[codes])) if found.doubt else told


def fit_tempering(
    log_proba: np.ndarray,
    codes: np.ndarray,
    weight: np.ndarray | None = None,
    start: Tempering | None = None,
    close: float = _CLOSE,
) -> Tempering:
    """The sharpness and the doubt of the highest posterior: Newton's steps from the best of a grid.

    A row that the model finds absurd is put down to doubt, in which classes have their shares, and does not bend the
    sharpness. The prior is log T ~ N(0, 1), worth hardly a row, or rows that are all right would make T zero. Doubt has
    a Beta(1.2, 51) on top: some half of a per cent, as probabilities can be made flatter by either. `start` is what
    some of the rows have said; a step below `close` is the last.
    """
    weights = np.ones(len(codes)) if weight is None else weight
    shares = np.bincount(codes, weights, minlength=log_proba.shape[1]) + 1.0
    base = shares / shares.sum()
    score = np.maximum(log_proba - log_proba.max(axis=1, keepdims=True), -LOG_ODDS)  # what is impossible adds 0
    parts = score, score[np.arange(len(codes)), codes], base[codes], weights
    rows = _Judged.of(*parts)
    if start is not None:
        at = _climbed(np.array([np.log(start.sharpness), logit(start.doubt)]), rows, close)
    else:
        step = thinning(len(codes))
        some = rows if step == 1 else _Judged.of(*(part[::step] for part in parts))
        at = _climbed(_start(some), some, close)
        at = at if some is rows else _climbed(at, rows, close)  # most steps are taken with some rows
    return Tempering(float(np.exp(at[0])), float(expit(at[1])), base)


def thinning(n_rows: int) -> int:
    """Of how many rows one is enough to come close."""
    return max(1, n_rows // _SOME)


def _start(rows: _Judged) -> np.ndarray:
    """The place of a grid at which the log posterior is highest."""
    odds = logit(np.array(_DOUBTS))
    best, found = -np.inf, np.zeros(2)
    for sharpness in _SHARPNESS:
        power = np.exp(np.exp(sharpness) * rows.score)
        told = np.exp(np.exp(sharpness) * rows.truth) / power.sum(axis=0)
        log_told = np.log(told + np.array(_DOUBTS)[:, None] * (rows.base - told))
        heights = log_told @ rows.weights + _log_prior(sharpness, odds)
        if heights.max() > best:
            best, found = heights.max(), np.array([sharpness, odds[heights.argmax()]])
    return found


def _log_prior(sharpness: float, odds: np.ndarray) -> np.ndarray:
    """The log prior of log(1/T) and of the log-odds of doubt."""
    return np.asarray(-0.5 * sharpness**2 + _DOUBTED * log_expit(odds) + _TRUSTED * log_expit(-odds))


def _climbed(at: np.ndarray, rows: _Judged, close: float) -> np.ndarray:
    """The top that Newton's steps lead to."""
    found = _Told(at, rows)
    for _ in range(100):
        slope, curve = found.derivatives()
        values, vectors = np.linalg.eigh(curve)
        step = vectors @ ((vectors.T @ slope) / np.maximum(np.abs(values), 1e-9))  # uphill, where it is no top either
        step *= min(1.0, 2.0 / np.abs(step).max(initial=1e-300))
        while np.abs(step).max() > close:
            higher = _Told(at + step, rows)
            if higher.objective >= found.objective:
                break
            step /= 4
        else:
            return at + step
        at, found = at + step, higher
    return at


class _Judged(NamedTuple):
    """Rows to fit to: log p of every class and of the true one, its share, and the weight; others of none fill up."""

    score: np.ndarray  # (classes, n)
    truth: np.ndarray
    base: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(cls, score: np.ndarray, truth: np.ndarray, base: np.ndarray, weights: np.ndarray) -> _Judged:
        """Rows as the kernel reads them."""
        n, more = len(truth), -len(truth) % EIGHT
        turned = np.zeros((score.shape[1], n + more))
        turned[:, :n] = score.T
        ends = [np.concatenate([part, np.full(more, end)]) for part, end in ((truth, 0.0), (base, 1.0), (weights, 0.0))]
        return cls(turned, *ends)


class _Told:
    """How probable the classes of rows are at log(1/T) and the log-odds of doubt."""

    def __init__(self, at: np.ndarray, rows: _Judged) -> None:
        self.at, self.doubt = at, float(expit(at[1]))
        self.sums = sum_tempered(*rows, float(np.exp(at[0])), self.doubt).tolist()
        self.objective = float(self.sums[0] + _log_prior(at[0], at[1]))  # the log posterior

    def derivatives(self) -> tuple[np.ndarray, np.ndarray]:
        """The slope of the objective, and minus its curvature."""
        (_, lean, doubted, bend, both, torn), doubt = self.sums, self.doubt
        slope = [lean - self.at[0], doubted + _DOUBTED * (1 - doubt) - _TRUSTED * doubt]
        doubts = torn - (_DOUBTED + _TRUSTED) * doubt * (1 - doubt)
        return np.array(slope), np.array([[1 - bend, both], [both, -doubts]])

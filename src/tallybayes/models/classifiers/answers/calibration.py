"""Calibration: predicted probabilities mended by how often they came true on rows left out."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from tallybayes.errors import DataError, FileError
from tallybayes.store import refuse_rest

METHODS = ("temperature", "isotonic")
_LOG_ODDS = 700.0  # the largest there are: exp of more is no float


class Calibration(NamedTuple):
    """How predicted probabilities are mended, what the model had counted then, and what it did for the log-loss.

    Attributes
    ----------
    method : {"temperature", "isotonic"}
    weight : float
        The rows the model had counted.
    before, after : float
        The log-loss of the rows left out, in nats, before and after. For ``"isotonic"`` the second flatters: the steps
        were fitted to these rows.
    temperature : float
        p ∝ p^(1/T); 1 for ``"isotonic"``.
    log_odds, values : lists of ndarray, one for every class
        The steps of ``"isotonic"``: the calibrated probability of each class against the rest, at some log-odds.
    """

    method: str
    weight: float
    before: float
    after: float
    temperature: float = 1.0
    log_odds: tuple[np.ndarray, ...] = ()
    values: tuple[np.ndarray, ...] = ()

    def __repr__(self) -> str:
        how = f", temperature {self.temperature:.4g}" if self.method == "temperature" else ""
        return f"Calibration({self.method!r}{how}: log-loss {self.before:.4g} to {self.after:.4g} on rows left out)"

    def apply(self, log_proba: np.ndarray) -> np.ndarray:
        """log p(class | row), mended."""
        if self.method == "temperature":
            return tempered(log_proba, 1 / self.temperature)
        return stepped(log_proba, self.log_odds, self.values)

    def to_parts(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Numbers and arrays for a file."""
        state = {name: getattr(self, name) for name in ("method", "weight", "before", "after", "temperature")}
        arrays = {f"calibration/log_odds/{k}": part for k, part in enumerate(self.log_odds)}
        return state, arrays | {f"calibration/values/{k}": part for k, part in enumerate(self.values)}

    @classmethod
    def from_parts(cls, state: dict[str, Any], arrays: dict[str, np.ndarray], n_classes: int) -> Calibration:
        """What `to_parts` gave, checked: a file may come from anyone."""
        method = str(state.pop("method"))
        found = cls(
            method,
            **{name: float(state.pop(name)) for name in ("weight", "before", "after", "temperature")},
            log_odds=tuple(arrays.pop(name) for name in _names("log_odds", arrays)),
            values=tuple(arrays.pop(name) for name in _names("values", arrays)),
        )
        refuse_rest("the file's calibration", state)
        n_steps = n_classes if found.method == "isotonic" else 0
        good = found.method in METHODS and 0 < found.temperature < np.inf and 0 <= found.weight < np.inf
        good &= len(found.log_odds) == len(found.values) == n_steps
        if not good or not all(_is_rising(*steps) for steps in zip(found.log_odds, found.values, strict=True)):
            raise FileError("the file's calibration is none; expected a temperature, or rising steps for every class.")
        return found


def _names(what: str, arrays: dict[str, np.ndarray]) -> list[str]:
    names = [name for name in arrays if name.startswith(f"calibration/{what}/")]
    return [f"calibration/{what}/{k}" for k in range(len(names)) if f"calibration/{what}/{k}" in names]


def _is_rising(log_odds: np.ndarray, values: np.ndarray) -> bool:
    if log_odds.dtype != np.float64 or values.dtype != np.float64:
        return False
    if log_odds.ndim != 1 or log_odds.shape != values.shape or not len(values) or not np.isfinite(log_odds).all():
        return False
    return bool(
        (np.diff(log_odds) >= 0).all() and (np.diff(values) >= 0).all() and (values > 0).all() and (values < 1).all()
    )


def fit_calibration(
    log_proba: np.ndarray, codes: np.ndarray, weight: np.ndarray | None, method: str, total: float
) -> Calibration:
    """Learn how to mend probabilities from rows that were left out.

    Parameters
    ----------
    log_proba : ndarray of shape (n, classes)
    codes : ndarray of int of shape (n,)
        The true classes.
    weight : ndarray of shape (n,), optional
    method : {"temperature", "isotonic"}
    total : float
        The weight the model had counted.
    """
    if method not in METHODS:
        raise DataError(f"method is {method!r}; expected one of {', '.join(map(repr, METHODS))}.")
    weights = np.ones(len(codes)) if weight is None else weight
    truth = log_proba[np.arange(len(codes)), codes]
    # A row whose class was impossible without it, such as the only one of its class: no calibration brings that back.
    kept = (weights > 0) & np.isfinite(truth)
    if not kept.any():
        raise DataError("no row has a class that is possible without it; expected several rows of every class.")
    log_proba, codes, weights = log_proba[kept], codes[kept], weights[kept]
    before = _log_loss(log_proba, codes, weights)
    if method == "temperature":
        sharpness = fit_sharpness(log_proba, codes, weights)
        after = _log_loss(tempered(log_proba, sharpness), codes, weights)
        return Calibration(method, total, before, after, temperature=1 / sharpness)
    log_odds, values = fit_steps(log_proba, codes, weights)
    after = _log_loss(stepped(log_proba, log_odds, values), codes, weights)
    return Calibration(method, total, before, after, log_odds=log_odds, values=values)


def _log_loss(log_proba: np.ndarray, codes: np.ndarray, weights: np.ndarray) -> float:
    return float(-(weights @ log_proba[np.arange(len(codes)), codes]) / weights.sum())


def tempered(log_proba: np.ndarray, sharpness: float) -> np.ndarray:
    """Probabilities to the power of `sharpness`, made to sum to 1."""
    scaled = log_proba * sharpness
    return scaled - logsumexp(scaled, axis=1, keepdims=True)


def fit_sharpness(log_proba: np.ndarray, codes: np.ndarray, weights: np.ndarray) -> float:
    """1/T of the lowest log-loss, by Newton's steps in its logarithm, kept within what is known.

    The prior is log T ~ N(0, 1), worth hardly more than a row: rows that are all right would make T zero without it.
    """
    gap = log_proba - log_proba[np.arange(len(codes)), codes][:, None]
    finite = np.where(np.isneginf(gap), 0.0, gap)
    at, low, high = 0.0, -14.0, 14.0
    for _ in range(100):
        sharpness = np.exp(at)
        share = np.exp(tempered(gap, sharpness))
        mean = (share * finite).sum(axis=1)
        slope = sharpness * float(weights @ mean)
        curve = slope + sharpness**2 * float(weights @ ((share * finite**2).sum(axis=1) - mean**2))
        low, high = (at, high) if slope + at < 0 else (low, at)
        step = at - (slope + at) / (curve + 1) if curve > -1 else np.nan
        best = step if low < step < high else (low + high) / 2
        if abs(best - at) <= 1e-12 or high - low < 1e-12:
            break
        at = best
    return float(np.exp(at))


def fit_steps(
    log_proba: np.ndarray, codes: np.ndarray, weights: np.ndarray
) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
    """For every class against the rest, the share of it as a rising function of its log-odds.

    One row that goes against the trend is added at each end, so that no probability is 0 or 1.
    """
    log_odds, values = [], []
    for k in range(log_proba.shape[1]):
        score = class_log_odds(log_proba, k)
        order = np.argsort(score, kind="stable")
        x = np.concatenate([score[order[:1]], score[order], score[order[-1:]]])
        hit = np.concatenate([[1.0], (codes[order] == k).astype(float), [0.0]])
        at, p = rising(x, hit, np.concatenate([[1.0], weights[order], [1.0]]))
        log_odds.append(at)
        values.append(p)
    return tuple(log_odds), tuple(values)


def class_log_odds(log_proba: np.ndarray, k: int) -> np.ndarray:
    """log p(k) − log p(not k), from the other classes' own probabilities, so that neither end loses its digits."""
    if log_proba.shape[1] == 1:
        return np.full(len(log_proba), _LOG_ODDS)
    with np.errstate(invalid="ignore"):
        odds = log_proba[:, k] - logsumexp(np.delete(log_proba, k, axis=1), axis=1)
    return np.clip(odds, -_LOG_ODDS, _LOG_ODDS)


def rising(x: np.ndarray, y: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The corners of the rising function of `x` nearest to `y` in weighted squares (pool adjacent violators)."""
    from sklearn.isotonic import IsotonicRegression

    found = IsotonicRegression(out_of_bounds="clip").fit(x, y, sample_weight=weight)
    return np.array(found.X_thresholds_, dtype=np.float64), np.array(found.y_thresholds_, dtype=np.float64)


def stepped(log_proba: np.ndarray, log_odds: tuple[np.ndarray, ...], values: tuple[np.ndarray, ...]) -> np.ndarray:
    """Every class's probability against the rest by its steps, all made to sum to 1."""
    columns = [np.interp(class_log_odds(log_proba, k), log_odds[k], values[k]) for k in range(log_proba.shape[1])]
    mended = np.stack(columns, axis=1)
    return np.log(mended) - np.log(mended.sum(axis=1, keepdims=True))

"""Calibration: predicted probabilities mended by how often they came true on rows left out."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tallybayes._utils.sealed_file import refuse_rest
from tallybayes._utils.string_options import StringOptions
from tallybayes.data.sampling import sampled_rows
from tallybayes.errors import DataError, FileError
from tallybayes.estimation.calibration.isotonic import apply_isotonic, fit_isotonic
from tallybayes.estimation.calibration.temperature_scaling import (
    TemperatureScaling,
    apply_temperature,
    fit_temperature_scaling,
    log_proba_of_true_class,
    mix_base_rates,
)
from tallybayes.estimation.resampling.folds import random_folds

METHODS = ("temperature", "isotonic", "auto")
_FITTED = ("none", "temperature", "isotonic")  # what "auto" chooses among
_NUMBERS = ("weight", "before", "after", "temperature", "contamination")
_SOME = 20_000  # scores are enough to choose a method by
_FOLDS = 5  # of scores, of which a method is fitted to four and judged by one


class Calibration(NamedTuple):
    """How predicted probabilities are mended, what the model had counted then, and what it did for the log-loss.

    Attributes
    ----------
    method : {"temperature", "isotonic", "none"}
        The last where ``"auto"`` found nothing to mend.
    weight : float
        The rows the model had counted.
    before, after : float
        The log-loss of the rows left out, in nats, before and after. For ``"isotonic"`` the second flatters: the steps
        were fitted to these rows. Where ``"auto"`` chose, it is what was found on rows the method was not fitted to.
    temperature : float
        p ∝ p^(1/T); 1 for other methods.
    doubt : float
        The share of probability given up for `base`, because some rows contradict the model; 0 for other methods.
    base : ndarray of shape (classes,)
        The shares of the classes, which stand for all there is to say in doubt.
    log_odds, values : lists of ndarray, one for every class
        The steps of ``"isotonic"``: the calibrated probability of each class against the rest, at some log-odds.
    tried : dict
        Of ``"auto"``, the log-loss of every method on rows it was not fitted to.
    """

    method: str
    weight: float
    before: float
    after: float
    temperature: float = 1.0
    contamination: float = 0.0
    base_rates: np.ndarray = np.zeros(0)
    log_odds: tuple[np.ndarray, ...] = ()
    values: tuple[np.ndarray, ...] = ()
    loss_by_method: dict[str, float] = {}  # noqa: RUF012 - never changed

    def __repr__(self) -> str:
        how = (
            f", temperature {self.temperature:.4g}, doubt {self.contamination:.2g}"
            if self.method == "temperature"
            else ""
        )
        return f"Calibration({self.method!r}{how}: log-loss {self.before:.4g} to {self.after:.4g} on rows left out)"

    def apply(self, log_proba: np.ndarray) -> np.ndarray:
        """log p(class | row), mended."""
        if self.method == "temperature":
            return mix_base_rates(
                apply_temperature(log_proba, 1 / self.temperature), self.contamination, self.base_rates
            )
        return log_proba if self.method == "none" else apply_isotonic(log_proba, self.log_odds, self.values)

    def losses(self, log_proba: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """The log-loss of every row after mending: (n,)."""
        if self.method == "temperature":
            return -log_proba_of_true_class(
                log_proba, codes, TemperatureScaling(1 / self.temperature, self.contamination, self.base_rates)
            )
        return _losses(self.apply(log_proba), codes)

    def to_parts(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Numbers and arrays for a file."""
        state = {name: getattr(self, name) for name in ("method", *_NUMBERS, "loss_by_method")}
        arrays = {f"calibration/log_odds/{k}": part for k, part in enumerate(self.log_odds)}
        arrays |= {f"calibration/values/{k}": part for k, part in enumerate(self.values)}
        return state, arrays | ({"calibration/base": self.base_rates} if self.base_rates.size else {})

    @classmethod
    def from_parts(cls, state: dict[str, Any], arrays: dict[str, np.ndarray], n_classes: int) -> Calibration:
        """What `to_parts` gave, checked: a file may come from anyone."""
        found = cls(
            str(state.pop("method")),
            **{name: float(state.pop(name)) for name in _NUMBERS},
            base_rates=arrays.pop("calibration/base", np.zeros(0)),
            log_odds=tuple(arrays.pop(name) for name in _names("log_odds", arrays)),
            values=tuple(arrays.pop(name) for name in _names("values", arrays)),
            loss_by_method={str(name): float(loss) for name, loss in dict(state.pop("loss_by_method")).items()},
        )
        refuse_rest("the file's calibration", state)
        n_steps = n_classes if found.method == "isotonic" else 0
        good = found.method in _FITTED and 0 < found.temperature < np.inf and 0 <= found.weight < np.inf
        good &= len(found.log_odds) == len(found.values) == n_steps and set(found.loss_by_method) <= set(_FITTED)
        good &= (
            _is_share(found.base_rates, n_classes) and 0 <= found.contamination < 1
            if found.base_rates.size
            else found.contamination == 0
        )
        if not good or not all(_is_rising(*steps) for steps in zip(found.log_odds, found.values, strict=True)):
            raise FileError("the file's calibration is none; expected a temperature, or rising steps for every class.")
        return found


def _names(what: str, arrays: dict[str, np.ndarray]) -> list[str]:
    names = [name for name in arrays if name.startswith(f"calibration/{what}/")]
    return [f"calibration/{what}/{k}" for k in range(len(names)) if f"calibration/{what}/{k}" in names]


def _is_share(base: np.ndarray, n_classes: int) -> bool:
    if base.dtype != np.float64 or base.shape != (n_classes,):
        return False
    return bool((base > 0).all() and abs(base.sum() - 1) < 1e-9)


def _is_rising(log_odds: np.ndarray, values: np.ndarray) -> bool:
    if log_odds.dtype != np.float64 or values.dtype != np.float64:
        return False
    if log_odds.ndim != 1 or log_odds.shape != values.shape or not len(values) or not np.isfinite(log_odds).all():
        return False
    return bool(
        (np.diff(log_odds) >= 0).all() and (np.diff(values) >= 0).all() and (values > 0).all() and (values < 1).all()
    )


def fit_calibration(
    method: str, log_proba: np.ndarray, codes: np.ndarray, weight: np.ndarray | None = None, total: float | None = None
) -> Calibration:
    """Learn how to mend probabilities from rows that were left out.

    Parameters
    ----------
    method : {"temperature", "isotonic", "auto"}
        ``"auto"`` tries the two and nothing at all by cross-fitting: fitted to four fifths of the scores, judged by the
        others. Steps have to be better than a temperature by more than a standard error.
    log_proba : ndarray of shape (n, classes)
        log p(class | row) by models that had not seen the row.
    codes : ndarray of int of shape (n,)
        The true classes.
    weight : ndarray of shape (n,), optional
    total : float, optional
        The weight the model had counted; that of these rows if left out.
    """
    StringOptions(METHODS).check("method", method)
    weights = np.ones(len(codes)) if weight is None else weight
    truth = log_proba[np.arange(len(codes)), codes]
    # A row whose class was impossible without it, such as the only one of its class: no calibration brings that back.
    kept = (weights > 0) & np.isfinite(truth)
    if not kept.any():
        raise DataError("no row has a class that is possible without it; expected several rows of every class.")
    total = float(weights.sum()) if total is None else total
    if not kept.all():
        log_proba, codes, weights = log_proba[kept], codes[kept], weights[kept]
    if method != "auto":
        return _fit(method, log_proba, codes, weights, total)
    tried, chosen = _choose(log_proba, codes, weights)
    return _fit(chosen, log_proba, codes, weights, total)._replace(after=tried[chosen], loss_by_method=tried)


def _fit(method: str, log_proba: np.ndarray, codes: np.ndarray, weights: np.ndarray, total: float) -> Calibration:
    """A method fitted to rows whose class is possible."""
    before = _mean_loss(_losses(log_proba, codes), weights)
    found = Calibration(method, total, before, before)
    if method == "temperature":
        sharpness, doubt, base = fit_temperature_scaling(log_proba, codes, weights)
        found = found._replace(temperature=1 / sharpness, contamination=doubt, base_rates=base)
    elif method == "isotonic":
        log_odds, values = fit_isotonic(log_proba, codes, weights)
        found = found._replace(log_odds=log_odds, values=values)
    return found._replace(after=_mean_loss(found.losses(log_proba, codes), weights))


def _choose(log_proba: np.ndarray, codes: np.ndarray, weights: np.ndarray) -> tuple[dict[str, float], str]:
    """The log-loss of every method on scores it was not fitted to, and the one to take."""
    some = sampled_rows(len(codes), _SOME)
    log_proba, codes, weights = log_proba[some], codes[some], weights[some]
    before = _losses(log_proba, codes)
    if len(codes) < 2 * _FOLDS:  # too few to learn anything from
        return {"none": _mean_loss(before, weights)}, "none"
    fold = random_folds(codes, _FOLDS, 0)
    losses = {"none": before}
    for method in ("temperature", "isotonic"):
        losses[method] = _losses(cross_fitted(method, log_proba, codes, weights, fold), codes)
    tried = {method: _mean_loss(loss, weights) for method, loss in losses.items()}
    gain = losses["temperature"] - losses["isotonic"]
    mean = tried["temperature"] - tried["isotonic"]
    error = np.sqrt(weights**2 @ (gain - mean) ** 2) / weights.sum()
    chosen = "isotonic" if mean > error else "temperature"
    return tried, "none" if tried["none"] <= tried[chosen] else chosen


def cross_fitted(
    method: str,
    log_proba: np.ndarray,
    codes: np.ndarray,
    weight: np.ndarray | None,
    fold: np.ndarray,
    *,
    ordered: bool = False,
) -> np.ndarray:
    """Held-out log-probabilities, every fold's mended by a calibration of the other folds' (of earlier ones').

    Fold −1 was not held out, and stays as it is; so does a fold that there are no others for.
    """
    mended = log_proba.copy()
    for k in range(int(fold.max(initial=-1)) + 1):
        here, rest = fold == k, (fold >= 0) & (fold < k if ordered else fold != k)
        if weight is not None:
            rest &= weight > 0
        rest[rest] = np.isfinite(log_proba[rest, codes[rest]])
        if here.any() and rest.any():
            found = fit_calibration(method, log_proba[rest], codes[rest], None if weight is None else weight[rest])
            mended[here] = found.apply(log_proba[here])
    return mended


def _losses(log_proba: np.ndarray, codes: np.ndarray) -> np.ndarray:
    return -log_proba[np.arange(len(codes)), codes]


def _mean_loss(losses: np.ndarray, weights: np.ndarray) -> float:
    return float(weights @ losses / weights.sum())

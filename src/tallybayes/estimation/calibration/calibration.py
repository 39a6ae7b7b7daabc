"""Calibration of class probabilities on held-out rows: temperature scaling or isotonic regression."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tallybayes._utils.parameter_checks import StringOptions
from tallybayes._utils.sealed_file import check_no_unknown_entries
from tallybayes.data.sampling import sampled_rows
from tallybayes.errors import DataError, FileError
from tallybayes.estimation.calibration.isotonic import apply_isotonic, class_log_odds, fit_isotonic
from tallybayes.estimation.calibration.temperature_scaling import (
    TemperatureScaling,
    apply_temperature,
    fit_temperature_scaling,
    log_proba_of_true_class,
    mix_base_rates,
)
from tallybayes.estimation.resampling.folds import random_folds

METHODS = ("temperature", "isotonic", "auto")
_FITTED = ("none", "temperature", "isotonic")  # candidates of "auto"
_NUMBERS = ("weight", "before", "after", "temperature", "contamination")
_MAX_ROWS = 20_000  # rows used to choose a method
_FOLDS = 5  # of the cross-validation that chooses a method


class Calibration(NamedTuple):
    """A fitted calibration of class probabilities, and the log loss before and after it.

    Attributes
    ----------
    method : {"temperature", "isotonic", "none"}
        ``"none"`` if ``"auto"`` found that no calibration lowers the log loss.
    weight : float
        The total weight of the model's training rows at calibration.
    before, after : float
        The log loss of the held-out rows, in nats, before and after. For ``"isotonic"`` the second is optimistic: the
        function was fitted to these rows. If ``"auto"`` chose the method, it is the cross-validated log loss.
    temperature : float
        T in p ∝ p^(1/T); 1 for other methods.
    contamination : float
        The weight ε of the class frequencies in the mixture (1 − ε) · p + ε · base_rates; 0 for other methods.
    base_rates : ndarray of shape (classes,)
        The class frequencies.
    log_odds, values : tuples of ndarray, one for every class
        The isotonic function of each class against the rest: calibrated probabilities by log-odds.
    loss_by_method : dict
        For ``"auto"``, the cross-validated log loss of every method.
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
        details = (
            f", temperature {self.temperature:.4g}, contamination {self.contamination:.2g}"
            if self.method == "temperature"
            else ""
        )
        return f"Calibration({self.method!r}{details}: log loss {self.before:.4g} to {self.after:.4g} on held-out rows)"

    def apply(self, log_proba: np.ndarray) -> np.ndarray:
        """Return the calibrated log p(class | row) of shape (n, classes)."""
        if self.method == "temperature":
            return mix_base_rates(
                apply_temperature(log_proba, 1 / self.temperature), self.contamination, self.base_rates
            )
        if self.method == "none":
            return log_proba
        return apply_isotonic(class_log_odds(log_proba), (self.log_odds, self.values))

    def losses(self, log_proba: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Return the calibrated log loss of every row, of shape (n,)."""
        if self.method == "temperature":
            return -log_proba_of_true_class(
                log_proba, codes, TemperatureScaling(1 / self.temperature, self.contamination, self.base_rates)
            )
        return _losses(self.apply(log_proba), codes)

    def to_parts(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return numbers and arrays for a file."""
        state = {name: getattr(self, name) for name in ("method", *_NUMBERS, "loss_by_method")}
        arrays = {f"calibration/log_odds/{k}": part for k, part in enumerate(self.log_odds)}
        arrays |= {f"calibration/values/{k}": part for k, part in enumerate(self.values)}
        return state, arrays | ({"calibration/base": self.base_rates} if self.base_rates.size else {})

    @classmethod
    def from_parts(cls, state: dict[str, Any], arrays: dict[str, np.ndarray], n_classes: int) -> Calibration:
        """Return the calibration written by `to_parts`; raise FileError if it is invalid (untrusted file)."""
        calibration = cls(
            str(state.pop("method")),
            **{name: float(state.pop(name)) for name in _NUMBERS},
            base_rates=arrays.pop("calibration/base", np.zeros(0)),
            log_odds=tuple(arrays.pop(name) for name in _names("log_odds", arrays)),
            values=tuple(arrays.pop(name) for name in _names("values", arrays)),
            loss_by_method={str(name): float(loss) for name, loss in dict(state.pop("loss_by_method")).items()},
        )
        check_no_unknown_entries("the file's calibration", state)
        n_functions = n_classes if calibration.method == "isotonic" else 0
        is_valid = (
            calibration.method in _FITTED and 0 < calibration.temperature < np.inf and 0 <= calibration.weight < np.inf
        )
        is_valid &= len(calibration.log_odds) == len(calibration.values) == n_functions and set(
            calibration.loss_by_method
        ) <= set(_FITTED)
        is_valid &= (
            _is_distribution(calibration.base_rates, n_classes) and 0 <= calibration.contamination < 1
            if calibration.base_rates.size
            else calibration.contamination == 0
        )
        if not is_valid or not all(
            _is_isotonic(*function) for function in zip(calibration.log_odds, calibration.values, strict=True)
        ):
            raise FileError("the file's calibration is invalid; expected a temperature or isotonic functions by class.")
        return calibration


def _names(what: str, arrays: dict[str, np.ndarray]) -> list[str]:
    names = [name for name in arrays if name.startswith(f"calibration/{what}/")]
    return [f"calibration/{what}/{k}" for k in range(len(names)) if f"calibration/{what}/{k}" in names]


def _is_distribution(base_rates: np.ndarray, n_classes: int) -> bool:
    if base_rates.dtype != np.float64 or base_rates.shape != (n_classes,):
        return False
    return bool((base_rates > 0).all() and abs(base_rates.sum() - 1) < 1e-9)


def _is_isotonic(log_odds: np.ndarray, values: np.ndarray) -> bool:
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
    """Fit a calibration to the probabilities of held-out rows.

    Parameters
    ----------
    method : {"temperature", "isotonic", "auto"}
        ``"auto"`` compares both and no calibration by 5-fold cross-validation. Isotonic regression is chosen only if it
        is better than temperature scaling by more than one standard error.
    log_proba : ndarray of shape (n, classes)
        log p(class | row) by models that were not fitted to the row.
    codes : ndarray of int of shape (n,)
        The true classes.
    weight : ndarray of shape (n,), optional
    total : float, optional
        The weight of the model's training rows; by default that of these rows.
    """
    StringOptions(METHODS).check("method", method)
    weights = np.ones(len(codes)) if weight is None else weight
    true_log_proba = log_proba[np.arange(len(codes)), codes]
    # Rows with probability 0 for their class, such as the only row of a class, cannot be calibrated.
    kept = (weights > 0) & np.isfinite(true_log_proba)
    if not kept.any():
        raise DataError("calibration: no class has more than one row; expected several rows of every class.")
    total = float(weights.sum()) if total is None else total
    if not kept.all():
        log_proba = log_proba[kept]
        codes = codes[kept]
        weights = weights[kept]
    if method != "auto":
        return _fit(method, log_proba, codes, weights, total)
    loss_by_method, chosen, start = _choose(log_proba, codes, weights)
    return _fit(chosen, log_proba, codes, weights, total, start)._replace(
        after=loss_by_method[chosen], loss_by_method=loss_by_method
    )


def _fit(
    method: str,
    log_proba: np.ndarray,
    codes: np.ndarray,
    weights: np.ndarray,
    total: float,
    start: TemperatureScaling | None = None,
) -> Calibration:
    """Fit one method to rows whose true class has a positive probability; a temperature from an initial estimate."""
    before = _mean_loss(_losses(log_proba, codes), weights)
    fitted: dict[str, Any] = {}
    if method == "temperature":
        inverse_temperature, *mixture = fit_temperature_scaling(log_proba, codes, weights, start)
        fitted = {"temperature": 1 / inverse_temperature, "contamination": mixture[0], "base_rates": mixture[1]}
    elif method == "isotonic":
        (functions,) = fit_isotonic(class_log_odds(log_proba), codes, [weights])
        fitted = dict(zip(("log_odds", "values"), functions, strict=True))
    losses = Calibration(method, total, before, before, **fitted).losses(log_proba, codes)
    return Calibration(method, total, before, _mean_loss(losses, weights), **fitted)


def _choose(
    log_proba: np.ndarray, codes: np.ndarray, weights: np.ndarray
) -> tuple[dict[str, float], str, TemperatureScaling | None]:
    """Return the cross-validated log loss of every method, the method to use, and a temperature of nearly all rows."""
    subset = sampled_rows(len(codes), _MAX_ROWS)
    log_proba = log_proba[subset]
    codes = codes[subset]
    weights = weights[subset]
    before = _losses(log_proba, codes)
    if len(codes) < 2 * _FOLDS:  # too few rows to fit a calibration
        return {"none": _mean_loss(before, weights)}, "none", None
    fold = random_folds(codes, _FOLDS, 0)
    start = fit_temperature_scaling(log_proba, codes, weights)
    scaled = np.empty(len(codes))
    for k in range(_FOLDS):
        part, rest = np.flatnonzero(fold == k), np.flatnonzero(fold != k)
        scaling = fit_temperature_scaling(log_proba[rest], codes[rest], weights[rest], start)
        scaled[part] = -log_proba_of_true_class(log_proba[part], codes[part], scaling)
    isotonic = _losses(cross_fitted("isotonic", log_proba, codes, weights, fold), codes)
    losses = {"none": before, "temperature": scaled, "isotonic": isotonic}
    loss_by_method = {method: _mean_loss(loss, weights) for method, loss in losses.items()}
    gain = losses["temperature"] - losses["isotonic"]
    mean = loss_by_method["temperature"] - loss_by_method["isotonic"]
    error = np.sqrt(weights**2 @ (gain - mean) ** 2) / weights.sum()
    best = "isotonic" if mean > error else "temperature"
    return loss_by_method, "none" if loss_by_method["none"] <= loss_by_method[best] else best, start


def cross_fitted(
    method: str,
    log_proba: np.ndarray,
    codes: np.ndarray,
    weight: np.ndarray | None,
    fold: np.ndarray,
    *,
    ordered: bool = False,
) -> np.ndarray:
    """Calibrate held-out log probabilities, those of every fold by a calibration fitted to the other folds.

    If ``ordered``, it is fitted to earlier folds only. Rows of fold −1, which were not held out, are not changed, nor
    is a fold without others.
    """
    calibrated = log_proba.copy()
    weights = np.ones(len(codes)) if weight is None else weight
    known = (fold >= 0) & (weights > 0) & np.isfinite(log_proba[np.arange(len(codes)), codes])
    folds = [k for k in range(int(fold.max(initial=-1)) + 1) if (fold == k).any()]
    others = {k: np.flatnonzero(known & (fold < k if ordered else fold != k)) for k in folds}
    parts = [(np.flatnonzero(fold == k), rows) for k, rows in others.items() if len(rows)]
    if method == "isotonic":
        odds = class_log_odds(log_proba)
        counted = (np.bincount(rows, weights[rows], len(codes)) for _, rows in parts)
        for (part, _), functions in zip(parts, fit_isotonic(odds, codes, counted), strict=True):
            calibrated[part] = apply_isotonic(odds[part], functions)
        return calibrated
    for part, rows in parts:
        calibration = fit_calibration(method, log_proba[rows], codes[rows], weights[rows])
        calibrated[part] = calibration.apply(log_proba[part])
    return calibrated


def _losses(log_proba: np.ndarray, codes: np.ndarray) -> np.ndarray:
    return -log_proba[np.arange(len(codes)), codes]


def _mean_loss(losses: np.ndarray, weights: np.ndarray) -> float:
    return float(weights @ losses / weights.sum())

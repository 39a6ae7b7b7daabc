"""Log probabilities of columns by +, −, ·, / and log, which every database and ONNX have."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from scipy.special import gammaln

from tallybayes.data.sql.row_arrays import Array
from tallybayes.export.portable_scorer import IMPOSSIBLE, ColumnForm, bounded
from tallybayes.families._shared.log_prob_forms import LinearLogForm, NormalForm, StudentTForm

Number = TypeVar("Number", Array, np.ndarray)
_SHIFT = 8  # shift of the argument of Stirling's series
_LARGE = 50.0  # arguments from which the series is accurate without a shift


def column_log_prob(x: Array, form: ColumnForm) -> Array:
    """Return the log probabilities of columns by class.

    Parameters
    ----------
    x : Array of shape (columns, 1)
    form : a form with arrays of shape (columns, classes)

    Returns
    -------
    Array of shape (columns, classes)
    """
    match form:
        case LinearLogForm(weight, bias):
            return _linear(x, weight, bias)
        case NormalForm(mean, precision, log_norm):
            deviation = x - mean
            return log_norm - deviation * (0.5 * precision) * deviation
        case StudentTForm(location, inverse_spread, power, log_norm):
            deviation = x - location
            return log_norm - power * (deviation * inverse_spread * deviation).log1p(power.max())
    return form.at_zero + x * form.slope + log_rising(x, form.start)


def _linear(x: Array, weight: np.ndarray, bias: np.ndarray) -> Array:
    """Return bias + weight · x, where bias or weight may be −∞."""
    if np.isfinite(weight).all() and np.isfinite(bias).all():
        return bias + x * weight
    slope = np.where(np.isneginf(weight), 0.0, weight)
    start = np.where(np.isneginf(weight), IMPOSSIBLE, np.where(np.isneginf(bias), 0.0, bias))
    return x.engine.where(x.equals(0.0), bounded(bias), start + x * slope)


def log_rising(x: Array, start: np.ndarray) -> Array:
    """Return log Γ(start + x) − log Γ(start), up to a term that depends only on x.

    For large start, it is the difference of two Stirling series. For small start, log Γ(x + 1), which all classes have
    in common, is subtracted, and both series are shifted by 8. No result is a small difference of large numbers.
    """
    is_large = start > _LARGE
    large = np.where(is_large, start, _LARGE)
    end = x + large
    growth = (large - 0.5) * (x / large).log1p()
    from_large = growth + x * (end.log() - 1.0) + _correction(end) - _correction(large)
    if is_large.all():
        return from_large
    common = x + (_SHIFT + 1.0)
    log_common = common.log()
    common_series = (common - 0.5) * log_common - common + 0.5 * np.log(2 * np.pi)
    small = np.where(is_large, 1.0, start)
    end = x + (small + _SHIFT)
    excess = small - 1
    growth = (end - 0.5) * (excess / common).log1p()
    steps = x.engine.total([(x + (small + i)).log() for i in range(_SHIFT)])
    from_small = growth + excess * log_common - (excess + gammaln(small)) + _correction(end) - steps
    return x.engine.where(is_large, from_large - common_series, from_small)


def _correction(z: Number) -> Number:
    """Return the correction of Stirling's series: 1/(12 z) − 1/(360 z³) + 1/(1260 z⁵) − 1/(1680 z⁷)."""
    square = z * z
    return (1 / 12 - (1 / 360 - (1 / 1260 - 1 / 1680 / square) / square) / square) / z

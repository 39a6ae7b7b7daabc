"""Objective of temperature scaling with contamination, and its derivatives."""

from __future__ import annotations

import numpy as np

from tallybayes.kernels.active import implementation_for
from tallybayes.kernels.arguments import Float64Array
from tallybayes.kernels.reference import temperature as _reference

__all__ = ["EIGHT", "temperature_sums"]

EIGHT = 8  # number of rows that are processed at once


def temperature_sums(
    scores: Float64Array,
    truth: Float64Array,
    base: Float64Array,
    weights: Float64Array,
    sharpness: float,
    doubt: float,
) -> Float64Array:
    """Return Σ w·log(p + q) and its derivatives, p = (1 − ε) exp(s·truth) / Σ exp(s·scores) and q = ε·base.

    Parameters
    ----------
    scores : float64 array of shape (classes, n), contiguous
        Log probabilities, minus the largest of every row. n is a multiple of eight; pad with rows of weight 0.
    truth, base, weights : float64 arrays of shape (n,)
        Score of the true class, its class frequency, and sample weight.
    sharpness, doubt : float
        Inverse temperature s, and contamination ε between 0 and 1.

    Returns
    -------
    float64 array of shape (6,)
        The sum; its derivatives with respect to log s and the log-odds of ε; its second derivatives with respect to
        log s, to both (with opposite sign), and to the log-odds of ε.

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes.kernels.temperature import temperature_sums
    >>> scores = np.log(np.tile([[1.0], [0.25]], 8))                   # two classes; the first is the true class
    >>> rows = np.zeros(8), np.full(8, 0.5), np.array([1.0] + [0.0] * 7)
    >>> temperature_sums(scores, *rows, 1.0, 0.1).round(4)                 # log(0.9 · 0.8 + 0.1 · 0.5)
    array([-0.2614,  0.2593, -0.0351, -0.0236,  0.0168, -0.0293])
    """
    n = len(truth)
    if scores.ndim != 2 or scores.shape[1] != n or not scores.flags.c_contiguous or n % EIGHT:
        raise ValueError(f"scores has shape {scores.shape}, expected (classes, {n}), contiguous, n a multiple of eight")
    kernels = implementation_for(_reference)
    return np.asarray(kernels.sum_tempered(scores.reshape(-1), truth, base, weights, len(scores), sharpness, doubt))

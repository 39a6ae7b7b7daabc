"""Sums over rows whose probabilities are made flatter and mixed with doubt: what a temperature is fitted by."""

from __future__ import annotations

from typing import Any

from tallybayes.kernels.arguments import Float64Array
from tallybayes.kernels.reference import temperature as _reference_tempering

__all__ = ["EIGHT", "temperature_sums"]

EIGHT = 8  # rows are looked at together


def temperature_sums(
    scores: Float64Array,
    truth: Float64Array,
    base: Float64Array,
    weights: Float64Array,
    sharpness: float,
    doubt: float,
) -> Float64Array:
    """Sum log(p + q) and its derivatives: p = (1 − doubt) · exp(s · truth) / Σ exp(s · scores) and q = doubt · base.

    Parameters
    ----------
    scores : float64 array of shape (classes, n), contiguous
        Log probabilities, less the largest of every row.
    truth, base, weights : float64 arrays of shape (n,)
        The score of the class that came true, how often it does, and the weight of the row.
    sharpness, doubt : float
        s, and a number between 0 and 1. The number of rows is a multiple of eight: others of weight 0 fill them up.

    Returns
    -------
    float64 array of shape (6,)
        The sum; its slope by log s; that by the log-odds of doubt; and its second derivatives, by the former, by one of
        each with the other sign, and by the latter.

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes.kernels.temperature import temperature_sums
    >>> scores = np.log(np.tile([[1.0], [0.25]], 8))                   # two classes, of which the first came true
    >>> rows = np.zeros(8), np.full(8, 0.5), np.array([1.0] + [0.0] * 7)
    >>> temperature_sums(scores, *rows, 1.0, 0.1).round(4)                 # log(0.9 · 0.8 + 0.1 · 0.5)
    array([-0.2614,  0.2593, -0.0351, -0.0236,  0.0168, -0.0293])
    """
    n = len(truth)
    if scores.ndim != 2 or scores.shape[1] != n or not scores.flags.c_contiguous or n % EIGHT:
        raise ValueError(f"scores has shape {scores.shape}, expected (classes, {n}), contiguous, n a multiple of eight")
    return _implementation().sum_tempered(scores.reshape(-1), truth, base, weights, len(scores), sharpness, doubt)


def _implementation() -> Any:
    """Return the module that does the work: the compiled one, or the reference where that was chosen."""
    from tallybayes import kernels

    return _reference_tempering if kernels._kernels is kernels._reference else kernels._kernels

"""Sums over tempered rows in NumPy: the truth the compiled ones are tested against."""

from __future__ import annotations

import numpy as np

from tallybayes.kernels.arguments import Float64Array


def sum_tempered(
    scores: Float64Array,
    truth: Float64Array,
    base: Float64Array,
    weights: Float64Array,
    n_classes: int,
    sharpness: float,
    doubt: float,
) -> Float64Array:
    """All six sums, from the probabilities of all rows."""
    score = scores.reshape(n_classes, -1)
    power = np.exp(sharpness * score)
    total, weighted = power.sum(axis=0), power * score
    mean, square = weighted.sum(axis=0) / total, (weighted * score).sum(axis=0) / total
    told = (1 - doubt) * np.exp(sharpness * truth) / total
    own = told / (told + doubt * base)  # how far a row is put down to the model, rather than to doubt
    torn, lean = own * (1 - own), sharpness * (truth - mean)
    bend = torn * lean**2 + own * (lean - sharpness**2 * (square - mean**2))
    parts = (np.log(told + doubt * base), own * lean, 1 - own - doubt, bend, torn * lean, torn - doubt * (1 - doubt))
    return np.array([weights @ part for part in parts])

"""Objective of temperature scaling with contamination, and its derivatives, in NumPy."""

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
    """Return the six sums of `tallybayes.kernels.temperature.temperature_sums`."""
    score = scores.reshape(n_classes, -1)
    power = np.exp(sharpness * score)
    total = power.sum(axis=0)
    mean = (power * score).sum(axis=0) / total
    square = (power * score * score).sum(axis=0) / total
    scaled = (1 - doubt) * np.exp(sharpness * truth) / total
    mixture = scaled + doubt * base
    own = scaled / mixture  # posterior probability of the model against the contamination
    variance = own * (1 - own)
    slope = sharpness * (truth - mean)
    curvature = variance * slope**2 + own * (slope - sharpness**2 * (square - mean**2))
    second_doubt = variance - doubt * (1 - doubt)
    parts = (np.log(mixture), own * slope, 1 - own - doubt, curvature, variance * slope, second_doubt)
    return np.array([weights @ part for part in parts])

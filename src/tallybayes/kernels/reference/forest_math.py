"""Elementary functions and random numbers of the forest kernels, with the bits of the compiled ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallybayes.kernels.arguments import AnyArray, Float64Array

_MASK = 2**64 - 1
_GOLDEN = 0x9E3779B97F4A7C15
_EXP = (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1)
_LOG = (
    *(7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1),
    *(-1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1),
)
_LOG_DOUBLE = (
    *(6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01, 2.222219843214978396e-01),
    *(1.818357216161805012e-01, 1.531383769920937332e-01, 1.479819860511658591e-01),
)


def mix_bits(x: int) -> int:
    """Return a random-looking function of 64 bits (SplitMix64)."""
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)


class Random:
    """Random numbers by SplitMix64 (Steele et al. 2014)."""

    def __init__(self, seed: int, stream: int) -> None:
        self.state = mix_bits((seed * _GOLDEN + stream) & _MASK)

    def below(self, n: int) -> int:
        """Return a whole number from 0 to n − 1."""
        self.state = (self.state + _GOLDEN) & _MASK
        return ((mix_bits(self.state) >> 32) * n) >> 32


def in_bag(keys: AnyArray, tree: int, bag: int) -> AnyArray:
    """Return whether a tree is grown from the rows with these keys."""
    return np.array([mix_bits((int(key) + (tree + 1) * _GOLDEN) & _MASK) >> 32 < bag for key in keys], dtype=bool)


def natural_log(x: AnyArray) -> Float64Array:
    """Return log x of positive numbers."""
    mantissa, exponent = np.frexp(np.asarray(x, dtype=np.float64))
    high = mantissa * 2 > 1.41421356237309504880
    f = np.where(high, mantissa, mantissa * 2) - 1.0
    e = np.where(high, exponent, exponent - 1).astype(np.float64)
    half_square, s = f * f * 0.5, f / (f + 2.0)
    near = f - (half_square - s * (half_square + s * s * _polynomial(_LOG_DOUBLE, s * s)))
    return np.asarray(e * 6.93147180369123816490e-01 + (near + e * 1.90821492927058770002e-10))


def _polynomial(coefficients: tuple[float, ...], x: Float64Array) -> Float64Array:
    """Return a polynomial in four partial sums, as the compiled kernels add them."""
    square, sums = x * x, [np.zeros_like(x) for _ in range(4)]
    fourth = square * square
    for k in range((len(coefficients) + 3) // 4 * 4 - 4, -1, -4):
        for j in range(4):
            sums[j] = sums[j] * fourth
            if k + j < len(coefficients):
                sums[j] = sums[j] + coefficients[k + j]
    return np.asarray((sums[0] + sums[1] * x) + square * (sums[2] + sums[3] * x))


def n_log_n(n: Any) -> AnyArray:
    """Return n log n of whole numbers, as whole multiples of 2⁻²⁰."""
    counts = np.asarray(n, dtype=np.float64)
    logs = natural_log(np.where(counts > 0, counts, 1.0))
    return np.where(counts > 0, np.floor(counts * logs * 1048576.0 + 0.5), 0).astype(np.int64)


def to_fixed(x: AnyArray) -> AnyArray:
    """Return single-precision numbers as whole multiples of 2⁻¹⁶."""
    return np.floor(x * np.float32(65536.0) + np.float32(0.5)).astype(np.int64)


def exp_of_negative(x: AnyArray) -> AnyArray:
    """Return exp x in single precision, for x up to 0."""
    f = np.float32
    x = np.maximum(x, f(-87.0))
    n = (x * f(1.44269504) + f(12582912.0)) - f(12582912.0)
    r = (x - n * f(0.693359375)) - n * f(-2.12194440e-4)
    p = np.full_like(r, _EXP[0])
    for coefficient in _EXP[1:]:
        p = p * r + f(coefficient)
    power = ((n.astype(np.int32) + np.int32(127)) << np.int32(23)).view(np.float32)
    return np.asarray(((p * (r * r) + r) + f(1.0)) * power)


def log_of_positive(x: AnyArray) -> AnyArray:
    """Return log x in single precision, for positive x."""
    f = np.float32
    above = np.ascontiguousarray(x, dtype=np.float32).view(np.int32) - np.int32(0x3F3504F3)
    exponent = (above >> np.int32(23)).astype(np.float32)
    m = ((above & np.int32(0x007FFFFF)) + np.int32(0x3F3504F3)).view(np.float32) - f(1.0)
    z, p = m * m, np.full_like(m, _LOG[0])
    for coefficient in _LOG[1:]:
        p = p * m + f(coefficient)
    y = ((p * m) * z + exponent * f(-2.12194440e-4)) - z * f(0.5)
    return np.asarray((m + y) + exponent * f(0.693359375))


def softmax(score: AnyArray) -> AnyArray:
    """Return class probabilities of log scores in single precision, (n, classes)."""
    proba = exp_of_negative(score - score.max(axis=1, keepdims=True))
    total = np.zeros(len(proba), dtype=np.float32)
    for c in range(proba.shape[1]):  # in this order
        total = total + proba[:, c]
    return np.asarray(proba * (np.float32(1.0) / total)[:, None])

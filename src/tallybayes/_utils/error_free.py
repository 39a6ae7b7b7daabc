"""Error-free transformations: sums and products of float64 with their exact rounding errors."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_SPLITTER = 134217729.0  # 2**27 + 1: splits a float64 into two halves of 26 bits, whose products are exact

Array = npt.NDArray[np.float64]


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Return a + b and its exact rounding error (Knuth's two-sum)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def quick_two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Return a + b and its exact rounding error if |a| >= |b| (Dekker's fast two-sum)."""
    total = a + b
    return total, b - (total - a)


def two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """Return a · b and its rounding error, exact below 1e300 (Dekker, 1971, with Veltkamp's splitting)."""
    product = a * b
    a_wide = a * _SPLITTER
    b_wide = b * _SPLITTER
    a_high = a_wide - (a_wide - a)
    b_high = b_wide - (b_wide - b)
    a_low = a - a_high
    b_low = b - b_high
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low

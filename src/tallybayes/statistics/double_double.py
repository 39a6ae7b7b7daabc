"""Double-double arithmetic on arrays: unevaluated sums high + low with about 32 decimal digits (Dekker, 1971).

Forgetting rows subtracts terms that were added before. In float64 the rounding errors of the large sum remain: for data
at offset 1e9 with 99.99 % of the weight removed they exceed the result. In double-double they are below 1e-15 of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import EllipsisType

import numpy as np
import numpy.typing as npt

from tallybayes._utils.error_free import quick_two_sum, two_product, two_sum

Part = int | slice | EllipsisType | np.ndarray | None
Index = Part | tuple[Part, ...]


@dataclass(frozen=True, eq=False)
class DoubleDouble:
    """Array of numbers high + low, where |low| is at most half a unit in the last place of high.

    Parameters
    ----------
    high, low : ndarray of one shape

    Examples
    --------
    >>> import numpy as np
    >>> from tallybayes.statistics.double_double import DoubleDouble
    >>> total = DoubleDouble.of(np.array([1e20])) + DoubleDouble.of(np.array([1.0]))
    >>> (total - DoubleDouble.of(np.array([1e20]))).value
    array([1.])
    """

    high: np.ndarray
    low: np.ndarray

    @classmethod
    def of(cls, value: npt.ArrayLike) -> DoubleDouble:
        """Return the double-double array equal to `value`."""
        high = np.asarray(value, dtype=np.float64)
        return cls(high, np.zeros(high.shape))

    @classmethod
    def zeros(cls, shape: tuple[int, ...]) -> DoubleDouble:
        """Return an array of zeros."""
        return cls(np.zeros(shape), np.zeros(shape))

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array."""
        return self.high.shape

    @property
    def value(self) -> np.ndarray:
        """Nearest float64 array."""
        return self.high + self.low

    def map(self, move: Callable[[np.ndarray], np.ndarray]) -> DoubleDouble:
        """Apply a function that only rearranges elements (reshape, take, broadcast) to both parts."""
        return DoubleDouble(move(self.high), move(self.low))

    def __getitem__(self, index: Index) -> DoubleDouble:
        return DoubleDouble(self.high[index], self.low[index])

    def where(self, mask: np.ndarray) -> DoubleDouble:
        """Return the numbers where the mask is true, and 0 elsewhere."""
        return DoubleDouble(np.where(mask, self.high, 0.0), np.where(mask, self.low, 0.0))

    def scaled(self, factor: float | np.ndarray) -> DoubleDouble:
        """Multiply by powers of two (or 0), which is exact."""
        return DoubleDouble(self.high * factor, self.low * factor)

    def reshape(self, shape: tuple[int, ...]) -> DoubleDouble:
        """Return the numbers in another shape."""
        return DoubleDouble(self.high.reshape(shape), self.low.reshape(shape))

    def transposed(self) -> DoubleDouble:
        """Swap the last two axes."""
        return DoubleDouble(np.swapaxes(self.high, -1, -2), np.swapaxes(self.low, -1, -2))

    def frozen(self) -> DoubleDouble:
        """Return the same numbers with read-only arrays."""
        return DoubleDouble(read_only(self.high), read_only(self.low))

    def __neg__(self) -> DoubleDouble:
        return DoubleDouble(-self.high, -self.low)

    def __add__(self, other: DoubleDouble) -> DoubleDouble:
        high, error = two_sum(self.high, other.high)
        low, low_error = two_sum(self.low, other.low)
        high, error = quick_two_sum(high, error + low)
        return DoubleDouble(*quick_two_sum(high, error + low_error))

    def __sub__(self, other: DoubleDouble) -> DoubleDouble:
        return self + (-other)

    def __mul__(self, other: DoubleDouble | float | np.ndarray) -> DoubleDouble:
        if not isinstance(other, DoubleDouble):
            other = np.asarray(other, dtype=np.float64)
            high, error = two_product(self.high, other)
            return DoubleDouble(*quick_two_sum(high, error + self.low * other))
        high, error = two_product(self.high, other.high)
        return DoubleDouble(*quick_two_sum(high, error + (self.high * other.low + self.low * other.high)))

    def __truediv__(self, other: DoubleDouble) -> DoubleDouble:
        """Divide elementwise; the divisor must not contain zeros."""
        first = self.high / other.high
        rest = self - other * first
        second = rest.high / other.high
        rest = rest - other * second
        high, low = quick_two_sum(first, second)
        return DoubleDouble(*quick_two_sum(high, low + rest.high / other.high))

    def sum(self, axis: tuple[int, ...]) -> DoubleDouble:
        """Sum over some axes in double-double arithmetic, pairwise in index order."""
        axis = tuple(a % len(self.shape) for a in axis)
        count = int(np.prod([self.shape[a] for a in axis], dtype=np.int64))
        kept = tuple(n for a, n in enumerate(self.shape) if a not in axis)
        high, low = (np.moveaxis(a, axis, range(len(axis))).reshape((count, *kept)) for a in (self.high, self.low))
        if count == 0:
            return DoubleDouble.zeros(kept)
        while count > 1:
            even = count // 2 * 2
            paired = DoubleDouble(high[0:even:2], low[0:even:2]) + DoubleDouble(high[1::2], low[1::2])
            high, low = np.concatenate([paired.high, high[even:]]), np.concatenate([paired.low, low[even:]])
            count = len(high)
        return DoubleDouble(high[0], low[0])


def read_only(array: np.ndarray) -> np.ndarray:
    """Return a read-only view of the array."""
    view = array.view()
    view.setflags(write=False)
    return view

"""Weight, mean and scatter of every column, or of all columns jointly, in every group."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import product
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from tallybayes.errors import DataError, StatisticsError
from tallybayes.statistics.double_double import DoubleDouble, read_only
from tallybayes.statistics.sufficient_statistics import Part, Statistics, all_close

_ANCHOR_ROWS = 1024  # number of first rows from which the anchor is estimated
_MIN_WEIGHT = 1e-290  # sums with less weight have no significant digits and become 0
_CACHE_CELLS = 8192  # block size of matrix products, so that temporary arrays stay in cache
_ROUNDING = 1e-29  # relative to the second sums: a smaller scatter is the rounding error of double-double
_ULPS_SQUARED = 2.0**-100  # squared rounding error of values near the anchor, in units of its weighted square


class Moments(Statistics):
    """Sums of powers of the columns: sufficient statistics of the Gaussian families.

    The stored sums are Σw, Σw(x − a) and Σw(x − a)² (or Σw(x − a)(x − a)ᵀ), as double-double numbers about an anchor a
    per column. ``weight``, ``mean`` and ``scatter`` are derived. Adding and removing rows loses no precision.

    Parameters
    ----------
    anchor : array of shape (columns,)
        Reference point of the sums, near the data.
    weight_sum : DoubleDouble of shape (*given, columns), or (*given, 1) if no value is missing
    first_sum : DoubleDouble of shape (*given, columns)
    second_sum : DoubleDouble of shape (*given, columns), or (*given, columns, columns) for full moments

    Examples
    --------
    >>> import tallybayes as tb
    >>> moments = tb.Moments.of([[1.0], [2.0], [6.0]])
    >>> moments.weight, moments.mean, moments.scatter
    (array([3.]), array([3.]), array([14.]))
    >>> (moments - tb.Moments.of([[6.0]])).mean
    array([1.5])
    """

    def __init__(
        self, anchor: np.ndarray, weight_sum: DoubleDouble, first_sum: DoubleDouble, second_sum: DoubleDouble
    ) -> None:
        self.anchor = np.array(anchor, dtype=np.float64)
        self.anchor.setflags(write=False)
        lost = (weight_sum.high < _MIN_WEIGHT) & (weight_sum.high != 0)  # responsibilities of EM that underflow
        if lost.any():
            weight_sum, first_sum, second_sum = _zero_where(lost, weight_sum, first_sum, second_sum)
        self.weight_sum = weight_sum.frozen()
        self.first_sum = first_sum.frozen()
        self.second_sum = second_sum.frozen()
        given, n_columns = self.given_shape, self.n_columns = first_sum.shape[:-1], first_sum.shape[-1]
        self.full = len(second_sum.shape) == len(given) + 2  # whether products of different columns are included
        if self.anchor.shape != (n_columns,):
            raise DataError.wrong_shape("anchor", self.anchor.shape, f"({n_columns},)")
        if weight_sum.shape not in ((*given, n_columns), (*given, 1)):
            raise DataError.wrong_shape("weight_sum", weight_sum.shape, f"{(*given, n_columns)} or {(*given, 1)}")
        if second_sum.shape not in ((*given, n_columns), (*given, n_columns, n_columns)):
            raise DataError.wrong_shape(
                "second_sum", second_sum.shape, f"{(*given, n_columns)} or {(*given, n_columns, n_columns)}"
            )

    @classmethod
    def of(cls, values: npt.ArrayLike, *, full: bool = False) -> Moments:
        """Return the moments of rows with weight 1 in a single group.

        Parameters
        ----------
        values : array-like of shape (n, columns)
        full : bool, default False
            Whether to include the products of different columns.
        """
        from tallybayes import kernels

        values = np.asarray(values, dtype=np.float64)
        if values.ndim != 2:
            raise DataError.wrong_shape("values", values.shape, "(rows, columns)")
        anchor = choose_anchor(values)
        collect = kernels.sum_scatter if full else kernels.sum_moments
        return cls.from_kernel(anchor, collect(values, anchor, None, 1)).reshape_groups(())

    @classmethod
    def from_kernel(cls, anchor: np.ndarray, sums: Sequence[np.ndarray]) -> Moments:
        """Create moments from the six arrays returned by ``kernels.sum_moments`` or ``kernels.sum_scatter``."""
        return cls(anchor, DoubleDouble(*sums[0:2]), DoubleDouble(*sums[2:4]), DoubleDouble(*sums[4:6]))

    @classmethod
    def zeros(cls, given_shape: tuple[int, ...], n_columns: int, *, full: bool = False) -> Moments:
        """Return the moments of no rows."""
        first = DoubleDouble.zeros((*given_shape, n_columns))
        second = DoubleDouble.zeros((*given_shape, n_columns, n_columns)) if full else first
        return cls(np.zeros(n_columns), DoubleDouble.zeros((*given_shape, 1)), first, second)

    def __repr__(self) -> str:
        def show(array: np.ndarray) -> str:
            """Return an array as text."""
            return np.array2string(array, separator=", ", threshold=20, precision=6)

        return f"Moments(weight={show(self.weight)}, mean={show(self.mean)}, scatter={show(self.scatter)})"

    @property
    def weight(self) -> np.ndarray:
        """Σw, shape (*given, columns), or (*given, 1) if no value is missing."""
        return self.weight_sum.value

    @cached_property
    def mean(self) -> np.ndarray:
        """Weighted mean, shape (*given, columns); 0 for groups without weight."""
        return read_only(self.mean_double_double().value)

    def mean_double_double(self) -> DoubleDouble:
        """Return the mean in double-double precision."""
        mean = DoubleDouble.of(np.broadcast_to(self.anchor, self.first_sum.shape)) + self._shift
        return mean.where(self.weight > 0)

    @cached_property
    def scatter(self) -> np.ndarray:
        """Σw(x − mean)², shape (*given, columns), or the scatter matrices, (*given, columns, columns)."""
        return read_only(self.scatter_double_double().value)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.anchor, *self.arrays().values())

    def scatter_double_double(self) -> DoubleDouble:
        """Return the scatter in double-double precision."""
        if self.full:
            return self._by_blocks(lambda second, correction: second - correction)
        scatter = self.second_sum - self._mean_correction
        keep = scatter.high > _ROUNDING * self.second_sum.high  # fractional weights leave rounding errors
        return scatter.where(keep)

    @cached_property
    def _shift(self) -> DoubleDouble:
        """Mean − anchor; 0 for groups without weight."""
        empty = self.weight_sum.high <= 0
        weight = DoubleDouble(np.where(empty, 1.0, self.weight_sum.high), np.where(empty, 0.0, self.weight_sum.low))
        return self.first_sum / weight

    @cached_property
    def _mean_correction(self) -> DoubleDouble:
        """Σw times the square (or outer product) of mean − anchor: second sum minus scatter."""
        if self.full:
            return self._by_blocks(lambda _, correction: correction)
        first, unit = self._scaled_first()
        return (first * self._shift).scaled(unit)

    def _scaled_first(self) -> tuple[DoubleDouble, np.ndarray]:
        """Return first sums divided by a power of two near the weight, and that number: squares of tiny sums underflow.

        The division is exact.
        """
        unit = np.ldexp(1.0, np.frexp(np.where(self.weight_sum.high > 0, self.weight_sum.high, 1.0))[1])
        return self.first_sum.scaled(1 / unit), unit

    def _by_blocks(self, combine: Callable[[DoubleDouble, DoubleDouble], DoubleDouble]) -> DoubleDouble:
        """Combine second sums and their mean correction into symmetric matrices, block by block.

        Only the lower triangle is computed, in blocks of groups and rows that fit into the cache, and mirrored.
        """
        d = self.n_columns
        n_groups = math.prod(self.given_shape)
        shape = self.second_sum.shape
        first, unit = self._scaled_first()
        first, mean = (part.reshape((n_groups, d)) for part in (first, self._shift))
        unit = np.broadcast_to(unit, self.first_sum.shape).reshape(n_groups, d)
        second = self.second_sum.reshape((n_groups, d, d))
        out = DoubleDouble(np.empty(second.shape), np.empty(second.shape))
        group_step = max(1, _CACHE_CELLS // max(1, d * d))
        row_step = max(1, _CACHE_CELLS // max(1, d))
        for group, start in product(range(0, n_groups, group_step), range(0, d, row_step)):
            groups = slice(group, group + group_step)
            rows = slice(start, start + row_step)
            until = slice(0, start + row_step)
            correction = first[groups, rows, None] * mean[groups, None, until]
            scale = unit[groups, rows, None]
            block = combine(second[groups, rows, until], DoubleDouble(correction.high * scale, correction.low * scale))
            lower = np.tri(block.shape[1], block.shape[2], start, dtype=bool)
            for target, part in ((out.high, block.high), (out.low, block.low)):
                target[groups, until, rows] = np.swapaxes(part, -1, -2)
                np.copyto(target[groups, rows, until], part, where=lower)
        return out.reshape(shape)

    def pool_groups(self) -> Self:
        """Return the sum over all groups, which is computed once."""
        return self._pooled

    @cached_property
    def _pooled(self) -> Self:
        return super().pool_groups()

    def diagonal(self) -> Moments:
        """Return the moments without products of different columns."""
        return self._diagonal if self.full else self

    @cached_property
    def _diagonal(self) -> Moments:
        second = self.second_sum.map(lambda a: np.diagonal(a, axis1=-2, axis2=-1))
        return Moments(self.anchor, self.weight_sum, self.first_sum, second)

    def columns(self, kept: np.ndarray) -> Moments:
        """Return the moments of the columns at these positions; −1 is a column that is 0 in every row."""
        if (kept < 0).any():
            return self._with_zeros().columns(np.where(kept < 0, self.n_columns, kept))
        weight = self.weight_sum if self.weight_sum.shape[-1] == 1 else self.weight_sum[..., kept]
        second = self.second_sum[..., kept[:, None], kept] if self.full else self.second_sum[..., kept]
        return Moments(self.anchor[kept], weight, self.first_sum[..., kept], second)

    def _with_zeros(self) -> Moments:
        """Append a column that is 0 in every row."""
        if self.weight_sum.shape[-1] != 1:
            raise StatisticsError("some values are missing: a column of zeros has no weight; expected complete rows.")
        first = self.first_sum.map(lambda a: np.pad(a, [*[(0, 0)] * (a.ndim - 1), (0, 1)]))
        n_last = 2 if self.full else 1
        second = self.second_sum.map(lambda a: np.pad(a, [*[(0, 0)] * (a.ndim - n_last), *[(0, 1)] * n_last]))
        return Moments(np.append(self.anchor, 0.0), self.weight_sum, first, second)

    def with_scatter(self, added: np.ndarray) -> Moments:
        """Add to the scatter, for smoothing."""
        return Moments(self.anchor, self.weight_sum, self.first_sum, self.second_sum + DoubleDouble.of(added))

    def nonnegative(self) -> dict[str, np.ndarray]:
        """Return the weights. `first_deficit` checks the scatter."""
        return {"weight": self.weight}

    def group_weights(self) -> np.ndarray:
        """Return the weight of every group: the largest of its columns."""
        return self.weight.max(axis=-1, initial=0.0)

    def first_deficit(self, other: Self) -> tuple[tuple[int, ...], str, float, float] | None:
        """Return the first cell where weight or scatter would become negative, or scatter remain without weight."""
        deficit = super().first_deficit(other)
        if deficit is not None:
            return deficit
        rest = self._raw_subtract(other).diagonal()
        held = self.diagonal()
        remaining = (rest.second_sum - rest._mean_correction).value
        # The rounding error is about 1e-24 of the largest sum of the column, whose groups share one anchor. The anchor
        # of a constant column is its value, its sums are about 0, and the rounding error is relative to the values.
        largest = held.second_sum.value.max(axis=tuple(range(len(self.given_shape))), initial=0.0)
        anchor = np.clip(np.maximum(np.abs(self.anchor), np.abs(other.anchor)), None, 1e150)  # avoids overflow
        slack = self.TOLERANCE * held.scatter + 1e-24 * largest + _ULPS_SQUARED * held.weight * anchor**2
        if self.full:
            slack = np.maximum(slack, 1e-12 * held.second_sum.value)
        # Without remaining weight, the sums may also hold those of a fractional weight that was rounded to 0.
        slack_if_empty = slack + self._rounding(held.weight, other.weight) * held.second_sum.value
        wrong = np.where(rest.weight > 0, remaining < -slack, np.abs(rest.second_sum.value) > slack_if_empty)
        if wrong.any():
            index = tuple(int(i) for i in np.argwhere(wrong)[0])
            before = float(held.scatter[index])
            return index, "scatter", before, before - float(remaining[index])
        return None

    def isclose(self, other: Self, tolerance: float = 1e-12) -> bool:
        """Return whether weight, mean and scatter are equal; the anchors may differ."""
        if self.first_sum.shape != other.first_sum.shape or self.full != other.full:
            return False
        same = all(all_close(getattr(self, n), getattr(other, n), tolerance) for n in ("weight", "mean"))
        return same and all_close(self._scatter_or_zero(), other._scatter_or_zero(), tolerance)

    def _scatter_or_zero(self) -> np.ndarray:
        """Return the scatter, with elements that are no larger than rounding errors set to 0."""
        if not self.full:
            return self.scatter
        size = np.sqrt(np.abs(np.diagonal(self.second_sum.high, axis1=-2, axis2=-1)))
        least = _ROUNDING * size[..., :, None] * size[..., None, :]
        return np.where(np.abs(self.scatter) > least, self.scatter, 0.0)

    def rebase(self, anchor: np.ndarray) -> Moments:
        """Return the same moments about another anchor, exact up to double-double rounding."""
        if np.array_equal(anchor, self.anchor):
            return self
        return Moments(anchor, self.weight_sum, *self.sums_about(anchor))

    def sums_about(self, point: np.ndarray) -> tuple[DoubleDouble, DoubleDouble]:
        """Return the first and second sums about a point, or about one for every group, (*given, columns)."""
        shift = DoubleDouble.of(self.anchor) - DoubleDouble.of(point)
        moved = shift * self.weight_sum
        first = self.first_sum + moved
        if not self.full:
            return first, self.second_sum + shift * self.first_sum * 2.0 + moved * shift
        row = np.s_[..., :, None]
        column = np.s_[..., None, :]
        cross = shift[row] * self.first_sum[column]
        cross = cross + cross.transposed()
        return first, self.second_sum + cross + moved[row] * shift[column]

    def arrays(self) -> dict[str, Part]:
        """Return the double-double sums by name."""
        return {"weight_sum": self.weight_sum, "first_sum": self.first_sum, "second_sum": self.second_sum}

    def _with(self, parts: dict[str, Any]) -> Self:
        """Return moments about the same anchor with other sums."""
        return type(self)(self.anchor, **parts)

    def _check_same(self, other: Self) -> None:
        """Raise StatisticsError unless both have the same columns and are both full or both diagonal."""
        if (self.n_columns, self.full) != (other.n_columns, other.full):
            names = [f"{m.n_columns} {'full' if m.full else 'diagonal'}" for m in (self, other)]
            raise StatisticsError.incompatible("the columns", *names)

    def _common(self, other: Self) -> tuple[Moments, Moments]:
        """Return both about the anchor that is nearer to the mean of all rows, so that the sums stay small."""
        if np.array_equal(self.anchor, other.anchor):
            return self, other
        axes = tuple(range(len(self.given_shape)))
        weights = []
        totals = []
        for part in (self, other):
            weights.append(np.broadcast_to(part.weight, part.first_sum.shape).sum(axis=axes))
            totals.append(weights[-1] * part.anchor + part.first_sum.value.sum(axis=axes))
        weight = weights[0] + weights[1]
        mean = (totals[0] + totals[1]) / np.where(weight > 0, weight, 1.0)
        left = np.abs(mean - self.anchor)
        right = np.abs(mean - other.anchor)
        nearer = (left < right) | ((left == right) & (self.anchor > other.anchor))  # keeps a + b == b + a exactly
        anchor = np.where(nearer, self.anchor, other.anchor)
        return self.rebase(anchor), other.rebase(anchor)

    def _add(self, other: Self) -> Self:
        """Return the sums about a common anchor."""
        a, b = self._common(other)
        return type(self)(a.anchor, a.weight_sum + b.weight_sum, a.first_sum + b.first_sum, a.second_sum + b.second_sum)

    def _raw_subtract(self, other: Self) -> Moments:
        """Return the differences of all sums about this anchor: moving the minuend could only lose digits."""
        subtrahend = other.rebase(self.anchor)
        weight = self.weight_sum - subtrahend.weight_sum
        empty = weight.value <= self._rounding(self.weight, subtrahend.weight) * self.weight
        weight = weight.where(~empty)
        first = self.first_sum - subtrahend.first_sum
        return Moments(self.anchor, weight, first, self.second_sum - subtrahend.second_sum)

    def _clear_rounding_residue(self, held: Moments) -> Moments:
        """Set scatter to exactly 0 where it is within the rounding error of the sums that were `held`.

        Otherwise a column that is constant after forgetting rows would have a tiny positive variance.
        """
        rest = self.diagonal()
        before = held.diagonal()
        rows = np.clip(np.broadcast_to(held.weight, rest.first_sum.shape), 1.0, 1e16)
        limit = 1e-30 * before.second_sum.value
        if self.full:
            limit = limit + self._product_rounding(held) * before.scatter
        correction = rest._mean_correction
        residue = (rest.second_sum - correction).value <= np.sqrt(rows) * limit
        if not residue.any():
            return self
        if self.full:
            residue = residue[..., :, None] | residue[..., None, :]
            correction = self._mean_correction
        second = DoubleDouble(
            np.where(residue, correction.high, self.second_sum.high),
            np.where(residue, correction.low, self.second_sum.low),
        )
        return Moments(self.anchor, self.weight_sum, self.first_sum, second)

    def _product_rounding(self, held: Moments) -> np.ndarray:
        """Return the rounding error of full moments after rows were subtracted, relative to √rows times the scatter.

        Blocks of rows are multiplied in float64. With integer weights, the products may have 20 more bits
        (`LinearGaussian`). Then float64 is assumed only where a single row remains, which has no scatter.
        """
        integers = (held.weight == np.floor(held.weight)) & (self.weight == np.floor(self.weight))
        return np.where(integers & (self.weight != 1), 2.0**-70, 2.0**-50)

    def _rounding(self, held: np.ndarray, removed: np.ndarray) -> np.ndarray:
        """Return the relative rounding error of weights: larger for fractional weights, whose sums are rounded."""
        integers = (held == np.floor(held)) & (removed == np.floor(removed))
        return np.where(integers, 1e-20, self.TOLERANCE)

    def subtract_unchecked(self, other: Self) -> Self:
        """Return the differences, with rounding errors set to 0."""
        rest = self._raw_subtract(other)._clear_rounding_residue(self)
        keep = np.broadcast_to(rest.weight > 0, rest.first_sum.shape)
        if type(self) is Moments and keep.all():
            return rest  # type: ignore[return-value]
        both = keep[..., :, None] & keep[..., None, :] if self.full else keep
        return type(self)(
            rest.anchor,
            rest.weight_sum,
            rest.first_sum.where(keep),
            rest.second_sum.where(both),
        )


def _zero_where(lost: np.ndarray, *sums: DoubleDouble) -> Iterator[DoubleDouble]:
    """Yield the sums with zeros for the groups and columns whose weight is lost."""
    pairs = lost[..., :, None] | lost[..., None, :]
    for part in sums:
        zero = pairs if len(part.shape) > lost.ndim else lost
        yield DoubleDouble(np.where(zero, 0.0, part.high), np.where(zero, 0.0, part.low))


def choose_anchor(
    columns: np.ndarray | Sequence[np.ndarray], group: np.ndarray | None = None, weight: np.ndarray | None = None
) -> np.ndarray:
    """Return a reference point per column: 0, or near the data if the data are far from 0.

    If the median of the first rows exceeds 1024 interquartile ranges, the anchor is the median rounded to a grid of
    powers of two. The grid is coarse enough that batches of one table have the same anchor.

    Parameters
    ----------
    columns : array of shape (n, columns), or a sequence of arrays of shape (n,)
    group : array of int of shape (n,), optional
        Rows of group −1 are ignored.
    weight : array of shape (n,) or (n, groups), optional
        Rows of weight 0 are ignored.

    Returns
    -------
    ndarray of shape (columns,)
    """
    if isinstance(columns, np.ndarray):
        first = np.asarray(columns[:_ANCHOR_ROWS], dtype=np.float64)
    elif len(columns) == 0 or len(columns[0]) == 0:
        return np.zeros(len(columns))
    else:
        first = np.stack([np.asarray(column[:_ANCHOR_ROWS], dtype=np.float64) for column in columns], axis=1)
    if group is not None:  # unsigned codes do not mark missing rows as negative; their values do no harm
        first = np.where((group[: len(first)] < 0)[:, None], np.nan, first)
    if weight is not None:
        first = first[weight[: len(first)].any(axis=1) if weight.ndim == 2 else weight[: len(first)] > 0]
    if first.size == 0:
        return np.zeros(first.shape[1])
    ordered = np.sort(np.where(np.isinf(first), np.nan, first), axis=0)  # NaN sorts last
    n_present = np.count_nonzero(~np.isnan(ordered), axis=0)
    last = np.maximum(n_present - 1, 0)
    quartiles = last // 4, last // 2, last - last // 4  # minimum and maximum if there are up to four rows
    low, median, high = (ordered[row, np.arange(first.shape[1])] for row in quartiles)
    size = np.abs(median)
    with np.errstate(invalid="ignore", over="ignore"):
        far = (n_present > 0) & (size > 1024.0 * (high - low)) & (size >= 2.0**-900) & (size <= 2.0**1000)
    safe = np.where(far, median, 1.0)
    grid = np.ldexp(1.0, np.frexp(safe)[1] - 11)  # |median| / 2048 < grid <= |median| / 1024
    return np.where(far, np.round(safe / grid) * grid, 0.0)

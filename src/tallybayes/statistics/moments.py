"""Moments: weight, mean and scatter of every column (or of all columns together), in every group."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import product
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from tallybayes._utils.frozen_value import frozen_array
from tallybayes.errors import DataError, StatisticsError
from tallybayes.statistics.double_double import DoubleDouble, read_only
from tallybayes.statistics.sufficient_statistics import Part, Statistics, all_close

_ANCHOR_ROWS = 1024  # enough for a median and its spread; the first rows only, so that the cost does not grow
_LEAST = 1e-290  # less weight than this is none: its sums have no digits left
_CACHED = 8192  # cells of the arrays that products are computed in, so that they stay in cache
_ROUNDING = 1e-29  # of the squares: what is left in the last bits of double-double is no scatter
_ULPS_SQUARED = 2.0**-100  # of the weighted square of the anchor: four units in the last place of the values there


class Moments(Statistics):
    """Sums of powers of the columns: the statistics of the Gaussian families.

    What is stored is Σw, Σw(x − a) and Σw(x − a)² (or Σw(x − a)(x − a)ᵀ) in double-double about an anchor a per column;
    ``weight``, ``mean`` and ``scatter`` are derived. So rows can be added and taken out for ever without loss.

    Parameters
    ----------
    anchor : array of shape (columns,)
    weight_sum : DoubleDouble of shape (*given, columns), or (*given, 1) where no cell was missing
    first_sum : DoubleDouble of shape (*given, columns)
    second_sum : DoubleDouble of shape (*given, columns), or (*given, columns, columns) for full moments

    Examples
    --------
    >>> import tallybayes as tb
    >>> some = tb.Moments.of([[1.0], [2.0], [6.0]])
    >>> some.weight, some.mean, some.scatter
    (array([3.]), array([3.]), array([14.]))
    >>> (some - tb.Moments.of([[6.0]])).mean
    array([1.5])
    """

    def __init__(
        self, anchor: np.ndarray, weight_sum: DoubleDouble, first_sum: DoubleDouble, second_sum: DoubleDouble
    ) -> None:
        self.anchor = frozen_array(anchor)
        lost = (weight_sum.high < _LEAST) & (weight_sum.high != 0)  # shares that EM drove to the end of float64
        if lost.any():
            weight_sum, first_sum, second_sum = _emptied(lost, weight_sum, first_sum, second_sum)
        self.weight_sum, self.first_sum, self.second_sum = (s.frozen() for s in (weight_sum, first_sum, second_sum))
        given, n_columns = first_sum.shape[:-1], first_sum.shape[-1]
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
        """The moments of some rows, of weight 1 each, in one group.

        Parameters
        ----------
        values : array-like of shape (n, columns)
        full : bool, default False
            Also the products of different columns.
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
        """The six arrays of ``kernels.sum_moments`` or ``kernels.sum_scatter`` as one value."""
        return cls(anchor, DoubleDouble(*sums[0:2]), DoubleDouble(*sums[2:4]), DoubleDouble(*sums[4:6]))

    @classmethod
    def zeros(cls, given_shape: tuple[int, ...], n_columns: int, *, full: bool = False) -> Moments:
        """The moments of no rows."""
        first = DoubleDouble.zeros((*given_shape, n_columns))
        second = DoubleDouble.zeros((*given_shape, n_columns, n_columns)) if full else first
        return cls(np.zeros(n_columns), DoubleDouble.zeros((*given_shape, 1)), first, second)

    def __repr__(self) -> str:
        def show(array: np.ndarray) -> str:
            return np.array2string(array, separator=", ", threshold=20, precision=6)

        return f"Moments(weight={show(self.weight)}, mean={show(self.mean)}, scatter={show(self.scatter)})"

    @property
    def given_shape(self) -> tuple[int, ...]:
        """The numbers of groups."""
        return self.first_sum.shape[:-1]

    @property
    def n_columns(self) -> int:
        """The number of columns."""
        return self.first_sum.shape[-1]

    @property
    def full(self) -> bool:
        """Whether products of different columns are here too."""
        return len(self.second_sum.shape) == len(self.first_sum.shape) + 1

    @property
    def weight(self) -> np.ndarray:
        """Σw, shape (*given, columns), or (*given, 1) where no cell was missing."""
        return self.weight_sum.value

    @cached_property
    def mean(self) -> np.ndarray:
        """The weighted mean, shape (*given, columns); 0 where nothing was counted."""
        return read_only(self.mean_double_double().value)

    def mean_double_double(self) -> DoubleDouble:
        """The mean with all its digits."""
        shift = self.first_sum / self._divisor()
        mean = DoubleDouble.of(np.broadcast_to(self.anchor, shift.shape)) + shift
        return mean.map(lambda a: np.where(self.weight > 0, a, 0.0))

    @cached_property
    def scatter(self) -> np.ndarray:
        """Σw(x − mean)², shape (*given, columns), or with its cross products (*given, columns, columns)."""
        return read_only(self.scatter_double_double().value)

    def __getstate__(self) -> dict[str, Any]:
        return {name: part for name, part in self.__dict__.items() if name not in ("mean", "scatter")}  # derived

    def scatter_double_double(self) -> DoubleDouble:
        """The scatter with all its digits."""
        if self.full:
            return self._below(lambda second, level: second - level)
        rest = self.second_sum - self._level()
        keep = rest.high > _ROUNDING * self.second_sum.high  # a constant with broken weights leaves some
        return rest.map(lambda a: np.where(keep, a, 0.0))

    def _level(self) -> DoubleDouble:
        """The part of the second sums that is not scatter: Σw times the square of the mean, or its outer product."""
        if self.full:
            return self._below(lambda _, level: level)
        first, divisor, unit = self._scaled_first()
        return (first * first / divisor).map(lambda a: a * unit)

    def _scaled_first(self) -> tuple[DoubleDouble, DoubleDouble, np.ndarray]:
        """First sums and weights in units of the weight, a power of two: squares of tiny weights underflow."""
        divisor = self._divisor()
        unit = np.ldexp(1.0, np.frexp(divisor.high)[1])
        return self.first_sum.map(lambda a: a / unit), divisor.map(lambda a: a / unit), unit  # exactly

    def _below(self, combine: Callable[[DoubleDouble, DoubleDouble], DoubleDouble]) -> DoubleDouble:
        """Symmetric matrices made of second sums and their level, a few groups or a few rows of one at a time.

        The lower triangle is computed, in arrays that stay in cache, and mirrored.
        """
        d, n_groups, shape = self.n_columns, math.prod(self.given_shape), self.second_sum.shape
        first, divisor, unit = self._scaled_first()
        first, mean = (part.map(lambda a: a.reshape(n_groups, d)) for part in (first, first / divisor))
        unit = np.broadcast_to(unit, self.first_sum.shape).reshape(n_groups, d)
        second = self.second_sum.map(lambda a: a.reshape(n_groups, d, d))
        out = DoubleDouble(np.empty(second.shape), np.empty(second.shape))
        several, step = max(1, _CACHED // max(1, d * d)), max(1, _CACHED // max(1, d))
        for group, start in product(range(0, n_groups, several), range(0, d, step)):
            groups, rows, until = slice(group, group + several), slice(start, start + step), slice(0, start + step)
            level, scale = first[groups, rows, None] * mean[groups, None, until], unit[groups, rows, None]
            made = combine(second[groups, rows, until], DoubleDouble(level.high * scale, level.low * scale))
            lower = np.tri(made.shape[1], made.shape[2], start, dtype=bool)
            for to, part in ((out.high, made.high), (out.low, made.low)):
                to[groups, until, rows] = np.swapaxes(part, -1, -2)
                np.copyto(to[groups, rows, until], part, where=lower)
        return out.map(lambda a: a.reshape(shape))

    def _divisor(self) -> DoubleDouble:
        """The weights, with 1 in place of 0."""
        empty = self.weight_sum.high <= 0
        return DoubleDouble(np.where(empty, 1.0, self.weight_sum.high), np.where(empty, 0.0, self.weight_sum.low))

    def diagonal(self) -> Moments:
        """The same moments without products of different columns."""
        if not self.full:
            return self
        second = self.second_sum.map(lambda a: np.diagonal(a, axis1=-2, axis2=-1))
        return Moments(self.anchor, self.weight_sum, self.first_sum, second)

    def columns(self, kept: np.ndarray) -> Moments:
        """The moments of some of the columns, by position; −1 is a column of zeros, where no cell is missing."""
        if (kept < 0).any():
            return self._with_zeros().columns(np.where(kept < 0, self.n_columns, kept))
        weight = self.weight_sum if self.weight_sum.shape[-1] == 1 else self.weight_sum.map(lambda a: a[..., kept])
        second = self.second_sum.map(lambda a: a[..., kept[:, None], kept] if self.full else a[..., kept])
        return Moments(self.anchor[kept], weight, self.first_sum.map(lambda a: a[..., kept]), second)

    def _with_zeros(self) -> Moments:
        """The same moments with one more column, 0 in every row."""
        if self.weight_sum.shape[-1] != 1:
            raise StatisticsError("cells are missing, so that a column of zeros has no weight; expected whole rows.")
        first = self.first_sum.map(lambda a: np.pad(a, [*[(0, 0)] * (a.ndim - 1), (0, 1)]))
        n_last = 2 if self.full else 1
        second = self.second_sum.map(lambda a: np.pad(a, [*[(0, 0)] * (a.ndim - n_last), *[(0, 1)] * n_last]))
        return Moments(np.append(self.anchor, 0.0), self.weight_sum, first, second)

    def with_scatter(self, extra: np.ndarray) -> Moments:
        """The same moments with some more scatter: for smoothing, not for counting."""
        return Moments(self.anchor, self.weight_sum, self.first_sum, self.second_sum + DoubleDouble.of(extra))

    def nonnegative(self) -> dict[str, np.ndarray]:
        """Weights; scatter is checked by `shortage`."""
        return {"weight": self.weight}

    def group_weights(self) -> np.ndarray:
        """The weight of a group, of its fullest column."""
        return self.weight.max(axis=-1, initial=0.0)

    def first_deficit(self, other: Self) -> tuple[tuple[int, ...], str, float, float] | None:
        """As for all statistics; nor may scatter turn negative, or be left where all the weight is taken."""
        short = super().first_deficit(other)
        if short is not None:
            return short
        rest = self._raw_subtract(other).diagonal()
        held, weight = self.diagonal(), rest.weight
        left = (rest.second_sum - rest._level()).value
        # Rounding may leave about 1e-24 of the largest sum of the column, whose groups share one anchor. A constant
        # column has its own value as the anchor, and so sums of about 0: there rounding is relative to the values.
        largest = held.second_sum.value.max(axis=tuple(range(len(self.given_shape))), initial=0.0)
        anchor = np.clip(np.maximum(np.abs(self.anchor), np.abs(other.anchor)), None, 1e150)  # its square is finite
        of_values = _ULPS_SQUARED * held.weight * anchor**2
        slack = self.TOLERANCE * held.scatter + 1e-24 * largest + of_values
        if self.full:
            slack = np.maximum(slack, 1e-12 * held.second_sum.value)
        # Where no weight is left, what a snapped fraction of a row weighs may be left too.
        gone = slack + self._rounding(held.weight, other.weight) * held.second_sum.value
        wrong = np.where(weight > 0, left < -slack, np.abs(rest.second_sum.value) > gone)
        if wrong.any():
            index = tuple(int(i) for i in np.argwhere(wrong)[0])
            before = float(held.scatter[index])
            return index, "scatter", before, before - float(left[index])
        return None

    def isclose(self, other: Self, tolerance: float = 1e-12) -> bool:
        """Whether weight, mean and scatter agree; the anchors may differ."""
        if self.first_sum.shape != other.first_sum.shape or self.full != other.full:
            return False
        alike = all(all_close(getattr(self, n), getattr(other, n), tolerance) for n in ("weight", "mean"))
        return alike and all_close(self._scatter_or_zero(), other._scatter_or_zero(), tolerance)

    def _scatter_or_zero(self) -> np.ndarray:
        """The scatter, 0 where there is no more of it than rounding leaves of a group that has none."""
        if not self.full:
            return self.scatter
        size = np.sqrt(np.abs(np.diagonal(self.second_sum.high, axis1=-2, axis2=-1)))
        least = _ROUNDING * size[..., :, None] * size[..., None, :]
        return np.where(np.abs(self.scatter) > least, self.scatter, 0.0)

    def rebase(self, anchor: np.ndarray) -> Moments:
        """The same moments about another anchor, exactly but for the last bits of double-double."""
        if np.array_equal(anchor, self.anchor):
            return self
        shift = DoubleDouble.of(self.anchor) - DoubleDouble.of(anchor)
        moved = shift * self.weight_sum
        first = self.first_sum + moved
        if self.full:
            row, column = (lambda a: a[..., :, None]), (lambda a: a[..., None, :])
            cross = shift.map(row) * self.first_sum.map(column)
            cross = cross + cross.map(lambda a: np.swapaxes(a, -1, -2))
            second = self.second_sum + cross + moved.map(row) * shift.map(column)
        else:
            second = self.second_sum + shift * self.first_sum * 2.0 + moved * shift
        return Moments(anchor, self.weight_sum, first, second)

    def _parts(self) -> dict[str, Part]:
        return {"weight_sum": self.weight_sum, "first_sum": self.first_sum, "second_sum": self.second_sum}

    def _with(self, parts: dict[str, Any]) -> Self:
        return type(self)(self.anchor, **parts)

    def _check_same(self, other: Self) -> None:
        if (self.n_columns, self.full) != (other.n_columns, other.full):
            names = [f"{m.n_columns} {'full' if m.full else 'diagonal'}" for m in (self, other)]
            raise StatisticsError.incompatible("the columns", *names)

    def _common(self, other: Self) -> tuple[Moments, Moments]:
        """Both about one anchor: of the two, the one nearer to the mean of all rows, so that the sums stay small."""
        if np.array_equal(self.anchor, other.anchor):
            return self, other
        axes = tuple(range(len(self.given_shape)))
        weights, totals = [], []
        for part in (self, other):
            weights.append(np.broadcast_to(part.weight, part.first_sum.shape).sum(axis=axes))
            totals.append(weights[-1] * part.anchor + part.first_sum.value.sum(axis=axes))
        weight = weights[0] + weights[1]
        mean = (totals[0] + totals[1]) / np.where(weight > 0, weight, 1.0)
        mine, its = np.abs(mean - self.anchor), np.abs(mean - other.anchor)
        nearer = (mine < its) | ((mine == its) & (self.anchor > other.anchor))  # a + b = b + a, to the bit
        anchor = np.where(nearer, self.anchor, other.anchor)
        return self.rebase(anchor), other.rebase(anchor)

    def _add(self, other: Self) -> Self:
        a, b = self._common(other)
        return type(self)(a.anchor, a.weight_sum + b.weight_sum, a.first_sum + b.first_sum, a.second_sum + b.second_sum)

    def _raw_subtract(self, other: Self) -> Moments:
        a, b = self, other.rebase(self.anchor)  # what is held stays where it is: moving it could only lose digits
        weight = a.weight_sum - b.weight_sum
        gone = weight.value <= self._rounding(a.weight, b.weight) * a.weight
        weight = weight.map(lambda part: np.where(gone, 0.0, part))
        return Moments(a.anchor, weight, a.first_sum - b.first_sum, a.second_sum - b.second_sum)

    def _clear_rounding_residue(self, held: Moments) -> Moments:
        """The same sums with scatter set to exactly 0 where it is no more than the rounding of what was `held`.

        Otherwise a column that is constant once its other rows are forgotten would have a spread of dust.
        """
        if self.full:
            # How coarse the products were summed is not known here, so only what rounding made negative is surely dust.
            flat = np.diagonal(self.scatter, axis1=-2, axis2=-1) <= 0
            if not flat.any():
                return self
            level, dust = self._level(), flat[..., :, None] | flat[..., None, :]
        else:
            level = self._level()  # as `_scatter` has it, so that nothing is left
            rows = np.clip(
                np.broadcast_to(held.weight, level.shape), 1.0, 1e16
            )  # more weight than that is no more rows
            dust = (self.second_sum - level).value <= 1e-30 * np.sqrt(rows) * held.second_sum.value
        second = DoubleDouble(
            np.where(dust, level.high, self.second_sum.high), np.where(dust, level.low, self.second_sum.low)
        )
        return Moments(self.anchor, self.weight_sum, self.first_sum, second)

    def _rounding(self, held: np.ndarray, removed: np.ndarray) -> np.ndarray:
        """The share of a weight that counts as none: more where weights are fractions, which add up with rounding."""
        whole = (held == np.floor(held)) & (removed == np.floor(removed))
        return np.where(whole, 1e-20, self.TOLERANCE)

    def _subtract(self, other: Self) -> Self:
        rest = self._raw_subtract(other)._clear_rounding_residue(self)
        keep = np.broadcast_to(rest.weight > 0, rest.first_sum.shape)
        if type(self) is Moments and keep.all():
            return rest  # type: ignore[return-value]
        both = keep[..., :, None] & keep[..., None, :] if self.full else keep
        return type(self)(
            rest.anchor,
            rest.weight_sum,
            rest.first_sum.map(lambda a: np.where(keep, a, 0.0)),
            rest.second_sum.map(lambda a: np.where(both, a, 0.0)),
        )


def _emptied(lost: np.ndarray, *sums: DoubleDouble) -> Iterator[DoubleDouble]:
    """Sums with nothing in the groups and columns where the weight is lost."""
    pairs = lost[..., :, None] | lost[..., None, :]
    for part in sums:
        gone = pairs if len(part.shape) > lost.ndim else lost
        yield DoubleDouble(np.where(gone, 0.0, part.high), np.where(gone, 0.0, part.low))


def choose_anchor(
    columns: np.ndarray | Sequence[np.ndarray], group: np.ndarray | None = None, weight: np.ndarray | None = None
) -> np.ndarray:
    """A reference point per column, near the data only where the data are far from 0.

    0 unless the median of the first rows is more than 1024 interquartile ranges from it; then the median on a
    power-of-two grid, coarse enough that the parts of one table choose the same point.

    Parameters
    ----------
    columns : array of shape (n, columns), or a sequence of arrays of shape (n,)
    group : array of int of shape (n,), optional
        Rows of group −1 are absent and not looked at.
    weight : array of shape (n,) or (n, groups), optional
        Nor are rows of weight 0.

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
    if group is not None:  # unsigned codes are compared as they are: no missing rows, at worst a needless look
        first = np.where((group[: len(first)] < 0)[:, None], np.nan, first)
    if weight is not None:
        first = first[weight[: len(first)].any(axis=1) if weight.ndim == 2 else weight[: len(first)] > 0]
    if first.size == 0:
        return np.zeros(first.shape[1])
    ordered = np.sort(np.where(np.isinf(first), np.nan, first), axis=0)  # NaN sorts last
    n_known = np.count_nonzero(~np.isnan(ordered), axis=0)
    last = np.maximum(n_known - 1, 0)
    places = last // 4, last // 2, last - last // 4  # of up to four rows, the whole range
    low, median, high = (ordered[place, np.arange(first.shape[1])] for place in places)
    size = np.abs(median)
    with np.errstate(invalid="ignore", over="ignore"):
        far = (n_known > 0) & (size > 1024.0 * (high - low)) & (size >= 2.0**-900) & (size <= 2.0**1000)
    safe = np.where(far, median, 1.0)
    grid = np.ldexp(1.0, np.frexp(safe)[1] - 11)  # |median| / 2048 < grid <= |median| / 1024
    return np.where(far, np.round(safe / grid) * grid, 0.0)

"""Sums of the values of every column in every group, with the weights summed over."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from tallybayes._utils.frozen_value import frozen_array
from tallybayes.errors import DataError, StatisticsError
from tallybayes.statistics.sufficient_statistics import Statistics, all_close, are_exact, subtract_counts, take_or_zero


class Totals(Statistics):
    """Sums of columns of counts: sufficient statistics of `Bernoulli`, `Binomial`, `Poisson` and `Multinomial`.

    Parameters
    ----------
    weight : array-like of shape (*given, columns) or (*given, 1)
        Total weight behind every sum: trials for `Bernoulli` and `Binomial`, rows for `Poisson` and `Multinomial`.
        One number per group if no value is missing.
    total : array-like of shape (*given, columns)
        Σ w·x over the values that are not missing.
    log_base_measure : array-like of shape (*given, columns) or (*given, 1), default 0
        Σ w·log h(x), the part of the log likelihood that does not depend on parameters (binomial coefficients and
        factorials).
    failures : array-like of shape (*given, columns), optional
        Number of failed trials. It equals weight − total, but is stored separately: with fractional weights the
        difference has a large relative rounding error if few trials failed.

    Examples
    --------
    >>> import tallybayes as tb
    >>> heads = tb.Totals(weight=[5.0], total=[3.0])
    >>> heads + heads
    Totals(weight=[10.], total=[6.])
    """

    def __init__(
        self,
        weight: npt.ArrayLike,
        total: npt.ArrayLike,
        log_base_measure: npt.ArrayLike | None = None,
        failures: npt.ArrayLike | None = None,
    ) -> None:
        self.weight = frozen_array(weight)
        self.total = frozen_array(total)
        self.log_base_measure = frozen_array(
            np.zeros((*self.total.shape[:-1], 1)) if log_base_measure is None else log_base_measure
        )
        self._failures = None if failures is None else frozen_array(failures)
        self.given_shape = self.total.shape[:-1]
        self.n_columns = math.prod(self.total.shape[-1:])
        for name, array in self.arrays().items():
            if array.ndim == 0 or array.ndim != self.total.ndim or array.shape[:-1] != self.total.shape[:-1]:
                raise DataError.wrong_shape(name, array.shape, f"{self.total.shape[:-1]} groups, then columns")
            if array.shape[-1] not in (1, self.total.shape[-1]):
                raise DataError.wrong_shape(name, array.shape, f"{self.total.shape[-1]} columns, or 1 for all")
            if name == "failures" and array.shape != self.total.shape:
                raise DataError.wrong_shape(name, array.shape, str(self.total.shape))
            lowest = array.min(initial=0.0)
            highest = array.max(initial=0.0)  # NaN if there is one
            if not -np.inf < lowest <= highest < np.inf or (name != "log_base_measure" and lowest < 0):
                raise DataError.wrong_type(name, "partly negative or not finite", "sums of at least 0")

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{name}={np.array2string(array, separator=', ', threshold=20)}"
            for name, array in (
                ("weight", self.weight),
                ("total", self.total),
                ("log_base_measure", self.log_base_measure),
            )
            if name != "log_base_measure" or array.any()
        )
        return f"Totals({shown})"

    @property
    def failures(self) -> np.ndarray:
        """Weight of the failed trials, shape (*given, columns)."""
        if self._failures is not None:
            return self._failures
        difference = self.weight - self.total
        residue = (difference != 0) & (np.abs(difference) <= self.ROUNDING * self.weight)
        if not residue.any():
            return difference
        return np.where(residue & ~are_exact(self.weight, self.total), 0.0, difference)

    def with_failures(self) -> Totals:
        """Return the same totals with failures stored separately."""
        return Totals(self.weight, self.total, self.log_base_measure, self.failures)

    def columns(self, kept: np.ndarray) -> Totals:
        """Return the totals of the columns at these positions."""
        shared = [name for name in ("weight", "log_base_measure") if getattr(self, name).shape[-1] == 1]
        return Totals(**{name: v if name in shared else v[..., kept] for name, v in self.arrays().items()})

    def take_columns(self, source: np.ndarray) -> Totals:
        """Re-index the columns: column ``i`` of the result is column ``source[i]``, or zero in all rows for −1."""
        parts = self.arrays()
        for name, part in parts.items():
            if part.shape[-1] != 1 or name in ("total", "failures"):
                parts[name] = take_or_zero(part, part.ndim - 1, source)
        if self._failures is not None:  # a trial of a column that is zero in all rows has failed
            parts["failures"] = np.where(source < 0, self.weight, parts["failures"])
        return Totals(**parts)

    def nonnegative(self) -> dict[str, np.ndarray]:
        """Return weights and totals; for trials, successes and failures."""
        if self._failures is None:
            return {"weight": self.weight, "total": self.total}
        return {"weight": self.weight, "successes": self.total, "failures": self._failures}

    def group_weights(self) -> np.ndarray:
        """Return the weight of every group: the largest of its columns."""
        return self.weight.max(axis=-1, initial=0.0)

    def first_deficit(self, other: Self) -> tuple[tuple[int, ...], str, float, float] | None:
        """Return the first cell where `other` exceeds this, or where a total would remain without weight."""
        if (self._failures is None) != (other._failures is None):
            return self.with_failures().first_deficit(other.with_failures())
        deficit = super().first_deficit(other)
        if deficit is None:
            emptied = subtract_counts(self.weight, other.weight) == 0
            remaining = np.where(emptied, subtract_counts(self.total, other.total), 0.0)
            wrong = remaining > self.TOLERANCE * np.maximum(self.total, self.weight)
            if wrong.any():
                index = tuple(int(i) for i in np.argwhere(wrong)[0])
                deficit = index, "weight 0 but total", float(self.total[index]), float(other.total[index])
        return deficit

    def isclose(self, other: Self, tolerance: float = 1e-12) -> bool:
        """Return whether both hold the same sums."""
        names = ["weight", "total", "log_base_measure"]
        if self._failures is not None or other._failures is not None:
            names.append("failures")
        return self.total.shape == other.total.shape and all(
            all_close(getattr(self, name), getattr(other, name), tolerance) for name in names
        )

    def arrays(self) -> dict[str, np.ndarray]:  # type: ignore[override]
        """Return the sums by name."""
        parts = {"weight": self.weight, "total": self.total, "log_base_measure": self.log_base_measure}
        return parts if self._failures is None else {**parts, "failures": self._failures}

    def _with(self, parts: dict[str, Any]) -> Self:
        """Return totals with other arrays."""
        return type(self)(**parts)

    def _check_same(self, other: Self) -> None:
        """Raise StatisticsError unless both have the same number of columns."""
        if self.n_columns != other.n_columns:
            raise StatisticsError.incompatible("the numbers of columns", self.n_columns, other.n_columns)

    def _add(self, other: Self) -> Self:
        """Return the sums of all arrays."""
        failures = None
        if self._failures is not None or other._failures is not None:
            failures = self.failures + other.failures
        return type(self)(
            self.weight + other.weight,
            self.total + other.total,
            self.log_base_measure + other.log_base_measure,
            failures,
        )

    def subtract_unchecked(self, other: Self) -> Self:
        """Return the differences of all arrays, without checks."""
        weight = np.maximum(subtract_counts(self.weight, other.weight), 0.0)
        total = subtract_counts(self.total, other.total)
        np.maximum(total, 0.0, out=total)
        log_base = subtract_counts(self.log_base_measure, other.log_base_measure)
        failures = None
        if self._failures is not None or other._failures is not None:
            failures = subtract_counts(self.failures, other.failures, self.ROUNDING * self.weight)
            failures = np.where(weight > 0, np.maximum(failures, 0.0), 0.0)
        if not weight.all():
            total = np.where(weight > 0, total, 0.0)
            log_base = np.where(weight.any(axis=-1, keepdims=True), log_base, 0.0)
        return type(self)(weight, total, log_base, failures)

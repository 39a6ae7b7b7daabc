"""Comparison of statistics and tallies with tolerances for rounding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from tallybayes.statistics.counts import Counts
from tallybayes.statistics.moments import Moments
from tallybayes.statistics.sufficient_statistics import Statistics
from tallybayes.statistics.totals import Totals
from tallybayes.tally.tally import Tally

# Rounding of double-double arithmetic after some hundred operations, relative to the largest second moment involved.
_DOUBLE_DOUBLE_ROUNDING = 1e-29
# Kernels round x − anchor once: a row far from the anchor has an error in the anchor's last bit.
_ANCHOR_ROUNDING = 2.0**-52

Counted = TypeVar("Counted", Statistics, Tally)


def assert_statistics_close(
    found: Counted,
    expected: Counted,
    *,
    held: Counted | None = None,
    exact: bool | Sequence[bool] = False,
    tolerance: float = 1e-12,
    law: str = "equality",
) -> None:
    """Raise AssertionError unless two statistics or tallies are equal up to rounding.

    Levels may be in any order. Counts and totals are compared bit by bit if `exact`, else to `tolerance`; so are
    weights, means and scatters of moments. Rounding is relative to the largest numbers involved; pass `held` if rows
    were added and removed.

    Parameters
    ----------
    found, expected : Statistics or Tally
    held : like `expected`, optional
        The largest intermediate result of `found`.
    exact : bool, or one for every factor, default False
        Whether weights are integers, so that counts must be equal bit by bit.
    tolerance : float, default 1e-12
        Relative tolerance for rounding.
    law : str
        Name of the law, for the message.

    Raises
    ------
    AssertionError

    Examples
    --------
    >>> import tallybayes as tb
    >>> from tallybayes.testing import assert_statistics_close
    >>> assert_statistics_close(tb.Counts([2, 1]) + tb.Counts([0, 1]), tb.Counts([2, 2]), exact=True)
    """
    if isinstance(expected, Tally):
        _require(isinstance(found, Tally), law, "type", type(found), Tally)
        left, right = found.statistics_keys, expected.statistics_keys
        _require(left == right, law, "factors", left, right)
        _require(found.domains == expected.domains, law, "levels", found.domains, expected.domains)
        parts = found.align(expected.domains).statistics
        largest = expected if held is None else held
        exact_flags = [exact] * len(parts) if isinstance(exact, bool) else list(exact)
        aligned = largest.align(expected.domains).statistics
        for number, (factor, expected_part) in enumerate(zip(expected.factors, expected.statistics, strict=True)):
            name = f"{law}, factor {factor!r}"
            largest_before = largest.statistics[number]  # includes groups that were removed
            _check_close(
                parts[number], expected_part, aligned[number], largest_before, exact_flags[number], tolerance, name
            )
    else:
        held = expected if held is None else held
        _check_close(found, expected, held, held, bool(exact), tolerance, law)


def _check_close(found: Any, expected: Any, held: Any, before: Any, exact: bool, tolerance: float, law: str) -> None:
    """Raise AssertionError unless two statistics are equal up to rounding."""
    _require(type(found) is type(expected), law, "type", type(found), type(expected))
    shapes = found.given_shape, expected.given_shape
    _require(shapes[0] == shapes[1], law, "groups", *shapes)
    if isinstance(expected, Counts):
        _require(found.segments == expected.segments, law, "columns", found.segments, expected.segments)
        _check_numbers(found.table, expected.table, law, "counts", _tolerance_of(held.table, exact, tolerance))
    elif isinstance(expected, Totals):
        for name in ("weight", "total"):
            slack = _tolerance_of(getattr(held, name), exact, tolerance)
            _check_numbers(getattr(found, name), getattr(expected, name), law, name, slack)
        # Log factorials are never whole, and those of one row may cancel: rounding goes by the rows.
        slack = tolerance * (np.abs(held.log_base_measure) + held.weight.max(axis=-1, keepdims=True, initial=0.0))
        _check_numbers(found.log_base_measure, expected.log_base_measure, law, "log_base_measure", slack)
    elif isinstance(expected, Moments):
        _check_moments(found, expected, held, _sum_of_squares(before), exact, tolerance, law)
    else:
        _require(_is_close(found, expected, 0.0 if exact else tolerance), law, "statistics", found, expected)


def _check_moments(
    found: Moments, expected: Moments, held: Moments, squares: np.ndarray, exact: bool, tolerance: float, law: str
) -> None:
    """Raise AssertionError unless two moments are equal up to rounding."""
    _require(found.full == expected.full, law, "full", found.full, expected.full)
    _check_numbers(found.weight, expected.weight, law, "weight", _tolerance_of(held.weight, exact, tolerance))
    # Anchors are per column, so the rounding error is relative to the largest rows of the column.
    largest = np.maximum.reduce([squares, _sum_of_squares(found), _sum_of_squares(expected)])
    second = np.broadcast_to(largest, expected.first_sum.shape)
    anchor_error = _ANCHOR_ROUNDING * np.sqrt(second)
    weight = np.broadcast_to(expected.weight, second.shape)
    largest_weight = np.broadcast_to(held.weight, second.shape)
    # For full scatter, blocks of rows are multiplied in float64: removed rows leave rounding errors.
    spread = held.diagonal().scatter if expected.full else np.zeros(second.shape)
    rounding = _DOUBLE_DOUBLE_ROUNDING * np.sqrt(largest_weight * second) + tolerance * np.sqrt(largest_weight * spread)
    mean_slack = tolerance * np.abs(expected.mean) + rounding / np.where(weight > 0, weight, 1.0) + anchor_error
    _check_numbers(found.mean, expected.mean, law, "mean", mean_slack)
    scatter = expected.diagonal().scatter
    slack = (
        tolerance * (scatter + spread)
        + _DOUBLE_DOUBLE_ROUNDING * second
        + 2 * anchor_error * np.sqrt(largest_weight * scatter)
    )
    if expected.full:  # the error of a product of columns follows from those of their variances
        is_rounding, largest_std = scatter <= slack, np.sqrt(np.maximum(scatter, slack))
        involves_rounding = is_rounding[..., :, None] | is_rounding[..., None, :]
        slack = np.where(involves_rounding, _outer(largest_std), _outer(np.sqrt(slack)))
    _check_numbers(found.scatter, expected.scatter, law, "scatter", slack)


def _outer(values: np.ndarray) -> np.ndarray:
    """Return the outer products of the last axis."""
    return np.asarray(values[..., :, None] * values[..., None, :])


def _sum_of_squares(moments: Moments) -> np.ndarray:
    """Return Σ w·x² of every column over all groups."""
    pooled = moments.diagonal().pool_groups()
    return np.asarray(pooled.scatter + pooled.weight * pooled.mean**2)


def _tolerance_of(held: np.ndarray, exact: bool, tolerance: float) -> Any:
    """Return the absolute tolerance for numbers of this size."""
    return 0.0 if exact else tolerance * np.abs(held)


def _check_numbers(found: np.ndarray, expected: np.ndarray, law: str, what: str, slack: float | np.ndarray) -> None:
    """Raise AssertionError unless all numbers agree within `slack`; arrays are broadcast."""
    found, expected, slack = np.broadcast_arrays(found, expected, slack)
    differs = ~(np.abs(found - expected) <= slack)
    if differs.any():
        index = tuple(int(i) for i in np.argwhere(differs)[0])
        position = f"{what} at {index}" if index else what
        _require(False, law, position, float(found[index]), f"{float(expected[index])!r} to {float(slack[index]):.3g}")


def _is_close(found: Statistics, expected: Statistics, tolerance: float) -> bool:
    """Return whether two statistics of a user-defined class are close."""
    return bool(found.isclose(expected, tolerance))


def _require(condition: bool, law: str, what: str, found: object, expected: object) -> None:
    """Raise AssertionError with the law and both values if a condition is false."""
    if not condition:
        raise AssertionError(f"the law {law!r} does not hold: {what} is {found!r}, expected {expected!r}")

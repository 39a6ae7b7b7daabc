"""Agreement: when two statistics, or two tallies, hold the same numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from tallybayes.statistics.counts import Counts
from tallybayes.statistics.moments import Moments
from tallybayes.statistics.sufficient_statistics import Statistics
from tallybayes.statistics.totals import Totals
from tallybayes.tally.tally import Tally

# What double-double arithmetic may leave of the largest second moment in play, after some hundred operations.
_PAIR_ROUNDING = 1e-29
# The kernels round x − anchor once: a row far from the anchor is known to the anchor's last bit only.
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
    """Raise unless two statistics, or two tallies, hold the same.

    Levels may be in any order. Counts and totals agree bit by bit where `exact`, else to `tolerance`; so do weights,
    means and scatters of moments. Rounding is measured by the largest numbers in play, which `held` tells where rows
    were added and taken out again.

    Parameters
    ----------
    found, expected : Statistics or Tally
    held : like `expected`, optional
        The largest that was held on the way to `found`.
    exact : bool, or one for every factor, default False
        Whether counts are whole, so that not a bit may differ.
    tolerance : float, default 1e-12
        The relative difference that rounding may leave.
    law : str
        The law at stake, for the message.

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
        most = expected if held is None else held
        bits = [exact] * len(parts) if isinstance(exact, bool) else list(exact)
        aligned = most.align(expected.domains).statistics
        for number, (factor, wanted) in enumerate(zip(expected.factors, expected.statistics, strict=True)):
            name = f"{law}, factor {factor!r}"
            before = most.statistics[number]  # with the groups that are gone by now
            _agree(parts[number], wanted, aligned[number], before, bits[number], tolerance, name)
    else:
        held = expected if held is None else held
        _agree(found, expected, held, held, bool(exact), tolerance, law)


def _agree(found: Any, expected: Any, held: Any, before: Any, exact: bool, tolerance: float, law: str) -> None:
    _require(type(found) is type(expected), law, "type", type(found), type(expected))
    shapes = found.given_shape, expected.given_shape
    _require(shapes[0] == shapes[1], law, "groups", *shapes)
    if isinstance(expected, Counts):
        _require(found.segments == expected.segments, law, "columns", found.segments, expected.segments)
        _numbers(found.table, expected.table, law, "counts", _slack(held.table, exact, tolerance))
    elif isinstance(expected, Totals):
        for name in ("weight", "total"):
            slack = _slack(getattr(held, name), exact, tolerance)
            _numbers(getattr(found, name), getattr(expected, name), law, name, slack)
        # Log factorials are never whole, and those of one row may cancel: rounding goes by the rows.
        slack = tolerance * (np.abs(held.log_base_measure) + held.weight.max(axis=-1, keepdims=True, initial=0.0))
        _numbers(found.log_base_measure, expected.log_base_measure, law, "log_base_measure", slack)
    elif isinstance(expected, Moments):
        _moments(found, expected, held, _sum_of_squares(before), exact, tolerance, law)
    else:
        _require(_is_close(found, expected, 0.0 if exact else tolerance), law, "statistics", found, expected)


def _moments(
    found: Moments, expected: Moments, held: Moments, squares: np.ndarray, exact: bool, tolerance: float, law: str
) -> None:
    _require(found.full == expected.full, law, "full", found.full, expected.full)
    _numbers(found.weight, expected.weight, law, "weight", _slack(held.weight, exact, tolerance))
    # Anchors are per column: the rounding of every group is that of the largest rows of its column.
    largest = np.maximum.reduce([squares, _sum_of_squares(found), _sum_of_squares(expected)])
    second = np.broadcast_to(largest, expected.first_sum.shape)
    rounded = _ANCHOR_ROUNDING * np.sqrt(second)
    weight = np.broadcast_to(expected.weight, second.shape)
    most = np.broadcast_to(held.weight, second.shape)
    # Blocks of rows are multiplied in float64 for full scatter: what was removed leaves its rounding behind.
    spread = held.diagonal().scatter if expected.full else np.zeros(second.shape)
    moved = _PAIR_ROUNDING * np.sqrt(most * second) + tolerance * np.sqrt(most * spread)
    mean_slack = tolerance * np.abs(expected.mean) + moved / np.where(weight > 0, weight, 1.0) + rounded
    _numbers(found.mean, expected.mean, law, "mean", mean_slack)
    scatter = expected.diagonal().scatter
    slack = tolerance * (scatter + spread) + _PAIR_ROUNDING * second + 2 * rounded * np.sqrt(most * scatter)
    if (
        expected.full
    ):  # a product of two columns is as good as their spreads; one lost in rounding takes its products along
        lost, most_spread = scatter <= slack, np.sqrt(np.maximum(scatter, slack))
        either = lost[..., :, None] | lost[..., None, :]
        slack = np.where(either, _outer(most_spread), _outer(np.sqrt(slack)))
    _numbers(found.scatter, expected.scatter, law, "scatter", slack)


def _outer(values: np.ndarray) -> np.ndarray:
    return np.asarray(values[..., :, None] * values[..., None, :])


def _sum_of_squares(moments: Moments) -> np.ndarray:
    """Σ w·x² of every column over all groups."""
    pooled = moments.diagonal().pool_groups()
    return np.asarray(pooled.scatter + pooled.weight * pooled.mean**2)


def _slack(held: np.ndarray, exact: bool, tolerance: float) -> Any:
    return 0.0 if exact else tolerance * np.abs(held)


def _numbers(found: np.ndarray, expected: np.ndarray, law: str, what: str, slack: Any) -> None:
    """All numbers within `slack` of each other; a weight per column may stand against one for all."""
    found, expected, slack = np.broadcast_arrays(found, expected, slack)
    wrong = ~(np.abs(found - expected) <= slack)
    if wrong.any():
        index = tuple(int(i) for i in np.argwhere(wrong)[0])
        place = f"{what} at {index}" if index else what
        _require(False, law, place, float(found[index]), f"{float(expected[index])!r} to {float(slack[index]):.3g}")


def _is_close(found: Statistics, expected: Statistics, tolerance: float) -> bool:
    return bool(found.isclose(expected, tolerance))


def _require(kept: bool, law: str, what: str, found: object, expected: object) -> None:
    if not kept:
        raise AssertionError(f"the law {law!r} does not hold: {what} is {found!r}, expected {expected!r}")

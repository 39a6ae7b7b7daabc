"""Cost matrices: the cost of every decision for every true class."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from tallybayes.errors import DataError, LabelError


def read_costs(cost: Any, classes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the decisions, and the cost of each for every true class: (classes, decisions)."""
    if hasattr(cost, "to_dict") and hasattr(cost, "index"):  # a data frame: by its labels, not by its order
        cost = cost.to_dict(orient="index")
    if isinstance(cost, Mapping):
        return _costs_by_name(cost, classes)
    return classes, _cost_array(cost, classes.tolist())


def _cost_array(cost: Any, levels: list[Any]) -> np.ndarray:
    """Return a valid square array of costs, (classes, decisions); the decisions are the classes."""
    try:
        costs = np.asarray(cost, dtype=float)
    except (TypeError, ValueError):
        raise DataError.wrong_type("cost", f"{cost!r:.60}", "numbers, or {true: {decided: cost}}") from None
    if costs.shape != (len(levels), len(levels)):
        expected = f"{(len(levels), len(levels))}: a row for every true class, a column for every decided one"
        raise DataError.wrong_shape("cost", costs.shape, expected)
    for row, column in np.argwhere(~np.isfinite(costs)):
        finite_number(float(costs[row, column]), _cost_of(levels[column], levels[row]))
    return costs


def _costs_by_name(cost: Mapping[Any, Any], classes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the decisions and costs of {true: {decision: cost}}; decisions may be other labels than classes."""
    levels = classes.tolist()
    for true in cost:
        if true not in levels:
            raise LabelError.no_such_class(true, levels)
    for true in levels:
        if not isinstance(cost.get(true), Mapping):
            found = f"has {cost[true]!r:.60}" if true in cost else "has no costs"
            raise DataError(f"cost {found} for the true class {true!r}; expected {{decided: cost}} for each class.")
    decisions = list(dict.fromkeys(decided for true in levels for decided in cost[true]))
    if not decisions:
        raise DataError("cost names no decision; expected at least one, as in {true: {decided: cost}}.")
    if set(decisions) == set(levels):
        decisions = levels
        labels = classes
    else:
        labels = _labels(decisions)
    out = np.empty((len(levels), len(decisions)))
    for row, true in enumerate(levels):
        for column, decided in enumerate(decisions):
            if decided not in cost[true]:
                raise DataError(
                    f"cost has no number for the decision {decided!r} where the class is {true!r}; expected one for "
                    "every pair.\n    A decision that is right costs 0."
                )
            out[row, column] = finite_number(cost[true][decided], _cost_of(decided, true))
    return labels, out


def _labels(decisions: list[Any]) -> np.ndarray:
    """Return decisions as an array that keeps their types: [1, "wait"] are not two strings."""
    out = np.empty(len(decisions), dtype=object)
    out[:] = decisions
    kinds = {type(decided) for decided in decisions}
    return np.array(decisions) if kinds in ({str}, {int}, {bool}) else out


def finite_number(value: Any, name: str) -> float:
    """Return a finite number; raise an error that names the parameter for other values."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if not np.isfinite(number):
        raise DataError(
            f"{name} is {value!r}; expected a finite number.\n    A large one forbids as well as inf would."
        )
    return number


def _cost_of(decided: Hashable, true: Hashable) -> str:
    return f"the cost of {decided!r} where the class is {true!r}"

"""What there is to tell of a model, for programs."""

from __future__ import annotations

from itertools import product
from typing import Any


def model_to_json(model: Any) -> dict[str, Any]:
    """What a model is, what it has counted and what it left out."""
    summary = model.summary()
    found: dict[str, Any] = {"model": type(model).__name__, "rows": model.n_rows_}
    settings = {name: value for name, value in model.get_params(deep=False).items() if isinstance(value, str | int)}
    found["settings"] = settings
    if hasattr(model, "target_"):
        found |= {"target": model.target_, "classes": classes_of(model)}
    if hasattr(model, "states_"):
        found["states"] = model.states_
    if hasattr(model, "graph_"):
        found["parents"] = model.graph_.parents
    if hasattr(summary, "members"):
        members = [{"name": one.name, "weight": one.weight, "columns": one.summary.columns} for one in summary.members]
        return found | {"members": members, "dropped_columns": summary.members[0].summary.dropped_columns}
    calibration = getattr(model, "calibration_", None)
    return found | {
        "columns": summary.columns,
        "dropped_columns": summary.dropped_columns,
        "calibration": None if calibration is None else repr(calibration),
    }


def counted(model: Any) -> Any:
    """The model whose tally tells the rows: of a mixture, its heaviest member."""
    return model.members_[0].model if hasattr(model, "members_") else model


def classes_of(model: Any) -> list[dict[str, Any]]:
    """The classes, with the weight of their rows."""
    first = counted(model)
    table = first.tally_[first.target_].table
    return [{"class": label, "rows": float(n)} for label, n in zip(model.classes_.tolist(), table, strict=True)]


def parameters_to_json(model: Any, column: Any, mass: float) -> dict[str, Any]:
    """What was learned of one column: every number, with its interval and what was counted.

    Parameters
    ----------
    model : a fitted model
    column : name
    mass : float
        Of the intervals.
    """
    import numpy as np

    import tallybayes as tb

    table = model.cpt(column) if isinstance(model, tb.BayesianNetwork) else model.parameter_table(column)
    low, high = table.interval(mass)
    counts = _counts(model, column, table)
    lines = []
    groups = list(product(*table.given_levels))
    width = len(table.columns)
    parts = (np.reshape(part, (len(groups), width)) for part in (table.values, low, high, counts))
    for above, *numbers in zip(groups, *parts, strict=True):
        for what, value, start, stop, n in zip(table.columns, *numbers, strict=True):
            line = {"given": dict(zip(map(str, table.given), above, strict=True)), "parameter": what}
            lines.append({**line, "value": value, "low": start, "high": stop, "counted": n})
    found = {"column": column, "title": table.title, "given": list(map(str, table.given)), "lines": lines}
    return found | ({"by": by} if (by := _whose(model)) else {}) | {"covariances": _covariances(model, column)}


def _whose(model: Any) -> str:
    """Whose parameters are shown, where a mixture has several."""
    if not hasattr(model, "members_"):
        return ""
    heaviest = model.members_[0].spec
    return f"{heaviest.name}, the heaviest of {len(model.members_)}: {heaviest.weight:.2f}"


def _counts(model: Any, column: Any, table: Any) -> Any:
    """How often every level was counted, or the weight of the rows behind a parameter; NaN where neither is known."""
    import numpy as np

    shape = table.values.shape
    try:
        statistics = counted(model).tally_[column]
    except KeyError:
        statistics = None
    if statistics is None or not model.n_rows_:  # parameters that were given have no counts
        return np.full(shape, np.nan)
    cells = getattr(statistics, "table", None)
    if cells is not None and cells.shape == shape:
        return cells
    weight = np.asarray(statistics.weight)
    if weight.size != np.prod(shape[:-1], dtype=int):
        return np.full(shape, np.nan)
    return np.broadcast_to(weight.reshape(*shape[:-1], 1), shape)


def _covariances(model: Any, column: Any) -> list[dict[str, Any]]:
    """The covariances of a column with those that a discriminant describes together with it."""
    together = [factor.columns for factor in counted(model).tally_.factors if column in factor.columns[:1000]]
    names = next((columns for columns in together if len(columns) > 1), None)
    if names is None or not hasattr(model, "covariance"):
        return []
    table = model.parameter_table(names)
    if len(table.given) < 2 or "covariance" not in str(table.columns[-1]):
        return []
    return [
        {"given": {str(table.given[0]): label}, "with": other, "value": value}
        for label in table.given_levels[0]
        for other, value in zip(names, list(table[label, column].values())[1:], strict=True)
        if other != column
    ]

"""Models as JSON documents, for `--json`."""

from __future__ import annotations

import contextlib
from itertools import product
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    import tallybayes as tb
    from tallybayes.models.base import Model
    from tallybayes.typing import Name


def model_to_json(model: Model) -> dict[str, Any]:
    """Return the description of a model: its parameters, classes, columns and dropped columns."""
    summary = model.summary()
    document: dict[str, Any] = {"model": type(model).__name__, "rows": model.n_rows_}
    settings = {name: value for name, value in model.get_params(deep=False).items() if isinstance(value, str | int)}
    document["settings"] = settings
    if hasattr(model, "target_"):
        document |= {"target": model.target_, "classes": classes_of(model)}
    if hasattr(model, "states_"):
        document["states"] = model.states_
    if hasattr(model, "graph_"):
        document["parents"] = model.graph_.parents
    if hasattr(summary, "members"):
        members = [
            {"name": member.name, "weight": member.weight, "columns": member.summary.columns}
            for member in summary.members
        ]
        return document | {"members": members, "dropped_columns": summary.members[0].summary.dropped_columns}
    calibration = getattr(model, "calibration_", None)
    return document | {
        "columns": summary.columns,
        "dropped_columns": summary.dropped_columns,
        "calibration": None if calibration is None else repr(calibration),
    }


def counted_model(model: Model) -> Model:
    """Return the model with the tally of the training rows: of an ensemble, the first member that has one."""
    return next(one for one in (*(m.model for m in getattr(model, "members_", ())), model) if hasattr(one, "tally_"))


def classes_of(model: Model) -> list[dict[str, Any]]:
    """Return the classes with the total weight of their rows."""
    known: Any = model
    counts = known.class_count_ if hasattr(known, "class_count_") else known.tally_[known.target_].table
    weights = dict(zip(known.classes_.tolist(), counts.tolist(), strict=True))
    return [{"class": label, "rows": weight} for label, weight in weights.items()]


def parameters_to_json(model: Model, column: Name, mass: float) -> dict[str, Any]:
    """Return the parameters of one column with credible intervals and counts.

    Parameters
    ----------
    model : a fitted model
    column : name
    mass : float
        Probability mass of the credible intervals.
    """
    import numpy as np

    import tallybayes as tb

    table = model.cpt(column) if isinstance(model, tb.BayesianNetwork) else model.parameter_table(column)
    low, high = table.interval(mass)
    counts = _counts(model, column, table)
    lines = []
    groups = list(product(*table.given_levels))
    width = len(table.columns)
    arrays = (np.reshape(array, (len(groups), width)) for array in (table.values, low, high, counts))
    for group, *numbers in zip(groups, *arrays, strict=True):
        for parameter, value, start, stop, n in zip(table.columns, *numbers, strict=True):
            line = {"given": dict(zip(map(str, table.given), group, strict=True)), "parameter": parameter}
            lines.append({**line, "value": value, "low": start, "high": stop, "counted": n})
    document = {"column": column, "title": table.title, "given": list(map(str, table.given)), "lines": lines}
    return document | ({"by": by} if (by := _whose(model)) else {}) | {"covariances": _covariances(model, column)}


def _whose(model: Model) -> str:
    """Return the name and weight of the ensemble member shown; an empty text for a single model."""
    if not hasattr(model, "members_"):
        return ""
    shown = next(member.spec for member in model.members_ if hasattr(member.model, "tally_"))
    return f"{shown.name}, weight {shown.weight:.2f}, one of {len(model.members_)} members"


def _counts(model: Model, column: Name, table: tb.results.ParameterTable) -> np.ndarray:
    """Return the count of every level, or the weight of the rows behind a parameter; NaN if undefined."""
    import numpy as np

    shape = table.values.shape
    with contextlib.suppress(KeyError):
        statistics: Any = counted_model(model).tally_[column]
        counts = getattr(statistics, "table", None)
        if model.n_rows_ and counts is not None and counts.shape == shape:
            return np.asarray(counts)
        weight = np.asarray(statistics.weight)
        if model.n_rows_ and weight.size == np.prod(shape[:-1], dtype=int):
            return np.broadcast_to(weight.reshape(*shape[:-1], 1), shape)
    return np.full(shape, np.nan)  # fixed parameters have no counts


def _covariances(model: Model, column: Name) -> list[dict[str, Any]]:
    """Return the covariances of a column with the other columns of its multivariate Gaussian."""
    blocks = [factor.columns for factor in counted_model(model).tally_.factors if column in factor.columns[:1000]]
    names = next((columns for columns in blocks if len(columns) > 1), None)
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

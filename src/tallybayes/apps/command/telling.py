"""What there is to tell of a model, for programs."""

from __future__ import annotations

from typing import Any


def described(model: Any) -> dict[str, Any]:
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
        return found | {"members": members, "left_out": summary.members[0].summary.left_out}
    calibration = getattr(model, "calibration_", None)
    return found | {
        "columns": summary.columns,
        "left_out": summary.left_out,
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

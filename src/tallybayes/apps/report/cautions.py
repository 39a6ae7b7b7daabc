"""What to be careful about, in plain words."""

from __future__ import annotations

from typing import Any

import numpy as np

_FEW = 20  # rows of a class, below which it is rare
_MISSING = 0.3  # share of missing cells from which on it is said


def cautions(model: Any, evaluation: Any, rows: Any, telling: dict[Any, float] | None, groups: list[str]) -> list[str]:
    """Everything that a careful reader would want to be told.

    Parameters
    ----------
    model : fitted classifier
    evaluation : Evaluation
    rows : Rows
    telling : dict
        By column, how many bits a row loses without it.
    groups : list of str
        Groups of rows that fare worse, said already.
    """
    found = []
    counted = class_weights(model)
    rare = [(label, n) for label, n in counted.items() if n < _FEW]
    if rare:
        shown = ", ".join(f"{label} ({n:g})" for label, n in rare[:5]) + (" …" if len(rare) > 5 else "")
        found.append(f"Few rows were counted of {_classes(rare)} {shown}: what is said of them is uncertain.")
    absent = [label for label, n in zip(evaluation.support, evaluation.support.values(), strict=True) if not n]
    if absent:
        shown = ", ".join(map(str, absent[:5]))
        found.append(f"The rows of this page have no {shown}: nothing is known of how well it is recognised.")
    base = max(evaluation.support.values()) / max(1.0, sum(evaluation.support.values()))
    if evaluation.accuracy.low <= base:
        found.append(
            f"To say the most frequent class of every row is right in {base:.1%}; the model is in "
            f"{evaluation.accuracy.value:.1%} ({evaluation.accuracy.low:.1%} to {evaluation.accuracy.high:.1%}), "
            "which is not surely better."
        )
    if evaluation.calibration_error.low > 0.05:
        found.append(
            f"Probabilities are off by {evaluation.calibration_error.value:.2f} on average: "
            "calibration='auto' when fitting mends that."
        )
    for name, cells in rows.columns.items():
        share = sum(_is_missing(cell) for cell in cells) / max(1, len(cells))
        if share >= _MISSING:
            found.append(f"{share:.0%} of the cells of {name} are missing.")
    nothing = [str(name) for name, bits in (telling or {}).items() if abs(bits) < 1e-3]
    if nothing:
        shown = ", ".join(nothing[:6]) + (f" and {len(nothing) - 6} more" if len(nothing) > 6 else "")
        found.append(f"Without {shown} the answers are as good.")
    worse = [str(name) for name, bits in (telling or {}).items() if bits < -0.01]
    if worse:
        found.append(f"Without {', '.join(worse[:6])} the answers are better on these rows.")
    density = log_densities(model, rows)
    if density is not None and np.isneginf(density).any():
        n = int(np.isneginf(density).sum())
        found.append(f"The model finds {n} of {len(density)} rows impossible: no class could have made them.")
    return found + groups


def class_weights(model: Any) -> dict[Any, float]:
    """How many rows of every class were counted; nothing of a model without counts."""
    tally = getattr(getattr(model, "members_", [None])[0], "model", model)
    try:
        counts = np.asarray(tally.tally_.statistics[0].table, dtype=float).ravel()
    except Exception:  # given, not counted
        return {}
    if len(counts) != len(model.classes_):
        return {}
    return dict(zip(model.classes_.tolist(), counts.tolist(), strict=True))


def log_densities(model: Any, rows: Any) -> np.ndarray | None:
    """log p(row) of the rows; None of a model that has none."""
    if not hasattr(model, "score_samples") or not len(rows):
        return None
    return np.asarray(model.score_samples(rows.columns))


def _classes(rare: list[Any]) -> str:
    return "the class" if len(rare) == 1 else "the classes"


def _is_missing(cell: Any) -> bool:
    return cell is None or (isinstance(cell, float) and cell != cell)

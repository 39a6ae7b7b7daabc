"""What to be careful about, in plain words."""

from __future__ import annotations

from typing import Any

import numpy as np

_FEW = 20  # rows of a class, below which it is rare
_USELESS = 1e-3  # nats of a row, that no one notices
_MISSING = 0.3  # share of missing cells from which on it is said


def report_warnings(
    model: Any, evaluation: Any, rows: Any, importance: Any, groups: list[str], *, held_out: bool = False
) -> list[str]:
    """Return the warnings about a model and some rows and, if these are held out, advice on columns and calibration.

    Parameters
    ----------
    model : fitted classifier
    evaluation : Evaluation
    rows : Rows
    importance : FeatureImportance or None
    groups : list of str
        Warnings about groups of rows.
    held_out : bool, default False
        Whether the model was fitted without these rows: training rows say nothing about what would be better.
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
        found.append(f"The rows of this page have no {shown}: nothing is known of how well it is recognized.")
    base = max(evaluation.support.values()) / max(1.0, sum(evaluation.support.values()))
    if evaluation.accuracy.low <= base:
        found.append(
            f"To say the most frequent class of every row is right in {base:.1%}; the model is in "
            f"{evaluation.accuracy.value:.1%} ({evaluation.accuracy.low:.1%} to {evaluation.accuracy.high:.1%}), "
            "which is not surely better."
        )
    if held_out and evaluation.calibration_error.low > 0.05:
        found.append(
            f"Probabilities are off by {evaluation.calibration_error.value:.2f} on average: "
            "calibration='auto' when fitting mends that."
        )
    for name, cells in rows.columns.items():
        share = sum(_is_missing(cell) for cell in cells) / max(1, len(cells))
        if share >= _MISSING:
            found.append(f"{share:.0%} of the cells of {name} are missing.")
    if held_out and importance is not None:
        found += _advice(importance)
    density = log_densities(model, rows)
    if density is not None and np.isneginf(density).any():
        n = int(np.isneginf(density).sum())
        found.append(f"The model finds {n} of {len(density)} rows impossible: no class could have made them.")
    return found + groups


def _advice(importance: Any) -> list[str]:
    """Which columns held-out rows show to be useless or harmful, by intervals of 95 %."""
    known = list(zip(importance.columns, importance.low, importance.high, strict=True))
    useless = [str(name) for name, low, high in known if low > -_USELESS and high < _USELESS]
    harmful = [str(name) for name, _, high in known if high < -_USELESS]
    found = []
    if useless:
        shown = ", ".join(useless[:6]) + (f" and {len(useless) - 6} more" if len(useless) > 6 else "")
        found.append(f"On these held-out rows the log loss is the same without any one of: {shown}.")
    if harmful:
        shown = ", ".join(harmful[:6])
        found.append(f"On these held-out rows the log loss is lower without any one of: {shown}.")
    return found


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

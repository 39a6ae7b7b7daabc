"""Warnings of the report: rare classes, missing cells, miscalibration, uninformative columns."""

from __future__ import annotations

from typing import Any

import numpy as np

_MIN_CLASS_ROWS = 20  # a class with fewer rows is rare
_MIN_LOSS_CHANGE = 1e-3  # nats per row; smaller changes of the log loss are negligible
_MIN_MISSING = 0.3  # proportion of missing cells that is reported


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
        Whether the model was fitted without these rows. Training rows support no advice.
    """
    messages = []
    rare = [(label, n) for label, n in class_weights(model).items() if n < _MIN_CLASS_ROWS]
    if rare:
        names = ", ".join(f"{label} ({n:g})" for label, n in rare[:5]) + (" …" if len(rare) > 5 else "")
        messages.append(f"Few training rows in {_classes(rare)} {names}: their parameters are uncertain.")
    absent = [label for label, n in zip(evaluation.support, evaluation.support.values(), strict=True) if not n]
    if absent:
        names = ", ".join(map(str, absent[:5]))
        messages.append(f"No row of this page has the class {names}: its recall is undefined.")
    base = max(evaluation.support.values()) / max(1.0, sum(evaluation.support.values()))
    if evaluation.accuracy.low <= base:
        messages.append(
            f"Predicting the most frequent class has accuracy {base:.1%}. The model has accuracy "
            f"{evaluation.accuracy.value:.1%} ({evaluation.accuracy.low:.1%} to {evaluation.accuracy.high:.1%}), "
            "which is not significantly better."
        )
    if held_out and evaluation.calibration_error.low > 0.05:
        messages.append(
            f"The calibration error is {evaluation.calibration_error.value:.2f}: "
            "fit the model with calibration='auto' to calibrate its probabilities."
        )
    for name, cells in rows.columns.items():
        proportion = sum(_is_missing(cell) for cell in cells) / max(1, len(cells))
        if proportion >= _MIN_MISSING:
            messages.append(f"{proportion:.0%} of the cells of {name} are missing.")
    if held_out and importance is not None:
        messages += _advice(importance)
    density = log_densities(model, rows)
    if density is not None and np.isneginf(density).any():
        n = int(np.isneginf(density).sum())
        messages.append(f"{n} of {len(density)} rows have probability 0 under every class of the model.")
    return messages + groups


def _advice(importance: Any) -> list[str]:
    """Return messages about columns that do not reduce the log loss of held-out rows, by 95 % intervals."""
    known = list(zip(importance.columns, importance.low, importance.high, strict=True))
    irrelevant = [str(name) for name, low, high in known if low > -_MIN_LOSS_CHANGE and high < _MIN_LOSS_CHANGE]
    harmful = [str(name) for name, _, high in known if high < -_MIN_LOSS_CHANGE]
    messages = []
    if irrelevant:
        names = ", ".join(irrelevant[:6]) + (f" and {len(irrelevant) - 6} more" if len(irrelevant) > 6 else "")
        messages.append(f"On these held-out rows the log loss is the same without any one of: {names}.")
    if harmful:
        names = ", ".join(harmful[:6])
        messages.append(f"On these held-out rows the log loss is lower without any one of: {names}.")
    return messages


def class_weights(model: Any) -> dict[Any, float]:
    """Return the weight of the training rows of each class; an empty dict for a model without counts."""
    tally = getattr(getattr(model, "members_", [None])[0], "model", model)
    try:
        counts = np.asarray(tally.tally_.statistics[0].table, dtype=float).ravel()
    except Exception:  # fixed parameters, no counts
        return {}
    if len(counts) != len(model.classes_):
        return {}
    return dict(zip(model.classes_.tolist(), counts.tolist(), strict=True))


def log_densities(model: Any, rows: Any) -> np.ndarray | None:
    """Return log p(row) of each row, or None if the model does not define it."""
    if not hasattr(model, "score_samples") or not len(rows):
        return None
    return np.asarray(model.score_samples(rows.columns))


def _classes(rare: list[Any]) -> str:
    """Return "the class" or "the classes"."""
    return "the class" if len(rare) == 1 else "the classes"


def _is_missing(cell: Any) -> bool:
    """Return whether a cell is None or NaN."""
    return cell is None or (isinstance(cell, float) and cell != cell)

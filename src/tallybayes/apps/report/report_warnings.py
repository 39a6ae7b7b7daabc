"""Warnings of the report: rare classes, missing cells, miscalibration, uninformative columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.apps.report.report_analysis import is_missing
from tallybayes.apps.report.report_rows import ReportRows

if TYPE_CHECKING:
    import tallybayes as tb
    from tallybayes.models.classification.classifier import Classifier

_MIN_CLASS_ROWS = 20  # a class with fewer rows is rare
_MIN_LOSS_CHANGE = 1e-3  # nats per row; smaller changes of the log loss are negligible
_MIN_MISSING = 0.3  # proportion of missing cells that is reported


def report_warnings(
    model: Classifier,
    evaluation: tb.Evaluation,
    rows: ReportRows,
    importance: tb.results.FeatureImportance | None,
    groups: list[str],
    *,
    held_out: bool = False,
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
    messages = _class_warnings(model, evaluation)
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
        proportion = sum(is_missing(cell) for cell in cells) / max(1, len(cells))
        if proportion >= _MIN_MISSING:
            messages.append(f"{proportion:.0%} of the cells of {name} are missing.")
    if held_out and importance is not None:
        messages += _advice(importance)
    if n := n_impossible(model, rows):
        messages.append(f"{n} of {len(rows)} rows have probability 0 under every class of the model.")
    return messages + groups


def _class_warnings(model: Classifier, evaluation: tb.Evaluation) -> list[str]:
    """Return warnings about classes with few training rows, and about classes without rows on the page."""
    messages = []
    rare = [f"{label} ({n:g})" for label, n in class_weights(model).items() if n < _MIN_CLASS_ROWS]
    if rare:
        names = ", ".join(rare[:5]) + (" …" if len(rare) > 5 else "")
        noun = "class" if len(rare) == 1 else "classes"
        messages.append(f"Few training rows in the {noun} {names}: their parameters are uncertain.")
    absent = [str(label) for label, n in evaluation.support.items() if not n]
    if absent:
        messages.append(f"No row of this page has the class {', '.join(absent[:5])}: its recall is undefined.")
    return messages


def _advice(importance: tb.results.FeatureImportance) -> list[str]:
    """Return messages about columns that do not reduce the log loss of held-out rows, by 95 % intervals."""
    names = np.array(list(map(str, importance.columns)), dtype=object)
    is_harmful = importance.high < -_MIN_LOSS_CHANGE
    is_irrelevant = (importance.low > -_MIN_LOSS_CHANGE) & (importance.high < _MIN_LOSS_CHANGE)
    messages = []
    for change, chosen in (("the same", names[is_irrelevant]), ("lower", names[is_harmful])):
        more = f" and {len(chosen) - 6} more" if len(chosen) > 6 else ""
        if len(chosen):
            listed = f"{', '.join(chosen[:6])}{more}"
            messages.append(f"On these held-out rows the log loss is {change} without any one of: {listed}.")
    return messages


def class_weights(model: Classifier) -> dict[Any, float]:
    """Return the weight of the training rows of each class; an empty dict for a model without counts."""
    try:
        if hasattr(model, "class_count_"):
            counts = model.class_count_.tolist()
        else:
            statistics: Any = model.tally_.statistics[0]
            counts = np.asarray(statistics.table, dtype=float).ravel().tolist()
    except Exception:  # fixed parameters, no counts
        return {}
    return dict(zip(model.classes_.tolist(), counts, strict=True)) if len(counts) == len(model.classes_) else {}


def n_impossible(model: Classifier, rows: ReportRows) -> int:
    """Return the number of rows with probability 0 under the model; 0 if the model has no density."""
    return int(np.isneginf(model.score_samples(rows.columns)).sum()) if hasattr(model, "score_samples") else 0

"""Computations of a report: feature importance, what-if predictions, example rows, subgroup performance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import tallybayes as tb
from tallybayes.apps.report.report_rows import ReportPredictions, ReportRows

if TYPE_CHECKING:
    from tallybayes.models.classification.classifier import Classifier

_MAX_COLUMNS = 24
_MAX_LEVELS = 9
_MAX_ROWS = 24
_MAX_IMPORTANCE_COLUMNS = 300


def feature_importance(predictions: ReportPredictions) -> tb.results.FeatureImportance | None:
    """Return the feature importance on at most 400 labeled rows, or None if the model does not support it."""
    model = predictions.model
    rows = predictions.rows
    known = np.flatnonzero(predictions.truth >= 0)
    known = np.sort(np.random.default_rng(0).permutation(known)[:400])
    if not len(known) or not hasattr(model, "feature_importance"):
        return None
    columns = list(rows.columns)[:_MAX_IMPORTANCE_COLUMNS] if len(rows.columns) > _MAX_IMPORTANCE_COLUMNS else None
    try:
        return model.feature_importance(rows.take(known), model.classes_[predictions.truth[known]], columns=columns)
    except tb.TallybayesError:
        return None


def leakage(rows: ReportRows, target: str) -> list[str]:
    """Return warnings about columns that almost determine the labels (target leakage)."""
    try:
        return [str(leak) for leak in tb.find_leakage({**rows.columns, target: rows.labels}, target)]
    except tb.TallybayesError:
        return []


def accepts_missing(model: Classifier, rows: ReportRows) -> bool:
    """Return whether the model predicts rows with missing cells."""
    try:
        model.predict_log_proba({name: [None] for name in rows.columns})
    except tb.DataError:
        return False
    return True


def is_additive(model: Classifier) -> bool:
    """Return whether the log-odds are a sum over columns, so that several cells can be changed at once."""
    return isinstance(model, tb.NaiveBayes) and model.calibration_ is None


def what_if_predictions(predictions: ReportPredictions, important: list[Any]) -> dict[str, Any]:
    """Return example rows and their predictions after each change of one cell, for the section What-if."""
    model = predictions.model
    rows = predictions.rows
    names = ([name for name in important if name in rows.columns] or list(rows.columns))[:_MAX_COLUMNS]
    examples = example_rows(predictions, _MAX_ROWS)
    columns = rows.take(examples)
    missing = [None] if accepts_missing(model, rows) else []
    choices = {name: missing + _choices(rows.columns[name]) for name in names}
    base = predictions.log_proba_of(columns)
    changes = [  # by column, choice, row and class
        [predictions.log_proba_of({**columns, name: [cell] * len(examples)}) - base for cell in cells]
        for name, cells in choices.items()
    ]
    return {
        "classes": [str(label) for label in model.classes_.tolist()],
        "additive": is_additive(model),
        "missing": bool(missing),
        "columns": [{"name": str(name), "choices": list(map(format_cell, cells))} for name, cells in choices.items()],
        "rows": [
            {
                "number": int(rows.indices[row]) + 1,
                "truth": str(rows.labels[row]),
                "cells": [format_cell(rows.columns[name][row]) for name in names],
                "log": np.round(base[k], 5).tolist(),
                "changes": [[np.round(change[k], 5).tolist() for change in by_choice] for by_choice in changes],
            }
            for k, row in enumerate(examples)
        ],
    }


def example_rows(predictions: ReportPredictions, n: int) -> list[int]:
    """Return the positions of the most confident errors, the least confident rows and evenly spaced others."""
    is_correct = predictions.predicted == predictions.truth
    by_confidence = np.argsort(-predictions.confidence, kind="stable")
    chosen = (
        by_confidence[is_correct[by_confidence]][:1],
        by_confidence[~is_correct[by_confidence]][:4],
        np.argsort(predictions.confidence, kind="stable")[:4],
        np.unique(np.linspace(0, len(is_correct) - 1, n).astype(int)),
    )
    return list(dict.fromkeys(np.concatenate(chosen).tolist()))[:n]


def underperforming_groups(model: Classifier, target: str, rows: ReportRows, evaluation: tb.Evaluation) -> list[str]:
    """Return warnings about groups with lower accuracy than all rows (disjoint intervals), by columns of few levels."""
    messages = []
    labeled = {**rows.columns, target: rows.labels}
    for name, cells in rows.columns.items():
        levels = [format_cell(cell) for cell in cells]
        if not isinstance(name, str) or not 1 < len(set(levels)) <= 12:
            continue
        groups: Any = tb.evaluate(model, labeled, target, levels).groups
        for level, part in groups.items():
            if part.accuracy.high < evaluation.accuracy.low and part.n_rows >= 20:
                messages.append(
                    f"Rows with {name} = {level} have accuracy {part.accuracy.value:.1%} "
                    f"({part.accuracy.low:.1%} to {part.accuracy.high:.1%}), all rows {evaluation.accuracy.value:.1%}."
                )
    return messages[:6]


def _choices(cells: list[Any]) -> list[Any]:
    """Return values for the section What-if: the most frequent levels, or quantiles of numbers."""
    known = [cell for cell in cells if not is_missing(cell)]
    distinct = dict.fromkeys(known)
    if len(distinct) <= _MAX_LEVELS - 1:
        try:
            return sorted(distinct)
        except TypeError:
            return list(distinct)
    if all(isinstance(cell, int | float) and not isinstance(cell, bool) for cell in distinct):
        quantiles = np.quantile(known, np.linspace(0.02, 0.98, _MAX_LEVELS - 1), method="lower")
        return list(dict.fromkeys(quantiles.tolist()))
    return sorted(distinct, key=lambda cell: -known.count(cell))[: _MAX_LEVELS - 1]


def format_cell(cell: object) -> str:
    """Return a cell as text."""
    if is_missing(cell):
        return "missing"
    return f"{cell:.6g}" if isinstance(cell, float) else str(cell)


def is_missing(cell: object) -> bool:
    """Return whether a cell is None or NaN."""
    return cell is None or (isinstance(cell, float) and cell != cell)

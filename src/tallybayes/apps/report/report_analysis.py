"""Computations of a report: feature importance, what-if predictions, example rows, subgroup performance."""

from __future__ import annotations

from typing import Any

import numpy as np

import tallybayes as tb
from tallybayes.apps.report.report_rows import ReportRows

_MAX_COLUMNS = 24
_MAX_LEVELS = 9
_MAX_ROWS = 24
_MAX_IMPORTANCE_COLUMNS = 300


def feature_importance(model: Any, rows: ReportRows) -> Any:
    """Return the feature importance on at most 400 labeled rows, or None if the model does not support it."""
    codes = class_codes(model, rows.labels)
    known = np.flatnonzero(codes >= 0)
    known = np.sort(np.random.default_rng(0).permutation(known)[:400])
    if not len(known) or not hasattr(model, "feature_importance"):
        return None
    columns = list(rows.columns)[:_MAX_IMPORTANCE_COLUMNS] if len(rows.columns) > _MAX_IMPORTANCE_COLUMNS else None
    try:
        return model.feature_importance(rows.take(known), model.classes_[codes[known]], columns=columns)
    except tb.TallybayesError:
        return None


def leakage(rows: ReportRows, target: str) -> list[str]:
    """Return warnings about columns that almost determine the labels (target leakage)."""
    try:
        return [str(leak) for leak in tb.find_leakage({**rows.columns, target: rows.labels}, target)]
    except tb.TallybayesError:
        return []


def accepts_missing(model: Any, rows: ReportRows) -> bool:
    """Return whether the model predicts rows with missing cells."""
    try:
        model.predict_log_proba({name: [None] for name in rows.columns})
    except tb.DataError:
        return False
    return True


def class_codes(model: Any, labels: list[Any]) -> np.ndarray:
    """Return the class index of each label, −1 for labels that are not classes of the model."""
    index = {label: code for code, label in enumerate(model.classes_.tolist())}
    plain = [label.item() if hasattr(label, "item") else label for label in labels]
    return np.array([index.get(label, index.get(str(label), -1)) for label in plain], dtype=int)


def log_proba(model: Any, columns: dict[Any, list[Any]]) -> np.ndarray:
    """Return log p(class | row), clipped at −700 so that the page can add finite differences to it."""
    return np.maximum(np.asarray(model.predict_log_proba(columns)), -700.0)


def is_additive(model: Any) -> bool:
    """Return whether the log-odds are a sum over columns, so that several cells can be changed at once."""
    return isinstance(model, tb.NaiveBayes) and model.calibration_ is None


def what_if_predictions(model: Any, rows: ReportRows, important: list[Any]) -> dict[str, Any]:
    """Return example rows and their predictions after each change of one cell, for the section What-if."""
    names = [name for name in important if name in rows.columns][:_MAX_COLUMNS] or list(rows.columns)[:_MAX_COLUMNS]
    examples = example_rows(model, rows, _MAX_ROWS)
    missing = [None] if accepts_missing(model, rows) else []
    choices = {name: missing + _choices(rows.columns[name]) for name in names}
    base = log_proba(model, rows.take(examples))
    result: dict[str, Any] = {
        "classes": [str(label) for label in model.classes_.tolist()],
        "additive": is_additive(model),
        "missing": bool(missing),
        "columns": [{"name": str(name), "choices": [format_cell(cell) for cell in choices[name]]} for name in names],
        "rows": [],
    }
    columns = rows.take(examples)
    changes = []
    for name in names:
        by_choice = []
        for cell in choices[name]:
            changed = log_proba(model, {**columns, name: [cell] * len(examples)})
            by_choice.append(changed - base)
        changes.append(np.stack(by_choice) if by_choice else np.zeros((0, *base.shape)))
    for number, row in enumerate(examples):
        result["rows"].append(
            {
                "number": int(rows.indices[row]) + 1,
                "truth": str(rows.labels[row]),
                "cells": [format_cell(rows.columns[name][row]) for name in names],
                "log": _rounded(base[number]),
                "changes": [_rounded(part[:, number]) for part in changes],
            }
        )
    return result


def example_rows(model: Any, rows: ReportRows, n: int) -> list[int]:
    """Return the positions of the most confident errors, the least confident rows and evenly spaced others."""
    if not len(rows):
        return []
    truth = class_codes(model, rows.labels)
    log = log_proba(model, rows.columns)
    predicted = log.argmax(axis=1)
    confidence = log.max(axis=1)
    wrong = [row for row in np.argsort(-confidence, kind="stable").tolist() if predicted[row] != truth[row]]
    uncertain = np.argsort(confidence, kind="stable").tolist()
    correct = [row for row in np.argsort(-confidence, kind="stable").tolist() if predicted[row] == truth[row]]
    spaced = np.unique(np.linspace(0, len(rows) - 1, n).astype(int)).tolist()
    return list(dict.fromkeys([*correct[:1], *wrong[:4], *uncertain[:4], *spaced]))[:n]


def underperforming_groups(model: Any, target: str, rows: ReportRows, evaluation: Any) -> list[str]:
    """Return warnings about groups with lower accuracy than all rows (disjoint intervals), by columns of few levels."""
    messages = []
    for name, cells in rows.columns.items():
        levels = {format_cell(cell) for cell in cells}
        if not isinstance(name, str) or not 1 < len(levels) <= 12:
            continue
        labeled = {**rows.columns, target: rows.labels}
        groups = tb.evaluate(model, labeled, target, [format_cell(cell) for cell in cells]).groups
        for level, part in groups.items():
            if part.accuracy.high < evaluation.accuracy.low and part.n_rows >= 20:
                messages.append(
                    f"Rows with {name} = {level} have accuracy {part.accuracy.value:.1%} "
                    f"({part.accuracy.low:.1%} to {part.accuracy.high:.1%}), all rows {evaluation.accuracy.value:.1%}."
                )
    return messages[:6]


def _choices(cells: list[Any]) -> list[Any]:
    """Return values for the section What-if: the most frequent levels, or quantiles of numbers."""
    known = [cell for cell in cells if cell is not None and cell == cell]
    distinct = dict.fromkeys(known)
    if len(distinct) <= _MAX_LEVELS - 1:
        try:
            return sorted(distinct)
        except TypeError:
            return list(distinct)
    if all(isinstance(cell, int | float) and not isinstance(cell, bool) for cell in distinct):
        ordered = sorted(known)
        quantiles = np.linspace(0.02, 0.98, _MAX_LEVELS - 1)
        return list(dict.fromkeys(ordered[int(q * (len(ordered) - 1))] for q in quantiles))
    by_frequency = sorted(distinct, key=lambda cell: -known.count(cell))
    return by_frequency[: _MAX_LEVELS - 1]


def format_cell(cell: Any) -> str:
    """Return a cell as text."""
    if cell is None or (isinstance(cell, float) and cell != cell):
        return "missing"
    if isinstance(cell, float):
        return f"{cell:.6g}"
    return str(cell)


def _rounded(array: np.ndarray) -> Any:
    """Round to the digits that the page shows."""
    return np.round(array, 5).tolist()

"""What a report asks a model about rows: what every column adds, what would change an answer, who fares worse."""

from __future__ import annotations

from typing import Any

import numpy as np

import tallybayes as tb
from tallybayes.apps.report.report_rows import ReportRows

_MOST_COLUMNS, _MOST_LEVELS, _MOST_ROWS = 24, 9, 24
_MOST_HIDDEN = 300  # columns that are hidden in turn


def importance(model: Any, rows: ReportRows) -> Any:
    """The feature importance by some of the rows; None of models that have none."""
    codes = codes_of(model, rows.labels)
    known = np.flatnonzero(codes >= 0)
    known = np.sort(np.random.default_rng(0).permutation(known)[:400])
    if not len(known) or not hasattr(model, "feature_importance"):
        return None
    columns = list(rows.columns)[:_MOST_HIDDEN] if len(rows.columns) > _MOST_HIDDEN else None
    try:
        return model.feature_importance(rows.take(known), model.classes_[codes[known]], columns=columns)
    except tb.TallybayesError:
        return None


def leakage(rows: ReportRows, target: str) -> list[str]:
    """Warnings of columns that determine the labels almost by themselves."""
    try:
        return [str(leak) for leak in tb.find_leakage({**rows.columns, target: rows.labels}, target)]
    except tb.TallybayesError:
        return []


def takes_missing(model: Any, rows: ReportRows) -> bool:
    """Whether the model answers about rows with missing cells."""
    try:
        model.predict_log_proba({name: [None] for name in rows.columns})
    except tb.DataError:
        return False
    return True


def codes_of(model: Any, labels: list[Any]) -> np.ndarray:
    """The class of every label, −1 where the model does not know it."""
    index = {label: code for code, label in enumerate(model.classes_.tolist())}
    plain = [label.item() if hasattr(label, "item") else label for label in labels]
    return np.array([index.get(label, index.get(str(label), -1)) for label in plain], dtype=int)


def log_proba(model: Any, columns: dict[Any, list[Any]]) -> np.ndarray:
    """log p(class | row), not below −700, so that a page can add to it."""
    return np.maximum(np.asarray(model.predict_log_proba(columns)), -700.0)


def is_additive(model: Any) -> bool:
    """Whether every column adds to the log-odds by itself, so that several may be changed at once."""
    return isinstance(model, tb.NaiveBayes) and model.calibration_ is None


def what_if_predictions(model: Any, rows: ReportRows, important: list[Any]) -> dict[str, Any]:
    """Some rows, and what the model says where one of their cells is another, for a reader to try out."""
    names = [name for name in important if name in rows.columns][:_MOST_COLUMNS] or list(rows.columns)[:_MOST_COLUMNS]
    shown = example_rows(model, rows, _MOST_ROWS)
    absent = [None] if takes_missing(model, rows) else []
    choices = {name: absent + _choices(rows.columns[name]) for name in names}
    base = log_proba(model, rows.take(shown))
    found: dict[str, Any] = {
        "classes": [str(label) for label in model.classes_.tolist()],
        "additive": is_additive(model),
        "missing": bool(absent),
        "columns": [{"name": str(name), "choices": [written(cell) for cell in choices[name]]} for name in names],
        "rows": [],
    }
    columns = rows.take(shown)
    moved = []
    for name in names:
        by_choice = []
        for cell in choices[name]:
            other = log_proba(model, {**columns, name: [cell] * len(shown)})
            by_choice.append(other - base)
        moved.append(np.stack(by_choice) if by_choice else np.zeros((0, *base.shape)))
    for number, row in enumerate(shown):
        found["rows"].append(
            {
                "number": int(rows.places[row]) + 1,
                "truth": str(rows.labels[row]),
                "cells": [written(rows.columns[name][row]) for name in names],
                "log": _rounded(base[number]),
                "changes": [_rounded(part[:, number]) for part in moved],
            }
        )
    return found


def example_rows(model: Any, rows: ReportRows, n: int) -> list[int]:
    """Rows worth a look: the surest mistakes, the most doubtful, and others evenly."""
    if not len(rows):
        return []
    truth, log = codes_of(model, rows.labels), log_proba(model, rows.columns)
    told, sure = log.argmax(axis=1), log.max(axis=1)
    wrong = [row for row in np.argsort(-sure, kind="stable").tolist() if told[row] != truth[row]]
    doubtful = np.argsort(sure, kind="stable").tolist()
    right = [row for row in np.argsort(-sure, kind="stable").tolist() if told[row] == truth[row]]
    even = np.unique(np.linspace(0, len(rows) - 1, n).astype(int)).tolist()
    return list(dict.fromkeys([*right[:1], *wrong[:4], *doubtful[:4], *even]))[:n]


def underperforming_groups(model: Any, target: str, rows: ReportRows, evaluation: Any) -> list[str]:
    """Groups of rows, by columns of few values, that fare surely worse than all together."""
    found = []
    for name, cells in rows.columns.items():
        levels = {written(cell) for cell in cells}
        if not isinstance(name, str) or not 1 < len(levels) <= 12:
            continue
        labeled = {**rows.columns, target: rows.labels}
        groups = tb.evaluate(model, labeled, target, [written(cell) for cell in cells]).groups
        for level, part in groups.items():
            if part.accuracy.high < evaluation.accuracy.low and part.n_rows >= 20:
                found.append(
                    f"Rows with {name} = {level} fare worse: {part.accuracy.value:.1%} are right "
                    f"({part.accuracy.low:.1%} to {part.accuracy.high:.1%}), of all {evaluation.accuracy.value:.1%}."
                )
    return found[:6]


def _choices(cells: list[Any]) -> list[Any]:
    """Values to try: the most frequent labels, or numbers from low to high."""
    known = [cell for cell in cells if cell is not None and cell == cell]
    different = dict.fromkeys(known)
    if len(different) <= _MOST_LEVELS - 1:
        try:
            return sorted(different)
        except TypeError:
            return list(different)
    if all(isinstance(cell, int | float) and not isinstance(cell, bool) for cell in different):
        ordered = sorted(known)
        steps = np.linspace(0.02, 0.98, _MOST_LEVELS - 1)
        return list(dict.fromkeys(ordered[int(step * (len(ordered) - 1))] for step in steps))
    often = sorted(different, key=lambda cell: -known.count(cell))
    return often[: _MOST_LEVELS - 1]


def written(cell: Any) -> str:
    """A cell as a reader sees it."""
    if cell is None or (isinstance(cell, float) and cell != cell):
        return "missing"
    if isinstance(cell, float):
        return f"{cell:.6g}"
    return str(cell)


def _rounded(array: np.ndarray) -> Any:
    return np.round(array, 5).tolist()

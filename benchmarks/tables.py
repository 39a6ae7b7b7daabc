"""Classifiers as they come, on the tables of labels and numbers in ``../shared/data/tables``, beside scikit-learn's.

Run it with ``python benchmarks/tables.py [name …]``: all tables, or some. Outer folds are stratified, five, seed 0;
whatever is chosen is chosen inside the training rows. Columns in which no training cell is known are dropped for all.
``--only CONTENDER`` runs some contenders, ``--json FILE`` keeps every number, ``--folds N`` takes the first N folds.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import CategoricalNB, GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, OrdinalEncoder, StandardScaler

import tallybayes as tb

TABLES = Path(__file__).resolve().parents[2] / "shared" / "data" / "tables"
SMALLEST = 1e-15  # probabilities that a log loss is taken of


def read_arff(path: Path) -> tuple[pd.DataFrame, list[tuple[str, str]]]:
    """A table, and the names and kinds of its columns."""
    attributes: list[tuple[str, str]] = []
    rows: list[list[str]] = []
    in_data = False
    for raw in gzip.decompress(path.read_bytes()).decode("latin-1").splitlines():
        line = raw.strip()
        if not line or line[0] == "%":
            continue
        if in_data:
            cells = next(csv.reader([line], quotechar="'", skipinitialspace=True))
            rows.append([cell.strip().strip("'\"") for cell in cells])
        elif line.lower().startswith("@attribute"):
            rest = line[10:].strip()
            if rest[0] in "'\"":
                end = rest.index(rest[0], 1)
                attributes.append((rest[1:end], rest[end + 1 :].strip()))
            else:
                name, kind = rest.split(None, 1)
                attributes.append((name, kind))
        elif line.lower().startswith("@data"):
            in_data = True
    rows = [row for row in rows if len(row) == len(attributes)]
    frame = {}
    for place, (name, kind) in enumerate(attributes):
        cells: list[Any] = [None if row[place] == "?" else row[place] for row in rows]
        if kind.lower()[:4] in ("real", "nume", "inte"):
            frame[name] = pd.Series([None if cell is None else float(cell) for cell in cells], dtype=float)
        else:
            frame[name] = pd.Series(cells, dtype=object)
    return pd.DataFrame(frame), attributes


def tables(wanted: list[str]) -> Iterator[tuple[str, pd.DataFrame, np.ndarray]]:
    """Every table of at least 80 rows with a target of labels; classes of fewer than ten rows are left out."""
    for path in sorted(TABLES.glob("*.arff.gz")):
        name = path.name.removesuffix(".arff.gz")
        if wanted and name not in wanted:
            continue
        frame, attributes = read_arff(path)
        names = [name for name, _ in attributes]
        target = next((column for column in names if column.lower() == "class"), names[-1])
        if frame[target].dtype != object or len(frame) < 80:
            continue
        frame = frame[frame[target].notna()].reset_index(drop=True)
        y = np.array(frame.pop(target).tolist())
        counts = pd.Series(y).value_counts()
        kept = np.isin(y, counts[counts >= 10].index)
        frame, y = frame[kept].reset_index(drop=True), y[kept]
        if len(set(y)) > 1:
            yield name, frame, y


# ---- Contenders: from training rows to a function that gives classes and probabilities ------------------------------


def _numbers(X: pd.DataFrame) -> list[str]:
    return [column for column in X if X[column].dtype == float]


def _filled(X: pd.DataFrame) -> pd.DataFrame:
    """Missing labels as a label of their own, as scikit-learn's encoders need it."""
    X = X.copy()
    for column in X:
        if X[column].dtype == object:
            X[column] = X[column].where(X[column].notna(), "?")
    return X


def _pipeline(numbers: Any, labels: Any, model: Any) -> Callable[..., Any]:
    def fit(X: pd.DataFrame, y: np.ndarray) -> Any:
        X, number = _filled(X), _numbers(X)
        label = [column for column in X if column not in number]
        chosen = make_column_transformer((numbers, number), (labels, label), sparse_threshold=0.0)
        fitted = make_pipeline(chosen, model).fit(X, y)
        return fitted.classes_, lambda rows: fitted.predict_proba(_filled(rows))

    return fit


def _logistic(X: pd.DataFrame, y: np.ndarray) -> Any:
    numbers = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    return _pipeline(numbers, OneHotEncoder(handle_unknown="ignore"), LogisticRegression(max_iter=500))(X, y)


def _gaussian(X: pd.DataFrame, y: np.ndarray) -> Any:
    return _pipeline(SimpleImputer(strategy="median"), OneHotEncoder(handle_unknown="ignore"), GaussianNB())(X, y)


class _Coded(CategoricalNB):
    """Naive Bayes over codes, the last of which stands for all that was not seen."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> Any:
        self.min_categories = (np.asarray(X).max(axis=0) + 2).astype(int)
        return super().fit(X + 0, y)

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return super().predict_proba(np.where(X < 0, np.asarray(self.min_categories) - 1, X))


def _categorical(X: pd.DataFrame, y: np.ndarray) -> Any:
    numbers = make_pipeline(
        SimpleImputer(strategy="median"), KBinsDiscretizer(8, encode="ordinal", strategy="quantile")
    )
    labels = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    return _pipeline(numbers, labels, _Coded())(X, y)


def _boosting(X: pd.DataFrame, y: np.ndarray) -> Any:
    levels = {c: list(pd.unique(X[c].dropna()))[:250] for c in X if X[c].dtype == object}

    def typed(rows: pd.DataFrame) -> pd.DataFrame:
        return rows.assign(**{c: pd.Categorical(rows[c], known) for c, known in levels.items()})

    model = HistGradientBoostingClassifier(
        max_iter=200,
        early_stopping=True,
        validation_fraction=0.2,
        n_iter_no_change=10,
        random_state=0,
        categorical_features="from_dtype",
    ).fit(typed(X), y)
    return model.classes_, lambda rows: model.predict_proba(typed(rows))


def _ours(make: Callable[[], Any]) -> Callable[..., Any]:
    def fit(X: pd.DataFrame, y: np.ndarray) -> Any:
        model = make().fit(X, y)
        report = getattr(model, "leaderboard_", None)
        return model.classes_, model.predict_proba, None if report is None else report.loss

    return fit


CONTENDERS: dict[str, Callable[..., Any]] = {
    "NaiveBayes()": _ours(tb.NaiveBayes),
    "NaiveBayes('suggest')": _ours(lambda: tb.NaiveBayes("suggest")),
    "… calibration='auto'": _ours(lambda: tb.NaiveBayes("suggest", calibration="auto")),
    "AveragedOneDependence": _ours(lambda: tb.AveragedOneDependence(calibration="auto")),
    "AutoClassifier(single=True)": _ours(lambda: tb.AutoClassifier(single=True)),
    "AutoClassifier": _ours(tb.AutoClassifier),
    "logistic regression": _logistic,
    "gradient boosting": _boosting,
    "GaussianNB": _gaussian,
    "CategoricalNB": _categorical,
}
PEER = "logistic regression"


def judge(found: Any, X: pd.DataFrame, y: np.ndarray) -> dict[str, float]:
    """Accuracy, log loss and calibration error on rows that were not trained on, and the time to predict them."""
    start = time.perf_counter()
    P = np.asarray(found[1](X))
    seconds = time.perf_counter() - start
    place = {label: k for k, label in enumerate(found[0])}
    truth = np.array([place.get(label, -1) for label in y])
    p = np.where(truth >= 0, P[np.arange(len(y)), truth], 0.0)
    out = {
        "accuracy": float((P.argmax(axis=1) == truth).mean()),
        "log loss": float(-np.log(np.clip(p, SMALLEST, 1)).mean()),
        "calibration": calibration_error(P.max(axis=1), P.argmax(axis=1) == truth),
        "predict": seconds,
    }
    if len(found) > 2 and found[2] is not None:
        out["claimed"] = found[2]
    return out


def calibration_error(top: np.ndarray, right: np.ndarray, n_bins: int = 10) -> float:
    """How far the top class's probability is from how often it is right, on average over bins of equal size."""
    parts = np.array_split(np.argsort(top, kind="stable"), n_bins)
    return float(sum(abs(top[part].sum() - right[part].sum()) for part in parts if len(part)) / len(top))


def run(name: str, X: pd.DataFrame, y: np.ndarray, contenders: list[str], n_folds: int) -> dict[str, dict[str, float]]:
    """Every contender on one table: means over the folds; the time to fit is the sum."""
    found: dict[str, list[dict[str, float]]] = {what: [] for what in contenders}
    splits = StratifiedKFold(5, shuffle=True, random_state=0).split(X, y)
    for _, (train, test) in zip(range(n_folds), splits, strict=False):
        A, B, a, b = X.iloc[train], X.iloc[test], y[train], y[test]
        known = [column for column in A if A[column].notna().any()]
        for what in contenders:
            start = time.perf_counter()
            fitted = CONTENDERS[what](A[known], a)
            seconds = time.perf_counter() - start
            found[what].append(judge(fitted, B[known], b) | {"fit": seconds})
    return {what: {key: float(np.mean([f[key] for f in folds])) for key in folds[0]} for what, folds in found.items()}


def summary(results: dict[str, dict[str, dict[str, float]]], contenders: list[str]) -> str:
    """Means, medians and wins over the tables, as a table of Markdown."""
    lines = [
        f"| {len(results)} tables | log loss | median | accuracy | calibration error | better than {PEER} | fit, s | "
        "predict, s |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for what in contenders:
        part = [table[what] for table in results.values()]
        wins = sum(t[what]["log loss"] < t[PEER]["log loss"] for t in results.values() if PEER in t)
        mean = {key: np.mean([one[key] for one in part]) for key in ("log loss", "accuracy", "calibration")}
        middle, fit, predict = (
            f([one[k] for one in part]) for f, k in ((np.median, "log loss"), (sum, "fit"), (sum, "predict"))
        )
        won = "" if what == PEER else f"{wins}"
        lines.append(
            f"| {what} | {mean['log loss']:.4f} | {middle:.4f} | {mean['accuracy']:.4f} | {mean['calibration']:.4f} | "
            f"{won} | {fit:.2f} | {predict:.2f} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Run what the command line asks for, and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="tables; all if left out")
    parser.add_argument("--only", action="append", choices=list(CONTENDERS), help="contenders; all if left out")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # one core for every contender
    contenders, results = chosen.only or list(CONTENDERS), {}
    for name, X, y in tables(chosen.names):
        results[name] = run(name, X, y, contenders, chosen.folds)
        shown = "  ".join(f"{what} {one['log loss']:.3f} {one['fit']:.2f}s" for what, one in results[name].items())
        print(f"{name:27s}{len(y):6d} × {X.shape[1]:<3d} {shown}", file=sys.stderr, flush=True)
        if chosen.json:
            chosen.json.write_text(json.dumps(results, indent=1))
    print(summary(results, contenders) + "\n")
    for what in contenders:
        claims = [(t[what]["log loss"], t[what]["claimed"]) for t in results.values() if "claimed" in t[what]]
        if claims:
            gap = np.mean([outer - claimed for outer, claimed in claims])
            print(f"{what}: outer log loss minus the reported one: {gap:+.4f} on the mean\n")
    print(f"Log loss by table:\n\n| table | {' | '.join(contenders)} |\n|---|{'---|' * len(contenders)}")
    for name, found in results.items():
        print(f"| {name} | " + " | ".join(f"{found[what]['log loss']:.3f}" for what in contenders) + " |")


if __name__ == "__main__":
    main()

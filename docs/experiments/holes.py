"""Tables with three cells in ten removed: ``python docs/experiments/holes.py``.

Cells are removed at random from training and test rows alike, besides those that are missing anyway. Every figure is a
mean over ten splits; two thirds of the rows are for learning, one third is for testing.
"""

from __future__ import annotations

import csv
import gzip
import re
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from real_data import DATA
from sklearn.compose import make_column_transformer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import tallybayes as tb

SPLITS = 10
OURS = ("naive Bayes", "families by evidence", "full covariance", "tied covariance")


def arff(name: str) -> pd.DataFrame:
    """A table in Weka's format: real columns as numbers, the others as labels, ``?`` missing."""
    lines = gzip.decompress((DATA / "tables" / f"{name}.arff.gz").read_bytes()).decode("latin-1").splitlines()
    lines = [line.strip() for line in lines if line.strip() and not line.startswith("%")]
    start = next(place for place, line in enumerate(lines) if line.lower() == "@data")
    heads = [re.match(r"@attribute\s+('[^']*'|\S+)\s+(.*)", line, re.IGNORECASE) for line in lines[:start]]
    kinds = {head[1].strip("'"): head[2].lower() for head in heads if head}
    rows = csv.reader(lines[start + 1 :], quotechar="'", skipinitialspace=True)
    table = pd.DataFrame([[cell.strip() for cell in row] for row in rows], columns=list(kinds))
    table = table.mask(table == "?")
    for column, kind in kinds.items():
        if kind in ("real", "numeric", "integer"):
            table[column] = table[column].astype(float)
    return table


def birds() -> pd.DataFrame:
    """The penguins of Palmer Station."""
    return pd.read_csv(DATA / "tables" / "penguins.csv").drop(columns="year")


def tables() -> dict[str, tuple[pd.DataFrame, pd.Series]]:
    """Features and classes."""
    people = pd.read_csv(DATA / "tables" / "titanic.csv").astype({"pclass": str})
    chosen = ["pclass", "sex", "age", "sibsp", "parch", "fare", "embarked"]  # the others repeat these
    found = {"penguins": (birds().drop(columns="species"), birds()["species"])}
    found["titanic"] = people[chosen], people["survived"]
    for name, target in {"heart.c": "num", "credit.a": "class", "wine": "class", "diabetes": "class"}.items():
        found[name] = arff(name).drop(columns=target), arff(name)[target]
    vehicle = arff("vehicle")
    return found | {"vehicle": (vehicle.iloc[:, :-1], vehicle.iloc[:, -1])}


def split_columns(X: pd.DataFrame) -> tuple[list[str], list[str]]:
    """The columns of numbers, and those of labels."""
    numbers = list(X.select_dtypes("number"))
    return numbers, [name for name in X if name not in numbers]


def with_block(X: pd.DataFrame, covariance: str) -> Any:
    """A discriminant or, where there are labels too, naive Bayes whose numbers are one block."""
    numbers, labels = split_columns(X)
    if not labels:
        return tb.GaussianDiscriminant(covariance)
    family = tb.GaussianDiscriminant.families[covariance]()
    return tb.NaiveBayes({tuple(numbers): family} | {name: tb.Categorical() for name in labels})


def imputed(imputer: Any, X: pd.DataFrame) -> Any:
    """Numbers imputed and scaled, labels imputed by the most frequent one, then one-hot."""
    numbers, labels = split_columns(X)
    steps = [(make_pipeline(imputer, StandardScaler()), numbers)]
    if labels:
        hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False, drop="if_binary")
        steps.append((make_pipeline(SimpleImputer(strategy="most_frequent"), hot), labels))
    return make_column_transformer(*steps)


def fitted(X: pd.DataFrame, y: pd.Series, test: pd.DataFrame) -> Iterator[tuple[str, Any, Any]]:
    """Name, fitted model, and the test rows as it reads them."""
    models = (
        tb.NaiveBayes(),
        tb.NaiveBayes(tb.suggest_families(X, y).columns),
        with_block(X, "full"),
        with_block(X, "tied"),
    )
    for name, model in zip(OURS, models, strict=True):
        yield name, model.fit(X, y), test
    for kind, imputer in (("mean", SimpleImputer()), ("iterative", IterativeImputer(random_state=0))):
        prepare = imputed(imputer, X).fit(X)
        peers = (GaussianNB(), LinearDiscriminantAnalysis(), LogisticRegression(max_iter=2000))
        for name, model in zip(("GaussianNB", "LDA", "logistic"), peers, strict=True):
            yield f"{kind} + {name}", model.fit(prepare.transform(X), y), prepare.transform(test)


def measure(X: pd.DataFrame, y: pd.Series, seed: int, removed: float) -> dict[str, tuple[float, float]]:
    """Log loss and accuracy of every model on one split."""
    gaps = X.mask(np.random.default_rng(seed).random(X.shape) < removed)
    train, test, y_train, answers = train_test_split(gaps, y, test_size=1 / 3, random_state=seed, stratify=y)
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of imputers that stop before they converge, and of levels not seen
        for name, model, rows in fitted(train, y_train, test):
            p = model.predict_proba(rows)
            right = np.mean(model.classes_[p.argmax(axis=1)] == answers)
            found[name] = log_loss(answers, p, labels=model.classes_), right
    return found


def main() -> None:
    """Print log loss and accuracy of every model on every table, and how often ours beats the best of the others."""
    if not (DATA / "tables").is_dir():
        print(f"no data at {DATA / 'tables'}: nothing to measure.")
        return
    for removed in (0.0, 0.3):
        results = {}
        for name, (X, y) in tables().items():
            splits = [measure(X, y, seed, removed) for seed in range(SPLITS)]
            results[name] = np.array([list(split.values()) for split in splits])
            rows = list(splits[0])
        for number, what in enumerate(("log loss", "accuracy")):
            shown = pd.DataFrame({name: found[..., number].mean(axis=0) for name, found in results.items()}, index=rows)
            print(f"\n{what}, {removed:.0%} of the cells removed\n{shown.round(3).to_string()}")
        print(
            f"\nsplits of {SPLITS} on which the tied covariance has less log loss than LDA, and than the best pipeline"
        )
        for name, found in results.items():
            loss = pd.DataFrame(found[..., 0], columns=rows)
            ours, theirs = loss["tied covariance"], loss[rows[len(OURS) :]]
            same = theirs.filter(like="LDA").mean().idxmin()  # of each, the imputer that did better on the test rows
            best = theirs.mean().idxmin()
            print(f"{name}: {(ours < loss[same]).sum()} ({same}), {(ours < loss[best]).sum()} ({best})")


if __name__ == "__main__":
    main()

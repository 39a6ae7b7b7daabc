"""Tables with three cells in ten removed: ``python docs/pictures/holes.py``.

Cells are removed at random from training and test rows alike, on top of those that are missing anyway. Each figure is
the mean log-loss on the test rows, a third of the table, over ten splits.
"""

from __future__ import annotations

import csv
import gzip
import re
import warnings

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

REMOVED, SPLITS = 0.3, 10


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


def tables() -> dict[str, tuple[pd.DataFrame, pd.Series]]:
    """Features and classes."""
    birds = pd.read_csv(DATA / "tables" / "penguins.csv").drop(columns="year")
    people = pd.read_csv(DATA / "tables" / "titanic.csv")
    people["pclass"] = people["pclass"].astype(str)
    chosen = people[["pclass", "sex", "age", "sibsp", "parch", "fare", "embarked"]]
    found = {
        "penguins": (birds.drop(columns="species"), birds["species"]),
        "titanic": (chosen, people["survived"]),
    }
    for name in ("heart.c", "credit.a", "wine", "diabetes", "vehicle"):
        table = arff(name)
        target = "class" if "class" in table else table.columns[-1]
        found[name] = table.drop(columns=target), table[target]
    return found


def pipeline(imputer, classifier, X: pd.DataFrame):
    """Impute, scale and one-hot, then classify."""
    numbers, labels = split_columns(X)
    steps = [(make_pipeline(imputer, StandardScaler()), numbers)]
    if labels:
        often = SimpleImputer(strategy="most_frequent")
        hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False, drop="if_binary")
        steps.append((make_pipeline(often, hot), labels))
    return make_pipeline(make_column_transformer(*steps), classifier)


def split_columns(X: pd.DataFrame) -> tuple[list[str], list[str]]:
    """The columns of numbers, and those of labels."""
    numbers = list(X.select_dtypes("number"))
    return numbers, [name for name in X if name not in numbers]


def models(X: pd.DataFrame):
    """Every model, and the columns it can read."""
    numbers, labels = split_columns(X)
    block = {tuple(numbers): tb.MultivariateGaussian()} | {name: tb.Categorical() for name in labels}
    tied = {tuple(numbers): tb.TiedMultivariateGaussian()} | {name: tb.Categorical() for name in labels}
    yield "naive Bayes", tb.NaiveBayes(), list(X)
    yield "naive Bayes, full block", tb.NaiveBayes(block), list(X)
    yield "naive Bayes, tied block", tb.NaiveBayes(tied), list(X)
    yield "discriminant, full", tb.GaussianDiscriminant("full"), numbers
    yield "discriminant, tied", tb.GaussianDiscriminant("tied"), numbers
    for kind, imputer in (("mean", SimpleImputer()), ("iterative", IterativeImputer(random_state=0, max_iter=20))):
        yield f"{kind}, GaussianNB", pipeline(imputer, GaussianNB(), X), list(X)
        yield f"{kind}, LDA", pipeline(imputer, LinearDiscriminantAnalysis(), X), list(X)
        yield f"{kind}, logistic", pipeline(imputer, LogisticRegression(max_iter=2000), X), list(X)


def measure(X: pd.DataFrame, y: pd.Series, seed: int, removed: float) -> dict[str, tuple[float, float]]:
    """Log-loss and accuracy of every model on one split."""
    rng = np.random.default_rng(seed)
    gaps = X.mask(rng.random(X.shape) < removed)
    train, test, y_train, y_test = train_test_split(gaps, y, test_size=1 / 3, random_state=seed, stratify=y)
    found = {}
    for name, model, columns in models(X):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of imputers that stop before they converge, and levels not seen
            p = model.fit(train[columns], y_train).predict_proba(test[columns])
        found[name] = log_loss(y_test, p, labels=model.classes_), np.mean(model.classes_[p.argmax(axis=1)] == y_test)
    return found


def main() -> None:
    """Print the log-loss of every model on every table."""
    if not (DATA / "tables").is_dir():
        print(f"no data at {DATA / 'tables'}: nothing to measure.")
        return
    data = tables()
    for removed in (0.0, REMOVED):
        results = {
            name: pd.DataFrame([measure(X, y, seed, removed) for seed in range(SPLITS)])
            for name, (X, y) in data.items()
        }
        for number, what in enumerate(("log-loss", "accuracy")):
            shown = {name: table.map(lambda pair, k=number: pair[k]).mean() for name, table in results.items()}
            print(f"{what}, {removed:.0%} of the cells removed")
            print(pd.DataFrame(shown).round(3).to_string())


if __name__ == "__main__":
    main()

"""Naive Bayes beside logistic regression on the Adult census table: ``python docs/experiments/adult.py``.

Reads ``../shared/data/tables``: 32,561 rows to learn from and 16,281 to test on, six columns of numbers, eight of
labels, some cells missing.
"""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
from real_data import DATA
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

import tallybayes as tb

NAMES = [
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education_num",
    "marital_status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital_gain",
    "capital_loss",
    "hours_per_week",
    "native_country",
    "income",
]


def adult(file: str) -> tuple[pd.DataFrame, np.ndarray]:
    """The columns and the incomes; ``fnlwgt``, a survey weight, is no feature."""
    options = {"header": None, "names": NAMES, "na_values": "?", "skipinitialspace": True, "comment": "|"}
    rows = pd.read_csv(DATA / "tables" / file, **options)
    income = rows.pop("income").str.rstrip(".").to_numpy()
    return rows.drop(columns="fnlwgt"), income


def capital_as_labels(rows: pd.DataFrame) -> pd.DataFrame:
    """Capital gains and losses as none, some or much: nine in ten are 0, which is no bell curve."""
    cut = {
        name: pd.cut(rows[name], [-1, 0, 5000, np.inf], labels=["none", "some", "much"])
        for name in ("capital_gain", "capital_loss")
    }
    return rows.assign(**cut)


def without_repeats(rows: pd.DataFrame) -> pd.DataFrame:
    """One of each two columns that say the same: education and its number, marital status and relationship."""
    return capital_as_labels(rows).drop(columns=["education_num", "relationship"])


def main() -> None:
    """Fit each model on the training rows, and print how it does on the test rows."""
    if not (DATA / "tables").is_dir():
        print(f"no data at {DATA / 'tables'}: nothing to measure.")
        return
    (train, y_train), (test, y_test) = adult("adult.data.gz"), adult("adult.test.gz")
    numbers, labels = make_column_selector(dtype_include="number"), make_column_selector(dtype_exclude="number")
    encode = make_column_transformer((StandardScaler(), numbers), (OneHotEncoder(handle_unknown="ignore"), labels))
    models = {
        "naive Bayes, columns as they are": tb.NaiveBayes(),
        "capital as labels": make_pipeline(FunctionTransformer(capital_as_labels), tb.NaiveBayes()),
        "and without repeats": make_pipeline(FunctionTransformer(without_repeats), tb.NaiveBayes()),
        "logistic regression": make_pipeline(encode, LogisticRegression(max_iter=2000)),
    }
    print("| | right | log loss | fit and predict |\n|---|---|---|---|")
    for name, model in models.items():
        start = time.perf_counter()
        proba = model.fit(train, y_train).predict_proba(test)
        seconds = time.perf_counter() - start
        right = np.mean(model.classes_[proba.argmax(axis=1)] == y_test)
        print(f"| {name} | {right:.1%} | {log_loss(y_test, proba):.3f} | {seconds:.1f} s |")


if __name__ == "__main__":
    main()

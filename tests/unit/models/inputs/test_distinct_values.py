"""A categorical column in which nearly all values are different is text or an identifier: the fit warns of it."""

import re
import sqlite3
import warnings

import numpy as np
import pandas as pd
import pytest

import tallybayes as tb
from tallybayes.warnings import DataSourceWarning

N = 60
RNG = np.random.default_rng(0)
WORDS = ["good", "bad", "film", "plot", "nice", "dull", "great", "poor", "long", "short"]
KIND = np.array(["p", "n"] * (N // 2))
FRAME = pd.DataFrame(
    {
        "review": [" ".join(RNG.choice(WORDS, 5)) + f" no {k}" for k in range(N)],
        "customer": [f"c{k}" for k in range(N)],
        "stars": RNG.choice(["one", "two"], N),
        "price": RNG.normal(size=N),
        "kind": KIND,
    }
)
BOTH = "columns review, customer: categorical by 'auto', but nearly all values are different."


def warnings_of(fit):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit()
    return [(one.category, str(one.message)) for one in caught]


def test_naive_bayes_warns_once_and_names_the_remedy():
    ((category, text),) = warnings_of(lambda: tb.NaiveBayes().fit(FRAME, "kind"))
    assert category is DataSourceWarning
    assert text.startswith(BOTH)
    assert "columns={'review': tb.Text(), 'customer': 'ignore', ...: 'auto'}" in text
    remedy = {"review": tb.Text(), "customer": "ignore", ...: "auto"}
    assert warnings_of(lambda: tb.NaiveBayes(remedy).fit(FRAME, "kind")) == []


def test_every_source_warns_alike(tmp_path):
    FRAME.to_csv(tmp_path / "rows.csv", index=False)
    connection = sqlite3.connect(tmp_path / "rows.db")
    FRAME.to_sql("rows", connection, index=False)
    parts = [FRAME[:7], FRAME[7:]]
    for rows in (tmp_path / "rows.csv", tb.table(connection, "rows"), parts, FRAME.drop(columns="kind").to_numpy()):
        is_array = isinstance(rows, np.ndarray)
        target = KIND if is_array else "kind"
        with pytest.warns(DataSourceWarning, match=r"columns 0, 1: " if is_array else re.escape(BOTH)):
            tb.NaiveBayes().fit(rows, target)
    connection.close()


@pytest.mark.parametrize("weight", [0.01, 1.0, 2.0])
def test_fractional_weights_are_not_repetitions(weight):
    found = warnings_of(lambda: tb.NaiveBayes().fit(FRAME, "kind", np.full(N, weight)))
    assert len(found) == (weight == 1.0)  # a weight of 2 is a row twice: every value is repeated


def few_rows(frame):
    return frame[:19]


def with_repeated_values(frame):
    codes = np.arange(N) % 50
    return frame.assign(review=frame["review"].to_numpy()[codes], customer=frame["customer"].to_numpy()[codes])


def with_numbers(frame):
    return frame.assign(customer=np.arange(N), review=np.arange(N) / 3)


@pytest.mark.parametrize("change", [few_rows, with_repeated_values, with_numbers])
@pytest.mark.parametrize("model", [tb.NaiveBayes(), tb.AveragedOneDependence()])
def test_other_columns_give_no_warning(model, change):
    assert warnings_of(lambda: model.fit(change(FRAME), "kind")) == []


def test_named_families_and_later_rows_give_no_warning():
    named = {"review": tb.Categorical(), "customer": tb.Categorical(), ...: "auto"}
    assert warnings_of(lambda: tb.NaiveBayes(named).fit(FRAME, "kind")) == []
    assert warnings_of(lambda: tb.NaiveBayes().partial_fit(FRAME, "kind")) == []


@pytest.mark.parametrize("model", [tb.AveragedOneDependence(), tb.TreeAugmentedNaiveBayes(), tb.NaiveBayes("suggest")])
def test_models_that_drop_text_warn_of_it(model):
    """An identifier, which they drop too, is no feature: it needs no warning."""
    ((category, text),) = warnings_of(lambda: model.fit(FRAME, "kind"))
    assert category is DataSourceWarning
    assert text.startswith("column review: dropped, because nearly all values are different")
    assert "columns={'review': tb.Text(), ...: 'auto'} to NaiveBayes" in text


def test_many_columns_are_not_all_named():
    rows = {f"id {k}": [f"{k}.{row}" for row in range(N)] for k in range(9)} | {"kind": KIND}
    ((_, text),) = warnings_of(lambda: tb.NaiveBayes().fit(rows, "kind"))
    assert text.startswith("columns id 0, id 1, id 2, id 3, id 4 and 4 more: ")
    assert text.count("'ignore'") == 6


def test_dates_as_text_have_their_own_hint():
    days = pd.date_range("2024-01-01", periods=60).strftime("%Y-%m-%d")
    labels = ["a", "b"] * 30
    with pytest.warns(DataSourceWarning, match=r"Dates are read as such after pd\.to_datetime\."):
        tb.NaiveBayes().fit(pd.DataFrame({"day": days, "y": labels}), "y")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tb.NaiveBayes().fit(pd.DataFrame({"day": pd.to_datetime(days), "y": labels}), "y")


@pytest.mark.parametrize(
    ("model", "rows", "columns"),
    [
        (tb.NaiveBayes(), np.array([[0.0, np.nan], [1.0, np.nan], [3.0, np.nan]]), "column 1"),
        (tb.NaiveBayes(), {"a": [1.0, 2.0, 3.0], "b": [None] * 3, "c": [np.nan] * 3}, "columns c, b"),
        (tb.NaiveBayes(tb.Poisson()), {"a": [1, 2, 3], "b": [np.nan] * 3}, "column b"),
    ],
    ids=["array", "mapping", "counts"],
)
def test_a_column_without_values_is_named(model, rows, columns):
    ((category, text),) = warnings_of(lambda: model.fit(rows, [0, 1, 0]))
    assert category is DataSourceWarning
    assert text.startswith(f"{columns}: missing in all training rows")
    assert warnings_of(lambda: model.partial_fit(rows, [0, 1, 0])) == []  # later batches may have values

"""Columns of types that are neither numbers nor labels are refused by what they are, with what to turn them into."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tallybayes as tb
from tallybayes.errors import TallybayesError
from tallybayes.warnings import DataSourceWarning

N = 12
X = np.random.default_rng(0).normal(size=N)
Y = ["a", "b"] * 6
DATES = [dt.date(2024, 1, 1) + dt.timedelta(days=i % 5) for i in range(N)]
MOMENTS = [dt.datetime(2024, 1, 1, i % 5) for i in range(N)]
TIMES = [dt.time(i % 5) for i in range(N)]
DURATIONS = [dt.timedelta(hours=i % 5) for i in range(N)]
MODELS = {
    "naive Bayes": lambda table: tb.NaiveBayes().fit(table, Y),
    "numbers": lambda table: tb.NaiveBayes(tb.Gaussian()).fit(table, Y),
    "labels": lambda table: tb.NaiveBayes({"c": tb.Categorical()}).fit(table, Y),
    "discriminant": lambda table: tb.GaussianDiscriminant().fit(table, Y),
    "one-dependence": lambda table: tb.AveragedOneDependence().fit(table, Y),
    "tree": lambda table: tb.TreeAugmentedNaiveBayes().fit(table, Y),
    "nearest mean": lambda table: tb.NearestClassMean().fit(table, Y),
    "mixture": lambda table: tb.Mixture(2, random_state=0, n_init=1, max_iter=5, tol=1e9).fit(table),
    "hidden Markov": lambda table: tb.HiddenMarkovModel().fit([table], [Y]),
    "network": lambda table: tb.BayesianNetwork({"c": []}).fit(table),
}
CHOOSING = {"naive Bayes", "one-dependence", "tree", "mixture", "hidden Markov"}  # which columns they read
UNLIKE = {"naive Bayes", "labels", "discriminant", "hidden Markov", "network"}  # the others read tables as these do


def odd():
    date, hours, duration = "Convert dates to numbers or labels", "t.hour", "column.dt.total_seconds"
    apart, parts = "Complex data not supported", "Split them into separate columns"
    for values, hint in [(TIMES, hours), (DURATIONS, duration), ([[1, 2]] * N, parts)]:
        kind = type(values[0]).__name__
        yield f"pandas {kind}", pd.DataFrame({"x": X, "c": pd.Series(values)}), hint
        yield f"Polars {kind}", pl.DataFrame({"x": X, "c": values}), hint
        yield f"Arrow {kind}", pa.table({"x": X, "c": pa.array(values)}), hint
        yield f"pandas Arrow {kind}", pa.table({"x": X, "c": values}).to_pandas(types_mapper=pd.ArrowDtype), hint
        yield f"list {kind}", {"x": X, "c": pa.array(values)}, hint
    yield "NumPy duration", {"x": X, "c": np.array(DURATIONS, "timedelta64[s]")}, duration
    yield "NumPy complex", {"x": X, "c": X + 1j}, apart
    yield "pandas complex", pd.DataFrame({"x": X, "c": X + 1j}), apart
    yield "pandas period", pd.DataFrame({"x": X, "c": pd.Series(MOMENTS).dt.to_period("D")}), date
    yield "pandas bytes", pd.DataFrame({"x": X, "c": [b"u", b"v"] * 6}), "Convert bytes to strings"
    yield "pandas category of dates", pd.DataFrame({"x": X, "c": pd.Series(MOMENTS, dtype="category")}), date
    yield "Arrow struct", pa.table({"x": X, "c": [{"u": 1}] * N}), parts
    yield "Polars objects", pl.DataFrame({"x": X, "c": pl.Series([{1}] * N, dtype=pl.Object)}), parts


ODD = {name: (table, hint) for name, table, hint in odd()}


@pytest.mark.parametrize(
    "model", [name if name in UNLIKE else pytest.param(name, marks=pytest.mark.slow) for name in MODELS]
)
@pytest.mark.parametrize("name", ODD)
def test_odd_columns_are_left_out_or_refused_with_what_to_try(name, model):
    table, hint = ODD[name]
    if model in CHOOSING:
        parts = hint == "Split them into separate columns"
        with pytest.warns(
            DataSourceWarning, match=f"c: dropped, .*\n    {'Give their parts' if parts else 'Give converted values'}"
        ):
            MODELS[model](table)
        return
    with pytest.raises(TallybayesError, match=f"(?s)column 'c'.*expected.*\n    .*{hint}"):
        MODELS[model](table)


@pytest.mark.parametrize("model", ["naive Bayes", "numbers", "discriminant", "nearest mean", "mixture"])
@pytest.mark.parametrize(
    ("rows", "hint"),
    [
        ([[value, 1.0] for value in DURATIONS], "Convert durations"),
        (np.column_stack([X, X]) + 1j, "Complex data not supported"),
    ],
    ids=["lists", "complex"],
)
def test_odd_arrays_are_refused_with_what_to_try(rows, hint, model):
    """scikit-learn's own words for them speak of float()."""
    if isinstance(rows, list) and model in ("naive Bayes", "mixture"):
        with pytest.warns(DataSourceWarning, match="0: dropped"):
            MODELS[model](rows)
        return
    with pytest.raises(TallybayesError, match=f"(?s)columns? '?0'?.*expected.*\n    .*{hint}"):
        MODELS[model](rows)


def good():
    whole = [i % 3 for i in range(N)]
    decimals = [Decimal(value) for value in whole]
    yield pd.DataFrame({"x": X, "c": pd.Series(decimals)})
    yield pd.DataFrame({"x": X, "c": pd.Series(whole, dtype=pd.ArrowDtype(pa.decimal128(5, 2)))})
    yield pl.DataFrame({"x": X, "c": pl.Series(decimals, dtype=pl.Decimal(5, 2))})
    if hasattr(pl, "Int128"):
        yield pl.DataFrame({"x": X, "c": pl.Series(whole, dtype=pl.Int128)})
    yield pa.table({"x": X, "c": pa.array(decimals)})
    yield {"x": X, "c": decimals}
    for dtype in ("Int64", "Int8", "UInt64", "Float32"):
        yield pd.DataFrame({"x": X, "c": pd.Series(whole, dtype=dtype)})


@pytest.mark.parametrize("model", [name for name in MODELS if name not in ("labels", "network")])
def test_numbers_of_any_type_are_numbers(model):
    expected = MODELS[model]({"x": X, "c": np.arange(N) % 3.0})
    for table in good():
        assert MODELS[model](table).tally_ == expected.tally_


@pytest.mark.skipif(not hasattr(pl, "Int128"), reason="this version of Polars has no whole numbers of 128 bits")
def test_sums_of_a_database_that_64_bits_cannot_hold():
    large = pl.DataFrame({"x": X, "c": pl.Series([i * 10**30 for i in range(N)], dtype=pl.Int128)})
    assert np.isfinite(tb.NaiveBayes().fit(large, Y).predict_proba(large)).all()


def test_views_of_strings():
    """Arrow takes no rows of them, as a mixture does."""
    views = pa.table({"x": X, "c": pa.array(["u", "v", "w"] * 4, pa.string_view())})
    assert MODELS["mixture"](views).tally_ == MODELS["mixture"]({"x": X, "c": ["u", "v", "w"] * 4}).tally_


@pytest.mark.parametrize("values", [[True, False] * 6, pd.Categorical([1, 2] * 6, ordered=True)], ids=["bool", "int"])
def test_labels_that_could_be_numbers_say_how(values):
    for model in ("discriminant", "nearest mean"):
        with pytest.raises(
            TallybayesError, match=r"column 'c' is a categorical column with values such as .*\n.*astype\(float\)"
        ):
            MODELS[model](pd.DataFrame({"x": X, "c": values}))
        MODELS[model](pd.DataFrame({"x": X, "c": pd.Series(values).astype(float) + X}))

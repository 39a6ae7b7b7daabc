"""The name of the target: that of the column of X, or of the Series that was passed as y."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

import tallybayes as tb

X = pd.DataFrame({"length": [1.0, 1.2, 3.0, 3.1, 1.1, 2.9], "island": list("aabbab")})
KIND = ["cat", "cat", "dog", "dog", "cat", "dog"]
NAMED = pd.Series(KIND, name="kind")
MODELS = [
    tb.NaiveBayes(),
    tb.AveragedOneDependence(bins=2),
    tb.TreeAugmentedNaiveBayes(bins=2),
    tb.AutoClassifier(folds=2),
    tb.GaussianDiscriminant(),
    tb.NearestClassMean(),
]


def rows_for(model):
    return X[["length"]] if isinstance(model, tb.GaussianDiscriminant | tb.NearestClassMean) else X


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_series_target_keeps_its_name(model, tmp_path):
    rows = rows_for(model)
    model.fit(rows, NAMED)
    assert model.target_ == "kind"
    assert "kind" in str(model.summary()) or "kind" in repr(model.class_prior_)
    assert model.predict(rows.assign(kind=KIND)).tolist() == model.predict(rows).tolist()  # the target is no feature
    model.save(tmp_path / "model.tally")
    assert tb.load(tmp_path / "model.tally").target_ == "kind"


def test_polars_series_and_frame_of_one_column_name_the_target():
    rows = pl.from_pandas(X)
    assert tb.NaiveBayes().fit(rows, pl.Series("kind", KIND)).target_ == "kind"
    assert tb.NaiveBayes().fit(X, NAMED.to_frame()).target_ == "kind"
    for unnamed in (KIND, np.array(KIND), pd.Series(KIND), pl.Series(KIND), pd.Series(KIND, name=4)):
        assert tb.NaiveBayes().fit(X, unnamed).target_ == "class"


def test_named_target_is_used_by_answers():
    model = tb.NaiveBayes().fit(X, NAMED)
    assert model.tally_.domains["kind"].levels == ("cat", "dog")
    assert "p(kind)" in str(model.parameters_)
    assert "kind" in model.report(X.assign(kind=KIND)).html
    legend = model.plot_decision_boundary(X, NAMED).axes[0].get_legend()
    assert legend.get_title().get_text() == "kind"
    with pytest.raises(tb.StatisticsError, match="kind 'cat'"):
        model.forget(X.iloc[[0, 0, 0, 0]], pd.Series(["cat"] * 4, name="kind"))


def test_columns_of_x_with_the_name_of_y():
    same = X.assign(kind=KIND)
    with pytest.warns(UserWarning, match="column 'kind' of X equals y"):
        assert tb.NaiveBayes().fit(same, NAMED).target_ == "kind_"
    other = X.assign(kind=list("uvuvuv"))  # as yesterday's value may be a column, and today's the target
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = tb.NaiveBayes().fit(other, NAMED)
    assert model.target_ == "kind_"
    assert model.predict(other).tolist() == KIND


@pytest.mark.filterwarnings("ignore:the trees were grown from")
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_models_with_named_and_unnamed_targets_add_up(model):
    rows = rows_for(model)
    named = model.fit(rows, NAMED)
    unnamed = named.without_rows().partial_fit(rows, NAMED)
    if isinstance(model, tb.AutoClassifier):
        unnamed = tb.AutoClassifier(spec=named.spec_).fit(rows, KIND)
    elif type(model) in (tb.NaiveBayes, tb.GaussianDiscriminant, tb.NearestClassMean):
        unnamed = type(model)().fit(rows, KIND)
        assert unnamed.target_ == "class"
    for both in (named + unnamed, unnamed + named, sum([unnamed, named])):
        assert both.target_ == "kind"
        assert both.predict(rows).tolist() == KIND
        assert both._class_domain.name == "kind"
    assert model.partial_fit(rows, KIND).target_ == "kind"


def test_targets_with_two_names_do_not_add_up():
    with pytest.raises(tb.StatisticsError, match="factors"):
        tb.NaiveBayes().fit(X, NAMED) + tb.NaiveBayes().fit(X, NAMED.rename("pet"))


def test_sum_keeps_the_calibration_owed():
    named = tb.NaiveBayes(calibration="auto").fit(X, NAMED)
    unnamed = tb.NaiveBayes(calibration="auto").fit(X, KIND)
    with pytest.warns(tb.CalibrationWarning):
        (unnamed + named).predict_proba(X)


@pytest.mark.parametrize("y", [np.linspace(0.1, 9, 40), pd.Series(np.linspace(0.1, 9, 40)), [0.5, 1.25] * 20])
def test_continuous_target_names_regression(y):
    rows = pd.DataFrame({"a": np.arange(40.0), "b": np.arange(40.0) % 7})
    for fit in (
        tb.AutoClassifier().fit,
        tb.NaiveBayes().fit,
        tb.TreeAugmentedNaiveBayes().fit,
        tb.NearestClassMean().fit,
    ):
        with pytest.raises(
            tb.LabelError, match=r"(?s)Unknown label type: y is continuous.*tb\.LinearRegression.*y\.astype\(str\)"
        ):
            fit(rows, y)


def test_choose_takes_whole_numbers_for_continuous_where_most_occur_once():
    rows = pd.DataFrame({"a": np.arange(40.0), "price": np.r_[np.arange(30), np.arange(10)]})
    with pytest.raises(tb.LabelError, match=r"(?s)'price'\) has 30 distinct integers in 40 rows.*tb\.LinearRegression"):
        tb.AutoClassifier().fit(rows, "price")
    assert tb.AutoClassifier(folds=2).fit(rows[:40], rows.price // 8).classes_.tolist() == [0, 1, 2, 3]
    assert len(tb.AutoClassifier(folds=2).fit(rows, rows.price.astype(str)).classes_) == 30  # on purpose


def test_choose_counts_only_whole_numbers_that_rows_have():
    rows = pd.DataFrame({"a": np.arange(30.0), "speed": [30, 50, 80] * 10})
    assert tb.AutoClassifier(folds=2).fit(rows, "speed").classes_.tolist() == [30, 50, 80]


def test_another_number_of_columns_lists_those_of_the_fit():
    rows = pd.DataFrame({"a": ["u", "v"], "b": [1.0, 2.0]})
    model = tb.NaiveBayes().fit(rows, [0, 1])
    with pytest.raises(tb.DataError, match=r"X has 3 features.*\n    Pass the columns .*: 'a', 'b'\."):
        model.predict(np.zeros((2, 3)))


@pytest.mark.parametrize("model", [tb.NaiveBayes(unseen="error"), tb.GaussianDiscriminant(), tb.NearestClassMean()])
def test_text_in_a_numeric_column_at_prediction(model):
    rows = pd.DataFrame({"a": [0.0, 1.0, 3.0, 5.0], "b": [1.0, 2.0, 2.0, 1.0]})
    fitted = model.fit(rows, [0, 0, 1, 1])
    with pytest.raises(tb.DataError, match=r"column 'a' is partly 'x'.*\n    Convert it with pd\.to_numeric"):
        fitted.predict(pd.DataFrame({"a": ["x", "y"], "b": [1.0, 2.0]}))


def test_the_parameter_unseen_is_named_only_where_it_exists():
    rows, mixed = np.array([[0.0], [1.0], [3.0], [5.0]]), np.array([["x"], [1.0]], dtype=object)
    for model, named in ((tb.NaiveBayes(), True), (tb.GaussianDiscriminant(), False)):
        with pytest.warns(tb.InvalidValueWarning) as said:
            model.fit(rows, [0, 0, 1, 1]).predict(mixed)
        assert ("unseen=" in str(said[0].message)) == named

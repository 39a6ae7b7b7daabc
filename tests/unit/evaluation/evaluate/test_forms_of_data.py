"""tb.evaluate: models on data of every form."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss

import tallybayes as tb
from tallybayes.errors import DataError, LabelError
from tests.unit.evaluation.evaluations import numbers

MODELS = {"bayes": tb.NaiveBayes, "discriminant": tb.GaussianDiscriminant, "nearest": tb.NearestClassMean}


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return X, np.array(["setosa", "versicolor", "virginica"])[y]


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("name", MODELS)
def test_models_in_every_form_of_data(iris, name):
    X, y = iris
    weight, sides = np.random.default_rng(0).gamma(1.0, size=75), np.where(np.arange(75) % 3, "in", "out")
    model = MODELS[name]().fit(X[::2], y[::2])
    before = model.predict_log_proba(X)
    found = tb.evaluate(model, X[1::2], y[1::2], by=sides, sample_weight=weight)
    assert found.accuracy.value == pytest.approx(model.score(X[1::2], y[1::2], weight))
    assert found.log_loss.value == pytest.approx(log_loss(y[1::2], model.predict_proba(X[1::2]), sample_weight=weight))
    assert list(found.groups) == ["in", "out"]
    assert found.classes.tolist() == ["setosa", "versicolor", "virginica"]
    if name == "nearest":
        assert found.bits_per_row is None
    else:
        bits = -np.average(model.score_samples(X[1::2]), weights=weight) / np.log(2)
        assert found.bits_per_row.value == pytest.approx(bits)
    np.testing.assert_array_equal(model.predict_log_proba(X), before)

    names = list("abcd")
    rows = pd.DataFrame(X, columns=names)
    test = rows[1::2].assign(kind=y[1::2], side=sides, worth=weight)
    by_name = MODELS[name]().fit(rows[::2].assign(kind=y[::2]), "kind")
    apart = MODELS[name]().fit(rows[::2], y[::2])  # this one takes every column of a frame for a feature
    expected = numbers(found)
    for other in (by_name, apart):
        for table in (test, pl.from_pandas(test), test.to_dict(orient="list")):
            named = tb.evaluate(other, table, "kind", by="side", sample_weight="worth")
            np.testing.assert_allclose(numbers(named), expected, rtol=1e-9)
            assert "\n  side " in repr(named)


def test_a_group_may_be_a_feature():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"sex": rng.choice(["f", "m"], 200), "x": rng.normal(size=200), "y": rng.integers(0, 2, 200)})
    model = tb.NaiveBayes().fit(table[["sex", "x"]], table["y"])
    found = tb.evaluate(model, table, "y", by="sex")
    assert found.accuracy.value == model.score(table[["sex", "x"]], table["y"])
    assert list(found.groups) == ["f", "m"]


@pytest.mark.parametrize("labels", [[0, 1], [False, True], ["no", "yes"], [3.0, 7.0]], ids=str)
def test_labels_of_every_kind(labels):
    X = np.array([[0.0], [0.2], [1.0], [1.3]])
    y = np.array(labels)[[0, 0, 1, 1]]
    found = tb.evaluate(tb.NaiveBayes().fit(X, y), X, y.tolist())
    assert found.confusion_matrix.tolist() == [[2, 0], [0, 2]]
    assert list(found.recall) == labels


def test_classes_absent_from_the_data_are_fine(iris):
    X, y = iris
    model = tb.NaiveBayes().fit(X, y)
    found = tb.evaluate(model, X[:80], y[:80])
    assert found.support == {"setosa": 50, "versicolor": 30, "virginica": 0}
    assert np.isnan(found.recall["virginica"].value)


def test_labels_the_model_does_not_know(iris):
    X, y = iris
    model = tb.NaiveBayes().fit(X[:100], y[:100])
    with pytest.raises(
        LabelError, match=r"are not classes of the model: 'virginica' \(50 of 150 rows\); expected 'setosa', 'versi"
    ):
        tb.evaluate(model, X, y)
    weight = np.r_[np.ones(100), np.zeros(50)]
    assert tb.evaluate(model, X, y, sample_weight=weight).n_rows == 100  # rows without weight may have any
    with pytest.raises(LabelError, match="are not classes of the model: 0, 1"):
        tb.evaluate(model, X[:2], [0, 1])
    numbers = (y == "setosa").astype(int)
    numbered = tb.NaiveBayes().fit(X, numbers)
    assert tb.evaluate(numbered, X, y == "setosa").accuracy.value == tb.evaluate(numbered, X, numbers).accuracy.value
    labels = pd.Series(y[:100])
    labels[3] = None
    with pytest.raises(LabelError, match=r"label of row 3 is missing \(1 of 100 are\)"):
        tb.evaluate(model, X[:100], labels)
    with pytest.raises(LabelError, match="Unknown label type"):
        tb.evaluate(model, X, np.linspace(0, 1, 150))


def test_evaluate_refuses(iris):
    X, y = iris
    model = tb.NaiveBayes().fit(X, y)
    with pytest.raises(DataError, match="model is str; expected a model of this package"):
        tb.evaluate("model", X, y)
    with pytest.raises(NotFittedError, match="not fitted"):
        tb.evaluate(tb.NaiveBayes(), X, y)
    with pytest.raises(DataError, match="no column 'kind'"):
        tb.evaluate(model, X, "kind")
    with pytest.raises(DataError, match="X: 150, y: 149"):
        tb.evaluate(model, X, y[1:])
    with pytest.raises(DataError, match="X has 3 features"):
        tb.evaluate(model, X[:, :3], y)

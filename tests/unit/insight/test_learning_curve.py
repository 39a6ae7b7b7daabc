"""Learning curves: the same splits for all models, classes that are not there yet, the crossing named."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

import tallybayes as tb

X, y = load_iris(return_X_y=True, as_frame=True)
LABELS = np.array(["setosa", "versicolor", "virginica"])[y]


def _pairs(n, seed):
    """Two classes whose columns come in pairs that are correlated: naive Bayes has a floor above the optimum."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 2, n)
    noise = rng.normal(size=(n, 20, 2)) @ np.linalg.cholesky([[1.0, 0.3], [0.3, 1.0]]).T
    return noise.reshape(n, 40) + np.where(codes == 1, 0.5, -0.5)[:, None] * np.tile([0.5, 0.25], 20), codes


def test_generative_models_are_ahead_while_rows_are_few():
    models = {"naive": tb.NaiveBayes(), "logistic": LogisticRegression(C=1e4, max_iter=2000)}
    curve = tb.learning_curve(models, *_pairs(4000, 0), [80, 320])
    assert (curve.error[0].mean(axis=-1) < curve.error[1].mean(axis=-1)).all()
    assert curve.error[0, -1].mean() == pytest.approx(0.140, abs=0.02)  # the exact error of the rule is .140
    assert curve.crossings() == [(80, "naive")]
    assert "fewest errors: naive from 80 rows on" in repr(curve)
    assert "naive, error" in curve._repr_html_()


@pytest.mark.parametrize(
    "rows", [X, X.to_numpy(), pl.from_pandas(X), dict(X)], ids=["pandas", "numpy", "polars", "dict"]
)
def test_rows_of_any_kind(rows):
    curve = tb.learning_curve(tb.NaiveBayes(), rows, LABELS, [30, 120], repeats=2)
    expected = tb.learning_curve(tb.NaiveBayes(), X, y, [30, 120], repeats=2)
    np.testing.assert_array_equal(curve.log_loss, expected.log_loss)
    assert curve.names == ["NaiveBayes"]


def test_labels_by_name_and_files(tmp_path):
    whole = X.assign(kind=LABELS)
    whole.to_csv(tmp_path / "iris.csv", index=False)
    expected = tb.learning_curve(tb.NaiveBayes(), X, LABELS, [30])
    for rows in (whole, pl.from_pandas(whole), tmp_path / "iris.csv"):
        np.testing.assert_allclose(tb.learning_curve(tb.NaiveBayes(), rows, "kind", [30]).error, expected.error)
    with pytest.raises(tb.DataError, match="no column 'sort'"):
        tb.learning_curve(tb.NaiveBayes(), whole, "sort")


def test_every_class_is_there_from_the_start():
    curve = tb.learning_curve({"a": tb.NaiveBayes(), "b": LogisticRegression(max_iter=5000)}, X, LABELS, [3])
    assert (curve.error < 0.6).all()


def test_sizes_double():
    assert tb.learning_curve(tb.NaiveBayes(), X, y, repeats=1).sizes.tolist() == [15, 30, 60, 120]


def test_curves_cross():
    names, sizes = ["a", "b"], np.array([10, 20, 40])
    error = np.array([[[0.3], [0.2], [0.2]], [[0.4], [0.2], [0.1]]])
    curve = tb.LearningCurve(names, sizes, error, error[::-1])
    assert curve.crossings() == [(10, "a"), (40, "b")]
    assert curve.crossings("log_loss") == [(10, "b"), (40, "a")]
    assert np.isnan(curve.to_frame()["error_se"]).all()


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"sizes": [0]}, "sizes are"),
        ({"sizes": [121]}, "from 1 to 120"),
        ({"sizes": []}, "sizes are"),
        ({"repeats": 6}, "repeats is 6"),
        ({"repeats": True}, "repeats is True"),
    ],
)
def test_what_makes_no_sense(options, match):
    with pytest.raises(tb.DataError, match=match):
        tb.learning_curve(tb.NaiveBayes(), X, y, **options)
    with pytest.raises(tb.DataError, match="no model"):
        tb.learning_curve({}, X, y)


def test_the_picture_is_a_table_too():
    curve = tb.learning_curve({"a $": tb.NaiveBayes(), "b": tb.GaussianDiscriminant()}, X, y, [30, 60], repeats=2)
    picture = curve.plot()
    pd.testing.assert_frame_equal(picture.to_frame(), curve.to_frame())
    assert [ax.get_title() for ax in picture.axes] == ["error", "log-loss in nats"]

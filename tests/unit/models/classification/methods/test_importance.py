"""Feature importance: the increase of the log loss where a column is marginalized out."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss

import tallybayes as tb

rng = np.random.default_rng(0)
N = 240
Y = pd.Series(np.where(np.arange(N) % 3 == 0, "b", "a"), name="kind")
X = pd.DataFrame(
    {
        "strong": rng.normal(2.0 * (Y == "b"), 1.0),
        "label": np.where(rng.random(N) < 0.7, Y, "c"),
        "noise": rng.normal(size=N),
    }
)
X.loc[::9, "strong"] = np.nan
MODELS = [
    tb.NaiveBayes(),
    tb.AveragedOneDependence(bins=3),
    tb.TreeAugmentedNaiveBayes(bins=3),
    tb.AutoClassifier(folds=3),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_importance_is_the_increase_of_the_log_loss(model):
    model.fit(X[:160], Y[:160])
    rows, y = X[160:], Y[160:]
    found = model.feature_importance(rows, y)
    assert set(found.columns) == set(X)
    assert found.columns[-1] == "noise"
    assert found.n_rows == len(rows)
    assert found.log_loss == pytest.approx(log_loss(y, model.predict_proba(rows)))
    frame = found.to_frame().set_index("column")
    assert (frame["low"] <= frame["increase"]).all()
    assert (frame["increase"] <= frame["high"]).all()
    assert frame.loc["label", "low"] > 0
    assert "label" in repr(found)
    assert "95 % interval" in found._repr_html_()
    one = model.feature_importance({**rows, "kind": y}, "kind", columns=["label"])
    assert one.columns == ["label"]
    assert one.increase[0] == pytest.approx(frame.loc["label", "increase"])


def test_naive_bayes_without_a_column_is_naive_bayes_never_shown_it():
    model = tb.NaiveBayes().fit(X, Y)
    found = model.feature_importance(X, Y).to_frame().set_index("column")["increase"]
    for name in X:
        other = tb.NaiveBayes().fit(X.drop(columns=name), Y)
        expected = log_loss(Y, other.predict_proba(X.drop(columns=name))) - log_loss(Y, model.predict_proba(X))
        assert found[name] == pytest.approx(expected)


def test_absence_that_counts_is_not_mistaken_for_the_removed_column():
    gaps = X.assign(strong=X["strong"].where(Y == "a"))  # missing in all rows of b
    model = tb.NaiveBayes({"strong": tb.WithMissing(tb.Gaussian()), ...: "auto"}).fit(gaps, Y)
    other = tb.NaiveBayes().fit(gaps.drop(columns="strong"), Y)
    expected = log_loss(Y, other.predict_proba(gaps.drop(columns="strong"))) - log_loss(Y, model.predict_proba(gaps))
    assert model.feature_importance(gaps, Y, columns=["strong"]).increase[0] == pytest.approx(expected)
    chosen = tb.AutoClassifier(single=True, folds=3).fit(gaps, Y)
    assert chosen.feature_importance(gaps, Y).columns[0] == "strong"
    assert chosen.feature_importance(gaps, Y, columns=["strong"]).increase[0] < log_loss(Y, np.full((N, 2), 0.5))


def test_weights_are_repetitions():
    model, weight = tb.GaussianDiscriminant().fit(X[["strong", "noise"]], Y), np.arange(N) % 3
    rows = np.repeat(np.arange(N), weight)
    twice = model.feature_importance(X[["strong", "noise"]].iloc[rows], Y.iloc[rows])
    weighted = model.feature_importance(X[["strong", "noise"]], Y, sample_weight=weight)
    np.testing.assert_allclose(weighted.increase, twice.increase)
    assert weighted.log_loss == pytest.approx(twice.log_loss)


def test_importance_is_drawn():
    pytest.importorskip("matplotlib")
    picture = tb.NaiveBayes().fit(X, Y).feature_importance(X, Y).plot(most=2)
    assert picture.to_frame()["column"].tolist() == ["strong", "label"] or len(picture.to_frame()) == 2
    assert [text.get_text() for text in picture.axes[0].get_yticklabels()] == picture.to_frame()["column"].tolist()
    assert "the first 2 of 3 columns" in picture.axes[0].get_title()


def test_what_has_no_importance():
    model = tb.NaiveBayes().fit(X, Y)
    with pytest.raises(tb.DataError, match="no column 'nothing'"):
        model.feature_importance(X, Y, columns=["nothing"])
    with pytest.raises(tb.DataError, match="0 rows"):
        model.feature_importance(X[:0], Y[:0])
    with pytest.raises(tb.LabelError, match="y is missing in row 1"):
        model.feature_importance(X[:2], ["a", None])
    text = tb.NaiveBayes(tb.Text()).fit(["win money", "read me"], ["spam", "ham"])
    with pytest.raises(tb.DataError, match="text"):
        text.feature_importance(["win money", "read me"], ["spam", "ham"])

"""Linear forms are read by column, turned to another class, and set beside logistic regression's weights."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression

import tallybayes as tb
from tallybayes.errors import DataError, LabelError

RNG = np.random.default_rng(5)
X = RNG.integers(0, 2, (80, 3))
Y = np.where(X[:, 0] + RNG.normal(0, 0.7, 80) > 0.5, "spam", "ham")
FRAME = pd.DataFrame(X, columns=["card", "winner", "winter"])
MODEL = tb.NaiveBayes(tb.Bernoulli(), estimate="map").fit(FRAME, Y)


def test_it_prints_weights_by_column_and_names_its_sign():
    form = MODEL.to_linear()
    text = repr(form)
    assert "P(spam | x) = 1 / (1 + exp(−(intercept + w · x))): spam where intercept + w · x > 0, else ham" in text
    assert [line.split()[0] for line in text.splitlines()[1:]] == ["column", "(intercept)", "card", "winner", "winter"]
    frame = form.to_frame()
    assert frame.loc["winner", "weight"] == form.coef[0, 1]
    assert frame.loc["(intercept)", "weight"] == form.intercept[0]
    assert "winner" in form._repr_html_()


def test_the_other_sign_is_that_of_the_other_class():
    form = MODEL.to_linear()
    other = form.log_odds_coefficients("ham")
    np.testing.assert_allclose(other.coef, -form.coef)
    np.testing.assert_allclose(other.intercept, -form.intercept)
    np.testing.assert_allclose(other.predict_proba(X)[:, ::-1], MODEL.predict_proba(FRAME))
    np.testing.assert_allclose(form.log_odds_coefficients("spam").coef, form.coef)
    with pytest.raises(LabelError, match="no odds of 'eggs'"):
        form.log_odds_coefficients("eggs")


def test_odds_of_two_among_many_classes():
    y = np.arange(80) % 3
    form = tb.NaiveBayes(tb.Bernoulli()).fit(X, y).to_linear()
    pair = form.log_odds_coefficients(2, against=0)
    np.testing.assert_allclose(pair.coef[0], form.coef[2] - form.coef[0])
    proba = tb.NaiveBayes(tb.Bernoulli()).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(pair.predict_proba(X)[:, 1], proba[:, 2] / (proba[:, 0] + proba[:, 2]))
    with pytest.raises(LabelError, match="expected two"):
        form.log_odds_coefficients(2)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("swapped", [False, True])
def test_side_by_side_with_logistic_regression(swapped):
    peer = LogisticRegression().fit(FRAME[["winter", "card", "winner"]] if swapped else FRAME, Y)
    found = MODEL.to_linear().compare(peer)
    frame = found.to_frame()
    assert list(frame.columns) == ["this model", "logistic regression"]
    coef = dict(zip(peer.feature_names_in_, peer.coef_[0], strict=True))
    for name in FRAME:
        assert frame.loc[name, "logistic regression"] == pytest.approx(coef[name])
    assert frame.loc["(intercept)", "logistic regression"] == pytest.approx(peer.intercept_[0])
    first, second = frame["this model"][1:], frame["logistic regression"][1:]
    assert found.cosine == pytest.approx(first @ second / np.linalg.norm(first) / np.linalg.norm(second))
    assert "cosine" in repr(found)
    assert "logistic regression" in found._repr_html_()


def test_classes_in_another_order_have_the_other_sign():
    form = MODEL.to_linear()

    class Peer:
        coef_, intercept_, classes_ = -form.coef, -form.intercept, np.array(["spam", "ham"])

    found = form.compare(Peer(), "the same")
    np.testing.assert_allclose(found.values["the same"], found.values["this model"])
    assert found.cosine == pytest.approx(1)


def test_many_classes_are_told_from_their_mean():
    y = np.arange(80) % 3
    form = tb.NaiveBayes(tb.Multinomial()).fit(X, y).to_linear()

    class Peer:
        coef_, intercept_, classes_ = form.coef + np.array([5.0, 2.0, -3.0]), form.intercept + 7, np.array([0, 1, 2])

    found = form.compare(Peer(), "shifted")  # which changes no probability
    np.testing.assert_allclose(found.values["shifted"], found.values["this model"], atol=1e-12)
    assert list(found.to_frame().columns)[:2] == ["this model: 0", "shifted: 0"]


def test_what_cannot_be_compared():
    form = MODEL.to_linear()
    with pytest.raises(DataError, match="without coef_"):
        form.compare(tb.NaiveBayes())
    with pytest.raises(LabelError, match="classes of logistic regression"):
        form.compare(LogisticRegression().fit(FRAME, Y == "spam"))
    with pytest.raises(DataError, match="has the columns"):
        form.compare(LogisticRegression().fit(FRAME[["card", "winner"]], Y))


def test_words_have_their_names():
    words = sp.csr_array(X)
    form = tb.NaiveBayes().fit({"text": tb.NamedMatrix(words, list("uvw"))}, Y).to_linear()
    assert form.columns == ("u", "v", "w")
    assert tb.NaiveBayes().fit(words, Y).to_linear().columns == (("x", 0), ("x", 1), ("x", 2))
    wide = tb.NaiveBayes(prior=1).fit(sp.random(80, 5000, 0.01, format="csr", random_state=0), Y).to_linear()
    assert "4,961 more columns" in repr(wide)
    assert len(wide.to_frame()) == 5001

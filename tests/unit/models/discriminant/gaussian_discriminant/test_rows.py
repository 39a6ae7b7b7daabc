"""Rows out of a discriminant: filled in, explained, drawn."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import softmax

import tallybayes as tb
from tallybayes.errors import DataError, LabelError
from tests.unit.models.classification.discriminant_textbook import (
    COVARIANCES,
    ESTIMATES,
    densities,
    joint_log_prob,
    made,
    with_holes,
)

X, Y, NEW = made(21, sizes=(14, 18, 22))
HOLED = with_holes(NEW, seed=3)


@pytest.mark.parametrize("estimate", ESTIMATES)
@pytest.mark.parametrize("covariance", COVARIANCES)
class TestFill:
    @pytest.mark.slow_after(3)
    def test_mean_is_the_conditional_expectation(self, covariance, estimate):
        model = tb.GaussianDiscriminant(covariance, estimate=estimate).fit(X, Y)
        classes = densities(X, Y, covariance, estimate)
        share = softmax(joint_log_prob(X, Y, HOLED, covariance, estimate), axis=1)
        within = np.array([[density.conditional_mean(row) for density in classes] for row in HOLED])
        expected = (share[..., None] * within).sum(axis=1)
        np.testing.assert_allclose(model.impute(HOLED), expected, rtol=1e-9)
        likeliest = within[np.arange(len(HOLED)), share.argmax(axis=1)]
        np.testing.assert_allclose(model.impute(HOLED, how="mode"), likeliest, rtol=1e-9)
        found = model.impute(HOLED, how="distribution")
        for column, cells in found.items():
            assert cells.rows.tolist() == np.flatnonzero(np.isnan(HOLED[:, column])).tolist()
            np.testing.assert_allclose(cells.means, within[cells.rows, :, column], rtol=1e-9)
            np.testing.assert_allclose(cells.weights, share[cells.rows], rtol=1e-9)
        np.testing.assert_array_equal(model.impute(NEW), NEW)  # nothing is missing, nothing changes

    @pytest.mark.slow_after(5)
    def test_explanations_sum_to_the_log_odds(self, covariance, estimate):
        model = tb.GaussianDiscriminant(covariance, estimate=estimate).fit(X, Y)
        log_proba = model.predict_log_proba(HOLED)
        rows = np.arange(len(HOLED))
        order = np.argsort(-log_proba, axis=1, kind="stable")
        found = model.explain(HOLED)
        assert found.classes.tolist() == order[:, 0].tolist()
        assert found.against.tolist() == order[:, 1].tolist()
        odds = log_proba[rows, order[:, 0]] - log_proba[rows, order[:, 1]]
        np.testing.assert_allclose(found.log_odds, odds, rtol=1e-9, atol=1e-10)
        assert (found.contributions[:, 1:][np.isnan(HOLED)] == 0).all()  # a missing cell pulls nowhere
        against = model.explain(HOLED, against=0)
        assert set(against.against.tolist()) == {0}
        odds = log_proba[rows, against.classes] - log_proba[:, 0]
        np.testing.assert_allclose(against.log_odds, odds, rtol=1e-9, atol=1e-10)

    @pytest.mark.slow_after(1)
    def test_samples_have_the_moments_they_claim(self, covariance, estimate):
        """Every mean and covariance within five standard errors, which the draws themselves give."""
        n = 12_000
        model = tb.GaussianDiscriminant(covariance, estimate=estimate).fit(X, Y)
        for label, density in enumerate(densities(X, Y, covariance, estimate)):
            rows, labels = model.sample(n, given=label, random_state=100 + label)
            assert (labels == label).all()
            assert rows.shape == (n, 3)
            gap = rows - density.mean
            error = gap.std(axis=0) / np.sqrt(n)
            assert (np.abs(gap.mean(axis=0)) < 5 * error).all()
            products = gap[:, :, None] * gap[:, None, :]
            error = products.std(axis=0) / np.sqrt(n)
            assert (np.abs(products.mean(axis=0) - density.covariance()) < 5 * error).all()


@pytest.mark.slow_after(4)
@pytest.mark.parametrize("estimate", ["map", "bayes"])
@pytest.mark.parametrize("covariance", COVARIANCES)
def test_a_constant_column_explains_nothing(covariance, estimate):
    wide, rows = np.insert(X, 1, 5.0, axis=1), np.insert(HOLED, 1, 5.0, axis=1)
    rows[::2, 1] = -3.0
    model = tb.GaussianDiscriminant(covariance, estimate=estimate).fit(wide, Y)
    found, log_proba = model.explain(rows, against=0), model.predict_log_proba(rows)
    odds = log_proba[np.arange(len(rows)), found.classes] - log_proba[:, 0]
    np.testing.assert_allclose(found.log_odds, odds, rtol=1e-9, atol=1e-10)
    assert (found.contributions[:, 2] == 0).all()


def test_explanation_of_independent_columns_is_each_column_s_own():
    model = tb.GaussianDiscriminant("diagonal", estimate="mle").fit(X, Y)
    found = model.explain(NEW, against=0)
    for row, label in enumerate(found.classes):
        for column in range(3):
            mine, other = (X[c == Y, column] for c in (label, 0))
            own = stats.norm.logpdf(NEW[row, column], mine.mean(), mine.std())
            its = stats.norm.logpdf(NEW[row, column], other.mean(), other.std())
            assert found.contributions[row, 1 + column] == pytest.approx(own - its, rel=1e-9)


def test_quadratic_terms_are_split_between_their_columns():
    """With zero-mean classes of one variance and opposite correlation, either column pulls alike."""
    model = tb.GaussianDiscriminant(estimate="mle").fit(
        [[1, 1], [-1, -1], [2, 1], [-2, -1], [1, 2], [-1, -2], [1, -1], [-1, 1], [2, -1], [-2, 1], [1, -2], [-1, 2]],
        ["up"] * 6 + ["down"] * 6,
    )
    found = model.explain([[1.5, 1.5]])
    assert found.classes.tolist() == ["up"]
    assert found.contributions[0, 1] == pytest.approx(found.contributions[0, 2], rel=1e-12)
    assert found.contributions[0, 1] > 0


def test_sampled_classes_follow_the_class_prior():
    n = 20_000
    for class_prior, p in [(None, np.bincount(Y) / len(Y)), ({0: 0.7, 1: 0.1, 2: 0.2}, [0.7, 0.1, 0.2])]:
        model = tb.GaussianDiscriminant(class_prior=class_prior).fit(X, Y)
        _, labels = model.sample(n, random_state=5)
        assert stats.chisquare(np.bincount(labels), n * np.asarray(p)).pvalue > 1e-4


def test_samples_are_repeatable_and_learnable():
    model = tb.GaussianDiscriminant(estimate="map").fit(X, Y)
    rows, labels = model.sample(30_000, random_state=1)
    again, same = model.sample(30_000, random_state=1)
    np.testing.assert_array_equal(rows, again)
    np.testing.assert_array_equal(labels, same)
    assert not np.array_equal(model.sample(10, random_state=2)[0], rows[:10])
    learned = tb.GaussianDiscriminant(estimate="mle").fit(rows, labels)
    assert np.abs(learned.predict_proba(NEW) - model.predict_proba(NEW)).max() < 0.05
    assert model.sample(0, random_state=1)[0].shape == (0, 3)
    with pytest.raises(LabelError, match="no class 'x'"):
        model.sample(1, given="x")


def test_fill_says_what_it_can_do():
    model = tb.GaussianDiscriminant().fit(X, Y)
    with pytest.raises(DataError, match="how is 'median'; expected 'mean', 'mode' or 'distribution'"):
        model.impute(HOLED, how="median")


def test_frames_keep_their_names():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    model = tb.GaussianDiscriminant("tied").fit(frame, np.array(["x", "y", "z"])[Y])
    np.testing.assert_allclose(
        model.predict_proba(pandas.DataFrame(HOLED, columns=["a", "b", "c"])),
        tb.GaussianDiscriminant("tied").fit(X, Y).predict_proba(HOLED),
        rtol=1e-12,
    )
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[["b", "a", "c"]])
    by_name = tb.GaussianDiscriminant("tied").fit(frame.assign(kind=Y), "kind")
    shuffled = pandas.DataFrame(HOLED, columns=["a", "b", "c"])[["c", "a", "b"]]
    np.testing.assert_allclose(
        by_name.predict_proba(shuffled),
        model.predict_proba(pandas.DataFrame(HOLED, columns=["a", "b", "c"])),
        rtol=1e-12,
    )

"""Rows so far from every class that their log densities have lost their digits, or overflow."""

from fractions import Fraction

import numpy as np
import pytest

import tallybayes as tb

RNG = np.random.default_rng(0)
X = RNG.normal(size=(240, 2)) + np.repeat([[0.0, 0.0], [3.0, 1.0], [0.0, 2.0]], 80, axis=0)
Y = np.repeat(["a", "b", "c"], 80)
FAR = [1e9, 1e17, 1e100, 1e140, 1e160, 1e200, 1e300]
COVARIANCES = ("full", "tied", "diagonal", "tied_diagonal", "spherical", "tied_spherical")
DIRECTIONS = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0], [1.0, -1.0], [-0.5, -1.0]])


def best_by_fractions(mean, covariance, log_prior, row):
    """The class with the largest log density, whose leading terms are exact: quadratic, then linear."""
    scores = []
    for m, s, p in zip(mean, covariance, log_prior, strict=True):
        precision = [[Fraction(v) for v in line] for line in np.linalg.inv(s).tolist()]
        gap = [Fraction(v) - Fraction(c) for v, c in zip(row.tolist(), m.tolist(), strict=True)]
        length = sum(gap[i] * precision[i][j] * gap[j] for i in range(2) for j in range(2))
        scores.append(-length / 2 - Fraction(float(np.linalg.slogdet(s)[1])) / 2 + Fraction(float(p)))
    return scores.index(max(scores))


@pytest.mark.parametrize("size", FAR)
@pytest.mark.parametrize("covariance", COVARIANCES)
def test_plug_in_classes_saturate_to_the_right_one(covariance, size):
    model = tb.GaussianDiscriminant(covariance, estimate="mle").fit(X, Y)
    mean, spread = (np.asarray(part) for part in model._factor_scorers[0].parameters)
    matrices = spread if spread.ndim == 3 else spread[..., None] * np.eye(2)
    rows = size * DIRECTIONS
    expected = [best_by_fractions(mean, matrices, model.class_log_prior_, row) for row in rows]
    np.testing.assert_array_equal(model.predict_proba(rows).argmax(axis=1), expected)
    np.testing.assert_allclose(model.predict_proba(rows).max(axis=1), 1.0, rtol=1e-12)
    assert model.predict(rows).tolist() == model.classes_[expected].tolist()


@pytest.mark.parametrize("estimate", ["mle", "map"])
def test_naive_bayes_by_kernels_and_beside_labels(estimate):
    plain = tb.NaiveBayes(tb.TiedGaussian(), estimate=estimate).fit(X, Y)
    rows = np.array([[1e140, 0.0], [-1e140, 0.0], [0.2, 0.1], [1e300, np.nan]])
    proba = plain.predict_proba(rows)
    assert plain.predict(rows).tolist() == plain.classes_[proba.argmax(axis=1)].tolist()
    assert proba[0, 1] == proba[3, 1] == 1.0
    assert proba[1, 1] == 0.0
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    columns = {(0, 1): tb.TiedGaussian(), 2: tb.Categorical()}
    mixed = tb.NaiveBayes(columns, estimate=estimate).fit(np.column_stack([X, np.arange(240) % 2]), Y)
    assert mixed.predict([[1e160, 0.0, 1]]).tolist() == ["b"]


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_under_bayes_far_rows_have_a_limit(covariance):
    model = tb.GaussianDiscriminant(covariance).fit(X, Y)
    rows = DIRECTIONS[:, None, :] * np.array([1e12, 1e120, 1e200, 1e300])[:, None]
    proba = model.predict_proba(rows.reshape(-1, 2)).reshape(len(DIRECTIONS), 4, 3)
    np.testing.assert_allclose(proba, np.broadcast_to(proba[:, :1], proba.shape), rtol=1e-9)
    density = model.score_samples(rows.reshape(-1, 2)).reshape(len(DIRECTIONS), 4)
    assert np.isfinite(density).all()
    slope = np.diff(density, axis=1) / np.diff(np.log([1e12, 1e120, 1e200, 1e300]))
    np.testing.assert_allclose(slope, np.broadcast_to(slope[:, :1], slope.shape), rtol=1e-6)  # a power of the distance


@pytest.mark.parametrize("metric", ["euclidean", "mahalanobis"])
@pytest.mark.parametrize("size", [*FAR, 1e308])
def test_nearest_class_mean(metric, size):
    model = tb.NearestClassMean(metric).fit(X, Y)
    rows = size * np.array([[1.0, 0.0], [0.0, 1.0], [-0.5, -1.0]])
    proba = model.predict_proba(rows)
    assert model.predict(rows).tolist() == ["b", "c", "a"] == model.classes_[proba.argmax(axis=1)].tolist()
    np.testing.assert_allclose(proba.max(axis=1), 1.0)


def test_a_family_of_ones_own_is_compared_as_it_scores():
    class Wide(tb.TiedGaussian):
        """Rows are as likely as their distance is small, not its square."""

        def log_prob(self, parameters, x):
            return -np.abs(x[:, None, :] - parameters.mean)

    model = tb.NaiveBayes(Wide(), estimate="mle", class_prior="uniform").fit(X, Y)
    rows = 2e15 * DIRECTIONS[:1]
    expected = -np.abs(rows[:, None, :] - model._factor_scorers[0].parameters.mean).sum(axis=-1)
    assert np.ptp(expected) > 1
    found = model.predict_log_proba(rows)
    np.testing.assert_allclose(found - found[:, :1], expected - expected[:, :1])


def test_near_rows_beside_far_ones_are_as_they_were():
    model = tb.GaussianDiscriminant("tied", estimate="mle").fit(X, Y)
    both = np.concatenate([X, [[1e200, 0.0]]])
    np.testing.assert_array_equal(model.predict_proba(both)[:-1], model.predict_proba(X))
    np.testing.assert_array_equal(model.predict(both)[:-1], model.predict(X))


def test_a_row_that_no_class_allows_is_of_the_most_probable_class():
    rows = {"a": ["x", "y", "y"], "b": ["u", "v", "v"], "y": ["p", "q", "q"]}
    model = tb.NaiveBayes(estimate="mle").fit(rows, "y")
    assert model.predict({"a": ["x", "x"], "b": ["v", "u"]}).tolist() == ["q", "p"]
    with pytest.warns(UserWarning, match="impossible in every class"):
        assert model.predict_proba({"a": ["x"], "b": ["v"]}).argmax() == 1

"""Gaussian discriminants and nearest means as the textbooks reckon them: three clouds whose moments are exact."""

from math import log

import numpy as np
import pytest

import tallybayes as tb
from tallybayes.models.nearest_mean.metric_learning import objective
from tests.textbook.course import BLUE, SHARED, SHARED_CLASS, X, Y, clouds, digits, near

MEANS = [[0, 0], [6, 1], [2, 6]]
OWN = np.array([[[4, 2], [2, 2]], [[1, 0], [0, 4]], [[1, 0], [0, 1]]], dtype=float)
TIED = np.array([[2, 2 / 3], [2 / 3, 7 / 3]])


def at_three(model):
    return model.predict_proba([[3, 3]])[0]


def test_M9_2_the_density_of_a_class():
    model = clouds()
    log_p = model.predict_joint_log_proba([[0, 0]])[0, 0] - model.class_log_prior_[0]
    near(np.exp(log_p), 1 / (4 * np.pi))
    digits(np.exp(log_p), 0.079577)


def test_M9_3_posterior():
    digits(at_three(clouds()), [0.839079, 0.053640, 0.107281])


def test_M9_4_discriminant_function():
    joint = clouds().predict_joint_log_proba([[3, 3], [8, 8]])
    digits(joint[0], [-5.879637, -8.629637, -7.936489])
    digits(joint[1], [-19.629637, -11.754637, -22.936489])
    assert clouds().predict([[8, 8]])[0] == "green"


def test_F9_2_curved_and_straight_regions():
    assert clouds().predict([[3, 3], [8, 8]]).tolist() == ["blue", "green"]
    assert clouds("tied").predict([[3, 3], [8, 8]]).tolist() == ["red", "red"]


def test_M9_5_M9_6_M9_7_linear_discriminants():
    model = clouds("tied")
    gamma, beta = model.discriminant_functions_
    near(beta, [[0, 0], [60 / 19, -9 / 19], [3 / 19, 48 / 19]])
    near(gamma, log(1 / 3) - np.array([0, 351 / 38, 147 / 19]))
    digits(gamma, [-1.098612, -10.335454, -8.835454])
    digits(at_three(model), [0.373507, 0.114288, 0.512205])
    form = model.to_linear()
    blue_green = form.log_odds_coefficients("green", "blue")
    near([*blue_green.coef[0], blue_green.intercept[0]], np.array([120, -18, -351]) / 38)
    green_red = form.log_odds_coefficients("green", "red")
    near(green_red.coef[0] / green_red.coef[0, 0], [1, -1])
    near(-green_red.intercept[0] / green_red.coef[0, 0], 1 / 2)
    blue_red = form.log_odds_coefficients("red", "blue")
    near([*blue_red.coef[0], -blue_red.intercept[0]], np.array([1, 16, 49]) * 3 / 19)


def test_M9_7b_the_class_prior_is_in_gamma_only():
    model = clouds("tied")
    other = model.reestimate(class_prior={"blue": 0.6, "green": 0.2, "red": 0.2})
    near(other.discriminant_functions_.coef, model.discriminant_functions_.coef)
    moved = other.discriminant_functions_.intercept - model.discriminant_functions_.intercept
    near(moved, np.log([1.8, 0.6, 0.6]))
    near(other.class_prior_.values, [0.6, 0.2, 0.2])
    digits(at_three(other), [0.641392, 0.065419, 0.293189])


def test_M9_17_M9_18_the_likelihood_falls_apart():
    model = clouds()
    digits(model.log_likelihood(X, Y), -52.783050)
    labels = 12 * log(1 / 3)
    digits([labels, model.log_likelihood(X, Y) - labels], [-13.183347, -39.599702])


def test_M9_19_M9_20_means_and_covariances():
    model = clouds()
    near(model.means_, MEANS)
    near(model.covariances_, OWN)
    assert model.parameter_table(0)["blue"] == pytest.approx({"mean": 0, "variance": 4, "std": 2}, abs=1e-12)


def test_M9_20b_a_singular_covariance_is_named():
    rows, y = np.concatenate([[[0, 0], [1, 1]], X[4:]]), ["flat"] * 2 + Y[4:].tolist()
    with pytest.raises(tb.EstimateError, match="flat"):
        tb.GaussianDiscriminant("full", estimate="mle").fit(rows, y).predict(rows)
    near(tb.GaussianDiscriminant("full", estimate="mle").fit(rows, y).covariances_[0], np.full((2, 2), 1 / 4))
    for estimate in ("bayes", "map"):
        assert len(tb.GaussianDiscriminant("full", estimate=estimate).fit(rows, y).predict(rows)) == 10


def test_M9_21_tied():
    near(clouds("tied").covariances_, [TIED] * 3)
    near(np.linalg.inv(TIED), np.array([[21, -6], [-6, 18]]) / 38)


def test_M9_2_4_2_diagonal():
    meant = {"full": 17, "tied": 11, "diagonal": 14, "tied_diagonal": 10, "spherical": 11, "tied_spherical": 9}
    assert {name: clouds(name).n_parameters_ for name in meant} == meant
    model = clouds("tied_diagonal")
    near(model.discriminant_functions_.coef, [[0, 0], [3, 3 / 7], [1, 18 / 7]])
    digits(at_three(model), [0.088428, 0.258170, 0.653401])
    near(model.covariances_, [np.diag([2, 7 / 3])] * 3)


def test_M9_22_regularized():
    near(clouds(shrinkage=0.5).covariances_[0], [[4, 1], [1, 2]])
    meant = {0: [0.839079, 0.053640, 0.107281], 0.5: [0.740804, 0.086399, 0.172797], 1: [0.544833, 0.151722, 0.303445]}
    for amount, proba in meant.items():
        digits(at_three(clouds(shrinkage=amount)), proba)
    tied = clouds("tied", shrinkage=0.5)
    near(tied.covariances_[0], [[2, 1 / 3], [1 / 3, 7 / 3]])
    digits(at_three(tied), [0.191411, 0.191411, 0.617177])
    belief = tb.NormalInverseWishart([0, 0], 1, 4, np.diag([32.0, 16.0]))
    found = tb.fit_distribution(BLUE, tb.MultivariateGaussian()).estimate("map", prior=belief)
    near(found.covariance, [[4, 2 / 3], [2 / 3, 2]])
    one = tb.GaussianDiscriminant(estimate="map", prior=belief).fit(X[:4], Y[:4])
    near(one.covariances_[0], [[4, 2 / 3], [2 / 3, 2]])


# ---- Missing cells ---------------------------------------------------------------------------------------------------


def test_M9_63_M9_64_M9_4_2b_drop_rows_and_columns():
    digits(clouds().predict_proba([[np.nan, 2]])[0], [0.370707, 0.628815, 0.000478])
    digits(clouds().predict_proba([[3, np.nan]])[0], [0.208120, 0.014243, 0.777637])


def test_M9_65b_the_missing_value():
    found = clouds().impute(np.array([[np.nan, 2.0]]))
    digits(found[0, 0], 4.515261)


# ---- Nearest means ---------------------------------------------------------------------------------------------------


def test_M9_23_shared_covariance_and_uniform_prior():
    model = tb.NearestClassMean("mahalanobis").fit(X, Y)
    digits(model.squared_distances([[3, 3]])[0], [4.796053, 6.572368, 4.322368])
    near(model.squared_distances([[3, 3]])[0] * 12 / 9, np.array([243, 333, 219]) / 38)
    assert model.predict([[3, 3]])[0] == "red"
    near(model.class_prior_.values, [1 / 3] * 3)
    near(model.means_, MEANS)


def test_M9_24_any_other_distance():
    model = tb.NearestClassMean("euclidean").fit(X, Y)
    near(model.squared_distances([[3, 3]])[0], [18, 13, 10])
    digits(at_three(model), [0.014753, 0.179734, 0.805512])


def test_M9_25_a_projection():
    root = np.diag([1, 0.5])
    model = tb.NearestClassMean(root.T @ root).fit(X, Y)
    near(model.squared_distances([[3, 3]])[0], [11.25, 10, 3.25])
    digits(at_three(model), [0.017401, 0.032510, 0.950088])


def test_M9_26_softmax_of_distances():
    model = tb.NearestClassMean("euclidean").fit([[0], [2], [6]], ["a", "a", "b"])
    near(model.predict_proba([[3]])[0, 0], 1 / (1 + np.exp(-2.5)))


@pytest.mark.parametrize(("w", "loss", "slope"), [(1, 0.078890, -0.379291), (0.5, 0.428701, -0.871613)])
def test_M9_26b_the_loss_of_a_projection_and_its_slope(w, loss, slope):
    def lost(w):
        model = tb.NearestClassMean([[w**2]]).fit([[0], [2], [6]], ["a", "a", "b"])
        return -model.predict_log_proba([[3]])[0, 0]

    digits(lost(w), loss)
    digits((lost(w + 1e-4) - lost(w - 1e-4)) / 2e-4, slope)
    value, gradient = objective(np.array([[w]]), np.array([[3.0]]), np.array([0]), np.ones(1), np.array([[1.0], [6.0]]))
    digits([value, gradient[0, 0]], [loss, slope])


def test_M9_26b_a_learned_projection():
    model = tb.NearestClassMean("learned").fit(X, Y)
    assert (np.diff(model.history_) < 0).all()
    near(-np.mean(np.log(model.predict_proba(X)[np.arange(12), np.repeat([0, 1, 2], 4)])), model.history_[-1], 1e-9)
    at = np.array([[3.0, 3.0]])
    far = [np.sum((model.projection_ @ (at[0] - mean)) ** 2) for mean in model.means_]
    near(model.squared_distances(at)[0], far, rtol=1e-9)


def test_M9_26c_one_shot():
    model = tb.NearestClassMean("euclidean").fit([[0], [2], [6]], ["a", "a", "b"]).add_class("c", [[4.0]])
    near(model.squared_distances([[3]])[0], [4, 9, 1])
    digits(model.predict_proba([[3]])[0], [0.179734, 0.014753, 0.805512])


# ---- Errata ----------------------------------------------------------------------------------------------------------


def test_E_M1_the_order_of_the_product():
    root = np.array([[1.0, 1.0], [0.0, 1.0]])
    model = tb.NearestClassMean(root.T @ root).fit([[0.0, 0.0], [5.0, 5.0]], ["here", "there"])
    near(model.squared_distances([[1, 0]])[0, 0], 1)
    printed = tb.NearestClassMean(root @ root.T).fit([[0.0, 0.0], [5.0, 5.0]], ["here", "there"])
    near(printed.squared_distances([[1, 0]])[0, 0], 2)


def test_E_M3_the_sign_of_the_determinant():
    model = clouds()
    digits(model.predict_joint_log_proba([[0, 0]])[0, 0] - model.class_log_prior_[0], -2.531024)


def test_E_M4_an_exponent():
    model = tb.NaiveBayes(tb.TiedGaussian(), estimate="mle").fit(SHARED, SHARED_CLASS)
    digits(model.log_likelihood(SHARED, SHARED_CLASS), -12.332716)


def test_E_T6_two_signs():
    form = tb.NaiveBayes(tb.TiedGaussian(), estimate="mle").fit(SHARED, SHARED_CLASS).to_linear()
    digits([form.coef[0, 0], form.intercept[0]], [2, -1.306853])
    digits([form.log_odds_coefficients(0).coef[0, 0], form.log_odds_coefficients(0).intercept[0]], [-2, 1.306853])


def test_E_M6_log_odds_are_linear():
    rows, y = [[-1.0], [1.0], [1.0], [3.0]], [0, 0, 1, 1]
    model = tb.NaiveBayes(tb.TiedGaussian(), estimate="mle").fit(rows, y)
    found = model.predict_log_proba([[1.0], [2.0], [3.0]])
    digits(found[:, 1], [-0.693147, -0.126928, -0.018150])
    near(found[:, 1] - found[:, 0], [0, 2, 4])

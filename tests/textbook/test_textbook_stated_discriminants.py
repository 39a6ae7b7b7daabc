"""Gaussian discriminants from stated moments: the numbers of the lecture without any point."""

import numpy as np
import pytest

import tallybayes as tb

MEANS = {"blue": [0, 0], "green": [6, 1], "red": [2, 6]}
COVARIANCES = {"blue": [[4, 2], [2, 2]], "green": [[1, 0], [0, 4]], "red": [[1, 0], [0, 1]]}


def stated(covariance="full", **options):
    return tb.GaussianDiscriminant.from_parameters(MEANS, COVARIANCES, covariance=covariance, **options)


def near(found, expected):
    np.testing.assert_allclose(found, expected, atol=6e-7)


def test_M9_22b_own_covariances():
    model = stated()
    near(np.exp(model.predict_joint_log_proba([[0, 0]])[0, 0]) * 3, 0.079577)
    near(model.predict_proba([[3, 3]]), [[0.839079, 0.053640, 0.107281]])
    near(model.predict_joint_log_proba([[3, 3]]), [[-5.879637, -8.629637, -7.936489]])
    near(model.predict_joint_log_proba([[8, 8]]), [[-19.629637, -11.754637, -22.936489]])
    assert model.predict([[3, 3], [8, 8]]).tolist() == ["blue", "green"]
    near(
        model.predict_proba([[np.nan, 2], [3, np.nan]]),
        [[0.370707, 0.628815, 0.000478], [0.208120, 0.014243, 0.777637]],
    )
    near(model.impute(np.array([[np.nan, 2.0]])), [[4.515261, 2]])


def test_M9_22b_one_covariance_for_all():
    model = stated("tied")
    found = model.discriminant_functions_
    np.testing.assert_allclose(found.coef, [[0, 0], [60 / 19, -9 / 19], [3 / 19, 48 / 19]], atol=1e-12)
    np.testing.assert_allclose(found.intercept, np.log(1 / 3) - np.array([0, 351 / 38, 147 / 19]), atol=1e-12)
    near(model.predict_proba([[3, 3]]), [[0.373507, 0.114288, 0.512205]])
    assert model.predict([[3, 3], [8, 8]]).tolist() == ["red", "red"]
    prior = {"blue": 0.6, "green": 0.2, "red": 0.2}
    near(model.predict_proba([[3, 3]], class_prior=prior), [[0.641392, 0.065419, 0.293189]])
    moved = model.reestimate(class_prior=prior).discriminant_functions_
    np.testing.assert_allclose(moved.intercept - found.intercept, np.log([1.8, 0.6, 0.6]), atol=1e-12)
    np.testing.assert_array_equal(moved.coef, found.coef)


@pytest.mark.parametrize(
    ("covariance", "n_parameters"),
    [("full", 17), ("tied", 11), ("diagonal", 14), ("tied_diagonal", 10), ("spherical", 11), ("tied_spherical", 9)],
)
def test_M9_22b_how_many_numbers(covariance, n_parameters):
    assert stated(covariance).n_parameters_ == n_parameters


def test_M9_22b_diagonal_and_regularized():
    model = stated("tied_diagonal")
    near(model.predict_proba([[3, 3]]), [[0.088428, 0.258170, 0.653401]])
    near(model.discriminant_functions_.coef, [[0, 0], [3, 3 / 7], [1, 18 / 7]])
    for amount, expected in ((0.0, [0.839079, 0.053640, 0.107281]), (0.5, [0.740804, 0.086399, 0.172797])):
        near(stated(shrinkage=amount).predict_proba([[3, 3]]), [expected])
    near(stated(shrinkage=1.0).predict_proba([[3, 3]]), [[0.544833, 0.151722, 0.303445]])
    near(stated("tied", shrinkage=0.5).predict_proba([[3, 3]]), [[0.191411, 0.191411, 0.617177]])


def test_T20_T21_one_column_with_a_shared_variance():
    columns = {"x": {0: {"mean": 0, "variance": 1}, 1: {"mean": 2, "variance": 1}}}
    model = tb.NaiveBayes.from_parameters(columns, {0: 1 / 3, 1: 2 / 3}, columns=tb.TiedGaussian())
    form = model.to_linear()
    np.testing.assert_allclose(np.ravel(form.coef), [2], atol=1e-12)
    near(np.ravel(form.intercept), [-1.306853])
    np.testing.assert_allclose(model.predict_proba({"x": [1.0]})[0, 1], 2 / 3, rtol=1e-12)
    edge = 1 - 0.5 * np.log(2)
    assert model.predict({"x": [edge - 1e-9, edge + 1e-9]}).tolist() == [0, 1]


def test_T21b_other_variances_are_not_linear():
    columns = {"x": {1: {"mean": 0, "variance": 1}, 2: {"mean": 0, "variance": 4}}}
    model = tb.NaiveBayes.from_parameters(columns, {1: 0.5, 2: 0.5})
    edge = np.sqrt(8 / 3 * np.log(2))
    near(edge, 1.359556)
    assert model.predict({"x": [edge - 1e-9, edge + 1e-9, -edge - 1e-9]}).tolist() == [1, 2, 2]
    with pytest.raises(tb.NotLinearError):
        model.to_linear()

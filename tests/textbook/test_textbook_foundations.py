"""Foundations as the textbooks reckon them: what to measure, and what to measure it on."""

import numpy as np
from sklearn.datasets import load_iris

import tallybayes as tb
from tests.textbook.course import columns, digits, mails, near, spam


def test_M0_3_measures_of_ten_messages():
    spam = np.array([0.9, 0.8, 0.7, 0.4, 0.3, 0.8, 0.1, 0.2, 0.3, 0.4])
    found = tb.Evaluation(["ham", "spam"], np.repeat([1, 0], 5), np.log(np.column_stack([1 - spam, spam])))
    assert found.confusion_matrix.tolist() == [[4, 1], [2, 3]]
    near([found.accuracy.value, found.error_rate.value], [7 / 10, 3 / 10])
    near([found.precision["spam"].value, found.recall["spam"].value], [3 / 4, 3 / 5])
    near([found.f1_score["spam"].value, found.false_positive_rate["spam"].value], [2 / 3, 1 / 5])
    digits(found.log_loss.value, 0.561089)
    near([found.brier_score.value, found.roc_auc.value], [0.193, 0.78])


def test_M0_3_measures_of_three_numbers():
    found = tb.RegressionEvaluation([1.0, 2.0, 4.0], [1.0, 3.0, 2.0])
    near([found.mean_absolute_error.value, found.mean_squared_error.value], [1, 5 / 3])


def test_M0_2_a_distribution_and_not_a_value():
    model = mails(prior=1)
    p, (low, high) = spam(model, "1101"), model.predict_proba_interval(columns("1101"))
    near(p, 8000 / 8567)
    assert low[0, 1] < p < high[0, 1]


def test_M0_4_a_label_that_is_wrong_stands_out():
    rows, species = load_iris(return_X_y=True)
    species[10] = 2
    found = tb.leave_one_out(tb.GaussianDiscriminant(), rows, species).log_proba
    assert found[np.arange(150), species].argmin() == 10


def test_M0_12_ring_and_core():
    angle = np.linspace(0, 2 * np.pi, 40, endpoint=False)
    circle, labels = np.column_stack([np.cos(angle), np.sin(angle)]), np.repeat(["core", "ring"], 40)
    rows = np.concatenate([circle, 3 * circle])
    assert tb.GaussianDiscriminant("full", estimate="mle").fit(rows, labels).score(rows, labels) == 1
    near(tb.GaussianDiscriminant("tied", estimate="mle").fit(rows, labels).predict_proba(rows), 1 / 2)
    radius = np.hypot(*rows.T)[:, None]
    model = tb.NearestClassMean("euclidean").fit(radius, labels)  # linear: the boundary is the radius 2
    assert model.score(radius, labels) == 1
    near(model.predict_proba([[2.0]])[0], [1 / 2, 1 / 2])

"""What R's MASS computes on iris and Pima: lda and qda, their posteriors, directions and cross-validation.

The tables were written by R 4.2 (see the data folder's README). MASS pools a covariance over n − K, and divides the
covariance of one class by n_c − 1: ``estimate="unbiased"``.
"""

import csv
import gzip

import numpy as np
import pytest
from sklearn.datasets import load_iris

import tallybayes as tb
from tests.shared import DATA, needs

pytestmark = needs("reference")

COVARIANCE = {"lda": "tied", "qda": "full"}
KINDS = ["setosa", "versicolor", "virginica"]
MEASURES = ["Sepal.Length", "Sepal.Width", "Petal.Length", "Petal.Width"]


def table(name):
    path = DATA / "reference" / name
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
        return list(csv.DictReader(file))


def numbers(rows, columns):
    return np.array([[float(row[column]) for column in columns] for row in rows])


def iris():
    data = load_iris()  # scikit-learn's copy is R's
    return data.data, data.target_names[data.target]


def pima(name):
    rows = table(f"MASS_Pima.{name}.csv.gz")
    columns = [column for column in rows[0] if column != "type"]
    return numbers(rows, columns), np.array([row["type"] for row in rows])


@pytest.mark.parametrize("method", ["lda", "qda"])
def test_iris_posteriors(method):
    X, y = iris()
    model = tb.GaussianDiscriminant(COVARIANCE[method], estimate="unbiased").fit(X, y)
    reference = table(f"iris_{method}_posterior.csv")
    expected = numbers(reference, KINDS)
    assert expected.shape == (150, 3)
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=1e-8, atol=1e-300)
    assert model.predict(X).tolist() == [row["pred"] for row in reference]


@pytest.mark.parametrize("method", ["lda", "qda"])
def test_pima_posteriors(method):
    (X, y), (new, _) = pima("tr"), pima("te")
    model = tb.GaussianDiscriminant(COVARIANCE[method], estimate="unbiased").fit(X, y)
    expected = numbers(table(f"pima_{method}_test_posterior.csv"), ["No", "Yes"])
    assert expected.shape == (332, 2)
    np.testing.assert_allclose(model.predict_proba(new), expected, rtol=1e-8)


def test_iris_directions():
    X, y = iris()
    model = tb.GaussianDiscriminant().fit(X, y)
    rows = {row[""]: row for row in table("iris_lda_scaling.csv")}
    scaling = numbers([rows[name] for name in MEASURES], ["LD1", "LD2"])
    sign = np.sign((scaling * model.scalings_).sum(axis=0))
    np.testing.assert_allclose(sign * model.scalings_, scaling, rtol=1e-8)
    seen = numbers(table("iris_lda_posterior.csv"), ["LD1", "LD2"])
    np.testing.assert_allclose(sign * model.transform(X), seen, rtol=1e-8, atol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["lda", "qda"])
def test_iris_cross_validation_by_forgetting(method):
    """R leaves every row out in turn and keeps the class shares of all; here its row is forgotten and learned again."""
    X, y = iris()
    model = tb.GaussianDiscriminant(COVARIANCE[method], estimate="unbiased", class_prior="uniform").fit(X, y)
    found = []
    for i in range(len(X)):
        found.append(model.forget(X[i : i + 1], y[i : i + 1]).predict_proba(X[i : i + 1])[0])
        model.partial_fit(X[i : i + 1], y[i : i + 1])
    expected = numbers(table(f"iris_{method}_loo_posterior.csv"), KINDS)
    np.testing.assert_allclose(found, expected, rtol=1e-8)
    in_one_pass = np.exp(tb.leave_one_out(model, X, y).log_proba)
    np.testing.assert_allclose(in_one_pass, expected, rtol=1e-8)


def test_nearest_mean_is_r_s_lda_where_the_classes_are_of_one_size():
    X, y = iris()
    expected = numbers(table("iris_lda_posterior.csv"), KINDS)
    np.testing.assert_allclose(tb.NearestClassMean().fit(X, y).predict_proba(X), expected, rtol=1e-8, atol=1e-300)

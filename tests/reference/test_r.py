"""What R computes: e1071's naiveBayes and MASS's lda and qda on iris, Pima and the house votes.

The tables were written by R 4.2 (see the data folder's README). e1071 divides a standard deviation by n − 1 and drops
missing cells; MASS pools a covariance over n − K.
"""

import csv
import gzip

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.datasets import load_iris

import tallybayes as tb
from tests.shared import DATA, needs

pytestmark = needs("reference", "tables")


def table(name):
    """A reference table as a list of dictionaries."""
    path = DATA / "reference" / name
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
        return list(csv.DictReader(file))


def posteriors(name, classes):
    return np.array([[float(row[c]) for c in classes] for row in table(name)])


@pytest.fixture(scope="module")
def iris():
    # scikit-learn's copy is R's; the one in the data folder keeps two typing errors of the UCI file (rows 35 and 38)
    data = load_iris()
    return data.data, data.target_names[data.target]


@pytest.fixture(scope="module")
def votes():
    with (DATA / "tables" / "house-votes-84.data").open() as file:
        rows = [line.strip().split(",") for line in file if line.strip()]
    parties = [row[0] for row in rows]
    return [[None if vote == "?" else vote for vote in row[1:]] for row in rows], parties


def pima(name):
    rows = table(f"MASS_Pima.{name}.csv.gz")
    columns = [c for c in rows[0] if c != "type"]
    values = [[np.nan if row[c] in ("NA", "") else float(row[c]) for c in columns] for row in rows]
    return np.array(values), np.array([row["type"] for row in rows])


def class_posterior(learned, labels, rows, parameters):
    """P(class | row) with class shares as the prior, from the log probabilities of one family."""
    scores = learned.family.log_prob(parameters, rows)
    scores = scores.sum(axis=-1) if learned.family.columnwise else scores
    shares = np.array([np.mean(labels == c) for c in learned.groups])
    return softmax(scores + np.log(shares), axis=-1)


SEPALS = ["Sepal.Length", "Sepal.Width", "Petal.Length", "Petal.Width"]


def test_iris_class_means(iris):
    rows, names = iris
    learned = tb.fit_distribution(rows, tb.Gaussian(), group=names)
    expected = {row[""]: [float(row[c]) for c in SEPALS] for row in table("iris_class_means.csv")}
    assert learned.groups == tuple(expected)
    np.testing.assert_allclose(learned.estimate("mle").mean, list(expected.values()), rtol=1e-13)


def test_iris_means_and_deviations_of_naive_bayes(iris):
    rows, names = iris
    learned = tb.fit_distribution(rows, tb.Gaussian(), group=names)
    found = learned.estimate("unbiased")
    reference = table("iris_nb_params.csv")
    assert len(reference) == 12
    for row in reference:
        place = learned.groups.index(row["class"]), SEPALS.index(row["var"])
        assert found.mean[place] == pytest.approx(float(row["mean"]), rel=1e-13)
        assert np.sqrt(found.variance[place]) == pytest.approx(float(row["sd"]), rel=1e-13)


@pytest.mark.parametrize(
    ("family", "reference"),
    [
        (tb.Gaussian(), "iris_nb_posterior.csv"),
        (tb.MultivariateGaussian(), "iris_qda_posterior.csv"),
        (tb.TiedMultivariateGaussian(), "iris_lda_posterior.csv"),
    ],
)
def test_iris_posteriors(iris, family, reference):
    rows, names = iris
    learned = tb.fit_distribution(rows, family, group=names)
    found = class_posterior(learned, names, rows, learned.estimate("unbiased"))
    expected = posteriors(reference, learned.groups)
    assert expected.shape == (150, 3)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize(
    ("family", "reference"),
    [
        (tb.Gaussian(), "pima_nb_test_posterior.csv"),
        (tb.MultivariateGaussian(), "pima_qda_test_posterior.csv"),
        (tb.TiedMultivariateGaussian(), "pima_lda_test_posterior.csv"),
    ],
)
def test_pima_posteriors(family, reference):
    (rows, names), (new, _) = pima("tr"), pima("te")
    learned = tb.fit_distribution(rows, family, group=names)
    found = class_posterior(learned, names, new, learned.estimate("unbiased"))
    np.testing.assert_allclose(found, posteriors(reference, learned.groups), rtol=1e-9)


def test_pima_with_missing_cells():
    (rows, names), (new, _) = pima("tr2"), pima("te")
    assert np.isnan(rows).sum() > 50
    learned = tb.fit_distribution(rows, tb.Gaussian(), group=names)
    found = class_posterior(learned, names, new, learned.estimate("unbiased"))
    expected = posteriors("pima_tr2missing_nb_test_posterior.csv", learned.groups)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("laplace", "estimate", "prior"),
    [(0, "mle", None), (1, "bayes", None), (1, "bayes", tb.Dirichlet(1)), (1, "map", tb.Dirichlet(2))],
)
def test_house_votes_tables(votes, laplace, estimate, prior):
    rows, parties = votes
    learned = tb.fit_distribution(rows, tb.Categorical(), group=parties)
    found = learned.estimate(estimate, prior=prior)
    reference = table(f"votes_nb_laplace{laplace}_tables.csv")
    assert len(reference) == 32
    for row in reference:
        column, party = int(row["var"].removeprefix("V")) - 1, learned.groups.index(row["class"])
        for vote in ("n", "y"):
            assert found[column][vote][party] == pytest.approx(float(row[vote]), rel=1e-12)


def test_house_votes_posteriors(votes):
    """A missing vote adds nothing, at fitting as at prediction."""
    rows, parties = votes
    learned = tb.fit_distribution(rows, tb.Categorical(), group=parties)
    scores = learned.predictive(tb.Dirichlet(1)).log_prob(rows).sum(axis=-1)
    shares = np.array([np.mean(np.array(parties) == party) for party in learned.groups])
    found = softmax(scores + np.log(shares), axis=-1)
    expected = posteriors("votes_nb_laplace1_posterior.csv", learned.groups)
    assert expected.shape == (435, 2)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "reference"),
    [
        (tb.TiedMultivariateGaussian(), "iris_lda_loo_posterior.csv"),
        (tb.MultivariateGaussian(), "iris_qda_loo_posterior.csv"),
    ],
)
def test_iris_leave_one_out_by_forgetting(iris, family, reference):
    """MASS's cross-validation keeps the class prior of all rows, here equal shares."""
    rows, names = iris
    whole = tb.fit_distribution(rows, family, group=names)
    found = []
    for i in range(len(rows)):
        rest = whole - tb.fit_distribution(rows[i : i + 1], family, group=names[i : i + 1])
        found.append(softmax(family.log_prob(rest.estimate("unbiased"), rows[i : i + 1])[0]))
    np.testing.assert_allclose(found, posteriors(reference, whole.groups), rtol=1e-10)

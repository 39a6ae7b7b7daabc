"""Naive Bayes against R 4.2's e1071::naiveBayes: tables and posteriors of house votes, iris and Pima.

e1071's conventions: missing cells are dropped, standard deviations divide by n − 1, laplace = α adds α to every count,
and at prediction probabilities of exactly 0 become 0.001. None of the tables used here has a zero and no density here
underflows, so all posteriors agree.
"""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

import tallybayes as tb
from tests.shared import DATA, needs

pytestmark = needs("reference", "tables")


@pytest.fixture(scope="module")
def votes():
    names = ["party", *(f"V{j}" for j in range(1, 17))]
    frame = pd.read_csv(DATA / "tables" / "house-votes-84.data", names=names, na_values="?", keep_default_na=False)
    return frame.drop(columns="party"), frame["party"]


def table_of(model, column, estimate, prior=None):
    """p(level | class) as the model's own answers: one column known, all others missing."""
    levels = sorted(model.tally_.domains[column].levels)
    names = [name for factor in model.tally_.factors[1:] for name in factor.columns]
    rows = pd.DataFrame({name: levels if name == column else [None] * len(levels) for name in names})
    one = model.reestimate(estimate=estimate, prior=prior)
    return np.exp(one.predict_joint_log_proba(rows) - one.class_log_prior_).T, levels


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    ("laplace", "estimate", "prior"),
    [
        (0, "mle", None),
        (1, "bayes", 1),
        (1, "map", None),
        (1, "bayes", tb.Dirichlet(1)),
        (1, "map", tb.Dirichlet(2)),
    ],
)
def test_house_votes_tables(votes, laplace, estimate, prior):
    model = tb.NaiveBayes().fit(*votes)
    reference = pd.read_csv(DATA / "reference" / f"votes_nb_laplace{laplace}_tables.csv")
    for column, part in reference.groupby("var"):
        found, levels = table_of(model, column, estimate, prior)
        assert levels == ["n", "y"]
        assert part["class"].tolist() == model.classes_.tolist()
        np.testing.assert_allclose(found, part[["n", "y"]], rtol=0, atol=1e-12)
        # the same from the counts themselves
        counts = model.tally_[tuple(votes[0].columns)]
        place = votes[0].columns.get_loc(column)
        mine = counts.segments.split(counts.table)[place][
            :, [model.tally_.domains[column].levels.index(x) for x in "ny"]
        ]
        smoothed = (mine + laplace) / (mine + laplace).sum(axis=1, keepdims=True)
        np.testing.assert_allclose(smoothed, part[["n", "y"]], rtol=0, atol=1e-12)


@pytest.mark.parametrize(("laplace", "estimate"), [(0, "mle"), (1, "bayes"), (1, "map")])
def test_house_votes_posteriors(votes, laplace, estimate):
    reference = pd.read_csv(DATA / "reference" / f"votes_nb_laplace{laplace}_posterior.csv")
    model = tb.NaiveBayes(estimate=estimate, prior=tb.Dirichlet(2 if estimate == "map" else 1), class_prior="frequency")
    model.fit(*votes)
    assert reference.columns.tolist() == model.classes_.tolist()
    np.testing.assert_allclose(model.predict_proba(votes[0]), reference, rtol=1e-9, atol=1e-14)


def test_iris():
    X, y = load_iris(return_X_y=True)
    names = ["Sepal.Length", "Sepal.Width", "Petal.Length", "Petal.Width"]
    species = np.array(["setosa", "versicolor", "virginica"])[y]
    frame = pd.DataFrame(X, columns=names)
    model = tb.NaiveBayes(estimate="unbiased").fit(frame, species)
    moments = model.tally_[tuple(names)]
    for row in pd.read_csv(DATA / "reference" / "iris_nb_params.csv").itertuples():
        place = model.classes_.tolist().index(row[2]), names.index(row.var)
        assert moments.mean[place] == pytest.approx(row.mean, abs=1e-12)
        assert np.sqrt(moments.scatter[place] / 49) == pytest.approx(row.sd, abs=1e-12)
    reference = pd.read_csv(DATA / "reference" / "iris_nb_posterior.csv")
    np.testing.assert_allclose(model.predict_proba(frame), reference, rtol=1e-8, atol=0)


@pytest.mark.parametrize(
    ("train", "posterior"),
    [
        ("MASS_Pima.tr.csv.gz", "pima_nb_test_posterior.csv"),
        ("MASS_Pima.tr2.csv.gz", "pima_tr2missing_nb_test_posterior.csv"),
    ],
)
def test_pima_with_and_without_missing_cells(train, posterior):
    fitted, test = (pd.read_csv(DATA / "reference" / name) for name in (train, "MASS_Pima.te.csv.gz"))
    assert fitted.isna().to_numpy().any() == ("tr2" in train)
    model = tb.NaiveBayes(estimate="unbiased").fit(fitted, "type")
    reference = pd.read_csv(DATA / "reference" / posterior)
    assert reference.columns.tolist() == model.classes_.tolist()
    np.testing.assert_allclose(model.predict_proba(test), reference, rtol=1e-8, atol=0)
    moments = model.tally_[tuple(fitted.columns[:-1])]
    for k, label in enumerate(model.classes_):
        rows = fitted[fitted["type"] == label].drop(columns="type")
        np.testing.assert_allclose(moments.mean[k], rows.mean(), rtol=1e-12)
        np.testing.assert_allclose(moments.scatter[k] / (moments.weight[k] - 1), rows.var(), rtol=1e-12)

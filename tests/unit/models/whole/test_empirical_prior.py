"""prior="empirical" in models: resolved, cloned, saved, and no more fragile than the default."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import tallybayes as tb
from tallybayes.errors import EstimateError

COVARIANCES = ["full", "tied", "diagonal", "tied_diagonal", "spherical", "tied_spherical"]


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(4)
    n = 60
    target = rng.integers(0, 3, n)
    return pd.DataFrame(
        {
            "color": np.array(["red", "green", "blue", None], dtype=object)[(target + rng.integers(0, 2, n)) % 4],
            "shape": rng.choice(["round", "long"], n),
            "length": rng.normal(target * 2.0, 1.0),
            "width": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
            "kind": np.array(["a", "b", "c"])[target],
        }
    )


def test_every_block_has_its_prior(frame):
    model = tb.NaiveBayes(prior="empirical").fit(frame, "kind")
    labels, numbers = model.prior_["color", "shape"], model.prior_["length", "width"]
    assert isinstance(labels, tb.Dirichlet)
    assert isinstance(numbers, tb.NormalInverseGamma)
    # the column that tells the classes apart has the weak prior, the one that does not a strong one
    assert labels.concentration[:3].sum() < 10
    assert labels.concentration[3:].sum() == pytest.approx(60, rel=0.05)
    assert numbers.strength[0] < 1
    assert numbers.strength[1] > 10 * numbers.strength[0]
    direct = tb.NaiveBayes(prior=[labels, numbers]).fit(frame, "kind")
    np.testing.assert_allclose(model.predict_proba(frame), direct.predict_proba(frame), rtol=1e-12)


def test_settings_are_plain(frame, tmp_path):
    model = tb.NaiveBayes(prior="empirical").fit(frame, "kind")
    assert clone(model).get_params()["prior"] == "empirical"
    assert "prior='empirical'" in repr(model)
    model.save(tmp_path / "model")
    again = tb.load(tmp_path / "model")
    assert again.prior == "empirical"
    np.testing.assert_array_equal(again.predict_proba(frame), model.predict_proba(frame))
    factor = tb.Factor("shape", "kind", tb.Categorical(), prior="empirical")
    tally = tb.count(frame, [factor])
    tally.save(tmp_path / "tally")
    assert tb.load(tmp_path / "tally").factors[0].prior == "empirical"


def test_lists_and_mappings(frame):
    both = tb.NaiveBayes(prior="empirical").fit(frame, "kind")
    listed = both.reestimate(prior=[tb.Dirichlet(0.5), "empirical"])
    assert listed.prior_["color", "shape"] == tb.Dirichlet(0.5)
    assert listed.prior_["length", "width"] == both.prior_["length", "width"]
    mapped = both.reestimate(prior={"length": "empirical", "width": "empirical"})
    assert mapped.prior_["length", "width"] == both.prior_["length", "width"]
    assert mapped.prior_["color", "shape"] == both.prior_["color", "shape"]  # the default of labels, too
    with pytest.raises(EstimateError, match="'empirical'"):
        both.reestimate(prior={"length": "empiric", "width": "empiric"})


@pytest.mark.parametrize("covariance", COVARIANCES)
@pytest.mark.parametrize("estimate", ["bayes", "map"])
def test_constant_columns_and_small_classes(covariance, estimate):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(9, 3)) + np.array([[0.0, 0, 0]] * 4 + [[4.0, 0, 0]] * 4 + [[0.0, 7, 0]])
    y = np.array([0] * 4 + [1] * 4 + [2])
    plain = tb.GaussianDiscriminant(covariance, prior="empirical", estimate=estimate).fit(X, y)
    assert (plain.predict(X) == y).all()
    constant = np.column_stack([X, np.full(9, 5.0)])
    model = tb.GaussianDiscriminant(covariance, prior="empirical", estimate=estimate).fit(constant, y)
    assert len(model.constant_columns_) == 1
    probability = model.predict_proba(constant)
    assert np.isfinite(probability).all()
    if covariance in ("diagonal", "tied_diagonal"):  # where the columns have nothing in common
        np.testing.assert_allclose(probability, plain.predict_proba(X), rtol=1e-6)
    for part in (slice(3, 4), slice(3, 5)):  # a single row, and one of each of two classes
        few = tb.GaussianDiscriminant(covariance, prior="empirical", estimate=estimate).fit(X[part], y[part])
        assert np.isfinite(few.predict_proba(X)).all()


@pytest.mark.parametrize("family", [tb.Bernoulli(), tb.Poisson(), tb.Multinomial(), tb.DirichletMultinomial()])
@pytest.mark.parametrize("estimate", ["bayes", "map"])
def test_counts_learn_and_forget(family, estimate):
    rng = np.random.default_rng(2)
    X = (rng.random((40, 12)) < 0.3).astype(float)
    X[:, 11] = 0.0  # never seen
    y = rng.integers(0, 3, 40)
    whole = tb.NaiveBayes(family, prior="empirical", estimate=estimate).fit(X, y)
    parts = tb.NaiveBayes(family, prior="empirical", estimate=estimate)
    parts.partial_fit(X[:25], y[:25]).partial_fit(X[20:], y[20:]).forget(X[20:25], y[20:25])
    np.testing.assert_allclose(parts.predict_proba(X), whole.predict_proba(X), rtol=1e-6)
    assert np.isfinite(whole.predict_log_proba(1 - X)).all()
    one = tb.NaiveBayes(family, prior="empirical", estimate=estimate).fit(X[:1], y[:1])
    assert one.predict_proba(X).tolist() == [[1.0]] * 40


def test_a_level_never_seen_and_one_seen_later(frame):
    model = tb.NaiveBayes(prior="empirical", unseen="smooth").fit(frame, "kind")
    strange = frame.assign(color="violet")
    assert np.isfinite(model.predict_log_proba(strange)).all()
    row = {"color": ["violet"], "shape": ["long"], "length": [0.0], "width": [0.1], "kind": ["d"]}
    model.partial_fit(pd.DataFrame(row), "kind")
    assert model.prior_["color", "shape"].concentration.shape == (6,)
    assert model.predict_proba(strange).shape == (60, 4)


def test_missing_cells_under_a_full_covariance():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 30)
    X = rng.normal(size=(60, 3)) @ np.array([[1.0, 0.8, 0], [0, 1, 0], [0, 0, 1]]) + y[:, None]
    X[rng.random(X.shape) < 0.1] = np.nan
    for covariance in ("full", "tied", "diagonal"):
        model = tb.GaussianDiscriminant(covariance, prior="empirical").fit(X, y)
        assert model.score(X, y) > 0.6

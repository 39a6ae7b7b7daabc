"""What changed from one model to another, in rows and in bits."""

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.stats import lognorm, multivariate_normal, norm, poisson

import tallybayes as tb
from tallybayes.datasets import make_penguins
from tallybayes.distributions.normal_inverse_gamma import Normal
from tallybayes.distributions.normal_inverse_wishart import MultivariateNormal
from tallybayes.evaluation.comparison.model_difference import difference
from tallybayes.families.protocols.distribution_functions import kl_divergence


@pytest.mark.slow
def test_divergences_in_closed_form_are_integrals():
    first, second = Normal(np.array([1.0]), np.array([0.5])), Normal(np.array([0.4]), np.array([2.0]))
    p, q = norm(1.0, np.sqrt(0.5)), norm(0.4, np.sqrt(2.0))
    expected = quad(lambda x: p.pdf(x) * (p.logpdf(x) - q.logpdf(x)), -8, 10)[0]
    assert kl_divergence(tb.Gaussian(), first, second) == pytest.approx(expected)
    u, v = lognorm(np.sqrt(0.5), scale=np.e), lognorm(np.sqrt(2.0), scale=np.exp(0.4))
    expected = quad(lambda x: u.pdf(x) * (u.logpdf(x) - v.logpdf(x)), 1e-9, 400, limit=200)[0]
    assert kl_divergence(tb.LogNormal(), first, second) == pytest.approx(expected, rel=1e-5)
    k = np.arange(60)
    expected = (poisson(3.0).pmf(k) * (poisson(3.0).logpmf(k) - poisson(4.5).logpmf(k))).sum()
    assert kl_divergence(tb.Poisson(), np.array([3.0]), np.array([4.5])) == pytest.approx(expected)
    p, q = np.array([0.2, 0.3, 0.5]), np.array([0.1, 0.6, 0.3])
    assert kl_divergence(tb.Multinomial(), p, q).sum() == pytest.approx((p * np.log(p / q)).sum())


@pytest.mark.slow
def test_the_divergence_of_covariances():
    rng = np.random.default_rng(0)
    a, b = (np.cov(rng.normal(size=(3, 40))) for _ in range(2))
    first, second = MultivariateNormal(np.zeros((1, 3)), a[None]), MultivariateNormal(np.ones((1, 3)) / 4, b[None])
    p, q = multivariate_normal(np.zeros(3), a), multivariate_normal(np.full(3, 0.25), b)
    x = p.rvs(400_000, random_state=1)
    expected = np.mean(p.logpdf(x) - q.logpdf(x))
    assert kl_divergence(tb.MultivariateGaussian(), first, second)[0] == pytest.approx(expected, rel=0.02)
    flat = MultivariateNormal(np.zeros((1, 3)), np.zeros((1, 3, 3)))
    assert np.isnan(kl_divergence(tb.MultivariateGaussian(), first, flat)).all()


def test_a_family_that_scores_anew_is_compared_by_what_it_draws():
    class Wider(tb.Poisson):
        def log_prob(self, parameters, x):
            return super().log_prob(2 * parameters, x)

        def sample(self, parameters, n, rng):
            return super().sample(2 * parameters, n, rng)

    rates = np.array([1.0]), np.array([1.5])
    assert kl_divergence(Wider(), *rates) == pytest.approx(kl_divergence(tb.Poisson(), 2.0, 3.0), rel=0.1)
    assert kl_divergence(tb.Binomial(5), np.array([0.3]), np.array([0.3])) == 0


ROWS = make_penguins(300, 1)
MORE = make_penguins(60, 2)
NUMBERS = {
    name: np.nan_to_num(ROWS[name], nan=40.0) if name != "species" else ROWS[name]
    for name in ("bill_mm", "mass_g", "species")
}
KIND = "species"
MODELS = {
    "NaiveBayes": lambda: tb.NaiveBayes({"eggs": tb.Poisson(), "mass_g": tb.LogNormal(), ...: "auto"}).fit(ROWS, KIND),
    "mle": lambda: tb.NaiveBayes(estimate="mle").fit(ROWS, "species"),
    "AveragedOneDependence": lambda: tb.AveragedOneDependence().fit(ROWS, "species"),
    "TreeAugmentedNaiveBayes": lambda: tb.TreeAugmentedNaiveBayes().fit(ROWS, "species"),
    "full": lambda: tb.GaussianDiscriminant().fit(NUMBERS, "species"),
    "tied": lambda: tb.GaussianDiscriminant("tied").fit(NUMBERS, "species"),
    "tied_spherical": lambda: tb.GaussianDiscriminant("tied_spherical").fit(NUMBERS, "species"),
    "NearestClassMean": lambda: tb.NearestClassMean().fit(NUMBERS, "species"),
    "AutoClassifier": lambda: tb.AutoClassifier(folds=2).fit(ROWS, "species"),
    "BayesianNetwork": lambda: tb.BayesianNetwork({"sex": ["island", "species"], "mass_g": ["species"]}).fit(ROWS),
    "HiddenMarkovModel": lambda: tb.HiddenMarkovModel().fit([["a", "b", "b"]] * 3, [["x", "y", "x"]] * 3),
}  # fmt: skip


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("name", MODELS)
def test_a_model_does_not_differ_from_itself_and_does_after_more_rows(name):
    model = MODELS[name]()
    same = difference(model, model)
    assert same.columns
    assert max(one.bits for one in same.columns) == pytest.approx(0, abs=1e-9)
    assert same.rows[0] == same.rows[1] == model.n_rows_
    assert not same.only_before
    assert not same.only_after
    other = MODELS[name]()
    if name == "HiddenMarkovModel":
        other.partial_fit([["b", "b"]], [["x", "x"]])
    elif name == "BayesianNetwork":
        other.partial_fit(MORE)
    else:
        kept = NUMBERS if name in ("full", "tied", "tied_spherical", "NearestClassMean") else MORE
        other.partial_fit({key: value[:40] for key, value in kept.items()}, "species")
    found = difference(model, other)
    if name != "NearestClassMean":
        assert 0 < max(one.bits for one in found.columns) < 3
    assert found.rows[1] > found.rows[0]
    assert type(model).__name__ in repr(found)
    assert "<table" in found._repr_html_()
    assert len(found.to_frame()) == len(found.columns)


def test_bits_are_the_means_over_classes_by_their_rows_after():
    old = tb.NaiveBayes({"x": tb.Gaussian()}, estimate="mle").fit({"x": [0.0, 2, 5, 7], "y": [0, 0, 1, 1]}, "y")
    new = tb.NaiveBayes({"x": tb.Gaussian()}, estimate="mle").fit(
        {"x": [1.0, 3, 5, 7, 5, 7], "y": [0, 0, 1, 1, 1, 1]}, "y"
    )
    (one,) = difference(old, new).columns
    assert one.group == 0
    assert one.group_bits == pytest.approx(0.5 / np.log(2))  # means 1 apart, variances 1
    assert one.bits == pytest.approx(one.group_bits * 2 / 6)


def test_levels_classes_and_columns_that_come_and_go():
    rows = pd.DataFrame({"sky": ["sun", "rain"] * 4, "wind": [1.0, 2.0] * 4, "y": ["a", "b"] * 4})
    old = tb.NaiveBayes().fit(rows, "y")
    new = tb.NaiveBayes().fit(
        rows.assign(sky=["sun", "fog"] * 4, moon=[1.0, 3] * 4, y=["a", "c"] * 4).drop(columns="wind"), "y"
    )
    found = difference(old, new)
    assert found.classes == {"a": (4, 4), "b": (4, 0), "c": (0, 4)}
    assert np.isfinite(found.class_bits)
    (sky,) = found.columns
    assert (sky.column, sky.group, sky.new_levels, sky.gone_levels) == ("sky", "a", ("fog",), ("rain",))
    assert np.isfinite(sky.bits)
    assert (found.only_before, found.only_after) == (["wind"], ["moon"])
    shown = repr(found)
    assert "+ fog, - rain" in shown
    assert "only after: moon" in shown
    apart = difference(
        tb.NaiveBayes().fit({"x": ["p"], "y": ["a"]}, "y"), tb.NaiveBayes().fit({"x": ["p"], "y": ["b"]}, "y")
    )
    assert np.isnan(apart.columns[0].bits)
    assert "unknown" in repr(apart)


def test_networks_that_were_given_have_groups_that_count_alike():
    def coins(share):
        tables = {"a": [0.5, 0.5], "b": [[share, 1 - share], [0.5, 0.5]]}
        return tb.BayesianNetwork.from_tables({"b": ["a"]}, dict.fromkeys("ab", ("x", "y")), tables)

    found = {one.column: one for one in difference(coins(0.5), coins(0.25)).columns}
    assert found["a"].bits == 0
    assert found["b"].group_bits == pytest.approx(0.25 * np.log2(0.5) + 0.75 * np.log2(1.5))
    assert found["b"].bits == pytest.approx(found["b"].group_bits / 2)


def test_what_is_refused():
    with pytest.raises(tb.DataError, match="a NaiveBayes and a BayesianNetwork; expected two of one kind"):
        difference(MODELS["NaiveBayes"](), MODELS["BayesianNetwork"]())
    labels = {name: ROWS[name] for name in ("sex", "island", "species")}
    one, other = (tb.AutoClassifier(single=True, folds=2).fit(rows, "species") for rows in (labels, NUMBERS))
    assert one.members_[0].spec.name != other.members_[0].spec.name
    with pytest.raises(tb.DataError, match="the ensembles have no generative member in common"):
        difference(one, other)

"""Beliefs, means and covariances, measures and statistics of single columns: what every model has of them."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy import stats

import tallybayes as tb
from tallybayes.errors import EstimateError, StatisticsError

RNG = np.random.default_rng(1)
N = 50
Y = np.array(["a", "b"])[np.arange(N) % 2]
ROWS = {
    "sky": np.array(["sun", "rain", "fog"])[RNG.integers(0, 3, N)],
    "wind": np.array(["calm", "storm"])[RNG.integers(0, 2, N)],
    "calls": RNG.poisson(3, N),
    "warmth": RNG.normal(20, 5, N),
    "depth": RNG.normal(0, 1, N),
    "smokes": RNG.integers(0, 2, N),
}
COLUMNS = {
    "sky": tb.Categorical(),
    "wind": tb.Categorical(),
    "calls": tb.Poisson(),
    "warmth": tb.Gaussian(),
    "depth": tb.Gaussian(),
    "smokes": tb.Bernoulli(),
}


@pytest.mark.parametrize("estimate", ["mle", "unbiased", "map", "bayes"])
def test_beliefs_are_the_prior_after_the_counts(estimate):
    prior = None if estimate == "map" else 1  # add-one both
    model = tb.NaiveBayes(COLUMNS, estimate=estimate, prior=prior).fit(ROWS, Y)
    found = model.posterior_
    assert list(found) == ["class", *COLUMNS]
    added = 1 + (estimate == "map")
    counts = np.array(
        [[((ROWS["sky"] == s) & (c == Y)).sum() for s in model.parameter_table("sky").columns] for c in ("a", "b")]
    )
    np.testing.assert_allclose(found["sky"].concentration, counts + added)
    assert isinstance(found["sky"], tb.Dirichlet)
    successes = np.array([ROWS["smokes"][c == Y].sum() for c in ("a", "b")])
    np.testing.assert_allclose(found["smokes"].alpha, successes + added)
    np.testing.assert_allclose(found["smokes"].beta, N / 2 - successes + added)
    assert isinstance(found["calls"], tb.Gamma)
    assert isinstance(found["warmth"], tb.NormalInverseGamma)
    low, high = found["sky"].interval(0.9)
    assert low.shape == high.shape == (2, 3)
    total = (counts + added).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(low, stats.beta.ppf(0.05, counts + added, total - counts - added))
    assert found["warmth"].interval().low.mean.shape == (2,)
    assert "Dirichlet" in repr(found)
    assert "2 × 3" in repr(found)
    assert "NormalInverseGamma" in found._repr_html_()
    assert all(f">{head}</th>" in found._repr_html_() for head in found.to_frame().columns)
    if estimate == "bayes":
        for name in ("sky", "wind", "smokes"):
            mean = np.asarray(found[name].mean())
            np.testing.assert_allclose(
                model.parameter_table(name).values[..., -1], mean[..., -1] if mean.ndim > 1 else mean
            )
        np.testing.assert_allclose(model.parameter_table("warmth").values[:, 1], found["warmth"].mean().variance)
    if estimate == "map":
        np.testing.assert_allclose(model.parameter_table("sky").values, found["sky"].mode())


def test_class_probabilities_are_believed_unless_they_are_given():
    model = tb.NaiveBayes(COLUMNS, class_prior=tb.Dirichlet(3)).fit(ROWS, Y)
    np.testing.assert_allclose(model.posterior_["class"].concentration, [28, 28])
    assert "class" not in model.reestimate(class_prior="uniform").posterior_
    assert model.reestimate(class_prior={"a": 0.9, "b": 0.1}).class_prior_["a"] == pytest.approx(0.9)


def test_words_have_beliefs_of_their_own():
    words = sp.csr_array(RNG.poisson(1, (N, 6)))
    model = tb.NaiveBayes({"text": tb.Multinomial()}, prior=1).fit({"text": tb.NamedMatrix(words, list("uvwxyz"))}, Y)
    whole, one = model.posterior_["text"], model.posterior_["w"]
    assert isinstance(one, tb.Beta)
    np.testing.assert_allclose(one.mean(), np.asarray(whole.mean())[:, 2])
    np.testing.assert_allclose(one.interval().high, np.asarray(whole.interval().high)[:, 2])
    np.testing.assert_allclose(model.posterior_["text", 2].alpha, one.alpha)


def test_beliefs_of_networks_chains_and_mixtures():
    frame = pd.DataFrame(ROWS)[["sky", "wind", "warmth"]]
    network = tb.BayesianNetwork({"wind": ["sky"], "warmth": ["sky", "wind"]}, prior=None).fit(frame)
    np.testing.assert_allclose(network.posterior_["wind"].mean(), network.cpt("wind").values)
    assert np.shape(network.posterior_["warmth"].location) == (6,)
    given = tb.BayesianNetwork.from_tables({"a": []}, {"a": [True, False]}, {"a": [0.3, 0.7]})
    with pytest.raises(StatisticsError, match="posterior needs counts"):
        _ = given.posterior_
    assert not hasattr(given, "posterior_")
    assert given.cpt("a")[True] == 0.3
    chain = tb.HiddenMarkovModel(end_state=True).fit([ROWS["warmth"]], [Y])
    np.testing.assert_allclose(chain.posterior_["transition"].mean(), chain.transition_)
    np.testing.assert_allclose(chain.posterior_["end"].mean(), chain.end_)
    assert chain.posterior_[0].interval().low.variance.shape == (2,)
    mixture = tb.Mixture(2, random_state=0).fit(frame)
    np.testing.assert_allclose(mixture.posterior_["sky"].mean(), mixture.parameter_table("sky").values)


@pytest.mark.parametrize("covariance", tb.GaussianDiscriminant.families)
@pytest.mark.parametrize("shrinkage", [None, 0.4])
@pytest.mark.parametrize("estimate", ["mle", "unbiased", "map", "bayes"])
def test_means_and_covariances_of_discriminants(covariance, shrinkage, estimate):
    if shrinkage is not None and covariance not in ("full", "tied"):
        return
    X, y = RNG.multivariate_normal([0, 1, 2], [[2, 1, 0], [1, 3, 0.5], [0, 0.5, 1]], 60), np.arange(60) % 3
    model = tb.GaussianDiscriminant(covariance, shrinkage=shrinkage, estimate=estimate).fit(X, y)
    means, spread = model.means_, model.covariances_
    assert (means.shape, spread.shape) == ((3, 3), (3, 3, 3))
    for k in range(3):
        np.testing.assert_allclose(model.parameter_table(k).values[:, 0], means[:, k])
        np.testing.assert_allclose(model.parameter_table(k).values[:, 1], spread[:, k, k])
    if estimate == "mle":
        np.testing.assert_allclose(means, [X[y == k].mean(axis=0) for k in range(3)])
        own = np.array([np.cov(X[y == k].T, ddof=0) for k in range(3)])
        meant = np.tile(own.mean(axis=0), (3, 1, 1)) if "tied" in covariance else own
        if shrinkage is not None:
            meant = meant * (0.6 + 0.4 * np.eye(3))
        if "diagonal" in covariance:
            meant = meant * np.eye(3)
        if "spherical" in covariance:
            meant = np.array([np.eye(3) * np.trace(part) / 3 for part in meant])
        np.testing.assert_allclose(spread, meant, atol=1e-12)
    if estimate in ("mle", "map", "unbiased"):  # rows are scored by these very numbers
        terms = [stats.multivariate_normal(means[k], spread[k]).logpdf(X[:4]) for k in range(3)]
        joint = np.array(terms).T + np.log(model.class_prior_.values)
        np.testing.assert_allclose(model.predict_joint_log_proba(X[:4]), joint)
    assert np.linalg.eigvalsh(spread).min() > 0


def test_means_of_gaussian_columns_among_others():
    families = {**COLUMNS, ("depth", "calls"): tb.MultivariateGaussian()}
    families = {key: value for key, value in families.items() if key not in ("depth", "calls")}
    model = tb.NaiveBayes(families, estimate="mle").fit(pd.DataFrame(ROWS), Y)
    names = ["calls", "warmth", "depth"]  # the order of the rows
    for k, label in enumerate(("a", "b")):
        some = pd.DataFrame(ROWS)[label == Y][names]
        np.testing.assert_allclose(model.means_[k], some.mean())
        meant = np.cov(some.T, ddof=0)
        meant[1, [0, 2]] = meant[[0, 2], 1] = 0.0
        np.testing.assert_allclose(model.covariances_[k], meant, atol=1e-12)
    labels = tb.NaiveBayes(tb.Categorical()).fit({"sky": ROWS["sky"]}, Y)
    with pytest.raises(EstimateError, match="none of its columns is Gaussian"):
        _ = labels.means_
    assert not hasattr(labels, "covariances_")
    logs = tb.NaiveBayes(tb.LogNormal()).fit({"x": np.exp(ROWS["depth"])}, Y)
    assert not hasattr(logs, "means_")
    mixture = tb.Mixture(2, random_state=0).fit(ROWS["warmth"][:, None])
    assert mixture.means_.shape == (2, 1)
    twelve = tb.NaiveBayes(tb.Gaussian(), estimate="mle").fit(
        np.arange(12.0)[None] + np.arange(4)[:, None], [0, 0, 1, 1]
    )
    np.testing.assert_allclose(twelve.means_[0], np.arange(12) + 0.5)


def test_a_tally_finds_a_column_inside_its_block():
    model = tb.NaiveBayes(COLUMNS).fit(ROWS, Y)
    one = model.tally_["wind"]
    assert one.table.shape == (2, 2)
    assert one.table[0].tolist() == [
        ((ROWS["wind"] == w) & (Y == "a")).sum() for w in model.parameter_table("wind").columns
    ]
    np.testing.assert_allclose(model.tally_["depth"].mean[:, 0], [ROWS["depth"][c == Y].mean() for c in ("a", "b")])
    assert model.tally_["sky", "wind"] == model.tally_[("sky", "wind")]
    words = sp.csr_array(RNG.poisson(1, (N, 6)))
    text = tb.NaiveBayes().fit({"text": words}, Y)
    assert text.tally_["text", 4].total[:, 0].tolist() == [
        words[np.flatnonzero(c == Y)][:, [4]].sum() for c in ("a", "b")
    ]
    for wrong in ("nothing", ("text", 9), ("text", "u")):
        with pytest.raises(KeyError, match="no factor"):
            text.tally_[wrong]
    gaussian = tb.GaussianDiscriminant().fit(np.column_stack([ROWS["warmth"], ROWS["depth"]]), Y)
    assert gaussian.tally_[1].n_columns == 1


MEASURED = {
    "naive": lambda: tb.NaiveBayes(COLUMNS).fit(ROWS, Y),
    "discriminant": lambda: tb.GaussianDiscriminant().fit(ROWS["warmth"][:, None], Y),
    "network": lambda: tb.BayesianNetwork({"wind": ["sky"]}).fit({name: ROWS[name] for name in ("sky", "wind")}),
    "chain": lambda: tb.HiddenMarkovModel().fit([ROWS["warmth"]], [Y]),
}
UNMEASURED = {
    "nearest": (lambda: tb.NearestClassMean().fit(ROWS["warmth"][:, None], Y), "no density"),
    "tree": (lambda: tb.TreeAugmentedNaiveBayes().fit(ROWS, Y), "come from the same counts"),
    "averaged": (lambda: tb.AveragedOneDependence().fit(ROWS, Y), "come from the same counts"),
    "chosen": (lambda: tb.AutoClassifier(folds=2).fit(ROWS, Y), "no density"),
}


@pytest.mark.parametrize("name", MEASURED)
def test_every_model_has_measures(name):
    model = MEASURED[name]()
    assert np.isfinite([model.bic_, model.aic_, *model.description_length()]).all()
    assert callable(model.log_likelihood)


@pytest.mark.parametrize("name", UNMEASURED)
def test_or_says_why_it_has_none(name):
    make, why = UNMEASURED[name]
    model = make()
    for what in ("bic_", "aic_"):
        with pytest.raises(EstimateError, match=why):
            getattr(model, what)
        assert not hasattr(model, what)
    with pytest.raises(EstimateError, match=why):
        model.description_length()
    if name in ("tree", "averaged"):
        joint = model.predict_joint_log_proba(ROWS)[np.arange(N), (Y == "b").astype(int)]
        assert model.log_likelihood(ROWS, Y) == pytest.approx(joint.sum())
        assert not hasattr(model, "posterior_")
    else:
        with pytest.raises(EstimateError, match=why):
            model.log_likelihood(ROWS["warmth"][:, None], Y)
    if name == "nearest":
        assert not hasattr(model, "posterior_")


def test_pairs_count_the_parameters_of_their_tables():
    some = {name: ROWS[name] for name in ("sky", "wind", "smokes")}
    families = dict.fromkeys(some, tb.Categorical())
    tree = tb.TreeAugmentedNaiveBayes(families).fit(some, Y)
    sizes = {"sky": 3, "wind": 2, "smokes": 2}
    tables = [(sizes[name] - 1) * (1 if parent is None else sizes[parent]) for name, parent in tree.parents_.items()]
    assert tree.n_parameters_ == 1 + 2 * sum(tables)
    counted = sum(np.prod(table.values.shape[:-1]) * (len(table.columns) - 1) for table in tree.parameters_.values())
    assert tree.n_parameters_ == counted
    averaged = tb.AveragedOneDependence(families, class_prior="uniform").fit(some, Y)
    pairs = sum(sizes[i] * (sizes[j] - 1) for i in sizes for j in sizes if i != j)
    assert averaged.n_parameters_ == 2 * (4 + pairs)

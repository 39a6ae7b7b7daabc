"""Bayes' rule, against a textbook's loops and against enumeration of every possible row."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp
from sklearn.base import clone

import tallybayes as tb
from tallybayes.errors import EstimateError, PriorError
from tests.unit.models.classification.textbook import joint_log_prob, label_log_prob, number_log_prob

ESTIMATES = ["mle", "unbiased", "map", "bayes"]
MIXED = {"sky": tb.Categorical(), "windy": tb.Bernoulli(), "calls": tb.Poisson(), "warmth": tb.Gaussian()}
KINDS = ["label", "binary", "event", "number"]


def mixed_rows(n=40, seed=0, missing=0.15):
    """Rows of four kinds of columns, three classes of different sizes, some cells missing."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(["ham", "news", "spam"], n, p=[0.5, 0.3, 0.2]).tolist()
    columns = {
        "sky": rng.choice(["sun", "rain", "snow"], n).tolist(),
        "windy": rng.integers(0, 2, n).tolist(),
        "calls": rng.poisson(3, n).tolist(),
        "warmth": rng.normal(15, 8, n).tolist(),
    }
    for name, column in columns.items():
        columns[name] = [None if gone else value for value, gone in zip(column, rng.random(n) < missing, strict=True)]
    return columns, labels


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("estimate", ESTIMATES)
def test_every_method_follows_from_the_textbook_s_joint(estimate):
    columns, labels = mixed_rows()
    model = tb.NaiveBayes(MIXED, estimate=estimate, prior=tb.Dirichlet(2) if estimate == "map" else 1).fit(
        columns, labels
    )
    rows = list(zip(*columns.values(), strict=True))
    expected = joint_log_prob(list(columns.values()), KINDS, labels, rows, estimate)
    assert np.isfinite(expected).any(axis=1).all()
    np.testing.assert_allclose(model.predict_joint_log_proba(columns), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(model.score_samples(columns), logsumexp(expected, axis=1), rtol=1e-12)
    posterior = expected - logsumexp(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_log_proba(columns), posterior, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(model.predict_proba(columns), np.exp(posterior), atol=1e-13)
    assert model.predict(columns).tolist() == [sorted(set(labels))[k] for k in expected.argmax(axis=1)]
    truth = np.array(labels)
    assert model.score(columns, labels) == np.mean(model.predict(columns) == truth)


@pytest.mark.parametrize("estimate", ESTIMATES)
def test_a_variance_shared_by_all_classes(estimate):
    columns, labels = mixed_rows(seed=3)
    warmth = {"warmth": columns["warmth"]}
    model = tb.NaiveBayes({"warmth": tb.TiedGaussian()}, estimate=estimate).fit(warmth, labels)
    for k, label in enumerate(sorted(set(labels))):
        prior = label_log_prob(labels, [0] * len(labels), 0, label, estimate)
        expected = [
            prior + number_log_prob(columns["warmth"], labels, label, value, estimate, tied=True)
            for value in columns["warmth"]
        ]
        np.testing.assert_allclose(model.predict_joint_log_proba(warmth)[:, k], expected, rtol=1e-11)


@pytest.mark.parametrize("estimate", ESTIMATES)
def test_all_possible_rows_together_have_probability_one(estimate):
    columns, labels = mixed_rows(seed=1)
    discrete = {"sky": columns["sky"], "windy": columns["windy"], "third": [x and x % 3 for x in columns["calls"]]}
    families = {"sky": tb.Categorical(), "windy": tb.Bernoulli(), "third": tb.Categorical((0, 1, 2))}
    model = tb.NaiveBayes(families, estimate=estimate).fit(discrete, labels)
    space = list(itertools.product(["sun", "rain", "snow"], [0, 1], [0, 1, 2]))
    every = dict(zip(families, map(list, zip(*space, strict=True)), strict=True))
    assert np.exp(model.score_samples(every)).sum() == pytest.approx(1.0, abs=1e-13)
    # and leaving a column out is summing over it
    hidden = model.score_samples({"sky": ["sun"], "windy": [None], "third": [2]})
    seen = [
        math.exp(score) for score, row in zip(model.score_samples(every), space, strict=True) if row[::2] == ("sun", 2)
    ]
    assert math.exp(hidden[0]) == pytest.approx(sum(seen), rel=1e-13)


def test_binary_naive_bayes_with_beta_2_2_everywhere_is_add_one():
    rng = np.random.default_rng(5)
    X, y = rng.integers(0, 2, (30, 6)), rng.integers(0, 2, 30)
    model = tb.NaiveBayes(tb.Bernoulli(), estimate="map", prior=tb.Beta(2, 2), class_prior=tb.Dirichlet(2)).fit(X, y)
    for label in (0, 1):
        rows = X[y == label]
        share = (len(rows) + 1) / (len(X) + 2)
        ones = (rows.sum(axis=0) + 1) / (len(rows) + 2)
        expected = np.log(share) + (X * np.log(ones) + (1 - X) * np.log(1 - ones)).sum(axis=1)
        np.testing.assert_allclose(model.predict_joint_log_proba(X)[:, label], expected, rtol=1e-13)
    # the same numbers without saying so: they are the default of "map", and "bayes" under Beta(1, 1)
    for other in (model.reestimate(prior=None), model.reestimate(estimate="bayes", prior=tb.Beta(1, 1))):
        other.set_params(class_prior=None)
        np.testing.assert_allclose(
            other.predict_joint_log_proba(X) - other.class_log_prior_,
            model.predict_joint_log_proba(X) - model.class_log_prior_,
            rtol=1e-12,
        )


@pytest.mark.parametrize("estimate", ESTIMATES)
def test_binomial_multinomial_and_dirichlet_multinomial_rows(estimate):
    rng = np.random.default_rng(2)
    X, y = rng.integers(1, 7, (24, 3)), np.arange(24) % 2
    for family in (tb.Binomial(6), tb.Multinomial(), tb.DirichletMultinomial()):
        prior = None if estimate == "map" else 1  # add-one both
        joint = tb.NaiveBayes(family, estimate=estimate, prior=prior).fit(X, y).predict_joint_log_proba(X)
        for label in (0, 1):
            total = X[y == label].sum(axis=0)
            if isinstance(family, tb.Binomial):
                trials = 12 * 6
                if estimate == "bayes":
                    expected = stats.betabinom.logpmf(X, 6, 1 + total, 1 + trials - total).sum(axis=1)
                else:
                    extra = int(estimate == "map")
                    expected = stats.binom.logpmf(X, 6, (total + extra) / (trials + 2 * extra)).sum(axis=1)
            elif estimate == "bayes" and isinstance(family, tb.DirichletMultinomial):
                expected = stats.dirichlet_multinomial.logpmf(X, 1.0 + total, X.sum(axis=1))
            else:
                extra = int(estimate in ("map", "bayes"))
                share = (total + extra) / (total.sum() + 3 * extra)
                expected = stats.multinomial.logpmf(X, X.sum(axis=1), share)
            np.testing.assert_allclose(joint[:, label], np.log(0.5) + expected, rtol=1e-11)


def test_rows_of_a_joint_gaussian():
    rng = np.random.default_rng(8)
    X, y = rng.normal(size=(30, 2)) @ np.array([[1.0, 0.7], [0.0, 0.5]]), np.arange(30) % 3
    joint = tb.NaiveBayes(tb.MultivariateGaussian(), estimate="unbiased").fit(X, y).predict_joint_log_proba(X)
    for label in range(3):
        rows = X[y == label]
        expected = stats.multivariate_normal.logpdf(X, rows.mean(axis=0), np.cov(rows.T))
        np.testing.assert_allclose(joint[:, label], np.log(1 / 3) + expected, rtol=1e-11)


@pytest.mark.slow_after(3)
@pytest.mark.parametrize(
    ("class_prior", "expected"),
    [
        (None, [5 / 10, 3 / 10, 2 / 10]),
        ("frequency", [4 / 7, 2 / 7, 1 / 7]),
        ("uniform", [1 / 3, 1 / 3, 1 / 3]),
        ({"a": 0.1, "b": 0.2, "c": 0.7}, [0.1, 0.2, 0.7]),
        ([0.1, 0.2, 0.7], [0.1, 0.2, 0.7]),
        (tb.Dirichlet(1.0), [5 / 10, 3 / 10, 2 / 10]),
        (tb.Dirichlet([1.0, 2.0, 4.0]), [5 / 14, 4 / 14, 5 / 14]),
    ],
    ids=repr,
)
def test_class_priors_at_fitting_and_at_prediction(class_prior, expected):
    X, y = [[0.0], [1.0], [2.0], [0.5], [5.0], [6.0], [9.0]], list("aaaabbc")
    given = tb.NaiveBayes(class_prior=class_prior).fit(X, y)
    np.testing.assert_allclose(given.predict_proba([[np.nan]]), [expected], rtol=1e-14)
    np.testing.assert_allclose(np.exp(given.class_log_prior_), expected, rtol=1e-14)
    if class_prior is None:  # at prediction, None is the fitted one
        return
    # at prediction it replaces the fitted prior, whatever that was: even one that ruled a class out
    for fitted in (None, "uniform", {"a": 0.0, "b": 0.5, "c": 0.5}):
        other = tb.NaiveBayes(class_prior=fitted).fit(X, y)
        np.testing.assert_allclose(other.predict_proba(X, class_prior=class_prior), given.predict_proba(X), rtol=1e-12)
        np.testing.assert_allclose(
            other.predict_log_proba(X, class_prior=class_prior), given.predict_log_proba(X), rtol=1e-9
        )


@pytest.mark.parametrize(
    ("estimate", "expected"),
    [("bayes", [4 / 7, 2 / 7, 1 / 7]), ("map", [4 / 7, 2 / 7, 1 / 7]), ("mle", [3 / 4, 1 / 4, 0]), ("unbiased", None)],
)
def test_the_class_is_estimated_as_other_labels_are(estimate, expected):
    rows = {"x": [True, False, True, True], "y": list("aaab")}
    model = tb.NaiveBayes({"x": tb.Bernoulli()}, estimate=estimate).partial_fit(rows, "y", classes=list("abc"))
    expected = [3 / 4, 1 / 4, 0] if expected is None else expected
    np.testing.assert_allclose(np.exp(model.class_log_prior_), expected, rtol=1e-14)
    labels = tb.fit_distribution(list("aaab"), tb.Categorical(levels=("a", "b", "c"))).estimate(estimate)
    np.testing.assert_allclose(np.exp(model.class_log_prior_), [labels[c] for c in "abc"], rtol=1e-14)
    np.testing.assert_allclose(np.exp(model.reestimate(class_prior="frequency").class_log_prior_), [0.75, 0.25, 0])


@pytest.mark.parametrize("estimate", ["bayes", "map", "mle"])
def test_the_evidence_of_the_class_is_that_of_other_labels(estimate):
    y = list("aaab")
    model = tb.NaiveBayes(tb.Bernoulli(), estimate=estimate).fit(np.ones((4, 1)), y)
    cells = model.reestimate(class_prior="uniform").log_evidence() - 4 * np.log(0.5)
    belief = tb.Dirichlet(2.0 if estimate == "map" else 1.0)
    expected = tb.fit_distribution(y, tb.Categorical()).log_evidence(belief)
    assert model.log_evidence() - cells == pytest.approx(expected)


def test_a_dirichlet_class_prior_under_map_is_its_mode():
    model = tb.NaiveBayes(estimate="map", class_prior=tb.Dirichlet([3.0, 2.0])).fit(
        [[0.0], [1], [2], [5]], [0, 0, 0, 1]
    )
    np.testing.assert_allclose(model.predict_proba([[np.nan]]), [[5 / 7, 2 / 7]], rtol=1e-14)


@pytest.mark.parametrize(
    "class_prior",
    [{"a": 0.5}, {"a": 0.5, "b": 0.6}, {"a": -0.5, "b": 1.5}, [0.5], {"a": 0.2, "b": 0.3, "c": 0.5}],
)
def test_a_class_prior_that_is_none_is_refused(class_prior):
    model = tb.NaiveBayes(class_prior=class_prior)
    with pytest.raises(PriorError, match="class_prior"):
        model.fit([[0.0], [1.0]], ["a", "b"])
    assert not hasattr(model, "tally_")
    with pytest.raises(PriorError, match="class_prior"):
        tb.NaiveBayes().fit([[0.0], [1.0]], ["a", "b"]).predict_proba([[0.0]], class_prior=class_prior)


@pytest.mark.parametrize("model", [tb.NaiveBayes(), tb.GaussianDiscriminant(), tb.TreeAugmentedNaiveBayes()], ids=repr)
def test_a_class_prior_of_other_classes_is_refused_by_fit_and_waits_for_more_rows(model):
    X, y = [[0.0], [1.0], [2.0], [4.0]], ["a", "a", "b", "b"]
    known = clone(model).fit(X, y)
    before = known.tally_
    known.set_params(class_prior={"a": 0.2, "b": 0.3, "c": 0.5})
    with pytest.raises(PriorError, match="a probability for 'c', a class of which no row was seen") as error:
        known.fit(X, y)
    assert "classes=[..., 'c']" in str(error.value)
    assert known.tally_ is before
    known.partial_fit(X, y, classes=["c"])
    np.testing.assert_allclose(np.exp(known.class_log_prior_), [0.2, 0.3, 0.5])
    first = model.set_params(class_prior=[0.2, 0.3, 0.5]).partial_fit(X[:2], y[:2])  # more classes are to come
    first.partial_fit(X[2:] + X[2:], ["b", "b", "c", "c"])
    np.testing.assert_allclose(np.exp(first.class_log_prior_), [0.2, 0.3, 0.5])
    with pytest.raises(tb.TallybayesError, match="3"):
        clone(model).set_params(class_prior=tb.Dirichlet([1.0, 1.0, 1.0])).fit(X, y)


def test_ties_go_to_the_first_class():
    assert tb.NaiveBayes().fit([[0.0], [0.0], [1.0], [1.0]], ["b", "a", "b", "a"]).predict([[0.0], [1.0]]).tolist() == [
        "a",
        "a",
    ]


def test_priors_by_belief_by_column_and_by_list():
    columns, labels = mixed_rows(missing=0.0)
    base = tb.NaiveBayes(MIXED).fit(columns, labels)
    by_list = base.reestimate(prior=[tb.Dirichlet(3.0), tb.Gamma(2, 1)])
    by_name = base.reestimate(prior={"sky": tb.Dirichlet(3.0), "calls": tb.Gamma(2, 1)})
    assert by_list.prior_ == by_name.prior_
    assert by_list.prior_["sky"] == tb.Dirichlet(3.0)
    assert by_list.prior_["windy"] == base.prior_["windy"]
    np.testing.assert_array_equal(by_list.predict_proba(columns), by_name.predict_proba(columns))
    sun = columns["sky"].count("sun")
    alone = tb.NaiveBayes({"sky": tb.Categorical()}, prior=tb.Dirichlet(3.0)).fit(columns, ["all"] * len(labels))
    assert alone.score_samples({**columns, "sky": ["sun"] * 40})[0] == pytest.approx(math.log((sun + 3) / (40 + 9)))
    with pytest.raises(PriorError, match="'cloud'"):
        base.reestimate(prior={"cloud": tb.Dirichlet(1)}).predict(columns)
    with pytest.raises(PriorError, match="Dirichlet"):
        base.reestimate(prior={"sky": tb.Gamma(1, 1)}).predict(columns)


def test_an_unknown_estimate_is_refused():
    with pytest.raises(EstimateError, match="'guess'"):
        tb.NaiveBayes(estimate="guess").fit([[0.0], [1.0]], [0, 1])


def test_numbers_of_parameters():
    rows = {"a": list("xyzx"), "b": list("uvuv"), "n": [0.0, 1.0, 3.0, 4.0], "k": [1, 0, 2, 5]}
    y = [0, 1, 0, 1]
    labels = tb.NaiveBayes().fit({"a": rows["a"], "b": rows["b"]}, y)
    assert labels.n_parameters_ == 1 + 2 * (2 + 1)
    assert labels.n_parameters_joint_ == 2 * 3 * 2 - 1
    mixed = tb.NaiveBayes({"a": tb.Categorical(), "n": tb.Gaussian(), "k": tb.Poisson()}).fit(rows, y)
    assert mixed.n_parameters_ == 1 + 2 * 2 + 2 * 2 + 2
    assert mixed.n_parameters_joint_ is None
    tied = mixed.reestimate(columns={"a": tb.Categorical(), "n": tb.TiedGaussian(), "k": tb.Poisson()})
    assert tied.n_parameters_ == mixed.n_parameters_ - 1
    binary = tb.NaiveBayes(tb.Bernoulli()).fit(np.eye(4, dtype=int), y)
    assert (binary.n_parameters_, binary.n_parameters_joint_) == (2 * 4 + 1, 2**5 - 1)

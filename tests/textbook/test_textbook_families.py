"""Labels and measurements as the textbooks reckon them."""

from math import e, log, pi, sqrt

import numpy as np

import tallybayes as tb
from tests.textbook.course import digits, near

LABELS = tb.fit_distribution(counts={"a": 2, "b": 1, "c": 1}, family=tb.Categorical())
NUMBERS = tb.fit_distribution([1.0, 2.0, 6.0], tb.Gaussian())


def test_M9_52a_labels():
    near(list(LABELS.estimate("mle").values()), [1 / 2, 1 / 4, 1 / 4])
    for estimate, prior in (("map", tb.Dirichlet(2)), ("bayes", tb.Dirichlet(1))):
        near(list(LABELS.estimate(estimate, prior=prior).values()), [3 / 7, 2 / 7, 2 / 7])
    assert LABELS.posterior(tb.Dirichlet(1)) == tb.Dirichlet([3, 2, 2])
    near(list(LABELS.estimate("bayes", prior=tb.Dirichlet(0)).values()), [1 / 2, 1 / 4, 1 / 4])


def test_E_P4_E_M5_a_line_of_a_table_sums_to_1():
    for estimate, prior in (("map", tb.Dirichlet(2)), ("bayes", tb.Dirichlet(1)), ("mle", None)):
        near(sum(LABELS.estimate(estimate, prior=prior).values()), 1)


def test_T10_E_T12_measurements():
    found = NUMBERS.estimate("mle")
    near([found.mean, found.variance, found.std], [3, 14 / 3, sqrt(14 / 3)])
    digits(found.std, 2.160247)
    digits(NUMBERS.log_likelihood(found), -6.567483)
    near(NUMBERS.estimate("unbiased").variance, 7)


def test_T10b_bayes_of_measurements():
    prior = tb.NormalInverseGamma(0, 1, 2, 3)
    posterior = NUMBERS.posterior(prior)
    found = [posterior.location, posterior.strength, posterior.shape, posterior.scale]
    near([float(part) for part in found], [2.25, 4, 3.5, 13.375])
    near(
        [NUMBERS.estimate("map", prior=prior).variance, NUMBERS.estimate("bayes", prior=prior).variance], [2.675, 5.35]
    )
    density = np.exp(NUMBERS.predictive(prior).log_prob(np.linspace(-200, 200, 400001)))
    np.testing.assert_allclose(density.sum() * 0.001, 1, atol=1e-6)


def test_M0_8_E_M7_maximum_likelihood_is_closest():
    labels = tb.fit_distribution(["1", "e", "pi", "42"], tb.Categorical())
    near(labels.divergence(labels.estimate("mle")), 0)
    other = {"1": 1 / 2, "e": 1 / 4, "pi": 1 / 8, "42": 1 / 8}
    digits(labels.cross_entropy(other), 1.559581)
    near(labels.divergence(other), log(2) / 4)
    numbers = tb.fit_distribution([1.0, e, pi, 42.0], tb.Gaussian())
    digits(numbers.estimate("mle"), (12.214969, 296.359207))
    near(numbers.divergence(numbers.estimate("mle")), 0)


def test_P3_M0_11_swap_the_estimate_keep_the_counts():
    rows = {"sky": ["sun", "rain", "sun"], "kept": ["yes", "no", "yes"]}
    model = tb.NaiveBayes(estimate="mle").fit(rows, "kept")
    for estimate in ("map", "bayes"):
        assert model.reestimate(estimate=estimate).tally_ == model.tally_


def test_P1_labels_that_are_missing():
    rows = {"x": [1, 1, 0, 0, 0, 1, 1]}
    model = tb.NaiveBayes({"x": tb.Bernoulli()}, unlabeled="em").fit(rows, ["a", "a", "a", "b", "b", "b", None])
    assert model.predict_proba({"x": [1]})[0, 0] > 0.5
    np.testing.assert_allclose(model.tally_[("x",)].weight.sum(), 7)


def test_P2_E_P6_pairs_may_be_independent_and_three_not():
    rows = {"a": [0, 0, 1, 1], "b": [0, 1, 0, 1], "c": [0, 1, 1, 0]}
    pairs = [tb.BayesianNetwork({one: [other]}, estimate="mle").fit(rows) for one, other in ("ab", "ac", "bc")]
    for model, (one, other) in zip(pairs, ("ab", "ac", "bc"), strict=True):
        near(model.probability({one: 1, other: 1}), 1 / 4)
    whole = tb.BayesianNetwork({"c": ["a", "b"]}, estimate="mle").fit(rows)
    near(whole.probability({"a": 1, "b": 1, "c": 1}), 0)
